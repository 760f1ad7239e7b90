/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sequencers, semaphores and DMA queues of one core, simulated in device time. The engine whose next
 * instruction can start earliest goes first (ties: lowest number); a compute instruction takes
 * effect when it starts, a transfer when it is complete, semaphore updates at the end of either. So
 * results and times depend on the program and its data alone.
 */
#ifndef NM_SIM_H
#define NM_SIM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "decode.h"
#include "exec.h"
#include "timing.h"
#include "chain.h"
#include "host_time.h"

/* Effects that are under way; an engine that would add one more waits for the oldest. */
#define NM_SIM_EVENTS 4096

enum nm_verdict { NM_GO_ON, NM_ABORT, NM_DEADLOCK };

struct nm_event {
	uint64_t ps;
	uint64_t order; /* among those of one time */
	const struct nm_inst *inst;
	uint32_t pc;
	uint32_t node; /* in the chain */
	uint8_t engine;
	int64_t dst_shift,
		src_shift; /* transfers: bytes by which registers moved its sides at issue */
};

/* What the sequencers ask of the core while a program runs. */
struct nm_sim_ops {
	/* *exec.attention is set: NM_GO_ON or NM_ABORT. */
	enum nm_verdict (*attend)(void *user);
	/* No engine can go on. NM_DEADLOCK ends the launch; NM_GO_ON: semaphores have changed. */
	enum nm_verdict (*stall)(void *user);
	/* The effects of an instruction that asks to be told of are visible. */
	void (*notify)(void *user, const struct nm_event *ev);
};

struct nm_sim_result {
	struct nm_fault
		fault; /* EXI_OK, EXI_FAULT_DEADLOCK, _SEM_OVERFLOW, _ABORTED, _ECC or _INDEX; of
			* programs with registers also _TILE_BOUNDS, _SLOT_BOUNDS or _BAD_OPERAND */
	uint64_t end_ps;
	uint64_t dma_bytes;
	uint32_t insts[EXI_ENGINES];
	uint64_t busy_ps[EXI_ENGINES];
};

struct nm_sequencer {
	int32_t reg[ISA_REGISTERS];
	uint32_t pc;
	bool done;
	bool blocked; /* a wait of the instruction at pc does not hold */
	uint64_t free_ps; /* the instruction before is out of the way */
	uint64_t ready_ps; /* the one at pc can start, if not blocked */
};

struct nm_sim {
	struct nm_exec exec;
	const struct nm_timing *timing;
	const struct nm_sim_ops *ops;
	void *user;
	_Atomic uint32_t sem[ISA_SEMAPHORES];

	/* Injected, from any thread: launches in which an engine hangs; transfers that read poisoned
	 * HBM; the clocks in percent. */
	_Atomic uint32_t hangs[EXI_ENGINES];
	_Atomic uint32_t poisoned;
	_Atomic uint32_t percent;

	/* Called for each instruction of the running program at its issue, or NULL. */
	void (*trace)(void *user, unsigned int engine, uint32_t pc, uint64_t start_ps,
		      uint64_t end_ps);

	/* Of the running program. */
	uint32_t hung; /* engines */
	uint32_t clock; /* percent */
	unsigned int sharers; /* cores that share HBM, this one included; set before the run */
	uint64_t hbm_ps; /* this core's share is used up until then */
	const struct nm_program *program;
	struct nm_sim_result *result;
	struct nm_chain *chain; /* NULL: none is wanted */
	struct nm_host_time *host; /* to be added to; NULL: not measured; set before the run */
	struct nm_sequencer seq[EXI_ENGINES];
	uint64_t queue_ps[ISA_DMA_QUEUES]; /* last byte of the queue's last transfer */
	uint64_t engine_ps[NM_DMA_ENGINES]; /* DMA engine is free */
	uint64_t port_ps[NM_PORTS]; /* shared access is free */
	/* Of products on parts of the array: the last one is done, and its effects are visible. */
	uint64_t array_ps, array_end_ps;
	unsigned int next_engine;
	uint64_t order;
	unsigned int n_events;
	struct nm_event event[NM_SIM_EVENTS]; /* a heap, earliest first */
};

/*
 * Runs a program from device time start_ps on, with exec's slots and constants set. Semaphores
 * start at zero. Returns when all effects are complete or a fault ended it. chain: empty, or NULL.
 */
void nm_sim_run(struct nm_sim *s, const struct nm_program *program, uint64_t start_ps,
		struct nm_chain *chain, struct nm_sim_result *result);

#endif /* NM_SIM_H */
