// SPDX-License-Identifier: Apache-2.0
/*
 * The notification queues of every type, as a driver uses them: set up, read, overrun and halted
 * through registers, filled by launches. Those of events and DMA traces are also in blocks.c.
 */
#include "asm.h"
#include "fixture.h"
#include "neuron_notify.h"

#define RING	 0x10000u /* in host memory */
#define RECORDS	 0x11000u
#define NQS	 0x20000u
#define NQ_BYTES 512u /* sixteen entries */
#define IMAGE	 (32u << 20) /* in HBM */
#define LOG2	 4u

#define SEQNO 77u
#define QUEUE 5u

static uint64_t program_id; /* of the last launch; never used twice */

/* --- a driver of a few lines ------------------------------------------------------ */

/* Sets up a queue with a ring of its own, filled with what is no entry. */
static const struct nq_entry *nq_start(struct fixture *f, uint64_t block, unsigned int index,
				       uint32_t bytes)
{
	const uint64_t at = block + index * NQ_STRIDE, host = NQS + index * NQ_BYTES;

	memset(f->host + host, 0xaa, NQ_BYTES);
	apb_write(f, at + NQ_BASE_LO, (uint32_t)host_addr(host));
	apb_write(f, at + NQ_BASE_HI, (uint32_t)(host_addr(host) >> 32));
	apb_write(f, at + NQ_SIZE, bytes);
	return (const struct nq_entry *)(f->host + host);
}

static const struct nq_entry *core_nq(struct fixture *f, unsigned int type, unsigned int engine)
{
	return nq_start(f, V3_APB_CORE_NOTIFY(0), NQ_INDEX(type, engine), NQ_BYTES);
}

static bool written(const struct nq_entry *e)
{
	return __atomic_load_n(&e->phase, __ATOMIC_ACQUIRE) != 0xaa;
}

static void exi_write(struct fixture *f, uint32_t reg, uint32_t value)
{
	nm_bar_write(f->dev, EXI_BAR, reg, 4, value);
}

static uint32_t exi_read(struct fixture *f, uint32_t reg)
{
	return (uint32_t)nm_bar_read(f->dev, EXI_BAR, reg, 4);
}

/* Runs a program once on a fresh queue of core 0. */
static struct exi_record run(struct fixture *f, struct program *p)
{
	const uint32_t q = EXI_QUEUE(0, QUEUE);
	struct exi_launch l = { .program_addr = hbm_addr(0, IMAGE),
				.program_id = ++program_id,
				.slots_addr = host_addr(0),
				.seqno = SEQNO };
	struct exi_record rec;
	size_t size;
	void *image = asm_finish(p, &size);

	memcpy(hbm_at(f, 0, IMAGE), image, size);
	free(image);
	l.program_bytes = (uint32_t)size;
	memcpy(f->host + RING, &l, sizeof(l));
	exi_write(f, q + EXI_Q_CONTROL, EXI_Q_RESET);
	exi_write(f, q + EXI_Q_RING_LO, (uint32_t)host_addr(RING));
	exi_write(f, q + EXI_Q_RING_HI, (uint32_t)(host_addr(RING) >> 32));
	exi_write(f, q + EXI_Q_RING_LOG2, LOG2);
	exi_write(f, q + EXI_Q_CQ_LO, (uint32_t)host_addr(RECORDS));
	exi_write(f, q + EXI_Q_CQ_HI, (uint32_t)(host_addr(RECORDS) >> 32));
	exi_write(f, q + EXI_Q_CONTROL, EXI_Q_ENABLE);
	exi_write(f, q + EXI_Q_DOORBELL, 1);
	wait_for(exi_read(f, q + EXI_Q_HEAD) == 1);
	memcpy(&rec, f->host + RECORDS, sizeof(rec));
	return rec;
}

/* Vector: nop, and with a notification a nop that waits for sync; sync: one with a notification. */
static struct program *two_engines(void)
{
	struct program *p = calloc(1, sizeof(*p));
	struct isa_inst *in;

	asm_inst(p, ISA_VECTOR, ISA_NOP);
	in = asm_inst(p, ISA_VECTOR, ISA_NOP);
	asm_wait(in, 3, 1);
	in->flags = ISA_F_NOTIFY;
	in = asm_inst(p, ISA_SYNC, ISA_NOP);
	asm_update(in, 3, 1);
	in->flags = ISA_F_NOTIFY;
	return p;
}

/* An entry about an instruction of that launch. */
static void assert_about(const struct nq_entry *e, unsigned int type, unsigned int engine,
			 uint32_t pc, unsigned int opcode, const struct exi_record *rec)
{
	assert_int_equal(e->phase, 1);
	assert_int_equal(e->type, type);
	assert_int_equal(e->engine, engine);
	assert_int_equal(e->opcode, opcode);
	assert_int_equal(e->queue, QUEUE);
	assert_int_equal(e->seqno, SEQNO);
	assert_int_equal(e->pc, pc);
	assert_true(e->time_ns >= rec->start_ns && e->time_ns <= rec->end_ns);
}

/* --- each type --------------------------------------------------------------------- */

static void instructions_that_ask_are_told_of(void **state)
{
	struct fixture *f = *state;
	const struct nq_entry *vector = core_nq(f, NQ_NOTIFY, ISA_VECTOR);
	const struct nq_entry *sync = core_nq(f, NQ_NOTIFY, ISA_SYNC);
	const struct nq_entry *tensor = core_nq(f, NQ_NOTIFY, ISA_TENSOR);
	const struct nq_entry *trace = core_nq(f, NQ_TRACE, ISA_VECTOR);
	struct program *p = two_engines();
	struct exi_record rec = run(f, p);

	assert_int_equal(rec.status, EXI_OK);
	assert_about(&vector[0], NQ_NOTIFY, ISA_VECTOR, 1, ISA_NOP, &rec);
	assert_int_equal(vector[0].value, program_id);
	assert_about(&sync[0], NQ_NOTIFY, ISA_SYNC, 0, ISA_NOP, &rec);
	assert_true(vector[0].time_ns >= sync[0].time_ns);
	assert_false(written(&vector[1]) || written(&sync[1]) || written(tensor));
	assert_false(written(trace)); /* nobody switched it on */
	assert_int_equal(f->messages, 0);
	free(p);
}

/* A transfer, when it is complete; an end of stream; what comes behind a fault, never. */
static void effects_are_visible_when_it_is_told(void **state)
{
	struct fixture *f = *state;
	const struct nq_entry *e = core_nq(f, NQ_NOTIFY, ISA_SYNC);
	struct program *p = calloc(1, sizeof(*p));
	static const uint32_t constant[4];
	struct exi_record rec;

	p->constants = constant;
	p->const_bytes = sizeof(constant);
	asm_dma(p, ISA_SYNC, 0, 4, asm_chip(ISA_SPACE_SBUF, 0, 1, 0, 4, 4),
		asm_flat(ISA_SLOT_CONST, 0, 4, 4))
		->flags = ISA_F_NOTIFY;
	asm_inst(p, ISA_SYNC, ISA_HALT)->flags = ISA_F_NOTIFY;
	rec = run(f, p);
	assert_int_equal(rec.status, EXI_OK);
	/* The end of the stream was reached while the transfer was under way. */
	assert_about(&e[0], NQ_NOTIFY, ISA_SYNC, 1, ISA_HALT, &rec);
	assert_about(&e[1], NQ_NOTIFY, ISA_SYNC, 0, ISA_DMA, &rec);
	assert_true(e[1].time_ns > e[0].time_ns + 1000); /* 2 us as the NKI DMA guide has them */

	asm_wait(&p->inst[ISA_SYNC][1], 9, 1);
	rec = run(f, p);
	assert_int_equal(rec.status, EXI_FAULT_DEADLOCK);
	assert_about(&e[2], NQ_NOTIFY, ISA_SYNC, 0, ISA_DMA, &rec);
	assert_false(written(&e[3]));
	free(p);
}

static void engines_trace_when_switched_on(void **state)
{
	struct fixture *f = *state;
	const struct nq_entry *vector = core_nq(f, NQ_TRACE, ISA_VECTOR);
	const struct nq_entry *sync = core_nq(f, NQ_TRACE, ISA_SYNC);
	struct program *p = two_engines();
	struct exi_record plain, rec;
	uint64_t busy = 0;

	assert_int_equal(exi_read(f, EXI_CORE_TRACE(0)), 0);
	plain = run(f, p);
	assert_false(written(vector) || written(sync));
	exi_write(f, EXI_CORE_TRACE(0), 0xffffff00 | 1u << ISA_VECTOR);
	assert_int_equal(exi_read(f, EXI_CORE_TRACE(0)), 1u << ISA_VECTOR);
	assert_int_equal(exi_read(f, EXI_CORE_TRACE(1)), 0);
	rec = run(f, p);
	assert_int_equal(rec.status, EXI_OK);
	/* Looking does not change what is seen, but for how the start was rounded to ns. */
	assert_memory_equal(rec.busy_ns, plain.busy_ns, sizeof(rec.busy_ns));
	assert_uint_in_range(rec.end_ns - rec.start_ns + 1 - (plain.end_ns - plain.start_ns), 0, 2);
	for (uint32_t pc = 0; pc < 3; pc++) {
		assert_about(&vector[pc], NQ_TRACE, ISA_VECTOR, pc, pc < 2 ? ISA_NOP : ISA_HALT,
			     &rec);
		assert_true(pc == 0 || vector[pc].time_ns >= vector[pc - 1].time_ns);
		busy += vector[pc].value;
	}
	assert_int_equal(busy / 1000, rec.busy_ns[ISA_VECTOR]);
	assert_false(written(&vector[3]) || written(sync));
	exi_write(f, EXI_CORE_TRACE(0), 0);
	run(f, p);
	assert_false(written(&vector[3]));
	/* A core reset switches it off. */
	exi_write(f, EXI_CORE_TRACE(0), 0x1f);
	apb_write(f, V3_APB_QEMU_RESET, 1);
	wait_for(apb_read(f, V3_APB_QEMU_RESET) == 0);
	assert_int_equal(exi_read(f, EXI_CORE_TRACE(0)), 0);
	assert_int_equal(f->messages, 0);
	assert_int_equal(exi_read(f, EXI_CORE_TRACE(2)), UINT32_MAX); /* no such core */
	assert_int_equal(f->messages, 1);
	free(p);
}

static void faults_are_told(void **state)
{
	struct fixture *f = *state;
	const struct nq_entry *scalar = core_nq(f, NQ_ERROR, ISA_SCALAR);
	const struct nq_entry *none = core_nq(f, NQ_ERROR, NQ_NO_ENGINE);
	struct program *p = calloc(1, sizeof(*p));
	struct exi_record rec;

	asm_inst(p, ISA_SCALAR, ISA_NOP);
	asm_wait(asm_inst(p, ISA_SCALAR, ISA_NOP), 7, 3);
	rec = run(f, p);
	assert_int_equal(rec.status, EXI_FAULT_DEADLOCK);
	wait_for(written(scalar));
	assert_about(&scalar[0], NQ_ERROR, ISA_SCALAR, 1, ISA_NOP, &rec);
	assert_int_equal(scalar[0].status, EXI_FAULT_DEADLOCK);
	assert_int_equal(scalar[0].value, 7);
	/* Of the launch as a whole. */
	p->arch = 9;
	rec = run(f, p);
	assert_int_equal(rec.status, EXI_FAULT_BAD_PROGRAM);
	assert_about(&none[0], NQ_ERROR, 0xff, 0, 0, &rec);
	assert_int_equal(none[0].status, EXI_FAULT_BAD_PROGRAM);
	assert_int_equal(none[0].value, rec.value);
	assert_false(written(&scalar[1]) || written(&none[1]));
	free(p);
}

static void clocks_are_told(void **state)
{
	struct fixture *f = *state;
	const struct nq_entry *e = core_nq(f, NQ_THROTTLE, NQ_NO_ENGINE);
	struct program *p = two_engines();

	assert_int_equal(nm_inject_throttle(f->dev, 60), 0);
	assert_int_equal(e[0].type, NQ_THROTTLE);
	assert_int_equal(e[0].engine, 0xff);
	assert_int_equal(e[0].value, 60);
	assert_false(written(&e[1]));
	run(f, p);
	assert_int_equal(e[1].value, 60);
	run(f, p);
	assert_false(written(&e[2]));
	assert_int_equal(nm_inject_throttle(f->dev, 100), 0);
	assert_int_equal(e[2].value, 100);
	free(p);
}

static void every_topsp_has_its_own(void **state)
{
	struct fixture *f = *state;

	for (unsigned int t = 0; t < 4; t++) {
		const struct nq_entry *e =
			nq_start(f, V3_APB_TOPSP_NOTIFY(t), NQ_INDEX(NQ_EVENT, 0), NQ_BYTES);

		for (unsigned int other = 0; other < 4; other++)
			apb_write(f, V3_APB_TOPSP(other) + 4 * (10 + t), 1 + t);
		assert_int_equal(e[0].type, NQ_EVENT);
		assert_int_equal(e[0].value, 10 + t);
		assert_int_equal(e[0].seqno, 1 + t);
		assert_false(written(&e[1]));
		apb_write(f, V3_APB_TOPSP_NOTIFY(t) + NQ_INDEX(NQ_EVENT, 0) * NQ_STRIDE + NQ_SIZE,
			  0);
	}
	assert_int_equal(f->messages, 0);
}

/* --- rings ---------------------------------------------------------------------------- */

/* Six entries through a ring of four: the first two are lost to a reader that did not look. */
static void a_full_ring_goes_on_from_its_start(void **state)
{
	struct fixture *f = *state;
	const uint64_t event = V3_APB_TPB(0) + V3_TPB_EVENTS;
	const struct nq_entry *e =
		nq_start(f, V3_APB_CORE_NOTIFY(0), NQ_INDEX(NQ_EVENT, 0), 4 * sizeof(*e));
	static const uint8_t phase[] = { 0, 0, 1, 1 }, number[] = { 4, 5, 2, 3 };

	for (unsigned int i = 0; i < 6; i++)
		apb_write(f, event + 4 * i, 1);
	for (unsigned int i = 0; i < 4; i++) {
		assert_int_equal(e[i].phase, phase[i]);
		assert_int_equal(e[i].value, number[i]);
	}
	assert_false(written(&e[4]));
	for (unsigned int i = 6; i < 9; i++)
		apb_write(f, event + 4 * i, 1);
	assert_int_equal(e[0].phase, 1); /* third lap */
	assert_int_equal(e[0].value, 8);
	assert_int_equal(f->messages, 0);
}

static void size_zero_and_base_zero_halt(void **state)
{
	struct fixture *f = *state;
	const uint64_t event = V3_APB_TPB(0) + V3_TPB_EVENTS;
	const uint64_t at = V3_APB_CORE_NOTIFY(0) + NQ_INDEX(NQ_EVENT, 0) * NQ_STRIDE;
	const struct nq_entry *e = core_nq(f, NQ_EVENT, 0);

	apb_write(f, event, 1);
	apb_write(f, at + NQ_SIZE, 0);
	apb_write(f, event, 2);
	assert_false(written(&e[1]));
	e = core_nq(f, NQ_EVENT, 0); /* from its start again */
	apb_write(f, event, 3);
	assert_int_equal(e[0].phase, 1);
	assert_int_equal(e[0].seqno, 3);
	/* Base before size, as the public driver does it: nothing lands at address 0 meanwhile. */
	memset(hbm_at(f, 0, 0), 0xaa, NQ_BYTES);
	apb_write(f, at + NQ_BASE_HI, 0);
	apb_write(f, at + NQ_BASE_LO, 0);
	apb_write(f, event, 4);
	for (unsigned int i = 0; i < NQ_BYTES; i++)
		assert_int_equal(hbm_at(f, 0, 0)[i], 0xaa);
	assert_false(written(&e[1]));
	assert_int_equal(f->messages, 0);
}

static void impossible_rings_are_refused(void **state)
{
	static const uint32_t sizes[] = { 100, 48, 16, 0x80000001 };
	struct fixture *f = *state;

	for (unsigned int i = 0; i < 4; i++) {
		const uint64_t at = V3_APB_CORE_NOTIFY(1) + i * NQ_STRIDE;

		apb_write(f, at + NQ_SIZE, sizes[i]);
		assert_int_equal(f->messages, i + 1);
		assert_non_null(strstr(f->last, "is not a power of two of at least 32; halted"));
		assert_int_equal(apb_read(f, at + NQ_SIZE), 0);
	}
	/* One that is nowhere. */
	core_nq(f, NQ_EVENT, 0);
	apb_write(f, V3_APB_CORE_NOTIFY(0) + NQ_INDEX(NQ_EVENT, 0) * NQ_STRIDE + NQ_BASE_HI,
		  0xffff);
	apb_write(f, V3_APB_TPB(0) + V3_TPB_EVENTS, 1);
	assert_int_equal(f->messages, 5);
	assert_non_null(strstr(f->last, "does not answer"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(instructions_that_ask_are_told_of),
		TEST(effects_are_visible_when_it_is_told),
		TEST(engines_trace_when_switched_on),
		TEST(faults_are_told),
		TEST(clocks_are_told),
		TEST(every_topsp_has_its_own),
		TEST(a_full_ring_goes_on_from_its_start),
		TEST(size_zero_and_base_zero_halt),
		TEST(impossible_rings_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
