/* SPDX-License-Identifier: Apache-2.0 */
/* Part of decode_compute.c, which includes it once: operands that registers move. */
#ifndef NM_DECODE_SHIFT_H
#define NM_DECODE_SHIFT_H

/* The operand o, if it is used, begins as many elements later as register reg says. */
static int take_shift(struct body *b, struct nm_shifts *s, unsigned int reg, struct nm_operand *o)
{
	struct nm_shift *shift = &s->shift[s->n];
	unsigned int i = 0;

	if (reg == 0)
		return 0;
	if (reg >= ISA_REGISTERS)
		return bad(b, reg, ISA_REGISTERS);
	while (i < b->d->n_reaches && b->d->reach[i].operand != o)
		i++;
	/* The instruction has no such operand. */
	if (i == b->d->n_reaches)
		return bad(b, reg, 0);
	*shift = (struct nm_shift){
		.reg = (uint8_t)reg,
		.bytes = o->bytes,
		.bank = b->d->engine == ISA_TENSOR && o->space == ISA_SPACE_PSUM,
		.operand = (uint16_t)((uint8_t *)o - (uint8_t *)b->c),
		.reach = b->d->reach[i].reach,
	};
	s->n++;
	/* It may be written, and anywhere. */
	note_write(b, o, space_bytes(b, o->space));
	return 0;
}

/*
 * Whether dst may overlap a source that it did not overlap, or that it was, before registers moved the
 * two.
 */
static bool may_interfere(const struct body *b, unsigned int reg, const struct nm_operand *o)
{
	const struct nm_operand *dst = &b->c->dst;
	const unsigned int dst_reg = b->in->shift[0];

	if (dst->bytes == 0 || o->bytes == 0 || dst->space != o->space)
		return false;
	return dst_reg != reg || (reg && dst->bytes != o->bytes);
}

static int take_shifts(struct body *b, struct nm_shifts *s)
{
	const struct isa_compute *in = b->in;
	struct nm_compute *c = b->c;
	/* RANGE_SELECT and *_REDUCE have their reduction in the place of src1 or vec1, MX has scales. */
	struct nm_operand *src1 = b->inst->opcode == ISA_RANGE_SELECT ? &c->row : &c->src1;
	struct nm_operand *vec1 = c->s1.vec.bytes ? &c->s1.vec :
				  c->scale.bytes  ? &c->scale :
						    &c->row;
	int ret = take_shift(b, s, in->shift[0], &c->dst)	       ?:
			  take_shift(b, s, in->shift[1], &c->src0)     ?:
			  take_shift(b, s, in->shift[2], src1)	       ?:
			  take_shift(b, s, in->vec0.shift, &c->s0.vec) ?:
			  take_shift(b, s, in->vec1.shift, vec1);

	if (ret)
		return ret;
	/* Onto itself, or apart, as without registers. */
	if (b->inst->opcode == ISA_STREAM_SHUFFLE && in->shift[0] != in->shift[1])
		return bad(b, in->shift[0], in->shift[1]);
	if (may_interfere(b, in->shift[1], &c->src0) || may_interfere(b, in->shift[2], &c->src1))
		c->buffered = true;
	c->shifts = s;
	return 0;
}

/* Which bank of PSUM a moved operand is in is not known when the instruction asks for it: all of them. */
static void hold_all_banks(struct nm_inst *out)
{
	const uint32_t banks = ((1u << ISA_PSUM_BANKS) - 1) << NM_PORT_PSUM(0);

	if (out->ports & banks)
		out->ports |= banks;
}

#endif /* NM_DECODE_SHIFT_H */
