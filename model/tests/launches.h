/* SPDX-License-Identifier: Apache-2.0 */
/* Launches that more than one test of a core makes, and waiting for them. */
#ifndef TEST_LAUNCHES_H
#define TEST_LAUNCHES_H

#include "rig.h"

static const struct exi_slot rw_slot = { .base = 0x100000,
					 .size = 0x10000,
					 .rights = EXI_SLOT_READ | EXI_SLOT_WRITE };

static inline struct program *new_program(void)
{
	return calloc(1, sizeof(struct program));
}

static inline struct exi_launch load(struct rig *r, struct program *p)
{
	size_t size;
	void *image = asm_finish(p, &size);
	struct exi_launch l = rig_load(r, image, size);

	free(image);
	free(p);
	return l;
}

/* One NOP. */
static inline struct exi_launch load_empty(struct rig *r)
{
	struct program *p = new_program();

	asm_inst(p, ISA_SYNC, ISA_NOP);
	return load(r, p);
}

/* Says with semaphore 6 that it runs, and waits for one that nobody moves. */
static inline struct exi_launch load_hanging(struct rig *r)
{
	struct program *p = new_program();

	asm_update(asm_inst(p, ISA_VECTOR, ISA_NOP), 6, 1);
	asm_wait(asm_inst(p, ISA_SCALAR, ISA_NOP), 7, 3);
	return load(r, p);
}

static inline void wait_status(struct rig *r, unsigned int queue, uint32_t status)
{
	for (unsigned int i = 0; i < 20000; i++) {
		if (rig_reg(r, queue, EXI_Q_STATUS) == status)
			return;
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	fail_msg("queue %u does not reach status %u", queue, status);
}

static inline void wait_running(struct rig *r)
{
	for (unsigned int i = 0; i < 20000; i++) {
		if (nm_core_sem_read(r->core, 6) == 1)
			return;
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	fail_msg("the launch does not start");
}

/* Starts a launch that hangs on queue 0 and returns when it does. */
static inline void hang(struct rig *r)
{
	r->features = 0;
	rig_put(r, 0, load_hanging(r), NULL, 0);
	nm_core_sem_write(r->core, 6, NM_SEM_SET, 0);
	rig_doorbell(r, 0);
	wait_running(r);
	nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
	assert_int_equal(rig_reg(r, 0, EXI_Q_STATUS), EXI_Q_RUNNING);
}

#endif /* TEST_LAUNCHES_H */
