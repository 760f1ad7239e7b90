/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of fp32 of the width that a file is compiled for, and SLEEF's functions of them. */
#ifndef NM_ROWS_VEC_H
#define NM_ROWS_VEC_H

#if defined(__AVX512F__)
#include <immintrin.h>
#define VEC		__m512
#define VEC_N		16
#define VEC_LOAD(p)	_mm512_loadu_ps(p)
#define VEC_STORE(p, v) _mm512_storeu_ps(p, v)
#define VEC_FN(f)	Sleef_cinz_##f##16_u10avx512fnofma
#elif defined(__AVX2__)
#include <immintrin.h>
#define VEC		__m256
#define VEC_N		8
#define VEC_LOAD(p)	_mm256_loadu_ps(p)
#define VEC_STORE(p, v) _mm256_storeu_ps(p, v)
#define VEC_FN(f)	Sleef_cinz_##f##8_u10avx
#elif defined(__SSE2__)
#include <immintrin.h>
#define VEC		__m128
#define VEC_N		4
#define VEC_LOAD(p)	_mm_loadu_ps(p)
#define VEC_STORE(p, v) _mm_storeu_ps(p, v)
#define VEC_FN(f)	Sleef_cinz_##f##4_u10sse2
#else
#define VEC		float
#define VEC_N		1
#define VEC_LOAD(p)	(*(p))
#define VEC_STORE(p, v) (*(p) = (v))
#define VEC_FN(f)	Sleef_cinz_##f##1_u10purec
#endif

#endif /* NM_ROWS_VEC_H */
