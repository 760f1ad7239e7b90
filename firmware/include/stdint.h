/* SPDX-License-Identifier: Apache-2.0 */
/* The cross compiler comes without a C library, whose header this is; hw/ includes it. */
#ifndef FW_STDINT_H
#define FW_STDINT_H

typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;

#endif /* FW_STDINT_H */
