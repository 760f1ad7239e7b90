/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of the in-process front end: a small driver. Rules of the room:
 *
 * - The device is used through neuron_model.h and its registers alone, as the
 *   kernel driver uses the PCI device: queues, rings and records in memory that
 *   the device reaches by bus address, doorbells, interrupts.
 * - nm_inproc.lock protects everything but what says otherwise. The device's
 *   interrupt callback takes it, so no register is touched while it is held.
 *   The push locks of contexts and lanes order doorbells; they are taken before
 *   nm_inproc.lock and held across register writes.
 * - Interrupts come on threads of the device, which must not touch it: work that
 *   needs a register (doorbells of launches whose fences have signalled, the next
 *   piece of a long copy) goes on ready lists and is done by any thread that
 *   waits for a fence, else by the worker.
 * - Nothing is allocated for a launch: all it needs was made with its context.
 */
#ifndef NM_INPROC_PRIV_H
#define NM_INPROC_PRIV_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "chip.h"
#include "inproc.h"
#include "neuron_mailbox.h"
#include "neuron_pci.h"
#include "neuron_program.h"
#include "neuron_queue.h"
#include "neuron_udma.h"

#define IP_GRANULE	4096ull
#define IP_RING_LOG2	8
#define IP_RING		(1u << IP_RING_LOG2) /* launches a context keeps in flight */
#define IP_SLOT_RING	8192u /* slot table entries of a context */
#define IP_CTX_VECTORS	32u /* MSI-X vectors of contexts; lanes have the others */
#define IP_LANES	NM_CORES /* UDMA queues for copies */
#define IP_LANE_RING	1024u /* descriptors */
#define IP_LANE_BATCH	256u /* descriptors between two markers */
#define IP_LANE_BATCHES 64u
/* Long, since a busy host may starve the threads of the device. */
#define IP_COPY_TIMEOUT_NS 120000000000ull
#define IP_WATCH_NS	   200000000ull /* period of the worker's look at what is in flight */

/* Ids of things, 1 and up. */
struct ip_table {
	void **items; /* a free one holds the index of the next free one */
	uint8_t *used;
	uint32_t size;
	uint32_t first_free; /* index + 1; 0: none */
};

struct ip_extent {
	uint64_t start, end; /* bytes in the stack */
	struct ip_extent *next;
};

struct ip_stack {
	struct ip_extent *free; /* sorted, no two touch */
	uint64_t free_bytes;
};

struct ip_bo {
	uint32_t refs;
	uint32_t flags;
	uint64_t size;
	uint64_t addr; /* device address */
	uint8_t *ptr;
	unsigned int stack; /* HBM */
	uint64_t offset;
	struct ip_bo *next_dead;
};

/* A point that somebody will reach. */
struct ip_entry {
	uint64_t point;
	uint64_t time_ns;
	bool done;
	int8_t lane; /* queue that will do it, after all that was given to it before; -1: none */
};

struct ip_sync {
	uint32_t refs;
	_Atomic uint64_t signalled;
	uint64_t submitted; /* highest point with an entry */
	uint64_t want; /* lowest point that somebody sleeps for */
	struct ip_entry *entry; /* by count modulo size; older ones stay as history */
	uint32_t size; /* power of two */
	uint64_t head, tail; /* counts: first not done, next new */
};

struct ip_fence {
	struct ip_sync *sync;
	uint64_t point; /* out: count of its entry */
};

/* What a launch or copy waits for and what it signals. Holds references. */
struct ip_deps {
	uint32_t n_in, n_out;
	struct ip_fence in[NM_INPROC_FENCES_MAX];
	struct ip_fence out[NM_INPROC_FENCES_MAX];
};

struct ip_program {
	uint32_t refs;
	uint32_t handle; /* 0: unloaded */
	struct ip_bo *bo;
	uint64_t id; /* for the device, never used twice */
	uint32_t bytes;
	uint32_t n_slots;
	struct nprog_slot *slots;
};

struct ip_job {
	struct ip_program *program;
	uint32_t slot_first; /* index in the slot ring */
	uint32_t n_slots;
	uint32_t slot_end; /* count after its slots */
	struct ip_deps deps;
};

enum ip_where { CTX_QUIET, CTX_BLOCKED, CTX_READY };

struct ip_ctx {
	uint32_t refs;
	unsigned int core, queue, vector;
	pthread_mutex_t push;
	TAILQ_ENTRY(ip_ctx) all;
	TAILQ_ENTRY(ip_ctx) waiting; /* blocked or ready list */
	enum ip_where where;

	void *arena;
	uint64_t iova;
	struct exi_launch *ring;
	struct exi_record *cq;
	struct exi_slot *slots;
	struct ip_bo **slot_bo;
	struct ip_job *jobs;
	/* Counts modulo 2^32: completed <= rung <= written. */
	uint32_t written, rung, completed;
	uint32_t slot_head, slot_tail;
	unsigned int full; /* threads that wait for room */
	bool dead; /* takes no more launches */
	bool aborted; /* by the watchdog */
	struct ip_program *guilty; /* reference */
	struct nm_inproc_ctx_state state;
};

struct ip_copy {
	TAILQ_ENTRY(ip_copy) list; /* blocked, a lane's, or free */
	struct ip_bo *src, *dst;
	uint64_t src_addr, dst_addr;
	uint64_t size, pushed;
	bool barrier; /* starts after all that is in its lane */
	struct ip_deps deps;
};
TAILQ_HEAD(ip_copies, ip_copy);

/* Descriptors up to one marker. */
struct ip_batch {
	struct ip_copy *copy;
	uint32_t descs;
	bool last; /* of the copy */
	bool barrier;
};

/* What the watchdog remembers of something that counts what it has done. */
struct ip_watch {
	uint32_t done; /* the count at since_ns */
	uint64_t since_ns; /* 0: it had nothing to do, or was never looked at */
};

/* For how long it has been busy without doing anything, as far as looks have shown, ns. */
static inline uint64_t ip_watch_ns(struct ip_watch *w, bool busy, uint32_t done, uint64_t now)
{
	if (!busy || done != w->done || !w->since_ns)
		*w = (struct ip_watch){ .done = done, .since_ns = busy ? now : 0 };
	return busy ? now - w->since_ns : 0;
}

/* One queue of a UDMA host engine. */
struct ip_lane {
	unsigned int engine, queue, vector;
	uint32_t base; /* registers of the engine in the BAR */
	pthread_mutex_t push;
	TAILQ_ENTRY(ip_lane) waiting;
	bool ready; /* on the ready list */

	void *arena;
	uint64_t iova;
	uint64_t addr; /* arena as the device sees it */
	struct udma_desc *tx, *rx;
	uint32_t *markers; /* one a batch, written by the device */
	uint32_t tail, ring_id; /* under push */
	uint32_t used; /* descriptors in the rings */
	uint32_t batch_head, batch_tail;
	struct ip_batch batch[IP_LANE_BATCHES];
	struct ip_copies copies; /* not wholly in the rings yet */
	uint64_t load; /* bytes given to this lane and not done */
	struct ip_watch watch;
};

TAILQ_HEAD(ip_ctxs, ip_ctx);
TAILQ_HEAD(ip_lanes, ip_lane);

struct nm_inproc {
	struct nm_inproc_config config;
	const struct nm_chip *chip;
	struct nm_device *dev;
	unsigned int apb_bar;
	struct nm_inproc_facts facts;
	uint8_t *hbm; /* DRAM BAR */
	uint64_t stack_bytes;

	pthread_mutex_t lock;
	pthread_cond_t changed; /* a wanted point, room in a queue, or work */
	pthread_cond_t work; /* for the worker */
	unsigned int spinners; /* threads that look at a point, and for work */
	_Atomic bool work_left; /* for spinners: the ready lists are not empty */
	unsigned int waiters; /* threads asleep on changed */
	pthread_t worker;
	bool worker_started, stop;
	bool worker_asleep; /* without a time limit */
	unsigned int flying; /* launches and copies not done */
	bool broken; /* a copy was lost: nothing is taken any more */
	bool advanced; /* a timeline moved since the blocked lists were looked at */

	struct ip_table bos, syncs, programs, ctxs;
	struct ip_stack stack[NM_STACKS];
	uint64_t hbm_bytes, hbm_used, host_used;
	struct ip_bo *dead_bos; /* host bos to unmap, which needs the lock dropped */
	uint64_t next_iova;
	uint64_t next_program_id;
	uint64_t last_ns; /* latest device time seen */

	struct ip_ctxs all_ctxs, blocked_ctxs, ready_ctxs;
	uint64_t queues_used[NM_CORES]; /* bit q */
	uint32_t core_done[NM_CORES]; /* launches, counts up */
	struct ip_watch core_watch[NM_CORES];

	struct ip_lane lane[IP_LANES];
	unsigned int lanes; /* of them in use: one a core of the chip */
	struct ip_lanes ready_lanes;
	struct ip_copies blocked_copies, free_copies;
};

/* --- inproc.c ------------------------------------------------------------------------ */

void ip_log(struct nm_inproc *ip, int level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
uint64_t ip_now_ns(void);
uint32_t ip_exi_read(struct nm_inproc *ip, uint32_t offset);
void ip_exi_write(struct nm_inproc *ip, uint32_t offset, uint32_t value);

/* Id, or 0 when memory is short. */
uint32_t ip_table_add(struct ip_table *t, void *item);
void *ip_table_get(const struct ip_table *t, uint32_t id);
void *ip_table_take(struct ip_table *t, uint32_t id);

/* Zeroed memory that the device reaches at chip->host | *iova. Without the lock. */
void *ip_dma_alloc(struct nm_inproc *ip, uint64_t size, uint64_t *iova);
void ip_dma_free(struct nm_inproc *ip, void *ptr, uint64_t size, uint64_t iova);

/* Before the lock is dropped after something changed: moves what is no longer blocked to the
 * ready lists and wakes who does it. */
void ip_kick(struct nm_inproc *ip);
/* One more launch or copy is in flight: it is to be watched. */
void ip_fly(struct nm_inproc *ip);
/* Does what is on the ready lists. Called without the lock; false: there was nothing. */
bool ip_run_work(struct nm_inproc *ip);
/* Before the lock is dropped by a thread that would have done work: somebody else does it. */
void ip_hand_over(struct nm_inproc *ip);
/* Sleeps on changed, or works. The lock is held, and dropped meanwhile. 0 or -ETIME. */
int ip_wait(struct nm_inproc *ip, int64_t deadline_ns);

/* --- inproc_mem.c ---------------------------------------------------------------------- */

int ip_hbm_init(struct nm_inproc *ip);
void ip_hbm_fini(struct nm_inproc *ip);
/* HBM bo with one reference, NULL when there is no room (ENOSPC) or host memory. */
struct ip_bo *ip_hbm_alloc(struct nm_inproc *ip, uint64_t size);
void ip_bo_put(struct nm_inproc *ip, struct ip_bo *bo);
/* Unmaps host bos that nobody uses. Without the lock; false: there was none. */
bool ip_bo_reap(struct nm_inproc *ip);

/* --- inproc_sync.c --------------------------------------------------------------------- */

void ip_sync_put(struct ip_sync *sync);
/* Looks up and checks all fences and takes references; nothing is held if it fails. */
int ip_deps_init(struct nm_inproc *ip, struct ip_deps *deps, const struct nm_inproc_sync *in,
		 uint32_t n_in, const struct nm_inproc_sync *out, uint32_t n_out);
/* Have all in fences signalled? Forgets those that have. */
bool ip_deps_ready(struct ip_deps *deps);
/* Lane in whose order all in fences will have signalled before what is given to it next, or -1. */
int ip_deps_lane(const struct ip_deps *deps);
/* The out fences are signalled by what a lane does next. */
void ip_deps_set_lane(struct ip_deps *deps, int lane);
void ip_deps_signal(struct nm_inproc *ip, struct ip_deps *deps, uint64_t time_ns);

/* --- inproc_ctx.c ------------------------------------------------------------------------ */

void ip_program_put(struct nm_inproc *ip, struct ip_program *program);
bool ip_ctx_head_ready(struct ip_ctx *ctx);
/* Rings the doorbell for all launches that may go. Without the lock. */
void ip_ctx_ring(struct nm_inproc *ip, struct ip_ctx *ctx);
void ip_ctx_put(struct ip_ctx *ctx); /* with or without the lock */
/* Takes completion records. */
void ip_ctx_drain(struct nm_inproc *ip, struct ip_ctx *ctx);
void ip_ctx_watch(struct nm_inproc *ip); /* drops and retakes the lock */
void ip_ctx_free_all(struct nm_inproc *ip);

/* --- inproc_copy.c ------------------------------------------------------------------------ */

int ip_lanes_init(struct nm_inproc *ip);
void ip_lanes_fini(struct nm_inproc *ip);
/* Gives a copy whose fences have signalled to a lane. */
void ip_copy_assign(struct nm_inproc *ip, struct ip_copy *copy);
void ip_lane_push(struct nm_inproc *ip, struct ip_lane *lane); /* without the lock */
void ip_lane_drain(struct nm_inproc *ip, struct ip_lane *lane);
void ip_lane_watch(struct nm_inproc *ip); /* drops and retakes the lock */

#endif /* NM_INPROC_PRIV_H */
