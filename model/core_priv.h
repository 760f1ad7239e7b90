/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of a core. Rules:
 *
 * - One worker thread runs launches, writes records and touches memories. Everyone else either
 *   changes registers under core->lock or hands the worker a request and waits for it.
 * - The worker looks at requests between two instructions, and between bursts of a long transfer.
 * - core->lock is not held during an instruction or a call of a bus function.
 */
#ifndef NM_CORE_PRIV_H
#define NM_CORE_PRIV_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "check.h"
#include "core.h"
#include "neuron_queue.h"
#include "sim.h"

/* Decoded programs that are kept; the least recently used goes first. */
#define NM_CACHE_PROGRAMS 1024
#define NM_CACHE_BYTES	  (128u << 20)
#define NM_CACHE_BUCKETS  1024

struct nm_cached {
	struct nm_cached *next; /* in the bucket */
	uint64_t id, addr;
	uint64_t used; /* launch number */
	struct nm_program *program;
};

/* Worker only. */
struct nm_cache {
	struct nm_cached *bucket[NM_CACHE_BUCKETS];
	unsigned int programs;
	size_t bytes;
	uint64_t launches;
};

void nm_cache_clear(struct nm_cache *cache);
/* Program of a launch, decoding it if needed. Its image is at image. As nm_decode(). */
int nm_cache_get(struct nm_cache *cache, const struct exi_launch *launch, uint32_t arch,
		 const void *image, const struct nm_program **program, struct nm_fault *fault);

/* What EXI_Q_ENABLE latches. */
struct nm_setup {
	uint64_t ring, cq;
	uint32_t log2;
	uint32_t owner;
	bool bad; /* entries end with BAD_QUEUE */
	bool no_records; /* not even that: the completion ring is unusable */
	uint64_t bad_value, bad_limit;
};

struct nm_queue {
	uint32_t reg[EXI_QUEUE_STRIDE / 4]; /* RW registers as written */
	struct nm_setup setup;
	bool enabled;
	bool halted;
	bool overrun; /* a doorbell beyond the ring: value below */
	uint32_t overrun_value;
	uint32_t tail, head;
	uint64_t floor_ps; /* device time that the host knew of when it rang last */
	uint32_t traced; /* entries of the trace ring ever written */
};

#define NM_PS_PER_NS 1000

/* What is told of the launch under way, and where. */
struct nm_tracing {
	uint64_t program_id;
	uint32_t seqno;
	uint16_t queue;
	uint8_t engines; /* that trace into notification queues */
	bool ring; /* the launch has a trace ring */
	bool broken; /* it does not answer */
	uint64_t addr; /* of it */
	uint32_t mask;
	uint32_t next; /* entry */
};

enum nm_request_kind {
	NM_REQ_ABORT,
	NM_REQ_RESET_QUEUE,
	NM_REQ_RESET_CORE,
	NM_REQ_SBUF_READ,
	NM_REQ_SBUF_WRITE,
	NM_REQ_SEM,
};

/* On the requester's stack until done. */
struct nm_request {
	struct nm_request *next;
	enum nm_request_kind kind;
	unsigned int queue;
	uint64_t offset;
	void *buf;
	size_t size;
	enum nm_sem_op sem_op;
	uint32_t value;
	bool done;
};

enum nm_stop { NM_RUN_ON, NM_STOP_ABORT, NM_STOP_SILENT };

struct nm_core {
	struct nm_core_bus bus;
	unsigned int index;
	pthread_t thread;

	pthread_mutex_t lock;
	pthread_cond_t work; /* for the worker */
	pthread_cond_t served; /* a request is done */
	struct nm_queue queue[EXI_QUEUE_COUNT];
	struct nm_request *requests;
	bool quit;
	int running; /* queue of the launch under way, -1: none */
	unsigned int last; /* queue that was served last */

	_Atomic bool attention; /* requests is not empty, or quit */
	_Atomic uint64_t time_ns;
	_Atomic uint32_t enabled; /* queues; changed under lock */
	_Atomic uint32_t trace; /* EXI_CORE_TRACE */

	/* Worker only. */
	enum nm_stop stop; /* of the launch under way */
	uint64_t time_ps;
	uint32_t clock; /* percent that the host was told of */
	struct nm_sim sim;
	struct nm_cache cache;
	struct exi_slot table[EXI_SLOTS_MAX];
	bool has_owner;
	uint32_t owner;
	struct nm_check *check; /* NULL: off */
	struct nm_tracing tracing;
	struct nm_chain chain; /* of the launch at hand, for the report */
	struct nm_host_time host; /* the same */
	uint32_t dirty[2]; /* bytes of a partition that may be other than zero */
	uint64_t logged[EXI_QUEUE_STRIDE / 4 / 64 + 1]; /* undefined registers; under lock */
};

/* trace.c: what one launch tells as it goes. begin is false if its trace ring is unusable. Worker,
 * unlocked. */
bool nm_trace_begin(struct nm_core *core, unsigned int queue, const struct exi_launch *l,
		    struct nm_fault *fault);
void nm_trace_end(struct nm_core *core, uint64_t start_ps, uint64_t end_ps);
void nm_trace_notify(void *user, const struct nm_event *ev);

/* A pair of registers as one address; core->lock held. */
static inline uint64_t nm_queue_reg64(const struct nm_queue *q, unsigned int low)
{
	return q->reg[low / 4] | (uint64_t)q->reg[low / 4 + 1] << 32;
}

/* Fills in a fault of no engine and no slot. False. */
bool nm_refuse(struct nm_fault *fault, uint16_t status, uint64_t value, uint64_t limit);

/* core.c. Serves requests; what became of the launch under way is in core->stop. Worker, unlocked. */
void nm_core_serve(struct nm_core *core);

/* launch.c: one entry of a queue, from fetch to interrupt. nested: while another one runs; the queue
 * is halted then. Worker, unlocked. */
void nm_core_entry(struct nm_core *core, unsigned int queue, bool nested);
/* Zeroes SBUF, PSUM and semaphores. Worker. */
void nm_core_scrub(struct nm_core *core);

void nm_core_log(struct nm_core *core, int level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif /* NM_CORE_PRIV_H */
