/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one launch did when, and why not earlier: a node for each instruction, each with the one that
 * it waited for last. The sequencers fill it in; report.c walks it.
 */
#ifndef NM_CHAIN_H
#define NM_CHAIN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "timing.h"

#define NM_NODE_NONE UINT32_MAX
#define NM_CHAIN_MAX (1u << 21) /* nodes: a loop may have no end */

enum nm_why {
	NM_WHY_LAUNCH, /* nothing before it */
	NM_WHY_ENGINE, /* the instruction before it on its engine */
	NM_WHY_SEMAPHORE, /* the update that made its wait hold */
	NM_WHY_QUEUE, /* transfers: the one before it in its queue */
	NM_WHY_DMA, /* transfers: all DMA engines were busy, this one longest */
	NM_WHY_HBM, /* transfers: the core's share of HBM's bandwidth was used up */
	NM_WHY_PORT, /* another engine had the shared access to SBUF or to a bank of PSUM, or a product its part of
		      * the array */
	NM_WHYS,
};

struct nm_node {
	uint64_t start_ps; /* issued */
	uint64_t free_ps; /* its engine goes on */
	uint64_t data_ps; /* transfers: first byte */
	uint64_t end_ps; /* effects visible, updates made */
	uint32_t pc;
	uint32_t cause; /* node that start_ps waited for */
	uint32_t data_cause; /* transfers: that data_ps waited for; NM_NODE_NONE: its own issue */
	uint8_t engine;
	uint8_t opcode;
	uint8_t why, data_why;
	uint8_t sem;
};

struct nm_chain {
	struct nm_node *node;
	uint32_t n, max;
	bool failed; /* no memory, or too many nodes: it ends early */
	uint32_t last; /* the node whose end is the launch's */
	uint64_t begin_ps;
	const struct nm_timing *timing; /* of the core */

	/* Of the run. */
	uint32_t waker; /* whose updates are being made */
	uint8_t waker_sem;
	uint32_t before[5]; /* on each engine */
	uint32_t queue[16], dma[16]; /* in each queue, on each DMA engine */
	uint32_t port[NM_PORTS]; /* with shared access to SBUF and PSUM, and with parts of the array */
	uint32_t hbm;
	uint32_t cause[5]; /* of what each engine issues next */
	uint8_t why[5], sem[5];
};

/* A new node, or a scratch one when memory is short. */
static inline struct nm_node *nm_chain_add(struct nm_chain *t)
{
	static _Thread_local struct nm_node scratch;

	if (t->n == t->max && t->max < NM_CHAIN_MAX && !t->failed) {
		uint32_t max = t->max ? 2 * t->max : 1024;
		struct nm_node *node = reallocarray(t->node, max, sizeof(*node));

		if (node) {
			t->node = node;
			t->max = max;
		}
	}
	if (t->n == t->max) {
		t->failed = true;
		return &scratch;
	}
	return &t->node[t->n++];
}

#endif /* NM_CHAIN_H */
