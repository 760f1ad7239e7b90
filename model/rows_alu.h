/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of enum isa_alu on single elements of the compute types. Only rows.c includes this. */
#ifndef NM_ROWS_ALU_H
#define NM_ROWS_ALU_H

#include <math.h>
#include <stdint.h>

/* Remainder with the sign of the divisor; fmod is exact, and one addition brings it over. */
#define FLOAT_MOD(p, T, fmod_fn, copysign_fn)                    \
	static inline T p##_mod(T a, T b)                        \
	{                                                        \
		T r = fmod_fn(a, b);                             \
                                                                 \
		if (r == 0)                                      \
			return copysign_fn(0, b);                \
		return (r < 0) != (b < 0) && r == r ? r + b : r; \
	}

FLOAT_MOD(f32, float, fmodf, copysignf)
FLOAT_MOD(f64, double, fmod, copysign)

#define FLOAT_OPS(p, T)                         \
	static inline T p##_add(T a, T b)       \
	{                                       \
		return a + b;                   \
	}                                       \
	static inline T p##_sub(T a, T b)       \
	{                                       \
		return a - b;                   \
	}                                       \
	static inline T p##_mult(T a, T b)      \
	{                                       \
		return a * b;                   \
	}                                       \
	static inline T p##_div(T a, T b)       \
	{                                       \
		return a / b;                   \
	}                                       \
	static inline T p##_max(T a, T b)       \
	{                                       \
		return a > b || a != a ? a : b; \
	}                                       \
	static inline T p##_min(T a, T b)       \
	{                                       \
		return a < b || a != a ? a : b; \
	}

FLOAT_OPS(f32, float)
FLOAT_OPS(f64, double)

#define SIGNED_OPS(p, T, U, BITS)                                           \
	static inline T p##_add(T a, T b)                                   \
	{                                                                   \
		return (T)((U)a + (U)b);                                    \
	}                                                                   \
	static inline T p##_sub(T a, T b)                                   \
	{                                                                   \
		return (T)((U)a - (U)b);                                    \
	}                                                                   \
	static inline T p##_mult(T a, T b)                                  \
	{                                                                   \
		return (T)((U)a * (U)b);                                    \
	}                                                                   \
	static inline T p##_div(T a, T b)                                   \
	{                                                                   \
		if (b == 0)                                                 \
			return 0;                                           \
		return b == -1 ? (T)(0 - (U)a) : (T)(a / b);                \
	}                                                                   \
	static inline T p##_max(T a, T b)                                   \
	{                                                                   \
		return a > b ? a : b;                                       \
	}                                                                   \
	static inline T p##_min(T a, T b)                                   \
	{                                                                   \
		return a < b ? a : b;                                       \
	}                                                                   \
	static inline T p##_mod(T a, T b)                                   \
	{                                                                   \
		T r;                                                        \
                                                                            \
		if (b == 0 || b == -1)                                      \
			return 0;                                           \
		r = (T)(a % b);                                             \
		return r != 0 && (r < 0) != (b < 0) ? (T)(r + b) : r;       \
	}                                                                   \
	static inline T p##_pow(T a, T b)                                   \
	{                                                                   \
		U base = (U)a, result = 1;                                  \
                                                                            \
		if (b < 0)                                                  \
			return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0; \
		for (U e = (U)b; e; e >>= 1, base *= base)                  \
			if (e & 1)                                          \
				result *= base;                             \
		return (T)result;                                           \
	}                                                                   \
	static inline T p##_bit_and(T a, T b)                               \
	{                                                                   \
		return a & b;                                               \
	}                                                                   \
	static inline T p##_bit_or(T a, T b)                                \
	{                                                                   \
		return a | b;                                               \
	}                                                                   \
	static inline T p##_bit_xor(T a, T b)                               \
	{                                                                   \
		return a ^ b;                                               \
	}                                                                   \
	static inline T p##_shl(T a, T b)                                   \
	{                                                                   \
		return (U)b < BITS ? (T)((U)a << ((U)b % BITS)) : 0;        \
	}                                                                   \
	static inline T p##_shr(T a, T b)                                   \
	{                                                                   \
		return (U)b < BITS ? (T)((U)a >> ((U)b % BITS)) : 0;        \
	}                                                                   \
	static inline T p##_asr(T a, T b)                                   \
	{                                                                   \
		return a >> ((U)b < BITS ? (U)b : BITS - 1);                \
	}

/* Magnitudes; that of the least integer is itself. */
static inline float f32_magnitude(float a)
{
	return fabsf(a);
}

static inline double f64_magnitude(double a)
{
	return fabs(a);
}

static inline int32_t i32_magnitude(int32_t a)
{
	return a < 0 ? (int32_t)(0 - (uint32_t)a) : a;
}

static inline int64_t i64_magnitude(int64_t a)
{
	return a < 0 ? (int64_t)(0 - (uint64_t)a) : a;
}

SIGNED_OPS(i32, int32_t, uint32_t, 32)
SIGNED_OPS(i64, int64_t, uint64_t, 64)

#define COMMON_OPS(p, T)                                            \
	static inline T p##_abs_max(T a, T b)                       \
	{                                                           \
		return p##_max(p##_magnitude(a), p##_magnitude(b)); \
	}                                                           \
	static inline T p##_abs_min(T a, T b)                       \
	{                                                           \
		return p##_min(p##_magnitude(a), p##_magnitude(b)); \
	}                                                           \
	static inline T p##_is_eq(T a, T b)                         \
	{                                                           \
		return a == b;                                      \
	}                                                           \
	static inline T p##_is_ne(T a, T b)                         \
	{                                                           \
		return a != b;                                      \
	}                                                           \
	static inline T p##_is_gt(T a, T b)                         \
	{                                                           \
		return a > b;                                       \
	}                                                           \
	static inline T p##_is_ge(T a, T b)                         \
	{                                                           \
		return a >= b;                                      \
	}                                                           \
	static inline T p##_is_lt(T a, T b)                         \
	{                                                           \
		return a < b;                                       \
	}                                                           \
	static inline T p##_is_le(T a, T b)                         \
	{                                                           \
		return a <= b;                                      \
	}                                                           \
	static inline T p##_logical_and(T a, T b)                   \
	{                                                           \
		return (a != 0) & (b != 0);                         \
	}                                                           \
	static inline T p##_logical_or(T a, T b)                    \
	{                                                           \
		return (a != 0) | (b != 0);                         \
	}                                                           \
	static inline T p##_logical_xor(T a, T b)                   \
	{                                                           \
		return (a != 0) ^ (b != 0);                         \
	}                                                           \
	static inline T p##_bypass(T a, T b)                        \
	{                                                           \
		(void)b;                                            \
		return a;                                           \
	}

COMMON_OPS(f32, float)
COMMON_OPS(f64, double)
COMMON_OPS(i32, int32_t)
COMMON_OPS(i64, int64_t)

#endif /* NM_ROWS_ALU_H */
