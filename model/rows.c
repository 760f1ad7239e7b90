// SPDX-License-Identifier: Apache-2.0
/* Compiled once per vector width; NM_ROWS names the table (see model/CMakeLists.txt). */
#include "rows.h"

#include <string.h>

#include "rows_act.h"
#include "rows_alu.h"
#include "rows_convert.h"
#include "rows_gemm.h"

#ifdef __clang__
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

/* --- conversions -------------------------------------------------------------- */

#define LOAD(k, K, t, T)                                                                   \
	static void row_load_##k##_##t(void *d, const void *src, ptrdiff_t step, size_t n) \
	{                                                                                  \
		K *out = d;                                                                \
		const T *in = src;                                                         \
                                                                                           \
		if (step == sizeof(T)) {                                                   \
			INDEPENDENT                                                        \
			for (size_t i = 0; i < n; i++)                                     \
				out[i] = load_##k##_##t(in[i]);                            \
		} else if (step == 0) {                                                    \
			K x = load_##k##_##t(in[0]);                                       \
                                                                                           \
			for (size_t i = 0; i < n; i++)                                     \
				out[i] = x;                                                \
		} else {                                                                   \
			for (size_t i = 0; i < n; i++, in += step / (ptrdiff_t)sizeof(T))  \
				out[i] = load_##k##_##t(*in);                              \
		}                                                                          \
	}

#define STORE(k, K, t, T)                                                                   \
	static void row_store_##k##_##t(void *dst, ptrdiff_t step, const void *a, size_t n) \
	{                                                                                   \
		T *out = dst;                                                               \
		const K *in = a;                                                            \
                                                                                            \
		if (step == sizeof(T)) {                                                    \
			INDEPENDENT                                                         \
			for (size_t i = 0; i < n; i++)                                      \
				out[i] = store_##t##_##k(in[i]);                            \
		} else {                                                                    \
			for (size_t i = 0; i < n; i++, out += step / (ptrdiff_t)sizeof(T))  \
				*out = store_##t##_##k(in[i]);                              \
		}                                                                           \
	}

#define CONVERT(k, K, t, T) \
	LOAD(k, K, t, T)    \
	STORE(k, K, t, T)

#define CONVERT_DTYPES(k, K)           \
	CONVERT(k, K, i8, int8_t)      \
	CONVERT(k, K, u8, uint8_t)     \
	CONVERT(k, K, i16, int16_t)    \
	CONVERT(k, K, u16, uint16_t)   \
	CONVERT(k, K, bf16, uint16_t)  \
	CONVERT(k, K, fp16, uint16_t)  \
	CONVERT(k, K, tf32, uint32_t)  \
	CONVERT(k, K, e3m4, uint8_t)   \
	CONVERT(k, K, e4m3, uint8_t)   \
	CONVERT(k, K, e5m2, uint8_t)   \
	CONVERT(k, K, e4m3fn, uint8_t) \
	CONVERT(k, K, i32, int32_t)    \
	CONVERT(k, K, u32, uint32_t)   \
	CONVERT(k, K, f32, float)      \
	CONVERT(k, K, i64, int64_t)    \
	CONVERT(k, K, u64, uint64_t)   \
	CONVERT(k, K, f64, double)

CONVERT_DTYPES(f32, float)
CONVERT_DTYPES(i32, int32_t)
CONVERT_DTYPES(i64, int64_t)
CONVERT_DTYPES(f64, double)

#ifdef __F16C__
/* The same bits as fp16_to_f32() and f32_to_fp16(), of which compilers make slow vector code. */
static void row_load_f32_hard_fp16(void *d, const void *src, ptrdiff_t step, size_t n)
{
	const uint16_t *in = src;
	float *out = d;
	size_t i = 0;

	for (; step == sizeof(*in) && i + 8 <= n; i += 8)
		_mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128((const void *)(in + i))));
	row_load_f32_fp16(out + i, in + i, step, n - i);
}

static void row_store_f32_hard_fp16(void *dst, ptrdiff_t step, const void *a, size_t n)
{
	uint16_t *out = dst;
	const float *in = a;
	size_t i = 0;

	for (; step == sizeof(*out) && i + 8 <= n; i += 8)
		_mm_storeu_si128((void *)(out + i), _mm256_cvtps_ph(_mm256_loadu_ps(in + i),
								    _MM_FROUND_TO_NEAREST_INT));
	row_store_f32_fp16(out + i, step, in + i, n - i);
}
#else
#define row_load_f32_hard_fp16	row_load_f32_fp16
#define row_store_f32_hard_fp16 row_store_f32_fp16
#endif

#define DTYPE_TABLE(prefix, fp16)                                             \
	{                                                                     \
		[ISA_INT8] = prefix##i8,	 [ISA_UINT8] = prefix##u8,    \
		[ISA_INT16] = prefix##i16,	 [ISA_UINT16] = prefix##u16,  \
		[ISA_BF16] = prefix##bf16,	 [ISA_FP16] = prefix##fp16,   \
		[ISA_INT32] = prefix##i32,	 [ISA_UINT32] = prefix##u32,  \
		[ISA_FP32] = prefix##f32,	 [ISA_INT64] = prefix##i64,   \
		[ISA_UINT64] = prefix##u64,	 [ISA_FP64] = prefix##f64,    \
		[ISA_FP8_E3] = prefix##e3m4,	 [ISA_FP8_E4] = prefix##e4m3, \
		[ISA_FP8_E5] = prefix##e5m2,	 [ISA_TF32] = prefix##tf32,   \
		[ISA_FP8_E4FN] = prefix##e4m3fn,                              \
	}

/* --- ALU ------------------------------------------------------------------------- */

#define ROW(T, p, op)                                                              \
	static void tt_##p##_##op(void *d, const void *a, const void *b, size_t n) \
	{                                                                          \
		T *out = d;                                                        \
		const T *x = a, *y = b;                                            \
                                                                                   \
		INDEPENDENT                                                        \
		for (size_t i = 0; i < n; i++)                                     \
			out[i] = p##_##op(x[i], y[i]);                             \
	}                                                                          \
	static void ts_##p##_##op(void *d, const void *a, const void *b, size_t n) \
	{                                                                          \
		T *out = d;                                                        \
		const T *x = a, y = *(const T *)b;                                 \
                                                                                   \
		INDEPENDENT                                                        \
		for (size_t i = 0; i < n; i++)                                     \
			out[i] = p##_##op(x[i], y);                                \
	}                                                                          \
	static void st_##p##_##op(void *d, const void *a, const void *b, size_t n) \
	{                                                                          \
		T *out = d;                                                        \
		const T *x = a, y = *(const T *)b;                                 \
                                                                                   \
		INDEPENDENT                                                        \
		for (size_t i = 0; i < n; i++)                                     \
			out[i] = p##_##op(y, x[i]);                                \
	}

#define EACH_COMMON(X, T, p) \
	X(T, p, bypass)      \
	X(T, p, add)         \
	X(T, p, sub)         \
	X(T, p, mult)        \
	X(T, p, div)         \
	X(T, p, max)         \
	X(T, p, min)         \
	X(T, p, mod)         \
	X(T, p, is_eq)       \
	X(T, p, is_ne)       \
	X(T, p, is_gt)       \
	X(T, p, is_ge)       \
	X(T, p, is_lt)       \
	X(T, p, is_le)       \
	X(T, p, logical_and) \
	X(T, p, logical_or)  \
	X(T, p, logical_xor) \
	X(T, p, abs_max)     \
	X(T, p, abs_min)

#define EACH_INTEGER(X, T, p) \
	X(T, p, pow)          \
	X(T, p, bit_and)      \
	X(T, p, bit_or)       \
	X(T, p, bit_xor)      \
	X(T, p, shl)          \
	X(T, p, shr)          \
	X(T, p, asr)

EACH_COMMON(ROW, float, f32)
EACH_COMMON(ROW, double, f64)
EACH_COMMON(ROW, int32_t, i32)
EACH_COMMON(ROW, int64_t, i64)
EACH_INTEGER(ROW, int32_t, i32)
EACH_INTEGER(ROW, int64_t, i64)

static void tt_f32_pow(void *d, const void *a, const void *b, size_t n)
{
	vec_powf(d, a, b, n);
}

static void ts_f32_pow(void *d, const void *a, const void *b, size_t n)
{
	float y[ACT_BLOCK];

	for (size_t i = 0; i < ACT_BLOCK; i++)
		y[i] = *(const float *)b;
	for (size_t i = 0; i < n; i += ACT_BLOCK)
		vec_powf((float *)d + i, (const float *)a + i, y,
			 n - i < ACT_BLOCK ? n - i : ACT_BLOCK);
}

static void st_f32_pow(void *d, const void *a, const void *b, size_t n)
{
	float y[ACT_BLOCK];

	for (size_t i = 0; i < ACT_BLOCK; i++)
		y[i] = *(const float *)b;
	for (size_t i = 0; i < n; i += ACT_BLOCK)
		vec_powf((float *)d + i, y, (const float *)a + i,
			 n - i < ACT_BLOCK ? n - i : ACT_BLOCK);
}

static inline double f64_pow(double a, double b)
{
	return scalar_pow(a, b);
}

ROW(double, f64, pow)

#define COMMON_TABLE(f, p)                                                                           \
	[ISA_BYPASS] = f##_##p##_bypass, [ISA_ADD] = f##_##p##_add, [ISA_SUB] = f##_##p##_sub,       \
	[ISA_MULT] = f##_##p##_mult, [ISA_DIV] = f##_##p##_div, [ISA_MAX] = f##_##p##_max,           \
	[ISA_MIN] = f##_##p##_min, [ISA_POW] = f##_##p##_pow, [ISA_MOD] = f##_##p##_mod,             \
	[ISA_IS_EQ] = f##_##p##_is_eq, [ISA_IS_NE] = f##_##p##_is_ne,                                \
	[ISA_IS_GT] = f##_##p##_is_gt, [ISA_IS_GE] = f##_##p##_is_ge, [ISA_IS_LT] = f##_##p##_is_lt, \
	[ISA_IS_LE] = f##_##p##_is_le, [ISA_LOGICAL_AND] = f##_##p##_logical_and,                    \
	[ISA_LOGICAL_OR] = f##_##p##_logical_or, [ISA_LOGICAL_XOR] = f##_##p##_logical_xor,          \
	[ISA_ABS_MAX] = f##_##p##_abs_max, [ISA_ABS_MIN] = f##_##p##_abs_min

#define INTEGER_TABLE(f, p)                                                                     \
	COMMON_TABLE(f, p), [ISA_BIT_AND] = f##_##p##_bit_and, [ISA_BIT_OR] = f##_##p##_bit_or, \
			    [ISA_BIT_XOR] = f##_##p##_bit_xor, [ISA_SHL] = f##_##p##_shl,       \
			    [ISA_SHR] = f##_##p##_shr, [ISA_ASR] = f##_##p##_asr

#define ALU_TABLE(f)                                      \
	{                                                 \
		[ISA_CT_F32] = { COMMON_TABLE(f, f32) },  \
		[ISA_CT_I32] = { INTEGER_TABLE(f, i32) }, \
		[ISA_CT_I64] = { INTEGER_TABLE(f, i64) }, \
		[ISA_CT_F64] = { COMMON_TABLE(f, f64) },  \
	}

/* --- reductions ------------------------------------------------------------------- */

#define REDUCE(T, p, op, identity)                                                    \
	static void ri_##p##_##op(void *lanes)                                        \
	{                                                                             \
		for (size_t l = 0; l < NM_LANES; l++)                                 \
			((T *)lanes)[l] = identity;                                   \
	}                                                                             \
	static void rr_##p##_##op(void *lanes, const void *a, size_t n, size_t first) \
	{                                                                             \
		const T *x = a;                                                       \
		size_t i = 0;                                                         \
		T acc[NM_LANES];                                                      \
                                                                                      \
		memcpy(acc, lanes, sizeof(acc));                                      \
		for (size_t l = first % NM_LANES; l % NM_LANES && i < n; l++, i++)    \
			acc[l] = p##_##op(acc[l], x[i]);                              \
		for (; i + NM_LANES <= n; i += NM_LANES)                              \
			for (size_t l = 0; l < NM_LANES; l++)                         \
				acc[l] = p##_##op(acc[l], x[i + l]);                  \
		for (size_t l = 0; i < n; i++, l++)                                   \
			acc[l] = p##_##op(acc[l], x[i]);                              \
		memcpy(lanes, acc, sizeof(acc));                                      \
	}                                                                             \
	static void re_##p##_##op(void *lanes)                                        \
	{                                                                             \
		T *acc = lanes;                                                       \
                                                                                      \
		for (size_t half = NM_LANES / 2; half; half /= 2)                     \
			for (size_t l = 0; l < half; l++)                             \
				acc[l] = p##_##op(acc[l], acc[l + half]);             \
	}

#define REDUCE_COMMON(T, p, low, high) \
	REDUCE(T, p, add, 0)           \
	REDUCE(T, p, mult, 1)          \
	REDUCE(T, p, max, low)         \
	REDUCE(T, p, min, high)        \
	REDUCE(T, p, logical_and, 1)   \
	REDUCE(T, p, logical_or, 0)    \
	REDUCE(T, p, abs_max, 0)       \
	REDUCE(T, p, abs_min, high)

REDUCE_COMMON(float, f32, -INFINITY, INFINITY)
REDUCE_COMMON(double, f64, -(double)INFINITY, (double)INFINITY)
REDUCE_COMMON(int32_t, i32, INT32_MIN, INT32_MAX)
REDUCE_COMMON(int64_t, i64, INT64_MIN, INT64_MAX)
REDUCE(int32_t, i32, bit_and, -1)
REDUCE(int32_t, i32, bit_or, 0)
REDUCE(int64_t, i64, bit_and, -1)
REDUCE(int64_t, i64, bit_or, 0)

#define REDUCE_FLOAT_TABLE(f, p)                                                           \
	[ISA_ADD] = f##_##p##_add, [ISA_MULT] = f##_##p##_mult, [ISA_MAX] = f##_##p##_max, \
	[ISA_MIN] = f##_##p##_min, [ISA_LOGICAL_AND] = f##_##p##_logical_and,              \
	[ISA_LOGICAL_OR] = f##_##p##_logical_or, [ISA_ABS_MAX] = f##_##p##_abs_max,        \
	[ISA_ABS_MIN] = f##_##p##_abs_min

#define REDUCE_INTEGER_TABLE(f, p) \
	REDUCE_FLOAT_TABLE(f, p), [ISA_BIT_AND] = f##_##p##_bit_and, [ISA_BIT_OR] = f##_##p##_bit_or

#define REDUCE_TABLE(f)                                          \
	{                                                        \
		[ISA_CT_F32] = { REDUCE_FLOAT_TABLE(f, f32) },   \
		[ISA_CT_I32] = { REDUCE_INTEGER_TABLE(f, i32) }, \
		[ISA_CT_I64] = { REDUCE_INTEGER_TABLE(f, i64) }, \
		[ISA_CT_F64] = { REDUCE_FLOAT_TABLE(f, f64) },   \
	}

/* --- predicates, copies -------------------------------------------------------------- */

#define TRUTH(t, T, expr)                                                                   \
	static void truth_##t(uint8_t *m, const void *src, ptrdiff_t step, size_t n)        \
	{                                                                                   \
		const T *in = src;                                                          \
                                                                                            \
		if (step == sizeof(T)) {                                                    \
			INDEPENDENT                                                         \
			for (size_t i = 0; i < n; i++) {                                    \
				T x = in[i];                                                \
                                                                                            \
				m[i] = (expr) != 0;                                         \
			}                                                                   \
		} else {                                                                    \
			for (size_t i = 0; i < n; i++, in += step / (ptrdiff_t)sizeof(T)) { \
				T x = *in;                                                  \
                                                                                            \
				m[i] = (expr) != 0;                                         \
			}                                                                   \
		}                                                                           \
	}

TRUTH(b1, uint8_t, x)
TRUTH(b2, uint16_t, x)
TRUTH(b4, uint32_t, x)
TRUTH(b8, uint64_t, x)
TRUTH(fp8, uint8_t, x & 0x7f) /* minus zero is zero */
TRUTH(half, uint16_t, x & 0x7fff)
TRUTH(f32, uint32_t, x & 0x7fffffff)
TRUTH(tf32, uint32_t, f32_bits(tf32_to_f32(x)) & 0x7fffffff)
TRUTH(f64, uint64_t, x << 1)

#define BLEND(T, bits)                                                               \
	static void blend_##bits(void *d, const uint8_t *m, const void *a, size_t n) \
	{                                                                            \
		T *out = d;                                                          \
		const T *in = a;                                                     \
                                                                                     \
		INDEPENDENT                                                          \
		for (size_t i = 0; i < n; i++)                                       \
			out[i] = m[i] ? in[i] : out[i];                              \
	}

BLEND(uint8_t, 8)
BLEND(uint16_t, 16)
BLEND(uint32_t, 32)
BLEND(uint64_t, 64)

/* Elements may be unaligned here: slots begin and step at any byte. */
#define COPY(bytes)                                                                        \
	static void copy_##bytes(void *d, ptrdiff_t dstep, const void *s, ptrdiff_t sstep, \
				 size_t n)                                                 \
	{                                                                                  \
		char *out = d;                                                             \
		const char *in = s;                                                        \
                                                                                           \
		if (dstep == (bytes) && sstep == (bytes)) {                                \
			memmove(out, in, n * (bytes));                                     \
			return;                                                            \
		}                                                                          \
		for (size_t i = 0; i < n; i++, out += dstep, in += sstep)                  \
			memcpy(out, in, bytes);                                            \
	}

COPY(1)
COPY(2)
COPY(4)
COPY(8)

#define FILL(T, bits)                                                                 \
	static void fill_##bits(void *d, ptrdiff_t step, const void *value, size_t n) \
	{                                                                             \
		T *out = d, x;                                                        \
                                                                                      \
		memcpy(&x, value, sizeof(x));                                         \
		if (step == sizeof(T)) {                                              \
			for (size_t i = 0; i < n; i++)                                \
				out[i] = x;                                           \
			return;                                                       \
		}                                                                     \
		for (size_t i = 0; i < n; i++, out += step / (ptrdiff_t)sizeof(T))    \
			*out = x;                                                     \
	}

FILL(uint8_t, 8)
FILL(uint16_t, 16)
FILL(uint32_t, 32)
FILL(uint64_t, 64)

/* Blocks of so many rows, and columns of a cache line, by way of a copy: the rows of a matrix may all
 * fall into the same few sets of the first-level cache. */
#define TILE	  16
#define TILE_LINE 64

#define TRANSPOSE(T, bits)                                                                       \
	static void transpose_##bits(void *d, ptrdiff_t dpitch, const void *s, ptrdiff_t spitch, \
				     size_t rows, size_t cols)                                   \
	{                                                                                        \
		enum { LINE = TILE_LINE / sizeof(T) };                                           \
		T tile[TILE][LINE] = { 0 };                                                      \
                                                                                                 \
		for (size_t c = 0; c < cols; c += LINE)                                          \
			for (size_t r = 0; r < rows; r += TILE) {                                \
				size_t nr = rows - r < TILE ? rows - r : TILE;                   \
				size_t nc = cols - c < LINE ? cols - c : LINE;                   \
				const char *in =                                                 \
					(const char *)s + (ptrdiff_t)r * spitch + c * sizeof(T); \
				char *out = (char *)d + (ptrdiff_t)c * dpitch + r * sizeof(T);   \
                                                                                                 \
				for (size_t i = 0; i < nr; i++, in += spitch)                    \
					memcpy(tile[i], in, nc * sizeof(T));                     \
				for (size_t j = 0; j < nc; j++, out += dpitch) {                 \
					T column[TILE];                                          \
                                                                                                 \
					for (size_t i = 0; i < TILE; i++)                        \
						column[i] = tile[i][j];                          \
					if (nr == TILE)                                          \
						memcpy(out, column, sizeof(column));             \
					else                                                     \
						memcpy(out, column, nr * sizeof(T));             \
				}                                                                \
			}                                                                        \
	}

TRANSPOSE(uint16_t, 16)
TRANSPOSE(uint32_t, 32)

extern const struct nm_rows NM_ROWS;

const struct nm_rows NM_ROWS = {
	.load = {
		[ISA_CT_F32] = DTYPE_TABLE(row_load_f32_, hard_fp16),
		[ISA_CT_I32] = DTYPE_TABLE(row_load_i32_, fp16),
		[ISA_CT_I64] = DTYPE_TABLE(row_load_i64_, fp16),
		[ISA_CT_F64] = DTYPE_TABLE(row_load_f64_, fp16),
	},
	.store = {
		[ISA_CT_F32] = DTYPE_TABLE(row_store_f32_, hard_fp16),
		[ISA_CT_I32] = DTYPE_TABLE(row_store_i32_, fp16),
		[ISA_CT_I64] = DTYPE_TABLE(row_store_i64_, fp16),
		[ISA_CT_F64] = DTYPE_TABLE(row_store_f64_, fp16),
	},
	.tt = ALU_TABLE(tt),
	.ts = ALU_TABLE(ts),
	.st = ALU_TABLE(st),
	.reduce_init = REDUCE_TABLE(ri),
	.reduce = REDUCE_TABLE(rr),
	.reduce_end = REDUCE_TABLE(re),
	.affine = row_affine,
	.act = ACT_TABLE,
	.truth = {
		[ISA_INT8] = truth_b1, [ISA_UINT8] = truth_b1, [ISA_INT16] = truth_b2,
		[ISA_UINT16] = truth_b2, [ISA_BF16] = truth_half, [ISA_FP16] = truth_half,
		[ISA_INT32] = truth_b4, [ISA_UINT32] = truth_b4, [ISA_FP32] = truth_f32,
		[ISA_INT64] = truth_b8, [ISA_UINT64] = truth_b8, [ISA_FP64] = truth_f64,
		[ISA_FP8_E3] = truth_fp8, [ISA_FP8_E4] = truth_fp8, [ISA_FP8_E5] = truth_fp8, [ISA_FP8_E4FN] = truth_fp8,
		[ISA_TF32] = truth_tf32,
	},
	.blend = { blend_8, blend_16, blend_32, blend_64 },
	.copy = { copy_1, copy_2, copy_4, copy_8 },
	.gemm = row_gemm,
	.fill = { fill_8, fill_16, fill_32, fill_64 },
	.transpose = { NULL, transpose_16, transpose_32, NULL },
};
