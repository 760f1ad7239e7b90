// SPDX-License-Identifier: Apache-2.0
/* The trace ring: what it holds, that it wraps and restarts, and what an unusable one leads to. */
#include "rig.h"

#define TRACE_AT (2u << 20) /* in host memory */
#define LOG2	 EXI_TRACE_LOG2_MIN
#define ENTRIES	 (1u << LOG2)

static const struct exi_slot rw_slot = { .base = 0x100000,
					 .size = 0x1000,
					 .rights = EXI_SLOT_READ | EXI_SLOT_WRITE };

/* A transfer on the sync engine, three instructions of the vector engine that wait for it. */
static struct exi_launch load(struct rig *r)
{
	struct program *p = calloc(1, sizeof(*p));
	struct exi_launch l;
	size_t size;
	void *image;

	asm_slot(p, NPROG_SLOT_INOUT, 0x1000);
	asm_update(asm_dma(p, ISA_SYNC, 0, 4, asm_chip(ISA_SPACE_SBUF, 0, 4, 0, 64, 4),
			   asm_flat(0, 0, 256, 4)),
		   1, 1);
	asm_wait(asm_inst(p, ISA_VECTOR, ISA_NOP), 1, 1);
	asm_inst(p, ISA_VECTOR, ISA_NOP);
	image = asm_finish(p, &size);
	l = rig_load(r, image, size);
	free(image);
	free(p);
	return l;
}

enum { PER_LAUNCH = 2 + 3 + 1 }; /* with each HALT, and the launch */

static void set_ring(struct rig *r, uint64_t addr, uint32_t log2)
{
	rig_set(r, 0, EXI_Q_TRACE_LO, (uint32_t)addr);
	rig_set(r, 0, EXI_Q_TRACE_HI, (uint32_t)(addr >> 32));
	rig_set(r, 0, EXI_Q_TRACE_LOG2, log2);
}

static const struct exi_trace *entry(struct rig *r, uint32_t n)
{
	const struct exi_trace *t = (const void *)(r->host + TRACE_AT);

	return &t[n % ENTRIES];
}

static void test_entries(void **state)
{
	struct rig *r = *state;
	struct exi_launch l = load(r);
	struct exi_record plain = rig_run(r, 0, l, &rw_slot, 1), rec;
	const struct exi_trace *dma, *nop, *all;
	uint64_t busy = 0;

	assert_int_equal(plain.traced, 0);
	set_ring(r, V3_DEV_HOST + TRACE_AT, LOG2);
	l.flags |= EXI_LAUNCH_TRACE;
	rec = rig_run(r, 0, l, &rw_slot, 1);
	assert_int_equal(rec.status, EXI_OK);
	assert_int_equal(rec.traced, PER_LAUNCH);
	/* Looking does not change what is seen. */
	assert_int_equal(rec.end_ns - rec.start_ns, plain.end_ns - plain.start_ns);
	dma = nop = NULL;
	for (uint32_t n = 0; n < PER_LAUNCH; n++) {
		const struct exi_trace *t = entry(r, n);

		assert_int_equal(t->index, n);
		assert_int_equal(t->seqno, rec.seqno);
		assert_true(t->start_ps >= rec.start_ns * 1000 && t->end_ps >= t->start_ps);
		assert_true(t->end_ps / 1000 <= rec.end_ns);
		if (t->opcode == ISA_DMA && t->engine == ISA_SYNC)
			dma = t;
		if (t->engine == ISA_VECTOR) {
			busy += t->end_ps - t->start_ps;
			nop = nop ? nop : t;
		}
	}
	all = entry(r, PER_LAUNCH - 1);
	assert_int_equal(all->engine, 0xff);
	assert_int_equal(all->end_ps / 1000, rec.end_ns);
	assert_non_null(dma);
	assert_int_equal(dma->pc, 0);
	/* 2 us as the NKI DMA guide has them. */
	assert_true(dma->end_ps - dma->start_ps < 2000000);
	assert_non_null(nop);
	assert_int_equal(nop->pc, 0);
	assert_true(nop->start_ps >= dma->end_ps);
	assert_int_equal(busy / 1000, rec.busy_ns[ISA_VECTOR]);
}

/* An untraced launch in between leaves no entry; the ring goes round. */
static void test_laps(void **state)
{
	struct rig *r = *state;
	struct exi_launch plain = load(r), l = plain;
	uint32_t total = 0;

	set_ring(r, V3_DEV_HOST + TRACE_AT, LOG2);
	l.flags |= EXI_LAUNCH_TRACE;
	while (total < 3 * ENTRIES) {
		total += PER_LAUNCH;
		assert_int_equal(rig_run(r, 0, l, &rw_slot, 1).traced, total);
		assert_int_equal(rig_run(r, 0, plain, &rw_slot, 1).traced, total);
		for (uint32_t n = total - PER_LAUNCH; n < total; n++)
			assert_int_equal(entry(r, n)->index, n);
	}
	/* Nothing outside the ring. */
	assert_int_equal(entry(r, 0)[ENTRIES].index, 0);
	assert_int_equal(entry(r, 0)[ENTRIES].end_ps, 0);

	rig_set(r, 0, EXI_Q_CONTROL, EXI_Q_RESET);
	rig_queue(r, 0, 1);
	set_ring(r, V3_DEV_HOST + TRACE_AT, LOG2);
	assert_int_equal(rig_run(r, 0, l, &rw_slot, 1).traced, PER_LAUNCH);
	assert_int_equal(entry(r, 0)->index, 0);
}

static void refused(struct rig *r, struct exi_launch l, uint64_t value)
{
	struct exi_record rec = rig_run(r, 0, l, &rw_slot, 1);

	assert_int_equal(rec.status, EXI_FAULT_BAD_QUEUE);
	assert_int_equal(rec.value, value);
	assert_int_equal(rec.traced, 0);
	rig_set(r, 0, EXI_Q_CONTROL, EXI_Q_RESET);
	rig_queue(r, 0, 1);
}

static void test_unusable_rings(void **state)
{
	struct rig *r = *state;
	struct exi_launch l = load(r);
	struct exi_record rec;

	l.flags |= EXI_LAUNCH_TRACE;
	refused(r, l, EXI_Q_TRACE_LOG2);
	set_ring(r, V3_DEV_HOST + TRACE_AT, EXI_TRACE_LOG2_MAX + 1);
	refused(r, l, EXI_Q_TRACE_LOG2);
	set_ring(r, V3_DEV_HOST + TRACE_AT + 32, LOG2);
	refused(r, l, EXI_Q_TRACE_LO);
	/* One that does not answer costs the trace, not the launch. */
	set_ring(r, V3_DEV_HOST + RIG_HOST, LOG2);
	rec = rig_run(r, 0, l, &rw_slot, 1);
	assert_int_equal(rec.status, EXI_OK);
	assert_int_equal(rec.traced, 0);
}

/* A launch that faults is traced as far as it came. */
static void test_fault(void **state)
{
	struct rig *r = *state;
	struct program *p = calloc(1, sizeof(*p));
	struct exi_record rec;
	size_t size;
	void *image;
	struct exi_launch l;

	asm_inst(p, ISA_SCALAR, ISA_NOP);
	asm_wait(asm_inst(p, ISA_SCALAR, ISA_NOP), 7, 1);
	image = asm_finish(p, &size);
	l = rig_load(r, image, size);
	l.flags |= EXI_LAUNCH_TRACE;
	set_ring(r, V3_DEV_HOST + TRACE_AT, LOG2);
	rec = rig_run(r, 0, l, NULL, 0);
	assert_int_equal(rec.status, EXI_FAULT_DEADLOCK);
	assert_int_equal(rec.traced, 2);
	assert_int_equal(entry(r, 0)->engine, ISA_SCALAR);
	assert_int_equal(entry(r, 1)->engine, 0xff);
	free(image);
	free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_entries, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_laps, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_unusable_rings, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_fault, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
