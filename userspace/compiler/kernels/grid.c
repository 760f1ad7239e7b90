/* SPDX-License-Identifier: Apache-2.0 */
#include "grid.h"
#include "panel.h"

/* Below, transfers of single rows take about twice their time and more. */
#define SHORT_RUN_BYTES 256

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

/* What the loads leave out: the frame around what is in all copies, or all if there are holes in it, too. */
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

/* What all copies have elements of, along rows or columns. Places of the grid only. */
static struct overlap overlap_of_all(const struct grid_axis *axis, int64_t expand, int64_t size,
				     int64_t copies, int64_t step)
{
	struct overlap all = overlap(axis, expand, size);

	for (int64_t i = 1; i < copies; i++) {
		struct grid_axis shifted = { axis->count, axis->step, axis->shift + i * step };
		struct overlap o = overlap(&shifted, expand, size);
		int64_t first = nci_max(all.first_out, o.first_out);
		int64_t end = nci_min(all.first_out + all.count, o.first_out + o.count);

		all.first_out = first;
		all.count = nci_max(0, end - first);
	}
	return all;
}

/* A copy of the grid: partitions from part0 on, and what it has elements of. */
struct copy {
	uint32_t buf, part0;
	int64_t nc, nn;
	const struct grid_axis *axis;
	struct overlap h, w;
	int64_t offset; /* of the first element in the slot */
};

bool grid_rows_short(const struct image *image)
{
	return image->size[3] * image->elem < SHORT_RUN_BYTES && image->stride[3] == 1 &&
	       image->stride[2] == image->size[3];
}

/*
 * Whole rows that are short and lie one after the other, but not so in the grid: transfers of many rows in
 * one run, and then an engine that spreads them, take less than a run for each row.
 */
static bool rows_are_spread(const struct image *image, const struct copy *c)
{
	return grid_rows_short(image) && c->w.count == image->size[3] &&
	       c->w.count < c->axis[1].count && c->h.count > 1 && c->h.in_step == 1 &&
	       c->w.in_step == 1 && c->h.out_step == 1 && c->w.out_step == 1 &&
	       c->part0 % ISA_PART_QUANTUM == 0;
}

static void spread_rows(struct eval *ev, const struct image *image, const struct copy *c)
{
	int64_t elem = image->elem, place = c->h.count * c->w.count;
	int64_t count[3] = { c->nn, c->h.count, c->w.count };
	int64_t from[3] = { place, c->w.count, 1 };
	int64_t to[3] = { c->axis[0].count * c->axis[1].count, c->axis[1].count, 1 };
	struct lstep dims[3] = {
		{ c->nc, image->stride[1] * elem, 0 },
		{ c->nn, image->stride[0] * elem, place * elem },
		{ place, elem, elem },
	};
	uint32_t rows = lir_buf(ev->lir, ISA_SPACE_SBUF, (uint64_t)(c->nn * place * elem));
	struct ltile dst =
		lir_tile(c->buf, image->dtype, (uint32_t)c->nc,
			 (uint32_t)((c->h.first_out * c->axis[1].count + c->w.first_out) * elem), 3,
			 count, to);
	struct ltile src = lir_tile(rows, image->dtype, (uint32_t)c->nc, 0, 3, count, from);

	lir_load(ev->lir, rows, c->part0, 0, image->slot, c->offset * elem, image->elem, 1, 3,
		 dims);
	dst.part0 = (uint8_t)c->part0;
	src.part0 = (uint8_t)c->part0;
	panel_evict(ev, ISA_CT_BITS, dst, src, c->nn * place);
}

static void load_copy(struct eval *ev, const struct image *image, const struct copy *c)
{
	int64_t rows = c->axis[0].count, columns = c->axis[1].count, elem = image->elem;
	struct lstep dims[4] = {
		{ c->nc, image->stride[1] * elem, 0 },
		{ c->nn, image->stride[0] * elem, rows * columns * elem },
		{ c->h.count, c->h.in_step * image->stride[2] * elem,
		  c->h.out_step * columns * elem },
		{ c->w.count, c->w.in_step * image->stride[3] * elem, c->w.out_step * elem },
	};

	if (!c->h.count || !c->w.count)
		return;
	if (rows_are_spread(image, c))
		spread_rows(ev, image, c);
	else
		lir_load(ev->lir, c->buf, c->part0,
			 (uint32_t)((c->h.first_out * columns + c->w.first_out) * elem),
			 image->slot, c->offset * elem, image->elem, 1, 4, dims);
}

uint32_t grid_load(struct eval *ev, const struct image *image, int64_t c0, int64_t nc, int64_t n0,
		   int64_t nn, const struct grid_axis *axis, const struct grid_copies *copies)
{
	static const struct grid_copies one = { { 1, 1 }, { 0, 0 } };
	const struct grid_copies *of = copies ? copies : &one;
	struct overlap h = overlap_of_all(&axis[0], image->expand[0], image->size[2], of->count[0],
					  of->step[0]);
	struct overlap w = overlap_of_all(&axis[1], image->expand[1], image->size[3], of->count[1],
					  of->step[1]);
	uint32_t buf = lir_buf(ev->lir, ISA_SPACE_SBUF,
			       (uint64_t)(nn * axis[0].count * axis[1].count * image->elem));
	int64_t n = of->count[0] * of->count[1];

	zero_rest(ev, image, buf, n * nc, nn, axis, &h, &w);
	for (int64_t i = 0; i < n; i++) {
		struct grid_axis shifted[2] = { axis[0], axis[1] };
		struct copy copy = {
			.buf = buf, .part0 = (uint32_t)(i * nc), .nc = nc, .nn = nn, .axis = shifted
		};

		shifted[0].shift += i % of->count[0] * of->step[0];
		shifted[1].shift += i / of->count[0] * of->step[1];
		copy.h = overlap(&shifted[0], image->expand[0], image->size[2]);
		copy.w = overlap(&shifted[1], image->expand[1], image->size[3]);
		copy.offset = n0 * image->stride[0] + c0 * image->stride[1] +
			      copy.h.first_in * image->stride[2] +
			      copy.w.first_in * image->stride[3];
		load_copy(ev, image, &copy);
	}
	return buf;
}
