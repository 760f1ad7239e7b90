/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NC_CRC32C_H
#define NC_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* CRC-32C (Castagnoli) of size bytes, as in the image header. */
uint32_t nci_crc32c(const void *data, size_t size);

#endif /* NC_CRC32C_H */
