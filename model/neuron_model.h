/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The virtual Trainium: a device as seen from its PCI slot. Both front ends
 * (vfio_user.c, inproc.c) and the tests use it through this header alone.
 *
 * All state hangs off struct nm_device, so a process may hold several.
 * Threading: any function may be called from any thread unless it says
 * otherwise; accesses to one device are serialised inside. Callbacks are made
 * from the device's own threads or from within a BAR access; they must not call
 * back into the same device, except for nm_dma_* look-ups made by the device.
 */
#ifndef NEURON_MODEL_H
#define NEURON_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nm_device;

/* A guest error: the host or a program did what the hardware does not define. */
typedef void (*nm_log_fn)(void *user, int level, const char *text);

#define NM_LOG_ERROR 0 /* the model itself */
#define NM_LOG_GUEST 1 /* mistake of driver or program; each kind is reported */
#define NM_LOG_INFO  2
#define NM_LOG_TRACE 3

/*
 * A server of 1 to 16 devices of one chip, joined by NeuronLink as hw/neuron_topology.h says. A device
 * belongs to it from its creation to its destruction; the server outlives them. Through its neighbour
 * windows each reaches the memories and registers of those next to it that are powered on.
 */
struct nm_server;

/* chip as in nm_config; serial of device 0, those of the others follow (0: a fixed default). NULL: no
 * such chip, or devices not from 1 to 16, or no memory. */
struct nm_server *nm_server_create(const char *chip, unsigned int devices, uint64_t serial);
void nm_server_destroy(struct nm_server *server);
/* Name of its chip. */
const char *nm_server_chip(const struct nm_server *server);

/*
 * Checking mode, nm_config.check: what is looked for in programs, docs/checking.md. A launch in
 * which something is found ends with EXI_FAULT_RACE or one of those behind it.
 */
#define NM_CHECK_RACE	   0x01u /* accesses to the same bytes that nothing orders */
#define NM_CHECK_UNINIT	   0x02u /* reads of SBUF and PSUM that nothing has written */
#define NM_CHECK_HBM	   0x04u /* the same of HBM; not where a front end maps HBM elsewhere */
#define NM_CHECK_SEMAPHORE 0x08u /* deadlock, overflow, ambiguous waits */
#define NM_CHECK_PSUM	   0x10u /* sums in PSUM that are not */
#define NM_CHECK_ALL	   0x1fu
#define NM_CHECK_WARN	   0x20u /* log and count, but let launches succeed */
/* "0", "1", or names separated by commas; -EINVAL. */
int nm_check_parse(const char *text, uint32_t *check);
#define NM_CHECK_WORDS "0, 1 (all), or a list of race, uninit, hbm, semaphore, psum, all, warn"

#define NM_THREADS_MAX 16

struct nm_config {
	/* Place in a server, which then determines chip, serial and device_id. NULL: alone. */
	struct nm_server *server;
	unsigned int number; /* below the server's devices, no two the same */
	const char *chip; /* "trn1", "inf2", "trn2", "trn3"; NULL: trn2 */
	/* The function shows itself as silicon does, with the registers on BAR 0, and so without the
	 * execution interface and interrupts, which are the virtual device's. */
	bool silicon;
	unsigned int cores; /* NeuronCores; 0: as many as the chip has */
	uint64_t hbm_bytes; /* of each stack, power of two >= 64 MiB; 0: 4 GiB */
	uint64_t serial; /* 0: a fixed default */
	unsigned int device_id; /* position in the server, MISC RAM device id */
	uint32_t check; /* NM_CHECK_* */
	/* File for a report of what programs do with the device's time, docs/report.md; of a server's
	 * devices but the first with ".N" behind it. NULL: none. */
	const char *report;
	/* Host threads that share large instructions, that of the core included, up to NM_THREADS_MAX;
	 * 0: as many as there are processors. All devices of a process share one set of them, which the
	 * first one chooses. */
	unsigned int threads;
	int log_level; /* NM_LOG_*, messages above it are dropped */
	nm_log_fn log; /* NULL: stderr */
	void (*irq)(void *user, unsigned int vector); /* MSI-X vector fired, unmasked */
	/* Host memory that was mapped with ptr NULL; 0 or -errno. NULL: none is. */
	int (*dma)(void *user, uint64_t iova, void *buf, size_t size, bool write);
	void *user; /* passed to log, irq and dma */
};

/* Creates a powered-on device. 0, or -EINVAL (message logged), -ENOMEM. */
int nm_device_create(const struct nm_config *config, struct nm_device **dev);

/* Stops its threads, drops all memory. No access may be under way. */
void nm_device_destroy(struct nm_device *dev);

/* As a PCI function-level reset: everything but HBM contents to power-on state.
 * Returns when no engine runs and no DMA is in flight. */
void nm_device_reset(struct nm_device *dev);

/* PCI configuration space, 4 KiB; size 1, 2 or 4, aligned. */
uint32_t nm_config_read(struct nm_device *dev, uint32_t offset, unsigned int size);
void nm_config_write(struct nm_device *dev, uint32_t offset, unsigned int size, uint32_t value);

/* What a driver's probe does to the function, for front ends without one: memory
 * space and bus mastering on, MSI-X on with every vector unmasked. A reset undoes it. */
void nm_enable(struct nm_device *dev);

/* Size of a BAR in bytes, 0 for one that does not exist. */
uint64_t nm_bar_size(struct nm_device *dev, unsigned int bar);

/* Register access; size 4 or 8, aligned. Reads of nothing give all ones. */
uint64_t nm_bar_read(struct nm_device *dev, unsigned int bar, uint64_t offset, unsigned int size);
void nm_bar_write(struct nm_device *dev, unsigned int bar, uint64_t offset, unsigned int size,
		  uint64_t value);

/* The DRAM BAR's memory: fd and mapping of nm_bar_size() bytes. Owned by the device. */
int nm_hbm_fd(struct nm_device *dev);
void *nm_hbm_ptr(struct nm_device *dev);

/*
 * Host memory that the device may reach by bus address, as an IOMMU would map
 * it: [iova, iova + size) is ptr. Ranges do not overlap (-EEXIST). The memory
 * stays valid until unmapped; unmap waits until no transfer uses it (-ENOENT
 * when it is not exactly a mapped range). ptr NULL: each access goes through
 * config.dma. As on any PCI device, nothing of it is reached before the command
 * register has bus mastering on: see nm_enable().
 */
#define NM_DMA_READ  1u /* device may read */
#define NM_DMA_WRITE 2u
int nm_dma_map(struct nm_device *dev, uint64_t iova, uint64_t size, void *ptr, unsigned int rights);
int nm_dma_unmap(struct nm_device *dev, uint64_t iova, uint64_t size);

/* Guest errors since creation, those of a kind already reported included. */
uint64_t nm_guest_errors(struct nm_device *dev);

/* Writes the report, and logs the sums of the checking mode, as they are so far. As destroying does. */
void nm_device_flush(struct nm_device *dev);

/* Findings of the checking mode in all launches since creation; kind: one NM_CHECK_*. */
uint64_t nm_check_found(struct nm_device *dev, uint32_t kind);

/* Checking mode: HBM from offset in nm_hbm_ptr() on was written by other means than the device's, or
 * (!written) has a new owner, to whom it is not initialised. */
void nm_hbm_mark(struct nm_device *dev, uint64_t offset, uint64_t size, bool written);

/* Device time, ns since reset. */
uint64_t nm_time_ns(struct nm_device *dev);

/*
 * Faults, for tests of drivers: the device behaves as one that is broken. Counts are of future
 * events (launches, interrupts, requests, turns of a queue); a new call replaces the count of an
 * earlier one, 0 ends it. Faults outlive a reset, as defects do, except where stated. From any
 * thread but a callback. 0, or -EINVAL when there is no such part.
 */

/* Adds to the error counters that the firmware shows (they stop at 65535). A device reset leaves
 * them. memory: HBM stack, or NM_ECC_SRAM. */
#define NM_ECC_SRAM 4u
int nm_inject_ecc(struct nm_device *dev, unsigned int memory, uint32_t corrected,
		  uint32_t uncorrected);

/* Whether rows of the HBM want repair, as the firmware shows it: MBOX_HBM_REPAIR_*. A reset leaves it;
 * what is pending is repaired when the memory loses its power. */
int nm_inject_repair(struct nm_device *dev, uint32_t state);

/* In the next launches that use the engine (ISA_TENSOR...), its first instruction never completes;
 * stall detection does not help. Abort and reset end such a launch. */
int nm_inject_hang(struct nm_device *dev, unsigned int core, unsigned int engine,
		   uint32_t launches);

/* The next transfers of the core's programs that read a buffer meet an uncorrected error of the HBM:
 * the launch ends with EXI_FAULT_ECC, the stack's counter goes up. */
int nm_inject_poison(struct nm_device *dev, unsigned int core, uint32_t transfers);

/* The next interrupts of a vector come late_us (at most 60 s) of host time later; 0: never. */
int nm_inject_irq(struct nm_device *dev, unsigned int vector, uint32_t late_us, uint32_t count);

enum nm_mailbox_fault {
	NM_MAILBOX_SILENT, /* the trigger is not seen: no answer, no reset either */
	NM_MAILBOX_SEQUENCE, /* the answer has the sequence of another request */
	NM_MAILBOX_GARBAGE, /* right sequence, senseless error code and size */
	NM_MAILBOX_ERROR, /* MBOX_FAILED */
	NM_MAILBOX_CRC, /* a bit of the request flips on its way: no answer, its checksum is wrong */
	NM_MAILBOX_FAULTS,
};
int nm_inject_mailbox(struct nm_device *dev, enum nm_mailbox_fault fault, uint32_t requests);

enum nm_udma_fault {
	NM_UDMA_ERROR, /* a source descriptor fails with a bus error, its queue stops */
	NM_UDMA_STOP, /* the engine goes to the abort state and tells nobody */
	NM_UDMA_CORRUPT, /* completion records have a wrong ring id, markers are not the marker */
	NM_UDMA_FAULTS,
};
/* engine: index of its register block, those between host and device are V3_UDMA_D2H_0 on. */
int nm_inject_udma(struct nm_device *dev, unsigned int engine, enum nm_udma_fault fault,
		   uint32_t turns);

/* gone: registers and configuration read all ones, writes are lost, no DMA to or from the host and
 * no interrupt leaves the device. HBM that the front end has mapped stays readable. !gone: it is
 * back, as after power-on but with the HBM's contents. */
void nm_inject_removal(struct nm_device *dev, bool gone);

/* Clocks of all engines at this percentage (1 to 100), from each core's next launch on. Records
 * and nm_time_ns() show it, and each core posts a throttle notification. */
int nm_inject_throttle(struct nm_device *dev, unsigned int percent);

/* No faults any more; a removed device comes back. ECC counters stay. */
void nm_inject_clear(struct nm_device *dev);

/* What is injected, as words "name=value" in one line. As snprintf(). */
int nm_inject_status(struct nm_device *dev, char *text, size_t size);

#endif /* NEURON_MODEL_H */
