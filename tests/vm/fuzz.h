/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of the fuzzer: fuzz_table.c knows the structures and fills them, fuzz_prog.c makes
 * programs, fuzz_ops.c does one thing to the device, fuzz.c runs processes of threads that do
 * such things for a while.
 *
 * A world is what a process has: device files with the handles that calls returned on them, other
 * files, mappings. Its threads share it without locks, as careless programs would; a fork copies
 * it. Numbers in it may be of things long gone.
 */
#ifndef TESTS_VM_FUZZ_H
#define TESTS_VM_FUZZ_H

#include <setjmp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dev.h"

#define FUZZ_DEVICES  3
#define FUZZ_HANDLES  16
#define FUZZ_PROGRAMS 256
#define FUZZ_FILES    8
#define FUZZ_MAPS     8
#define FUZZ_MAP_MAX  (2u << 20) /* bytes of one mapping */
#define FUZZ_ARENA    (256u << 10) /* bytes of a thread's memory for arguments */
#define FUZZ_CALLS    48 /* most kinds of ioctl */
#define FUZZ_ERRNOS   134

/* What a device file has. */
enum fuzz_pool { POOL_BO, POOL_CTX, POOL_PROG, POOL_SYNC, POOLS };

struct fuzz_device {
	_Atomic int fd; /* -1: none */
	_Atomic uint32_t handle[POOLS][FUZZ_HANDLES]; /* 0: none */
	/* Of programs, by the low bits of their ids: number of slots, << 8: which are scalars. */
	_Atomic uint32_t slots[FUZZ_PROGRAMS];
};

struct fuzz_world {
	struct fuzz_device device[FUZZ_DEVICES];
	_Atomic int file[FUZZ_FILES]; /* sync files, dma-bufs, eventfds; -1: none */
	/* A range for each, so that a mapping that goes away leaves no room for anything else. */
	uint8_t *map[FUZZ_MAPS];
};

/* Of all processes, in memory that they share. */
struct fuzz_stats {
	_Atomic uint64_t result[FUZZ_CALLS][FUZZ_ERRNOS]; /* by call and errno */
	/* Contexts asked for their state, by EXI_FAULT_*; [0]: without fault. */
	_Atomic uint64_t fault[EXI_FAULTS];
	_Atomic uint64_t ops, forks, execs, bus_errors, programs, timeouts;
};

struct fuzz_thread {
	uint64_t rng;
	struct fuzz_world *world;
	struct fuzz_stats *stats;
	struct fuzz_device *device; /* of the op at hand */
	uint8_t *arena; /* FUZZ_ARENA bytes, then a page that nobody may touch */
	uint32_t used;
	bool wild; /* the op at hand is to be wrong somewhere */
	bool child; /* of a fork: does not fork again */
	uint32_t image_slots, image_scalars; /* of the last image */
	uint32_t program; /* drawn last */
};

/* --- chance, fuzz_table.c --------------------------------------------------- */

uint64_t fuzz_random(struct fuzz_thread *t);
/* 0 up to n - 1. */
uint32_t fuzz_below(struct fuzz_thread *t, uint32_t n);
/* True once in n times. */
bool fuzz_once_in(struct fuzz_thread *t, uint32_t n);
/* A number that has broken code before: powers of two and their neighbours, extremes. */
uint64_t fuzz_odd_number(struct fuzz_thread *t);

/* --- structures, fuzz_table.c ------------------------------------------------ */

struct fuzz_type;

struct fuzz_call {
	const char *name;
	unsigned long request;
	const struct fuzz_type *type;
	/* Where a successful call returns a handle or a file, and what it is. */
	enum fuzz_result {
		RESULT_NONE,
		RESULT_BO,
		RESULT_CTX,
		RESULT_PROG,
		RESULT_SYNC,
		RESULT_FILE,
	} result;
	uint32_t result_at;
	uint32_t weight;
};

extern const struct fuzz_call fuzz_calls[];
extern const uint32_t fuzz_calls_count;
/* The call that makes what a pool holds. */
const struct fuzz_call *fuzz_maker(enum fuzz_pool pool);
/* Total of the weights. */
uint32_t fuzz_weights(void);

/* Memory of the arena for the op at hand; NULL when it is used up. */
void *fuzz_alloc(struct fuzz_thread *t, uint32_t size);
/* Fills the argument of a call; returns its bytes. */
uint32_t fuzz_fill(struct fuzz_thread *t, const struct fuzz_call *call, void *arg);
/*
 * Takes out of an argument what the kernel's own code, not ours, complains of in its log: the core
 * allocates for as many syncobjs as it is told, and 7.2 adds a fence chain to a fence chain
 * (dma_fence_chain_init() warns) when a sync file is imported as a point.
 */
void fuzz_tame(unsigned long request, void *arg);
uint32_t fuzz_handle(struct fuzz_thread *t, enum fuzz_pool pool);
void fuzz_keep(struct fuzz_thread *t, enum fuzz_pool pool, uint32_t handle);
int fuzz_file(struct fuzz_thread *t);
void fuzz_keep_file(struct fuzz_thread *t, int fd);
/* A call's argument is at most this long. */
#define FUZZ_ARG_MAX 512

/* --- programs, fuzz_prog.c --------------------------------------------------- */

/* An image in the arena, well formed or not. NULL when it is used up. */
void *fuzz_image(struct fuzz_thread *t, uint32_t *size);

/* --- ops, fuzz_ops.c ---------------------------------------------------------- */

/* Makes files and ranges for mappings. */
void fuzz_world_init(struct fuzz_world *world, const char *path);
void fuzz_thread_init(struct fuzz_thread *t, struct fuzz_world *world, struct fuzz_stats *stats,
		      uint64_t seed);
/* Handles the signals of ops that touch mappings. */
void fuzz_signals(void);
/* Gives each device file some of everything. */
void fuzz_warm_up(struct fuzz_thread *t);
void fuzz_op(struct fuzz_thread *t);
/* What a process does that an op executed, with the fds that it inherited. */
int fuzz_exec_child(int argc, char **argv);

#endif /* TESTS_VM_FUZZ_H */
