/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversions of single elements, as enum isa_compute_type defines them. Only rows.c includes this;
 * written so that loops over them become vector code.
 */
#ifndef NM_ROWS_CONVERT_H
#define NM_ROWS_CONVERT_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t f32_bits(float x)
{
	uint32_t u;

	memcpy(&u, &x, 4);
	return u;
}

static inline float bits_f32(uint32_t u)
{
	float x;

	memcpy(&x, &u, 4);
	return x;
}

static inline uint64_t f64_bits(double x)
{
	uint64_t u;

	memcpy(&u, &x, 8);
	return u;
}

static inline double bits_f64(uint64_t u)
{
	double x;

	memcpy(&x, &u, 8);
	return x;
}

static inline float bf16_to_f32(uint16_t h)
{
	return bits_f32((uint32_t)h << 16);
}

static inline uint16_t f32_to_bf16(float x)
{
	uint32_t u = f32_bits(x);
	uint32_t rounded = (u + 0x7fffu + (u >> 16 & 1)) >> 16;
	uint32_t nan = u >> 16 | 0x40u;

	return (uint16_t)((u & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

static inline float fp16_to_f32(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
	uint32_t mag = (uint32_t)(h & 0x7fffu) << 13;
	uint32_t normal = mag + (112u << 23);
	uint32_t special = mag | 0x7f800000u | (mag & 0x7fffffu ? 0x400000u : 0);
	/* Subnormal: the fraction as a number between 2^-14 and 2^-13, less 2^-14. */
	float sub = bits_f32(mag + (113u << 23)) - bits_f32(113u << 23);
	uint32_t u = mag >= 0x0f800000u ? special : mag >= 0x00800000u ? normal : f32_bits(sub);

	return bits_f32(u | sign);
}

static inline uint16_t f32_to_fp16(float x)
{
	uint32_t u = f32_bits(x);
	uint32_t sign = u >> 16 & 0x8000u;
	uint32_t mag = u & 0x7fffffffu;
	uint32_t nan = 0x7e00u | (mag >> 13 & 0x3ffu);
	uint32_t normal = (mag + 0xfffu + (mag >> 13 & 1) - (112u << 23)) >> 13;
	/* Adding 0.5 puts the last fp16 place at the last bit, rounded by the FPU. */
	uint32_t sub = f32_bits(bits_f32(mag) + 0.5f) - 0x3f000000u;
	uint32_t h = mag > 0x7f800000u	? nan :
		     mag >= 0x477ff000u ? 0x7c00u :
		     mag < 0x38800000u	? sub :
					  normal;

	return (uint16_t)(h | sign);
}

/*
 * 8-bit floats: exp_bits of exponent and man_bits of fraction, the largest exponent for infinity and
 * NaN, or, if finite, NaN all ones and all else numbers. All, subnormal ones too, are normal in fp32.
 */
#define FP8_BIAS_UP(exp_bits) (128u - (1u << ((exp_bits) - 1))) /* to the exponent of fp32 */

static inline float fp8_to_f32(uint8_t h, unsigned int exp_bits, unsigned int man_bits, bool finite)
{
	const uint32_t up = FP8_BIAS_UP(exp_bits) << 23;
	const uint32_t inf = finite ? 0x7fu << (23 - man_bits) : ((1u << exp_bits) - 1) << 23;
	uint32_t sign = (uint32_t)(h & 0x80u) << 24;
	uint32_t mag = (uint32_t)(h & 0x7fu) << (23 - man_bits);
	uint32_t special = 0x7f800000u | (mag & 0x7fffffu ? 0x400000u | (mag & 0x7fffffu) : 0);
	/* Subnormal: the fraction as a number of the least normal exponent, less one there. */
	float sub = bits_f32(mag + up + (1u << 23)) - bits_f32(up + (1u << 23));
	uint32_t u = mag >= inf ? special : mag >= 1u << 23 ? mag + up : f32_bits(sub);

	return bits_f32(u | sign);
}

static inline uint8_t f32_to_fp8(float x, unsigned int exp_bits, unsigned int man_bits, bool finite)
{
	const unsigned int shift = 23 - man_bits;
	const uint32_t up = FP8_BIAS_UP(exp_bits) << 23;
	/* What takes the place of larger numbers. */
	const uint32_t inf = finite ? 0x7fu : ((1u << exp_bits) - 1) << man_bits;
	/* Of this exponent the last place of fp32 is the least subnormal, so that the FPU rounds to it. */
	const uint32_t unit = (FP8_BIAS_UP(exp_bits) + 24 - man_bits) << 23;
	uint32_t u = f32_bits(x);
	uint32_t sign = u >> 24 & 0x80u;
	uint32_t mag = u & 0x7fffffffu;
	uint32_t nan = inf | 1u << (man_bits - 1) | (mag >> shift & ((1u << man_bits) - 1));
	uint32_t normal = (mag + (1u << (shift - 1)) - 1 + (mag >> shift & 1) - up) >> shift;
	uint32_t sub = f32_bits(bits_f32(mag) + bits_f32(unit)) - unit;
	uint32_t h = mag > 0x7f800000u	   ? nan :
		     mag < up + (1u << 23) ? sub :
		     normal > inf	   ? inf :
					     normal;

	return (uint8_t)(h | sign);
}

#define FP8_DTYPE(t, exp_bits, man_bits, finite)                  \
	static inline float t##_to_f32(uint8_t h)                 \
	{                                                         \
		return fp8_to_f32(h, exp_bits, man_bits, finite); \
	}                                                         \
	static inline uint8_t f32_to_##t(float x)                 \
	{                                                         \
		return f32_to_fp8(x, exp_bits, man_bits, finite); \
	}

FP8_DTYPE(e3m4, 3, 4, false)
FP8_DTYPE(e4m3, 4, 3, false)
FP8_DTYPE(e5m2, 5, 2, false)
FP8_DTYPE(e4m3fn, 4, 3, true)

#undef FP8_DTYPE

/* tf32 is fp32 with 10 bits of fraction; those below may be there, and are rounded away when it is read. */
static inline uint32_t f32_to_tf32(float x)
{
	uint32_t u = f32_bits(x);
	uint32_t rounded = u + 0xfffu + (u >> 13 & 1);
	uint32_t nan = u | 0x400000u;

	return ((u & 0x7fffffffu) > 0x7f800000u ? nan : rounded) & ~0x1fffu;
}

static inline float tf32_to_f32(uint32_t h)
{
	return bits_f32(f32_to_tf32(bits_f32(h)));
}

/*
 * Double to the float next to it away from even: the last bit says whether the rest was not zero, so
 * that rounding once more to 11 bits or fewer is right.
 */
static inline float f64_to_f32_odd(double x)
{
	float f = (float)x;
	double back = (double)f;
	uint32_t u = f32_bits(f);

	if (back == x || x != x)
		return f;
	/* The neighbour nearer to zero if rounding went away from it. */
	if (fabs(back) > fabs(x))
		u--;
	return bits_f32(u | 1u);
}

/* The same for integers: 45 bits are kept, more than any smaller float has. */
static inline float i64_to_f32_odd(int64_t v)
{
	uint64_t mag = v < 0 ? -(uint64_t)v : (uint64_t)v;
	double d;

	if (mag >> 45)
		mag = (mag >> 20 | ((mag & 0xfffffu) != 0)) << 20;
	d = (double)mag;
	return f64_to_f32_odd(v < 0 ? -d : d);
}

/* Float to integer: truncating, NaN to 0, saturating. lo and hi1 = hi + 1 are exact in the type. */
#define SATURATE(name, ftype, itype, wide, lo, hi, hi1)          \
	static inline itype name(ftype x)                        \
	{                                                        \
		ftype in = x > (ftype)(lo) && x < (hi1) ? x : 0; \
		itype out = (itype)(wide)in;                     \
                                                                 \
		out = x >= (hi1) ? (itype)(hi) : out;            \
		return x <= (ftype)(lo) ? (itype)(lo) : out;     \
	}

SATURATE(f32_to_i8, float, int8_t, int32_t, INT8_MIN, INT8_MAX, 0x1p7f)
SATURATE(f32_to_u8, float, uint8_t, int32_t, 0, UINT8_MAX, 0x1p8f)
SATURATE(f32_to_i16, float, int16_t, int32_t, INT16_MIN, INT16_MAX, 0x1p15f)
SATURATE(f32_to_u16, float, uint16_t, int32_t, 0, UINT16_MAX, 0x1p16f)
SATURATE(f32_to_i32, float, int32_t, int32_t, INT32_MIN, INT32_MAX, 0x1p31f)
SATURATE(f32_to_u32, float, uint32_t, uint32_t, 0, UINT32_MAX, 0x1p32f)
SATURATE(f32_to_i64, float, int64_t, int64_t, INT64_MIN, INT64_MAX, 0x1p63f)
SATURATE(f32_to_u64, float, uint64_t, uint64_t, 0, UINT64_MAX, 0x1p64f)
SATURATE(f64_to_i8, double, int8_t, int32_t, INT8_MIN, INT8_MAX, 0x1p7)
SATURATE(f64_to_u8, double, uint8_t, int32_t, 0, UINT8_MAX, 0x1p8)
SATURATE(f64_to_i16, double, int16_t, int32_t, INT16_MIN, INT16_MAX, 0x1p15)
SATURATE(f64_to_u16, double, uint16_t, int32_t, 0, UINT16_MAX, 0x1p16)
SATURATE(f64_to_i32, double, int32_t, int32_t, INT32_MIN, INT32_MAX, 0x1p31)
SATURATE(f64_to_u32, double, uint32_t, uint32_t, 0, UINT32_MAX, 0x1p32)
SATURATE(f64_to_i64, double, int64_t, int64_t, INT64_MIN, INT64_MAX, 0x1p63)
SATURATE(f64_to_u64, double, uint64_t, uint64_t, 0, UINT64_MAX, 0x1p64)

#undef SATURATE

/* load_KIND_DTYPE() and store_DTYPE_KIND() on elements as they are stored. */
#define VIA(name, to, from, expr)     \
	static inline to name(from x) \
	{                             \
		return (to)(expr);    \
	}

#define INTEGER_DTYPE(t, type)                            \
	VIA(load_f32_##t, float, type, x)                 \
	VIA(load_f64_##t, double, type, x)                \
	VIA(load_i32_##t, int32_t, type, x)               \
	VIA(load_i64_##t, int64_t, type, x)               \
	VIA(store_##t##_f32, type, float, f32_to_##t(x))  \
	VIA(store_##t##_f64, type, double, f64_to_##t(x)) \
	VIA(store_##t##_i32, type, int32_t, x)            \
	VIA(store_##t##_i64, type, int64_t, x)

INTEGER_DTYPE(i8, int8_t)
INTEGER_DTYPE(u8, uint8_t)
INTEGER_DTYPE(i16, int16_t)
INTEGER_DTYPE(u16, uint16_t)
INTEGER_DTYPE(i32, int32_t)
INTEGER_DTYPE(u32, uint32_t)
INTEGER_DTYPE(i64, int64_t)
INTEGER_DTYPE(u64, uint64_t)

#undef INTEGER_DTYPE

/* Floats of fewer bits than fp32. */
#define SMALL_DTYPE(t, type)                                                       \
	VIA(load_f32_##t, float, type, t##_to_f32(x))                              \
	VIA(load_f64_##t, double, type, t##_to_f32(x))                             \
	VIA(load_i32_##t, int32_t, type, f32_to_i32(t##_to_f32(x)))                \
	VIA(load_i64_##t, int64_t, type, f32_to_i64(t##_to_f32(x)))                \
	VIA(store_##t##_f32, type, float, f32_to_##t(x))                           \
	VIA(store_##t##_f64, type, double, f32_to_##t(f64_to_f32_odd(x)))          \
	VIA(store_##t##_i32, type, int32_t, f32_to_##t(f64_to_f32_odd((double)x))) \
	VIA(store_##t##_i64, type, int64_t, f32_to_##t(i64_to_f32_odd(x)))

SMALL_DTYPE(bf16, uint16_t)
SMALL_DTYPE(fp16, uint16_t)
SMALL_DTYPE(tf32, uint32_t)
SMALL_DTYPE(e3m4, uint8_t)
SMALL_DTYPE(e4m3, uint8_t)
SMALL_DTYPE(e5m2, uint8_t)
SMALL_DTYPE(e4m3fn, uint8_t)

#undef SMALL_DTYPE

VIA(load_f32_f32, float, float, x)
VIA(load_f64_f32, double, float, x)
VIA(load_i32_f32, int32_t, float, f32_to_i32(x))
VIA(load_i64_f32, int64_t, float, f32_to_i64(x))
VIA(load_f32_f64, float, double, x)
VIA(load_f64_f64, double, double, x)
VIA(load_i32_f64, int32_t, double, f64_to_i32(x))
VIA(load_i64_f64, int64_t, double, f64_to_i64(x))
VIA(store_f32_f32, float, float, x)
VIA(store_f32_f64, float, double, x)
VIA(store_f32_i32, float, int32_t, x)
VIA(store_f32_i64, float, int64_t, x)
VIA(store_f64_f32, double, float, x)
VIA(store_f64_f64, double, double, x)
VIA(store_f64_i32, double, int32_t, x)
VIA(store_f64_i64, double, int64_t, x)

#undef VIA

#endif /* NM_ROWS_CONVERT_H */
