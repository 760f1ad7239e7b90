// SPDX-License-Identifier: Apache-2.0
/* BN_STATS and BN_AGGR: results, what is refused, what is read and written, time. */
#include "bench.h"
#include "single.h"

#define ROUNDS 500
#define LANES  16

static struct value f32(long double x)
{
	return ref_round(ISA_CT_F32, x);
}

/* --- reference ------------------------------------------------------------------------------- */

/* As the page has it for REDUCE: 16 partial results, then halves. */
static struct value ref_sum(const struct value *v, uint32_t n)
{
	struct value lane[LANES] = { { 0 } };

	for (uint32_t i = 0; i < n; i++)
		lane[i % LANES] = f32(lane[i % LANES].x + v[i].x);
	for (unsigned int half = LANES / 2; half; half /= 2)
		for (unsigned int l = 0; l < half; l++)
			lane[l] = f32(lane[l].x + lane[l + half].x);
	return lane[0];
}

/* Group of the elements first, first + 2 and so on. */
static void ref_group(const struct value *v, uint32_t n, uint32_t first, struct value *group)
{
	static struct value x[ELEMS];
	uint32_t k = 0;

	for (uint32_t i = first; i < n; i += 2)
		x[k++] = v[i];
	group[0] = f32(k);
	group[1] = group[2] = f32(0);
	if (!k)
		return;
	group[1] = f32(ref_sum(x, k).x / k);
	for (uint32_t i = 0; i < k; i++) {
		struct value d = f32(x[i].x - group[1].x);

		x[i] = f32(d.x * d.x);
	}
	group[2] = ref_sum(x, k);
}

static void ref_bn_stats(struct bench *b, const struct isa_inst *in)
{
	static struct value v[ELEMS];
	const struct isa_compute *c = &in->compute;

	for (unsigned int p = 0; p < c->src0.nparts; p++) {
		struct value group[6];
		uint64_t out[6];

		read_tile(b, ISA_CT_F32, &c->src0, p, v);
		ref_group(v, ref_elems(&c->src0), 0, group);
		ref_group(v, ref_elems(&c->src0), 1, group + 3);
		for (unsigned int i = 0; i < 6; i++)
			out[i] = ref_store(ISA_CT_F32, c->dst.dtype, group[i]);
		write_dst(b, &c->dst, p, out);
	}
}

static void ref_bn_aggr(struct bench *b, const struct isa_inst *in)
{
	static struct value v[ELEMS];
	const struct isa_compute *c = &in->compute;
	uint32_t n = ref_elems(&c->src0);

	for (unsigned int p = 0; p < c->src0.nparts; p++) {
		struct value total = f32(0), mean = f32(0), spread = f32(0);
		uint64_t out[2];

		read_tile(b, ISA_CT_F32, &c->src0, p, v);
		for (uint32_t i = 0; i < n; i += 3) {
			total = f32(total.x + v[i].x);
			mean = f32(mean.x + f32(v[i].x * v[i + 1].x).x);
		}
		mean = f32(mean.x / total.x);
		for (uint32_t i = 0; i < n; i += 3) {
			struct value d = f32(v[i + 1].x - mean.x);

			d = f32(v[i].x * f32(d.x * d.x).x);
			spread = f32(spread.x + f32(v[i + 2].x + d.x).x);
		}
		out[0] = ref_store(ISA_CT_F32, c->dst.dtype, mean);
		out[1] = ref_store(ISA_CT_F32, c->dst.dtype, f32(spread.x / total.x));
		write_dst(b, &c->dst, p, out);
	}
}

/* --- random instructions ------------------------------------------------------------------- */

static void shape(struct bench *b, uint32_t n, uint32_t *count)
{
	for (unsigned int i = 0; i < ISA_TILE_DIMS; i++)
		count[i] = 1;
	count[3] = n;
	if (n % 2 == 0 && pick(b, 2)) {
		count[3] = n / 2;
		count[pick(b, 3)] = 2;
	}
}

static void random_one(struct bench *b, unsigned int opcode)
{
	static const uint32_t rows[] = { 1, 2, 3, 4, 31, 32, 33, 34, 65, 100, 127, 128, 511, 512 };
	static const uint32_t groups[] = { 1, 2, 3, 4, 8, 17 };
	bool stats = opcode == ISA_BN_STATS;
	struct isa_inst in = { .opcode = (uint8_t)opcode };
	struct isa_compute *c = &in.compute;
	unsigned int nparts = 1 + pick(b, 8);
	uint32_t n = stats ? rows[pick(b, sizeof(rows) / sizeof(rows[0]))] : 3 * groups[pick(b, 6)];
	uint32_t count[ISA_TILE_DIMS];

	shape(b, n, count);
	c->src0 = random_tile(b, random_dtype(b, ISA_VECTOR), count, nparts, REGION(1),
			      ROOM * 4 / 3, true);
	shape(b, stats ? 6 : 2, count);
	/* Some lie in src0. */
	c->dst = random_tile(b, random_dtype(b, ISA_VECTOR), count, nparts,
			     pick(b, 4) ? REGION(0) : REGION(1), ROOM, false);
	randomise(b, &c->src0);
	upload(b);
	run(b, ISA_VECTOR, &in);
	if (stats)
		ref_bn_stats(b, &in);
	else
		ref_bn_aggr(b, &in);
	compare(b, &in, false);
}

static void test_random(void **state)
{
	for (unsigned int i = 0; i < ROUNDS; i++) {
		random_one(*state, ISA_BN_STATS);
		random_one(*state, ISA_BN_AGGR);
	}
}

/* What it is for: mean and variance of rows of more than 512 elements, here around a large mean. */
static void test_rows(void **state)
{
	static const uint32_t pieces[] = { 512, 512, 77 };
	struct program *p = calloc(1, sizeof(*p));
	struct bench *b = *state;
	long double mean[4] = { 0 }, variance[4] = { 0 };
	float x[4][1101], got[2];
	uint32_t done = 0;
	struct isa_inst *in;

	for (unsigned int q = 0; q < 4; q++) {
		for (unsigned int i = 0; i < 1101; i++) {
			x[q][i] = 1000.0f * (float)q + (float)pick(b, 1000) / 128;
			mean[q] += x[q][i];
		}
		mean[q] /= 1101;
		for (unsigned int i = 0; i < 1101; i++)
			variance[q] += (x[q][i] - mean[q]) * (x[q][i] - mean[q]);
		variance[q] /= 1101;
		memcpy(at(b->want, q, REGION(1)), x[q], sizeof(x[q]));
	}
	for (unsigned int k = 0; k < 3; k++, done += pieces[k - 1]) {
		in = asm_inst(p, ISA_VECTOR, ISA_BN_STATS);
		in->compute.src0 =
			asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 4, REGION(1) + 4 * done, pieces[k]);
		in->compute.dst = asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 4, REGION(0) + 24 * k, 6);
	}
	in = asm_inst(p, ISA_VECTOR, ISA_BN_AGGR);
	in->compute.src0 = asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 4, REGION(0), 18);
	in->compute.dst = asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 4, REGION(2), 2);
	upload(b);
	assert_int_equal(rig_program(b->rig, p, NULL).status, EXI_OK);
	free(p);
	download(b);
	for (unsigned int q = 0; q < 4; q++) {
		memcpy(got, at(b->got, q, REGION(2)), sizeof(got));
		assert_true(fabsl(got[0] - mean[q]) <= 1e-6L * (1 + mean[q]));
		assert_true(fabsl(got[1] - variance[q]) <= 2e-5L * variance[q]);
	}
}

/* --- what is refused ------------------------------------------------------------------------ */

static struct isa_inst good(unsigned int opcode)
{
	struct isa_inst in = { .opcode = (uint8_t)opcode };
	bool stats = opcode == ISA_BN_STATS;

	in.compute.dst = asm_row(ISA_SPACE_SBUF, ISA_FP32, 32, 8, 256, stats ? 6 : 2);
	in.compute.src0 = asm_row(ISA_SPACE_PSUM, ISA_FP32, 0, 8, 2048, stats ? 100 : 12);
	return in;
}

static void test_refused(void **state)
{
	(void)state;
	for (unsigned int op = ISA_BN_STATS; op <= ISA_BN_AGGR; op++) {
		const struct isa_inst in = good(op);
		uint32_t few = op == ISA_BN_STATS ? 6 : 2, bytes = 4 * in.compute.src0.count[3];

		for (unsigned int e = ISA_TENSOR; e <= ISA_SYNC; e++)
			if (e != ISA_VECTOR)
				assert_int_equal(judge(e, &in).status, EXI_FAULT_BAD_OPCODE);
		for (unsigned int bit = 1; bit <= 0x80; bit *= 2)
			if (bit != ISA_F_NOTIFY)
				REFUSE(in, i->flags = (uint8_t)bit, bit, ISA_F_NOTIFY);
		REFUSE(in, i->compute.compute_type = ISA_CT_I32, ISA_CT_I32, 1 << ISA_CT_F32);
		REFUSE(in, i->compute.op0 = 1, 1, 0);
		REFUSE(in, i->compute.op1 = 2, 2, 0);
		REFUSE(in, i->compute.n_axes = 1, 1, 0);
		REFUSE(in, i->compute.mode = ISA_MODE_STOCHASTIC, ISA_MODE_STOCHASTIC, 0);
		REFUSE(in, i->compute.shift[2] = 5, 5, 0);
		REFUSE(in, i->compute.src1.nparts = 8, 8, 0);
		REFUSE(in, i->compute.imm0 = 5, 5, 0);
		REFUSE(in, i->compute.imm1 = 6, 6, 0);
		REFUSE(in, i->compute.vec0.part0 = 32, 32, 0);
		REFUSE(in, i->compute.vec1.offset = 4, 4, 0);
		REFUSE(in, i->compute.dst.count[3] = few - 1, few - 1, few);
		REFUSE(in, i->compute.dst.count[2] = 2, 2 * few, few);
		REFUSE(in, i->compute.dst.nparts = 7, 7, 8);
		REFUSE(in, i->compute.dst.dtype = ISA_INT64, ISA_INT64, ISA_FP32);
		REFUSE(in, i->compute.dst.space = ISA_SPACE_SLOT, ISA_SPACE_SLOT, ISA_SPACE_SBUF);
		REFUSE(in, i->compute.dst.part0 = 8, 8, ISA_PART_QUANTUM);
		REFUSE(in, i->compute.src0.dtype = ISA_FP64, ISA_FP64, ISA_FP32);
		REFUSE(in, i->compute.src0.nparts = 0, 0, ISA_PARTITIONS);
		REFUSE_BOUNDS(in, i->compute.src0.offset = NM_PSUM_BYTES - bytes + 4,
			      NM_PSUM_BYTES + 4, NM_PSUM_BYTES);
	}
	REFUSE(good(ISA_BN_STATS), i->compute.src0.count[3] = ISA_BN_ELEMS_MAX + 1,
	       ISA_BN_ELEMS_MAX + 1, ISA_BN_ELEMS_MAX);
	REFUSE(good(ISA_BN_AGGR), i->compute.src0.count[3] = 2, 2, 3);
	REFUSE(good(ISA_BN_AGGR), i->compute.src0.count[3] = 13, 13, 3);
	REFUSE(good(ISA_BN_AGGR), i->compute.src0.count[3] = 14, 14, 3);
}

/* --- checking mode, time --------------------------------------------------------------------- */

static void test_accesses(void **state)
{
	for (unsigned int op = ISA_BN_STATS; op <= ISA_BN_AGGR; op++) {
		const struct isa_inst in = good(op);
		uint32_t read = 4 * in.compute.src0.count[3], written = 4 * in.compute.dst.count[3];

		expect_access(*state, ISA_VECTOR, &in, ISA_SPACE_PSUM, 0, 7, 2048, 2048 + read,
			      READ);
		expect_access(*state, ISA_VECTOR, &in, ISA_SPACE_SBUF, 32, 39, 256, 256 + written,
			      WRITTEN);
	}
}

/* Results are scrubbed before another owner's launch. */
static void test_scrubbed(void **state)
{
	struct isa_inst in = good(ISA_BN_STATS);
	struct bench *b = *state;

	in.compute.dst.offset = 16384;
	memset(at(b->want, 32, 16384), 0, 24);
	run(b, ISA_VECTOR, &in);
	download(b);
	assert_memory_not_equal(at(b->got, 32, 16384), at(b->want, 32, 16384), 24);
	rig_set(b->rig, 0, EXI_Q_CONTROL, EXI_Q_RESET);
	rig_queue(b->rig, 0, 2);
	in = (struct isa_inst){ .opcode = ISA_NOP };
	run(b, ISA_VECTOR, &in);
	download(b);
	assert_memory_equal(at(b->got, 32, 16384), at(b->want, 32, 16384), 24);
}

/* An element a cycle; 13 cycles a group; on every chip. */
static void test_time(void **state)
{
	static const struct {
		uint32_t arch;
		uint64_t hz;
	} chips[] = {
		{ NEURON_ARCH_V2, 1120000000 },
		{ NEURON_ARCH_V3, 960000000 },
		{ NEURON_ARCH_V4, 1200000000 },
	};

	(void)state;
	for (unsigned int k = 0; k < 6; k++) {
		bool stats = k < 3;
		uint64_t hz = chips[k % 3].hz, cycles = stats ? 512 : 13 * 200;
		struct isa_inst in = good(stats ? ISA_BN_STATS : ISA_BN_AGGR);

		in.compute.src0.count[3] = stats ? 512 : 600;
		/* 60 for the access. */
		expect_cycles(chips[k % 3].arch, &in, cycles + 60, hz);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_random, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rows, setup, teardown),
		cmocka_unit_test_setup_teardown(test_scrubbed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_accesses, racing_setup, rig_teardown),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
