/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The execution interface once more, one element at a time, for comparison with the model. It shares
 * nothing with the model but hw/; numbers go through long double, which holds every element exactly.
 */
#ifndef TEST_REFERENCE_H
#define TEST_REFERENCE_H

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "neuron_isa.h"

_Static_assert(LDBL_MANT_DIG >= 64, "the reference needs 64-bit fractions");

struct format {
	bool is_float, is_signed;
	int bits, precision,
		min_exp; /* precision with the hidden bit; exponent of the least normal */
	int unused; /* low bits of more, behind those; rounded away when an element is read */
	bool finite; /* no infinities: all ones are NaN, all else numbers */
};

static inline struct format ref_format(unsigned int dtype)
{
	switch (dtype) {
	case ISA_INT8:
		return (struct format){ false, true, 8, 0, 0, 0, false };
	case ISA_UINT8:
		return (struct format){ false, false, 8, 0, 0, 0, false };
	case ISA_INT16:
		return (struct format){ false, true, 16, 0, 0, 0, false };
	case ISA_UINT16:
		return (struct format){ false, false, 16, 0, 0, 0, false };
	case ISA_INT32:
		return (struct format){ false, true, 32, 0, 0, 0, false };
	case ISA_UINT32:
		return (struct format){ false, false, 32, 0, 0, 0, false };
	case ISA_INT64:
		return (struct format){ false, true, 64, 0, 0, 0, false };
	case ISA_UINT64:
		return (struct format){ false, false, 64, 0, 0, 0, false };
	case ISA_BF16:
		return (struct format){ true, true, 16, 8, -126, 0, false };
	case ISA_FP16:
		return (struct format){ true, true, 16, 11, -14, 0, false };
	case ISA_FP32:
		return (struct format){ true, true, 32, 24, -126, 0, false };
	case ISA_TF32:
		return (struct format){ true, true, 32, 11, -126, 13, false };
	case ISA_FP8_E3:
		return (struct format){ true, true, 8, 5, -2, 0, false };
	case ISA_FP8_E4:
		return (struct format){ true, true, 8, 4, -6, 0, false };
	case ISA_FP8_E4FN:
		return (struct format){ true, true, 8, 4, -6, 0, true };
	case ISA_FP8_E5:
		return (struct format){ true, true, 8, 3, -14, 0, false };
	default:
		return (struct format){ true, true, 64, 53, -1022, 0, false };
	}
}

static inline uint64_t ref_mask(int bits)
{
	return bits == 64 ? UINT64_MAX : (1ull << bits) - 1;
}

/* Value of an IEEE pattern. */
static inline long double ref_value(struct format f, uint64_t u)
{
	int fraction = f.precision - 1, exp_bits = f.bits - f.precision;
	uint64_t exp = u >> fraction & ref_mask(exp_bits), frac = u & ref_mask(fraction);
	long double x;

	if (f.finite ? (u & ref_mask(f.bits - 1)) == ref_mask(f.bits - 1) :
		       exp == ref_mask(exp_bits))
		x = frac ? (long double)NAN : (long double)INFINITY;
	else if (exp == 0)
		x = ldexpl((long double)frac, f.min_exp - fraction);
	else
		x = ldexpl((long double)(frac | 1ull << fraction),
			   f.min_exp - fraction + (int)exp - 1);
	return u >> (f.bits - 1) & 1 ? -x : x;
}

/* Nearest pattern, ties to even. */
static inline uint64_t ref_nearest(struct format f, long double x)
{
	int fraction = f.precision - 1, exp_bits = f.bits - f.precision, e;
	uint64_t sign = signbit(x) ? 1ull << (f.bits - 1) : 0, u;
	/* What takes the place of larger numbers. */
	uint64_t inf = f.finite ? ref_mask(f.bits - 1) : ref_mask(exp_bits) << fraction;
	long double m;

	if (isnan(x))
		return inf | 1ull << (fraction - 1);
	if (isinf(x))
		return sign | inf;
	frexpl(x, &e);
	e = e - 1 < f.min_exp ? f.min_exp : e - 1;
	m = rintl(ldexpl(fabsl(x), fraction - e)); /* units of the last place */
	if (m == 0)
		return sign;
	if (m >= ldexpl(1, f.precision))
		m /= 2, e++;
	if (e > (int)ref_mask(exp_bits) + f.min_exp - 1)
		return sign | inf;
	if (m < ldexpl(1, fraction))
		return sign | (uint64_t)m;
	u = (uint64_t)(e - f.min_exp + 1) << fraction | ((uint64_t)m & ref_mask(fraction));
	return sign | (u > inf ? inf : u);
}

/* Pattern of an element, and its value. */
static inline uint64_t ref_pack(struct format f, long double x)
{
	f.bits -= f.unused;
	return ref_nearest(f, x) << f.unused;
}

static inline long double ref_unpack(struct format f, uint64_t u)
{
	struct format all = f;

	if (!f.unused)
		return ref_value(f, u);
	all.precision += f.unused;
	f.bits -= f.unused;
	return ref_value(f, ref_nearest(f, ref_value(all, u)));
}

/* An operand or result in a compute type: floats as numbers, integers in i. */
struct value {
	long double x;
	int64_t i;
};

static inline bool ref_ct_float(unsigned int ct)
{
	return ct == ISA_CT_F32 || ct == ISA_CT_F64;
}

static inline struct format ref_ct_format(unsigned int ct)
{
	return ref_format(ct == ISA_CT_F32 ? ISA_FP32 : ISA_FP64);
}

/* Number rounded to the compute type. */
static inline struct value ref_round(unsigned int ct, long double x)
{
	struct format f = ref_ct_format(ct);

	return (struct value){ .x = ref_unpack(f, ref_pack(f, x)) };
}

static inline uint64_t ref_saturate(struct format f, long double x)
{
	long double high = ldexpl(1, f.is_signed ? f.bits - 1 : f.bits);
	long double low = f.is_signed ? -high : 0;

	x = truncl(x);
	if (isnan(x))
		return 0;
	if (x >= high)
		return ref_mask(f.bits) >> (f.is_signed ? 1 : 0);
	if (x < low)
		return f.is_signed ? 1ull << (f.bits - 1) : 0;
	return (x < 0 ? (uint64_t)(int64_t)x : (uint64_t)x) & ref_mask(f.bits);
}

static inline int64_t ref_wrap(unsigned int ct, uint64_t u)
{
	return ct == ISA_CT_I32 ? (int32_t)u : (int64_t)u;
}

static inline struct value ref_load(unsigned int ct, unsigned int dtype, const void *p)
{
	struct format f = ref_format(dtype);
	struct format to = { false, true, ct == ISA_CT_I32 ? 32 : 64, 0, 0, 0, false };
	struct value v = { 0 };
	uint64_t u = 0;
	int64_t s;

	memcpy(&u, p, (size_t)f.bits / 8);
	if (f.is_float) {
		v.x = ref_unpack(f, u);
		if (ref_ct_float(ct))
			return ref_round(ct, v.x);
		v.i = ref_wrap(ct, ref_saturate(to, v.x));
		return v;
	}
	s = f.is_signed ? (int64_t)(u << (64 - f.bits)) >> (64 - f.bits) : (int64_t)u;
	if (ref_ct_float(ct))
		return ref_round(ct, f.is_signed ? (long double)s : (long double)u);
	v.i = ref_wrap(ct, (uint64_t)s);
	return v;
}

static inline uint64_t ref_store(unsigned int ct, unsigned int dtype, struct value v)
{
	struct format f = ref_format(dtype);

	if (f.is_float)
		return ref_pack(f, ref_ct_float(ct) ? v.x : (long double)v.i);
	if (ref_ct_float(ct))
		return ref_saturate(f, v.x);
	return (uint64_t)v.i & ref_mask(f.bits);
}

/* --- operations ------------------------------------------------------------------------ */

static inline long double ref_float_alu(unsigned int op, long double a, long double b)
{
	long double r;

	switch (op) {
	case ISA_BYPASS:
		return a;
	case ISA_ADD:
		return a + b;
	case ISA_SUB:
		return a - b;
	case ISA_MULT:
		return a * b;
	case ISA_DIV:
		return a / b;
	case ISA_MAX:
		return isnan(a) || isnan(b) ? (long double)NAN : a > b ? a : b;
	case ISA_MIN:
		return isnan(a) || isnan(b) ? (long double)NAN : a < b ? a : b;
	case ISA_ABS_MAX:
		return ref_float_alu(ISA_MAX, fabsl(a), fabsl(b));
	case ISA_ABS_MIN:
		return ref_float_alu(ISA_MIN, fabsl(a), fabsl(b));
	case ISA_POW:
		return powl(a, b);
	case ISA_MOD:
		r = fmodl(a, b);
		if (r == 0)
			return copysignl(0, b);
		return isnan(r) || (r < 0) == (b < 0) ? r : r + b;
	case ISA_IS_EQ:
		return a == b;
	case ISA_IS_NE:
		return a != b;
	case ISA_IS_GT:
		return a > b;
	case ISA_IS_GE:
		return a >= b;
	case ISA_IS_LT:
		return a < b;
	case ISA_IS_LE:
		return a <= b;
	case ISA_LOGICAL_AND:
		return a != 0 && b != 0;
	case ISA_LOGICAL_OR:
		return a != 0 || b != 0;
	default:
		return (a != 0) != (b != 0);
	}
}

static inline double ref_double_alu(unsigned int op, double a, double b)
{
	double r;

	switch (op) {
	case ISA_ADD:
		return a + b;
	case ISA_SUB:
		return a - b;
	case ISA_MULT:
		return a * b;
	case ISA_DIV:
		return a / b;
	case ISA_MOD:
		r = fmod(a, b);
		if (r == 0)
			return copysign(0, b);
		return isnan(r) || (r < 0) == (b < 0) ? r : r + b;
	default:
		return (double)ref_float_alu(op, a, b);
	}
}

/* Of the least integer it is not one: it stays what it is. */
static inline __int128 ref_magnitude(int64_t a, int bits)
{
	const __int128 magnitude = a < 0 ? -(__int128)a : a;

	return magnitude >> (bits - 1) ? -magnitude : magnitude;
}

static inline int64_t ref_int_alu(unsigned int op, int64_t a, int64_t b, int bits)
{
	uint64_t ua = (uint64_t)a, ub = (uint64_t)b, power = 1;
	bool shift_out = b < 0 || b >= bits;
	__int128 wa = a, wb = b, r;

	switch (op) {
	case ISA_BYPASS:
		return a;
	case ISA_ADD:
		return (int64_t)(ua + ub);
	case ISA_SUB:
		return (int64_t)(ua - ub);
	case ISA_MULT:
		return (int64_t)(ua * ub);
	case ISA_DIV:
		return b ? (int64_t)(wa / wb) : 0;
	case ISA_MAX:
		return a > b ? a : b;
	case ISA_MIN:
		return a < b ? a : b;
	case ISA_ABS_MAX:
	case ISA_ABS_MIN:
		wa = ref_magnitude(a, bits);
		wb = ref_magnitude(b, bits);
		return (int64_t)((op == ISA_ABS_MAX) == (wa > wb) ? wa : wb);
	case ISA_POW:
		if (b < 0)
			return a == 1 || (a == -1 && b % 2 == 0) ? 1 : a == -1 ? -1 : 0;
		for (int i = 63; i >= 0; i--)
			power = power * power * (ub >> i & 1 ? ua : 1);
		return (int64_t)power;
	case ISA_MOD:
		if (!b)
			return 0;
		r = wa % wb;
		return (int64_t)(r && (r < 0) != (wb < 0) ? r + wb : r);
	case ISA_IS_EQ:
		return a == b;
	case ISA_IS_NE:
		return a != b;
	case ISA_IS_GT:
		return a > b;
	case ISA_IS_GE:
		return a >= b;
	case ISA_IS_LT:
		return a < b;
	case ISA_IS_LE:
		return a <= b;
	case ISA_LOGICAL_AND:
		return a && b;
	case ISA_LOGICAL_OR:
		return a || b;
	case ISA_LOGICAL_XOR:
		return !a != !b;
	case ISA_BIT_AND:
		return a & b;
	case ISA_BIT_OR:
		return a | b;
	case ISA_BIT_XOR:
		return a ^ b;
	case ISA_SHL:
		return shift_out ? 0 : (int64_t)(ua << b);
	case ISA_SHR:
		return shift_out ? 0 : (int64_t)((ua & ref_mask(bits)) >> b);
	default:
		return shift_out ? (a < 0 ? -1 : 0) : a >> b;
	}
}

static inline struct value ref_alu(unsigned int ct, unsigned int op, struct value a, struct value b)
{
	struct value v = { 0 };

	/* 64-bit fractions rounded to 53 would be rounded twice. */
	if (ct == ISA_CT_F64)
		return (struct value){ .x = ref_double_alu(op, (double)a.x, (double)b.x) };
	if (ref_ct_float(ct))
		return ref_round(ct, ref_float_alu(op, a.x, b.x));
	v.i = ref_wrap(ct, (uint64_t)ref_int_alu(op, a.i, b.i, ct == ISA_CT_I32 ? 32 : 64));
	return v;
}

static inline struct value ref_imm(unsigned int ct, uint64_t imm)
{
	struct value v = { .i = (int64_t)imm };

	if (ref_ct_float(ct))
		v.x = ref_unpack(ref_ct_format(ct), imm);
	return v;
}

/* Byte offset in a partition of element n of a tile. */
static inline int64_t ref_offset(const struct isa_tile *t, uint32_t n)
{
	int64_t at = 0;

	for (int d = ISA_TILE_DIMS - 1; d >= 0; d--) {
		at += (int64_t)(n % t->count[d]) * (int32_t)t->step[d];
		n /= t->count[d];
	}
	return t->offset + at * isa_dtype_bytes(t->dtype);
}

static inline uint32_t ref_elems(const struct isa_tile *t)
{
	return t->count[0] * t->count[1] * t->count[2] * t->count[3];
}

#endif /* TEST_REFERENCE_H */
