/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and values of graph.h, shared by the files that implement it. */
#ifndef TEST_VALUES_H
#define TEST_VALUES_H

#include "graph.h"

/* Zeroed memory that goes with the graph. */
void *tv_block(struct tg *tg, size_t size);
bool tv_is_float(nc_dtype dtype);
uint32_t tv_width(nc_dtype dtype);
/* As the engines round: through fp32, which they compute in. */
double tv_round(nc_dtype dtype, double x);
int64_t tv_wrap(nc_dtype dtype, int64_t x);
double tv_get_float(nc_dtype dtype, const uint8_t *at);
int64_t tv_get_int(nc_dtype dtype, const uint8_t *at);
/* A value without a node yet. */
struct tv *tv_new(struct tg *tg, nc_dtype dtype, uint32_t nd, const int64_t *dims);
/* Index in each dim of element n. */
void tv_index(const struct tv *t, int64_t n, int64_t *idx);
/* Element of t at the right-aligned index idx of nd dims; dims of 1 repeat. */
int64_t tv_at(const struct tv *t, uint32_t nd, const int64_t *idx);
/* The strides, row major if NULL. */
void tv_strides(const struct tv *t, const int64_t *strides, int64_t *out);
/* Bytes from the first element to the end of the last. */
uint64_t tv_span(const struct tv *t, const int64_t *strides);
/* Bytes from the first element to element n. */
int64_t tv_offset(const struct tv *t, const int64_t *strides, int64_t n);
struct nc_type tv_type(const struct tv *t);
/* Element n becomes f, rounded or truncated. */
void tv_set(struct tv *t, int64_t n, double f);

/* functions.c: the operation on floats, in double. */
double tv_function(nc_unary_op op, double x);
double tv_operation(nc_binary_op op, double a, double b);

#endif /* TEST_VALUES_H */
