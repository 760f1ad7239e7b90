/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NM_CRC32C_H
#define NM_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* CRC-32C (Castagnoli; reflected, all ones in and out) of buf appended to data whose checksum is crc;
 * 0 to start. */
uint32_t nm_crc32c(uint32_t crc, const void *buf, size_t size);

#endif /* NM_CRC32C_H */
