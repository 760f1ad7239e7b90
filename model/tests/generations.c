// SPDX-License-Identifier: Apache-2.0
/*
 * What engines have to share, and which instructions they have, differs by generation; the rates themselves are
 * bench/timing_check.c's.
 */
#include <math.h>

#include "single.h"

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

/* --- instructions ------------------------------------------------------------------------------ */

/* An instruction that the first generation to have it takes. */
static struct isa_inst newer(unsigned int opcode, unsigned int engine)
{
	const uint32_t words = engine == ISA_VECTOR ? 24 : 6;
	struct isa_inst in = { .opcode = (uint8_t)opcode };
	struct isa_compute *c = &in.compute;

	c->dst = asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 32, 0, 16);
	c->src0 = asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 32, 4096, 16);
	switch (opcode) {
	case ISA_RNG:
		c->compute_type = ISA_CT_I32;
		c->dst.dtype = ISA_UINT32;
		memset(&c->src0, 0, sizeof(c->src0));
		break;
	case ISA_RAND2:
		c->imm1 = 0x3f800000;
		memset(&c->src0, 0, sizeof(c->src0));
		break;
	case ISA_RAND_SET_STATE:
	case ISA_RAND_GET_STATE:
		c->compute_type = ISA_CT_BITS;
		c->dst = c->src0 = asm_row(ISA_SPACE_SBUF, ISA_UINT32, 0, 32, 0, words);
		memset(opcode == ISA_RAND_SET_STATE ? &c->dst : &c->src0, 0, sizeof(c->dst));
		break;
	case ISA_RANGE_SELECT:
		c->op0 = c->op1 = ISA_IS_GE;
		c->vec0 = c->vec1 = (struct isa_column){ .offset = 8192, .dtype = ISA_FP32 };
		break;
	case ISA_NONZERO_WITH_COUNT:
		c->compute_type = ISA_CT_I32;
		c->dst.dtype = ISA_INT32;
		c->dst.count[3] = 17;
		break;
	case ISA_QUANTIZE_MX:
		c->src0.dtype = ISA_BF16;
		c->dst.dtype = ISA_FP8_E5_X4;
		c->dst.count[3] = 4;
		c->vec1 = (struct isa_column){ .offset = 8192, .dtype = ISA_UINT8 };
		break;
	default:
		break;
	}
	return in;
}

/* nki.isa.*: which engine has an instruction from which generation on. */
static void newer_instructions_are_refused(void **state)
{
	static const struct {
		uint8_t opcode, engine;
		uint32_t first;
	} known[] = {
		{ ISA_RNG, ISA_VECTOR, NEURON_ARCH_V2 },
		{ ISA_RNG, ISA_GPSIMD, NEURON_ARCH_V3 },
		{ ISA_RAND_SET_STATE, ISA_GPSIMD, NEURON_ARCH_V3 },
		{ ISA_RAND_GET_STATE, ISA_GPSIMD, NEURON_ARCH_V3 },
		{ ISA_RAND_SET_STATE, ISA_VECTOR, NEURON_ARCH_V4 },
		{ ISA_RAND_GET_STATE, ISA_VECTOR, NEURON_ARCH_V4 },
		{ ISA_RANGE_SELECT, ISA_VECTOR, NEURON_ARCH_V3 },
		{ ISA_NONZERO_WITH_COUNT, ISA_GPSIMD, NEURON_ARCH_V3 },
		{ ISA_RAND2, ISA_VECTOR, NEURON_ARCH_V4 },
		{ ISA_QUANTIZE_MX, ISA_VECTOR, NEURON_ARCH_V4 },
		{ ISA_EXPONENTIAL, ISA_VECTOR, NEURON_ARCH_V4 },
	};
	static const uint32_t archs[] = { NEURON_ARCH_V2, NEURON_ARCH_V3, NEURON_ARCH_V4 };

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		for (unsigned int k = 0; k < 3; k++) {
			const struct isa_inst in = newer(known[i].opcode, known[i].engine);
			struct rig *r = rig_create_of(archs[k], 0, NULL);
			struct program *p = calloc(1, sizeof(*p));
			bool there = archs[k] >= known[i].first;
			struct exi_record rec;

			*asm_inst(p, known[i].engine, in.opcode) = in;
			rig_queue(r, 0, 1);
			rec = rig_program(r, p, NULL);
			if (rec.status != (there ? EXI_OK : EXI_FAULT_BAD_OPCODE))
				fail_msg("%s on engine %u of generation %u: status %u, value %llu",
					 isa_opcode_name(in.opcode), known[i].engine, archs[k],
					 rec.status, (unsigned long long)rec.value);
			assert_int_equal(r->errors, !there);
			if (!there)
				assert_int_equal(r->error_status, EXI_FAULT_BAD_OPCODE);
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
		cmocka_unit_test(newer_instructions_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
