/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * CRC-32C, the checksum of mailbox requests (public: aws-neuron-driver
 * neuron_fw_io.c) and program images (execution interface), for all but the
 * kernel, which has its own.
 */
#ifndef NEURON_CRC32C_H
#define NEURON_CRC32C_H

#include "neuron_types.h"

#define HW_CRC32C_POLY 0x82f63b78u /* Castagnoli, reflected */

/* A nibble at a time: no table to fill, none to keep. */
static inline __u32 hw_crc32c_portable(__u32 crc, const __u8 *p, __u64 size)
{
	__u32 table[16];

	for (__u32 i = 0; i < 16; i++) {
		__u32 c = i;

		for (int k = 0; k < 4; k++)
			c = c & 1 ? c >> 1 ^ HW_CRC32C_POLY : c >> 1;
		table[i] = c;
	}
	for (; size; size--, p++) {
		crc = crc >> 4 ^ table[(crc ^ *p) & 15];
		crc = crc >> 4 ^ table[(crc ^ (__u32)*p >> 4) & 15];
	}
	return crc;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) static inline __u32 hw_crc32c_sse42(__u32 crc, const __u8 *p,
								      __u64 size)
{
	__u64 c = crc, word;

	for (; size >= 8; size -= 8, p += 8) {
		__builtin_memcpy(&word, p, 8);
		c = __builtin_ia32_crc32di(c, word);
	}
	for (; size; size--, p++)
		c = __builtin_ia32_crc32qi((__u32)c, *p);
	return (__u32)c;
}
#endif

/*
 * Checksum (all ones in and out) of size bytes appended to data whose checksum
 * is crc; 0 to start.
 */
static inline __u32 hw_crc32c(__u32 crc, const void *data, __u64 size)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("sse4.2"))
		return ~hw_crc32c_sse42(~crc, (const __u8 *)data, size);
#endif
	return ~hw_crc32c_portable(~crc, (const __u8 *)data, size);
}

#endif /* NEURON_CRC32C_H */
