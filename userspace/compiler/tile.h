/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tiles: the iteration space of a group is cut along axes. A dim is one axis or,
 * split, two. In one tile each axis has a range; along FREE axes the elements of
 * the range lie one after the other in a partition, along PART axes each index has
 * its own partition, and LOOP axes have one index.
 */
#ifndef NC_TILE_H
#define NC_TILE_H

#include "passes.h"

#define AXES_MAX (NC_DIMS_MAX + 2)

enum axis_role { AXIS_LOOP, AXIS_PART, AXIS_FREE };

struct axis {
	uint32_t dim;
	enum axis_role role;
	bool reduced;
	int64_t unit; /* elements of the dim between two indices */
	int64_t count; /* indices */
	int64_t block; /* indices in one tile, at most */
};

/* Cuts the part of the space that starts at base. */
struct plan {
	uint32_t n_axes;
	struct axis axes[AXES_MAX]; /* outermost in memory first */
	uint32_t order[AXES_MAX]; /* axes as loops, outermost first */
	int64_t base[NC_DIMS_MAX];
	uint32_t nparts; /* of the largest tile */
};

/* A space whose dims don't divide needs two plans. */
struct plans {
	uint32_t n;
	struct plan plan[2];
	bool parts_reduced; /* partitions run over reduced dims */
	bool split_reduced; /* the plans cut one reduced dim: their results are to be combined */
};

/*
 * Elements between two of the innermost dim that an operand is loaded with: where few lie between, runs with
 * all of them take less than a descriptor for each that is wanted. 1: as memory has them. Row groups have no
 * room for that.
 */
#define TILE_GAP_MAX 4
int64_t nci_gap(const struct group *group, const struct vref *ref);

/* Drops dims of 1, orders dims by memory, merges those that all operands walk as one. */
void nci_collapse(const struct legal *legal, struct group *group);
void nci_plan(const struct legal *legal, const struct group *group, struct plans *plans);

#endif /* NC_TILE_H */
