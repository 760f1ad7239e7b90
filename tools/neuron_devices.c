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
#include <unistd.h>

#include <xf86drm.h>

#include "drm/neuron_accel.h"

#define CLASS_DIR "/sys/class/accel"
#define DMI_DIR	  "/sys/devices/virtual/dmi/id"

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

static int query(int fd, uint32_t block, void *to, uint32_t size)
{
	struct drm_neuron_query args = { .block = block, .size = size, .ptr = (uintptr_t)to };

	return drmIoctl(fd, DRM_IOCTL_NEURON_QUERY, &args) ? errno : 0;
}

/* Asks the driver; errno of what failed, or 0. */
static int ask(struct nd_device *d, int fd)
{
	struct drm_neuron_query_device info = { 0 };
	struct drm_neuron_query_memory memory = { 0 };
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
	return 0;
}

static void examine(struct nd_device *d)
{
	char path[64], numa[16];
	int fd;

	read_link(d->bdf, sizeof(d->bdf), d->minor, "device");
	read_attribute(d->cpus, sizeof(d->cpus), d->minor, "local_cpulist");
	read_attribute(numa, sizeof(numa), d->minor, "numa_node");
	d->numa_node = numa[0] ? atoi(numa) : -1;
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

/* A size as drm_print_memory_stats() prints it. */
static uint64_t memory_size(const char *text)
{
	char unit[8] = "";
	uint64_t n = 0;

	if (sscanf(text, "%" SCNu64 " %7s", &n, unit) < 1)
		return 0;
	if (!strcmp(unit, "KiB"))
		return n << 10;
	if (!strcmp(unit, "MiB"))
		return n << 20;
	return n;
}

/* Reads an fdinfo file; whether it is one of our driver. */
static bool read_client(struct nd_client *c, char *pdev, size_t pdev_size, int dir,
			const char *name)
{
	char line[256], driver[32] = "";
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	char *value;

	pdev[0] = 0;
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		value = strchr(line, ':');
		if (!value)
			continue;
		*value++ = 0;
		value += strspn(value, " \t");
		if (!strcmp(line, "drm-driver"))
			snprintf(driver, sizeof(driver), "%s", value);
		else if (!strcmp(line, "drm-pdev"))
			snprintf(pdev, pdev_size, "%s", value);
		else if (!strcmp(line, "drm-client-id"))
			c->id = strtoull(value, NULL, 10);
		else if (!strcmp(line, "drm-engine-core"))
			c->core_ns = strtoull(value, NULL, 10);
		else if (!strcmp(line, "drm-engine-copy"))
			c->copy_ns = strtoull(value, NULL, 10);
		else if (!strcmp(line, "drm-total-hbm"))
			c->hbm_bytes = memory_size(value);
		else if (!strcmp(line, "drm-total-memory"))
			c->host_bytes = memory_size(value);
	}
	if (f)
		fclose(f);
	else if (fd >= 0)
		close(fd);
	return !strcmp(driver, "neuron");
}

static bool is_known(const struct nd_client *clients, size_t n, uint64_t id)
{
	for (size_t i = 0; i < n; i++)
		if (clients[i].id == id)
			return true;
	return false;
}

/* Appends the clients of one process. */
static size_t add_process(const struct nd_device *devices, size_t n_devices,
			  struct nd_client *clients, size_t n, size_t max, pid_t pid)
{
	char path[64], pdev[32];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo", pid);
	dir = opendir(path);
	while (dir && n < max && (entry = readdir(dir))) {
		struct nd_client c = { .pid = pid };

		if (!isdigit((unsigned char)entry->d_name[0]) ||
		    !read_client(&c, pdev, sizeof(pdev), dirfd(dir), entry->d_name) ||
		    is_known(clients, n, c.id))
			continue;
		for (size_t i = 0; i < n_devices; i++) {
			if (strcmp(devices[i].bdf, pdev) != 0)
				continue;
			c.minor = devices[i].minor;
			read_command(c.command, sizeof(c.command), pid);
			clients[n++] = c;
			break;
		}
	}
	if (dir)
		closedir(dir);
	return n;
}

static int by_pid(const void *a, const void *b)
{
	const struct nd_client *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

size_t nd_clients(const struct nd_device *devices, size_t n_devices, struct nd_client *clients,
		  size_t max)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	size_t n = 0;

	while (dir && (entry = readdir(dir)))
		if (isdigit((unsigned char)entry->d_name[0]) && atoi(entry->d_name) != getpid())
			n = add_process(devices, n_devices, clients, n, max, atoi(entry->d_name));
	if (dir)
		closedir(dir);
	qsort(clients, n, sizeof(*clients), by_pid);
	return n;
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
