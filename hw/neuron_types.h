/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Rules of hw/: one definition of the hardware for the kernel, the firmware, the model, the runtime
 * and the compiler. Headers hold constants, structures and pure inline functions; no state, no
 * kernel or libc headers (this file alone includes conditionally). Masks are plain unsigned
 * constants, so the kernel may use FIELD_GET()/FIELD_PREP() on them and others HW_GET()/HW_SET().
 * Multi-byte members of structures in memory are __le16/__le32/__le64, padding is explicit and each
 * structure has HW_ASSERT_SIZE(). Every block names its source: a public file, or "execution
 * interface".
 *
 * Outside the kernel __le* are the plain integer types: hosted and freestanding builds of this
 * project are little-endian, which is checked below. The typedefs match those of the user-space
 * <linux/types.h>, so both may be included in one translation unit.
 */
#ifndef NEURON_TYPES_H
#define NEURON_TYPES_H

#ifdef __KERNEL__
#include <asm/byteorder.h>
#include <linux/types.h>
#else
#include <stdint.h>

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "neuron hw/ headers outside the kernel need a little-endian target"
#endif

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
__extension__ typedef unsigned long long __u64;
typedef signed char __s8;
typedef signed short __s16;
typedef signed int __s32;
__extension__ typedef signed long long __s64;
typedef __u16 __le16;
typedef __u32 __le32;
typedef __u64 __le64;
#endif

/* Size check of a structure that lies in memory or in registers. */
#ifdef __cplusplus
#define HW_ASSERT(cond, text) static_assert(cond, text)
#else
#define HW_ASSERT(cond, text) _Static_assert(cond, text)
#endif
#define HW_ASSERT_SIZE(type, bytes) HW_ASSERT(sizeof(type) == (bytes), #type " is not " #bytes)

/* Value 1 at the lowest set bit of @mask: the scale of a field. */
#define HW_LSB(mask) ((mask) & (~(mask) + 1u))

/* Field @mask of register or word value @v, shifted down. @mask is a non-zero constant. */
#define HW_GET(mask, v) (((v) & (mask)) / HW_LSB(mask))

/* Value @v placed in field @mask; bits that do not fit are dropped. */
#define HW_SET(mask, v) (((v) * HW_LSB(mask)) & (mask))

/* Members of structures in memory as numbers. */
#ifdef __KERNEL__
#define hw_le16(v) le16_to_cpu(v)
#define hw_le32(v) le32_to_cpu(v)
#define hw_le64(v) le64_to_cpu(v)
#else
#define hw_le16(v) ((__u16)(v))
#define hw_le32(v) ((__u32)(v))
#define hw_le64(v) ((__u64)(v))
#endif

HW_ASSERT_SIZE(__u16, 2);
HW_ASSERT_SIZE(__u32, 4);
HW_ASSERT_SIZE(__u64, 8);

#endif /* NEURON_TYPES_H */
