/* SPDX-License-Identifier: Apache-2.0 */
/* Maps of one bit for each byte of a memory. Several threads may set bits of one map. */
#ifndef NM_BITS_H
#define NM_BITS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline void nm_bits_edge(uint8_t *map, uint64_t at, unsigned int n, bool set)
{
	uint8_t mask = (uint8_t)((0xffu >> (8 - n)) << at % 8);

	if (set)
		__atomic_fetch_or(&map[at / 8], mask, __ATOMIC_RELAXED);
	else
		__atomic_fetch_and(&map[at / 8], (uint8_t)~mask, __ATOMIC_RELAXED);
}

static inline void nm_bits_put(uint8_t *map, uint64_t at, uint64_t n, bool set)
{
	unsigned int first = (unsigned int)(-at % 8);

	if (first > n)
		first = (unsigned int)n;
	if (first)
		nm_bits_edge(map, at, first, set);
	at += first;
	n -= first;
	memset(map + at / 8, set ? 0xff : 0, n / 8);
	if (n % 8)
		nm_bits_edge(map, at + n - n % 8, n % 8, set);
}

/* First of n bits from at on that is not set, counted from at; n: all are. */
static inline uint64_t nm_bits_clear(const uint8_t *map, uint64_t at, uint64_t n)
{
	for (uint64_t i = 0; i < n;) {
		uint64_t word;

		if ((at + i) % 8 == 0 && n - i >= 64) {
			memcpy(&word, map + (at + i) / 8, sizeof(word));
			if (word == UINT64_MAX) {
				i += 64;
				continue;
			}
		}
		if (!(map[(at + i) / 8] >> (at + i) % 8 & 1))
			return i;
		i++;
	}
	return n;
}

#endif /* NM_BITS_H */
