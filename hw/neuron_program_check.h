/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Execution interface, version 1: which program images are well formed. One
 * definition for all that accept images. It checks layout, header and slot
 * descriptors; the checksum is the caller's, instructions are the device's.
 */
#ifndef NEURON_PROGRAM_CHECK_H
#define NEURON_PROGRAM_CHECK_H

#include "neuron_isa.h"
#include "neuron_program.h"
#include "neuron_queue.h"

enum nprog_verdict {
	NPROG_OK,
	NPROG_TOO_LARGE,   /* above NPROG_IMAGE_MAX */
	NPROG_MALFORMED,
	NPROG_BAD_VERSION, /* a version that this code does not know */
	NPROG_BAD_ARCH,    /* for another generation of core */
};

struct nprog_finding {
	const char *what; /* the field and the rule it breaks */
	__u32 offset;     /* of the field in the image */
	__u64 value;
	__u64 limit;      /* what it should have been or stayed below */
};

static inline enum nprog_verdict nprog_found(struct nprog_finding *f, enum nprog_verdict verdict,
					     const char *what, __u64 offset, __u64 value,
					     __u64 limit)
{
	f->what = what;
	f->offset = (__u32)offset;
	f->value = value;
	f->limit = limit;
	return verdict;
}

#define NPROG_BAD(what, offset, value, limit) \
	nprog_found(f, NPROG_MALFORMED, what, offset, value, limit)
#define NPROG_FIELD(member) __builtin_offsetof(struct nprog_header, member)

/* First byte of data[0..size) that is not zero, or size. */
static inline __u32 nprog_zero_until(const __u8 *data, __u32 size)
{
	__u32 i = 0;

	while (i < size && !data[i])
		i++;
	return i;
}

/* One part of the image: starts at or after *end, which moves behind it. */
static inline enum nprog_verdict nprog_check_part(__u32 offset, __u64 bytes, __u64 field,
						  __u64 image_bytes, __u64 *end,
						  struct nprog_finding *f)
{
	if (!bytes)
		return NPROG_OK;
	if (offset % NPROG_ALIGN)
		return NPROG_BAD("part of the image is not aligned", field, offset, NPROG_ALIGN);
	if (offset < *end)
		return NPROG_BAD("part of the image overlaps the one before", field, offset, *end);
	if (offset > image_bytes || bytes > image_bytes - offset)
		return NPROG_BAD("part of the image ends behind it", field, offset + bytes,
				 image_bytes);
	*end = offset + bytes;
	return NPROG_OK;
}

static inline enum nprog_verdict nprog_check_header(const struct nprog_header *h, __u64 size,
						    __u32 arch, struct nprog_finding *f)
{
	__u32 i;

	if (hw_le32(h->magic) != NPROG_MAGIC)
		return NPROG_BAD("magic: not a program image", NPROG_FIELD(magic),
				 hw_le32(h->magic), NPROG_MAGIC);
	if (hw_le16(h->version_major) != NPROG_VERSION_MAJOR)
		return nprog_found(f, NPROG_BAD_VERSION, "major version is not supported",
				   NPROG_FIELD(version_major), hw_le16(h->version_major),
				   NPROG_VERSION_MAJOR);
	if (hw_le16(h->version_minor) > NPROG_VERSION_MINOR)
		return nprog_found(f, NPROG_BAD_VERSION, "minor version is not supported",
				   NPROG_FIELD(version_minor), hw_le16(h->version_minor),
				   NPROG_VERSION_MINOR);
	if (hw_le32(h->header_bytes) != sizeof(*h))
		return NPROG_BAD("header_bytes is wrong", NPROG_FIELD(header_bytes),
				 hw_le32(h->header_bytes), sizeof(*h));
	if (hw_le32(h->image_bytes) != size || size % NPROG_ALIGN)
		return NPROG_BAD("image_bytes is not the image's size, a multiple of 64",
				 NPROG_FIELD(image_bytes), hw_le32(h->image_bytes), size);
	if (hw_le32(h->arch) != arch)
		return nprog_found(f, NPROG_BAD_ARCH, "program is for another generation of core",
				   NPROG_FIELD(arch), hw_le32(h->arch), arch);
	if (h->flags || h->pad0)
		return NPROG_BAD("reserved field is not zero", NPROG_FIELD(flags),
				 hw_le32(h->flags), 0);
	i = nprog_zero_until(h->pad1, sizeof(h->pad1));
	if (i < sizeof(h->pad1))
		return NPROG_BAD("padding is not zero", NPROG_FIELD(pad1) + i, h->pad1[i], 0);
	if (h->name[NPROG_NAME_BYTES - 1])
		return NPROG_BAD("name has no end", NPROG_FIELD(name), h->name[NPROG_NAME_BYTES - 1],
				 0);
	if (hw_le32(h->n_slots) > EXI_SLOTS_MAX)
		return NPROG_BAD("too many slots", NPROG_FIELD(n_slots), hw_le32(h->n_slots),
				 EXI_SLOTS_MAX);
	return NPROG_OK;
}

/* Rights that a slot of this kind must, and may, ask for. */
static inline int nprog_rights_fit(__u32 kind, __u32 rights)
{
	const __u32 both = EXI_SLOT_READ | EXI_SLOT_WRITE;

	switch (kind) {
	case NPROG_SLOT_INPUT:
	case NPROG_SLOT_SCALAR:
		return rights == EXI_SLOT_READ;
	case NPROG_SLOT_OUTPUT: /* may read back what it wrote */
		return rights == EXI_SLOT_WRITE || rights == both;
	default:
		return rights == both;
	}
}

static inline enum nprog_verdict nprog_check_slot(const struct nprog_slot *s, __u64 at,
						  struct nprog_finding *f)
{
	__u32 i;

	if (s->kind > NPROG_SLOT_SCALAR)
		return NPROG_BAD("slot has an unknown kind", at, s->kind, NPROG_SLOT_SCALAR);
	if (!nprog_rights_fit(s->kind, hw_le32(s->rights)))
		return NPROG_BAD("rights of a slot do not fit its kind", at, hw_le32(s->rights),
				 EXI_SLOT_READ | EXI_SLOT_WRITE);
	if (s->kind == NPROG_SLOT_SCALAR && hw_le64(s->min_bytes) > 8)
		return NPROG_BAD("scalar slot is too large", at, hw_le64(s->min_bytes), 8);
	if (s->ndim > NPROG_DIMS_MAX)
		return NPROG_BAD("slot has too many dims", at, s->ndim, NPROG_DIMS_MAX);
	if (s->name[NPROG_SLOT_NAME_BYTES - 1])
		return NPROG_BAD("name of a slot has no end", at,
				 s->name[NPROG_SLOT_NAME_BYTES - 1], 0);
	i = nprog_zero_until(s->pad1, sizeof(s->pad1));
	if (s->pad0 || i < sizeof(s->pad1))
		return NPROG_BAD("padding of a slot is not zero", at, 1, 0);
	return NPROG_OK;
}

/* The last instruction of a stream is the one that ends it. */
static inline enum nprog_verdict nprog_check_end(const __u8 *image, const struct nprog_stream *s,
						 __u64 field, struct nprog_finding *f)
{
	__u64 last;

	if (!s->count)
		return NPROG_OK;
	last = hw_le32(s->offset) + (__u64)(hw_le32(s->count) - 1) * ISA_INST_BYTES;
	if (image[last] != ISA_HALT)
		return NPROG_BAD("stream does not end with HALT", field, image[last], ISA_HALT);
	return NPROG_OK;
}

/*
 * Checks @size bytes at @image, 8-byte aligned, for a core of generation @arch.
 * Whatever is found is described in @f. The bytes must not change meanwhile.
 */
static inline enum nprog_verdict nprog_check(const void *image, __u64 size, __u32 arch,
					     struct nprog_finding *f)
{
	const struct nprog_header *h = (const struct nprog_header *)image;
	const __u8 *bytes = (const __u8 *)image;
	const struct nprog_slot *slot;
	enum nprog_verdict verdict;
	__u64 end = sizeof(*h);
	__u32 i;

	if (size > NPROG_IMAGE_MAX)
		return nprog_found(f, NPROG_TOO_LARGE, "image is too large", 0, size,
				   NPROG_IMAGE_MAX);
	if (size < sizeof(*h))
		return NPROG_BAD("image is shorter than its header", 0, size, sizeof(*h));
	verdict = nprog_check_header(h, size, arch, f);
	if (verdict)
		return verdict;

	verdict = nprog_check_part(hw_le32(h->slot_offset),
				   (__u64)hw_le32(h->n_slots) * sizeof(*slot),
				   NPROG_FIELD(slot_offset), size, &end, f);
	for (i = 0; !verdict && i < EXI_ENGINES; i++) {
		const __u64 field = NPROG_FIELD(stream) + i * sizeof(h->stream[0]);

		verdict = nprog_check_part(hw_le32(h->stream[i].offset),
					   (__u64)hw_le32(h->stream[i].count) * ISA_INST_BYTES,
					   field, size, &end, f);
		if (!verdict)
			verdict = nprog_check_end(bytes, &h->stream[i], field, f);
	}
	if (!verdict)
		verdict = nprog_check_part(hw_le32(h->const_offset), hw_le32(h->const_bytes),
					   NPROG_FIELD(const_offset), size, &end, f);
	slot = (const struct nprog_slot *)(bytes + hw_le32(h->slot_offset));
	for (i = 0; !verdict && i < hw_le32(h->n_slots); i++)
		verdict = nprog_check_slot(&slot[i], hw_le32(h->slot_offset) + i * sizeof(*slot),
					   f);
	return verdict;
}

#undef NPROG_BAD
#undef NPROG_FIELD

#endif /* NEURON_PROGRAM_CHECK_H */
