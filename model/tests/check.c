// SPDX-License-Identifier: Apache-2.0
/* Checking mode: each mistake is named with both places, and what is right is let through. */
#include "rig.h"

#define BYTES 4096u
#define ROW   (BYTES / 4) /* fp32 elements */

static const struct exi_slot slots[] = {
	{ .base = 0, .size = 1u << 20, .rights = EXI_SLOT_READ | EXI_SLOT_WRITE },
	{ .base = 1u << 20, .size = 1u << 20, .rights = EXI_SLOT_READ | EXI_SLOT_WRITE },
};

static struct program *new_program(void)
{
	struct program *p = calloc(1, sizeof(*p));

	asm_slot(p, NPROG_SLOT_INOUT, slots[0].size);
	asm_slot(p, NPROG_SLOT_INOUT, slots[1].size);
	return p;
}

static struct isa_tile sbuf(uint32_t offset, uint32_t n)
{
	return asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 128, offset, n);
}

static struct isa_tile psum(uint32_t offset, uint32_t n)
{
	return asm_row(ISA_SPACE_PSUM, ISA_FP32, 0, 128, offset, n);
}

static struct isa_inst *set(struct program *p, unsigned int engine, struct isa_tile dst)
{
	struct isa_inst *in = asm_inst(p, engine, ISA_MEMSET);

	in->compute.dst = dst;
	return in;
}

static struct isa_inst *copy(struct program *p, unsigned int engine, struct isa_tile dst,
			     struct isa_tile src)
{
	struct isa_inst *in = asm_inst(p, engine, ISA_COPY);

	in->compute.dst = dst;
	in->compute.src0 = src;
	return in;
}

static struct isa_inst *load(struct program *p, unsigned int queue, uint32_t offset,
			     unsigned int slot)
{
	struct isa_dma_side src = asm_flat(slot, 0, 128, BYTES);

	src.ndim = 2;
	src.step[1] = 4;
	src.count[1] = ROW;
	return asm_dma(p, ISA_SYNC, queue, 4, asm_chip(ISA_SPACE_SBUF, 0, 128, offset, ROW, 4),
		       src);
}

static struct isa_inst *store(struct program *p, unsigned int engine, unsigned int queue,
			      unsigned int slot, uint64_t at)
{
	return asm_dma(p, engine, queue, 4, asm_flat(slot, at, ROW, 4),
		       asm_chip(ISA_SPACE_SBUF, 0, 1, 0, ROW, 4));
}

static struct exi_record run(struct rig *r, struct program *p)
{
	return rig_once(r, p, slots);
}

#define assert_ok(rec) assert_int_equal((rec).status, EXI_OK)

static void assert_found(const struct exi_record *rec, unsigned int status, unsigned int engine,
			 uint32_t pc, uint64_t other)
{
	assert_int_equal(rec->status, status);
	assert_int_equal(rec->engine, engine);
	assert_int_equal(rec->pc, pc);
	assert_int_equal(rec->limit, other);
}

static void assert_logged(const struct rig *r, const char *words)
{
	for (unsigned int i = 0; i < 8; i++)
		if (strstr(r->log[i], words))
			return;
	fail_msg("'%s' is not in the log, whose last line is '%s'", words,
		 r->log[(r->logged + 7) % 8]);
}

static int setup(void **state)
{
	struct rig *r = rig_create_checking(NM_CHECK_ALL);

	rig_queue(r, 0, 1);
	rig_written(r, 0, 2u << 20);
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	rig_destroy(*state);
	return 0;
}

/* --- races ------------------------------------------------------------------------------- */

static struct program *two_engines(bool ordered)
{
	struct program *p = new_program();
	struct isa_inst *in;

	asm_inst(p, ISA_VECTOR, ISA_NOP);
	in = set(p, ISA_VECTOR, sbuf(0, ROW));
	if (ordered)
		asm_update(in, 7, 1);
	in = copy(p, ISA_SCALAR, sbuf(BYTES, ROW), sbuf(64, 4));
	in->compute.dst = sbuf(BYTES, 4);
	if (ordered)
		asm_wait(in, 7, 1);
	return p;
}

static void engines_race_on_sbuf(void **state)
{
	struct rig *r = *state;
	struct exi_record rec = run(r, two_engines(false));

	assert_found(&rec, EXI_FAULT_RACE, ISA_SCALAR, 0, EXI_OTHER(ISA_VECTOR, 1, ISA_MEMSET));
	assert_int_equal(rec.opcode, ISA_COPY);
	assert_int_equal(rec.value, EXI_PLACE(ISA_SPACE_SBUF, 0, 64));
	assert_int_equal(r->findings[0], 1);
	assert_logged(r, "race on SBUF, partition 0, byte 64: vector engine, instruction 1 "
			 "(memset) writes it, scalar engine, instruction 0 (copy) reads it");
	assert_int_equal(r->error_status, EXI_FAULT_RACE);
	assert_ok(run(r, two_engines(true)));
	assert_int_equal(r->findings[0], 1);
}

/* A transfer is in order with its queue alone. */
static void engine_and_transfer_race(void **state)
{
	struct rig *r = *state;
	struct exi_record rec;

	for (unsigned int ordered = 0; ordered < 2; ordered++) {
		struct program *p = new_program();
		struct isa_inst *in = load(p, 0, 0, 0);

		asm_update(in, 1, 1);
		in = copy(p, ISA_VECTOR, sbuf(BYTES, ROW), sbuf(0, ROW));
		if (ordered)
			asm_wait(in, 1, 1);
		rec = run(r, p);
		if (!ordered)
			assert_found(&rec, EXI_FAULT_RACE, ISA_SYNC, 0,
				     EXI_OTHER(ISA_VECTOR, 0, ISA_COPY));
		else
			assert_ok(rec);
	}
}

static void transfers_race_on_hbm(void **state)
{
	struct rig *r = *state;
	struct exi_slot same[2] = { slots[0], slots[0] };

	for (unsigned int queue = 0; queue < 2; queue++) {
		for (unsigned int slot = 0; slot < 2; slot++) {
			struct program *p = new_program();
			struct exi_record rec;

			asm_update(set(p, ISA_VECTOR, sbuf(0, ROW)), 0, 1);
			asm_wait(store(p, ISA_SYNC, 0, 0, 100), 0, 1);
			store(p, ISA_SYNC, queue, slot, 100 + BYTES - 1);
			/* The second slot is the same memory or another. */
			rec = rig_once(r, p, slot ? same : slots);
			if (!queue) {
				assert_ok(rec);
				continue;
			}
			assert_found(&rec, EXI_FAULT_RACE, ISA_SYNC, 1,
				     EXI_OTHER(ISA_SYNC, 0, ISA_DMA));
			assert_int_equal(rec.slot, slot);
			assert_int_equal(rec.value, 100 + BYTES - 1);
		}
	}
	for (unsigned int apart = 0; apart < 2; apart++) {
		struct program *p = new_program();

		asm_update(set(p, ISA_VECTOR, sbuf(0, ROW)), 0, 1);
		asm_wait(store(p, ISA_SYNC, 0, 0, 0), 0, 1);
		store(p, ISA_SYNC, 1, apart, apart ? 0 : BYTES);
		assert_ok(run(r, p));
	}
}

/* Two engines that hand transfers to one queue without a semaphore between. */
static void who_feeds_a_queue_matters(void **state)
{
	struct rig *r = *state;

	for (unsigned int ordered = 0; ordered < 2; ordered++) {
		struct program *p = new_program();
		struct isa_inst *in;
		struct exi_record rec;

		asm_update(set(p, ISA_VECTOR, sbuf(0, ROW)), 0, 1);
		asm_wait(store(p, ISA_SYNC, 3, 0, 0), 0, 1);
		if (ordered)
			asm_update(asm_inst(p, ISA_SYNC, ISA_NOP), 1, 1);
		in = store(p, ISA_GPSIMD, 3, 0, 0);
		asm_wait(in, 0, 1);
		if (ordered)
			asm_wait(in, 1, 1);
		rec = run(r, p);
		assert_int_equal(rec.status, ordered ? EXI_OK : EXI_FAULT_RACE);
	}
}

/* A writer must wait for every reader, not for the last. */
static void all_readers_count(void **state)
{
	struct rig *r = *state;

	for (unsigned int missing = 0; missing < 3; missing++) {
		struct program *p = new_program();
		struct isa_inst *in;
		struct exi_record rec;

		in = set(p, ISA_VECTOR, sbuf(0, ROW));
		asm_update(in, 0, 1);
		in = copy(p, ISA_SCALAR, sbuf(BYTES, ROW), sbuf(0, ROW));
		asm_wait(in, 0, 1);
		asm_update(in, 1, 1);
		in = copy(p, ISA_GPSIMD, sbuf(2 * BYTES, ROW), sbuf(0, ROW));
		asm_wait(in, 0, 1);
		asm_update(in, 2, 1);
		in = set(p, ISA_VECTOR, sbuf(0, ROW));
		if (missing != 1)
			asm_wait(in, 1, 1);
		if (missing != 2)
			asm_wait(in, 2, 1);
		rec = run(r, p);
		if (!missing)
			assert_ok(rec);
		else
			assert_int_equal(rec.status, EXI_FAULT_RACE);
	}
}

/* Neighbours are not touched: single bytes, columns, partitions. */
static void only_shared_bytes_race(void **state)
{
	struct rig *r = *state;
	struct program *p = new_program();
	struct isa_tile odd = asm_row(ISA_SPACE_SBUF, ISA_UINT8, 0, 128, 1, 64);
	struct isa_tile even = odd;

	even.offset = 0;
	odd.step[3] = even.step[3] = 2;
	set(p, ISA_VECTOR, odd);
	set(p, ISA_SCALAR, even);
	set(p, ISA_VECTOR, asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 32, 256, 64));
	set(p, ISA_SCALAR, asm_row(ISA_SPACE_SBUF, ISA_FP32, 32, 32, 256, 64));
	assert_ok(run(r, p));

	p = new_program();
	odd.offset = 63;
	odd.step[3] = 1;
	set(p, ISA_VECTOR, odd);
	set(p, ISA_SCALAR, even);
	assert_int_equal(run(r, p).status, EXI_FAULT_RACE);
}

/* --- what was not written ---------------------------------------------------------------------- */

static struct program *reads_psum(void)
{
	struct program *p = new_program();

	copy(p, ISA_VECTOR, sbuf(0, 16), psum(0, 16));
	return p;
}

static struct program *reads_sbuf(uint32_t n)
{
	struct program *p = new_program();

	copy(p, ISA_VECTOR, psum(0, n), sbuf(BYTES, n));
	return p;
}

static void reads_of_nothing(void **state)
{
	struct rig *r = *state;
	struct exi_record rec = run(r, reads_sbuf(16));
	uint8_t bytes[8] = { 0 };
	struct program *p;

	assert_found(&rec, EXI_FAULT_UNINITIALISED, ISA_VECTOR, 0, EXI_OTHER_NONE);
	assert_int_equal(rec.value, EXI_PLACE(ISA_SPACE_SBUF, 0, BYTES));
	assert_logged(r, "vector engine, instruction 0 (copy) reads SBUF, partition 0, byte 4096, "
			 "which nothing has written");
	/* It ran all the same, so PSUM has been written since. */
	assert_ok(run(r, reads_psum()));

	/* In the same launch, in an earlier one, and by the host. */
	p = new_program();
	set(p, ISA_VECTOR, sbuf(BYTES, 16));
	copy(p, ISA_VECTOR, psum(0, 16), sbuf(BYTES, 16));
	assert_ok(run(r, p));
	assert_ok(run(r, reads_sbuf(16)));
	rec = run(r, reads_sbuf(18));
	assert_int_equal(rec.status, EXI_FAULT_UNINITIALISED);
	assert_int_equal(rec.value, EXI_PLACE(ISA_SPACE_SBUF, 0, BYTES + 64));
	for (uint64_t part = 0; part < 128; part++)
		assert_int_equal(nm_core_sbuf_write(r->core, part * NM_SBUF_VIEW_PITCH + BYTES + 64,
						    bytes, sizeof(bytes)),
				 0);
	assert_ok(run(r, reads_sbuf(18)));
	assert_int_equal(r->findings[1], 2);
}

/* Another owner's bytes are gone. */
static void scrubbed_is_not_written(void **state)
{
	struct rig *r = *state;
	struct program *p = new_program();

	set(p, ISA_VECTOR, psum(0, 16));
	assert_ok(run(r, p));
	assert_ok(run(r, reads_psum()));
	rig_set(r, 0, EXI_Q_CONTROL, EXI_Q_RESET);
	rig_queue(r, 0, 2);
	assert_int_equal(run(r, reads_psum()).status, EXI_FAULT_UNINITIALISED);
}

static void hbm_that_nothing_wrote(void **state)
{
	struct rig *r = *state;
	struct exi_record rec;
	struct program *p;

	memset(r->written + slots[1].base + 3 * BYTES + 16, 0, 8);
	p = new_program();
	load(p, 0, 0, 0);
	load(p, 0, BYTES, 1);
	rec = run(r, p);
	assert_found(&rec, EXI_FAULT_UNINITIALISED, ISA_SYNC, 1, EXI_OTHER_NONE);
	assert_int_equal(rec.slot, 1);
	assert_int_equal(rec.value, 3 * BYTES + 16);
	assert_int_equal(r->findings[2], 1);

	/* Written by a launch, then read by another. */
	p = new_program();
	asm_update(set(p, ISA_VECTOR, sbuf(0, ROW)), 0, 1);
	asm_wait(store(p, ISA_SYNC, 0, 1, 3 * BYTES), 0, 1);
	assert_ok(run(r, p));
	p = new_program();
	load(p, 0, BYTES, 1);
	assert_ok(run(r, p));
}

/* --- semaphores -------------------------------------------------------------------------------- */

static void deadlocks_name_both(void **state)
{
	struct rig *r = *state;
	struct program *p = new_program();
	struct exi_record rec;

	asm_inst(p, ISA_SCALAR, ISA_NOP);
	asm_wait(asm_inst(p, ISA_SCALAR, ISA_NOP), 4, 1);
	asm_update(asm_inst(p, ISA_SCALAR, ISA_NOP), 5, 1);
	asm_wait(asm_inst(p, ISA_VECTOR, ISA_NOP), 5, 1);
	asm_update(asm_inst(p, ISA_VECTOR, ISA_NOP), 4, 1);
	rec = run(r, p);
	assert_int_equal(rec.status, EXI_FAULT_DEADLOCK);
	assert_logged(r, "deadlock: vector engine, instruction 0 (nop) waits for semaphore 5 to "
			 "reach 1, raised by scalar engine, instruction 2 (nop)");
	assert_logged(r, "deadlock: scalar engine, instruction 1 (nop) waits for semaphore 4 to "
			 "reach 1, raised by vector engine, instruction 1 (nop)");
	assert_int_equal(r->findings[3], 2);

	p = new_program();
	asm_wait(asm_inst(p, ISA_SCALAR, ISA_NOP), 4, 1);
	asm_update(asm_inst(p, ISA_SCALAR, ISA_NOP), 5, 1);
	asm_update(asm_inst(p, ISA_VECTOR, ISA_NOP), 4, 1);
	asm_wait(asm_inst(p, ISA_VECTOR, ISA_NOP), 5, 1);
	assert_ok(run(r, p));
	assert_int_equal(r->findings[3], 2);
}

/* n NOPs that raise semaphore 9 by as much as one can. */
static void *raising(uint32_t n, size_t *size)
{
	struct nprog_header h = {
		.magic = NPROG_MAGIC,
		.version_major = NPROG_VERSION_MAJOR,
		.header_bytes = sizeof(h),
		.arch = 3,
		.stream[ISA_SYNC] = { .offset = sizeof(h), .count = n + 1 },
		.name = "raising",
	};
	struct isa_inst *inst;
	uint8_t *image;

	h.const_offset = h.image_bytes =
		(uint32_t)asm_align(sizeof(h) + (n + 1) * sizeof(struct isa_inst));
	h.slot_offset = sizeof(h);
	*size = h.image_bytes;
	image = calloc(1, *size);
	memcpy(image, &h, sizeof(h));
	inst = (struct isa_inst *)(image + sizeof(h));
	for (uint32_t i = 0; i < n; i++) {
		inst[i].opcode = ISA_NOP;
		asm_update(&inst[i], 9, UINT16_MAX);
		asm_update(&inst[i], 9, UINT16_MAX);
	}
	inst[n].opcode = ISA_HALT;
	asm_seal(image, *size);
	return image;
}

static void semaphores_overflow(void **state)
{
	const uint32_t most = ISA_SEM_MAX / (2 * UINT16_MAX);
	struct rig *r = *state;
	struct exi_record rec;
	size_t size;
	void *image;

	image = raising(most, &size);
	assert_ok(rig_run(r, 0, rig_load(r, image, size), NULL, 0));
	assert_int_equal(r->findings[3], 0);
	free(image);
	image = raising(most + 1, &size);
	rec = rig_run(r, 0, rig_load(r, image, size), NULL, 0);
	free(image);
	assert_int_equal(rec.status, EXI_FAULT_SEM_OVERFLOW);
	assert_int_equal(rec.pc, most);
	assert_int_equal(r->findings[3], 1);
	assert_logged(r, "check: program 'raising': sync engine, instruction 16384 (nop) raises "
			 "semaphore 9 above 2147483647, after sync engine, instruction 16383 "
			 "(nop)");
}

/* Two engines raise a semaphore; the third waits for one of them, or for both, twice. */
static struct program *joint(unsigned int wanted)
{
	struct program *p = new_program();
	struct isa_inst *in;

	for (uint32_t turn = 0; turn < 2; turn++) {
		for (unsigned int e = ISA_VECTOR; e <= ISA_SCALAR; e++) {
			in = set(p, e, sbuf((e - ISA_VECTOR) * BYTES, ROW));
			asm_update(in, 0, 1);
			if (turn)
				asm_wait(in, 1, turn);
		}
		in = copy(p, ISA_GPSIMD, sbuf(2 * BYTES, 2 * ROW), sbuf(0, 2 * ROW));
		asm_wait(in, 0, 2 * turn + wanted);
		asm_update(in, 1, 1);
	}
	return p;
}

static void waits_for_either_say_nothing(void **state)
{
	struct rig *r = *state;
	struct exi_record rec = run(r, joint(1));

	assert_int_equal(rec.status, EXI_FAULT_RACE);
	assert_ok(run(r, joint(2)));
}

/* The wait holds by the update that was meant, until another comes that is not ordered with it. */
static void ambiguous_waits(void **state)
{
	struct rig *r = *state;

	for (unsigned int sem = 0; sem < 2; sem++) {
		struct program *p = new_program();
		struct isa_inst *in;
		struct exi_record rec;

		asm_update(set(p, ISA_VECTOR, sbuf(0, ROW)), 0, 1);
		in = copy(p, ISA_SCALAR, sbuf(BYTES, ROW), sbuf(0, ROW));
		asm_wait(in, 0, 1);
		asm_update(asm_inst(p, ISA_GPSIMD, ISA_NOP), sem, 1);
		rec = run(r, p);
		if (sem) {
			assert_ok(rec);
			continue;
		}
		assert_found(&rec, EXI_FAULT_SEM_AMBIGUOUS, ISA_SCALAR, 0,
			     EXI_OTHER(ISA_GPSIMD, 0, ISA_NOP));
		assert_int_equal(rec.value, 0);
	}
}

/* --- sums in PSUM -------------------------------------------------------------------------------- */

static struct isa_inst *matmul(struct program *p, struct isa_tile dst, bool add)
{
	struct isa_inst *in = asm_inst(p, ISA_TENSOR, ISA_MATMUL);
	unsigned int n = dst.count[3];

	in->compute.dst = dst;
	in->compute.src0 = sbuf(BYTES, n);
	in->flags = add ? ISA_F_ACCUM : 0;
	return in;
}

/* Operands are there, and the stationary one is loaded. */
static struct program *sum_program(void)
{
	struct program *p = new_program();
	struct isa_inst *in;

	asm_update(set(p, ISA_VECTOR, sbuf(0, 2 * ROW)), 0, 1);
	in = asm_inst(p, ISA_TENSOR, ISA_LOAD_STATIONARY);
	in->compute.src0 = sbuf(0, 128);
	asm_wait(in, 0, 1);
	return p;
}

static void sums_need_a_start(void **state)
{
	struct rig *r = *state;
	struct program *p = sum_program();
	struct exi_record rec;

	matmul(p, psum(0, 64), true);
	rec = run(r, p);
	assert_found(&rec, EXI_FAULT_PSUM_NO_START, ISA_TENSOR, 1, EXI_OTHER_NONE);
	assert_int_equal(rec.value, EXI_PLACE(ISA_SPACE_PSUM, 0, 0));

	/* In an earlier launch does not count. */
	p = sum_program();
	matmul(p, psum(0, 64), false);
	matmul(p, psum(0, 64), true);
	matmul(p, psum(0, 32), true);
	assert_ok(run(r, p));
	p = sum_program();
	matmul(p, psum(0, 64), true);
	assert_int_equal(run(r, p).status, EXI_FAULT_PSUM_NO_START);

	/* A bias that another engine put there is a start; 2-byte elements are not. */
	for (unsigned int half = 0; half < 2; half++) {
		struct isa_tile bias = psum(0, 64);
		struct isa_inst *in;

		if (half)
			bias = asm_row(ISA_SPACE_PSUM, ISA_BF16, 0, 128, 0, 128);
		p = sum_program();
		asm_update(set(p, ISA_SCALAR, bias), 1, 1);
		in = matmul(p, psum(0, 64), true);
		asm_wait(in, 1, 1);
		rec = run(r, p);
		assert_int_equal(rec.status, half ? EXI_FAULT_PSUM_MIXED : EXI_OK);
	}
}

static void sums_are_read_at_their_end(void **state)
{
	struct rig *r = *state;

	for (unsigned int early = 0; early < 2; early++) {
		struct program *p = sum_program();
		struct isa_inst *in;
		struct exi_record rec;

		asm_update(matmul(p, psum(0, 64), false), 1, 1);
		in = copy(p, ISA_SCALAR, sbuf(4 * BYTES, 64), psum(0, 64));
		asm_wait(in, 1, 1);
		asm_update(in, 2, 1);
		in = matmul(p, psum(0, 64), early);
		asm_wait(in, 2, 1);
		rec = run(r, p);
		if (early)
			assert_found(&rec, EXI_FAULT_PSUM_EARLY_READ, ISA_TENSOR, 2,
				     EXI_OTHER(ISA_SCALAR, 0, ISA_COPY));
		else
			assert_ok(rec);
	}
}

static void sums_do_not_mix(void **state)
{
	struct rig *r = *state;

	for (unsigned int mixed = 0; mixed < 2; mixed++) {
		struct program *p = sum_program();
		struct exi_record rec;

		matmul(p, psum(0, 64), false);
		matmul(p, psum(256, 64), false);
		matmul(p, mixed ? psum(128, 64) : psum(0, 64), true);
		rec = run(r, p);
		if (!mixed) {
			assert_ok(rec);
			continue;
		}
		assert_found(&rec, EXI_FAULT_PSUM_MIXED, ISA_TENSOR, 3,
			     EXI_OTHER(ISA_TENSOR, 2, ISA_MATMUL));
		assert_int_equal(rec.value, EXI_PLACE(ISA_SPACE_PSUM, 0, 256));
	}
}

/* Of double rows half of the columns are results. */
static void double_rows_have_half_the_results(void **state)
{
	struct rig *r = *state;

	for (unsigned int part0 = 0; part0 < 96; part0 += 32) {
		struct program *p = new_program();
		struct isa_tile rows = asm_row(ISA_SPACE_SBUF, ISA_FP8_E4, 0, 128, 0, 128);
		struct isa_inst *in;
		struct exi_record rec;

		asm_update(set(p, ISA_VECTOR, sbuf(0, ROW)), 0, 1);
		in = asm_inst(p, ISA_TENSOR, ISA_LOAD_STATIONARY);
		in->compute.src0 = rows;
		in->compute.mode = ISA_MODE_DOUBLE_ROW;
		asm_wait(in, 0, 1);
		in = matmul(p, asm_row(ISA_SPACE_PSUM, ISA_FP32, 0, 64, 0, 64), false);
		in->compute.src0 = rows;
		in->compute.mode = ISA_MODE_DOUBLE_ROW;
		asm_update(in, 1, 1);
		in = copy(p, ISA_SCALAR, asm_row(ISA_SPACE_SBUF, ISA_FP32, part0, 32, BYTES, 64),
			  asm_row(ISA_SPACE_PSUM, ISA_FP32, part0, 32, 0, 64));
		asm_wait(in, 1, 1);
		rec = run(r, p);
		if (part0 < 64)
			assert_ok(rec);
		else
			assert_found(&rec, EXI_FAULT_UNINITIALISED, ISA_SCALAR, 0, EXI_OTHER_NONE);
	}
}

/* --- the mode ------------------------------------------------------------------------------------ */

/* Same results and times; a race changes neither. */
static void results_do_not_change(void **state)
{
	struct rig *plain = rig_create(), *r = *state;
	struct exi_record want, got;

	rig_queue(plain, 0, 1);
	for (unsigned int i = 0; i < slots[0].size; i++)
		r->hbm[i] = plain->hbm[i] = (uint8_t)(i * 13 + i / 256);
	for (unsigned int racy = 0; racy < 2; racy++) {
		for (unsigned int turn = 0; turn < 2; turn++) {
			struct program *p = new_program();
			struct isa_inst *in = load(p, 0, 0, 0);

			asm_update(in, 0, 1);
			in = store(p, ISA_SYNC, 1, 1, 0);
			if (!racy)
				asm_wait(in, 0, 1);
			if (turn)
				got = run(r, p);
			else
				want = run(plain, p);
		}
		assert_ok(want);
		assert_int_equal(got.status, racy ? EXI_FAULT_RACE : EXI_OK);
		assert_int_equal(got.end_ns - got.start_ns, want.end_ns - want.start_ns);
		assert_memory_equal(r->hbm + slots[1].base, plain->hbm + slots[1].base, BYTES);
	}
	rig_destroy(plain);
}

/* One launch after the other: counted each time, told once. */
static void warnings_let_launches_succeed(void **state)
{
	struct rig *r = rig_create_checking(NM_CHECK_RACE | NM_CHECK_WARN);
	struct program *p = two_engines(false);
	size_t size;
	void *image;
	uint32_t n = 0;

	(void)state;
	rig_queue(r, 0, 1);
	image = asm_finish(p, &size);
	for (struct exi_launch l = rig_load(r, image, size); n < 3;) {
		n = rig_put(r, 0, l, slots, 2) + 1;
		rig_doorbell(r, 0);
		assert_ok(rig_wait(r, 0, n - 1));
	}
	assert_int_equal(r->findings[0], 3);
	assert_int_equal(r->logged, 1);
	/* Not asked for. */
	free(p);
	assert_ok(run(r, reads_sbuf(4)));
	free(image);
	rig_destroy(r);
}

static void words(void **state)
{
	uint32_t check;

	(void)state;
	assert_int_equal(nm_check_parse("race,psum", &check), 0);
	assert_int_equal(check, NM_CHECK_RACE | NM_CHECK_PSUM);
	assert_int_equal(nm_check_parse("1", &check), 0);
	assert_int_equal(check, NM_CHECK_ALL);
	assert_int_equal(nm_check_parse("warn", &check), 0);
	assert_int_equal(check, NM_CHECK_ALL | NM_CHECK_WARN);
	assert_int_equal(nm_check_parse("0", &check), 0);
	assert_int_equal(check, 0);
	assert_int_equal(nm_check_parse("race,", &check), -EINVAL);
	assert_int_equal(nm_check_parse("rac", &check), -EINVAL);
	assert_int_equal(nm_check_parse("races", &check), -EINVAL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(engines_race_on_sbuf),
		TEST(engine_and_transfer_race),
		TEST(transfers_race_on_hbm),
		TEST(who_feeds_a_queue_matters),
		TEST(all_readers_count),
		TEST(only_shared_bytes_race),
		TEST(reads_of_nothing),
		TEST(scrubbed_is_not_written),
		TEST(hbm_that_nothing_wrote),
		TEST(deadlocks_name_both),
		TEST(semaphores_overflow),
		TEST(waits_for_either_say_nothing),
		TEST(ambiguous_waits),
		TEST(sums_need_a_start),
		TEST(sums_are_read_at_their_end),
		TEST(sums_do_not_mix),
		TEST(double_rows_have_half_the_results),
		TEST(results_do_not_change),
		TEST(warnings_let_launches_succeed),
		cmocka_unit_test(words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
