// SPDX-License-Identifier: Apache-2.0
/*
 * Device addresses: HBM, host memory through the host window, SBUF of the cores, registers, and the
 * same of neighbours but their host memory. Host memory is what the front end mapped; map_lock is held
 * for reading while a pointer into it is in use, so nm_dma_unmap() returns only when no transfer
 * touches the range. In the same way the server's lock keeps neighbours; it is taken after map_lock,
 * and stays when that is dropped.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"

#define BOUNCE_BYTES 4096

enum target_kind { TARGET_MEMORY, TARGET_REMOTE, TARGET_SBUF, TARGET_REGS };

/* What answers at an address, and for how many bytes. */
struct target {
	enum target_kind kind;
	uint8_t *ptr; /* TARGET_MEMORY */
	uint64_t at; /* TARGET_REMOTE: iova; TARGET_SBUF: offset; TARGET_REGS: offset in the BAR */
	struct nm_core *core; /* TARGET_SBUF */
	struct nm_device *dev; /* TARGET_REGS, and of HBM; NULL: host memory */
	uint64_t size;
};

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Index of the first map that ends above iova. */
static unsigned int map_index(const struct nm_device *dev, uint64_t iova)
{
	unsigned int lo = 0, hi = dev->n_maps;

	while (lo < hi) {
		unsigned int mid = (lo + hi) / 2;

		if (dev->maps[mid].iova + (dev->maps[mid].size - 1) < iova)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

int nm_dma_map(struct nm_device *dev, uint64_t iova, uint64_t size, void *ptr, unsigned int rights)
{
	struct dma_map *maps;
	unsigned int i;
	int ret = 0;

	if (!size || iova + (size - 1) < iova || (rights & ~(NM_DMA_READ | NM_DMA_WRITE)))
		return -EINVAL;
	if (!ptr && !dev->config.dma)
		return -EINVAL;

	pthread_rwlock_wrlock(&dev->map_lock);
	i = map_index(dev, iova);
	if (i < dev->n_maps && dev->maps[i].iova <= iova + (size - 1)) {
		ret = -EEXIST;
		goto unlock;
	}
	if (dev->n_maps == dev->max_maps) {
		unsigned int max = dev->max_maps ? dev->max_maps * 2 : 16;

		maps = realloc(dev->maps, max * sizeof(*maps));
		if (!maps) {
			ret = -ENOMEM;
			goto unlock;
		}
		dev->maps = maps;
		dev->max_maps = max;
	}
	memmove(&dev->maps[i + 1], &dev->maps[i], (dev->n_maps - i) * sizeof(*dev->maps));
	dev->maps[i] = (struct dma_map){ iova, size, ptr, rights };
	dev->n_maps++;
unlock:
	pthread_rwlock_unlock(&dev->map_lock);
	return ret;
}

int nm_dma_unmap(struct nm_device *dev, uint64_t iova, uint64_t size)
{
	unsigned int i;
	int ret = -ENOENT;

	pthread_rwlock_wrlock(&dev->map_lock);
	i = map_index(dev, iova);
	if (i < dev->n_maps && dev->maps[i].iova == iova && dev->maps[i].size == size) {
		dev->n_maps--;
		memmove(&dev->maps[i], &dev->maps[i + 1], (dev->n_maps - i) * sizeof(*dev->maps));
		ret = 0;
	}
	pthread_rwlock_unlock(&dev->map_lock);
	return ret;
}

static bool find_host(struct nm_device *dev, uint64_t iova, unsigned int right, struct target *t)
{
	unsigned int i = map_index(dev, iova);
	const struct dma_map *map;
	uint64_t at;

	if (nm_armed(dev, NM_ARMED_GONE))
		return false;
	if (!nm_pci_bus_master(dev)) {
		nm_guest_error(dev, GUEST_KEY(GUEST_BUS_MASTER, 0, 0),
			       "access to host memory 0x%llx while PCI command has bus mastering "
			       "off",
			       (unsigned long long)iova);
		return false;
	}
	if (i == dev->n_maps)
		return false;
	map = &dev->maps[i];
	if (map->iova > iova || !(map->rights & right))
		return false;
	at = iova - map->iova;
	t->kind = map->ptr ? TARGET_MEMORY : TARGET_REMOTE;
	t->dev = NULL;
	t->ptr = map->ptr ? map->ptr + at : NULL;
	t->at = iova;
	t->size = map->size - at;
	return true;
}

/* Transfers may write few registers: others could make the thread that moves data wait for itself. */
static bool find_registers(struct nm_device *dev, uint64_t addr, unsigned int right,
			   struct target *t)
{
	for (const struct nm_apb_part *part = dev->chip->parts; part->size; part++) {
		const uint64_t at = part->offset + (addr - part->addr);
		struct block *b;

		if (addr - part->addr >= part->size)
			continue;
		b = nm_device_block(dev, dev->apb_bar, at);
		if (!b)
			return false;
		t->kind = TARGET_REGS;
		t->dev = dev;
		t->at = at;
		t->size = b->base + b->size - at;
		return right == NM_DMA_READ || b->dma_writes || b == dev->misc_ram;
	}
	return false;
}

/* What the device itself has. */
static bool find_own(struct nm_device *dev, uint64_t addr, unsigned int right, struct target *t)
{
	for (unsigned int n = 0; n < dev->chip->stacks; n++) {
		uint64_t at = addr - dev->chip->hbm(n);

		if (at < dev->config.hbm_bytes) {
			t->kind = TARGET_MEMORY;
			t->dev = dev;
			t->ptr = dev->hbm + n * dev->dram_dist + at;
			t->size = dev->config.hbm_bytes - at;
			return true;
		}
	}
	for (unsigned int c = 0; c < dev->config.cores; c++) {
		uint64_t at = addr - dev->chip->tpb(c);

		if (at < V3_TPB_SBUF_BYTES) {
			t->kind = TARGET_SBUF;
			t->core = dev->core[c];
			t->at = at;
			t->size = V3_TPB_SBUF_BYTES - at;
			return true;
		}
	}
	return find_registers(dev, addr, right, t);
}

/* Caller holds the bus. The target may answer for fewer bytes than wanted. */
static bool find_target(struct nm_device *dev, uint64_t addr, unsigned int right, struct target *t)
{
	const struct nm_chip *chip = dev->chip;
	const uint64_t link = (addr - chip->neighbour) / chip->neighbour_dist;
	struct nm_device *peer;

	if (addr - chip->host < chip->host_span)
		return find_host(dev, addr - chip->host, right, t);
	if (addr < chip->neighbour || link >= NEURON_LINKS)
		return find_own(dev, addr, right, t);
	peer = nm_server_neighbour(dev, (unsigned int)link);
	return peer && find_own(peer, (addr - chip->neighbour) % chip->neighbour_dist, right, t);
}

static void bus_lock(struct nm_device *dev)
{
	pthread_rwlock_rdlock(&dev->map_lock);
	nm_server_lock(dev);
}

static void bus_unlock(struct nm_device *dev)
{
	nm_server_unlock(dev);
	pthread_rwlock_unlock(&dev->map_lock);
}

static bool answers(struct nm_device *dev, uint64_t addr, uint64_t size, unsigned int right)
{
	struct target t;

	while (size) {
		if (!find_target(dev, addr, right, &t))
			return false;
		t.size = least(t.size, size);
		addr += t.size;
		size -= t.size;
	}
	return true;
}

/*
 * Memory that the host may be polling: a small aligned store is one store, and everything stored
 * before it is seen first.
 */
static void store(void *dst, const void *src, size_t size)
{
	uint64_t v = 0;

	if ((size != 1 && size != 4 && size != 8) || (uintptr_t)dst % size) {
		memmove(dst, src, size);
		return;
	}
	memcpy(&v, src, size);
	if (size == 1)
		__atomic_store_n((uint8_t *)dst, (uint8_t)v, __ATOMIC_RELEASE);
	else if (size == 4)
		__atomic_store_n((uint32_t *)dst, (uint32_t)v, __ATOMIC_RELEASE);
	else
		__atomic_store_n((uint64_t *)dst, v, __ATOMIC_RELEASE);
}

static int move_registers(const struct target *t, void *buf, size_t size, bool write)
{
	uint32_t value;

	if (t->at % sizeof(value) || size % sizeof(value))
		return -EFAULT;
	for (size_t i = 0; i < size; i += sizeof(value)) {
		uint8_t *at = (uint8_t *)buf + i;

		memcpy(&value, at, sizeof(value));
		if (write)
			nm_apb_write(t->dev, t->at + i, value);
		else
			value = nm_apb_read(t->dev, t->at + i);
		memcpy(at, &value, sizeof(value));
	}
	return 0;
}

/* One stretch of a transfer; drops map_lock around calls that leave the device or take its lock. */
static int move(struct nm_device *dev, const struct target *t, void *buf, size_t size, bool write)
{
	int ret = 0;

	switch (t->kind) {
	case TARGET_MEMORY:
		if (write) {
			store(t->ptr, buf, size);
			if (t->dev)
				nm_hbm_wrote(t->dev, t->ptr, size);
		} else {
			memcpy(buf, t->ptr, size);
		}
		break;
	case TARGET_REMOTE:
		pthread_rwlock_unlock(&dev->map_lock);
		ret = dev->config.dma(dev->config.user, t->at, buf, size, write) ? -EFAULT : 0;
		pthread_rwlock_rdlock(&dev->map_lock);
		break;
	case TARGET_REGS:
		pthread_rwlock_unlock(&dev->map_lock);
		ret = move_registers(t, buf, size, write);
		pthread_rwlock_rdlock(&dev->map_lock);
		break;
	case TARGET_SBUF:
		ret = write ? nm_core_sbuf_write(t->core, t->at, buf, size) :
			      nm_core_sbuf_read(t->core, t->at, buf, size);
		break;
	}
	return ret;
}

static int transfer(struct nm_device *dev, uint64_t addr, void *buf, size_t size, bool write)
{
	const unsigned int right = write ? NM_DMA_WRITE : NM_DMA_READ;
	uint8_t *at = buf;
	struct target t;
	int ret = 0;

	bus_lock(dev);
	if (!answers(dev, addr, size, right))
		ret = -EFAULT;
	while (!ret && size) {
		size_t n;

		if (!find_target(dev, addr, right, &t)) {
			ret = -EFAULT; /* unmapped meanwhile */
			break;
		}
		n = least(t.size, size);
		ret = move(dev, &t, at, n, write);
		addr += n;
		at += n;
		size -= n;
	}
	bus_unlock(dev);
	return ret;
}

int nm_bus_read(struct nm_device *dev, uint64_t addr, void *buf, size_t size)
{
	return transfer(dev, addr, buf, size, false);
}

int nm_bus_write(struct nm_device *dev, uint64_t addr, const void *buf, size_t size)
{
	return transfer(dev, addr, (void *)buf, size, true);
}

static int copy_bounced(struct nm_device *dev, uint64_t dst, uint64_t src, size_t size,
			enum half *failed)
{
	uint8_t buf[BOUNCE_BYTES];

	while (size) {
		size_t n = least(size, sizeof(buf));

		*failed = M2S;
		if (nm_bus_read(dev, src, buf, n))
			return -EFAULT;
		*failed = S2M;
		if (nm_bus_write(dev, dst, buf, n))
			return -EFAULT;
		src += n;
		dst += n;
		size -= n;
	}
	return 0;
}

int nm_bus_copy(struct nm_device *dev, uint64_t dst, uint64_t src, size_t size, enum half *failed)
{
	struct target s, d;
	int ret = -EFAULT;
	bool direct;

	bus_lock(dev);
	*failed = M2S;
	if (!answers(dev, src, size, NM_DMA_READ))
		goto unlock;
	*failed = S2M;
	if (!answers(dev, dst, size, NM_DMA_WRITE))
		goto unlock;
	ret = 0;
	direct = size && find_target(dev, src, NM_DMA_READ, &s) && s.kind == TARGET_MEMORY &&
		 s.size >= size && find_target(dev, dst, NM_DMA_WRITE, &d) &&
		 d.kind == TARGET_MEMORY && d.size >= size;
	if (direct) {
		store(d.ptr, s.ptr, size);
		if (d.dev)
			nm_hbm_wrote(d.dev, d.ptr, size);
	}
	bus_unlock(dev);
	return direct ? 0 : copy_bounced(dev, dst, src, size, failed);
unlock:
	bus_unlock(dev);
	return ret;
}
