// SPDX-License-Identifier: Apache-2.0
/* Instructions on registers, and whether those move the operands of others. */
#include "decode.h"

#include "neuron_program_check.h"

bool nm_is_shifted(const struct isa_inst *in)
{
	const struct isa_compute *c = &in->compute;

	if (in->opcode == ISA_DMA)
		return in->dma.dst.shift || in->dma.src.shift;
	if (in->opcode < ISA_MEMSET || isa_is_reg(in->opcode))
		return false;
	return c->shift[0] || c->shift[1] || c->shift[2] || c->vec0.shift || c->vec1.shift;
}

static int bad(struct nm_decoder *d, uint64_t value, uint64_t limit)
{
	return nm_decode_fault(d, EXI_FAULT_BAD_OPERAND, value, limit);
}

/* Which fields an instruction uses; the others are zero. */
struct uses {
	bool dst, a, b, op, target, place;
};

static const struct uses uses_of[] = {
	[ISA_REG_MOVE - ISA_REG_MOVE] = { .dst = true, .b = true },
	[ISA_REG_ALU - ISA_REG_MOVE] = { .dst = true, .a = true, .b = true, .op = true },
	[ISA_REG_LOAD - ISA_REG_MOVE] = { .dst = true, .place = true },
	[ISA_REG_STORE - ISA_REG_MOVE] = { .a = true, .place = true },
	[ISA_BRANCH - ISA_REG_MOVE] = { .a = true, .b = true, .op = true, .target = true },
};

/* A register that is read. */
static int check_register(struct nm_decoder *d, bool used, unsigned int reg)
{
	if (!used && reg)
		return bad(d, reg, 0);
	return reg < ISA_REGISTERS ? 0 : bad(d, reg, ISA_REGISTERS);
}

static int check_registers(struct nm_decoder *d, const struct isa_inst *in, const struct uses *uses)
{
	const struct isa_reg *r = &in->reg;
	const bool immediate = in->flags & ISA_F_IMM;

	/* Register 0 stays 0. */
	if (uses->dst && (r->dst == 0 || r->dst >= ISA_REGISTERS))
		return bad(d, r->dst, ISA_REGISTERS);
	if (!uses->dst && r->dst)
		return bad(d, r->dst, 0);
	if (immediate && !uses->b)
		return bad(d, in->flags, in->flags & ~ISA_F_IMM);
	if (!immediate && r->imm)
		return bad(d, r->imm, 0);
	return check_register(d, uses->a, r->a) ?: check_register(d, uses->b && !immediate, r->b);
}

/* What sequencers need to count, to address and to compare; none is said to divide. */
static int check_op(struct nm_decoder *d, const struct isa_reg *r, const struct uses *uses)
{
	if (!uses->op)
		return r->op ? bad(d, r->op, 0) : 0;
	if (uses->target)
		return r->op >= ISA_IS_EQ && r->op <= ISA_IS_LE ? 0 : bad(d, r->op, ISA_IS_LE);
	if (r->op >= ISA_ALU_OPS)
		return bad(d, r->op, ISA_ALU_OPS);
	return r->op == ISA_DIV || r->op == ISA_MOD || r->op == ISA_POW ? bad(d, r->op, ISA_ADD) :
									  0;
}

static int take_place(struct nm_decoder *d, const struct isa_reg *in, struct nm_reg *out)
{
	const struct isa_place *p = &in->place;

	out->dtype = p->dtype;
	out->bytes = (uint8_t)isa_dtype_bytes(p->dtype);
	if (out->bytes == 0 || out->bytes > sizeof(int32_t))
		return bad(d, p->dtype, ISA_INT32);
	if (p->pad0[0] || p->pad0[1])
		return bad(d, p->pad0[0] | p->pad0[1], 0);
	return nm_decode_place(d, p, d->opcode == ISA_REG_STORE, &out->place);
}

int nm_decode_reg(struct nm_decoder *d, const struct isa_inst *in, struct nm_reg *reg)
{
	const struct uses *uses = &uses_of[in->opcode - ISA_REG_MOVE];
	const struct isa_reg *r = &in->reg;
	/* All of the body behind the fields that are used. */
	const size_t used =
		__builtin_offsetof(struct isa_reg, place) + (uses->place ? sizeof(r->place) : 0);
	uint32_t i;
	int ret = check_registers(d, in, uses) ?: check_op(d, r, uses);

	if (ret)
		return ret;
	i = nprog_zero_until(r->pad0, sizeof(r->pad0));
	if (i < sizeof(r->pad0))
		return bad(d, r->pad0[i], 0);
	i = nprog_zero_until(in->body + used, (uint32_t)(sizeof(in->body) - used));
	if (i < sizeof(in->body) - used)
		return bad(d, in->body[used + i], 0);
	if (uses->target ? r->target >= d->count : r->target != 0)
		return bad(d, r->target, uses->target ? d->count : 0);
	*reg = (struct nm_reg){ .dst = r->dst,
				.a = r->a,
				.b = r->b,
				.op = r->op,
				.immediate = in->flags & ISA_F_IMM,
				.imm = (int32_t)r->imm,
				.target = r->target };
	if (uses->target) {
		d->program->branches = true;
		/* What is loaded next need not come behind the product before it in the stream. */
		nm_forget_products(d);
	}
	return uses->place ? take_place(d, r, reg) : 0;
}
