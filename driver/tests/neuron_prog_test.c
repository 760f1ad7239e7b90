// SPDX-License-Identifier: GPL-2.0-only
/* The program checker: one image that is right, and one fault at a time. */

#include <kunit/test.h>
#include <linux/crc32c.h>

#include "../neuron_prog.h"
#include "neuron_test.h"

#define ARCH NEURON_TEST_ARCH

/* Header, two slots, streams of one HALT for tensor and sync, 64 bytes of constants. */
#define SLOTS_AT  256
#define TENSOR_AT 384
#define SYNC_AT	  576
#define CONST_AT  768
#define IMAGE	  NEURON_TEST_PROG_BYTES

#define SLOT(i, member) (SLOTS_AT + (i) * 64 + (int)offsetof(struct nprog_slot, member))
#define FIELD(member)	((int)offsetof(struct nprog_header, member))
#define STREAM(e)	(FIELD(stream) + (e) * 8)

static void put(u8 *image, int at, int bytes, u64 value)
{
	int i;

	for (i = 0; i < bytes; i++)
		image[at + i] = value >> (8 * i);
}

static void seal(u8 *image)
{
	put(image, FIELD(crc32c), 4, 0);
	put(image, FIELD(crc32c), 4, ~crc32c(~0u, image, IMAGE));
}

u8 *neuron_test_prog(struct kunit *test)
{
	u8 *image = kunit_kzalloc(test, IMAGE, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, image);
	put(image, 0, 4, 0x4752504e);
	put(image, FIELD(version_major), 2, 1);
	put(image, FIELD(header_bytes), 4, 256);
	put(image, FIELD(image_bytes), 4, IMAGE);
	put(image, FIELD(arch), 4, ARCH);
	put(image, FIELD(n_slots), 4, 2);
	put(image, FIELD(slot_offset), 4, SLOTS_AT);
	put(image, FIELD(const_offset), 4, CONST_AT);
	put(image, FIELD(const_bytes), 4, 64);
	put(image, STREAM(0), 4, TENSOR_AT);
	put(image, STREAM(0) + 4, 4, 1);
	put(image, STREAM(4), 4, SYNC_AT);
	put(image, STREAM(4) + 4, 4, 1);
	put(image, SLOT(0, min_bytes), 8, 4096);
	put(image, SLOT(0, rights), 4, 1);
	put(image, SLOT(1, min_bytes), 8, 8);
	put(image, SLOT(1, rights), 4, 1);
	put(image, SLOT(1, kind), 1, NPROG_SLOT_SCALAR);
	put(image, TENSOR_AT, 1, 0x01);
	put(image, SYNC_AT, 1, 0x01);
	seal(image);
	return image;
}

static void neuron_prog_accepts_a_good_image(struct kunit *test)
{
	struct nprog_finding finding;

	KUNIT_EXPECT_EQ(test, neuron_prog_check(neuron_test_prog(test), IMAGE, ARCH, &finding), 0);
}

struct fault_row {
	const char *what;
	int at;
	int bytes;
	u64 value;
	int error;
};

static const struct fault_row fault_rows[] = {
	{ "magic", FIELD(magic), 4, 0x4752504f, -ENOEXEC },
	{ "major version 0", FIELD(version_major), 2, 0, -EOPNOTSUPP },
	{ "major version 2", FIELD(version_major), 2, 2, -EOPNOTSUPP },
	{ "minor version too new", FIELD(version_minor), 2, NPROG_VERSION_MINOR + 1, -EOPNOTSUPP },
	{ "header size", FIELD(header_bytes), 4, 192, -ENOEXEC },
	{ "image size one less", FIELD(image_bytes), 4, IMAGE - 1, -ENOEXEC },
	{ "image size larger", FIELD(image_bytes), 4, IMAGE + 64, -ENOEXEC },
	{ "another generation", FIELD(arch), 4, 2, -EOPNOTSUPP },
	{ "unknown flag", FIELD(flags), 4, 1, -ENOEXEC },
	{ "padding behind the constants", FIELD(pad0), 4, 1, -ENOEXEC },
	{ "first byte of padding", FIELD(pad1), 1, 1, -ENOEXEC },
	{ "last byte of padding", FIELD(pad1) + 103, 1, 1, -ENOEXEC },
	{ "too many slots", FIELD(n_slots), 4, 1025, -ENOEXEC },
	{ "slots overflow", FIELD(n_slots), 4, U32_MAX, -ENOEXEC },
	{ "slots behind the image", FIELD(slot_offset), 4, IMAGE, -ENOEXEC },
	{ "slots at the end of memory", FIELD(slot_offset), 4, 0xffffffc0, -ENOEXEC },
	{ "slots in the header", FIELD(slot_offset), 4, 192, -ENOEXEC },
	{ "slots not aligned", FIELD(slot_offset), 4, SLOTS_AT + 8, -ENOEXEC },
	{ "slots overlap a stream", FIELD(slot_offset), 4, SLOTS_AT + 64, -ENOEXEC },
	{ "stream not aligned", STREAM(0), 4, TENSOR_AT + 4, -ENOEXEC },
	{ "stream overlaps the slots", STREAM(0), 4, SLOTS_AT + 64, -ENOEXEC },
	{ "stream overlaps the next", STREAM(0) + 4, 4, 2, -ENOEXEC },
	{ "stream behind the image", STREAM(4), 4, IMAGE, -ENOEXEC },
	{ "stream out of order", STREAM(4), 4, TENSOR_AT, -ENOEXEC },
	{ "stream length overflows", STREAM(4) + 4, 4, U32_MAX, -ENOEXEC },
	{ "stream without HALT", TENSOR_AT, 1, 0x02, -ENOEXEC },
	{ "constants behind the image", FIELD(const_bytes), 4, 128, -ENOEXEC },
	{ "constants overflow", FIELD(const_bytes), 4, U32_MAX, -ENOEXEC },
	{ "constants overlap a stream", FIELD(const_offset), 4, SYNC_AT, -ENOEXEC },
	{ "constants not aligned", FIELD(const_offset), 4, CONST_AT + 1, -ENOEXEC },
	{ "slot without rights", SLOT(0, rights), 4, 0, -ENOEXEC },
	{ "slot with unknown rights", SLOT(0, rights), 4, 8, -ENOEXEC },
	{ "input that can be written", SLOT(0, rights), 4, 3, -ENOEXEC },
	{ "inline right asked for", SLOT(1, rights), 4, 5, -ENOEXEC },
	{ "slot of unknown kind", SLOT(0, kind), 1, 5, -ENOEXEC },
	{ "output that is only read", SLOT(0, kind), 1, NPROG_SLOT_OUTPUT, -ENOEXEC },
	{ "scalar that can be written", SLOT(1, rights), 4, 2, -ENOEXEC },
	{ "scalar larger than 8 bytes", SLOT(1, min_bytes), 8, 9, -ENOEXEC },
	{ "slot with six dims", SLOT(0, ndim), 1, 6, -ENOEXEC },
	{ "slot padding", SLOT(1, pad1) + 3, 1, 1, -ENOEXEC },
	{ "slot name without end", SLOT(0, name) + 23, 1, 'x', -ENOEXEC },
	{ "name without end", FIELD(name) + 63, 1, 'x', -ENOEXEC },
};

KUNIT_ARRAY_PARAM_DESC(fault, fault_rows, what);

static void neuron_prog_refuses(struct kunit *test)
{
	const struct fault_row *row = test->param_value;
	struct nprog_finding finding = {};
	u8 *image = neuron_test_prog(test);

	put(image, row->at, row->bytes, row->value);
	seal(image);
	KUNIT_EXPECT_EQ(test, neuron_prog_check(image, IMAGE, ARCH, &finding), row->error);
	KUNIT_EXPECT_NOT_NULL(test, finding.what);
}

static void neuron_prog_sees_every_flipped_bit(struct kunit *test)
{
	struct nprog_finding finding;
	u8 *image = neuron_test_prog(test);
	int bit;

	for (bit = 0; bit < IMAGE * 8; bit++) {
		image[bit / 8] ^= BIT(bit % 8);
		KUNIT_ASSERT_NE_MSG(test, neuron_prog_check(image, IMAGE, ARCH, &finding), 0,
				    "bit %d", bit);
		image[bit / 8] ^= BIT(bit % 8);
	}
}

static void neuron_prog_knows_its_size(struct kunit *test)
{
	struct nprog_finding finding;
	u8 *image = neuron_test_prog(test);
	int size;

	for (size = 0; size < IMAGE; size++)
		KUNIT_ASSERT_EQ(test, neuron_prog_check(image, size, ARCH, &finding), -ENOEXEC);
	KUNIT_EXPECT_EQ(test, neuron_prog_check(image, (1ull << 30) + 64, ARCH, &finding), -E2BIG);
	KUNIT_EXPECT_EQ(test, neuron_prog_check(image, U64_MAX, ARCH, &finding), -E2BIG);
}

static struct kunit_case neuron_prog_cases[] = { KUNIT_CASE(neuron_prog_accepts_a_good_image),
						 KUNIT_CASE_PARAM(neuron_prog_refuses,
								  fault_gen_params),
						 KUNIT_CASE(neuron_prog_sees_every_flipped_bit),
						 KUNIT_CASE(neuron_prog_knows_its_size),
						 {} };

static struct kunit_suite neuron_prog_suite = {
	.name = "neuron_prog",
	.test_cases = neuron_prog_cases,
};

kunit_test_suite(neuron_prog_suite);
