// SPDX-License-Identifier: Apache-2.0
/* Compiled for AVX512-BF16 (see model/CMakeLists.txt). */
#define NM_GEMM_PAIRS
#include "rows_gemm.h"

static unsigned int is_subnormal(uint16_t bf16)
{
	return (uint16_t)((bf16 & 0x7fffu) - 1u) < 0x7fu;
}

static bool make(uint32_t *pairs, const uint16_t *even, const uint16_t *odd, size_t n)
{
	unsigned int found = 0;

	for (size_t i = 0; i < n; i++) {
		uint16_t second = odd ? odd[i] : 0;

		pairs[i] = (uint32_t)even[i] << 16 | second;
		found |= is_subnormal(even[i]) | is_subnormal(second);
	}
	return !found;
}

extern const struct nm_pairs nm_pairs_avx512;

const struct nm_pairs nm_pairs_avx512 = { row_gemm, make };
