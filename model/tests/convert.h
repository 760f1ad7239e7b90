/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions by each set of row kernels, compared with the reference. */
#ifndef TEST_CONVERT_H
#define TEST_CONVERT_H

#include <stdlib.h>

#include "reference.h"
#include "rows.h"

/* An element of a compute type; any NaN is a NaN, and zeros have signs. */
static inline bool is_same(unsigned int ct, const void *got, struct value want)
{
	float f;
	double d;
	int32_t i;
	int64_t l;

	switch (ct) {
	case ISA_CT_F32:
		memcpy(&f, got, sizeof(f));
		return isnan(want.x) ? isnan(f) : f == want.x && !signbit(f) == !signbit(want.x);
	case ISA_CT_F64:
		memcpy(&d, got, sizeof(d));
		return isnan(want.x) ? isnan(d) : d == want.x && !signbit(d) == !signbit(want.x);
	case ISA_CT_I32:
		memcpy(&i, got, sizeof(i));
		return i == want.i;
	default:
		memcpy(&l, got, sizeof(l));
		return l == want.i;
	}
}

/* Numbers of a compute type on their way to a dtype, n of them. */
static inline void check_store(unsigned int ct, unsigned int dtype, const void *in, size_t n)
{
	const size_t bytes = ct == ISA_CT_I64 || ct == ISA_CT_F64 ? 8 : 4;
	const struct nm_rows *rows;
	const size_t width = isa_dtype_bytes(dtype);
	uint8_t *got = malloc(n * width);

	for (unsigned int v = 0; (rows = nm_rows_variant(v)) != NULL; v++) {
		rows->store[ct][dtype](got, (ptrdiff_t)width, in, n);
		for (size_t i = 0; i < n; i++) {
			uint64_t bits = 0, code = 0, want;
			struct value x;

			memcpy(&bits, (const uint8_t *)in + i * bytes, bytes);
			x = ref_imm(ct, ct == ISA_CT_I32 ? (uint64_t)(int32_t)bits : bits);
			memcpy(&code, got + i * width, width);
			want = ref_store(ct, dtype, x);
			if (code != want && !(ref_ct_float(ct) && isnan(x.x) &&
					      isnan(ref_unpack(ref_format(dtype), code))))
				fail_msg("variant %u ct %u dtype %u: 0x%llx is 0x%llx, not 0x%llx",
					 v, ct, dtype, (unsigned long long)bits,
					 (unsigned long long)code, (unsigned long long)want);
		}
	}
	free(got);
}

#endif /* TEST_CONVERT_H */
