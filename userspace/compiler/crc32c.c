/* SPDX-License-Identifier: Apache-2.0 */
#include "crc32c.h"

#include <string.h>

#define POLY 0x82f63b78u /* reflected */

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t crc_sse42(uint32_t crc, const uint8_t *p,
							    size_t size)
{
	uint64_t c = crc, word;

	for (; size >= 8; size -= 8, p += 8) {
		memcpy(&word, p, 8);
		c = __builtin_ia32_crc32di(c, word);
	}
	for (; size; size--, p++)
		c = __builtin_ia32_crc32qi((uint32_t)c, *p);
	return (uint32_t)c;
}
#endif

/* A nibble at a time: no table to fill, none to keep. */
static uint32_t crc_portable(uint32_t crc, const uint8_t *p, size_t size)
{
	uint32_t table[16];

	for (uint32_t i = 0; i < 16; i++) {
		uint32_t c = i;

		for (int k = 0; k < 4; k++)
			c = c & 1 ? c >> 1 ^ POLY : c >> 1;
		table[i] = c;
	}
	for (; size; size--, p++) {
		crc = crc >> 4 ^ table[(crc ^ *p) & 15];
		crc = crc >> 4 ^ table[(crc ^ *p >> 4) & 15];
	}
	return crc;
}

uint32_t nci_crc32c(const void *data, size_t size)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("sse4.2"))
		return ~crc_sse42(~0u, data, size);
#endif
	return ~crc_portable(~0u, data, size);
}
