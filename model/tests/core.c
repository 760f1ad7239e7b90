// SPDX-License-Identifier: Apache-2.0
/* Queues, records, semaphores, arbitration and isolation of a core. */
#include "launches.h"

/* --- queues ------------------------------------------------------------------------------ */

static void test_registers(void **state)
{
	struct rig *r = *state;

	assert_int_equal(rig_reg(r, 5, EXI_Q_STATUS), EXI_Q_DISABLED);
	assert_int_equal(rig_reg(r, 5, EXI_Q_CONTROL), 0);
	assert_int_equal(rig_reg(r, 5, EXI_Q_RING_LO), 0);
	rig_set(r, 5, EXI_Q_RING_HI, 0x12345678);
	assert_int_equal(rig_reg(r, 5, EXI_Q_RING_HI), 0x12345678);
	assert_int_equal(rig_reg(r, 6, EXI_Q_RING_HI), 0);
	rig_set(r, 5, EXI_Q_PRIORITY, 0xff);
	assert_int_equal(rig_reg(r, 5, EXI_Q_PRIORITY), 3);
	assert_int_equal(rig_reg(r, 5, EXI_Q_DOORBELL), UINT32_MAX);
	assert_int_equal(rig_reg(r, 5, 0x40), UINT32_MAX);
	assert_int_equal(rig_reg(r, 5, 0x0a), UINT32_MAX);
	assert_int_equal(nm_core_reg_read(r->core, EXI_QUEUE_CORE_STRIDE), UINT32_MAX);
	rig_set(r, 5, 0x40, 1);
	rig_set(r, 5, EXI_Q_HEAD, 9);
	assert_int_equal(rig_reg(r, 5, EXI_Q_HEAD), 0);
	rig_set(r, 5, EXI_Q_DOORBELL, 1); /* disabled */
	assert_int_equal(rig_reg(r, 5, EXI_Q_STATUS), EXI_Q_DISABLED);
	assert_int_equal(rig_reg(r, 0, EXI_Q_STATUS), EXI_Q_IDLE);
	rig_set(r, 5, EXI_Q_CONTROL, EXI_Q_RESET);
	assert_int_equal(rig_reg(r, 5, EXI_Q_RING_HI), 0);
}

/* Three laps of the ring: phases, sequence numbers, HEAD, one interrupt for each that asked. */
static void test_laps(void **state)
{
	struct rig *r = *state;
	struct exi_launch l = load_empty(r);
	uint64_t end = 0;

	for (unsigned int i = 0; i < 3u << RIG_LOG2; i++) {
		struct exi_record rec;

		l.flags = i % 2 ? 0 : EXI_LAUNCH_IRQ;
		rig_put(r, 0, l, NULL, 0);
		if (i % 2 == 0)
			continue;
		rig_doorbell(r, 0);
		wait_status(r, 0, EXI_Q_IDLE);
		for (unsigned int k = i - 1; k <= i; k++) {
			rec = rig_wait(r, 0, k);
			assert_int_equal(rec.status, EXI_OK);
			assert_int_equal(rec.seqno, 1000 + k);
			assert_int_equal(rec.engine, 0xff);
			assert_int_equal(rec.slot, 0xffff);
			assert_int_equal(rec.insts[ISA_SYNC], 2);
			assert_true(rec.start_ns >= end && rec.end_ns > rec.start_ns);
			end = rec.end_ns;
		}
	}
	assert_int_equal(rig_reg(r, 0, EXI_Q_HEAD), 3 << RIG_LOG2);
	assert_int_equal(nm_core_time_ns(r->core), end);
	wait_status(r, 0, EXI_Q_IDLE);
	pthread_mutex_lock(&r->lock);
	assert_int_equal(r->irqs[0], 3 << (RIG_LOG2 - 1));
	pthread_mutex_unlock(&r->lock);
	assert_int_equal(r->errors, 0);
}

static void test_bad_setup(void **state)
{
	struct rig *r = *state;
	struct exi_record rec;

	/* The completion ring works: entries are refused by record. */
	rig_queue(r, 1, 1);
	rig_set(r, 1, EXI_Q_CONTROL, EXI_Q_RESET);
	rig_queue(r, 1, 1);
	rig_set(r, 1, EXI_Q_CONTROL, 0);
	rig_set(r, 1, EXI_Q_RING_LO, (uint32_t)rig_ring(1) + 4);
	rig_set(r, 1, EXI_Q_CONTROL, EXI_Q_ENABLE);
	rec = rig_run(r, 1, load_empty(r), NULL, 0);
	assert_int_equal(rec.status, EXI_FAULT_BAD_QUEUE);
	assert_int_equal(rec.value, EXI_Q_RING_LO);
	/* It does not: nothing is written, but nothing hangs either. */
	for (unsigned int i = 0; i < 3; i++) {
		static const uint32_t regs[] = { EXI_Q_RING_LOG2, EXI_Q_RING_LOG2, EXI_Q_CQ_LO };
		static const uint32_t values[] = { 1, 11, 64 };

		rig_set(r, 2, EXI_Q_CONTROL, EXI_Q_RESET);
		rig_queue(r, 2, 1);
		rig_set(r, 2, EXI_Q_CONTROL, 0);
		rig_set(r, 2, regs[i], values[i]);
		rig_set(r, 2, EXI_Q_CONTROL, EXI_Q_ENABLE);
		rig_put(r, 2, load_empty(r), NULL, 0);
		rig_doorbell(r, 2);
		wait_status(r, 2, EXI_Q_HALTED);
		assert_int_equal(rig_reg(r, 2, EXI_Q_HEAD), 1);
	}
}

static void test_doorbell_overrun(void **state)
{
	struct rig *r = *state;
	struct exi_record rec;

	rig_put(r, 0, load_empty(r), NULL, 0);
	rig_set(r, 0, EXI_Q_DOORBELL, (1u << RIG_LOG2) + 1);
	rec = rig_wait(r, 0, 0);
	assert_int_equal(rec.status, EXI_FAULT_BAD_QUEUE);
	assert_int_equal(rec.value, (1u << RIG_LOG2) + 1);
	assert_int_equal(rec.limit, 1u << RIG_LOG2);
	wait_status(r, 0, EXI_Q_HALTED);
}

static void test_bad_entries(void **state)
{
	struct rig *r = *state;
	struct {
		struct exi_launch l;
		uint16_t status;
		uint64_t value;
	} cases[10];
	unsigned int n = 0;

	for (unsigned int i = 0; i < 10; i++)
		cases[i].l = load_empty(r);
#define CASE(member, v, st, val) \
	(cases[n].l.member = (v), cases[n].status = (st), cases[n].value = (val), n++)
	CASE(pad[23], 1, EXI_FAULT_BAD_QUEUE, 63);
	CASE(flags, EXI_LAUNCH_IRQ | 4, EXI_FAULT_BAD_QUEUE, offsetof(struct exi_launch, flags));
	CASE(program_addr, cases[n].l.program_addr + 8, EXI_FAULT_BAD_QUEUE, 0);
	CASE(slots_addr, V3_DEV_HOST + 32, EXI_FAULT_BAD_QUEUE,
	     offsetof(struct exi_launch, slots_addr));
	CASE(program_bytes, 64, EXI_FAULT_BAD_QUEUE, offsetof(struct exi_launch, program_bytes));
	CASE(n_slots, EXI_SLOTS_MAX + 1, EXI_FAULT_BAD_QUEUE, offsetof(struct exi_launch, n_slots));
	CASE(program_addr, RIG_HBM, EXI_FAULT_BUS, RIG_HBM);
	CASE(program_bytes, RIG_HBM, EXI_FAULT_BUS, cases[n].l.program_addr);
	CASE(n_slots, 2, EXI_FAULT_SLOT_INDEX, 2);
	CASE(program_bytes, cases[n].l.program_bytes + 64, EXI_FAULT_BAD_PROGRAM,
	     offsetof(struct nprog_header, image_bytes));
#undef CASE
	for (unsigned int i = 0; i < n; i++) {
		struct exi_record rec = rig_run(r, 0, cases[i].l, NULL, 0);

		if (rec.status != cases[i].status || rec.value != cases[i].value)
			fail_msg("case %u: status %u, value 0x%llx", i, rec.status,
				 (unsigned long long)rec.value);
		assert_int_equal(rec.engine, 0xff);
		assert_int_equal(r->errors, i + 1);
		assert_int_equal(r->error_status, cases[i].status);
		assert_int_equal(rig_reg(r, 0, EXI_Q_STATUS), EXI_Q_HALTED);
		/* What is rung later is not run. */
		rec = rig_run(r, 0, load_empty(r), NULL, 0);
		assert_int_equal(rec.status, EXI_FAULT_ABORTED);
		assert_int_equal(rec.insts[ISA_SYNC], 0);
		rig_set(r, 0, EXI_Q_CONTROL, EXI_Q_RESET);
		rig_queue(r, 0, 1);
	}
	assert_int_equal(rig_run(r, 0, load_empty(r), NULL, 0).status, EXI_OK);
}

static void test_bus(void **state)
{
	struct rig *r = *state;
	struct exi_launch l;
	struct program *p;

	/* The slot table, then a slot. */
	p = new_program();
	asm_slot(p, NPROG_SLOT_INOUT, 64);
	l = load(r, p);
	l.slots_addr = V3_DEV_HOST + RIG_HOST;
	assert_int_equal(rig_run(r, 0, l, &rw_slot, 1).status, EXI_FAULT_BUS);
	rig_set(r, 0, EXI_Q_CONTROL, EXI_Q_RESET);
	rig_queue(r, 0, 1);
	l.slots_addr = 0;
	for (unsigned int i = 0; i < 2; i++) {
		struct exi_slot slot = rw_slot;
		struct exi_record rec;

		slot.base = i ? UINT64_MAX - 8 : RIG_HBM - 64;
		rec = rig_run(r, 0, l, &slot, 1);
		assert_int_equal(rec.status, EXI_FAULT_BUS);
		assert_int_equal(rec.slot, 0);
		rig_set(r, 0, EXI_Q_CONTROL, EXI_Q_RESET);
		rig_queue(r, 0, 1);
	}
	/* The ring. */
	rig_set(r, 0, EXI_Q_CONTROL, 0);
	rig_set(r, 0, EXI_Q_RING_HI, 0x7000);
	rig_set(r, 0, EXI_Q_CONTROL, EXI_Q_ENABLE);
	assert_int_equal(rig_run(r, 0, load_empty(r), NULL, 0).status, EXI_FAULT_BUS);
	/* The completion ring: nothing to be seen but HEAD. */
	rig_set(r, 0, EXI_Q_CONTROL, EXI_Q_RESET);
	rig_queue(r, 0, 1);
	rig_set(r, 0, EXI_Q_CONTROL, 0);
	rig_set(r, 0, EXI_Q_CQ_HI, 0x7000);
	rig_set(r, 0, EXI_Q_CONTROL, EXI_Q_ENABLE);
	rig_put(r, 0, load_empty(r), NULL, 0);
	rig_doorbell(r, 0);
	for (unsigned int i = 0; i < 1000 && rig_reg(r, 0, EXI_Q_HEAD) == 0; i++)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	assert_int_equal(rig_reg(r, 0, EXI_Q_HEAD), 1);
}

static void test_slots(void **state)
{
	struct rig *r = *state;
	static const struct {
		struct exi_slot slot;
		unsigned int kind;
		uint16_t status;
		uint64_t value, limit;
	} cases[] = {
		{ { 0x1000, 63, 3, 0, 0 }, NPROG_SLOT_INOUT, EXI_FAULT_SLOT_BOUNDS, 64, 63 },
		{ { 0x1000, 64, 1, 0, 0 }, NPROG_SLOT_INOUT, EXI_FAULT_SLOT_RIGHTS, 1, 3 },
		{ { 0x1000, 64, 2, 0, 0 }, NPROG_SLOT_INPUT, EXI_FAULT_SLOT_RIGHTS, 2, 1 },
		{ { 0x1000, 64, 9, 0, 0 }, NPROG_SLOT_INPUT, EXI_FAULT_SLOT_RIGHTS, 9, 1 },
		{ { 0x1000, 8, 7, 0, 0 }, NPROG_SLOT_SCALAR, EXI_FAULT_SLOT_RIGHTS, 7, 5 },
		{ { 0x1000, 8, 1, 0, 0 }, NPROG_SLOT_SCALAR, EXI_FAULT_SLOT_RIGHTS, 1, 5 },
		{ { 0x1000, 8, 5, 0, 0 }, NPROG_SLOT_INPUT, EXI_FAULT_SLOT_RIGHTS, 5, 1 },
		{ { 0x1000, 16, 5, 0, 0 }, NPROG_SLOT_SCALAR, EXI_FAULT_SLOT_BOUNDS, 16, 8 },
		{ { 0x1000, 64, 1, 1, 0 }, NPROG_SLOT_INPUT, EXI_FAULT_BAD_QUEUE, 20, 0 },
		{ { 0x1000, 64, 1, 0, 1 }, NPROG_SLOT_INPUT, EXI_FAULT_BAD_QUEUE, 20, 0 },
		{ { 0x1000, 64, 3, 0, 0 }, NPROG_SLOT_INPUT, EXI_OK, 0, 0 },
		{ { 0xffff000000000000u, 8, 5, 0, 0 }, NPROG_SLOT_SCALAR, EXI_OK, 0, 0 },
	};

	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct program *p = new_program();
		struct exi_record rec;
		struct exi_slot both[2] = { rw_slot, cases[i].slot };

		asm_slot(p, NPROG_SLOT_INOUT, 64);
		asm_slot(p, cases[i].kind, cases[i].kind == NPROG_SLOT_SCALAR ? 8 : 64);
		rec = rig_run(r, 0, load(r, p), both, 2);
		if (rec.status != cases[i].status || rec.value != cases[i].value ||
		    rec.limit != cases[i].limit || rec.slot != (rec.status ? 1 : 0xffff))
			fail_msg("case %u: status %u, slot %u, value %llu, limit %llu", i,
				 rec.status, rec.slot, (unsigned long long)rec.value,
				 (unsigned long long)rec.limit);
		rig_set(r, 0, EXI_Q_CONTROL, EXI_Q_RESET);
		rig_queue(r, 0, 1);
	}
}

/* --- semaphores and time ------------------------------------------------------------------- */

/* Load, scalar adds, vector doubles, store: four engines that meet through semaphores. */
static void test_pipeline(void **state)
{
	struct rig *r = *state;
	struct program *p = new_program();
	struct isa_tile row = asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 4, 0, 256);
	float *in = (float *)(void *)(r->hbm + rw_slot.base), *out = in + 1024;
	struct isa_inst *i;
	struct exi_record rec;

	for (unsigned int k = 0; k < 1024; k++)
		in[k] = (float)k;
	asm_slot(p, NPROG_SLOT_INOUT, 0x10000);
	asm_update(asm_dma(p, ISA_SYNC, 0, 4, asm_chip(ISA_SPACE_SBUF, 0, 4, 0, 256, 4),
			   asm_flat(0, 0, 1024, 4)),
		   10, 16);
	i = asm_dma(p, ISA_GPSIMD, 1, 4, asm_flat(0, 4096, 1024, 4),
		    asm_chip(ISA_SPACE_SBUF, 0, 4, 0, 256, 4));
	asm_wait(i, 12, 1);
	asm_update(i, 13, 1);
	i = asm_inst(p, ISA_VECTOR, ISA_TENSOR_SCALAR);
	i->compute.dst = i->compute.src0 = row;
	i->compute.op0 = ISA_MULT;
	i->compute.imm0 = 0x40000000; /* 2 */
	asm_wait(i, 11, 1);
	asm_wait(i, 10, 16);
	asm_update(i, 12, 1);
	i = asm_inst(p, ISA_SCALAR, ISA_TENSOR_SCALAR);
	i->compute.dst = i->compute.src0 = row;
	i->compute.op0 = ISA_ADD;
	i->compute.imm0 = 0x3f800000; /* 1 */
	asm_wait(i, 10, 16);
	asm_update(i, 11, 1);
	asm_wait(asm_inst(p, ISA_SYNC, ISA_HALT), 13, 1);
	rec = rig_run(r, 0, load(r, p), &rw_slot, 1);
	assert_int_equal(rec.status, EXI_OK);
	for (unsigned int k = 0; k < 1024; k++)
		assert_true(out[k] == 2 * (in[k] + 1));
	assert_int_equal(rec.dma_bytes, 8192);
	for (unsigned int e = ISA_VECTOR; e <= ISA_SYNC; e++)
		assert_int_equal(rec.insts[e], 2);
	assert_int_equal(rec.insts[ISA_TENSOR], 0);
	/* 256 elements at 0.96 GHz, and access; two transfers of 2 us each, one after the other. */
	assert_true(rec.busy_ns[ISA_VECTOR] >= 256 / 0.96 && rec.busy_ns[ISA_VECTOR] < 400);
	assert_true(rec.end_ns - rec.start_ns >= 2 * 2000 && rec.end_ns - rec.start_ns < 20000);
}

/* A transfer takes effect when it is complete: who does not wait for it sees what was there. */
static void test_transfer_takes_time(void **state)
{
	struct rig *r = *state;
	struct program *p = new_program();
	uint32_t *mem = (uint32_t *)(void *)(r->hbm + rw_slot.base);
	struct isa_tile at0 = asm_row(ISA_SPACE_SBUF, ISA_UINT32, 0, 1, 0, 1), at64 = at0;
	struct isa_inst *i;

	at64.offset = 64;
	mem[0] = 77;
	asm_slot(p, NPROG_SLOT_INOUT, 0x10000);
	i = asm_inst(p, ISA_VECTOR, ISA_MEMSET);
	i->compute.dst = at0;
	i->compute.compute_type = ISA_CT_BITS;
	i->compute.imm0 = 55;
	i = asm_dma(p, ISA_VECTOR, 0, 4, asm_chip(ISA_SPACE_SBUF, 0, 1, 0, 1, 4),
		    asm_flat(0, 0, 1, 4));
	asm_update(i, 1, 1);
	i = asm_inst(p, ISA_VECTOR, ISA_COPY);
	i->compute.dst = at64;
	i->compute.src0 = at0;
	i->compute.compute_type = ISA_CT_BITS;
	for (unsigned int k = 0; k < 2; k++) {
		i = asm_dma(p, ISA_VECTOR, 0, 4, asm_flat(0, 64 + k * 64, 1, 4),
			    asm_chip(ISA_SPACE_SBUF, 0, 1, k * 64, 1, 4));
		asm_wait(i, 1, 1);
	}
	assert_int_equal(rig_run(r, 0, load(r, p), &rw_slot, 1).status, EXI_OK);
	assert_int_equal(mem[16], 77);
	assert_int_equal(mem[32], 55);
}

static void test_deadlock(void **state)
{
	struct rig *r = *state;
	struct program *p = new_program();
	struct exi_record rec;
	struct isa_inst *i;

	asm_inst(p, ISA_VECTOR, ISA_NOP);
	i = asm_inst(p, ISA_VECTOR, ISA_NOP);
	asm_wait(i, 3, 0);
	asm_wait(i, 200, 5);
	asm_update(asm_inst(p, ISA_SYNC, ISA_NOP), 200, 4);
	rec = rig_run(r, 0, load(r, p), NULL, 0);
	assert_int_equal(rec.status, EXI_FAULT_DEADLOCK);
	assert_int_equal(rec.engine, ISA_VECTOR);
	assert_int_equal(rec.pc, 1);
	assert_int_equal(rec.opcode, ISA_NOP);
	assert_int_equal(rec.value, 200);
	assert_int_equal(rec.limit, 5);
	assert_int_equal(rec.insts[ISA_VECTOR], 1);
	assert_int_equal(r->errors, 1);
	assert_int_equal(nm_core_sem_read(r->core, 200), 4);
}

static void test_semaphore_overflow(void **state)
{
	struct rig *r = *state;
	struct program *p = new_program();
	struct exi_record rec;

	r->features = 0;
	asm_update(asm_inst(p, ISA_VECTOR, ISA_NOP), 6, 1);
	asm_wait(asm_inst(p, ISA_GPSIMD, ISA_NOP), 9, 1);
	asm_update(asm_inst(p, ISA_GPSIMD, ISA_NOP), 5, 0xffff);
	rig_put(r, 0, load(r, p), NULL, 0);
	rig_doorbell(r, 0);
	wait_running(r);
	nm_core_sem_write(r->core, 5, NM_SEM_SET, UINT32_MAX);
	assert_int_equal(nm_core_sem_read(r->core, 5), ISA_SEM_MAX);
	nm_core_sem_write(r->core, 5, NM_SEM_DEC, 0x8000);
	nm_core_sem_write(r->core, 9, NM_SEM_INC, 1);
	rec = rig_wait(r, 0, 0);
	assert_int_equal(rec.status, EXI_FAULT_SEM_OVERFLOW);
	assert_int_equal(rec.engine, ISA_GPSIMD);
	assert_int_equal(rec.pc, 1);
	assert_int_equal(rec.value, 5);
	assert_int_equal(rec.limit, ISA_SEM_MAX);
}

/* --- arbitration and isolation --------------------------------------------------------------- */

/* Order in which entries of queues 1 to 4 ran, by their start times. */
static void test_priority(void **state)
{
	struct rig *r = *state;
	uint64_t start[5][3];

	for (unsigned int q = 1; q <= 4; q++) {
		rig_queue(r, q, 1);
		rig_set(r, q, EXI_Q_PRIORITY, q == 4 ? 3 : q == 1 ? 0 : 1);
	}
	hang(r);
	for (unsigned int q = 1; q <= 4; q++) {
		for (unsigned int i = 0; i < 3; i++)
			rig_put(r, q, load_empty(r), NULL, 0);
		rig_doorbell(r, q);
	}
	nm_core_sem_write(r->core, 7, NM_SEM_INC, 3);
	for (unsigned int q = 1; q <= 4; q++)
		for (unsigned int i = 0; i < 3; i++)
			start[q][i] = rig_wait(r, q, i).start_ns;
	/* All of 4, then 2 and 3 by turns, then 1. */
	assert_true(start[4][2] < start[2][0]);
	for (unsigned int i = 0; i < 3; i++) {
		assert_true(start[2][i] < start[3][i]);
		assert_true(i == 2 || start[3][i] < start[2][i + 1]);
	}
	assert_true(start[3][2] < start[1][0]);
}

/* Writes a word to SBUF and PSUM, or copies them out. */
static struct exi_launch load_touch(struct rig *r, bool write)
{
	struct program *p = new_program();

	asm_slot(p, NPROG_SLOT_INOUT, 0x10000);
	for (unsigned int space = ISA_SPACE_SBUF; space <= ISA_SPACE_PSUM; space++) {
		struct isa_dma_side chip = asm_chip(space, 77, 1, 4000, 1, 4);
		struct isa_dma_side mem = asm_flat(0, space * 4 + (write ? 0 : 64), 1, 4);

		asm_update(asm_dma(p, ISA_SYNC, 0, 4, write ? chip : mem, write ? mem : chip), 50,
			   1);
	}
	return load(r, p);
}

static void test_scrub(void **state)
{
	struct rig *r = *state;
	uint32_t *mem = (uint32_t *)(void *)(r->hbm + rw_slot.base);

	rig_queue(r, 1, 1); /* the same owner */
	rig_queue(r, 2, 2);
	mem[0] = 0x11111111;
	mem[1] = 0x22222222;
	assert_int_equal(rig_run(r, 0, load_touch(r, true), &rw_slot, 1).status, EXI_OK);
	assert_int_equal(rig_run(r, 1, load_touch(r, false), &rw_slot, 1).status, EXI_OK);
	assert_int_equal(mem[16], 0x11111111);
	assert_int_equal(mem[17], 0x22222222);
	assert_int_equal(nm_core_sem_read(r->core, 50), 2);
	/* Even a launch that does nothing takes the core over. */
	assert_int_equal(rig_run(r, 2, load_empty(r), NULL, 0).status, EXI_OK);
	assert_int_equal(nm_core_sem_read(r->core, 50), 0);
	assert_int_equal(rig_run(r, 2, load_touch(r, false), &rw_slot, 1).status, EXI_OK);
	assert_int_equal(mem[16], 0);
	assert_int_equal(mem[17], 0);
	/* Nor does what the host wrote through the BAR remain. */
	mem[0] = 0x33333333;
	nm_core_sbuf_write(r->core, 77 * NM_SBUF_VIEW_PITCH + 4000, &mem[0], 4);
	assert_int_equal(rig_run(r, 0, load_touch(r, false), &rw_slot, 1).status, EXI_OK);
	assert_int_equal(mem[16], 0);
}

static void test_sbuf_window(void **state)
{
	struct rig *r = *state;
	uint64_t word = 0;

	assert_int_equal(nm_core_sbuf_read(r->core, NM_SBUF_BYTES - 8, &word, 8), 0);
	assert_int_equal(nm_core_sbuf_read(r->core, NM_SBUF_BYTES - 7, &word, 8), -EFAULT);
	assert_int_equal(nm_core_sbuf_read(r->core, NM_SBUF_BYTES, &word, 1), -EFAULT);
	assert_int_equal(nm_core_sbuf_read(r->core, 128ull * NM_SBUF_VIEW_PITCH, &word, 1),
			 -EFAULT);
	assert_int_equal(nm_core_sbuf_write(r->core, UINT64_MAX - 3, &word, 8), -EFAULT);
	assert_int_equal(nm_core_sem_read(r->core, ISA_SEMAPHORES), UINT32_MAX);
}

/* More programs than the core keeps decoded; the first again, and an id with other bytes. */
static void test_cache(void **state)
{
	struct rig *r = *state;
	struct exi_launch first = load_empty(r), other;

	assert_int_equal(rig_run(r, 0, first, NULL, 0).status, EXI_OK);
	for (unsigned int i = 0; i < 1500; i++)
		assert_int_equal(rig_run(r, 0, load_empty(r), NULL, 0).status, EXI_OK);
	assert_int_equal(rig_run(r, 0, first, NULL, 0).status, EXI_OK);
	/* Kept by id: the image is not read again. */
	memset(r->hbm + first.program_addr, 0, first.program_bytes);
	assert_int_equal(rig_run(r, 0, first, NULL, 0).status, EXI_OK);
	other = first;
	other.program_id = r->next_id++;
	assert_int_equal(rig_run(r, 0, other, NULL, 0).status, EXI_FAULT_BAD_PROGRAM);
	/* A reset forgets. */
	nm_core_reset(r->core);
	rig_queue(r, 0, 1);
	assert_int_equal(rig_run(r, 0, first, NULL, 0).status, EXI_FAULT_BAD_PROGRAM);
}

/* --- determinism ------------------------------------------------------------------------------- */

/* Engines that race on purpose, and transfers of all sizes in all queues. */
static struct program *racing_program(void)
{
	struct program *p = new_program();
	uint32_t seed = 12345;

	asm_slot(p, NPROG_SLOT_INOUT, 0x10000);
	for (unsigned int k = 0; k < 120; k++) {
		unsigned int engine = ISA_VECTOR + (seed >> 8) % 3;
		struct isa_inst *in;

		seed = seed * 1664525 + 1013904223;
		if ((seed >> 12) % 3 == 0) {
			uint32_t n = 1 + (seed >> 16) % 500;
			struct isa_dma_side chip =
				asm_chip(ISA_SPACE_SBUF, seed >> 28, 8, 64, n, 4);
			struct isa_dma_side mem = asm_flat(0, (seed >> 20) % 64, n * 8, 4);

			in = asm_dma(p, engine, (seed >> 24) % 16, 4, seed & 0x400 ? chip : mem,
				     seed & 0x400 ? mem : chip);
		} else {
			in = asm_inst(p, engine, ISA_TENSOR_SCALAR);
			in->compute.dst = asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 16,
						  64 + (seed >> 20) % 100 * 4,
						  1 + (seed >> 16) % 400);
			in->compute.src0 = in->compute.dst;
			in->compute.src0.offset = 64;
			in->compute.op0 = ISA_ADD;
			in->compute.op1 = ISA_MULT;
			in->compute.imm0 = 0x3f800000u | (seed & 0x7fffff);
			in->compute.imm1 = 0x3f400000;
		}
		asm_update(in, engine, 1);
		if (k > 20 && k % 7 == 0)
			asm_wait(in, engine, 1);
	}
	asm_wait(asm_dma(p, ISA_SYNC, 0, 4, asm_flat(0, 0x8000, 16 * 400, 4),
			 asm_chip(ISA_SPACE_SBUF, 0, 16, 64, 400, 4)),
		 ISA_VECTOR, 5);
	return p;
}

static void test_determinism(void **state)
{
	struct exi_record first = { 0 };
	uint8_t *memory = malloc(0x10000);

	(void)state;
	for (unsigned int round = 0; round < 4; round++) {
		struct rig *r = rig_create();
		struct exi_record rec;

		rig_queue(r, 0, 1);
		for (unsigned int i = 0; i < 0x8000; i++)
			r->hbm[rw_slot.base + i] = (uint8_t)(i * 7 % 64);
		rec = rig_run(r, 0, load(r, racing_program()), &rw_slot, 1);
		assert_int_equal(rec.status, EXI_OK);
		if (round == 0) {
			first = rec;
			memcpy(memory, r->hbm + rw_slot.base, 0x10000);
		}
		assert_memory_equal(&rec, &first, sizeof(rec));
		assert_memory_equal(r->hbm + rw_slot.base, memory, 0x10000);
		rig_destroy(r);
	}
	free(memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_registers, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_laps, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_bad_setup, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_doorbell_overrun, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_bad_entries, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_bus, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_slots, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_pipeline, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_transfer_takes_time, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_deadlock, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_semaphore_overflow, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_priority, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_scrub, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_sbuf_window, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_cache, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_determinism, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
