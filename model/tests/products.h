/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of the tensor engine share: operands in SBUF, of which a copy is kept, and all of PSUM in a slot. */
#ifndef TEST_PRODUCTS_H
#define TEST_PRODUCTS_H

#include "reference.h"
#include "rig.h"

#define SLOT_BYTES (128 * NM_PSUM_BYTES)

struct bench {
	struct rig *rig;
	uint64_t seed;
	uint8_t *sbuf; /* [128][SBUF_AREA] as uploaded */
};

#define SBUF_AREA 16384

static inline uint64_t rnd(struct bench *b)
{
	b->seed ^= b->seed << 13;
	b->seed ^= b->seed >> 7;
	b->seed ^= b->seed << 17;
	return b->seed >> 11;
}

static inline uint32_t upto(struct bench *b, uint32_t n)
{
	return 1 + (uint32_t)(rnd(b) % n);
}

static inline uint8_t *element(struct bench *b, const struct isa_tile *t, unsigned int p,
			       uint32_t n)
{
	int64_t at = ref_offset(t, n);

	assert_true(at >= 0 && at < SBUF_AREA && t->part0 + p < 128);
	return b->sbuf + (size_t)(t->part0 + p) * SBUF_AREA + at;
}

/* Products of small integers are exact in fp32 in any order. */
static inline void fill(struct bench *b, const struct isa_tile *t, bool exact)
{
	for (unsigned int p = 0; p < t->nparts; p++)
		for (uint32_t n = 0; n < ref_elems(t); n++) {
			long double x = (long double)(rnd(b) % 17) - 8;
			uint64_t u;

			if (!exact)
				x += (long double)(rnd(b) % 1000) / 1000;
			u = ref_pack(ref_format(t->dtype), x);
			memcpy(element(b, t, p, n), &u, isa_dtype_bytes(t->dtype));
		}
}

static inline void upload(struct bench *b)
{
	for (unsigned int p = 0; p < 128; p++)
		assert_int_equal(nm_core_sbuf_write(b->rig->core, (uint64_t)p * NM_SBUF_VIEW_PITCH,
						    b->sbuf + (size_t)p * SBUF_AREA, SBUF_AREA),
				 0);
}

/* All of PSUM to slot number slot, when sem is one. */
static inline void dump_psum(struct program *p, unsigned int slot, unsigned int sem)
{
	struct isa_dma_side dst = asm_flat(slot, 0, SLOT_BYTES, 1);
	struct isa_dma_side src = asm_chip(ISA_SPACE_PSUM, 0, 128, 0, NM_PSUM_BYTES, 1);

	asm_wait(asm_dma(p, ISA_SYNC, 0, 1, dst, src), sem, 1);
}

static const struct exi_slot out_slot[ASM_SLOTS] = {
	{ .base = 0x100000, .size = SLOT_BYTES, .rights = EXI_SLOT_READ | EXI_SLOT_WRITE }
};

static inline const uint8_t *psum(struct bench *b, const struct isa_tile *t, unsigned int p,
				  uint32_t n)
{
	return b->rig->hbm + out_slot[0].base + (size_t)(t->part0 + p) * NM_PSUM_BYTES +
	       ref_offset(t, n);
}

static inline struct isa_tile operand(struct bench *b, unsigned int dtype, uint32_t nparts,
				      uint32_t n, uint32_t base)
{
	unsigned int part0 = nparts <= 32 ? (unsigned int)(rnd(b) % 4) * 32 :
			     nparts <= 64 ? (unsigned int)(rnd(b) % 3) * 32 :
					    0;
	struct isa_tile t = asm_row(ISA_SPACE_SBUF, dtype, part0, nparts, base, n);

	if (rnd(b) % 3 == 0)
		t.step[3] = 2;
	if (rnd(b) % 4 == 0 && n % 2 == 0) { /* columns in two halves, swapped */
		t.count[2] = 2;
		t.count[3] = n / 2;
		t.step[2] = (uint32_t)-(int32_t)(n * t.step[3]);
		t.offset += n * t.step[3] * isa_dtype_bytes(dtype);
	}
	return t;
}

static inline struct isa_tile result(struct bench *b, unsigned int dtype, uint32_t nparts,
				     uint32_t n)
{
	uint32_t bytes = isa_dtype_bytes(dtype), room = ISA_PSUM_BANK_BYTES / bytes;
	unsigned int part0 = nparts <= 32 ? (unsigned int)(rnd(b) % 4) * 32 : 0;
	struct isa_tile t = asm_row(ISA_SPACE_PSUM, dtype, part0, nparts,
				    (uint32_t)(rnd(b) % ISA_PSUM_BANKS) * ISA_PSUM_BANK_BYTES, n);

	if (n * 2 <= room && rnd(b) % 3 == 0)
		t.step[3] = 2;
	return t;
}

static inline void numbers(struct bench *b, const struct isa_tile *t, double *v)
{
	for (unsigned int p = 0; p < t->nparts; p++)
		for (uint32_t n = 0; n < ref_elems(t); n++)
			*v++ = (double)ref_load(ISA_CT_F32, t->dtype, element(b, t, p, n)).x;
}

static inline int setup_of(void **state, uint32_t arch)
{
	struct bench *b = calloc(1, sizeof(*b));

	b->seed = 88172645463325252u;
	b->rig = rig_create_of(arch, 0, NULL);
	rig_queue(b->rig, 0, 1);
	b->sbuf = calloc(128, SBUF_AREA);
	*state = b;
	return 0;
}

static inline int setup(void **state)
{
	return setup_of(state, NEURON_ARCH_V3);
}

static inline int teardown(void **state)
{
	struct bench *b = *state;

	rig_destroy(b->rig);
	free(b->sbuf);
	free(b);
	return 0;
}

#endif /* TEST_PRODUCTS_H */
