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

/* A convolution, or the gradient by x, under way. Rows before columns. */
struct conv {
	struct eval ev;
	struct plan plan;
	struct image in;
	struct filter filter;
	int64_t images, out[2]; /* size of the result */
	int64_t step[2], pad[2], dilation[2], taps[2];
	int64_t k, m; /* channels of one group: contracted, resulting */
	int64_t groups, group;
	struct cut cut[3];
	/*
	 * Copies of a window on the partitions, each shifted by one tap more: by columns, then rows, then
	 * channels. A product does so many taps at once. More than one each only if the rows are all taps'.
	 */
	int64_t copies[2];
	bool natural; /* weights as in memory, taps innermost: m is not */
	bool gather; /* no window fits: every tap has its own tile */
	/* Products whose weights are in a chunk; chunks[m block][k block][chunk], of this group, if kept. */
	int64_t chunk;
	uint32_t *chunks;
};

/* Taps of one product. */
struct taps {
	int64_t first[2], count[2];
};

/* Products that all taps take, by rows or columns of the filter. */
static inline int64_t conv_passes(const struct conv *c, uint32_t i)
{
	return nci_ceil_div(c->taps[i], c->copies[i]);
}

/* Products that a block of channels takes. */
static inline int64_t conv_products(const struct conv *c)
{
	return conv_passes(c, 0) * conv_passes(c, 1);
}

static inline int64_t conv_k_blocks(const struct conv *c)
{
	return nci_ceil_div(c->k, ISA_PARTITIONS);
}

static inline bool conv_copied(const struct conv *c)
{
	return c->copies[0] > 1 || c->copies[1] > 1;
}

static inline struct taps conv_taps(const struct conv *c, int64_t pass)
{
	int64_t at[2] = { pass / conv_passes(c, 1), pass % conv_passes(c, 1) };
	struct taps taps;

	for (uint32_t i = 0; i < 2; i++) {
		taps.first[i] = at[i] * c->copies[i];
		taps.count[i] = nci_min(c->copies[i], c->taps[i] - taps.first[i]);
	}
	return taps;
}

/* --- conv_filter.c ------------------------------------------------------------------------------- */

/* Do the weights of so many products with copies fit a chunk? */
bool conv_chunk_fits(const struct conv *c, int64_t passes);
/* How weights are loaded; when copies are chosen. */
void conv_set_filter(struct conv *c);
/* Weights of the group that the loops enter: none loaded yet. */
void conv_open_filter(struct conv *c);
/* The chunk of products from p0 on, channels from k0 and m0 on. */
uint32_t conv_need_chunk(struct conv *c, int64_t k0, int64_t m0, int64_t p0);
/* If chunks are kept, has the one behind that loaded, too, so that the tensor engine need not wait for it. */
void conv_next_chunk(struct conv *c, int64_t k0, int64_t m0, int64_t p0);
/* Weights of product p, of the chunk from p0 on with np of them, as stationary operand. */
struct ltile conv_stationary(const struct conv *c, uint32_t chunk, int64_t nk, int64_t nm,
			     int64_t p, int64_t p0, int64_t np);

struct image conv_image(const struct eval *ev, const struct vref *ref, const int64_t *size);

/* Blocks of [images, rows, columns] with parts of at most part_max elements, parts_max of them. */
void conv_cut(int64_t images, const int64_t *size, int64_t part_max, int64_t parts_max,
	      struct cut *cut);

void nci_conv_grad_w(struct legal *legal, struct lir *lir, struct group *group);

#endif /* NC_CONV_H */
