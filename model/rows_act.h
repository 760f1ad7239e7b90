/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of enum isa_act on rows of fp32. Only rows.c includes this. Most transcendental ones are
 * SLEEF's (error of 1 ulp) in the "cinz" form, which gives the same bits at every vector width,
 * with or without fused multiply-add. Composed functions are the formulas of
 * docs/execution-interface.md, clamped where they would make NaN of an infinite operand.
 */
#ifndef NM_ROWS_ACT_H
#define NM_ROWS_ACT_H

#include <math.h>
#include <sleef.h>
#include <stdint.h>
#include <string.h>

#include "rows_vec.h"

#define ACT_BLOCK 256 /* elements of intermediate results, on the stack */

#define VEC_ROW(f)                                                    \
	static void vec_##f(float *d, const float *a, size_t n)       \
	{                                                             \
		float tail[VEC_N] = { 0 };                            \
		size_t i = 0;                                         \
                                                                      \
		for (; i + VEC_N <= n; i += VEC_N)                    \
			VEC_STORE(d + i, VEC_FN(f)(VEC_LOAD(a + i))); \
		if (i < n) {                                          \
			memcpy(tail, a + i, (n - i) * sizeof(*a));    \
			VEC_STORE(tail, VEC_FN(f)(VEC_LOAD(tail)));   \
			memcpy(d + i, tail, (n - i) * sizeof(*a));    \
		}                                                     \
	}

VEC_ROW(expf)
VEC_ROW(logf)
VEC_ROW(sinf)
VEC_ROW(cosf)
VEC_ROW(atanf)
VEC_ROW(log1pf)
VEC_ROW(expm1f)

static void vec_powf(float *d, const float *a, const float *b, size_t n)
{
	float x[VEC_N] = { 0 }, y[VEC_N] = { 0 };
	size_t i = 0;

	for (; i + VEC_N <= n; i += VEC_N)
		VEC_STORE(d + i, VEC_FN(powf)(VEC_LOAD(a + i), VEC_LOAD(b + i)));
	if (i < n) {
		memcpy(x, a + i, (n - i) * sizeof(*a));
		memcpy(y, b + i, (n - i) * sizeof(*b));
		VEC_STORE(x, VEC_FN(powf)(VEC_LOAD(x), VEC_LOAD(y)));
		memcpy(d + i, x, (n - i) * sizeof(*a));
	}
}

static inline double scalar_pow(double a, double b)
{
	return Sleef_cinz_powd1_u10purec(a, b);
}

static void row_affine(float *d, const float *a, float scale, float bias, size_t n)
{
	for (size_t i = 0; i < n; i++)
		d[i] = a[i] * scale + bias;
}

/* Row of one expression in x. */
#define ACT_EXPR(name, expr)                                       \
	static void act_##name(float *d, const float *a, size_t n) \
	{                                                          \
		for (size_t i = 0; i < n; i++) {                   \
			float x = a[i];                            \
                                                                   \
			d[i] = (expr);                             \
		}                                                  \
	}

static void act_copy(float *d, const float *a, size_t n)
{
	if (d != a)
		memcpy(d, a, n * sizeof(*d));
}

ACT_EXPR(sqrt, sqrtf(x))
ACT_EXPR(rsqrt, 1.0f / sqrtf(x))
ACT_EXPR(reciprocal, 1.0f / x)
ACT_EXPR(square, x *x)
ACT_EXPR(abs, fabsf(x))
ACT_EXPR(sign, x != x ? x : (float)(x > 0) - (float)(x < 0))
ACT_EXPR(relu, x > 0 || x != x ? x : 0.0f)
ACT_EXPR(floor, floorf(x))
ACT_EXPR(ceil, ceilf(x))
ACT_EXPR(round, rintf(x))
ACT_EXPR(trunc, truncf(x))

/*
 * Row of t = function(pre(x)), result = post(x, t). With two functions, u is the second's. x in the
 * expressions is the operand, t and u are blocks of intermediate results.
 */
#define ACT_COMPOSED(name, pre, function, post)                           \
	static void act_##name(float *d, const float *a, size_t n)        \
	{                                                                 \
		float tmp[ACT_BLOCK];                                     \
                                                                          \
		for (size_t b = 0; b < n; b += ACT_BLOCK) {               \
			size_t m = n - b < ACT_BLOCK ? n - b : ACT_BLOCK; \
                                                                          \
			for (size_t i = 0; i < m; i++) {                  \
				float x = a[b + i];                       \
                                                                          \
				tmp[i] = (pre);                           \
			}                                                 \
			vec_##function(tmp, tmp, m);                      \
			for (size_t i = 0; i < m; i++) {                  \
				float x = a[b + i], t = tmp[i];           \
                                                                          \
				d[b + i] = (post);                        \
			}                                                 \
		}                                                         \
	}

#define ACT_COMPOSED2(name, pre, function, pre2, function2, post)            \
	static void act_##name(float *d, const float *a, size_t n)           \
	{                                                                    \
		float tmp[ACT_BLOCK], tmp2[ACT_BLOCK];                       \
                                                                             \
		for (size_t b = 0; b < n; b += ACT_BLOCK) {                  \
			size_t m = n - b < ACT_BLOCK ? n - b : ACT_BLOCK;    \
                                                                             \
			for (size_t i = 0; i < m; i++) {                     \
				float x = a[b + i];                          \
                                                                             \
				tmp[i] = (pre);                              \
			}                                                    \
			vec_##function(tmp, tmp, m);                         \
			for (size_t i = 0; i < m; i++) {                     \
				float x = a[b + i], t = tmp[i];              \
                                                                             \
				(void)x, (void)t;                            \
				tmp2[i] = (pre2);                            \
			}                                                    \
			vec_##function2(tmp2, tmp2, m);                      \
			for (size_t i = 0; i < m; i++) {                     \
				float x = a[b + i], t = tmp[i], u = tmp2[i]; \
                                                                             \
				(void)t;                                     \
				d[b + i] = (post);                           \
			}                                                    \
		}                                                            \
	}

#define SQRT_HALF      0.70710678118654752440f
#define SQRT_2_OVER_PI 0.79788456080286535588f
#define RSQRT_2PI      0.39894228040143267794f
#define GELU_CUBIC     0.044715f
#define GELU_SIGMOID   1.702f
#define TWO_RSQRT_PI   1.12837916709551257390f

/* NaN passes through all of these. */
static inline float at_least(float x, float low)
{
	return x < low ? low : x;
}

static inline float clamp(float x, float limit)
{
	return x < -limit ? -limit : x > limit ? limit : x;
}

/* Beyond these, the bounded factors are 0 or 1 in fp32. */
#define GELU_LIMIT 16.0f
#define SILU_LIMIT 128.0f

/*
 * tanh and erf from e^x, which vector code does fast: a polynomial near zero, else what is left to 1.
 * Each has its argument of e^x and its end. Coefficients: least maximum error over the interval,
 * fitted by us; error at most 2 ulp.
 */
#define TANH_SMALL 0.55f

static inline float tanh_exponent(float x)
{
	return 2.0f * fabsf(x);
}

static inline float tanh_end(float x, float t)
{
	float u = x * x;
	float p =
		((-0.006282458547502756f * u + 0.021077746525406837f) * u - 0.05385385453701019f) *
		u;
	float small = x + x * (u * ((p + 0.13332602381706238f) * u - 0.33333319425582886f));

	return fabsf(x) < TANH_SMALL ? small : copysignf(1.0f - 2.0f / (t + 1.0f), x);
}

#define ERF_SMALL 1.1f
#define ERF_LIMIT 4.0f /* erf is 1 in fp32 from here on */

/* ln(erfc(|x|)) */
static inline float erf_exponent(float x)
{
	float s = (fabsf(x) > ERF_LIMIT ? ERF_LIMIT : fabsf(x)) - 2.0f;
	float p = (-0.00017448366270400584f * s + 0.0007300552097149193f) * s -
		  0.0035426446702331305f;

	p = ((p * s + 0.01647847332060337f) * s + 0.9237496852874756f) * s + 4.418159484863281f;
	return -(p * s + 5.364941120147705f);
}

static inline float erf_end(float x, float t)
{
	float u = x * x;
	float p =
		(9.683079724709387e-07f * u - 1.3534843674278818e-05f) * u + 0.0001189380491268821f;

	p = ((p * u - 0.0008537175599485636f) * u + 0.005223521031439304f) * u -
	    0.026866065338253975f;
	p = ((p * u + 0.11283790320158005f) * u - 0.37612637877464294f) * u + 0.12837916612625122f;
	return fabsf(x) < ERF_SMALL ? x + x * p : copysignf(1.0f - t, x);
}

static inline float gelu_inner(float x)
{
	float c = clamp(x, GELU_LIMIT);

	return SQRT_2_OVER_PI * (c + GELU_CUBIC * (c * c * c));
}

static inline float dgelu_tanh(float x, float t)
{
	float c = clamp(x, GELU_LIMIT);
	float inner = SQRT_2_OVER_PI * (1.0f + 3.0f * GELU_CUBIC * (c * c));

	return 0.5f * (1.0f + t) + 0.5f * c * ((1.0f - t * t) * inner);
}

static inline float dsilu(float x, float t)
{
	float s = 1.0f / (1.0f + t);

	return s * (1.0f + clamp(x, SILU_LIMIT) * (1.0f - s));
}

ACT_COMPOSED(tanh, tanh_exponent(x), expf, tanh_end(x, t))
ACT_COMPOSED(erf, erf_exponent(x), expf, erf_end(x, t))
ACT_COMPOSED(sigmoid, -x, expf, ((void)x, 1.0f / (1.0f + t)))
ACT_COMPOSED(gelu, erf_exponent(x *SQRT_HALF), expf,
	     0.5f * at_least(x, -GELU_LIMIT) * (1.0f + erf_end(x * SQRT_HALF, t)))
ACT_COMPOSED(gelu_tanh, tanh_exponent(gelu_inner(x)), expf,
	     0.5f * at_least(x, -GELU_LIMIT) * (1.0f + tanh_end(gelu_inner(x), t)))
ACT_COMPOSED(silu, -x, expf, at_least(x, -SILU_LIMIT) / (1.0f + t))
ACT_COMPOSED2(softplus, -fabsf(x), expf, t, log1pf, (x > 0 || x != x ? x : 0.0f) + u)
ACT_COMPOSED2(dgelu, erf_exponent(x *SQRT_HALF), expf, -0.5f * (x * x), expf,
	      0.5f * (1.0f + erf_end(x * SQRT_HALF, t)) + clamp(x, GELU_LIMIT) * (u * RSQRT_2PI))
ACT_COMPOSED(dgelu_tanh, tanh_exponent(gelu_inner(x)), expf,
	     dgelu_tanh(x, tanh_end(gelu_inner(x), t)))
ACT_COMPOSED(dsilu, -x, expf, dsilu(x, t))
ACT_COMPOSED(gelu_sigmoid, -(GELU_SIGMOID *x), expf, at_least(x, -SILU_LIMIT) / (1.0f + t))
ACT_COMPOSED(dgelu_sigmoid, -(GELU_SIGMOID *x), expf, dsilu(GELU_SIGMOID *x, t))
ACT_COMPOSED(derf, -(x *x), expf, ((void)x, TWO_RSQRT_PI *t))

static void act_mish(float *d, const float *a, size_t n)
{
	float tmp[ACT_BLOCK];

	for (size_t b = 0; b < n; b += ACT_BLOCK) {
		size_t m = n - b < ACT_BLOCK ? n - b : ACT_BLOCK;

		act_softplus(tmp, a + b, m);
		act_tanh(tmp, tmp, m);
		for (size_t i = 0; i < m; i++)
			d[b + i] = at_least(a[b + i], -SILU_LIMIT) * tmp[i];
	}
}

#define ACT_TABLE                                            \
	{                                                    \
		[ISA_ACT_COPY] = act_copy,                   \
		[ISA_ACT_EXP] = vec_expf,                    \
		[ISA_ACT_LN] = vec_logf,                     \
		[ISA_ACT_SQRT] = act_sqrt,                   \
		[ISA_ACT_RSQRT] = act_rsqrt,                 \
		[ISA_ACT_RECIPROCAL] = act_reciprocal,       \
		[ISA_ACT_SQUARE] = act_square,               \
		[ISA_ACT_ABS] = act_abs,                     \
		[ISA_ACT_SIGN] = act_sign,                   \
		[ISA_ACT_RELU] = act_relu,                   \
		[ISA_ACT_SIGMOID] = act_sigmoid,             \
		[ISA_ACT_TANH] = act_tanh,                   \
		[ISA_ACT_GELU] = act_gelu,                   \
		[ISA_ACT_GELU_TANH] = act_gelu_tanh,         \
		[ISA_ACT_SILU] = act_silu,                   \
		[ISA_ACT_SOFTPLUS] = act_softplus,           \
		[ISA_ACT_ERF] = act_erf,                     \
		[ISA_ACT_SIN] = vec_sinf,                    \
		[ISA_ACT_ARCTAN] = vec_atanf,                \
		[ISA_ACT_DGELU] = act_dgelu,                 \
		[ISA_ACT_DGELU_TANH] = act_dgelu_tanh,       \
		[ISA_ACT_DSILU] = act_dsilu,                 \
		[ISA_ACT_FLOOR] = act_floor,                 \
		[ISA_ACT_CEIL] = act_ceil,                   \
		[ISA_ACT_ROUND] = act_round,                 \
		[ISA_ACT_TRUNC] = act_trunc,                 \
		[ISA_ACT_COS] = vec_cosf,                    \
		[ISA_ACT_LOG1P] = vec_log1pf,                \
		[ISA_ACT_EXPM1] = vec_expm1f,                \
		[ISA_ACT_MISH] = act_mish,                   \
		[ISA_ACT_GELU_SIGMOID] = act_gelu_sigmoid,   \
		[ISA_ACT_DGELU_SIGMOID] = act_dgelu_sigmoid, \
		[ISA_ACT_DERF] = act_derf,                   \
	}

#endif /* NM_ROWS_ACT_H */
