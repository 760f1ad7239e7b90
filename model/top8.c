// SPDX-License-Identifier: Apache-2.0
/*
 * The eight largest elements of a partition, and where given ones lie. Together they take a NaN for
 * the largest of all numbers and equal to any other, so that a program can take the top elements of
 * a row, eight at a time, whatever is in it.
 */
#include <math.h>
#include <string.h>

#include "exec.h"

#define NOWHERE UINT32_MAX /* index of a value that is not there; all ones in any dtype */

static bool is_above(float a, float b)
{
	return a > b || (isnan(a) && !isnan(b));
}

static bool is_same(float a, float b)
{
	return a == b || (isnan(a) && isnan(b));
}

/* Of equal ones, those that come first. n is at least ISA_TOP. */
static void largest(const float *data, uint32_t n, float *top)
{
	unsigned int have = 0;

	for (uint32_t i = 0; i < n; i++) {
		unsigned int at = have;

		if (have == ISA_TOP && !is_above(data[i], top[ISA_TOP - 1]))
			continue;
		if (have < ISA_TOP)
			have++;
		else
			at--;
		for (; at > 0 && is_above(data[i], top[at - 1]); at--)
			top[at] = top[at - 1];
		top[at] = data[i];
	}
}

static bool contains(const uint32_t *index, unsigned int n, uint32_t i)
{
	while (n--)
		if (index[n] == i)
			return true;
	return false;
}

/* The first element that is value and not among the n_taken ones of taken. */
static uint32_t find(const float *data, uint32_t n, float value, const uint32_t *taken,
		     unsigned int n_taken)
{
	for (uint32_t i = 0; i < n; i++)
		if (is_same(data[i], value) && !contains(taken, n_taken, i))
			return i;
	return NOWHERE;
}

static void store_indices(const struct nm_exec *x, const struct nm_operand *o,
			  const struct nm_nest *nest, unsigned int partition, const uint32_t *index)
{
	/* All ones keep all their bits when they are made shorter. */
	nm_put(x, ISA_CT_I32, o, nest, partition, index);
}

void nm_exec_max8(struct nm_exec *x, const struct nm_compute *c)
{
	float *data = (float *)x->buffer[0], top[ISA_TOP] = { 0 };

	for (unsigned int p = 0; p < c->nparts; p++) {
		nm_fetch(x, c->ct, &c->src0, &c->nest, p, data);
		largest(data, c->n, top);
		nm_put(x, c->ct, &c->dst, &c->dst_nest, p, top);
	}
}

void nm_exec_find_index8(struct nm_exec *x, const struct nm_compute *c)
{
	float *data = (float *)x->buffer[0], value[ISA_TOP];
	uint32_t index[ISA_TOP];

	for (unsigned int p = 0; p < c->nparts; p++) {
		nm_fetch(x, c->ct, &c->src0, &c->nest, p, data);
		nm_fetch(x, c->ct, &c->src1, &c->dst_nest, p, value);
		for (unsigned int i = 0; i < ISA_TOP; i++)
			index[i] = find(data, c->n, value[i], index, i);
		store_indices(x, &c->dst, &c->dst_nest, p, index);
	}
}

/* Goes through the values from the last to the first, as nki.isa.nc_match_replace8 does. */
static void match(const float *data, uint32_t n, const float *value, uint32_t *index)
{
	for (unsigned int i = ISA_TOP; i-- > 0;)
		index[i] = find(data, n, value[i], index + i + 1, ISA_TOP - 1 - i);
}

void nm_exec_match_replace8(struct nm_exec *x, const struct nm_compute *c)
{
	float *data = (float *)x->buffer[0], value[ISA_TOP], replacement;
	struct nm_nest row = { .ndim = 1, .count = { ISA_TOP } };
	struct nm_operand where = c->s1.vec;
	uint32_t index[ISA_TOP];

	where.step[0] = where.bytes;
	memcpy(&replacement, &c->s0.imm, sizeof(replacement));
	for (unsigned int p = 0; p < c->nparts; p++) {
		nm_fetch(x, c->ct, &c->src0, &c->nest, p, data);
		nm_fetch(x, c->ct, &c->src1, &c->dst_nest, p, value);
		match(data, c->n, value, index);
		for (unsigned int i = 0; i < ISA_TOP; i++)
			if (index[i] != NOWHERE)
				data[index[i]] = replacement;
		nm_put(x, c->ct, &c->dst, &c->nest, p, data);
		if (where.bytes)
			store_indices(x, &where, &row, p, index);
	}
}
