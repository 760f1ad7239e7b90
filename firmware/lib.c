// SPDX-License-Identifier: Apache-2.0
/* What the compiler may call. */
#include "firmware.h"

void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
	const __u8 *f = from;
	__u8 *t = to;

	while (n--)
		*t++ = *f++;
	return to;
}

void *memset(void *to, int value, size_t n)
{
	__u8 *t = to;

	while (n--)
		*t++ = (__u8)value;
	return to;
}
