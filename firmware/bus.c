// SPDX-License-Identifier: Apache-2.0
#include "firmware.h"

static bool copy(__u64 addr, const volatile void *ram, __u32 bytes, __u32 what)
{
	reg_write(MGMT_COPY_ADDR_LO, (__u32)addr);
	reg_write(MGMT_COPY_ADDR_HI, (__u32)(addr >> 32));
	reg_write(MGMT_COPY_RAM, (__u32)ram);
	reg_write(MGMT_COPY_BYTES, bytes);
	__asm__ volatile("" ::: "memory"); /* what is copied has been stored, and is read anew */
	reg_write(MGMT_COPY_GO, what);
	__asm__ volatile("" ::: "memory");
	return reg_read(MGMT_COPY_STATUS) == MGMT_COPY_DONE;
}

bool bus_read(__u64 addr, void *to, __u32 bytes)
{
	return !bytes || copy(addr, to, bytes, MGMT_COPY_IN);
}

bool bus_write(__u64 addr, const void *from, __u32 bytes)
{
	return copy(addr, from, bytes, MGMT_COPY_OUT);
}

bool bus_read_register(__u64 addr, __u32 *value)
{
	return copy(addr, value, sizeof(*value), MGMT_COPY_REGISTER);
}
