// SPDX-License-Identifier: Apache-2.0
#include "crc32c.h"

#include <stdbool.h>
#include <string.h>

#define POLY 0x82f63b78u /* Castagnoli, reflected */

static uint32_t crc_bits(uint32_t crc, const uint8_t *p, size_t size)
{
	while (size--) {
		crc ^= *p++;
		for (int i = 0; i < 8; i++)
			crc = crc >> 1 ^ (POLY & -(crc & 1));
	}
	return crc;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) static uint32_t crc_sse42(uint32_t crc, const uint8_t *p,
							    size_t size)
{
	uint64_t c = crc;

	for (; size >= 8; size -= 8, p += 8) {
		uint64_t word;

		memcpy(&word, p, 8);
		c = __builtin_ia32_crc32di(c, word);
	}
	while (size--)
		c = __builtin_ia32_crc32qi((uint32_t)c, *p++);
	return (uint32_t)c;
}
#endif

uint32_t nm_crc32c(uint32_t crc, const void *buf, size_t size)
{
	crc = ~crc;
#ifdef __x86_64__
	if (__builtin_cpu_supports("sse4.2"))
		return ~crc_sse42(crc, buf, size);
#endif
	return ~crc_bits(crc, buf, size);
}
