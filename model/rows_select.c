// SPDX-License-Identifier: Apache-2.0
#include "rows.h"

extern const struct nm_rows nm_rows_base;
#ifdef __x86_64__
extern const struct nm_rows nm_rows_avx2;
extern const struct nm_rows nm_rows_avx512;
extern const struct nm_pairs nm_pairs_avx512;
#endif

const struct nm_rows *nm_rows_variant(unsigned int i)
{
#ifdef __x86_64__
	if (i == 1 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
	    __builtin_cpu_supports("f16c"))
		return &nm_rows_avx2;
	if (i == 2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
		return &nm_rows_avx512;
#endif
	return i == 0 ? &nm_rows_base : NULL;
}

const struct nm_rows *nm_rows(void)
{
	const struct nm_rows *best = nm_rows_variant(0);

	for (unsigned int i = 1; nm_rows_variant(i); i++)
		best = nm_rows_variant(i);
	return best;
}

const struct nm_pairs *nm_pairs(void)
{
#ifdef __x86_64__
	if (nm_rows_variant(2) && __builtin_cpu_supports("avx512bf16"))
		return &nm_pairs_avx512;
#endif
	return NULL;
}
