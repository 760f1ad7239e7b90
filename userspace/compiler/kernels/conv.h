/* SPDX-License-Identifier: Apache-2.0 */
/* What the three convolutions share. */
#ifndef NC_CONV_H
#define NC_CONV_H

#include "grid.h"
#include "panel.h"

#define CONV_BANK_COLUMNS (ISA_PSUM_BANK_BYTES / 4)
#define CONV_BANKS	  4 /* of one block of the result; the others serve the next */

/* Weights in memory; strides in elements, of the contraction's and the result's channel. */
struct filter {
	uint32_t slot;
	uint8_t dtype, elem;
	int64_t k_stride, m_stride, tap_stride[2];
	bool flip;
};

/* How one dim of the result is cut: blocks of the result, each of several parts. */
struct cut {
	int64_t count, block, part;
};

struct image conv_image(const struct eval *ev, const struct vref *ref, const int64_t *size);

/* Blocks of [images, rows, columns] with parts of at most part_max elements, parts_max of them. */
void conv_cut(int64_t images, const int64_t *size, int64_t part_max, int64_t parts_max,
	      struct cut *cut);

void nci_conv_grad_w(struct legal *legal, struct lir *lir, struct group *group);

#endif /* NC_CONV_H */
