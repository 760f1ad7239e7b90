/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tools know of the machine's devices, from interfaces that need no privilege: sysfs, the
 * query ioctl, and the fdinfo of those processes that the caller may look into.
 *
 * Rules of the room: a tool reads here and prints; what cannot be found out is absent (empty, -1),
 * never made up; nothing is kept open.
 */
#ifndef NEURON_DEVICES_H
#define NEURON_DEVICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define ND_DEVICES_MAX	 64
#define ND_CORES_MAX	 16
#define ND_ENGINES	 5 /* tensor, vector, scalar, gpsimd, sync */
#define ND_PROCESSES_MAX 4096
#define ND_LINKS	 4
#define ND_PROGRAMS_MAX	 8192
#define ND_UNKNOWN	 INT64_MIN

/* Counters of one core since the driver was bound; they only grow. */
struct nd_core {
	bool known; /* the driver has these */
	bool active_known; /* and active_ns */
	uint64_t busy_ns, launches, faults, dma_bytes, insts[ND_ENGINES]; /* busy: device time */
	uint64_t engine_ns[ND_ENGINES]; /* parts of busy_ns */
	uint64_t active_ns; /* host time */
	uint32_t queues, queues_used;
};

/* One device of ours, whether or not it could be opened. */
struct nd_device {
	unsigned int minor; /* N of /dev/accel/accelN */
	char bdf[32]; /* PCI address */
	char cpus[128]; /* CPUs near it, as 0-3,8 */
	int numa_node; /* -1: none */
	int error; /* errno of opening or asking it; below is then zero */
	uint32_t arch; /* 2 trn1 and inf2, 3 trn2, 4 trn3 */
	uint32_t revision; /* 255: a virtual device */
	uint32_t cores;
	uint32_t first_core; /* of the cores of all devices, in order of minors */
	uint32_t cores_joined; /* by the chip, from each multiple of this on; 1: none */
	uint64_t serial;
	uint64_t hbm_bytes;
	uint64_t hbm_used; /* by all users */
	char driver[32]; /* driver version, as 1.0.0 */
	dev_t rdev; /* its device number; 0: unknown */
	int64_t power_uw, temp_mc; /* microwatts, thousandths of a degree, or ND_UNKNOWN */
	int64_t hbm_errors, sram_errors; /* not corrected, or ND_UNKNOWN */
	struct nd_core core[ND_CORES_MAX];
	bool has_place; /* the driver knows its place in the server: the two below */
	uint32_t routing_id;
	uint64_t neighbours[ND_LINKS]; /* serial numbers, 0: no more */
};

/* One open file of a process on a device. */
struct nd_client {
	pid_t pid;
	uint64_t id; /* drm-client-id: the same file shared by several processes has one */
	unsigned int minor; /* of the device */
	char command[256]; /* arguments, with spaces */
	uint64_t core_ns; /* time that its launches ran on cores, all of them together */
	uint64_t copy_ns;
	uint64_t hbm_bytes, host_bytes; /* where its buffers are now; and its programs */
	uint64_t constant_bytes, code_bytes; /* parts of hbm_bytes */
	uint64_t launches;
	uint64_t ns_of_core[ND_CORES_MAX]; /* parts of core_ns */
	uint32_t programs; /* loaded */
};

/* A loaded program of a client. */
struct nd_program {
	uint64_t client; /* nd_client.id */
	uint32_t id;
	uint64_t bytes; /* of HBM */
	uint64_t launches; /* given to the device */
	char name[72];
};

struct nd_programs {
	size_t n;
	struct nd_program list[ND_PROGRAMS_MAX];
};

/* Fills in at most ND_DEVICES_MAX devices in order of minors; returns how many there are. */
size_t nd_devices(struct nd_device *devices);

/*
 * The same for clients, at most max of them, each id once, in order of pids. Their programs go to
 * programs, if it is not NULL: as many as the driver lists, at most ND_PROGRAMS_MAX.
 */
size_t nd_clients(const struct nd_device *devices, size_t n, struct nd_client *clients, size_t max,
		  struct nd_programs *programs);

/*
 * Reads the text of an fdinfo file into a client and the list of programs; pdev gets the PCI
 * address. False: it is not one of our driver, and nothing was appended.
 */
bool nd_fdinfo(FILE *f, struct nd_client *c, char *pdev, size_t pdev_size,
	       struct nd_programs *programs);

/*
 * Cores of the device that the runtime would count as one, with this environment: those of
 * NEURON_LOGICAL_NC_CONFIG, 1 where that is not set or cannot be.
 */
uint32_t nd_lnc(const struct nd_device *device);

/* Whether NeuronLink joins them. */
bool nd_linked(const struct nd_device *a, const struct nd_device *b);

/* Why a device cannot be used and what to do, as one line without its end. */
void nd_why(const struct nd_device *device, char *text, size_t size);

/* trn1/inf2, trn2, trn3 or ?. */
const char *nd_arch_name(uint32_t arch);

/* Kind of machine and its id as an EC2 instance says; empty elsewhere. */
void nd_instance(char *type, char *id, size_t size);

/* Status for a tool to end with: 0, or 1 if not all of its output could be written, which it says. */
int nd_end_output(const char *tool);

#endif /* NEURON_DEVICES_H */
