// SPDX-License-Identifier: Apache-2.0
/*
 * What engines have to share differs by generation; the rates themselves are bench/timing_check.c's.
 */
#include <math.h>

#include "rig.h"

#define N 16384

static struct isa_tile sbuf(uint32_t offset)
{
	return asm_row(ISA_SPACE_SBUF, ISA_BF16, 0, 128, offset, N);
}

static struct isa_tile bank(unsigned int number)
{
	return asm_row(ISA_SPACE_PSUM, ISA_BF16, 0, 128, number * ISA_PSUM_BANK_BYTES, 1024);
}

static void copy(struct program *p, unsigned int engine, struct isa_tile dst, struct isa_tile src)
{
	struct isa_inst *in = asm_inst(p, engine, ISA_COPY);

	in->compute.dst = dst;
	in->compute.src0 = src;
}

/* Device time of copies on two engines that do not wait for each other; NULL: none on this one. */
static double time_of(uint32_t arch, unsigned int a, const struct isa_tile *of_a, unsigned int b,
		      const struct isa_tile *of_b)
{
	struct rig *r = rig_create_of(arch, 0, NULL);
	struct program *p = calloc(1, sizeof(*p));
	struct exi_record rec;

	rig_queue(r, 0, 1);
	for (unsigned int i = 0; i < 8; i++) {
		if (of_a)
			copy(p, a, of_a[0], of_a[1]);
		if (of_b)
			copy(p, b, of_b[0], of_b[1]);
	}
	rec = rig_program(r, p, NULL);
	assert_int_equal(rec.status, EXI_OK);
	free(p);
	rig_destroy(r);
	return (double)(rec.end_ns - rec.start_ns);
}

/* Whether two engines that copy such tiles hold each other up. */
static bool share(uint32_t arch, unsigned int a, const struct isa_tile *of_a, unsigned int b,
		  const struct isa_tile *of_b)
{
	double both = time_of(arch, a, of_a, b, of_b);
	double one = time_of(arch, a, of_a, b, NULL), other = time_of(arch, a, NULL, b, of_b);
	double longer = fmax(one, other), sum = one + other;
	/* What a launch takes is in each of the two. */
	double launch = time_of(arch, a, NULL, b, NULL);

	assert_true(both >= longer - 1);
	if (both <= longer + 1)
		return false;
	assert_float_equal(both, sum - launch, 0.1 * (sum - launch));
	return true;
}

static void vector_and_gpsimd_share_sbuf_on_v2(void **state)
{
	const struct isa_tile a[] = { sbuf(0), sbuf(2 * N) };
	const struct isa_tile b[] = { sbuf(4 * N), sbuf(2 * N) };

	(void)state;
	assert_true(share(NEURON_ARCH_V2, ISA_VECTOR, a, ISA_GPSIMD, b));
	assert_false(share(NEURON_ARCH_V3, ISA_VECTOR, a, ISA_GPSIMD, b));
	assert_false(share(NEURON_ARCH_V4, ISA_VECTOR, a, ISA_GPSIMD, b));
	assert_false(share(NEURON_ARCH_V2, ISA_VECTOR, a, ISA_SCALAR, b));
}

static void vector_and_scalar_share_psum_by_bank_from_v3(void **state)
{
	const struct isa_tile a[] = { bank(0), bank(1) };
	const struct isa_tile other[] = { bank(2), bank(3) };
	const struct isa_tile same[] = { bank(2), bank(1) };

	(void)state;
	assert_true(share(NEURON_ARCH_V2, ISA_VECTOR, a, ISA_SCALAR, other));
	assert_false(share(NEURON_ARCH_V3, ISA_VECTOR, a, ISA_SCALAR, other));
	assert_true(share(NEURON_ARCH_V3, ISA_VECTOR, a, ISA_SCALAR, same));
	assert_true(share(NEURON_ARCH_V4, ISA_VECTOR, a, ISA_SCALAR, same));
}

static void sbuf_is_larger_on_v4(void **state)
{
	static const uint32_t archs[] = { NEURON_ARCH_V2, NEURON_ARCH_V3, NEURON_ARCH_V4 };

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		struct rig *r = rig_create_of(archs[i], 0, NULL);
		uint32_t bytes = nm_sbuf_bytes(archs[i]);
		struct program *p = calloc(1, sizeof(*p));
		struct exi_record rec;
		uint16_t got = 0;

		rig_queue(r, 0, 1);
		asm_inst(p, ISA_VECTOR, ISA_MEMSET)->compute = (struct isa_compute){
			.dst = asm_row(ISA_SPACE_SBUF, ISA_BF16, 0, 128, bytes - 2, 1),
			.compute_type = ISA_CT_BITS,
			.imm0 = 0x3f80,
		};
		rec = rig_program(r, p, NULL);
		assert_int_equal(rec.status, EXI_OK);
		assert_int_equal(nm_core_sbuf_read(r->core, 127ull * NM_SBUF_VIEW_PITCH + bytes - 2,
						   &got, 2),
				 0);
		assert_int_equal(got, 0x3f80);
		p->inst[ISA_VECTOR][0].compute.dst.offset = bytes;
		rec = rig_program(r, p, NULL);
		assert_int_equal(rec.status, EXI_FAULT_TILE_BOUNDS);
		assert_int_equal(rec.limit, bytes);
		free(p);
		rig_destroy(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vector_and_gpsimd_share_sbuf_on_v2),
		cmocka_unit_test(vector_and_scalar_share_psum_by_bank_from_v3),
		cmocka_unit_test(sbuf_is_larger_on_v4),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
