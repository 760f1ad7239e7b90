/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A graph and, beside it, what it means: every call below builds a node and
 * computes its value on the host at once, in double precision or 64-bit integers
 * and the plainest of loops. tg_run() compiles the graph, checks the program for
 * hazards, runs it on the virtual device and compares. Shares no code with the
 * compiler.
 */
#ifndef TEST_GRAPH_H
#define TEST_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "neuron_compiler.h"

/* A value: of floats in f, of others in i. */
struct tv {
	nc_value v;
	nc_dtype dtype;
	uint32_t nd;
	int64_t dims[NC_DIMS_MAX];
	int64_t n;
	double *f;
	int64_t *i;
};

struct tslot {
	uint8_t *bytes; /* input: contents; output: NULL */
	uint64_t size;
	bool is_scalar;
	nc_value value; /* input */
	const struct tv *want; /* output */
	int64_t strides[NC_DIMS_MAX];
	uint32_t alias;
};

struct tg {
	nc_graph *graph;
	struct tslot slots[64];
	uint32_t n_slots;
	void *blocks[4096];
	uint32_t n_blocks;
	uint64_t seed, seed_shown;
	double tolerance; /* relative, beyond one unit in the last place of the dtype */
	double absolute; /* of sums that cancel */
	struct nc_program program;
	double device_us; /* of the last run */
};

/* Every dtype. */
#define N_DTYPES 10
extern const nc_dtype tg_dtypes[N_DTYPES];

struct tg *tg_new(const char *name, uint64_t seed);
void tg_free(struct tg *tg);
uint64_t tg_random(struct tg *tg);
int64_t tg_range(struct tg *tg, int64_t low, int64_t high);

struct tv *tg_input(struct tg *tg, nc_dtype dtype, uint32_t nd, const int64_t *dims,
		    const int64_t *strides);
/* Makes element n of an input hold f, rounded. */
void tg_set_input(struct tg *tg, struct tv *x, int64_t n, double f);
/* Positive values, for what has no others. */
struct tv *tg_positive(struct tg *tg, nc_dtype dtype, uint32_t nd, const int64_t *dims);
struct tv *tg_scalar(struct tg *tg, nc_dtype dtype, double value);
struct tv *tg_const(struct tg *tg, nc_dtype dtype, double value);
struct tv *tg_iota(struct tg *tg, nc_dtype dtype, uint32_t nd, const int64_t *dims, uint32_t dim);
struct tv *tg_unary(struct tg *tg, nc_unary_op op, const struct tv *x);
struct tv *tg_binary(struct tg *tg, nc_binary_op op, const struct tv *a, const struct tv *b);
struct tv *tg_select(struct tg *tg, const struct tv *c, const struct tv *a, const struct tv *b);
struct tv *tg_cast(struct tg *tg, const struct tv *x, nc_dtype dtype);
struct tv *tg_reshape(struct tg *tg, const struct tv *x, uint32_t nd, const int64_t *dims);
struct tv *tg_permute(struct tg *tg, const struct tv *x, const uint32_t *order);
struct tv *tg_broadcast(struct tg *tg, const struct tv *x, uint32_t nd, const int64_t *dims);
struct tv *tg_reduce(struct tg *tg, nc_reduce_op op, const struct tv *x, uint32_t axes, bool keep);
struct tv *tg_scan(struct tg *tg, nc_reduce_op op, const struct tv *x, uint32_t dim);
struct tv *tg_recurrence(struct tg *tg, const struct tv *a, const struct tv *b, uint32_t dim);
struct tv *tg_take(struct tg *tg, const struct tv *x, uint32_t dim, const struct tv *index);
struct tv *tg_put(struct tg *tg, nc_put_op op, const struct tv *x, uint32_t dim,
		  const struct tv *index, const struct tv *rows);
struct tv *tg_matmul(struct tg *tg, const struct tv *a, const struct tv *b);
struct tv *tg_conv2d(struct tg *tg, const struct tv *x, const struct tv *w,
		     const struct nc_conv2d *conv);
struct tv *tg_conv2d_grad_x(struct tg *tg, const struct tv *dy, const struct tv *w,
			    const struct nc_type *type, const struct nc_conv2d *conv);
struct tv *tg_conv2d_grad_w(struct tg *tg, const struct tv *dy, const struct tv *x,
			    const struct nc_type *type, const struct nc_conv2d *conv);
void tg_output(struct tg *tg, const struct tv *x, const int64_t *strides, uint32_t alias);

/* Fails the test unless every output is as wanted. */
void tg_run(struct tg *tg);

/* An input of a graph without values, row major. */
nc_value test_input(nc_graph *graph, nc_dtype dtype, uint32_t nd, const int64_t *dims);
/* Fails the test unless compiling gives err and a text that contains this; destroys the graph. */
void test_refused(nc_graph *graph, int err, const char *text);

/* device.c: one launch; NULL or what went wrong. */
const char *test_device_run(const struct nc_program *program, const struct tslot *slots,
			    uint32_t n_slots, uint8_t **results, double *device_us);
const struct nc_target *test_target(void);

/* hazard.c: NULL, or two accesses that nothing orders (or another defect); checks programs of up
 * to max instructions. */
const char *test_hazards(const struct nc_program *program, uint32_t n_slots, const uint32_t *memory,
			 uint32_t max);

/* listing.c: text of the program, to free(); fails the test unless it assembles to the same bytes
 * and no instruction is printed as bytes. */
char *test_listing(const struct nc_program *program);

#define DIMS(...)  ((const int64_t[]){ __VA_ARGS__ })
#define ND(...)	   ((uint32_t)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)))
#define SHAPE(...) ND(__VA_ARGS__), DIMS(__VA_ARGS__)

#endif /* TEST_GRAPH_H */
