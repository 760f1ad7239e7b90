// SPDX-License-Identifier: Apache-2.0
/* Launches of a core that hang, are aborted, or meet an injected fault. */
#include "launches.h"

/* --- hangs -------------------------------------------------------------------------------- */

static void test_hang_and_abort(void **state)
{
	struct rig *r = *state;
	struct exi_record rec;

	hang(r);
	rig_put(r, 0, load_empty(r), NULL, 0);
	rig_put(r, 0, load_empty(r), NULL, 0);
	rig_doorbell(r, 0);
	rig_set(r, 0, EXI_Q_CONTROL, EXI_Q_ABORT);
	/* All is done when the write returns. */
	assert_int_equal(rig_reg(r, 0, EXI_Q_STATUS), EXI_Q_HALTED);
	assert_int_equal(rig_reg(r, 0, EXI_Q_HEAD), 3);
	for (unsigned int i = 0; i < 3; i++) {
		rec = rig_wait(r, 0, i);
		assert_int_equal(rec.status, EXI_FAULT_ABORTED);
		assert_int_equal(rec.seqno, 1000 + i);
	}
	assert_int_equal(rig_wait(r, 0, 0).engine, ISA_SCALAR);
	assert_int_equal(r->errors, 0);
	assert_int_equal(rig_run(r, 0, load_empty(r), NULL, 0).status, EXI_FAULT_ABORTED);
	rig_set(r, 0, EXI_Q_CONTROL, EXI_Q_RESET);
	assert_int_equal(rig_reg(r, 0, EXI_Q_STATUS), EXI_Q_DISABLED);
	rig_queue(r, 0, 1);
	assert_int_equal(rig_run(r, 0, load_empty(r), NULL, 0).status, EXI_OK);
}

/* While queue 0 hangs: other queues abort and reset, memories and semaphores answer. */
static void test_hang_and_others(void **state)
{
	struct rig *r = *state;
	uint32_t word = 0x600d600d;

	rig_queue(r, 1, 2);
	hang(r);
	rig_put(r, 1, load_empty(r), NULL, 0);
	rig_doorbell(r, 1);
	assert_int_equal(rig_reg(r, 1, EXI_Q_STATUS), EXI_Q_RUNNING);
	assert_int_equal(rig_reg(r, 0, EXI_Q_STARTED), rig_reg(r, 0, EXI_Q_HEAD) + 1);
	assert_int_equal(rig_reg(r, 1, EXI_Q_STARTED), rig_reg(r, 1, EXI_Q_HEAD));
	rig_set(r, 1, EXI_Q_CONTROL, EXI_Q_ABORT);
	assert_int_equal(rig_reg(r, 1, EXI_Q_STATUS), EXI_Q_HALTED);
	assert_int_equal(rig_wait(r, 1, 0).status, EXI_FAULT_ABORTED);
	rig_set(r, 1, EXI_Q_CONTROL, EXI_Q_RESET);
	assert_int_equal(rig_reg(r, 1, EXI_Q_STATUS), EXI_Q_DISABLED);
	assert_int_equal(nm_core_sbuf_write(r->core, 5 * NM_SBUF_VIEW_PITCH + 8, &word, 4), 0);
	word = 0;
	assert_int_equal(nm_core_sbuf_read(r->core, 5 * NM_SBUF_VIEW_PITCH + 8, &word, 4), 0);
	assert_int_equal(word, 0x600d600d);
	assert_int_equal(rig_reg(r, 0, EXI_Q_STATUS), EXI_Q_RUNNING);
	/* As on hardware, the host can let it go on. */
	nm_core_sem_write(r->core, 7, NM_SEM_INC, 2);
	assert_int_equal(nm_core_sem_read(r->core, 7), 2);
	nm_core_sem_write(r->core, 7, NM_SEM_INC, 1);
	assert_int_equal(rig_wait(r, 0, 0).status, EXI_OK);
}

static void test_hang_and_reset(void **state)
{
	struct rig *r = *state;
	struct exi_record none = { 0 };

	hang(r);
	rig_set(r, 0, EXI_Q_CONTROL, EXI_Q_RESET);
	assert_int_equal(rig_reg(r, 0, EXI_Q_STATUS), EXI_Q_DISABLED);
	assert_int_equal(rig_reg(r, 0, EXI_Q_HEAD), 0);
	assert_memory_equal(rig_ptr(r, rig_cq(0), sizeof(none)), &none, sizeof(none));
	rig_queue(r, 0, 1);
	hang(r);
	nm_core_reset(r->core);
	assert_int_equal(rig_reg(r, 0, EXI_Q_STATUS), EXI_Q_DISABLED);
	assert_memory_equal(rig_ptr(r, rig_cq(0), sizeof(none)), &none, sizeof(none));
	rig_queue(r, 0, 1);
	assert_int_equal(rig_run(r, 0, load_empty(r), NULL, 0).status, EXI_OK);
	/* And one that hangs while the core is destroyed, by teardown. */
	hang(r);
}

/* 2^36 elements of one transfer: an abort does not wait for them. */
static void test_abort_long_transfer(void **state)
{
	struct rig *r = *state;
	struct program *p = new_program();
	struct isa_dma_side side = { .space = ISA_SPACE_SLOT,
				     .ndim = 3,
				     .count = { 1u << 16, 1u << 10, 1u << 10 },
				     .step = { 0, 0, 8 } };
	struct isa_dma_side from = side;
	struct exi_record rec;

	from.offset = 8192;
	asm_slot(p, NPROG_SLOT_INOUT, 0x10000);
	asm_dma(p, ISA_SYNC, 0, 8, side, from);
	rig_put(r, 0, load(r, p), &rw_slot, 1);
	rig_doorbell(r, 0);
	wait_status(r, 0, EXI_Q_RUNNING);
	nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
	rig_set(r, 0, EXI_Q_CONTROL, EXI_Q_ABORT);
	rec = rig_wait(r, 0, 0);
	assert_int_equal(rec.status, EXI_FAULT_ABORTED);
	assert_int_equal(rec.engine, ISA_SYNC);
	assert_int_equal(rec.opcode, ISA_DMA);
}

/* --- injected faults ---------------------------------------------------------------------- */

static void test_injected_hang(void **state)
{
	struct rig *r = *state;

	/* Of an engine that the program does not use: nothing. Stall detection is on. */
	nm_core_inject_hang(r->core, ISA_TENSOR, 1);
	assert_int_equal(rig_run(r, 0, load_empty(r), NULL, 0).status, EXI_OK);
	assert_int_equal(nm_core_hangs(r->core, ISA_TENSOR), 1);
	nm_core_inject_hang(r->core, ISA_SCALAR, 1);
	rig_put(r, 0, load_hanging(r), NULL, 0);
	rig_doorbell(r, 0);
	wait_running(r);
	/* What it waits for makes no difference. */
	nm_core_sem_write(r->core, 7, NM_SEM_INC, 3);
	assert_int_equal(rig_reg(r, 0, EXI_Q_STATUS), EXI_Q_RUNNING);
	rig_set(r, 0, EXI_Q_CONTROL, EXI_Q_ABORT);
	assert_int_equal(rig_wait(r, 0, 1).status, EXI_FAULT_ABORTED);
	assert_int_equal(rig_wait(r, 0, 1).engine, ISA_SCALAR);
	assert_int_equal(nm_core_hangs(r->core, ISA_SCALAR), 0);
	rig_set(r, 0, EXI_Q_CONTROL, EXI_Q_RESET);
	rig_queue(r, 0, 1);
	assert_int_equal(rig_run(r, 0, load_empty(r), NULL, 0).status, EXI_OK);
}

static void test_throttle(void **state)
{
	struct rig *r = *state;
	struct exi_launch l = load_empty(r);
	uint32_t fast, slow;

	fast = rig_run(r, 0, l, NULL, 0).busy_ns[ISA_SYNC];
	nm_core_throttle(r->core, 10);
	assert_int_equal(r->clock, 0); /* nothing to tell yet */
	slow = rig_run(r, 0, l, NULL, 0).busy_ns[ISA_SYNC];
	assert_uint_in_range(slow, 10 * fast, 10 * (fast + 1));
	assert_int_equal(r->clock, 10);
	nm_core_throttle(r->core, 100);
	assert_int_equal(rig_run(r, 0, l, NULL, 0).busy_ns[ISA_SYNC], fast);
	assert_int_equal(r->clock, 100);
}

/* The transfer that meets it is named; those that read no buffer meet nothing. */
static void test_poison(void **state)
{
	struct rig *r = *state;
	struct program *p = new_program();
	struct exi_record rec;
	struct exi_launch l;

	asm_slot(p, NPROG_SLOT_INOUT, 0x10000);
	asm_update(asm_dma(p, ISA_SYNC, 1, 4, asm_flat(0, 4096, 1024, 4),
			   asm_chip(ISA_SPACE_SBUF, 0, 4, 0, 256, 4)),
		   1, 1);
	asm_update(asm_dma(p, ISA_SYNC, 0, 4, asm_chip(ISA_SPACE_SBUF, 0, 4, 0, 256, 4),
			   asm_flat(0, 512, 1024, 4)),
		   1, 1);
	asm_wait(asm_inst(p, ISA_SYNC, ISA_HALT), 1, 2);
	l = load(r, p);
	nm_core_inject_poison(r->core, 1);
	assert_int_equal(rig_run(r, 0, load_empty(r), NULL, 0).status, EXI_OK);
	rec = rig_run(r, 0, l, &rw_slot, 1);
	assert_int_equal(rec.status, EXI_FAULT_ECC);
	assert_int_equal(rec.engine, ISA_SYNC);
	assert_int_equal(rec.pc, 1);
	assert_int_equal(rec.opcode, ISA_DMA);
	assert_int_equal(rec.slot, 0);
	assert_int_equal(rec.value, 512);
	assert_int_equal(rec.limit, rw_slot.size);
	assert_int_equal(r->ecc_addr, rw_slot.base + 512);
	assert_int_equal(nm_core_poisoned(r->core), 0);
	rig_set(r, 0, EXI_Q_CONTROL, EXI_Q_RESET);
	rig_queue(r, 0, 1);
	assert_int_equal(rig_run(r, 0, l, &rw_slot, 1).status, EXI_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_hang_and_abort, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_hang_and_others, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_hang_and_reset, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_abort_long_transfer, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_injected_hang, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_throttle, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_poison, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
