/* SPDX-License-Identifier: Apache-2.0 */
#include "grid.h"

/* Where the image has elements: count of them, from first_out of the grid and first_in of it. */
struct overlap {
	int64_t count, first_out, out_step, first_in, in_step;
};

static int64_t ceil_div_signed(int64_t a, int64_t b)
{
	return a > 0 ? (a + b - 1) / b : -(-a / b);
}

static struct overlap overlap(const struct grid_axis *axis, int64_t expand, int64_t size)
{
	struct overlap o = { 0 };
	int64_t low, high;

	if (expand == 1) { /* in = out * step + shift */
		low = nci_max(0, ceil_div_signed(-axis->shift, axis->step));
		high = size - 1 - axis->shift < 0 ? -1 : (size - 1 - axis->shift) / axis->step;
		high = nci_min(high, axis->count - 1);
		o = (struct overlap){ high - low + 1, low, 1, low * axis->step + axis->shift,
				      axis->step };
	} else { /* out = in * expand - shift */
		low = nci_max(0, ceil_div_signed(axis->shift, expand));
		high = axis->count - 1 + axis->shift < 0 ? -1 :
							   (axis->count - 1 + axis->shift) / expand;
		high = nci_min(high, size - 1);
		o = (struct overlap){ high - low + 1, low * expand - axis->shift, expand, low, 1 };
	}
	o.count = nci_max(0, o.count);
	return o;
}

/* A block of the grid in each of nn images. */
struct area {
	int64_t row, rows, column, columns;
};

static void zero(struct eval *ev, const struct image *image, uint32_t buf, int64_t nc, int64_t nn,
		 const struct grid_axis *axis, struct area a)
{
	int64_t rows = axis[0].count, columns = axis[1].count;
	int64_t count[3] = { nn, a.rows, a.columns }, step[3] = { rows * columns, columns, 1 };

	if (a.rows > 0 && a.columns > 0)
		lir_memset(ev->lir, ISA_GPSIMD, ISA_CT_BITS,
			   lir_tile(buf, image->dtype, (uint32_t)nc,
				    (uint32_t)((a.row * columns + a.column) * image->elem), 3,
				    count, step),
			   0);
}

/* What the load of h and w leaves out: the frame around it, or all if there are holes in it, too. */
static void zero_rest(struct eval *ev, const struct image *image, uint32_t buf, int64_t nc,
		      int64_t nn, const struct grid_axis *axis, const struct overlap *h,
		      const struct overlap *w)
{
	int64_t rows = axis[0].count, columns = axis[1].count;
	int64_t bottom = h->first_out + h->count, right = w->first_out + w->count;

	if (h->count == rows && w->count == columns)
		return;
	if (!h->count || !w->count || h->out_step > 1 || w->out_step > 1) {
		zero(ev, image, buf, nc, nn, axis, (struct area){ 0, rows, 0, columns });
		return;
	}
	zero(ev, image, buf, nc, nn, axis, (struct area){ 0, h->first_out, 0, columns });
	zero(ev, image, buf, nc, nn, axis, (struct area){ bottom, rows - bottom, 0, columns });
	zero(ev, image, buf, nc, nn, axis,
	     (struct area){ h->first_out, h->count, 0, w->first_out });
	zero(ev, image, buf, nc, nn, axis,
	     (struct area){ h->first_out, h->count, right, columns - right });
}

uint32_t grid_load(struct eval *ev, const struct image *image, int64_t c0, int64_t nc, int64_t n0,
		   int64_t nn, const struct grid_axis *axis)
{
	int64_t rows = axis[0].count, columns = axis[1].count, elem = image->elem;
	struct overlap h = overlap(&axis[0], image->expand[0], image->size[2]);
	struct overlap w = overlap(&axis[1], image->expand[1], image->size[3]);
	uint32_t buf = lir_buf(ev->lir, ISA_SPACE_SBUF, (uint64_t)(nn * rows * columns * elem));
	int64_t offset = n0 * image->stride[0] + c0 * image->stride[1] +
			 h.first_in * image->stride[2] + w.first_in * image->stride[3];
	struct lstep dims[4] = {
		{ nc, image->stride[1] * elem, 0 },
		{ nn, image->stride[0] * elem, rows * columns * elem },
		{ h.count, h.in_step * image->stride[2] * elem, h.out_step * columns * elem },
		{ w.count, w.in_step * image->stride[3] * elem, w.out_step * elem },
	};

	zero_rest(ev, image, buf, nc, nn, axis, &h, &w);
	if (h.count && w.count)
		lir_load(ev->lir, buf, 0, (uint32_t)((h.first_out * columns + w.first_out) * elem),
			 image->slot, offset * elem, image->elem, 1, 4, dims);
	return buf;
}
