// SPDX-License-Identifier: Apache-2.0
/*
 * What the compiler's kernels reach on the device's timing model; `make kernel-table`,
 * docs/kernel-table.md.
 *
 * Each row is a graph that goes through the compiler's public interface and runs once on core 0 of the
 * embedded trn2. Beside its device time stand three times below which no program could get: of the
 * engines at their peak (compute), of the DMA engines if each operand and result passed once (memory),
 * and of the shortest chain that any launch has (latency). The largest is the row's bound.
 *
 *	kernel_table [--check] [--long] [PATTERN...]
 *
 * PATTERN: only rows whose kernel or shape contains one of them. --long: also those that take minutes.
 * --check: fails if a row is below its target. Values stay zero: results are checked by the compiler's
 * tests, and times do not depend on them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <nrt/nrt_stream.h>

#include "neuron_compiler.h"
#include "timing.h"

#define SLOTS_MAX 16
#define DIMS_MAX  7
#define MIB	  (1 << 20)

/* Per cent of the bound that a row should reach. */
#define TARGET_COMPUTE	 90
#define TARGET_ATTENTION 65
#define TARGET_MEMORY	 85

/* A graph under construction, and what it costs at least. */
struct build {
	nc_graph *graph;
	nc_dtype dtype;
	const int64_t *dims; /* of the row */
	uint64_t slot_bytes[SLOTS_MAX];
	uint32_t n_slots;
	double skipped; /* bytes of the slots that need not pass */
	double macs; /* multiplications of the tensor engine */
	double passes; /* elements that vector, scalar or gpsimd must look at */
	double acts; /* of these, by activation functions, which scalar alone has */
	double ints; /* of these, of integers, which scalar does not have */
};

struct row {
	const char *kernel;
	const char *note; /* of the shape; NULL: none */
	nc_dtype dtype;
	int64_t dims[DIMS_MAX];
	void (*build)(struct build *b);
	double target; /* in per cent; 0: TARGET_MEMORY or _COMPUTE, by what bounds it */
	bool slow; /* only with --long */
};

/* --- graphs ------------------------------------------------------------------------------- */

static struct nc_type type_of(nc_dtype dtype, uint32_t nd, const int64_t *dims)
{
	struct nc_type type = { .dtype = dtype, .ndim = nd };

	memcpy(type.dims, dims, nd * sizeof(*dims));
	return type;
}

static double elems_of(const struct nc_type *type)
{
	double n = 1;

	for (uint32_t i = 0; i < type->ndim; i++)
		n *= (double)type->dims[i];
	return n;
}

static uint64_t bytes_of(const struct nc_type *type)
{
	switch (type->dtype) {
	case NC_BF16:
	case NC_FP16:
		return (uint64_t)elems_of(type) * 2;
	default: /* fp32 */
		return (uint64_t)elems_of(type) * 4;
	}
}

static void add_slot(struct build *b, const struct nc_type *type)
{
	if (b->n_slots == SLOTS_MAX) {
		fprintf(stderr, "kernel_table: more than %d slots\n", SLOTS_MAX);
		exit(1);
	}
	b->slot_bytes[b->n_slots++] = bytes_of(type);
}

#define DIMS(...) ((const int64_t[]){ __VA_ARGS__ })
#define INPUT(b, ...) \
	input(b, (uint32_t)(sizeof(DIMS(__VA_ARGS__)) / sizeof(int64_t)), DIMS(__VA_ARGS__))

static nc_value input(struct build *b, uint32_t nd, const int64_t *dims)
{
	struct nc_type type = type_of(b->dtype, nd, dims);

	add_slot(b, &type);
	return nc_input(b->graph, &type, NULL);
}

static void output(struct build *b, nc_value value)
{
	struct nc_type type = nc_type_of(b->graph, value);

	nc_output(b->graph, value, NULL, NC_NO_ALIAS);
	add_slot(b, &type);
}

static nc_value constant(struct build *b, double value)
{
	return nc_const_float(b->graph, b->dtype, (float)value);
}

static nc_value product(struct build *b, nc_value x, nc_value y)
{
	nc_value z = nc_matmul(b->graph, x, y);
	struct nc_type from = nc_type_of(b->graph, x), to = nc_type_of(b->graph, z);

	if (z) /* else nc_compile() tells why */
		b->macs += elems_of(&to) * (double)from.dims[from.ndim - 1];
	return z;
}

/* n passes over x, acts of them by activation functions. */
static void count(struct build *b, nc_value x, double n, double acts)
{
	struct nc_type type = nc_type_of(b->graph, x);

	b->passes += n * elems_of(&type);
	b->acts += acts * elems_of(&type);
}

/* dims: m, k, n */
static void matmul(struct build *b)
{
	nc_value x = INPUT(b, b->dims[0], b->dims[1]);
	nc_value y = INPUT(b, b->dims[1], b->dims[2]);

	output(b, product(b, x, y));
}

/* The second operand as PyTorch's Linear has it: [n, k]. */
static void linear(struct build *b)
{
	nc_value x = INPUT(b, b->dims[0], b->dims[1]);
	nc_value w = INPUT(b, b->dims[2], b->dims[1]);

	output(b, product(b, x, nc_permute(b->graph, w, (const uint32_t[]){ 1, 0 })));
}

/* dims: rows, columns; so are those of all that follow. */
static void add(struct build *b)
{
	nc_value x = INPUT(b, b->dims[0], b->dims[1]);
	nc_value y = INPUT(b, b->dims[0], b->dims[1]);

	count(b, x, 1, 0);
	output(b, nc_binary(b->graph, NC_ADD, x, y));
}

static void unary(struct build *b, nc_unary_op op)
{
	nc_value x = INPUT(b, b->dims[0], b->dims[1]);

	count(b, x, 1, 1);
	output(b, nc_unary(b->graph, op, x));
}

static void gelu(struct build *b)
{
	unary(b, NC_GELU);
}

static void exponential(struct build *b)
{
	unary(b, NC_EXP);
}

static nc_value softmax_of(struct build *b, nc_value x)
{
	nc_graph *g = b->graph;
	nc_value most, e;

	/* Maximum, exponential with its sum, quotient. */
	count(b, x, 3, 1);
	most = nc_reduce(g, NC_REDUCE_MAX, x, 2, true);
	e = nc_unary(g, NC_EXP, nc_binary(g, NC_SUB, x, most));
	return nc_binary(g, NC_DIV, e, nc_reduce(g, NC_REDUCE_SUM, e, 2, true));
}

static void softmax(struct build *b)
{
	output(b, softmax_of(b, INPUT(b, b->dims[0], b->dims[1])));
}

static nc_value mean(struct build *b, nc_value x)
{
	nc_value sum = nc_reduce(b->graph, NC_REDUCE_SUM, x, 2, true);

	return nc_binary(b->graph, NC_MUL, sum, constant(b, 1.0 / (double)b->dims[1]));
}

static void layer_norm(struct build *b)
{
	nc_graph *g = b->graph;
	nc_value x = INPUT(b, b->dims[0], b->dims[1]), w = INPUT(b, b->dims[1]);
	nc_value bias = INPUT(b, b->dims[1]), centred, scale;

	/* Sum, sum of squares, (x - mean) * scale, weight, bias. */
	count(b, x, 5, 0);
	centred = nc_binary(g, NC_SUB, x, mean(b, x));
	scale = mean(b, nc_unary(g, NC_SQUARE, centred));
	scale = nc_unary(g, NC_RSQRT, nc_binary(g, NC_ADD, scale, constant(b, 1e-5)));
	x = nc_binary(g, NC_MUL, centred, scale);
	output(b, nc_binary(g, NC_ADD, nc_binary(g, NC_MUL, x, w), bias));
}

static void sum(struct build *b, uint32_t axes)
{
	nc_value x = INPUT(b, b->dims[0], b->dims[1]);

	count(b, x, 1, 0);
	output(b, nc_reduce(b->graph, NC_REDUCE_SUM, x, axes, false));
}

static void sum_of_rows(struct build *b)
{
	sum(b, 2);
}

static void sum_of_columns(struct build *b)
{
	sum(b, 1);
}

static void running_sum(struct build *b, uint32_t dim)
{
	nc_value x = INPUT(b, b->dims[0], b->dims[1]);

	count(b, x, 1, 0);
	output(b, nc_scan(b->graph, NC_REDUCE_SUM, x, dim));
}

static void scan_of_rows(struct build *b)
{
	running_sum(b, 1);
}

static void scan_of_columns(struct build *b)
{
	running_sum(b, 0);
}

/* The selective scan of Mamba; dims: channels, states, steps. Four passes that no engine does in one: the input's
 * product with b, the recurrence, the product with c, its sum; and an exponential. */
static void mamba(struct build *b)
{
	int64_t channels = b->dims[0], states = b->dims[1], steps = b->dims[2];
	nc_value delta = INPUT(b, channels, 1, steps), u = INPUT(b, channels, 1, steps);
	nc_value a = INPUT(b, channels, states, 1), x = INPUT(b, 1, states, steps);
	nc_value c = INPUT(b, 1, states, steps), h;

	a = nc_unary(b->graph, NC_EXP, nc_binary(b->graph, NC_MUL, delta, a));
	x = nc_binary(b->graph, NC_MUL, nc_binary(b->graph, NC_MUL, delta, u), x);
	h = nc_recurrence(b->graph, a, x, 2);
	count(b, h, 5, 1);
	output(b, nc_reduce(b->graph, NC_REDUCE_SUM, nc_binary(b->graph, NC_MUL, h, c), 2, false));
}

/* dims: rows, columns, indices. */
static nc_value index_of(struct build *b)
{
	struct nc_type type = type_of(NC_INT32, 1, &b->dims[2]);

	add_slot(b, &type);
	return nc_input(b->graph, &type, NULL);
}

static void rows_by_index(struct build *b)
{
	nc_value x = INPUT(b, b->dims[0], b->dims[1]);

	/* From slot to slot: they pass once, with the result. */
	b->skipped = (double)b->slot_bytes[0];
	output(b, nc_take(b->graph, x, 0, index_of(b)));
}

static void sums_by_index(struct build *b)
{
	nc_value x = INPUT(b, b->dims[0], b->dims[1]), index = index_of(b);

	output(b, nc_put(b->graph, NC_PUT_ADD, x, 0, index, INPUT(b, b->dims[2], b->dims[1])));
}

static void transpose(struct build *b)
{
	nc_value x = INPUT(b, b->dims[0], b->dims[1]);

	output(b, nc_permute(b->graph, x, (const uint32_t[]){ 1, 0 }));
}

/* Instructions of random bits: five of xor alone, three of folding, three of multiplying, and the index. */
#define RANDOM_PASSES 11

static void random_key(struct build *b, nc_value key[NC_KEY_WORDS])
{
	for (int i = 0; i < NC_KEY_WORDS; i++)
		key[i] = nc_const_int(b->graph, NC_INT32, 0x1234567 * (i + 1));
}

static nc_value random_bits(struct build *b)
{
	const struct nc_type type = type_of(NC_INT32, 2, b->dims);
	nc_value key[NC_KEY_WORDS];

	random_key(b, key);
	b->passes += RANDOM_PASSES * elems_of(&type);
	b->ints += RANDOM_PASSES * elems_of(&type);
	return nc_random(b->graph, &type, key);
}

/* In [0, 1), of the upper 24 bits. */
static void uniform(struct build *b)
{
	nc_value bits = random_bits(b);

	count(b, bits, 2, 0);
	bits = nc_binary(b->graph, NC_LSR, bits, nc_const_int(b->graph, NC_INT32, 8));
	output(b, nc_binary(b->graph, NC_MUL, nc_cast(b->graph, bits, NC_FP32),
			    nc_const_float(b->graph, NC_FP32, 0x1p-24)));
}

/* x / 0.9 where the bits say so, else 0. */
static void dropout(struct build *b)
{
	nc_value x = INPUT(b, b->dims[0], b->dims[1]), bits = random_bits(b);

	count(b, x, 3, 0);
	bits = nc_binary(b->graph, NC_LT, bits, nc_const_int(b->graph, NC_INT32, 0x66666666));
	x = nc_binary(b->graph, NC_MUL, x, constant(b, 1 / 0.9));
	output(b, nc_select(b->graph, bits, x, constant(b, 0)));
}

/* dims: images, channels, size, channels of the result, taps, stride, padding */
static void conv(struct build *b)
{
	const int64_t *d = b->dims;
	struct nc_conv2d how = { .stride = { d[5], d[5] },
				 .padding = { d[6], d[6] },
				 .dilation = { 1, 1 },
				 .groups = 1 };
	nc_value x = INPUT(b, d[0], d[1], d[2], d[2]), w = INPUT(b, d[3], d[1], d[4], d[4]);
	nc_value y = nc_conv2d(b->graph, x, w, &how);
	struct nc_type type = nc_type_of(b->graph, y);

	b->macs += elems_of(&type) * (double)(d[1] * d[4] * d[4]);
	output(b, y);
}

/* Instructions of a weight's random bits, three of folding, three of multiplying and one of xor, and of zeroing it;
 * the index and its first folding could be had once for all blocks. */
#define DROPOUT_PASSES 8

/* Weights of attention are dropped. */
static void drop(struct build *b, struct nc_attention *how, double scores)
{
	how->dropout = 0.1;
	random_key(b, how->key);
	b->passes += DROPOUT_PASSES * scores;
	b->ints += DROPOUT_PASSES * scores;
}

/* Causal attention; dims: heads, sequence, head. The bound counts the products that causality leaves, of each
 * query with the keys up to its own, in both products. */
static void attention_of(struct build *b, bool dropout)
{
	struct nc_attention how = { .scale = 0.08837890625f, .causal = true };
	int64_t heads = b->dims[0], s = b->dims[1], head = b->dims[2];
	nc_value q = INPUT(b, heads, s, head), k = INPUT(b, heads, s, head);
	nc_value v = INPUT(b, heads, s, head);
	double scores = (double)heads * (double)s * (double)(s + 1) / 2;

	b->macs = 2 * scores * (double)head;
	/* Maximum and exponential. */
	b->passes = 2 * scores;
	b->acts = scores;
	if (dropout)
		drop(b, &how, scores);
	output(b, nc_attention(b->graph, q, k, v, 0, &how));
}

/* Its gradients: five products, and each score's exponential, slope, and their sums. */
static void attention_grad_of(struct build *b, bool dropout)
{
	struct nc_attention how = { .scale = 0.08837890625f, .causal = true };
	int64_t heads = b->dims[0], s = b->dims[1], head = b->dims[2];
	struct nc_attention_operands of = { 0 };
	struct nc_type lse = { .dtype = NC_FP32, .ndim = 2, .dims = { heads, s } };
	double scores = (double)heads * (double)s * (double)(s + 1) / 2;
	nc_value dk, dv;

	of.q = INPUT(b, heads, s, head);
	of.k = INPUT(b, heads, s, head);
	of.v = INPUT(b, heads, s, head);
	of.y = INPUT(b, heads, s, head);
	of.dy = INPUT(b, heads, s, head);
	add_slot(b, &lse);
	of.lse = nc_input(b->graph, &lse, NULL);
	b->macs = 5 * scores * (double)head;
	b->passes = 2 * scores;
	b->acts = scores;
	if (dropout)
		drop(b, &how, scores);
	output(b, nc_attention_grad(b->graph, &of, &how, &dk, &dv));
	output(b, dk);
	output(b, dv);
}

static void attention(struct build *b)
{
	attention_of(b, false);
}

static void attention_dropout(struct build *b)
{
	attention_of(b, true);
}

static void attention_grad(struct build *b)
{
	attention_grad_of(b, false);
}

static void attention_grad_dropout(struct build *b)
{
	attention_grad_of(b, true);
}

static const struct row rows[] = {
	{ "matmul", NULL, NC_BF16, { 512, 512, 512 }, matmul, 0, false },
	{ "matmul", NULL, NC_BF16, { 1024, 1024, 1024 }, matmul, 0, false },
	{ "matmul", NULL, NC_BF16, { 2048, 2048, 2048 }, matmul, 0, false },
	{ "matmul", NULL, NC_BF16, { 4096, 4096, 4096 }, matmul, 0, false },
	{ "matmul", NULL, NC_FP32, { 4096, 4096, 4096 }, matmul, 0, false },
	{ "matmul", NULL, NC_BF16, { 1000, 1000, 1000 }, matmul, 0, false },
	{ "matmul", NULL, NC_BF16, { 2000, 3000, 1500 }, matmul, 0, false },
	{ "matmul", NULL, NC_BF16, { 128, 8192, 2048 }, matmul, 0, false },
	{ "matmul", NULL, NC_BF16, { 4096, 64, 4096 }, matmul, 0, false },
	{ "linear", NULL, NC_BF16, { 2048, 2048, 2048 }, linear, 0, false },
	{ "matmul", NULL, NC_BF16, { 4096, 8192, 8192 }, matmul, 0, true },
	{ "add", "64 MiB", NC_FP32, { 4096, 4096 }, add, 0, false },
	{ "add", "64 MiB", NC_BF16, { 4096, 8192 }, add, 0, false },
	{ "gelu", "64 MiB", NC_FP32, { 4096, 4096 }, gelu, 0, false },
	{ "exp", "64 MiB", NC_FP32, { 4096, 4096 }, exponential, 0, false },
	{ "exp", "256 MiB", NC_FP32, { 8192, 8192 }, exponential, 0, true },
	{ "softmax", "64 MiB", NC_FP32, { 4096, 4096 }, softmax, 0, false },
	{ "layer norm", "64 MiB", NC_FP32, { 4096, 4096 }, layer_norm, 0, false },
	{ "sum of rows", "64 MiB", NC_FP32, { 4096, 4096 }, sum_of_rows, 0, false },
	{ "sum of columns", "64 MiB", NC_FP32, { 4096, 4096 }, sum_of_columns, 0, false },
	{ "scan of rows", "64 MiB", NC_FP32, { 4096, 4096 }, scan_of_rows, 0, false },
	{ "scan of rows", "64 MiB", NC_FP32, { 1, 1 << 24 }, scan_of_rows, 0, false },
	{ "scan of rows", "32 MiB", NC_BF16, { 4096, 4096 }, scan_of_rows, 0, false },
	{ "scan of columns", "64 MiB", NC_FP32, { 4096, 4096 }, scan_of_columns, 0, false },
	{ "mamba", NULL, NC_FP32, { 256, 16, 512 }, mamba, 0, false },
	{ "mamba", NULL, NC_FP32, { 4096, 16, 512 }, mamba, 0, false },
	{ "mamba", NULL, NC_FP32, { 4096, 16, 8192 }, mamba, 0, true },
	{ "rows by index", "64 MiB", NC_FP32, { 50000, 1024, 16384 }, rows_by_index, 0, false },
	{ "sums by index", "64 MiB", NC_FP32, { 1000, 1024, 16384 }, sums_by_index, 0, false },
	{ "uniform random", "64 MiB", NC_FP32, { 4096, 4096 }, uniform, 0, false },
	{ "dropout", "64 MiB", NC_FP32, { 4096, 4096 }, dropout, 0, false },
	{ "transpose", "64 MiB", NC_FP32, { 4096, 4096 }, transpose, 0, false },
	{ "transpose", "32 MiB", NC_BF16, { 4096, 4096 }, transpose, 0, false },
	{ "conv 7x7 /2", NULL, NC_BF16, { 8, 3, 224, 64, 7, 2, 3 }, conv, 0, false },
	{ "conv 1x1", NULL, NC_BF16, { 16, 256, 56, 64, 1, 1, 0 }, conv, 0, false },
	{ "conv 3x3", NULL, NC_BF16, { 16, 64, 56, 64, 3, 1, 1 }, conv, 0, false },
	{ "conv 3x3", NULL, NC_BF16, { 16, 128, 28, 128, 3, 1, 1 }, conv, 0, false },
	{ "conv 3x3", NULL, NC_BF16, { 16, 256, 14, 256, 3, 1, 1 }, conv, 0, false },
	{ "conv 3x3", NULL, NC_BF16, { 16, 512, 7, 512, 3, 1, 1 }, conv, 0, false },
	{ "causal attention", NULL, NC_BF16, { 1, 4096, 128 }, attention, TARGET_ATTENTION, false },
	{ "causal attention", NULL, NC_BF16, { 8, 4096, 128 }, attention, TARGET_ATTENTION, false },
	{ "attention grad",
	  NULL,
	  NC_BF16,
	  { 1, 4096, 128 },
	  attention_grad,
	  TARGET_ATTENTION,
	  false },
	{ "attention grad",
	  NULL,
	  NC_BF16,
	  { 8, 4096, 128 },
	  attention_grad,
	  TARGET_ATTENTION,
	  false },
	{ "causal attention",
	  "dropout",
	  NC_BF16,
	  { 8, 4096, 128 },
	  attention_dropout,
	  TARGET_ATTENTION,
	  false },
	{ "attention grad",
	  "dropout",
	  NC_BF16,
	  { 8, 4096, 128 },
	  attention_grad_dropout,
	  TARGET_ATTENTION,
	  false },
};

/* --- bounds ------------------------------------------------------------------------------- */

/* Times in us. */
struct bounds {
	double compute, memory, latency;
};

/* Multiplications of the tensor engine a cycle. */
static double macs_per_cycle(nc_dtype dtype)
{
	double columns = ISA_MATMUL_N_MAX;

	return ISA_PARTITIONS * ISA_MATMUL_M_MAX * columns /
	       nm_matmul_cycles(ISA_MATMUL_N_MAX, dtype == NC_FP32);
}

static double elems_per_us(const struct nm_timing *t, unsigned int engine)
{
	return ISA_PARTITIONS * (double)t->clock_khz[engine] / 1e3;
}

/* Bytes that one core alone moves, and that HBM gives. */
static double bytes_per_us(const struct nm_timing *t)
{
	double dma = (double)NM_DMA_ENGINES * t->dma_bytes_per_us;

	return dma < t->hbm_bytes_per_us ? dma : t->hbm_bytes_per_us;
}

static double max(double a, double b)
{
	return a > b ? a : b;
}

static struct bounds bounds_of(const struct nm_timing *t, const struct build *b)
{
	double vector =
		elems_per_us(t, ISA_VECTOR) * (t->vector_half && b->dtype != NC_FP32 ? 4 : 1);
	double scalar = elems_per_us(t, ISA_SCALAR), gpsimd = elems_per_us(t, ISA_GPSIMD);
	struct bounds w = { 0 };
	double bytes = 0;

	for (uint32_t i = 0; i < b->n_slots; i++)
		bytes += (double)b->slot_bytes[i];
	bytes -= b->skipped;
	w.compute = b->macs / macs_per_cycle(b->dtype) / (t->clock_khz[ISA_TENSOR] / 1e3);
	w.compute = max(w.compute, b->acts / scalar);
	w.compute = max(w.compute, b->ints / (elems_per_us(t, ISA_VECTOR) + gpsimd));
	w.compute = max(w.compute, b->passes / (vector + scalar + gpsimd));
	w.memory = bytes / bytes_per_us(t);
	/* The launch, a load, a store. */
	w.latency = (double)(nm_launch_start_ps + nm_launch_end_ps +
			     2 * (nm_dma_start_ps + nm_dma_end_ps)) /
		    1e6;
	return w;
}

/* --- running ------------------------------------------------------------------------------ */

static void check(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "kernel_table: %s: %s\n", what, nrtx_error_text());
	exit(1);
}

/* Device time of one launch, us. */
static double run(nrtx_stream_t *stream, const struct nc_program *program, const struct build *b)
{
	struct nrtx_arg args[SLOTS_MAX] = { { 0 } };
	struct nrtx_stats stats;
	nrtx_program_t *loaded;

	for (uint32_t i = 0; i < b->n_slots; i++) {
		args[i].bytes = b->slot_bytes[i];
		check(!nrtx_buffer_alloc(0, args[i].bytes, &args[i].buffer), "buffer");
	}
	check(!nrtx_program_load(0, program->image, program->bytes, &loaded), "load");
	check(!nrtx_stats(0, &stats, true), "statistics");
	check(!nrtx_launch(stream, loaded, args, b->n_slots) && !nrtx_stream_sync(stream), "launc"
											   "h");
	check(!nrtx_stats(0, &stats, false), "statistics");
	nrtx_program_unload(loaded);
	for (uint32_t i = 0; i < b->n_slots; i++)
		nrtx_buffer_free(args[i].buffer);
	return (double)stats.device_ns / 1e3;
}

static void shape_text(const struct row *row, char *text, size_t size)
{
	uint32_t nd = DIMS_MAX;
	size_t n = 0;

	/* A convolution has all; its padding may be 0. */
	while (!row->dims[5] && !row->dims[nd - 1])
		nd--;
	for (uint32_t i = 0; i < nd && n < size; i++)
		n += (size_t)snprintf(text + n, size - n, "%s%lld", i ? "x" : "",
				      (long long)row->dims[i]);
	if (row->note && n < size)
		snprintf(text + n, size - n, ", %s", row->note);
}

/* Prints a row; is it below its target? */
static bool row_below(nrtx_stream_t *stream, const struct nc_target *target, const struct row *row,
		      const char *shape)
{
	struct build b = { .dtype = row->dtype, .dims = row->dims };
	const struct nm_timing *t = nm_timing_of(target->arch);
	char error[NC_ERROR_BYTES], name[128];
	struct nc_program program;
	struct bounds w;
	double us, bound, percent, wanted;

	snprintf(name, sizeof(name), "%s %s %s", row->kernel, shape,
		 row->dtype == NC_FP32 ? "fp32" : "bf16");
	b.graph = nc_graph_create(name);
	if (!b.graph) {
		fprintf(stderr, "kernel_table: out of memory\n");
		exit(1);
	}
	row->build(&b);
	if (nc_compile(b.graph, target, &program, error)) {
		fprintf(stderr, "kernel_table: %s\n", error);
		exit(1);
	}
	us = run(stream, &program, &b);
	nc_program_free(&program);
	nc_graph_destroy(b.graph);

	w = bounds_of(t, &b);
	bound = max(w.compute, max(w.memory, w.latency));
	percent = 100 * bound / us;
	wanted = bound == w.memory ? TARGET_MEMORY : TARGET_COMPUTE;
	if (row->target > 0)
		wanted = row->target;
	printf("%-16s %-20s %-5s %9.1f %9.1f %9.1f %8.1f  %-8s %6.1f", row->kernel, shape,
	       row->dtype == NC_FP32 ? "fp32" : "bf16", us, w.compute, w.memory, w.latency,
	       bound == w.compute ? "compute" :
	       bound == w.memory  ? "memory" :
				    "latency",
	       percent);
	printf(" %6.0f  %s\n", wanted, percent >= wanted ? "met" : "below");
	fflush(stdout);
	return percent < wanted;
}

static bool is_wanted(const struct row *row, const char *shape, char *const *patterns, int n)
{
	for (int i = 0; i < n; i++)
		if (strstr(row->kernel, patterns[i]) || strstr(shape, patterns[i]))
			return true;
	return !n;
}

int main(int argc, char **argv)
{
	bool checking = false, all = false;
	struct nc_target target;
	struct nrtx_core_info info;
	unsigned int n = 0, below = 0;
	nrtx_stream_t *stream;
	int i;

	for (i = 1; i < argc && argv[i][0] == '-'; i++) {
		checking |= !strcmp(argv[i], "--check");
		all |= !strcmp(argv[i], "--long");
		if (strcmp(argv[i], "--check") && strcmp(argv[i], "--long")) {
			fprintf(stderr, "usage: kernel_table [--check] [--long] [PATTERN...]\n");
			return 2;
		}
	}
	setenv("NEURON_RT_TRANSPORT", "model", 0);
	setenv("NEURON_RT_VISIBLE_CORES", "0", 1);
	check(!nrtx_core_info(0, &info), "core");
	check(!nrtx_stream_create(0, 0, &stream), "stream");
	target = (struct nc_target){ info.arch, info.sbuf_bytes, info.psum_bytes };

	printf("%-43s %9s %9s %9s %8s\n", info.name, "device,", "compute,", "memory,", "latency,");
	printf("%-16s %-20s %-5s %9s %9s %9s %8s  %-8s %6s %6s\n", "kernel", "shape", "dtype", "us",
	       "us", "us", "us", "bound", "% of", "target");
	for (const struct row *row = rows; row < rows + sizeof(rows) / sizeof(rows[0]); row++) {
		char shape[64];

		shape_text(row, shape, sizeof(shape));
		if ((row->slow && !all) || !is_wanted(row, shape, argv + i, argc - i))
			continue;
		n++;
		below += row_below(stream, &target, row, shape);
	}
	printf("%u rows, %u below their target\n", n, below);
	nrtx_stream_destroy(stream);
	return !n || (checking && below);
}
