/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef __NEURON_PROG_H__
#define __NEURON_PROG_H__

#include <linux/atomic.h>
#include <linux/kref.h>
#include <linux/workqueue.h>

#include "neuron_hbm.h"
#include "neuron_program_check.h"

struct drm_device;
struct drm_file;
struct drm_printer;
struct neuron_file;

/**
 * struct neuron_prog_slot - What a program wants to find in a slot
 */
struct neuron_prog_slot {
	/** @min_bytes: Least size of the buffer. */
	u64 min_bytes;
	/** @rights: EXI_SLOT_*. */
	u32 rights;
	/** @scalar: 8 bytes in the launch, no buffer. */
	bool scalar;
};

/**
 * struct neuron_prog - A program in HBM, checked and constant
 *
 * Counted: its id holds a reference and each launch another.
 */
struct neuron_prog {
	/** @ref: References. */
	struct kref ref;
	/** @put_work: Drops the reference that neuron_prog_put_later() was given. */
	struct work_struct put_work;
	/** @nfile: File that pays for it, counted. */
	struct neuron_file *nfile;
	/** @device_id: Names these bytes to the device; never used twice. */
	u64 device_id;
	/** @hbm: Where it lies. */
	struct neuron_hbm_block hbm;
	/** @image_bytes: Size of the image. */
	u32 image_bytes;
	/** @const_bytes: Part of it that is constants. */
	u32 const_bytes;
	/** @launches: Launches given to the device. */
	atomic64_t launches;
	/** @name: Its user's name for it: one line of printable characters. */
	char name[NPROG_NAME_BYTES + 1];
	/** @id: Id in the file. */
	u32 id;
	/** @n_slots: Slots. */
	u32 n_slots;
	/** @slots: Slots. */
	struct neuron_prog_slot slots[] __counted_by(n_slots);
};

int neuron_prog_check(const void *image, u64 size, u32 arch, struct nprog_finding *finding);
struct neuron_prog *neuron_prog_lookup(struct neuron_file *nfile, u32 id);
void neuron_prog_put(struct neuron_prog *prog);
void neuron_prog_put_later(struct neuron_prog *prog);
void neuron_prog_print(struct neuron_file *nfile, struct drm_printer *p);

int neuron_ioctl_program_load(struct drm_device *drm, void *data, struct drm_file *file);
int neuron_ioctl_program_unload(struct drm_device *drm, void *data, struct drm_file *file);

#endif /* __NEURON_PROG_H__ */
