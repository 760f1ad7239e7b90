// SPDX-License-Identifier: Apache-2.0
/*
 * N_GATHER, LOCAL_GATHER, NONZERO_WITH_COUNT, SEQUENCE_BOUNDS: results, what is refused, what is touched,
 * time.
 */
#include "bench.h"
#include "single.h"

#define ROUNDS 400

/* With more than 8 partitions a tile of the bench begins at partition 0. */
static struct isa_tile tile(struct bench *b, unsigned int dtype, const uint32_t *count,
			    unsigned int nparts, uint32_t base, bool repeats)
{
	struct isa_tile t = random_tile(b, dtype, count, nparts, base, ROOM * 4 / 3, repeats);

	if (nparts > 8)
		t.part0 = 0;
	return t;
}

static void shape(struct bench *b, uint32_t *count)
{
	static const uint32_t rows[] = { 1, 2, 3, 5, 8, 16, 17, 33, 64, 65 };

	count[0] = 1;
	count[1] = 1 + pick(b, 2);
	count[2] = 1 + pick(b, 2);
	count[3] = rows[pick(b, 10)];
}

static void set_index(struct bench *b, const struct isa_tile *t, unsigned int p, uint32_t n,
		      uint32_t index)
{
	memcpy(at(b->want, t->part0 + p, ref_offset(t, n)), &index, isa_dtype_bytes(t->dtype));
}

/* Bits: a NaN is compared like anything else. */
static void expect_want(struct bench *b, const struct isa_inst *in)
{
	download(b);
	if (memcmp(b->want, b->got, (size_t)PARTS * AREA))
		fail_msg("opcode 0x%x, %u partitions, dtypes %u = %u, imm0 %llu", in->opcode,
			 in->compute.src0.nparts, in->compute.dst.dtype, in->compute.src0.dtype,
			 (unsigned long long)in->compute.imm0);
}

/* --- gathers ------------------------------------------------------------------------------------- */

static void test_n_gather(void **state)
{
	static struct value data[ELEMS], index[ELEMS];
	static uint64_t out[ELEMS];
	struct bench *b = *state;

	for (unsigned int i = 0; i < ROUNDS; i++) {
		struct isa_inst in = { .opcode = ISA_N_GATHER };
		struct isa_compute *c = &in.compute;
		uint32_t from[ISA_TILE_DIMS], to[ISA_TILE_DIMS], n;
		unsigned int nparts = 1 + pick(b, 8), dtype = random_dtype(b, ISA_GPSIMD);

		shape(b, from);
		shape(b, to);
		c->compute_type = ISA_CT_BITS;
		c->dst = tile(b, dtype, to, nparts, REGION(0), false);
		c->src0 = tile(b, dtype, from, nparts, pick(b, 5) ? REGION(1) : REGION(0), true);
		c->src1 = tile(b, ISA_UINT32, to, nparts, REGION(2), false);
		n = ref_elems(&c->src0);
		randomise(b, &c->src0);
		for (unsigned int p = 0; p < nparts; p++)
			for (uint32_t k = 0; k < ref_elems(&c->dst); k++)
				set_index(b, &c->src1, p, k,
					  pick(b, 20) ?
						  pick(b, n) :
						  n + (pick(b, 2) ? pick(b, 3) :
								    (uint32_t)rnd(b) %
									    (UINT32_MAX - n)));
		upload(b);
		run(b, ISA_GPSIMD, &in);
		for (unsigned int p = 0; p < nparts; p++) {
			read_tile(b, ISA_CT_BITS, &c->src0, p, data);
			read_tile(b, ISA_CT_BITS, &c->src1, p, index);
			for (uint32_t k = 0; k < ref_elems(&c->dst); k++)
				out[k] = index[k].i < n ? (uint64_t)data[index[k].i].i : 0;
			write_dst(b, &c->dst, p, out);
		}
		expect_want(b, &in);
	}
}

static void ref_local(struct bench *b, const struct isa_compute *c)
{
	static struct value data[ELEMS], index[16][ELEMS];
	static uint64_t out[ELEMS];
	const uint32_t len = (uint32_t)c->imm0, n = ref_elems(&c->src0);

	for (unsigned int p = 0; p < c->dst.nparts; p++) {
		for (unsigned int q = 0; p % 16 == 0 && q < 16; q++)
			read_tile(b, ISA_CT_BITS, &c->src1, p + q, index[q]);
		read_tile(b, ISA_CT_BITS, &c->src0, p, data);
		for (uint32_t k = 0; k < ref_elems(&c->dst); k++) {
			uint32_t i = k / len;
			uint64_t from = (uint64_t)index[i % 16][i / 16].i * len + k % len;

			out[k] = from < n ? (uint64_t)data[from].i : 0;
		}
		write_dst(b, &c->dst, p, out);
	}
}

static void test_local_gather(void **state)
{
	struct bench *b = *state;

	for (unsigned int i = 0; i < ROUNDS; i++) {
		struct isa_inst in = { .opcode = ISA_LOCAL_GATHER };
		struct isa_compute *c = &in.compute;
		uint32_t len = 1u << pick(b, 6), runs = 1 + pick(b, 200 / len),
			 lists = 1 + pick(b, 5);
		uint32_t used = 1 + pick(b, lists * 16);
		uint32_t from[ISA_TILE_DIMS] = { 1, 1, runs, len },
			 to[ISA_TILE_DIMS] = { 1, 1, 1, 0 };
		uint32_t list[ISA_TILE_DIMS] = { 1, 1, 1, lists };
		unsigned int nparts = pick(b, 2) ? 16 : 32, dtype = random_dtype(b, ISA_GPSIMD);

		if (used * len > 300)
			used = 300 / len;
		to[3] = used * len;
		c->compute_type = ISA_CT_BITS;
		c->imm0 = len;
		c->dst = tile(b, dtype, to, nparts, REGION(0), false);
		c->src0 = tile(b, dtype, from, nparts, pick(b, 5) ? REGION(1) : REGION(0), true);
		c->src1 = tile(b, ISA_UINT16, list, nparts, REGION(2), false);
		randomise(b, &c->src0);
		for (unsigned int p = 0; p < nparts; p++)
			for (uint32_t k = 0; k < lists; k++)
				set_index(b, &c->src1, p, k,
					  pick(b, 20) ? pick(b, runs) : runs + pick(b, 60000));
		upload(b);
		run(b, ISA_GPSIMD, &in);
		ref_local(b, c);
		expect_want(b, &in);
	}
}

/* --- indices of elements --------------------------------------------------------------------------- */

static void test_nonzero(void **state)
{
	static struct value data[ELEMS];
	static uint64_t out[ELEMS];
	struct bench *b = *state;

	for (unsigned int i = 0; i < ROUNDS; i++) {
		static const unsigned int parts[] = { 1, 8, 16, 17, 31, 32, 33, 40 };
		struct isa_inst in = { .opcode = ISA_NONZERO_WITH_COUNT };
		struct isa_compute *c = &in.compute;
		uint32_t from[ISA_TILE_DIMS], to[ISA_TILE_DIMS] = { 1, 1, 1, 0 }, n;
		unsigned int nparts = parts[pick(b, 8)];

		shape(b, from);
		c->compute_type = ISA_CT_I32;
		c->src0 = tile(b, random_dtype(b, ISA_GPSIMD), from, nparts, REGION(1), true);
		n = ref_elems(&c->src0);
		to[3] = n + 1;
		c->dst = tile(b, ISA_INT32, to, nparts, REGION(0), false);
		c->imm0 = pick(b, 2) ? 0 : random_imm(b, ISA_CT_I32);
		c->imm1 = pick(b, 2) ? (uint64_t)-1 : random_imm(b, ISA_CT_I32);
		randomise(b, &c->src0);
		for (unsigned int p = 0; p < nparts; p++)
			for (uint32_t k = 0; k < n; k++)
				if (pick(b, 2))
					memset(at(b->want, c->src0.part0 + p,
						  ref_offset(&c->src0, k)),
					       0, isa_dtype_bytes(c->src0.dtype));
		upload(b);
		run(b, ISA_GPSIMD, &in);
		for (unsigned int p = 0; p < nparts; p += 16) {
			uint32_t found = 0;

			read_tile(b, ISA_CT_BITS, &c->src0, p, data);
			for (uint32_t k = 0; k < n; k++)
				out[k] = c->imm1;
			for (uint32_t k = 0; k < n; k++)
				if (number(c->src0.dtype, (uint64_t)data[k].i) != 0)
					out[found++] = c->imm0 + k;
			out[n] = found;
			write_dst(b, &c->dst, p, out);
		}
		expect_want(b, &in);
	}
}

/* As nki.isa.sequence_bounds defines them, element by element from the one before or behind. */
static void ref_bounds(const struct value *id, bool is_float, uint32_t n, long double *bound)
{
	for (uint32_t i = 0; i < n; i++) {
		bool zero = is_float ? id[i].x == 0 : id[i].i == 0;
		bool more = i && (is_float ? id[i].x == id[i - 1].x : id[i].i == id[i - 1].i);

		bound[i] = zero ? n : more ? bound[i - 1] : i;
	}
	for (uint32_t i = n; i-- > 0;) {
		bool zero = is_float ? id[i].x == 0 : id[i].i == 0;
		bool more = i + 1 < n &&
			    (is_float ? id[i].x == id[i + 1].x : id[i].i == id[i + 1].i);

		bound[n + i] = zero ? -1 : more ? bound[n + i + 1] : i + 1;
	}
}

static void test_sequence_bounds(void **state)
{
	static struct value data[ELEMS];
	static long double bound[ELEMS];
	static uint64_t out[ELEMS];
	struct bench *b = *state;

	for (unsigned int i = 0; i < ROUNDS; i++) {
		struct isa_inst in = { .opcode = ISA_SEQUENCE_BOUNDS };
		struct isa_compute *c = &in.compute;
		unsigned int ct = pick(b, 2) ? ISA_CT_F32 : ISA_CT_I32;
		unsigned int dtype = pick(b, 2) ? ISA_FP32 : ISA_INT32;
		uint32_t count[ISA_TILE_DIMS], n, id = pick(b, 3);

		shape(b, count);
		c->compute_type = (uint8_t)ct;
		c->src0 = tile(b, dtype, count, 1, REGION(1), false);
		n = ref_elems(&c->src0);
		count[0] = 2;
		c->dst = tile(b, pick(b, 2) ? ISA_FP32 : ISA_INT32, count, 1, REGION(0), false);
		randomise(b, &c->src0);
		for (uint32_t k = 0; k < n; k++) {
			float as_float;
			uint32_t bits;

			if (pick(b, 3) == 0)
				id = pick(b, 4);
			as_float = id ? (float)id : -0.0f;
			memcpy(&bits, &as_float, sizeof(bits));
			if (pick(b, 15))
				set_index(b, &c->src0, 0, k, dtype == ISA_FP32 ? bits : id);
		}
		upload(b);
		run(b, ISA_GPSIMD, &in);
		read_tile(b, ct, &c->src0, 0, data);
		ref_bounds(data, ct == ISA_CT_F32, n, bound);
		for (uint32_t k = 0; k < 2 * n; k++)
			out[k] = ref_store(ct, c->dst.dtype,
					   (struct value){ .x = bound[k], .i = (int64_t)bound[k] });
		write_dst(b, &c->dst, 0, out);
		expect_want(b, &in);
	}
}

/* --- what is refused ------------------------------------------------------------------------- */

static struct isa_inst good(unsigned int opcode)
{
	struct isa_inst in = { .opcode = (uint8_t)opcode };
	struct isa_compute *c = &in.compute;

	c->compute_type = ISA_CT_BITS;
	c->dst = asm_row(ISA_SPACE_SBUF, ISA_BF16, 0, 16, 256, 64);
	c->src0 = asm_row(ISA_SPACE_SBUF, ISA_BF16, 32, 16, 1024, 128);
	c->src1 = asm_row(ISA_SPACE_SBUF, ISA_UINT32, 64, 16, 2048, 64);
	switch (opcode) {
	case ISA_N_GATHER:
		break;
	case ISA_LOCAL_GATHER:
		c->src1 = asm_row(ISA_SPACE_SBUF, ISA_UINT16, 64, 16, 2048, 1);
		c->imm0 = 4;
		break;
	case ISA_NONZERO_WITH_COUNT:
		c->compute_type = ISA_CT_I32;
		c->dst = asm_row(ISA_SPACE_SBUF, ISA_INT32, 0, 50, 256, 129);
		c->src0.nparts = 50;
		memset(&c->src1, 0, sizeof(c->src1));
		break;
	default:
		c->compute_type = ISA_CT_I32;
		c->dst = asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 1, 256, 64);
		c->src0 = asm_row(ISA_SPACE_SBUF, ISA_INT32, 32, 1, 1024, 32);
		memset(&c->src1, 0, sizeof(c->src1));
		break;
	}
	return in;
}

#define BAD(base, change, val, lim) \
	REFUSE_ON(ISA_GPSIMD, base, change, EXI_FAULT_BAD_OPERAND, val, lim)
#define BAD_BOUNDS(base, change, val, lim) \
	REFUSE_ON(ISA_GPSIMD, base, change, EXI_FAULT_TILE_BOUNDS, val, lim)

static void test_refused(void **state)
{
	(void)state;
	for (unsigned int op = ISA_N_GATHER; op <= ISA_SEQUENCE_BOUNDS; op++) {
		const struct isa_inst in = good(op);
		const unsigned int cts = op <= ISA_LOCAL_GATHER ? 1 << ISA_CT_BITS :
					 op == ISA_NONZERO_WITH_COUNT ?
								  1 << ISA_CT_I32 :
								  1 << ISA_CT_F32 | 1 << ISA_CT_I32;
		const uint32_t row =
			in.compute.src0.count[3] * isa_dtype_bytes(in.compute.src0.dtype);

		for (unsigned int e = ISA_TENSOR; e <= ISA_SYNC; e++)
			if (e != ISA_GPSIMD)
				assert_int_equal(judge(e, &in).status, EXI_FAULT_BAD_OPCODE);
		for (unsigned int flag = 1; flag < ISA_F_NOTIFY; flag *= 2)
			BAD(in, i->flags = (uint8_t)flag, flag, ISA_F_NOTIFY);
		BAD(in, i->compute.compute_type = ISA_CT_I64, ISA_CT_I64, cts);
		BAD(in, i->compute.op0 = 1, 1, 0);
		BAD(in, i->compute.op1 = 1, 1, 0);
		BAD(in, i->compute.n_axes = 1, 1, 0);
		BAD(in, i->compute.vec0.offset = 4, 4, 0);
		BAD(in, i->compute.vec1.offset = 4, 4, 0);
		BAD(in, i->compute.dst.space = ISA_SPACE_PSUM, ISA_SPACE_PSUM, ISA_SPACE_SBUF);
		BAD(in, i->compute.src0.space = ISA_SPACE_PSUM, ISA_SPACE_PSUM, ISA_SPACE_SBUF);
		BAD(in, i->compute.src0.nparts++, in.compute.dst.nparts,
		    in.compute.src0.nparts + 1);
		BAD(in, i->compute.src0.dtype = 0, 0, ISA_FP32);
		BAD_BOUNDS(in, i->compute.src0.offset = 192 * 1024 - row + 4, 192 * 1024 + 4,
			   192 * 1024);
		BAD_BOUNDS(in, i->compute.dst.offset = 192 * 1024 - 4,
			   192 * 1024 - 4 +
				   in.compute.dst.count[3] * isa_dtype_bytes(in.compute.dst.dtype),
			   192 * 1024);
	}
}

static void test_gathers_refused(void **state)
{
	const struct isa_inst n = good(ISA_N_GATHER), local = good(ISA_LOCAL_GATHER);

	(void)state;
	BAD(n, i->compute.imm0 = 1, 1, 0);
	BAD(n, i->compute.imm1 = 1, 1, 0);
	BAD(n, i->compute.src1.dtype = ISA_INT32, ISA_INT32, ISA_UINT32);
	BAD(n, i->compute.src1.dtype = ISA_UINT16, ISA_UINT16, ISA_UINT32);
	BAD(n, i->compute.src1.count[3] = 63, 63, 64);
	BAD(n, i->compute.src1.nparts = 15, 15, 16);
	BAD(n, i->compute.src1.space = ISA_SPACE_PSUM, ISA_SPACE_PSUM, ISA_SPACE_SBUF);
	BAD(n, i->compute.src0.dtype = ISA_FP16, ISA_BF16, ISA_FP16);
	BAD(local, i->compute.imm0 = 0, 0, ISA_GATHER_RUN_MAX);
	BAD(local, i->compute.imm0 = 3, 3, ISA_GATHER_RUN_MAX);
	BAD(local, i->compute.imm0 = 64, 64, ISA_GATHER_RUN_MAX);
	BAD(local, i->compute.imm0 = 1ull << 32, 1ull << 32, ISA_GATHER_RUN_MAX);
	BAD(local, i->compute.imm1 = 1, 1, 0);
	BAD(local, i->compute.src0.count[3] = 126, 126, 4);
	BAD(local, i->compute.dst.count[3] = 62, 62, 4);
	BAD(local, i->compute.dst.count[3] = 68, 17, 16);
	BAD(local, i->compute.src1.dtype = ISA_UINT32, ISA_UINT32, ISA_UINT16);
	BAD(local, i->compute.src1.nparts = 32, 32, 16);
	BAD(local, i->compute.src0.dtype = ISA_INT16, ISA_BF16, ISA_INT16);
	BAD(local, i->compute.src0.nparts = i->compute.src1.nparts = i->compute.dst.nparts = 8, 8,
	    ISA_GPSIMD_PARTS);
	BAD(local,
	    (i->compute.imm0 = 1, i->compute.src1.count[3] = 1024, i->compute.dst.count[3] = 4097),
	    4097, ISA_GATHER_MAX);
}

static void test_indices_refused(void **state)
{
	const struct isa_inst nz = good(ISA_NONZERO_WITH_COUNT), seq = good(ISA_SEQUENCE_BOUNDS);

	(void)state;
	BAD(nz, i->compute.src1.dtype = ISA_FP32, ISA_FP32, 0);
	BAD(nz, i->compute.dst.count[3] = 128, 128, 129);
	BAD(nz, i->compute.dst.dtype = ISA_UINT32, ISA_UINT32, ISA_INT32);
	BAD(nz, i->compute.imm0 = 1ull << 31, 1ull << 31, INT32_MAX);
	BAD(nz, i->compute.imm1 = 1ull << 32, 1ull << 32, INT32_MAX);
	BAD(seq, i->compute.src1.dtype = ISA_FP32, ISA_FP32, 0);
	BAD(seq, i->compute.imm0 = 1, 1, 0);
	BAD(seq, i->compute.imm1 = 1, 1, 0);
	BAD(seq, i->compute.src0.nparts = i->compute.dst.nparts = 2, 2, 1);
	BAD(seq, i->compute.dst.count[3] = 63, 63, 64);
	BAD(seq, i->compute.dst.dtype = ISA_INT16, ISA_INT16, ISA_FP32);
	BAD(seq, i->compute.src0.dtype = ISA_UINT32, ISA_UINT32, ISA_FP32);
}

/* --- checking mode, time ---------------------------------------------------------------------- */

static void test_accesses(void **state)
{
	const struct isa_inst n = good(ISA_N_GATHER), local = good(ISA_LOCAL_GATHER);
	const struct isa_inst nz = good(ISA_NONZERO_WITH_COUNT), seq = good(ISA_SEQUENCE_BOUNDS);
	struct rig *r = *state;

	expect_access(r, ISA_GPSIMD, &n, ISA_SPACE_SBUF, 0, 15, 256, 384, WRITTEN);
	expect_access(r, ISA_GPSIMD, &n, ISA_SPACE_SBUF, 32, 47, 1024, 1280, READ);
	expect_access(r, ISA_GPSIMD, &n, ISA_SPACE_SBUF, 64, 79, 2048, 2304, READ);
	expect_access(r, ISA_GPSIMD, &local, ISA_SPACE_SBUF, 0, 15, 256, 384, WRITTEN);
	expect_access(r, ISA_GPSIMD, &local, ISA_SPACE_SBUF, 32, 47, 1024, 1280, READ);
	expect_access(r, ISA_GPSIMD, &local, ISA_SPACE_SBUF, 64, 79, 2048, 2050, READ);
	for (unsigned int p = 0; p < 64; p++) {
		bool in = p % 16 == 0 && p < 50;

		assert_int_equal(access_of(r, ISA_GPSIMD, &nz, ISA_SPACE_SBUF, 32 + p, 1279),
				 in ? READ : NOTHING);
		if (p < 32)
			assert_int_equal(access_of(r, ISA_GPSIMD, &nz, ISA_SPACE_SBUF, p, 771),
					 in ? WRITTEN : NOTHING);
	}
	expect_access(r, ISA_GPSIMD, &seq, ISA_SPACE_SBUF, 0, 0, 256, 512, WRITTEN);
	expect_access(r, ISA_GPSIMD, &seq, ISA_SPACE_SBUF, 32, 32, 1024, 1152, READ);
}

/* Data that no index may name need not be there; indices must, but for those that are not used. */
static void test_uninitialised(void **state)
{
	(void)state;
	for (unsigned int k = 0; k < 6; k++) {
		struct rig *r = rig_create_checking(NM_CHECK_UNINIT);
		struct program *p = calloc(1, sizeof(*p));
		struct isa_inst in = good(k < 3 ? ISA_N_GATHER : ISA_LOCAL_GATHER);
		struct isa_inst *set;

		/* 0: all is there, 1: no data, 2: no indices. */
		if (k % 3 != 1) {
			set = asm_inst(p, ISA_GPSIMD, ISA_MEMSET);
			set->compute.dst = in.compute.src0;
		}
		if (k % 3 != 2) {
			set = asm_inst(p, ISA_GPSIMD, ISA_MEMSET);
			set->compute.dst = in.compute.src1;
		}
		*asm_inst(p, ISA_GPSIMD, in.opcode) = in;
		rig_queue(r, 0, 1);
		assert_int_equal(rig_program(r, p, NULL).status,
				 k % 3 == 2 ? EXI_FAULT_UNINITIALISED : EXI_OK);
		free(p);
		rig_destroy(r);
	}
}

/* 150 cycles and one for each result; LOCAL_GATHER as its page has it. */
static void test_time(void **state)
{
	struct isa_inst n = good(ISA_N_GATHER), local = good(ISA_LOCAL_GATHER);
	struct isa_inst nz = good(ISA_NONZERO_WITH_COUNT), seq = good(ISA_SEQUENCE_BOUNDS);

	(void)state;
	n.compute.src1.count[3] = n.compute.dst.count[3] = 1000;
	expect_cycles_on(NEURON_ARCH_V3, ISA_GPSIMD, &n, 1150, 1200000000);
	nz.compute.src0.count[3] = 1000;
	nz.compute.dst.count[3] = 1001;
	expect_cycles_on(NEURON_ARCH_V3, ISA_GPSIMD, &nz, 1150, 1200000000);
	seq.compute.src0.count[3] = 1000;
	seq.compute.dst.count[3] = 2000;
	expect_cycles_on(NEURON_ARCH_V2, ISA_GPSIMD, &seq, 1150, 1400000000);
	/* 1024 runs of 4, elements of 2 bytes: C is (44 / 16) / 2. */
	local.compute.src1.count[3] = 64;
	local.compute.dst.count[3] = 4096;
	expect_cycles_on(NEURON_ARCH_V3, ISA_GPSIMD, &local, 150 + 2978, 1200000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_n_gather, setup, teardown),
		cmocka_unit_test_setup_teardown(test_local_gather, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nonzero, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sequence_bounds, setup, teardown),
		cmocka_unit_test_setup_teardown(test_accesses, racing_setup, rig_teardown),
		cmocka_unit_test(test_uninitialised),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_gathers_refused),
		cmocka_unit_test(test_indices_refused),
		cmocka_unit_test(test_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
