/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tiles of a loop in flight at once. The kernels append the operations of one tile after the other,
 * and an engine takes its own in that order: where a tile goes from engine to engine, each would wait
 * for the other's part of it. Here the operations of up to TILES_MAX tiles in a row are put in the
 * order in which they could begin if the engines took turns, by a rough idea of how long each takes.
 *
 * What may change places: an operation stays behind those whose results it reads, and behind those
 * that read or write the buffers that it writes. Loads keep their order, stores keep theirs, and a
 * store stays behind the loads before it, which may read the same memory. What keeps something in
 * its engine beside memory stays in order, too.
 */
#include <string.h>

#include "lir.h"

#define TILES_MAX 4
/* Of SBUF, what the tiles in flight may take at once; the rest lets loads run ahead. */
#define LIVE_MAX(room) ((room) / 3 * 2)

/* Agents of the simulated clock: the engines, and the DMA engines together. */
#define DMA_AGENT 5

/* Ticks of 1/1.2 GHz, as lir_quarter_ticks() has quarters of. An instruction's access of memory, and the latency of a
 * transfer of 2 us; see the model's figures for sources. */
#define ACCESS_TICKS 60
#define DMA_TICKS    2400

struct edge {
	uint32_t to; /* operation that stays behind */
	uint32_t next; /* of the same operation's edges */
	bool data; /* it begins only when this one is done, too */
};

struct buf_use {
	uint32_t last_write;
	uint32_t reads; /* head of a list since then */
};

struct read {
	uint32_t op, next;
};

/* The operations first .. first + n - 1 of lir, numbered from 0. */
struct order {
	struct lir *lir;
	uint32_t first, n;
	const uint32_t *tile; /* of each operation */
	uint32_t *edges; /* head of each operation's list */
	struct edge *edge;
	uint32_t n_edges, cap_edges;
	uint32_t *blockers; /* operations that each is behind */
	uint64_t *ticks; /* of each */
	/* One run: */
	uint32_t *blocked; /* by how many that have no place yet */
	uint64_t *ready; /* earliest begin */
	uint32_t *open; /* operations that may be next */
	uint32_t n_open;
	uint32_t *result;
};

static const struct lop *op_of(const struct order *o, uint32_t i)
{
	return &o->lir->ops[o->first + i];
}

/* --- dependences ---------------------------------------------------------------------------- */

static void add_edge(struct order *o, uint32_t from, uint32_t to, bool data)
{
	if (from == LIR_NONE || from == to)
		return;
	o->edge = nci_grow(o->lir->ctx, o->edge, &o->cap_edges, o->n_edges + 1, sizeof(*o->edge));
	o->edge[o->n_edges] = (struct edge){ to, o->edges[from], data };
	o->edges[from] = o->n_edges++;
	o->blockers[to]++;
}

static void buffer_edges(struct order *o)
{
	struct nc_ctx *ctx = o->lir->ctx;
	struct buf_use *use = nci_alloc(ctx, o->lir->n_bufs * sizeof(*use));
	struct read *reads = NULL;
	uint32_t n_reads = 0, cap_reads = 0;

	for (uint32_t b = 0; b < o->lir->n_bufs; b++)
		use[b] = (struct buf_use){ LIR_NONE, LIR_NONE };
	for (uint32_t i = 0; i < o->n; i++) {
		struct access acc[LIR_ACCESSES];
		uint32_t n = lir_accesses(op_of(o, i), acc);

		for (uint32_t j = 0; j < n; j++) {
			struct buf_use *u = &use[acc[j].buf];

			add_edge(o, u->last_write, i, true);
			for (uint32_t r = u->reads; acc[j].write && r != LIR_NONE;
			     r = reads[r].next)
				add_edge(o, reads[r].op, i, true);
			if (acc[j].write)
				continue;
			reads = nci_grow(ctx, reads, &cap_reads, n_reads + 1, sizeof(*reads));
			reads[n_reads] = (struct read){ i, u->reads };
			u->reads = n_reads++;
		}
		for (uint32_t j = 0; j < n; j++)
			if (acc[j].write)
				use[acc[j].buf] = (struct buf_use){ i, LIR_NONE };
	}
}

/* Does the operation use what is in the engine: a stationary operand, a running result, generators? */
static bool keeps_state(const struct lop *op)
{
	return op->engine == ISA_TENSOR || op->opcode == ISA_TENSOR_SCALAR_CUMULATIVE ||
	       (op->opcode >= ISA_SET_RNG_SEED && op->opcode <= ISA_DROPOUT);
}

static void order_edges(struct order *o)
{
	uint32_t last_load = LIR_NONE, last_store = LIR_NONE;
	uint32_t last[5] = { LIR_NONE, LIR_NONE, LIR_NONE, LIR_NONE, LIR_NONE };

	for (uint32_t i = 0; i < o->n; i++) {
		const struct lop *op = op_of(o, i);

		if (isa_is_dma(op->opcode) && op->engine == LIR_STORE_ENGINE) {
			add_edge(o, last_load, i, false);
			add_edge(o, last_store, i, false);
			last_store = i;
		} else if (isa_is_dma(op->opcode)) {
			add_edge(o, last_load, i, false);
			last_load = i;
		} else if (keeps_state(op)) {
			add_edge(o, last[op->engine], i, false);
			last[op->engine] = i;
		}
	}
}

/* --- the clock ------------------------------------------------------------------------------ */

static uint64_t tile_elems(const struct ltile *t)
{
	uint64_t n = 1;

	for (uint32_t i = 0; t->buf != LIR_NONE && i < ISA_TILE_DIMS; i++)
		n *= t->count[i];
	return n;
}

static uint64_t dma_bytes(const struct lop *op)
{
	const struct lside *chip = op->to.buf != LIR_NONE ? &op->to : &op->from;
	uint64_t n = op->elem_bytes;

	for (uint32_t i = 0; i < chip->ndim; i++)
		n *= chip->count[i];
	return n;
}

static uint64_t ticks_of(const struct lop *op)
{
	uint64_t n;

	if (isa_is_dma(op->opcode))
		return dma_bytes(op) * 12 / LIR_DMA_BYTES_12_TICKS;
	n = nci_max((int64_t)tile_elems(&op->dst), (int64_t)tile_elems(&op->src0));
	return lir_quarter_ticks(op->engine, n) / 4 + ACCESS_TICKS;
}

static uint32_t agent_of(const struct lop *op)
{
	return isa_is_dma(op->opcode) ? DMA_AGENT : op->engine;
}

/* --- one run -------------------------------------------------------------------------------- */

/* The open operation of the tiles before end that can begin first; of several the earliest. */
static uint32_t pick(const struct order *o, const uint64_t *free, uint32_t end)
{
	uint32_t best = LIR_NONE;
	uint64_t best_begin = 0;

	for (uint32_t k = 0; k < o->n_open; k++) {
		uint32_t i = o->open[k];
		uint64_t begin = free[agent_of(op_of(o, i))];

		if (o->tile[i] >= end)
			continue;
		if (o->ready[i] > begin)
			begin = o->ready[i];
		if (best == LIR_NONE || begin < best_begin ||
		    (begin == best_begin && i < o->open[best])) {
			best = k;
			best_begin = begin;
		}
	}
	return best;
}

static void put(struct order *o, uint32_t k, uint64_t *free)
{
	uint32_t i = o->open[k], agent = agent_of(op_of(o, i));
	uint64_t begin = o->ready[i] > free[agent] ? o->ready[i] : free[agent];
	uint64_t done;

	free[agent] = begin + o->ticks[i];
	done = free[agent] + (agent == DMA_AGENT ? DMA_TICKS : ACCESS_TICKS);
	o->open[k] = o->open[--o->n_open];
	for (uint32_t e = o->edges[i]; e != LIR_NONE; e = o->edge[e].next) {
		uint32_t to = o->edge[e].to;

		if (o->edge[e].data && o->ready[to] < done)
			o->ready[to] = done;
		if (!--o->blocked[to])
			o->open[o->n_open++] = to;
	}
}

/* The order with so many tiles in flight. */
static void run(struct order *o, uint32_t tiles)
{
	uint64_t free[DMA_AGENT + 1] = { 0 };
	uint32_t n_tiles = o->tile[o->n - 1] + 1, oldest = 0;
	uint32_t *left = nci_alloc(o->lir->ctx, n_tiles * sizeof(*left));

	o->n_open = 0;
	for (uint32_t i = 0; i < o->n; i++) {
		left[o->tile[i]]++;
		o->blocked[i] = o->blockers[i];
		o->ready[i] = 0;
		if (!o->blocked[i])
			o->open[o->n_open++] = i;
	}
	for (uint32_t at = 0; at < o->n; at++) {
		uint32_t k;

		while (!left[oldest])
			oldest++;
		k = pick(o, free, oldest + tiles);
		o->result[at] = o->open[k];
		left[o->tile[o->open[k]]]--;
		put(o, k, free);
	}
}

/* Most bytes of a partition of a space that the order needs at once. */
static uint64_t peak(const struct order *o, uint32_t space)
{
	struct lir *lir = o->lir;
	uint32_t *last = nci_alloc(lir->ctx, lir->n_bufs * sizeof(*last));
	bool *begun = nci_alloc(lir->ctx, lir->n_bufs * sizeof(*begun));
	uint64_t live = 0, most = 0;

	for (int pass = 0; pass < 2; pass++)
		for (uint32_t at = 0; at < o->n; at++) {
			struct access acc[LIR_ACCESSES];
			uint32_t n = lir_accesses(op_of(o, o->result[at]), acc);

			for (uint32_t j = 0; j < n; j++) {
				const struct lbuf *buf = &lir->bufs[acc[j].buf];

				if (buf->space != space)
					continue;
				if (!pass) {
					last[acc[j].buf] = at;
				} else if (!begun[acc[j].buf]) {
					begun[acc[j].buf] = true;
					live += buf->bytes;
				}
			}
			most = live > most ? live : most;
			for (uint32_t j = 0; pass && j < n; j++)
				if (lir->bufs[acc[j].buf].space == space &&
				    last[acc[j].buf] == at) {
					last[acc[j].buf] = LIR_NONE;
					live -= lir->bufs[acc[j].buf].bytes;
				}
		}
	return most;
}

static void apply(struct order *o)
{
	struct lop *ops = nci_alloc(o->lir->ctx, o->n * sizeof(*ops));

	if (!o->lir->in_order) {
		o->lir->in_order = nci_alloc(o->lir->ctx, o->lir->n_ops * sizeof(*ops));
		memcpy(o->lir->in_order, o->lir->ops, o->lir->n_ops * sizeof(*ops));
	}
	for (uint32_t at = 0; at < o->n; at++)
		ops[at] = *op_of(o, o->result[at]);
	memcpy(o->lir->ops + o->first, ops, o->n * sizeof(*ops));
}

/* One loop: operations first .. first + n - 1, those of a tile in a row. */
static void interleave(struct lir *lir, uint32_t first, uint32_t n, const uint32_t *tile)
{
	struct nc_ctx *ctx = lir->ctx;
	struct order o = { .lir = lir, .first = first, .n = n, .tile = tile };

	o.edges = nci_alloc(ctx, n * sizeof(*o.edges));
	memset(o.edges, 0xff, n * sizeof(*o.edges));
	o.blockers = nci_alloc(ctx, n * sizeof(*o.blockers));
	o.blocked = nci_alloc(ctx, n * sizeof(*o.blocked));
	o.ticks = nci_alloc(ctx, n * sizeof(*o.ticks));
	o.ready = nci_alloc(ctx, n * sizeof(*o.ready));
	o.open = nci_alloc(ctx, n * sizeof(*o.open));
	o.result = nci_alloc(ctx, n * sizeof(*o.result));
	buffer_edges(&o);
	order_edges(&o);
	for (uint32_t i = 0; i < n; i++)
		o.ticks[i] = ticks_of(op_of(&o, i));
	for (uint32_t tiles = TILES_MAX; tiles > 1; tiles--) {
		run(&o, tiles);
		if (peak(&o, ISA_SPACE_SBUF) > LIVE_MAX(ctx->target.sbuf_bytes) ||
		    peak(&o, ISA_SPACE_PSUM) > LIVE_MAX(ctx->target.psum_bytes))
			continue;
		apply(&o);
		return;
	}
}

void nci_interleave(struct lir *lir)
{
	uint32_t *tile = nci_alloc(lir->ctx, (lir->n_ops + 1) * sizeof(*tile)), end;

	for (uint32_t first = 0; first < lir->n_ops; first = end) {
		const struct lop *op = &lir->ops[first];

		for (end = first; end < lir->n_ops && lir->ops[end].group == op->group &&
				  !lir->ops[end].tile == !op->tile;
		     end++)
			tile[end - first] = lir->ops[end].tile - op->tile;
		if (op->tile && tile[end - first - 1])
			interleave(lir, first, end - first, tile);
	}
}
