// SPDX-License-Identifier: Apache-2.0
/* Checking mode follows registers and branches, as far as they do not depend on data. */
#include "loops.h"

#define assert_ok(rec) assert_int_equal((rec).status, EXI_OK)

static int setup(void **state)
{
	struct rig *r = rig_create_checking(NM_CHECK_ALL);

	rig_queue(r, 0, 1);
	for (unsigned int i = 0; i < 2; i++)
		rig_written(r, slots[i].base, slots[i].size);
	*state = r;
	return 0;
}

static bool logged(const struct rig *r, const char *words)
{
	for (unsigned int i = 0; i < 8; i++)
		if (strstr(r->log[i], words))
			return true;
	return false;
}

/*
 * Two rows of SBUF in turn: sync loads one while the scalar engine squares the other. overwrite: sync
 * does not wait until the row has been read.
 */
static struct program *two_rows(bool overwrite)
{
	struct program *p = new_program();
	struct isa_inst *in;

	for (unsigned int e = ISA_SCALAR; e <= ISA_SYNC; e += ISA_SYNC - ISA_SCALAR)
		reg_set(p, e, 1, 0);
	/* Sync; r2: row; semaphore 1 counts the rows that are there. */
	reg_imm(p, ISA_SYNC, ISA_BIT_AND, 2, 1, 1);
	reg_imm(p, ISA_SYNC, ISA_MULT, 2, 2, 64);
	reg_imm(p, ISA_SYNC, ISA_SUB, 3, 1, 1);
	in = asm_dma(p, ISA_SYNC, 0, 4, asm_chip(ISA_SPACE_SBUF, 0, 1, 0, 64, 4),
		     asm_flat(0, 0, 64, 4));
	in->dma.dst.shift = 2;
	asm_update(in, 1, 1);
	if (!overwrite) {
		asm_wait(in, 2, 0);
		in->wait[0].reg = 3;
	}
	reg_imm(p, ISA_SYNC, ISA_ADD, 1, 1, 1);
	reg_until(p, ISA_SYNC, 1, 10, 1);
	/* Scalar; semaphore 2 counts those that were read. */
	reg_imm(p, ISA_SCALAR, ISA_BIT_AND, 2, 1, 1);
	reg_imm(p, ISA_SCALAR, ISA_MULT, 2, 2, 64);
	reg_imm(p, ISA_SCALAR, ISA_ADD, 1, 1, 1);
	in = asm_inst(p, ISA_SCALAR, ISA_ACTIVATION);
	in->compute.op0 = ISA_ACT_SQUARE;
	in->compute.src0 = row(0, 64);
	in->compute.dst = row(1024, 64);
	in->compute.imm0 = 0x3f800000;
	in->compute.shift[1] = 2;
	asm_wait(in, 1, 0);
	in->wait[0].reg = 1;
	asm_update(in, 2, 1);
	reg_until(p, ISA_SCALAR, 1, 10, 1);
	return p;
}

static void loops_are_followed(void **state)
{
	struct rig *r = *state;
	struct exi_record rec;

	assert_ok(run(r, copy_tiles(new_program(), 16, BYTES / 16)));
	assert_ok(run(r, two_rows(false)));
	assert_int_equal(r->logged, 0);
	rec = run(r, two_rows(true));
	assert_int_equal(rec.status, EXI_FAULT_RACE);
	assert_true(logged(r, "race on SBUF, partition 0, byte 0"));
}

/* A wait of the loop that nothing will end, in its fourth turn. */
static void deadlocks_in_loops(void **state)
{
	struct rig *r = *state;
	struct program *p = new_program();
	struct exi_record rec;

	for (unsigned int k = 0; k < 3; k++)
		asm_update(asm_inst(p, ISA_SCALAR, ISA_NOP), 1, 1);
	reg_imm(p, ISA_SYNC, ISA_ADD, 1, 1, 1);
	asm_wait(asm_inst(p, ISA_SYNC, ISA_NOP), 1, 0);
	p->inst[ISA_SYNC][1].wait[0].reg = 1;
	reg_until(p, ISA_SYNC, 1, 9, 0);
	rec = run(r, p);
	assert_int_equal(rec.status, EXI_FAULT_DEADLOCK);
	assert_int_equal(rec.pc, 1);
	assert_int_equal(rec.limit, 4);
	assert_true(logged(r, "deadlock: sync engine, instruction 1 (nop) waits for semaphore 1 to "
			      "reach 4"));
}

/* What registers move is looked at where it is. */
static void moved_reads_of_nothing(void **state)
{
	struct rig *r = *state;

	for (unsigned int k = 0; k < 2; k++) {
		struct program *p = new_program();
		struct isa_inst *in = asm_inst(p, ISA_VECTOR, ISA_MEMSET);
		struct exi_record rec;

		in->compute.dst = row(0x8000, 8);
		reg_set(p, ISA_VECTOR, 1, k ? 4 : 3);
		in = asm_inst(p, ISA_VECTOR, ISA_COPY);
		in->compute.src0 = row(0x8004, 4);
		in->compute.dst = row(0x9000, 4);
		in->compute.shift[1] = 1;
		rec = run(r, p);
		assert_int_equal(rec.status, k ? EXI_FAULT_UNINITIALISED : EXI_OK);
		if (k)
			assert_int_equal(rec.value, EXI_PLACE(ISA_SPACE_SBUF, 0, 0x8020));
	}
}

static struct program *by_data(void)
{
	struct program *p = new_program();

	reg_set(p, ISA_SYNC, 1, 5);
	reg_load(p, ISA_SYNC, 1, at_slot(0, 0));
	reg_store(p, ISA_SYNC, 1, at_sbuf(3, 64));
	return p;
}

/* The launch runs, and says that it was not checked; what it wrote is not known to be unwritten. */
static void data_is_refused(void **state)
{
	struct rig *r = *state;
	struct program *p;
	struct exi_record rec = run(r, by_data());

	assert_int_equal(rec.status, EXI_FAULT_UNCHECKED);
	assert_int_equal(rec.engine, ISA_SYNC);
	assert_int_equal(rec.pc, 1);
	assert_int_equal(rec.opcode, ISA_REG_LOAD);
	assert_int_equal(rec.value, 1);
	assert_int_equal(rec.limit, EXI_OTHER_NONE);
	assert_int_equal(rec.insts[ISA_SYNC], 4);
	assert_true(logged(r, "what follows sync engine, instruction 1 (reg_load) is not checked: "
			      "it "
			      "depends on data"));
	p = new_program();
	asm_dma(p, ISA_SYNC, 0, 4, asm_flat(1, 0, 1, 4), asm_chip(ISA_SPACE_SBUF, 3, 1, 64, 1, 4));
	assert_ok(run(r, p));
}

static void warnings_let_it_succeed(void **state)
{
	struct rig *r = rig_create_checking(NM_CHECK_ALL | NM_CHECK_WARN);

	(void)state;
	rig_queue(r, 0, 1);
	assert_ok(run(r, by_data()));
	assert_int_equal(r->logged, 1);
	rig_destroy(r);
}

/* Nor is it followed for ever. */
static void long_loops_are_refused(void **state)
{
	struct rig *r = *state;
	struct program *p = new_program();
	struct exi_record rec;

	reg_imm(p, ISA_SYNC, ISA_ADD, 1, 1, 1);
	reg_until(p, ISA_SYNC, 1, 20000, 0);
	assert_ok(run(r, p));
	p = new_program();
	reg_imm(p, ISA_SYNC, ISA_ADD, 1, 1, 1);
	reg_until(p, ISA_SYNC, 1, 40000, 0);
	rec = run(r, p);
	assert_int_equal(rec.status, EXI_FAULT_UNCHECKED);
	assert_int_equal(rec.value, 65536);
	assert_int_equal(rec.insts[ISA_SYNC], 80001);
	assert_true(logged(r, "the loop is too long"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(loops_are_followed),      TEST(deadlocks_in_loops),
		TEST(moved_reads_of_nothing),  TEST(data_is_refused),
		TEST(warnings_let_it_succeed), TEST(long_loops_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
