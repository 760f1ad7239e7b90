// SPDX-License-Identifier: Apache-2.0
/*
 * HBM: one sparse memory file, laid out as the DRAM BAR shows it. Host memory is used only for what
 * the guest has touched.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bits.h"
#include "device.h"

int nm_hbm_init(struct nm_device *dev)
{
	uint64_t size = dev->dram_dist * dev->chip->stacks;

	dev->hbm_fd = memfd_create("neuron-hbm", MFD_CLOEXEC);
	if (dev->hbm_fd < 0)
		return -errno;
	if (ftruncate(dev->hbm_fd, (off_t)size))
		return -errno;
	dev->hbm = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, dev->hbm_fd,
			0);
	if (dev->hbm == MAP_FAILED) {
		dev->hbm = NULL;
		return -errno;
	}
	/* Fewer page faults where the host allows it; no harm where it does not. */
	madvise(dev->hbm, size, MADV_HUGEPAGE);
	if (!(dev->config.check & NM_CHECK_HBM))
		return 0;
	dev->hbm_written = mmap(NULL, size / 8, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (dev->hbm_written == MAP_FAILED) {
		dev->hbm_written = NULL;
		return -errno;
	}
	return 0;
}

void nm_hbm_fini(struct nm_device *dev)
{
	if (dev->hbm)
		munmap(dev->hbm, dev->dram_dist * dev->chip->stacks);
	if (dev->hbm_written)
		munmap(dev->hbm_written, dev->dram_dist * dev->chip->stacks / 8);
	if (dev->hbm_fd >= 0)
		close(dev->hbm_fd);
}

void nm_hbm_lose(struct nm_device *dev)
{
	uint64_t size = dev->dram_dist * dev->chip->stacks;

	if (fallocate(dev->hbm_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)size))
		nm_log(dev, NM_LOG_ERROR, "HBM keeps its contents: %s", strerror(errno));
	nm_hbm_mark(dev, 0, size, false);
	/* As it comes back it uses spare rows for the bad ones. */
	pthread_mutex_lock(&dev->lock);
	if (dev->inject.repair == MBOX_HBM_REPAIR_PENDING)
		dev->inject.repair = MBOX_HBM_REPAIR_NONE;
	pthread_mutex_unlock(&dev->lock);
}

void *nm_hbm_at(struct nm_device *dev, uint64_t addr, uint64_t size)
{
	uint64_t stack_bytes = dev->config.hbm_bytes;

	for (unsigned int n = 0; n < dev->chip->stacks; n++) {
		uint64_t at = addr - dev->chip->hbm(n);

		if (at < stack_bytes)
			return size <= stack_bytes - at ? dev->hbm + n * dev->dram_dist + at : NULL;
	}
	return NULL;
}

int nm_hbm_fd(struct nm_device *dev)
{
	return dev->hbm_fd;
}

void *nm_hbm_ptr(struct nm_device *dev)
{
	return dev->hbm;
}

/* --- checking mode: what was written ------------------------------------------- */

void nm_hbm_mark(struct nm_device *dev, uint64_t offset, uint64_t size, bool written)
{
	if (dev->hbm_written)
		nm_bits_put(dev->hbm_written, offset, size, written);
}

void nm_hbm_note(struct nm_device *dev, const void *ptr, uint64_t size)
{
	uint64_t at = (uint64_t)((uintptr_t)ptr - (uintptr_t)dev->hbm);

	if (at < dev->dram_dist * dev->chip->stacks)
		nm_hbm_mark(dev, at, size, true);
}

uint64_t nm_hbm_unwritten(struct nm_device *dev, uint64_t addr, uint64_t size)
{
	const uint8_t *p = nm_hbm_at(dev, addr, size);

	if (!p || !dev->hbm_written)
		return size;
	return nm_bits_clear(dev->hbm_written, (uint64_t)(p - dev->hbm), size);
}
