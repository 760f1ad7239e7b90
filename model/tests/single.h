/* SPDX-License-Identifier: Apache-2.0 */
/* One instruction at a time: what the decoder says of it, and what the checking mode sees it touch. */
#ifndef TEST_SINGLE_H
#define TEST_SINGLE_H

#include "decode.h"
#include "rig.h"

static inline struct nm_fault judge_on(uint32_t arch, unsigned int engine,
				       const struct isa_inst *in)
{
	struct program *p = calloc(1, sizeof(*p));
	struct nm_fault fault = { 0 };
	struct nm_program *decoded;
	size_t size;
	void *image;
	int ret;

	*asm_inst(p, engine, in->opcode) = *in;
	p->arch = arch;
	image = asm_finish(p, &size);
	ret = nm_decode(image, size, arch, &decoded, &fault);
	assert_int_equal(ret, fault.status ? -EINVAL : 0);
	nm_program_free(decoded);
	free(image);
	free(p);
	return fault;
}

static inline struct nm_fault judge(unsigned int engine, const struct isa_inst *in)
{
	return judge_on(RIG_ARCH, engine, in);
}

/* base, which is a good instruction of the engine, is refused with the change to *i. */
#define REFUSE_ON(eng, base, change, st, val, lim)                                                \
	do {                                                                                      \
		struct isa_inst inst = (base), *i = &inst;                                        \
		struct nm_fault f = judge(eng, i);                                                \
                                                                                                  \
		if (f.status)                                                                     \
			fail_msg("refused as it is: status %u, value 0x%llx, limit 0x%llx",       \
				 f.status, (unsigned long long)f.value,                           \
				 (unsigned long long)f.limit);                                    \
		change;                                                                           \
		f = judge(eng, i);                                                                \
		if (f.status != (st) || f.value != (uint64_t)(val) || f.limit != (uint64_t)(lim)) \
			fail_msg("%s: status %u, value 0x%llx, limit 0x%llx", #change, f.status,  \
				 (unsigned long long)f.value, (unsigned long long)f.limit);       \
	} while (0)
#define REFUSE(base, change, val, lim) \
	REFUSE_ON(ISA_VECTOR, base, change, EXI_FAULT_BAD_OPERAND, val, lim)
#define REFUSE_BOUNDS(base, change, val, lim) \
	REFUSE_ON(ISA_VECTOR, base, change, EXI_FAULT_TILE_BOUNDS, val, lim)

/* What an engine of a chip, of a clock of hz, takes for the instruction: cycles, and those of HALT. */
static inline void expect_cycles_on(uint32_t arch, unsigned int engine, const struct isa_inst *in,
				    uint64_t cycles, uint64_t hz)
{
	struct rig *r = rig_create_of(arch, 0, NULL);
	struct program *p = calloc(1, sizeof(*p));
	struct exi_record rec;

	*asm_inst(p, engine, in->opcode) = *in;
	rig_queue(r, 0, 1);
	rec = rig_program(r, p, NULL);
	free(p);
	assert_int_equal(rec.status, EXI_OK);
	assert_uint_in_range(rec.busy_ns[engine], cycles * 1000000000 / hz,
			     (cycles + 32) * 1000000000 / hz + 1);
	rig_destroy(r);
}

static inline void expect_cycles(uint32_t arch, const struct isa_inst *in, uint64_t cycles,
				 uint64_t hz)
{
	expect_cycles_on(arch, ISA_VECTOR, in, cycles, hz);
}

/* --- reads and writes ------------------------------------------------------------------------- */

enum access { NOTHING, READ, WRITTEN };

/* A transfer of one byte of the chip that nothing orders against the instruction. */
static inline bool races(struct rig *r, unsigned int engine, const struct isa_inst *in,
			 unsigned int space, unsigned int part, uint32_t byte, bool write)
{
	static const struct exi_slot slot = { .size = 64,
					      .rights = EXI_SLOT_READ | EXI_SLOT_WRITE };
	struct program *p = calloc(1, sizeof(*p));
	struct isa_dma_side chip = asm_chip(space, part, 1, byte, 1, 1);
	struct exi_record rec;

	*asm_inst(p, engine, in->opcode) = *in;
	asm_slot(p, NPROG_SLOT_INOUT, slot.size);
	if (write)
		asm_dma(p, ISA_SYNC, 0, 1, chip, asm_flat(0, 0, 1, 1));
	else
		asm_dma(p, ISA_SYNC, 0, 1, asm_flat(0, 0, 1, 1), chip);
	rec = rig_program(r, p, &slot);
	free(p);
	if (rec.status == EXI_OK)
		return false;
	assert_int_equal(rec.status, EXI_FAULT_RACE);
	rig_set(r, 0, EXI_Q_CONTROL, EXI_Q_RESET);
	rig_queue(r, 0, 1);
	return true;
}

/* What the checking mode takes the instruction to do with a byte; r checks for races only. */
static inline enum access access_of(struct rig *r, unsigned int engine, const struct isa_inst *in,
				    unsigned int space, unsigned int part, uint32_t byte)
{
	if (races(r, engine, in, space, part, byte, false))
		return WRITTEN;
	return races(r, engine, in, space, part, byte, true) ? READ : NOTHING;
}

/* Bytes from..to-1 of partitions first..last are accessed so, and no byte around them is. */
static inline void expect_access(struct rig *r, unsigned int engine, const struct isa_inst *in,
				 unsigned int space, unsigned int first, unsigned int last,
				 uint32_t from, uint32_t to, enum access want)
{
	assert_int_equal(access_of(r, engine, in, space, first, from), want);
	assert_int_equal(access_of(r, engine, in, space, last, to - 1), want);
	if (from)
		assert_int_equal(access_of(r, engine, in, space, first, from - 1), NOTHING);
	assert_int_equal(access_of(r, engine, in, space, last, to), NOTHING);
	assert_int_equal(access_of(r, engine, in, space, last + 1, from), NOTHING);
}

static inline int racing_setup(void **state)
{
	struct rig *r = rig_create_checking(NM_CHECK_RACE);

	rig_queue(r, 0, 1);
	*state = r;
	return 0;
}

#endif /* TEST_SINGLE_H */
