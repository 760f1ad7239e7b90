/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One NeuronCore: its queues, sequencers, engines, SBUF, PSUM and semaphores,
 * with one worker thread. Between device.c (addresses, buses, interrupts) and
 * core.c; nobody else includes it.
 */
#ifndef NM_CORE_H
#define NM_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "neuron_isa.h"
#include "neuron_notify.h"
#include "neuron_pci.h"

struct nm_core;
struct nm_report;

/* Memories of one core; EXI_SBUF_BYTES and EXI_PSUM_BYTES report the same. */
#define NM_SBUF_BYTES	   (192u << 10) /* a partition, that programs may use */
#define NM_SBUF_BYTES_V4   (256u << 10) /* the same of trn3 */
#define NM_SBUF_BYTES_MAX  NM_SBUF_BYTES_V4
#define NM_SBUF_VIEW_PITCH (256u << 10) /* from one partition to the next as BARs show them */
#define NM_PSUM_BYTES	   (ISA_PSUM_BANKS * ISA_PSUM_BANK_BYTES) /* a partition */

/* SBUF bytes of a partition that programs may use, of NEURON_ARCH_*. */
static inline uint32_t nm_sbuf_bytes(uint32_t arch)
{
	return arch == NEURON_ARCH_V4 ? NM_SBUF_BYTES_V4 : NM_SBUF_BYTES;
}

/*
 * What the device gives its cores. The functions may be called from the core's
 * worker thread at any time between create and destroy.
 */
struct nm_core_bus {
	void *dev;
	uint32_t arch; /* as EXI_ARCH: programs of another are refused */
	/* Copy between a device address (HBM or host window) and buf.
	 * 0, or -EFAULT when part of the range does not answer; nothing is moved then. */
	int (*read)(void *dev, uint64_t addr, void *buf, size_t size);
	int (*write)(void *dev, uint64_t addr, const void *buf, size_t size);
	/* Direct pointer to [addr, addr + size) of HBM, NULL if not wholly inside one stack.
	 * Valid as long as the device. */
	void *(*hbm)(void *dev, uint64_t addr, uint64_t size);
	/* Raise an MSI-X vector. All writes before it are visible to the host first. */
	void (*irq)(void *dev, unsigned int vector);
	/* Post a notification to queue NQ_INDEX(entry->type, engine) of the core, if the host
	 * configured it; phase is filled in. */
	void (*notify)(void *dev, unsigned int core, unsigned int engine, struct nq_entry *entry);
	void (*log)(void *dev, int level, const char *text);
	/* EXI_FEATURES as set by the host. */
	uint32_t (*features)(void *dev);

	/* Cores of the device that have a queue enabled; NULL: this one alone. */
	unsigned int (*in_use)(void *dev);
	/* Device time that the host may know of, ps: no launch starts earlier. NULL: none. */
	uint64_t (*now_ps)(void *dev);

	struct nm_report *report; /* report.h; NULL: none */

	/* Checking mode. NM_CHECK_*; 0: off, and the functions are not called. */
	uint32_t check;
	/* First byte of [addr, addr + size) of HBM that nothing has written, as an offset; size: none. */
	uint64_t (*unwritten)(void *dev, uint64_t addr, uint64_t size);
	void (*written)(void *dev, uint64_t addr, uint64_t size);
	/* n more findings of one NM_CHECK_*. */
	void (*found)(void *dev, uint32_t kind, uint64_t n);

	/* An uncorrected error was met at an address of HBM. */
	void (*count_ecc)(void *dev, uint64_t addr);
};

/* 0 or -ENOMEM. bus is copied. index is the core's number in the device. */
int nm_core_create(const struct nm_core_bus *bus, unsigned int index, struct nm_core **core);
void nm_core_destroy(struct nm_core *core);

/* Abort everything, queues to reset values, memories zero. Returns when the worker is idle. */
void nm_core_reset(struct nm_core *core);

/*
 * Registers of the core's queues; offset from EXI_QUEUE(index, 0), 32 bits.
 * Writes do not wait for programs (EXI_Q_ABORT and _RESET wait for the running
 * instruction only, so the caller holds no lock that a bus function takes).
 * An undefined offset reads ~0 and is logged once.
 */
uint32_t nm_core_reg_read(struct nm_core *core, uint32_t offset);
void nm_core_reg_write(struct nm_core *core, uint32_t offset, uint32_t value);

/* SBUF as the APB BAR and device addresses show it: partition * NM_SBUF_VIEW_PITCH + byte.
 * 0, or -EFAULT when part of the range is not in the first nm_sbuf_bytes() of a partition.
 * These and the semaphore calls are served between two instructions of a running program. */
int nm_core_sbuf_read(struct nm_core *core, uint64_t offset, void *buf, size_t size);
int nm_core_sbuf_write(struct nm_core *core, uint64_t offset, const void *buf, size_t size);

/* Semaphores as the APB BAR shows them. */
enum nm_sem_op { NM_SEM_SET, NM_SEM_INC, NM_SEM_DEC };
uint32_t nm_core_sem_read(struct nm_core *core, unsigned int sem);
void nm_core_sem_write(struct nm_core *core, unsigned int sem, enum nm_sem_op op, uint32_t value);

/* Whether any of its queues is enabled. */
bool nm_core_in_use(struct nm_core *core);

/* Device time of this core's clock, ns: end of the last thing it did. */
uint64_t nm_core_time_ns(struct nm_core *core);

/* Faults, see nm_inject_hang(), _poison() and _throttle(); any thread. Values are checked. */
void nm_core_inject_hang(struct nm_core *core, unsigned int engine, uint32_t launches);
uint32_t nm_core_hangs(struct nm_core *core, unsigned int engine);
void nm_core_inject_poison(struct nm_core *core, uint32_t transfers);
uint32_t nm_core_poisoned(struct nm_core *core);
void nm_core_throttle(struct nm_core *core, unsigned int percent);

/* Engines that trace (EXI_CORE_TRACE), from the next launch on; a core reset ends it. Any thread. */
void nm_core_trace(struct nm_core *core, uint32_t engines);
uint32_t nm_core_traced(struct nm_core *core);

#endif /* NM_CORE_H */
