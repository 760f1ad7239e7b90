// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "neuron_devices.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <xf86drm.h>

#include "drm/neuron_accel.h"

#define CLASS_DIR      "/sys/class/accel"
#define STATISTICS_DIR "/sys/class/neuron_device"
/* Sensors of one kind that are looked for. */
#define DIES_MAX 4
#define DMI_DIR	 "/sys/devices/virtual/dmi/id"

/* First line of a file without its end; empty when it can't be read. */
static void read_line(char *text, size_t size, const char *path)
{
	FILE *f = fopen(path, "re");

	text[0] = 0;
	if (!f)
		return;
	if (!fgets(text, (int)size, f))
		text[0] = 0;
	text[strcspn(text, "\n")] = 0;
	fclose(f);
}

static void read_attribute(char *text, size_t size, unsigned int minor, const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), CLASS_DIR "/accel%u/device/%s", minor, name);
	read_line(text, size, path);
}

/* Last part of where a link of the device points. */
static void read_link(char *text, size_t size, unsigned int minor, const char *name)
{
	char path[PATH_MAX], target[PATH_MAX];
	ssize_t n;

	snprintf(path, sizeof(path), CLASS_DIR "/accel%u/%s", minor, name);
	n = readlink(path, target, sizeof(target) - 1);
	target[n < 0 ? 0 : n] = 0;
	snprintf(text, size, "%s", n < 0 ? "" : basename(target));
}

/* One attribute of a folder as a number. */
static int64_t read_number(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	int64_t number = ND_UNKNOWN;
	char text[32], *end;
	ssize_t n;

	if (fd < 0)
		return ND_UNKNOWN;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return ND_UNKNOWN;
	text[n] = 0;
	errno = 0;
	number = strtoll(text, &end, 10);
	return end == text || errno ? ND_UNKNOWN : number;
}

/* errno, or 0. *size: in, what there is room for; out, how much the driver has. */
static int query_sized(int fd, uint32_t block, uint32_t index, void *to, uint32_t *size)
{
	struct drm_neuron_query args = {
		.block = block, .size = *size, .ptr = (uintptr_t)to, .index = index
	};

	if (drmIoctl(fd, DRM_IOCTL_NEURON_QUERY, &args))
		return errno;
	*size = args.size;
	return 0;
}

static int query(int fd, uint32_t block, void *to, uint32_t size)
{
	return query_sized(fd, block, 0, to, &size);
}

static void ask_core(struct nd_core *c, int fd, uint32_t index)
{
	struct drm_neuron_query_core info = { 0 };
	uint32_t size = sizeof(info);

	/* An older driver has no such block. */
	if (query_sized(fd, DRM_NEURON_QUERY_CORE, index, &info, &size))
		return;
	*c = (struct nd_core){
		.known = true,
		.active_known = size >= offsetof(struct drm_neuron_query_core, active_ns) +
						sizeof(info.active_ns),
		.busy_ns = info.busy_ns,
		.launches = info.launches,
		.faults = info.faults,
		.dma_bytes = info.dma_bytes,
		.active_ns = info.active_ns,
		.queues = info.queues,
		.queues_used = info.queues_used,
	};
	memcpy(c->insts, info.insts, sizeof(c->insts));
	memcpy(c->engine_ns, info.engine_ns, sizeof(c->engine_ns));
}

/* Asks the driver; errno of what failed, or 0. */
static int ask(struct nd_device *d, int fd)
{
	struct drm_neuron_query_device info = { 0 };
	struct drm_neuron_query_memory memory = { 0 };
	struct drm_neuron_query_topology place = { 0 };
	drmVersionPtr version = drmGetVersion(fd);
	int error;

	if (version) {
		snprintf(d->driver, sizeof(d->driver), "%d.%d.%d", version->version_major,
			 version->version_minor, version->version_patchlevel);
		drmFreeVersion(version);
	}
	error = query(fd, DRM_NEURON_QUERY_DEVICE, &info, sizeof(info));
	if (!error)
		error = query(fd, DRM_NEURON_QUERY_MEMORY, &memory, sizeof(memory));
	if (error)
		return error;
	d->arch = info.arch;
	d->revision = info.pci_revision;
	d->cores = info.cores;
	d->serial = info.serial;
	d->hbm_bytes = memory.hbm_bytes;
	d->hbm_used = memory.hbm_used;
	for (uint32_t i = 0; i < d->cores && i < ND_CORES_MAX; i++)
		ask_core(&d->core[i], fd, i);
	/* An older driver does not know. */
	d->has_place = !query(fd, DRM_NEURON_QUERY_TOPOLOGY, &place, sizeof(place));
	d->routing_id = place.routing_id;
	d->cores_joined = place.cores_joined ? place.cores_joined : 1;
	memcpy(d->neighbours, place.neighbour, sizeof(d->neighbours));
	return 0;
}

/* A counter of the tree that AWS's driver has too. */
static int64_t read_statistic(unsigned int minor, const char *name)
{
	int dir = open(STATISTICS_DIR, O_DIRECTORY | O_CLOEXEC);
	char path[64];
	int64_t value;

	if (dir < 0)
		return ND_UNKNOWN;
	snprintf(path, sizeof(path), "neuron%u/stats/hardware/%s", minor, name);
	value = read_number(dir, path);
	close(dir);
	return value;
}

/* Power of all dies and the hottest temperature, from the driver's hwmon device. */
static void read_sensors(struct nd_device *d)
{
	char path[PATH_MAX], name[32];
	struct dirent *entry;
	int64_t value;
	DIR *dir;
	int fd;

	d->power_uw = d->temp_mc = ND_UNKNOWN;
	snprintf(path, sizeof(path), CLASS_DIR "/accel%u/device/hwmon", d->minor);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, "hwmon", 5) != 0)
			continue;
		fd = openat(dirfd(dir), entry->d_name, O_DIRECTORY | O_CLOEXEC);
		for (int i = 1; i <= DIES_MAX; i++) {
			snprintf(name, sizeof(name), "power%d_input", i);
			value = read_number(fd, name);
			if (value != ND_UNKNOWN)
				d->power_uw = value + (d->power_uw == ND_UNKNOWN ? 0 : d->power_uw);
			snprintf(name, sizeof(name), "temp%d_input", i);
			value = read_number(fd, name);
			if (value > d->temp_mc)
				d->temp_mc = value;
		}
		if (fd >= 0)
			close(fd);
		break;
	}
	if (dir)
		closedir(dir);
}

static void examine(struct nd_device *d)
{
	char path[64], numa[16], rdev[32];
	unsigned int major, minor;
	int64_t repairable;
	int fd;

	read_link(d->bdf, sizeof(d->bdf), d->minor, "device");
	read_attribute(d->cpus, sizeof(d->cpus), d->minor, "local_cpulist");
	read_attribute(numa, sizeof(numa), d->minor, "numa_node");
	d->numa_node = numa[0] ? atoi(numa) : -1;
	snprintf(path, sizeof(path), CLASS_DIR "/accel%u/dev", d->minor);
	read_line(rdev, sizeof(rdev), path);
	if (sscanf(rdev, "%u:%u", &major, &minor) == 2)
		d->rdev = makedev(major, minor);
	read_sensors(d);
	d->hbm_errors = read_statistic(d->minor, "mem_ecc_uncorrected");
	/* Those that a pending repair will end are counted apart. */
	repairable = read_statistic(d->minor, "mem_ecc_repairable_uncorrected");
	if (d->hbm_errors != ND_UNKNOWN && repairable != ND_UNKNOWN)
		d->hbm_errors += repairable;
	d->sram_errors = read_statistic(d->minor, "sram_ecc_uncorrected");
	snprintf(path, sizeof(path), "/dev/accel/accel%u", d->minor);
	fd = open(path, O_RDWR | O_CLOEXEC);
	d->error = fd < 0 ? errno : ask(d, fd);
	if (fd >= 0)
		close(fd);
}

static int by_minor(const void *a, const void *b)
{
	const struct nd_device *x = a, *y = b;

	return (x->minor > y->minor) - (x->minor < y->minor);
}

size_t nd_devices(struct nd_device *devices)
{
	DIR *dir = opendir(CLASS_DIR);
	struct dirent *entry;
	uint32_t core = 0;
	size_t n = 0;

	while (dir && n < ND_DEVICES_MAX && (entry = readdir(dir))) {
		struct nd_device d = { .numa_node = -1 };
		char driver[32];

		if (sscanf(entry->d_name, "accel%u", &d.minor) != 1)
			continue;
		read_link(driver, sizeof(driver), d.minor, "device/driver");
		if (!strcmp(driver, "neuron"))
			devices[n++] = d;
	}
	if (dir)
		closedir(dir);
	qsort(devices, n, sizeof(*devices), by_minor);
	for (size_t i = 0; i < n; i++) {
		examine(&devices[i]);
		devices[i].first_core = core;
		core += devices[i].cores;
	}
	return n;
}

/* --- clients ------------------------------------------------------------------------------ */

static void read_command(char *text, size_t size, pid_t pid)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, text, size - 1);
	if (fd >= 0)
		close(fd);
	text[n < 0 ? 0 : n] = 0;
	/* Arguments are apart by a zero; what a terminal would obey is not shown. */
	for (ssize_t i = 0; i + 1 < n; i++)
		if (!isprint((unsigned char)text[i]))
			text[i] = ' ';
}

static bool is_known(const struct nd_client *clients, size_t n, uint64_t id)
{
	for (size_t i = 0; i < n; i++)
		if (clients[i].id == id)
			return true;
	return false;
}

static const struct nd_device *device_of(const struct nd_device *devices, size_t n, dev_t rdev)
{
	for (size_t i = 0; i < n; i++)
		if (devices[i].rdev && devices[i].rdev == rdev)
			return &devices[i];
	return NULL;
}

/* Whether the file is one of the device: its number alone may be that of one now gone. */
static bool read_client(struct nd_client *c, const struct nd_device *d, int dir, const char *name,
			struct nd_programs *programs)
{
	size_t n = programs ? programs->n : 0;
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	char pdev[32];
	bool ours;

	if (!f) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	ours = nd_fdinfo(f, c, pdev, sizeof(pdev), programs) && !strcmp(pdev, d->bdf);
	fclose(f);
	if (!ours && programs)
		programs->n = n;
	return ours;
}

static DIR *open_process(pid_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return opendir(path);
}

/*
 * Device of an open file, or NULL. Only what is called so is asked for its number: asking a file
 * of a network that is gone would take for ever.
 */
static const struct nd_device *device_of_file(const struct nd_device *devices, size_t n, int dir,
					      const char *name)
{
	char target[PATH_MAX];
	ssize_t length = readlinkat(dir, name, target, sizeof(target) - 1);
	struct stat st;

	if (length <= 0)
		return NULL;
	target[length] = 0;
	if (!strstr(target, "accel") || fstatat(dir, name, &st, 0) || !S_ISCHR(st.st_mode))
		return NULL;
	return device_of(devices, n, st.st_rdev);
}

/* Appends the clients of one process. Most have none: their files are only looked at. */
static size_t add_process(const struct nd_device *devices, size_t n_devices,
			  struct nd_client *clients, size_t n, size_t max, pid_t pid,
			  struct nd_programs *programs)
{
	DIR *files = open_process(pid, "fd"), *infos = NULL;
	const struct nd_device *d;
	struct dirent *entry;

	while (files && n < max && (entry = readdir(files))) {
		struct nd_client c = { .pid = pid };
		size_t n_programs = programs ? programs->n : 0;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		d = device_of_file(devices, n_devices, dirfd(files), entry->d_name);
		if (!d)
			continue;
		if (!infos)
			infos = open_process(pid, "fdinfo");
		if (!infos || !read_client(&c, d, dirfd(infos), entry->d_name, programs))
			continue;
		if (is_known(clients, n, c.id)) {
			if (programs)
				programs->n = n_programs;
			continue;
		}
		c.minor = d->minor;
		read_command(c.command, sizeof(c.command), pid);
		clients[n++] = c;
	}
	if (infos)
		closedir(infos);
	if (files)
		closedir(files);
	return n;
}

static int by_pid(const void *a, const void *b)
{
	const struct nd_client *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

size_t nd_clients(const struct nd_device *devices, size_t n_devices, struct nd_client *clients,
		  size_t max, struct nd_programs *programs)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	size_t n = 0;

	if (programs)
		programs->n = 0;
	while (dir && (entry = readdir(dir)))
		if (isdigit((unsigned char)entry->d_name[0]) && atoi(entry->d_name) != getpid())
			n = add_process(devices, n_devices, clients, n, max, atoi(entry->d_name),
					programs);
	if (dir)
		closedir(dir);
	qsort(clients, n, sizeof(*clients), by_pid);
	return n;
}

uint32_t nd_lnc(const struct nd_device *d)
{
	const char *set = getenv("NEURON_LOGICAL_NC_CONFIG");

	if (!set || !*set)
		set = getenv("NEURON_RT_VIRTUAL_CORE_SIZE");
	return set && !strcmp(set, "2") && d->cores_joined == 2 && d->cores % 2 == 0 ? 2 : 1;
}

bool nd_linked(const struct nd_device *a, const struct nd_device *b)
{
	for (int i = 0; a->serial && b->serial && i < ND_LINKS; i++)
		if (a->neighbours[i] == b->serial)
			return true;
	return false;
}

/* --- words -------------------------------------------------------------------------------- */

void nd_why(const struct nd_device *d, char *text, size_t size)
{
	const char *what = d->error == EACCES ? " (is this user in the group 'render'?)" :
			   d->error == ENOTTY ? " (the driver is another or older one)" :
						"";

	snprintf(text, size, "/dev/accel/accel%u can not be used: %s%s", d->minor,
		 strerror(d->error), what);
}

const char *nd_arch_name(uint32_t arch)
{
	static const char *const names[] = { [2] = "trn1/inf2", [3] = "trn2", [4] = "trn3" };

	return arch < sizeof(names) / sizeof(names[0]) && names[arch] ? names[arch] : "?";
}

void nd_instance(char *type, char *id, size_t size)
{
	char vendor[64];

	type[0] = id[0] = 0;
	read_line(vendor, sizeof(vendor), DMI_DIR "/sys_vendor");
	if (strcmp(vendor, "Amazon EC2") != 0)
		return;
	read_line(type, size, DMI_DIR "/product_name");
	read_line(id, size, DMI_DIR "/board_asset_tag");
}

int nd_end_output(const char *tool)
{
	if (!fflush(stdout) && !ferror(stdout))
		return 0;
	fprintf(stderr, "%s: cannot write all of the output: %s\n", tool, strerror(errno));
	return 1;
}
