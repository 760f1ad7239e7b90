/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of the device half of the model: one context structure, and what each file offers to the
 * others. Rules of the room:
 *
 * - All state hangs off struct nm_device; nothing is global.
 * - Only bars.c knows which block lies where. vfio_user.c and inproc.c alone know who is outside,
 *   and use neuron_model.h like anyone else.
 * - A mistake of the guest is one nm_guest_error(); it never stops the process.
 * - Work that takes time (DMA, mailbox, reset) is done by the device's own thread, so that a
 *   register access never waits for it.
 *
 * Lock order: a core's own lock, then dev->lock, then pci.lock, map_lock, log_lock (leaves).
 * dev->lock is never held across an access to host memory, a call into a core, or a callback of
 * the front end other than log.
 */
#ifndef NM_DEVICE_H
#define NM_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "block.h"
#include "chip.h"
#include "core.h"
#include "mgmt.h"
#include "neuron_mailbox.h"
#include "neuron_model.h"
#include "neuron_notify.h"
#include "neuron_pci.h"
#include "neuron_queue.h"
#include "neuron_topology.h"
#include "neuron_udma.h"

#define NM_CONFIG_BYTES 4096
#define NM_NO_BAR	6u /* BAR of blocks that the function does not show */
#define NM_GUEST_ERRORS 4096 /* different ones that are remembered as already reported */

/* Host memory as the front end mapped it. ptr NULL: reached through config.dma. */
struct dma_map {
	uint64_t iova;
	uint64_t size;
	uint8_t *ptr;
	unsigned int rights;
};

struct pci {
	pthread_mutex_t lock;
	uint8_t config[NM_CONFIG_BYTES];
	uint8_t writable[NM_CONFIG_BYTES];
	uint32_t msix[EXI_MSIX_VECTORS][4]; /* address low, high, data, control */
	uint64_t pending; /* PBA */
	_Atomic bool asleep; /* in D3hot: BARs do not answer */
};

/* Position of one notification queue. Under dev->lock. */
struct nq {
	uint32_t position; /* bytes */
	uint8_t phase;
};

/* One direction of one UDMA queue. Under dev->lock; the device thread works on a copy. */
struct ring {
	uint32_t current; /* next descriptor to complete */
	uint32_t tail;
	uint8_t current_id; /* ring ids (phase) that go with them */
	uint8_t tail_id;
	uint32_t pending; /* descriptors between them */
	uint32_t done; /* bytes of the current descriptor already moved */
	bool started; /* the current descriptor was checked */
	uint32_t packet_bytes;
	uint32_t packet_descs; /* of the packet under way; 0 between packets */
	uint32_t comp_head;
	uint8_t comp_id;
	bool error;
	uint32_t generation; /* counts queue resets: an old copy is not written back */
};

enum half { M2S, S2M, HALVES };

struct udma {
	struct block *block;
	struct block *sdma; /* its wrapper; NULL until that is made */
	struct nq nq[NQ_QUEUES]; /* of the wrapper */
	struct ring ring[HALVES][UDMA_QUEUES];
	uint32_t state[HALVES]; /* UDMA_STATE_IDLE, _NORMAL, _ABORT */
	uint16_t kicked; /* queues that the device thread has to look at */
	uint16_t fresh; /* of them, those that had nothing to do before the doorbell */
	uint64_t time_ps; /* device time until which the engine is occupied */
	uint16_t busy; /* queues that it is working on */
	_Atomic uint16_t stop; /* of them, those that the host resets: leave off soon */
	/* Descriptors of a turn under way whose data the host may have seen: their places in the
	 * ring are free, though ring.pending still counts them. */
	_Atomic uint32_t left[HALVES][UDMA_QUEUES];
};

/* Faults that neuron_model.h lets a test ask for. Under dev->lock but armed, which hot paths look
 * at first. */
#define NM_ARMED_IRQ	 1u
#define NM_ARMED_MAILBOX 2u
#define NM_ARMED_UDMA	 4u
#define NM_ARMED_GONE	 8u
struct inject {
	_Atomic uint32_t armed;
	uint32_t irqs[EXI_MSIX_VECTORS]; /* left to lose or delay */
	uint32_t late_us[EXI_MSIX_VECTORS];
	uint64_t late; /* vectors that will fire at due_ns, CLOCK_MONOTONIC */
	uint64_t due_ns[EXI_MSIX_VECTORS];
	enum nm_mailbox_fault mailbox;
	uint32_t requests;
	uint64_t damaged; /* address of the request that the firmware will read wrongly; 0: none */
	enum nm_udma_fault udma[NM_ENGINES];
	uint32_t turns[NM_ENGINES];
	uint32_t ecc[NM_STACKS + 1]; /* as MBOX_ECC_* */
	uint32_t repair; /* MBOX_HBM_REPAIR_* */
	unsigned int percent; /* of the clocks */
};

struct nm_device {
	struct nm_config config; /* with defaults filled in */
	const struct nm_chip *chip;
	unsigned int apb_bar; /* NM_NO_BAR: none */
	unsigned int exi_bar;
	uint64_t dram_dist; /* from one stack to the next in the DRAM BAR and in hbm */

	int hbm_fd;
	uint8_t *hbm;

	struct nm_report *report; /* NULL: none */

	/* Checking mode. A bit for each byte of hbm that was written; NULL: not looked at. */
	uint8_t *hbm_written;
	_Atomic uint64_t found[32]; /* by bit of NM_CHECK_* */

	struct block *blocks; /* sorted by BAR and base; fixed after creation */
	unsigned int n_blocks;

	pthread_rwlock_t map_lock;
	struct dma_map *maps; /* sorted by iova */
	unsigned int n_maps, max_maps;

	struct pci pci;

	pthread_mutex_t lock;
	pthread_cond_t work; /* something for the device thread */
	pthread_cond_t idle; /* the device thread stopped working */
	pthread_t thread;
	bool thread_started;
	bool stop;
	bool quiesce; /* a reset waits: start nothing new */
	bool busy;
	bool mailbox_triggered;
	bool resetting; /* reset by map under way */
	bool reset_asked;
	uint32_t reset_map;

	struct block *exi; /* features */
	struct block *routes, *misc_ram, *reset_reg;
	struct block *core_nq[NM_CORES], *topsp_nq[NM_TOPSPS];
	struct nq core_nq_state[NM_CORES][NQ_QUEUES], topsp_nq_state[NM_TOPSPS][NQ_QUEUES];
	/* Under lock. Semaphores of cores are in the cores. */
	uint32_t core_event[NM_CORES][NM_EVENTS], topsp_event[NM_TOPSPS][NM_EVENTS];
	uint32_t topsp_sem[NM_TOPSPS][NM_SEMAPHORES];
	struct udma *udma[NM_ENGINES]; /* NULL: engine of an absent core */
	unsigned int udma_next; /* fairness: engine to look at first */

	_Atomic uint64_t irq_todo; /* vectors to fire once dev->lock is dropped */

	_Atomic uint64_t udma_ps; /* device time of the last copy's end */
	_Atomic uint32_t features;
	_Atomic uint32_t time_hi_latch;
	struct nm_core *core[NM_CORES];

	struct inject inject;
	struct nm_mgmt *mgmt;

	pthread_mutex_t log_lock;
	uint64_t reported[NM_GUEST_ERRORS];
	_Atomic uint64_t guest_errors;
};

/* --- device.c ----------------------------------------------------------------- */

void nm_log(struct nm_device *dev, int level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Counts a guest error and reports it unless the same key was reported before. */
void nm_guest_error(struct nm_device *dev, uint64_t key, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Key for an error that is not tied to one address. */
#define GUEST_KEY(kind, a, b) (1ull << 60 | (uint64_t)(kind) << 48 | (uint64_t)(a) << 24 | (b))
enum guest_kind { GUEST_BUS_MASTER, GUEST_UDMA, GUEST_MAILBOX, GUEST_NOTIFY, GUEST_ACCESS };

/* Reset by maps as in MBOX_RESET_MAP and _HI. map 0: everything behind the PCI function. Device
 * thread. */
void nm_device_reset_map(struct nm_device *dev, uint32_t map, uint32_t map_hi);

/* --- bars.c ------------------------------------------------------------------- */

/* 0 or -errno. All blocks there are: what they hang on is made before, and frees them. */
int nm_device_create_blocks(struct nm_device *dev);

/* A register by its offset in the register BAR, whichever that is. */
uint32_t nm_apb_read(struct nm_device *dev, uint64_t offset);
void nm_apb_write(struct nm_device *dev, uint64_t offset, uint32_t value);

/* The block at a BAR offset, NULL if there is none. */
struct block *nm_device_block(struct nm_device *dev, unsigned int bar, uint64_t offset);

/* --- hbm.c -------------------------------------------------------------------- */

int nm_hbm_init(struct nm_device *dev);
void nm_hbm_fini(struct nm_device *dev);
/* Its power went: contents are zero, nobody has written them. */
void nm_hbm_lose(struct nm_device *dev);
/* Memory behind a device address, NULL if [addr, addr + size) is not wholly in one stack. */
void *nm_hbm_at(struct nm_device *dev, uint64_t addr, uint64_t size);

/* Checking mode: memory of the device or of others was written. */
void nm_hbm_note(struct nm_device *dev, const void *ptr, uint64_t size);
static inline void nm_hbm_wrote(struct nm_device *dev, const void *ptr, uint64_t size)
{
	if (__builtin_expect(dev->hbm_written != NULL, 0))
		nm_hbm_note(dev, ptr, size);
}
/* As nm_core_bus.unwritten and .written. */
uint64_t nm_hbm_unwritten(struct nm_device *dev, uint64_t addr, uint64_t size);

/* --- bus.c: device addresses -------------------------------------------------- */

/* 0, or -EFAULT when part of the range does not answer; nothing is moved then. Memory: an aligned
 * write of 1, 4 or 8 bytes is one store, seen after all earlier ones. */
int nm_bus_read(struct nm_device *dev, uint64_t addr, void *buf, size_t size);
int nm_bus_write(struct nm_device *dev, uint64_t addr, const void *buf, size_t size);
/* As a read and a write without a buffer between; *failed is the side that did not answer. */
int nm_bus_copy(struct nm_device *dev, uint64_t dst, uint64_t src, size_t size, enum half *failed);

/* --- server.c ----------------------------------------------------------------- */

/* Takes its place, which says what the device is; 0 or -EINVAL (logged). All of these: nothing to do
 * for a device without a server. */
int nm_server_place(struct nm_device *dev);
/* From then on neighbours reach it, until leave, which waits for those who do. */
void nm_server_join(struct nm_device *dev);
void nm_server_leave(struct nm_device *dev);
/* Keeps neighbours from leaving. Not recursive. */
void nm_server_lock(struct nm_device *dev);
void nm_server_unlock(struct nm_device *dev);
/* Behind a window; NULL: nobody, or not powered on. Locked. */
struct nm_device *nm_server_neighbour(struct nm_device *dev, unsigned int window);
/* Serial number of who belongs there, 0: the window leads nowhere. */
uint64_t nm_server_neighbour_serial(const struct nm_device *dev, unsigned int window);

/* --- pci.c -------------------------------------------------------------------- */

void nm_pci_reset(struct nm_device *dev);
bool nm_pci_bus_master(struct nm_device *dev);
void nm_msix_raise(struct nm_device *dev, unsigned int vector);
/* The same for one that no injected fault may take. */
void nm_msix_deliver(struct nm_device *dev, unsigned int vector);
/* Fires what irq_todo has gathered. Caller holds no lock. */
void nm_irq_flush(struct nm_device *dev);
bool nm_msix_window_read(struct nm_device *dev, struct block *b, uint32_t offset, uint32_t *value);
bool nm_msix_window_write(struct nm_device *dev, struct block *b, uint32_t offset, uint32_t value);

/* --- blocks: fill in b, which has BAR, base, size and index ------------------- */

int nm_exi_init(struct nm_device *dev, struct block *b);
int nm_time_init(struct nm_device *dev, struct block *b);
int nm_features_init(struct nm_device *dev, struct block *b);
int nm_links_init(struct nm_device *dev, struct block *b);
int nm_core_trace_init(struct nm_device *dev, struct block *b);
int nm_routes_init(struct nm_device *dev, struct block *b);
int nm_mailbox_init(struct nm_device *dev, struct block *b);
int nm_reset_init(struct nm_device *dev, struct block *b);
int nm_udma_init(struct nm_device *dev, struct block *b);
int nm_sdma_init(struct nm_device *dev, struct block *b);
int nm_fis_init(struct nm_device *dev, struct block *b);
int nm_core_nq_init(struct nm_device *dev, struct block *b);
int nm_topsp_nq_init(struct nm_device *dev, struct block *b);
int nm_tpb_init(struct nm_device *dev, struct block *b);
int nm_topsp_init(struct nm_device *dev, struct block *b);
int nm_queues_init(struct nm_device *dev, struct block *b);

/* Vector of a route register (EXI_VECTOR_*), or -1 when it is off. */
int nm_route_vector(uint32_t route);

/* Reset of state that is not in a register table. Caller holds dev->lock. */
void nm_udma_reset(struct udma *u);
void nm_mailbox_reset(struct nm_device *dev);

/* Something for nm_mailbox_run() to do. dev->lock held. */
bool nm_mailbox_wanted(const struct nm_device *dev);

/* The management core's accesses to MISC RAM; false: no register there. No lock held. */
bool nm_mailbox_load(struct nm_device *dev, uint32_t offset, uint32_t *value);
bool nm_mailbox_store(struct nm_device *dev, uint32_t offset, uint32_t value);
/* What the host sees of a management core that has just been started. */
void nm_mailbox_not_ready(struct nm_device *dev);

/* Generation of the chip, whose firmware the core runs: NEURON_ARCH_*. */
static inline uint32_t nm_mgmt_arch(const struct nm_device *dev)
{
	return dev->chip->arch;
}

/* Device thread, dev->lock held; drops it while working. nm_udma_run: true if something was done. */
void nm_mailbox_run(struct nm_device *dev);
bool nm_udma_run(struct nm_device *dev);

/* Each appends an entry to queue NQ_INDEX(entry->type, engine) of a core or TopSP, if the host set it
 * up. phase and time are filled in here. Any thread, without dev->lock. */
void nm_notify_post(struct nm_device *dev, unsigned int core, unsigned int engine,
		    struct nq_entry *entry);
void nm_notify_topsp(struct nm_device *dev, unsigned int topsp, unsigned int engine,
		     struct nq_entry *entry);
/* The same for any block with queue registers, the first of which is row first of its table. */
void nm_notify_queue(struct nm_device *dev, struct block *b, unsigned int first, struct nq *queues,
		     unsigned int i, struct nq_entry *entry);
/* Write hook of register first + reg of a queue. dev->lock held. */
void nm_notify_write(struct nm_device *dev, struct block *b, unsigned int first, struct nq *queues,
		     unsigned int reg, unsigned int i, uint32_t value);

/* Events and semaphores of what a reset names. dev->lock held. */
void nm_tpb_reset(struct nm_device *dev, unsigned int core);
void nm_topsp_reset(struct nm_device *dev, unsigned int topsp);

/* A queue of an engine moved descriptors: an entry for its DMA trace, if the host set one up. */
void nm_sdma_trace(struct nm_device *dev, unsigned int engine, unsigned int queue, uint32_t descs,
		   uint64_t bytes);

/* --- inject.c ----------------------------------------------------------------- */

static inline bool nm_armed(struct nm_device *dev, uint32_t fault)
{
	return __builtin_expect(
		atomic_load_explicit(&dev->inject.armed, memory_order_relaxed) & fault, 0);
}

/* Each: only when armed. True: the fault has replaced what the caller was about to do. */
bool nm_inject_takes_irq(struct nm_device *dev, unsigned int vector); /* no lock held */
/* dev->lock held, dropped meanwhile. reset: value of MBOX_RESET; addresses of the messages, unless
 * they are in registers. */
bool nm_inject_takes_request(struct nm_device *dev, uint32_t reset, bool in_registers,
			     uint64_t from, uint64_t to);
/* What the firmware has read from addr: the damaged request, once. No lock held. */
void nm_inject_damage(struct nm_device *dev, uint64_t addr, uint8_t *to, uint32_t bytes);
/* dev->lock held. */
bool nm_inject_takes_turn(struct nm_device *dev, unsigned int engine, enum nm_udma_fault *fault);

/* Device thread, dev->lock held: waits for work, fires interrupts that are due. */
void nm_inject_wait(struct nm_device *dev);
#endif /* NM_DEVICE_H */
