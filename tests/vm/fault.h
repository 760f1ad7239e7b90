/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixture of the tests that break the device (fault_inject_test.c): the control port, the kernel's
 * log, and a neighbour whom nothing of it may harm. All of it fails the test that calls it.
 */
#ifndef TESTS_VM_FAULT_H
#define TESTS_VM_FAULT_H

#include "dev.h"

#define TIMEOUT_MS "2000"
#define WAIT_MS	   20000 /* many time-outs, on a slow machine */

/* What somebody else has on the device. */
struct neighbour {
	int fd; /* -1: there is nobody */
	uint32_t ctx, program, sync;
	uint32_t bo[2], host; /* HBM written before and during the fault */
	float *p; /* of host */
};

#define NEIGHBOUR_VALUE 7.5f
#define NEIGHBOUR_BYTES (TILE_PARTS * 64)

struct fault_fixture {
	int fd; /* first: FD reads it; -1: closed */
	int log; /* of the kernel, from the start of the test on */
	char address[32];
	uint64_t hbm_used;
	struct neighbour neighbour;
};

#define F ((struct fault_fixture *)*state)

/* Sends a command; the answer must be ok. */
void inject(const char *command);

/* Reads on to a line of the kernel's log that has the text; waits for it. */
void expect_log(struct fault_fixture *f, const char *text);

/* A number of the driver's faults file: the word behind these. */
unsigned long fault_count(struct fault_fixture *f, const char *line_start, const char *word);

/* Copies have the limit that holds when the driver takes the device. */
void rebind(const char *address, const char *timeout_ms);
void fault_close(int *fd);
void neighbour_end(struct neighbour *n);
int fault_setup(void **state);
int fault_teardown(void **state);
void need_control(void);
void assert_works(int fd);

/* How it ended, within the time. */
int wait_status(int fd, uint32_t sync);

/* Somebody computes on a core of the first device, and has results there. */
void neighbour_new(struct neighbour *n, uint32_t core);
void neighbour_goes_on(const struct neighbour *n);

/* What he had is there, what he started is done, and no faults are injected any more. */
void assert_neighbour_unharmed(const struct neighbour *n);

#endif /* TESTS_VM_FAULT_H */
