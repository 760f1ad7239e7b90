/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checking mode: what a deterministic device hides. Before its first launch with a layout of slots
 * a program is replayed by its semaphores alone, with a vector clock for each engine and DMA queue
 * and a shadow of the memories. What is found there holds for every schedule, not for the one that
 * device time makes. Which bytes the program reads before it writes them is noted on the way, and
 * compared at each launch with what was ever written. Nothing here is reached when the mode is off.
 */
#ifndef NM_CHECK_H
#define NM_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "core.h"
#include "decode.h"

struct nm_check; /* of one core; worker only */
struct nm_checked; /* of one program */

/* What a launch brings. base: device address of each slot. */
struct nm_check_launch {
	const struct nm_program *program;
	const struct exi_slot *slot;
};

/* NULL: no memory. */
struct nm_check *nm_check_create(const struct nm_core_bus *bus, unsigned int core);
void nm_check_destroy(struct nm_check *c);

/* SBUF and PSUM were scrubbed: nothing there is initialised any more. */
void nm_check_scrubbed(struct nm_check *c);
/* The host wrote SBUF. */
void nm_check_host_write(struct nm_check *c, unsigned int partition, uint32_t byte, size_t size);

/* Before a launch. True: *fault is the first thing wrong with it, which ends it after it ran. */
bool nm_check_before(struct nm_check *c, const struct nm_check_launch *l, struct nm_fault *fault);
/* After it: what it writes is initialised. */
void nm_check_after(struct nm_check *c, const struct nm_check_launch *l);

void nm_checked_free(struct nm_checked *v);

#endif /* NM_CHECK_H */
