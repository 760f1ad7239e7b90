// SPDX-License-Identifier: Apache-2.0
/* Transfers of random shapes between slots, constants, SBUF and PSUM, one element at a time. */
#include "rig.h"

#define ROUNDS	   1500
#define SLOT_BYTES 65536u
#define SBUF_AREA  4096u /* of each partition */

struct bench {
	struct rig *rig;
	uint64_t seed;
	uint8_t *sbuf, *psum; /* [128][SBUF_AREA], as they should be */
	uint8_t *slot[2];
	uint8_t *constants;
};

static uint32_t rnd(struct bench *b)
{
	b->seed ^= b->seed << 13;
	b->seed ^= b->seed >> 7;
	b->seed ^= b->seed << 17;
	return (uint32_t)(b->seed >> 20);
}

static uint64_t slot_base(unsigned int i)
{
	return 0x100000 + i * 0x100000 + 3; /* buffers may begin anywhere */
}

static uint8_t *byte_of(struct bench *b, const struct isa_dma_side *s, unsigned int part,
			int64_t at)
{
	if (s->space == ISA_SPACE_SLOT) {
		assert_true(at >= 0 && at < SLOT_BYTES);
		return (s->slot == ISA_SLOT_CONST ? b->constants : b->slot[s->slot]) + at;
	}
	assert_true(part < 128 && at >= 0 && at < SBUF_AREA);
	return (s->space == ISA_SPACE_SBUF ? b->sbuf : b->psum) + part * SBUF_AREA + at;
}

/* Element n of a side in the order of the specification. */
static uint8_t *element(struct bench *b, const struct isa_dma_side *s, uint64_t n)
{
	int64_t at = (int64_t)s->offset;
	unsigned int part = 0;

	for (int d = s->ndim - 1; d >= 0; d--) {
		at += (int64_t)(n % s->count[d]) * (int64_t)s->step[d];
		n /= s->count[d];
	}
	if (s->space != ISA_SPACE_SLOT)
		part = s->part0 + (unsigned int)n * s->part_step;
	return byte_of(b, s, part, at);
}

/* Factors of n in random order, for the dims of a side. */
static unsigned int split(struct bench *b, uint32_t n, unsigned int most, uint32_t *count)
{
	unsigned int nd = 0;

	while (n > 1 && nd + 1 < most) {
		uint32_t f = 2 + rnd(b) % 15;

		while (n % f && f < n)
			f++;
		if (f > n)
			f = n;
		count[nd++] = f;
		n /= f;
		if (rnd(b) % 3 == 0)
			break;
	}
	if (n > 1 || (nd == 0 && rnd(b) % 2))
		count[nd++] = n;
	return nd;
}

static struct isa_dma_side random_side(struct bench *b, uint32_t n, unsigned int bytes, bool is_dst)
{
	struct isa_dma_side s = { .space = (uint8_t)(rnd(b) % 3) };
	unsigned int order[ISA_DMA_DIMS] = { 0, 1, 2, 3, 4 };
	int64_t span = bytes, low = 0;
	int64_t room = s.space == ISA_SPACE_SLOT ? SLOT_BYTES : SBUF_AREA;

	if (s.space == ISA_SPACE_SLOT) {
		s.slot = is_dst ? 1 : rnd(b) % 4 ? rnd(b) % 2 : ISA_SLOT_CONST;
	} else {
		uint32_t parts = 1;

		while (n % (parts * 2) == 0 && parts < 64 &&
		       (rnd(b) % 4 || n / parts * bytes > 2048))
			parts *= 2;
		s.nparts = (uint8_t)parts;
		s.part_step = is_dst || rnd(b) % 4;
		s.part0 = (uint8_t)(rnd(b) % (s.part_step ? 129 - parts : 128));
		n /= parts;
	}
	s.ndim = (uint8_t)split(b, n, ISA_DMA_DIMS, s.count);
	for (unsigned int i = 0; i < s.ndim; i++) {
		unsigned int k = i + rnd(b) % (s.ndim - i), d = order[k];
		int64_t step = rnd(b) % 4 ? span : span + rnd(b) % 3 * bytes;

		/* Innermost first, mostly, and packed, mostly. */
		if (rnd(b) % 3) {
			for (k = 0, d = 0; k < s.ndim - i; k++)
				d = order[i + k] > d ? order[i + k] : d;
			for (k = i; order[k] != d; k++)
				;
		}
		order[k] = order[i];
		order[i] = d;
		if (!is_dst && rnd(b) % 6 == 0)
			step = 0;
		if (rnd(b) % 8 == 0)
			step = -step;
		s.step[d] = (uint64_t)step;
		low += step < 0 ? step * (s.count[d] - 1) : 0;
		span += (step < 0 ? -step : step) * (s.count[d] - 1);
	}
	if (span > room)
		return random_side(b, n * (s.nparts ? s.nparts : 1), bytes, is_dst);
	s.offset = (uint64_t)(rnd(b) % (room - span + 1) - low);
	return s;
}

static void copy_reference(struct bench *b, const struct isa_dma_side *dst,
			   const struct isa_dma_side *src, uint32_t n, unsigned int bytes)
{
	for (uint32_t i = 0; i < n; i++)
		memmove(element(b, dst, i), element(b, src, i), bytes);
}

/* Whether a byte is both read and written: the order of elements is not specified then. */
static bool overlap(struct bench *b, const struct isa_dma_side *dst, const struct isa_dma_side *src,
		    uint32_t n)
{
	const uint8_t *dl = element(b, dst, 0), *dh = dl, *sl = element(b, src, 0), *sh = sl;

	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *d = element(b, dst, i), *s = element(b, src, i);

		dl = d < dl ? d : dl;
		dh = d > dh ? d : dh;
		sl = s < sl ? s : sl;
		sh = s > sh ? s : sh;
	}
	return dl <= sh + 8 && sl <= dh + 8;
}

static void compare_chip(struct bench *b, unsigned int space, const uint8_t *want)
{
	struct program *p = calloc(1, sizeof(*p));
	const struct exi_slot slot = { .base = 0x800000,
				       .size = 128 * SBUF_AREA,
				       .rights = EXI_SLOT_READ | EXI_SLOT_WRITE };

	asm_slot(p, NPROG_SLOT_OUTPUT, 128 * SBUF_AREA);
	asm_dma(p, ISA_GPSIMD, 3, 1, asm_flat(0, 0, 128 * SBUF_AREA, 1),
		asm_chip(space, 0, 128, 0, SBUF_AREA, 1));
	assert_int_equal(rig_program(b->rig, p, &slot).status, EXI_OK);
	assert_memory_equal(b->rig->hbm + slot.base, want, 128 * SBUF_AREA);
	free(p);
}

static void test_random(void **state)
{
	static const uint32_t sizes[] = { 1, 2, 6, 12, 64, 96, 210, 256, 1024, 1536, 4096 };
	struct bench *b = *state;
	struct exi_slot slots[2];

	for (unsigned int i = 0; i < 2; i++)
		slots[i] = (struct exi_slot){ .base = slot_base(i),
					      .size = SLOT_BYTES,
					      .rights = EXI_SLOT_READ | (i ? EXI_SLOT_WRITE : 0) };
	for (unsigned int round = 0; round < ROUNDS; round++) {
		struct program *p = calloc(1, sizeof(*p));
		unsigned int bytes = 1u << rnd(b) % 4;
		uint32_t n = sizes[rnd(b) % (sizeof(sizes) / sizeof(sizes[0]))];
		struct isa_dma_side dst, src;
		struct exi_record rec;

		n = n * bytes > 8192 ? 256 : n;
		do {
			dst = random_side(b, n, bytes, true);
			src = random_side(b, n, bytes, false);
		} while (overlap(b, &dst, &src, n));
		asm_slot(p, NPROG_SLOT_INPUT, SLOT_BYTES);
		asm_slot(p, NPROG_SLOT_INOUT, SLOT_BYTES);
		p->constants = b->constants;
		p->const_bytes = SLOT_BYTES;
		asm_dma(p, ISA_SYNC, round % ISA_DMA_QUEUES, bytes, dst, src);
		rec = rig_program(b->rig, p, slots);
		assert_int_equal(rec.status, EXI_OK);
		assert_int_equal(rec.dma_bytes, n * bytes);
		copy_reference(b, &dst, &src, n, bytes);
		for (unsigned int i = 0; i < 2; i++)
			if (memcmp(b->rig->hbm + slot_base(i), b->slot[i], SLOT_BYTES))
				fail_msg("round %u: slot %u differs", round, i);
		if (round % 8 == 7) {
			compare_chip(b, ISA_SPACE_SBUF, b->sbuf);
			compare_chip(b, ISA_SPACE_PSUM, b->psum);
		}
		free(p);
	}
}

/* Constants, scalars in the launch, and elements wider than what a slot aligns to. */
static void test_scalar_slot(void **state)
{
	struct bench *b = *state;
	struct program *p = calloc(1, sizeof(*p));
	static const uint32_t constant = 0x01020304;
	const struct exi_slot slots[] = {
		{ .base = 0x1122334455667788u,
		  .size = 8,
		  .rights = EXI_SLOT_READ | EXI_SLOT_INLINE },
		{ .base = slot_base(0), .size = 12, .rights = EXI_SLOT_READ | EXI_SLOT_WRITE },
	};
	uint64_t scalar;
	uint32_t word;

	asm_slot(p, NPROG_SLOT_SCALAR, 8);
	asm_slot(p, NPROG_SLOT_OUTPUT, 12);
	p->constants = &constant;
	p->const_bytes = sizeof(constant);
	asm_dma(p, ISA_SYNC, 0, 8, asm_flat(1, 0, 1, 8), asm_flat(0, 0, 1, 8));
	asm_dma(p, ISA_SYNC, 0, 4, asm_flat(1, 8, 1, 4), asm_flat(ISA_SLOT_CONST, 0, 1, 4));
	assert_int_equal(rig_program(b->rig, p, slots).status, EXI_OK);
	memcpy(&scalar, b->rig->hbm + slot_base(0), 8);
	memcpy(&word, b->rig->hbm + slot_base(0) + 8, 4);
	assert_true(scalar == slots[0].base);
	assert_int_equal(word, constant);
	free(p);
}

/* More than one burst, in each of the copy loops. */
static void test_large(void **state)
{
	enum { N = 3u << 20 };
	struct bench *b = *state;
	const struct exi_slot slots[] = {
		{ .base = 0x1000000, .size = N, .rights = EXI_SLOT_READ },
		{ .base = 0x1400000, .size = N, .rights = EXI_SLOT_READ | EXI_SLOT_WRITE },
	};
	struct isa_dma_side shapes[3] = { asm_flat(1, 0, N, 1), asm_flat(1, 0, N, 1),
					  asm_flat(1, 0, N, 1) };
	struct isa_dma_side turned = {
		.space = ISA_SPACE_SLOT, .ndim = 2, .count = { 1024, N / 1024 }, .step = { 1, 1024 }
	};
	const uint8_t *in = b->rig->hbm + slots[0].base, *out = b->rig->hbm + slots[1].base;

	shapes[1].step[0] = (uint64_t)-1;
	shapes[1].offset = N - 1;
	for (size_t i = 0; i < N; i++)
		b->rig->hbm[slots[0].base + i] = (uint8_t)rnd(b);
	for (unsigned int i = 0; i < 3; i++) {
		struct program *p = calloc(1, sizeof(*p));

		asm_slot(p, NPROG_SLOT_INPUT, N);
		asm_slot(p, NPROG_SLOT_OUTPUT, N);
		asm_dma(p, ISA_SYNC, 0, 1, shapes[i], i == 2 ? turned : asm_flat(0, 0, N, 1));
		assert_int_equal(rig_program(b->rig, p, slots).status, EXI_OK);
		for (size_t k = 0; k < N; k++) {
			size_t from = i == 2 ? k % (N / 1024) * 1024 + k / (N / 1024) : k;
			size_t to = i == 1 ? N - 1 - k : k;

			if (out[to] != in[from])
				fail_msg("shape %u: byte %zu", i, k);
		}
		free(p);
	}
}

static int setup(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));

	b->seed = 0x9e3779b97f4a7c15u;
	b->rig = rig_create();
	rig_queue(b->rig, 0, 1);
	b->sbuf = calloc(128, SBUF_AREA);
	b->psum = calloc(128, SBUF_AREA);
	b->constants = malloc(SLOT_BYTES);
	for (unsigned int k = 0; k < SLOT_BYTES; k++)
		b->constants[k] = (uint8_t)rnd(b);
	for (unsigned int i = 0; i < 2; i++) {
		b->slot[i] = malloc(SLOT_BYTES);
		for (unsigned int k = 0; k < SLOT_BYTES; k++)
			b->slot[i][k] = (uint8_t)rnd(b);
		memcpy(b->rig->hbm + slot_base(i), b->slot[i], SLOT_BYTES);
	}
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bench *b = *state;

	rig_destroy(b->rig);
	free(b->sbuf);
	free(b->psum);
	free(b->constants);
	free(b->slot[0]);
	free(b->slot[1]);
	free(b);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_random, setup, teardown),
		cmocka_unit_test_setup_teardown(test_scalar_slot, setup, teardown),
		cmocka_unit_test_setup_teardown(test_large, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
