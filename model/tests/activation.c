// SPDX-License-Identifier: Apache-2.0
/*
 * Functions of ACTIVATION against libm in double, over numbers of all sizes; and that the row
 * kernels of all vector widths give the same bits.
 */
#include <float.h>
#include <math.h>

#include "rig.h"
#include "rows.h"

#define N 4096

static uint64_t seed = 0x853c49e6748fea9bu;

static uint32_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 20);
}

/* Every exponent, and many of moderate size. */
static float any_float(unsigned int i)
{
	uint32_t u = rnd();
	float x;

	if (i % 2) {
		memcpy(&x, &u, sizeof(x));
		return x;
	}
	return ((float)u - 0x1p31f) * (i % 4 ? 0x1p-28f : 0x1p-25f);
}

static double gauss(double x)
{
	return exp(-x * x / 2) / sqrt(2 * M_PI);
}

static double phi(double x)
{
	return erfc(-x * M_SQRT1_2) / 2;
}

static double gelu_inner(double x)
{
	return sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
}

static double sigmoid(double x)
{
	return 1 / (1 + exp(-x));
}

static double softplus(double x)
{
	return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

static double dgelu_tanh(double x)
{
	double t, d;

	if (fabs(x) > 1e3)
		return x > 0;
	t = tanh(gelu_inner(x));
	d = sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
	return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * d;
}

static double dsilu(double x)
{
	return fabs(x) > 1e3 ? x > 0 : sigmoid(x) * (1 + x * sigmoid(-x));
}

static double want(unsigned int act, double x)
{
	switch (act) {
	case ISA_ACT_COPY:
		return x;
	case ISA_ACT_EXP:
		return exp(x);
	case ISA_ACT_LN:
		return log(x);
	case ISA_ACT_SQRT:
		return sqrt(x);
	case ISA_ACT_RSQRT:
		return 1 / sqrt(x);
	case ISA_ACT_RECIPROCAL:
		return 1 / x;
	case ISA_ACT_SQUARE:
		return x * x;
	case ISA_ACT_ABS:
		return fabs(x);
	case ISA_ACT_SIGN:
		return isnan(x) ? x : (x > 0) - (x < 0);
	case ISA_ACT_RELU:
		return isnan(x) || x > 0 ? x : 0;
	case ISA_ACT_SIGMOID:
		return sigmoid(x);
	case ISA_ACT_TANH:
		return tanh(x);
	case ISA_ACT_GELU:
		return x < -1e3 ? -0.0 : x * phi(x);
	case ISA_ACT_GELU_TANH:
		return x < -1e3 ? -0.0 : 0.5 * x * (1 + tanh(gelu_inner(x)));
	case ISA_ACT_SILU:
		return x < -1e3 ? -0.0 : x * sigmoid(x);
	case ISA_ACT_SOFTPLUS:
		return softplus(x);
	case ISA_ACT_ERF:
		return erf(x);
	case ISA_ACT_SIN:
		return sin(x);
	case ISA_ACT_ARCTAN:
		return atan(x);
	case ISA_ACT_DGELU:
		return fabs(x) > 1e3 ? x > 0 : phi(x) + x * gauss(x);
	case ISA_ACT_DGELU_TANH:
		return dgelu_tanh(x);
	case ISA_ACT_DSILU:
		return dsilu(x);
	case ISA_ACT_FLOOR:
		return floor(x);
	case ISA_ACT_CEIL:
		return ceil(x);
	case ISA_ACT_ROUND:
		return rint(x);
	case ISA_ACT_TRUNC:
		return trunc(x);
	case ISA_ACT_COS:
		return cos(x);
	case ISA_ACT_LOG1P:
		return log1p(x);
	case ISA_ACT_EXPM1:
		return expm1(x);
	case ISA_ACT_GELU_SIGMOID:
		return x < -1e3 ? -0.0 : x * sigmoid(1.702 * x);
	case ISA_ACT_DGELU_SIGMOID:
		return dsilu(1.702 * x);
	case ISA_ACT_DERF:
		return M_2_SQRTPI * exp(-x * x);
	default:
		return x < -1e3 ? -0.0 : x * tanh(softplus(x));
	}
}

/*
 * Units of the last place that a result may be off. Composed functions lose the low bits of the
 * factors that cancel or round on the way; for them there is also a bound relative to the operand,
 * in units of 2^-24.
 */
static void limits(unsigned int act, double *ulps, double *relative)
{
	*ulps = 0.5;
	*relative = 0;
	switch (act) {
	case ISA_ACT_RSQRT:
		*ulps = 1.5;
		break;
	case ISA_ACT_EXP:
	case ISA_ACT_LN:
	case ISA_ACT_TANH:
	case ISA_ACT_ERF:
	case ISA_ACT_SIN:
	case ISA_ACT_COS:
	case ISA_ACT_ARCTAN:
	case ISA_ACT_LOG1P:
	case ISA_ACT_EXPM1:
		*ulps = 2;
		break;
	case ISA_ACT_SIGMOID:
	case ISA_ACT_SILU:
	case ISA_ACT_SOFTPLUS:
	case ISA_ACT_MISH:
		*ulps = 4;
		break;
	case ISA_ACT_GELU:
	case ISA_ACT_GELU_TANH:
	case ISA_ACT_GELU_SIGMOID:
		*ulps = 4;
		*relative = 2;
		break;
	case ISA_ACT_DGELU:
	case ISA_ACT_DGELU_TANH:
	case ISA_ACT_DSILU:
	case ISA_ACT_DGELU_SIGMOID:
	case ISA_ACT_DERF:
		*ulps = 4;
		*relative = 32; /* of numbers around 1 */
		break;
	default:
		break;
	}
}

static double ulp(double x)
{
	int e;

	if (x == 0 || fabs(x) < FLT_MIN)
		return 0x1p-149;
	frexp(x, &e);
	return ldexp(1, e - 24);
}

static bool is_derivative(unsigned int act)
{
	return (act >= ISA_ACT_DGELU && act <= ISA_ACT_DSILU) || act == ISA_ACT_DGELU_SIGMOID ||
	       act == ISA_ACT_DERF;
}

static void check(unsigned int act, float x, float got)
{
	double w = want(act, (double)x), error = fabs((double)got - w), ulps, relative, scale;

	if (isnan(w) || isnan(got)) {
		if (isnan(w) != isnan(got))
			fail_msg("function %u of %a: %a, not %a", act, (double)x, (double)got, w);
		return;
	}
	if ((float)w == got)
		return;
	limits(act, &ulps, &relative);
	scale = is_derivative(act) ? 1 : fabs((double)x);
	if (isinf(got) && fabs(w) >= FLT_MAX)
		return;
	/* exp(-x) is infinite just before the quotient would be a subnormal number. */
	if (ulps > 3 && fabs(w) < 1e-36 && fabsf(got) < 1e-36f)
		return;
	/* A tiny allowance: the reference itself is rounded. */
	if (error > ulps * ulp(w) * 1.0001 && error > relative * scale * 0x1p-24)
		fail_msg("function %u of %a: %a, not %a: %g ulp", act, (double)x, (double)got, w,
			 error / ulp(w));
}

static void test_functions(void **state)
{
	static const float special[] = { 0.0f,	    -0.0f,   1,	       -1,	INFINITY, -INFINITY,
					 NAN,	    FLT_MAX, -FLT_MAX, FLT_MIN, 1e-45f,	  -1e-45f,
					 88.72284f, 88.7f,   -87.4f,   -103.9f, -104.1f,  0.5f,
					 1.5f,	    2.5f,    -0.5f,    1e20f,	-1e20f,	  16,
					 -16,	    9,	     -9 };
	const struct nm_rows *rows = nm_rows();
	static float x[N], y[N];

	(void)state;
	for (unsigned int act = 0; act < ISA_ACTS; act++)
		for (unsigned int round = 0; round < 6; round++) {
			for (unsigned int i = 0; i < N; i++)
				x[i] = any_float(i);
			memcpy(x, special, sizeof(special));
			rows->act[act](y, x, N);
			for (unsigned int i = 0; i < N; i++)
				check(act, x[i], y[i]);
		}
}

/* --- all widths alike ----------------------------------------------------------------------- */

#define ROW 203

/* Bytes whose meaning depends on the type; NaN included. */
static void random_row(void *row, unsigned int bytes, bool floats)
{
	uint8_t *p = row;

	for (unsigned int i = 0; i < ROW * bytes; i++)
		p[i] = (uint8_t)rnd();
	for (unsigned int i = 0; floats && bytes == 4 && i < ROW; i++) {
		float x = any_float(i);

		memcpy(p + 4 * i, &x, 4);
	}
}

/* Equal to the bit, but for which NaN it is. */
static bool alike(const void *a, const void *b, unsigned int bytes, bool floats)
{
	for (unsigned int i = 0; i < ROW; i++) {
		const uint8_t *pa = (const uint8_t *)a + i * bytes,
			      *pb = (const uint8_t *)b + i * bytes;
		float fa = 0, fb = 0;
		double da = 0, db = 0;

		if (memcmp(pa, pb, bytes) == 0)
			continue;
		memcpy(&fa, pa, 4);
		memcpy(&fb, pb, 4);
		if (bytes == 8) {
			memcpy(&da, pa, 8);
			memcpy(&db, pb, 8);
		}
		if (!floats || (bytes == 4 && !(isnan(fa) && isnan(fb))) ||
		    (bytes == 8 && !(isnan(da) && isnan(db))))
			return false;
	}
	return true;
}

static void compare_alu(const struct nm_rows *a, const struct nm_rows *b)
{
	static uint64_t x[ROW], y[ROW], ra[ROW], rb[ROW];

	for (unsigned int ct = 0; ct < NM_CTS; ct++)
		for (unsigned int op = 0; op < ISA_ALU_OPS; op++) {
			unsigned int bytes = ct == ISA_CT_I64 || ct == ISA_CT_F64 ? 8 : 4;
			bool floats = ct == ISA_CT_F32 || ct == ISA_CT_F64;
			nm_row2 fa[] = { a->tt[ct][op], a->ts[ct][op], a->st[ct][op] };
			nm_row2 fb[] = { b->tt[ct][op], b->ts[ct][op], b->st[ct][op] };

			for (unsigned int form = 0; form < 3 && fa[0]; form++) {
				random_row(x, bytes, floats);
				random_row(y, bytes, floats);
				fa[form](ra, x, y, ROW);
				fb[form](rb, x, y, ROW);
				if (!alike(ra, rb, bytes, floats))
					fail_msg("ct %u op %u form %u differs", ct, op, form);
			}
		}
}

static void compare_conversions(const struct nm_rows *a, const struct nm_rows *b)
{
	static uint64_t x[ROW], ra[ROW], rb[ROW];

	for (unsigned int ct = 0; ct < NM_CTS; ct++)
		for (unsigned int dtype = 0; dtype < NM_DTYPES; dtype++) {
			unsigned int bytes = isa_dtype_bytes(dtype);
			unsigned int ct_bytes = ct == ISA_CT_I64 || ct == ISA_CT_F64 ? 8 : 4;

			if (!bytes)
				continue;
			random_row(x, bytes, dtype == ISA_FP32);
			a->load[ct][dtype](ra, x, bytes, ROW);
			b->load[ct][dtype](rb, x, bytes, ROW);
			if (!alike(ra, rb, ct_bytes, ct == ISA_CT_F32 || ct == ISA_CT_F64))
				fail_msg("load ct %u dtype %u differs", ct, dtype);
			random_row(x, ct_bytes, ct == ISA_CT_F32);
			a->store[ct][dtype](ra, bytes, x, ROW);
			b->store[ct][dtype](rb, bytes, x, ROW);
			if (!alike(ra, rb, bytes, dtype == ISA_FP32 || dtype == ISA_FP64))
				fail_msg("store ct %u dtype %u differs", ct, dtype);
		}
}

static void compare_functions(const struct nm_rows *a, const struct nm_rows *b)
{
	static float x[N], ya[N], yb[N];

	for (unsigned int act = 0; act < ISA_ACTS; act++)
		for (unsigned int round = 0; round < 4; round++) {
			for (unsigned int i = 0; i < N; i++)
				x[i] = any_float(i);
			a->act[act](ya, x, N - round);
			b->act[act](yb, x, N - round);
			for (unsigned int i = 0; i < N - round; i++)
				if (memcmp(&ya[i], &yb[i], sizeof(float)) &&
				    !(isnan(ya[i]) && isnan(yb[i])))
					fail_msg("function %u of %a: %a and %a", act, (double)x[i],
						 (double)ya[i], (double)yb[i]);
		}
}

static void compare_reductions(const struct nm_rows *a, const struct nm_rows *b)
{
	static uint64_t x[ROW], la[NM_LANES], lb[NM_LANES];

	for (unsigned int ct = 0; ct < NM_CTS; ct++)
		for (unsigned int op = 0; op < ISA_ALU_OPS; op++) {
			unsigned int bytes = ct == ISA_CT_I64 || ct == ISA_CT_F64 ? 8 : 4;
			const struct nm_rows *rows[] = { a, b };

			if (!a->reduce[ct][op])
				continue;
			for (unsigned int i = 0; i < ROW; i++) {
				float f = (float)(rnd() % 1000) / 7;

				if (ct == ISA_CT_F32)
					memcpy((uint8_t *)x + 4 * i, &f, 4);
				else
					memcpy((uint8_t *)x + bytes * i, &(double){ f }, bytes);
			}
			for (unsigned int k = 0; k < 2; k++) {
				void *lanes = k ? lb : la;

				rows[k]->reduce_init[ct][op](lanes);
				rows[k]->reduce[ct][op](lanes, x, 37, 0);
				rows[k]->reduce[ct][op](lanes, (uint8_t *)x + 37 * bytes, ROW - 37,
							37);
				rows[k]->reduce_end[ct][op](lanes);
			}
			assert_memory_equal(la, lb, bytes);
		}
}

static void test_widths_agree(void **state)
{
	const struct nm_rows *base = nm_rows_variant(0);

	(void)state;
	for (unsigned int i = 1; nm_rows_variant(i); i++)
		for (unsigned int round = 0; round < 50; round++) {
			compare_alu(base, nm_rows_variant(i));
			compare_conversions(base, nm_rows_variant(i));
			compare_reductions(base, nm_rows_variant(i));
			if (round < 20)
				compare_functions(base, nm_rows_variant(i));
		}
}

/* --- the instruction ------------------------------------------------------------------------- */

/* dst = exp(x * scale + bias) with columns for both, and the sum of each row. */
static void test_instruction(void **state)
{
	enum { ROWS = 5, COLS = 3000 };
	static float x[ROWS][COLS], y[COLS];
	struct rig *r = rig_create();
	struct program *p = calloc(1, sizeof(*p));
	struct isa_inst *in = asm_inst(p, ISA_SCALAR, ISA_ACTIVATION);

	(void)state;
	rig_queue(r, 0, 1);
	in->flags = ISA_F_ACCUM | ISA_F_VEC0 | ISA_F_VEC1;
	in->compute.op0 = ISA_ACT_EXP;
	in->compute.dst = asm_row(ISA_SPACE_SBUF, ISA_BF16, 32, ROWS, 16384, COLS);
	in->compute.src0 = asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, ROWS, 0, COLS);
	in->compute.src1 = asm_row(ISA_SPACE_SBUF, ISA_FP32, 64, ROWS, 8, 1);
	in->compute.vec0 = (struct isa_column){ .offset = 30000, .dtype = ISA_FP32 };
	in->compute.vec1 = (struct isa_column){ .offset = 30004, .dtype = ISA_BF16, .part0 = 32 };
	for (unsigned int i = 0; i < ROWS; i++) {
		float scale = 0.5f + (float)i;
		uint16_t bias = (uint16_t)(0x3f80 + 16 * i); /* 1, 1.125, ... */

		for (unsigned int k = 0; k < COLS; k++)
			x[i][k] = (float)(int)(rnd() % 2000) / 1000 - 1;
		nm_core_sbuf_write(r->core, i * NM_SBUF_VIEW_PITCH, x[i], sizeof(x[i]));
		nm_core_sbuf_write(r->core, i * NM_SBUF_VIEW_PITCH + 30000, &scale, 4);
		nm_core_sbuf_write(r->core, (32 + i) * NM_SBUF_VIEW_PITCH + 30004, &bias, 2);
	}
	assert_int_equal(rig_program(r, p, NULL).status, EXI_OK);
	for (unsigned int i = 0; i < ROWS; i++) {
		float lane[16] = { 0 }, sum, scale = 0.5f + (float)i, bias = 1 + 0.125f * (float)i;
		uint16_t out[COLS];

		for (unsigned int k = 0; k < COLS; k++) {
			float product = x[i][k] * scale;

			y[k] = product + bias;
		}
		nm_rows()->act[ISA_ACT_EXP](y, y, COLS);
		nm_core_sbuf_read(r->core, (32 + i) * NM_SBUF_VIEW_PITCH + 16384, out, sizeof(out));
		nm_core_sbuf_read(r->core, (64 + i) * NM_SBUF_VIEW_PITCH + 8, &sum, sizeof(sum));
		for (unsigned int k = 0; k < COLS; k++) {
			uint32_t u = (uint32_t)out[k] << 16;
			float got;

			memcpy(&got, &u, 4);
			assert_true(fabsf(got - y[k]) <= y[k] * 0x1p-8f);
			lane[k % 16] += y[k];
		}
		for (unsigned int half = 8; half; half /= 2)
			for (unsigned int l = 0; l < half; l++)
				lane[l] += lane[l + half];
		assert_true(sum == lane[0]);
	}
	free(p);
	rig_destroy(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_functions),
		cmocka_unit_test(test_widths_agree),
		cmocka_unit_test(test_instruction),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
