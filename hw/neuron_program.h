/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Execution interface, version 1: the program image. It is what the compiler
 * emits, nrt_load() takes, the kernel checks and copies to HBM, and the device
 * decodes. All offsets are bytes from the start of the image.
 *
 * Layout: header, slot descriptors, five instruction streams in the order of
 * enum isa_engine, constants. Each part starts at a multiple of
 * NPROG_ALIGN; none overlaps another; image_bytes is a multiple of NPROG_ALIGN.
 */
#ifndef NEURON_PROGRAM_H
#define NEURON_PROGRAM_H

#include "neuron_types.h"

#define NPROG_MAGIC         0x4752504eu /* "NPRG" */
#define NPROG_VERSION_MAJOR 1 /* readers refuse another major */
#define NPROG_VERSION_MINOR 3 /* readers refuse a higher minor; "since" in neuron_isa.h */
#define NPROG_ALIGN         64
#define NPROG_IMAGE_MAX     (1u << 30) /* bytes */
#define NPROG_NAME_BYTES    64
#define NPROG_SLOT_NAME_BYTES 24
#define NPROG_DIMS_MAX      5

struct nprog_stream {
	__le32 offset;
	__le32 count; /* instructions; the last one is ISA_HALT; 0: engine unused */
};

struct nprog_header {
	__le32 magic;
	__le16 version_major;
	__le16 version_minor;
	__le32 header_bytes; /* sizeof(struct nprog_header) */
	__le32 crc32c;       /* of the whole image with this field zero */
	__le32 image_bytes;
	__le32 arch;         /* EXI_ARCH that the program is for */
	__le32 flags;        /* zero */
	__le32 n_slots;
	__le32 slot_offset;  /* struct nprog_slot[n_slots] */
	__le32 const_offset;
	__le32 const_bytes;  /* read through ISA_SLOT_CONST */
	__le32 pad0;         /* zero */
	struct nprog_stream stream[5];
	__u8 name[NPROG_NAME_BYTES]; /* of the operation, NUL padded: error reports, profiles */
	__u8 pad1[104];      /* zero */
};

/* What the program wants to find in one slot of a launch. */
struct nprog_slot {
	__le64 min_bytes; /* the program never goes beyond; a smaller buffer is refused */
	__le32 rights;    /* EXI_SLOT_READ, EXI_SLOT_WRITE */
	__u8 kind;
#define NPROG_SLOT_INPUT   0
#define NPROG_SLOT_OUTPUT  1
#define NPROG_SLOT_INOUT   2
#define NPROG_SLOT_SCRATCH 3 /* contents undefined before and after; the runtime provides it */
#define NPROG_SLOT_SCALAR  4 /* 8 bytes passed in the launch itself (EXI_SLOT_INLINE), little-endian,
			      * a shorter dtype in the low bytes; rights are EXI_SLOT_READ */
	__u8 dtype;       /* enum isa_dtype; information only */
	__u8 ndim;        /* 0..NPROG_DIMS_MAX; information only */
	__u8 pad0;
	__le32 dims[NPROG_DIMS_MAX]; /* elements; information only */
	__u8 name[NPROG_SLOT_NAME_BYTES]; /* NUL terminated */
	__u8 pad1[4];
};

HW_ASSERT_SIZE(struct nprog_header, 256);
HW_ASSERT_SIZE(struct nprog_slot, 64);

#endif /* NEURON_PROGRAM_H */
