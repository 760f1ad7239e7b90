// SPDX-License-Identifier: Apache-2.0
/* What operations on floats mean, in double, by formulas that lose nothing where results are small. */
#include <math.h>

#include "values.h"

static double logistic(double x)
{
	return 1 / (1 + exp(-x));
}

static double softplus(double x)
{
	return fmax(x, 0) + log1p(exp(-fabs(x)));
}

/* x where it is finite, or what times 0 is 0. */
static double bounded(double x)
{
	return isinf(x) ? copysign(1e300, x) : x;
}

static double cubic(double x)
{
	return sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
}

double tv_function(nc_unary_op op, double x)
{
	double s;

	switch (op) {
	case NC_NEG:
		return -x;
	case NC_ABS:
		return fabs(x);
	case NC_SIGN:
		return (x > 0) - (x < 0);
	case NC_SQUARE:
		return x * x;
	case NC_RELU:
		return x > 0 ? x : 0;
	case NC_FLOOR:
		return floor(x);
	case NC_CEIL:
		return ceil(x);
	case NC_ROUND:
		return nearbyint(x);
	case NC_TRUNC:
		return trunc(x);
	case NC_SQRT:
		return sqrt(x);
	case NC_RECIPROCAL:
		return 1 / x;
	case NC_RSQRT:
		return 1 / sqrt(x);
	case NC_EXP:
		return exp(x);
	case NC_LN:
		return log(x);
	case NC_LOG1P:
		return log1p(x);
	case NC_EXPM1:
		return expm1(x);
	case NC_SIN:
		return sin(x);
	case NC_COS:
		return cos(x);
	case NC_ARCTAN:
		return atan(x);
	case NC_TANH:
		return tanh(x);
	case NC_ERF:
		return erf(x);
	case NC_SIGMOID:
		return logistic(x);
	case NC_SOFTPLUS:
		return softplus(x);
	case NC_GELU:
		return 0.5 * bounded(x) * erfc(-x / sqrt(2));
	case NC_GELU_TANH:
		return bounded(x) * logistic(2 * cubic(x));
	case NC_SILU:
		return bounded(x) * logistic(x);
	case NC_MISH:
		return bounded(x) * tanh(softplus(x));
	case NC_DGELU:
		return 0.5 * erfc(-x / sqrt(2)) + bounded(x) * exp(-0.5 * x * x) / sqrt(2 * M_PI);
	case NC_DGELU_TANH:
		s = logistic(2 * cubic(x));
		x = fmax(fmin(x, 1e3), -1e3);
		return s + 2 * x * s * logistic(-2 * cubic(x)) * sqrt(2 / M_PI) *
				   (1 + 3 * 0.044715 * x * x);
	case NC_DSILU:
		return logistic(x) * (1 + bounded(x) * logistic(-x));
	default:
		return NAN;
	}
}

double tv_operation(nc_binary_op op, double a, double b)
{
	double r;

	switch (op) {
	case NC_ADD:
		return a + b;
	case NC_SUB:
		return a - b;
	case NC_MUL:
		return a * b;
	case NC_DIV:
		return a / b;
	case NC_MAX:
		return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
	case NC_MIN:
		return isnan(a) || isnan(b) ? NAN : a < b ? a : b;
	case NC_POW:
		return pow(a, b);
	case NC_MOD:
		r = fmod(a, b);
		return r != 0 && (r < 0) != (b < 0) ? r + b : r;
	case NC_EQ:
		return a == b;
	case NC_NE:
		return a != b;
	case NC_LT:
		return a < b;
	case NC_LE:
		return a <= b;
	case NC_GT:
		return a > b;
	default:
		return a >= b;
	}
}
