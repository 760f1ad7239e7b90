/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Execution interface: image of the management firmware, a header and what is loaded to the
 * management core's memory (neuron_mgmt.h), and which images are well formed. The public driver
 * loads no firmware; this is ours.
 */
#ifndef NEURON_FW_IMAGE_H
#define NEURON_FW_IMAGE_H

#include "neuron_mgmt.h"
#include "neuron_types.h"

#define FWI_MAGIC  0x57464e4eu /* "NNFW" */
#define FWI_FORMAT 1

/* Versions are ordered as numbers. */
#define FWI_VERSION(major, minor, patch) \
	((__u32)(major) << 24 | (__u32)(minor) << 16 | (__u32)(patch))
#define   FWI_VERSION_MAJOR 0xff000000u
#define   FWI_VERSION_MINOR 0x00ff0000u
#define   FWI_VERSION_PATCH 0x0000ffffu

struct fw_image {
	__le32 magic;
	__le32 format;
	__le32 version; /* FWI_VERSION() */
	__le32 arch;    /* NEURON_ARCH_* of the chip that it is for */
	__le32 load;    /* address in the core's memory where what follows goes */
	__le32 entry;   /* first instruction */
	__le32 bytes;   /* behind this header, to the end of the image */
	__le32 memory;  /* from load on, that it needs: bytes, zeroed data and stack */
	__le32 crc;     /* CRC-32C of the whole image with this field zero */
	__le32 reserved[7]; /* zero */
	/* bytes follow */
};

HW_ASSERT_SIZE(struct fw_image, 64);

#define FWI_BYTES_MIN (sizeof(struct fw_image) + 4)
#define FWI_BYTES_MAX (sizeof(struct fw_image) + MGMT_IMAGE_MAX)

/* What is wrong with an image; also the verdict in MBOX_CMD_LOAD_FIRMWARE's answer. */
enum fwi_verdict {
	FWI_OK,
	FWI_BAD_SIZE,
	FWI_BAD_MAGIC,
	FWI_BAD_FORMAT,
	FWI_BAD_LENGTH,   /* the header's and the image's differ */
	FWI_BAD_CHECKSUM,
	FWI_BAD_ARCH,     /* for another chip */
	FWI_BAD_RESERVED, /* not zero: newer than who reads it */
	FWI_BAD_ADDRESS,  /* does not fit the core's memory */
	FWI_NO_ANSWER,    /* the host memory that it should be in */
	FWI_VERDICTS,
};

/* Each with the two numbers of struct fwi_finding: what it has and what it should have. */
static inline const char *fwi_verdict_text(__u32 verdict)
{
	static const char *const text[FWI_VERDICTS] = {
		[FWI_OK] = "well formed",
		[FWI_BAD_SIZE] = "bytes in all",
		[FWI_BAD_MAGIC] = "no firmware image: magic",
		[FWI_BAD_FORMAT] = "format",
		[FWI_BAD_LENGTH] = "truncated or padded: bytes in the header",
		[FWI_BAD_CHECKSUM] = "damaged: checksum",
		[FWI_BAD_ARCH] = "for another chip: generation",
		[FWI_BAD_RESERVED] = "reserved field",
		[FWI_BAD_ADDRESS] = "address outside the memory",
		[FWI_NO_ANSWER] = "host memory does not answer",
	};

	return verdict < FWI_VERDICTS ? text[verdict] : "unknown verdict";
}

struct fwi_finding {
	__u32 value;
	__u32 want;
};

static inline enum fwi_verdict fwi_found(struct fwi_finding *f, enum fwi_verdict verdict,
					 __u32 value, __u32 want)
{
	f->value = value;
	f->want = want;
	return verdict;
}

/* Where it goes and starts. */
static inline enum fwi_verdict fwi_check_place(const struct fw_image *h, struct fwi_finding *f)
{
	const __u32 bytes = hw_le32(h->bytes), memory = hw_le32(h->memory);
	const __u32 at = hw_le32(h->load) - MGMT_RAM, entry = hw_le32(h->entry);

	if (at % 4 || at >= MGMT_IMAGE_MAX)
		return fwi_found(f, FWI_BAD_ADDRESS, hw_le32(h->load), MGMT_RAM);
	if (memory < bytes || memory > MGMT_IMAGE_MAX - at)
		return fwi_found(f, FWI_BAD_ADDRESS, memory, MGMT_IMAGE_MAX - at);
	if (entry % 2 || entry - hw_le32(h->load) >= bytes)
		return fwi_found(f, FWI_BAD_ADDRESS, entry, hw_le32(h->load));
	return FWI_OK;
}

/*
 * An image of size bytes for a chip; crc is its checksum as the caller found it, without looking if
 * size is below FWI_BYTES_MIN.
 */
static inline enum fwi_verdict fwi_check(const struct fw_image *h, __u64 size, __u32 crc,
					 __u32 arch, struct fwi_finding *f)
{
	f->value = 0;
	f->want = 0;
	if (size < FWI_BYTES_MIN || size > FWI_BYTES_MAX)
		return fwi_found(f, FWI_BAD_SIZE, (__u32)size,
				 (__u32)(size < FWI_BYTES_MIN ? FWI_BYTES_MIN : FWI_BYTES_MAX));
	if (hw_le32(h->magic) != FWI_MAGIC)
		return fwi_found(f, FWI_BAD_MAGIC, hw_le32(h->magic), FWI_MAGIC);
	if (hw_le32(h->format) != FWI_FORMAT)
		return fwi_found(f, FWI_BAD_FORMAT, hw_le32(h->format), FWI_FORMAT);
	if (hw_le32(h->bytes) != size - sizeof(*h))
		return fwi_found(f, FWI_BAD_LENGTH, hw_le32(h->bytes), (__u32)(size - sizeof(*h)));
	if (hw_le32(h->crc) != crc)
		return fwi_found(f, FWI_BAD_CHECKSUM, crc, hw_le32(h->crc));
	if (hw_le32(h->arch) != arch)
		return fwi_found(f, FWI_BAD_ARCH, hw_le32(h->arch), arch);
	for (int i = 0; i < 7; i++)
		if (h->reserved[i])
			return fwi_found(f, FWI_BAD_RESERVED, hw_le32(h->reserved[i]), 0);
	return fwi_check_place(h, f);
}

#ifndef __KERNEL__
#include "neuron_crc32c.h"

/* Checksum of an image of at least a header. */
static inline __u32 fwi_crc(const void *image, __u64 size)
{
	struct fw_image h;

	__builtin_memcpy(&h, image, sizeof(h));
	h.crc = 0;
	return hw_crc32c(hw_crc32c(0, &h, sizeof(h)), (const __u8 *)image + sizeof(h),
			 size - sizeof(h));
}
#endif

#endif /* NEURON_FW_IMAGE_H */
