/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host threads that share the work of one large instruction. There is one team in a process, for all
 * devices: a core that finds it at work for another one does its work alone, since then the cores
 * keep the processors busy themselves. What an instruction computes does not depend on how it is
 * divided, nor on whether it is.
 */
#ifndef NM_TEAM_H
#define NM_TEAM_H

#include <stdint.h>

#include "neuron_model.h"

/*
 * Does part number part, below parts. buffer: NM_BUFFERS scratch buffers of the thread that runs it
 * (exec.h), NULL in the caller's thread, which has its own.
 */
typedef void (*nm_part_fn)(void *arg, unsigned int part, uint64_t *const *buffer);

/*
 * Each device holds the team while it exists. The first one decides how many threads there are: 0 means
 * as many as the processors that the process may use, up to NM_THREADS_MAX. Fewer start where there are
 * no resources for more. Any thread.
 */
void nm_team_hold(unsigned int threads);
void nm_team_release(void);

/* Threads that nm_team_run() may use, 1 or more. */
unsigned int nm_team_threads(void);

/* Parts for each thread: several, since they do not all run at the same speed. */
#define NM_PARTS_PER_THREAD 2

/* Most parts that are shared; of more, the caller does all. */
#define NM_TEAM_PARTS 256

/* Returns when all parts are done. Any thread but the team's own. */
void nm_team_run(nm_part_fn fn, void *arg, unsigned int parts);

#endif /* NM_TEAM_H */
