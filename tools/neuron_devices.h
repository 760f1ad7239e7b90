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
#include <sys/types.h>

#define ND_DEVICES_MAX	 64
#define ND_PROCESSES_MAX 4096

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
	uint64_t serial;
	uint64_t hbm_bytes;
	uint64_t hbm_used; /* by all users */
	char driver[32]; /* driver version, as 1.0.0 */
};

/* One open file of a process on a device. */
struct nd_client {
	pid_t pid;
	uint64_t id; /* drm-client-id: the same file shared by several processes has one */
	unsigned int minor; /* of the device */
	char command[256]; /* arguments, with spaces */
	uint64_t core_ns; /* time that its launches ran on cores, all of them together */
	uint64_t copy_ns;
	uint64_t hbm_bytes, host_bytes;
};

/* Fills in at most ND_DEVICES_MAX devices in order of minors; returns how many there are. */
size_t nd_devices(struct nd_device *devices);

/* The same for clients, at most max of them, each id once, in order of pids. */
size_t nd_clients(const struct nd_device *devices, size_t n, struct nd_client *clients, size_t max);

/* Why a device cannot be used and what to do, as one line without its end. */
void nd_why(const struct nd_device *device, char *text, size_t size);

/* Kind of machine and its id as an EC2 instance says; empty elsewhere. */
void nd_instance(char *type, char *id, size_t size);

#endif /* NEURON_DEVICES_H */
