/* SPDX-License-Identifier: Apache-2.0 */
/* Between the two files of the management core's hart. */
#ifndef NM_RV32_PRIV_H
#define NM_RV32_PRIV_H

#include "rv32.h"

/* The 32-bit instruction that a compressed one stands for; 0, which is illegal, if it stands for
 * none. */
uint32_t rv32_expand(uint16_t insn);

#endif /* NM_RV32_PRIV_H */
