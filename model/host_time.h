/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time of the host that instructions took to execute, for the report. Without one nothing reads a
 * clock. What helps on the threads of team.h counts once, as the time until all were done.
 */
#ifndef NM_HOST_TIME_H
#define NM_HOST_TIME_H

#include <stdint.h>
#include <time.h>

#include "neuron_queue.h"

#define NM_OPCODES 256

struct nm_host_sum {
	uint64_t ns;
	uint64_t n;
};

/* Of one launch, or of many. */
struct nm_host_time {
	struct nm_host_sum inst[EXI_ENGINES][NM_OPCODES];
	uint64_t run_ns; /* all from the first instruction to the last effect, these included */
};

static inline uint64_t nm_host_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* An instruction that began at from_ns and is done. */
static inline void nm_host_add(struct nm_host_time *t, unsigned int engine, uint8_t opcode,
			       uint64_t from_ns)
{
	t->inst[engine][opcode].ns += nm_host_now() - from_ns;
	t->inst[engine][opcode].n++;
}

#endif /* NM_HOST_TIME_H */
