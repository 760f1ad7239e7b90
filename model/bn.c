// SPDX-License-Identifier: Apache-2.0
/*
 * Mean and variance of rows, in groups of count, mean and variance times count. The mean comes first
 * and differences from it are squared, so that a large mean costs no digits of a small variance.
 */
#include "exec.h"

/* Sum of n elements in the order of REDUCE. */
static float sum(const struct nm_exec *x, const float *a, uint32_t n)
{
	float lanes[NM_LANES] = { 0 };

	nm_reduce_row(x, ISA_CT_F32, ISA_ADD, a, n, lanes);
	return lanes[0];
}

/* Group of n elements, which are used up. */
static void describe(const struct nm_exec *x, float *a, uint32_t n, float *group)
{
	group[0] = (float)n;
	group[1] = group[2] = 0;
	if (n == 0)
		return;
	group[1] = sum(x, a, n) / (float)n;
	x->rows->ts[ISA_CT_F32][ISA_SUB](a, a, &group[1], n);
	x->rows->tt[ISA_CT_F32][ISA_MULT](a, a, a, n);
	group[2] = sum(x, a, n);
}

void nm_exec_bn_stats(struct nm_exec *x, const struct nm_compute *c)
{
	float *data = (float *)x->buffer[0], *half = (float *)x->buffer[1];
	float stats[ISA_BN_STATS_ELEMS];

	for (unsigned int p = 0; p < c->nparts; p++) {
		nm_fetch(x, c->ct, &c->src0, &c->nest, p, data);
		for (uint32_t odd = 0; odd < 2; odd++) {
			uint32_t n = 0;

			for (uint32_t i = odd; i < c->n; i += 2)
				half[n++] = data[i];
			describe(x, half, n, stats + odd * ISA_BN_GROUP);
		}
		nm_put(x, c->ct, &c->dst, &c->dst_nest, p, stats);
	}
}

void nm_exec_bn_aggr(struct nm_exec *x, const struct nm_compute *c)
{
	const float *data = (const float *)x->buffer[0];

	for (unsigned int p = 0; p < c->nparts; p++) {
		float total = 0, mean = 0, spread = 0, result[ISA_BN_AGGR_ELEMS];

		nm_fetch(x, c->ct, &c->src0, &c->nest, p, x->buffer[0]);
		for (const float *g = data; g < data + c->n; g += ISA_BN_GROUP) {
			total += g[0];
			mean += g[0] * g[1];
		}
		mean /= total;
		for (const float *g = data; g < data + c->n; g += ISA_BN_GROUP) {
			float apart = g[1] - mean;

			spread += g[2] + g[0] * (apart * apart);
		}
		result[0] = mean;
		result[1] = spread / total;
		nm_put(x, c->ct, &c->dst, &c->dst_nest, p, result);
	}
}
