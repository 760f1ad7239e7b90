/* SPDX-License-Identifier: Apache-2.0 */
/* A small device with 1 MiB of host memory, and what it told its front end. */
#ifndef NM_TEST_FIXTURE_H
#define NM_TEST_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "neuron_map_v3.h"
#include "neuron_model.h"
#include "neuron_pci.h"
#include "neuron_queue.h"

#define HOST_IOVA  0x100000ull
#define HOST_BYTES 0x100000ull
#define HBM_STACK  (64ull << 20)

struct fixture {
	struct nm_device *dev;
	uint8_t *host;
	_Atomic unsigned int irqs[EXI_MSIX_VECTORS];
	_Atomic unsigned int messages; /* guest errors that were reported */
	char last[512]; /* text of the latest one */
};

static inline void fixture_irq(void *user, unsigned int vector)
{
	struct fixture *f = user;

	f->irqs[vector]++;
}

static inline void fixture_log(void *user, int level, const char *text)
{
	struct fixture *f = user;

	if (level != NM_LOG_GUEST)
		return;
	strncpy(f->last, text, sizeof(f->last) - 1);
	f->messages++;
}

/* A device as config says, but for its memory and who hears of it. */
static inline struct fixture *fixture_create(struct nm_config config)
{
	struct fixture *f = calloc(1, sizeof(*f));

	config.hbm_bytes = HBM_STACK;
	config.log_level = NM_LOG_GUEST;
	config.log = fixture_log;
	config.irq = fixture_irq;
	config.user = f;
	assert_int_equal(nm_device_create(&config, &f->dev), 0);
	f->host = aligned_alloc(4096, HOST_BYTES);
	memset(f->host, 0, HOST_BYTES);
	assert_int_equal(
		nm_dma_map(f->dev, HOST_IOVA, HOST_BYTES, f->host, NM_DMA_READ | NM_DMA_WRITE), 0);
	nm_enable(f->dev);
	return f;
}

static inline int fixture_setup(void **state)
{
	*state = fixture_create(
		(struct nm_config){ .cores = 2, .serial = 0x1122334455667788, .device_id = 7 });
	return 0;
}

static inline int fixture_teardown(void **state)
{
	struct fixture *f = *state;

	nm_device_destroy(f->dev);
	free(f->host);
	free(f);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

/* Waits up to five seconds for a condition that another thread brings about. */
#define wait_for(cond)                                                       \
	do {                                                                 \
		const struct timespec tick = { 0, 100000 };                  \
		bool met_ = false;                                           \
		for (int left_ = 50000; left_ && !met_; left_--) {           \
			met_ = (cond);                                       \
			if (!met_)                                           \
				nanosleep(&tick, NULL);                      \
		}                                                            \
		if (!met_)                                                   \
			fail_msg("did not come true within 5 s: %s", #cond); \
	} while (0)

static inline uint32_t apb_read(struct fixture *f, uint64_t offset)
{
	return (uint32_t)nm_bar_read(f->dev, V3_BAR_APB_QEMU, offset, 4);
}

static inline void apb_write(struct fixture *f, uint64_t offset, uint32_t value)
{
	nm_bar_write(f->dev, V3_BAR_APB_QEMU, offset, 4, value);
}

/* Device address of a byte of the fixture's host memory, and of stack n of HBM. */
static inline uint64_t host_addr(uint64_t at)
{
	return V3_DEV_HOST + HOST_IOVA + at;
}

static inline uint64_t hbm_addr(unsigned int n, uint64_t at)
{
	return V3_DEV_HBM(n) + at;
}

static inline uint8_t *hbm_at(struct fixture *f, unsigned int n, uint64_t at)
{
	return (uint8_t *)nm_hbm_ptr(f->dev) + n * HBM_STACK + at;
}

#endif /* NM_TEST_FIXTURE_H */
