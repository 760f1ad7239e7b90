/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of an image tensor on chip for convolutions: channels on the partitions,
 * then images, rows and columns, with zeros where the tensor has no element.
 */
#ifndef NC_GRID_H
#define NC_GRID_H

#include "eval.h"

/* An image tensor [n, c, h, w] in memory; strides in elements. */
struct image {
	uint32_t slot;
	uint8_t dtype, elem;
	int64_t size[4], stride[4];
	int64_t expand[2]; /* rows and columns lie so far apart, zeros between */
};

/* Rows or columns wanted: element i is at i * step + shift of the expanded image. */
struct grid_axis {
	int64_t count, step, shift;
};

/* Copies on the partitions, [columns][rows][channels]: each is shifted by so much more of the image. */
struct grid_copies {
	int64_t count[2], step[2]; /* rows, columns */
};

/* Loads [channels c0 .. c0 + nc - 1][images n0 .. n0 + nn - 1][rows][columns]; returns the
 * buffer. Either expand or the axis' step is 1. copies: NULL for one. */
uint32_t grid_load(struct eval *ev, const struct image *image, int64_t c0, int64_t nc, int64_t n0,
		   int64_t nn, const struct grid_axis *axis, const struct grid_copies *copies);

/* Are rows so short, and one after the other, that whole ones are loaded many in a run? */
bool grid_rows_short(const struct image *image);

#endif /* NC_GRID_H */
