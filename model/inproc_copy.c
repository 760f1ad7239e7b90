// SPDX-License-Identifier: Apache-2.0
/*
 * Copies by the host engines' UDMA queues. A copy becomes descriptors of up to
 * 64 KiB, in batches; each batch ends with a descriptor that copies a marker to
 * host memory behind the data and raises the queue's interrupt.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "inproc_priv.h"

#define RING_BYTES   (IP_LANE_RING * sizeof(struct udma_desc))
#define MARKER_BYTES 256u
#define MARKER_SRC   (2 * RING_BYTES)
#define MARKERS	     (MARKER_SRC + MARKER_BYTES)
#define ARENA_BYTES  (MARKERS + IP_LANE_BATCHES * sizeof(uint32_t))

static void apb_write(struct nm_inproc *ip, uint32_t offset, uint32_t value)
{
	nm_bar_write(ip->dev, ip->apb_bar, offset, 4, value);
}

static uint32_t half_reg(const struct ip_lane *lane, uint32_t half, uint32_t reg)
{
	return lane->base + half + UDMA_Q(lane->queue) + reg;
}

/* --- start-up, in the order of the public driver ------------------------------------------- */

static void engine_start(struct nm_inproc *ip, unsigned int engine)
{
	const uint32_t base = (uint32_t)ip->chip->bar_udma(engine);
	const uint32_t wrapper = (uint32_t)ip->chip->bar_sdma(engine);

	apb_write(ip, wrapper + SDMA_ROB_CFG, 1);
	apb_write(ip, wrapper + SDMA_WOB_CFG, 1);
	apb_write(ip, wrapper + SDMA_EVENT_ACCEL, 1);
	if (ip->chip->arch != NEURON_ARCH_V2)
		apb_write(ip, wrapper + SDMA_BEATS, SDMA_BEATS_START);
	for (uint32_t half = UDMA_M2S; half <= UDMA_S2M; half += UDMA_S2M - UDMA_M2S) {
		apb_write(ip, base + half + UDMA_PREF_CFG_2,
			  HW_SET(UDMA_PREF_MAX_DESCS, V3_DESCS_PER_PACKET));
		apb_write(ip, base + half + UDMA_AXI_DESC_RD_CFG_3,
			  HW_SET(UDMA_AXI_DESC_RD_MAX_BURST, 8u));
	}
	apb_write(ip, base + UDMA_M2S + UDMA_M2S_CFG_LEN,
		  UDMA_M2S_CFG_LEN_MAX | UDMA_M2S_CFG_LEN_64K);
	apb_write(ip, base + UDMA_M2S + UDMA_CHANGE_STATE, UDMA_CHANGE_NORMAL);
	apb_write(ip, base + UDMA_S2M + UDMA_CHANGE_STATE, UDMA_CHANGE_NORMAL);
}

static void half_start(struct nm_inproc *ip, struct ip_lane *lane, uint32_t half, uint64_t ring)
{
	const uint32_t sw = half == UDMA_M2S ? UDMA_M2S_Q_SW_CTRL : UDMA_S2M_Q_SW_CTRL;
	const uint32_t comp = half == UDMA_M2S ? UDMA_M2S_Q_COMP_CFG : UDMA_S2M_Q_COMP_CFG;

	apb_write(ip, half_reg(lane, half, sw), UDMA_Q_SW_CTRL_RESET);
	apb_write(ip, half_reg(lane, half, UDMA_Q_BASE_LO), (uint32_t)ring);
	apb_write(ip, half_reg(lane, half, UDMA_Q_BASE_HI), (uint32_t)(ring >> 32));
	apb_write(ip, half_reg(lane, half, UDMA_Q_LEN), IP_LANE_RING);
	apb_write(ip, half_reg(lane, half, comp), 0);
	if (half == UDMA_M2S)
		apb_write(ip, half_reg(lane, half, UDMA_M2S_Q_RLIMIT_MASK),
			  UDMA_M2S_Q_RLIMIT_RESET & ~UDMA_M2S_Q_RLIMIT_NO_DMB);
	apb_write(ip, half_reg(lane, half, UDMA_Q_CFG),
		  UDMA_Q_CFG_RESET | UDMA_Q_CFG_PREFETCH | UDMA_Q_CFG_SCHEDULE);
}

static void queue_start(struct nm_inproc *ip, struct ip_lane *lane)
{
	const uint32_t base = lane->base;
	const uint64_t arena = ip->chip->host | lane->iova;

	apb_write(ip, base + UDMA_GEN_EX + UDMA_GEN_EX_TX_SEL(lane->queue), UINT32_MAX);
	for (unsigned int i = 0; i < 3; i++)
		apb_write(ip, base + UDMA_GEN_EX + UDMA_GEN_EX_RX_SEL(lane->queue, i), UINT32_MAX);
	half_start(ip, lane, UDMA_M2S, arena);
	half_start(ip, lane, UDMA_S2M, arena + RING_BYTES);
	apb_write(ip, base + UDMA_GEN + UDMA_GEN_IOFIC(UDMA_IOFIC_B) + UDMA_IOFIC_MASK_CLEAR,
		  ~(1u << lane->queue));
	ip_exi_write(ip, EXI_UDMA_ROUTE(lane->engine, lane->queue),
		     EXI_VECTOR_ENABLE | lane->vector);
	lane->tail = 0;
	lane->ring_id = UDMA_RING_ID_FIRST;
}

int ip_lanes_init(struct nm_inproc *ip)
{
	const unsigned int hosts = ip->chip->engines - ip->chip->host_engine;

	for (unsigned int e = 0; e < hosts; e++)
		engine_start(ip, ip->chip->host_engine + e);
	for (unsigned int i = 0; i < ip->lanes; i++) {
		struct ip_lane *lane = &ip->lane[i];

		/* As the public driver shares them out: neighbouring cores have one engine. */
		lane->engine = ip->chip->host_engine + i * hosts / ip->lanes;
		lane->queue = i % (ip->lanes / hosts);
		lane->base = (uint32_t)ip->chip->bar_udma(lane->engine);
		lane->vector = IP_CTX_VECTORS + i;
		lane->arena = ip_dma_alloc(ip, ARENA_BYTES, &lane->iova);
		if (!lane->arena)
			return -ENOMEM;
		lane->addr = ip->chip->host | lane->iova;
		lane->tx = lane->arena;
		lane->rx = (struct udma_desc *)((uint8_t *)lane->arena + RING_BYTES);
		lane->markers = (uint32_t *)((uint8_t *)lane->arena + MARKERS);
		*(uint32_t *)((uint8_t *)lane->arena + MARKER_SRC) = UDMA_MARKER;
		queue_start(ip, lane);
	}
	return 0;
}

/* --- completion ------------------------------------------------------------------------------ */

static void copy_done(struct nm_inproc *ip, struct ip_copy *copy)
{
	ip_bo_put(ip, copy->src);
	ip_bo_put(ip, copy->dst);
	ip->flying--;
	ip_deps_signal(ip, &copy->deps, ip->last_ns);
	TAILQ_INSERT_TAIL(&ip->free_copies, copy, list);
}

static void lane_ready(struct nm_inproc *ip, struct ip_lane *lane)
{
	if (lane->ready)
		return;
	lane->ready = true;
	TAILQ_INSERT_TAIL(&ip->ready_lanes, lane, waiting);
}

static void batch_done(struct nm_inproc *ip, struct ip_lane *lane)
{
	struct ip_batch *batch = &lane->batch[lane->batch_head % IP_LANE_BATCHES];

	lane->used -= batch->descs;
	lane->batch_head++;
	if (batch->last) {
		lane->load -= batch->copy->size;
		copy_done(ip, batch->copy);
	}
}

void ip_lane_drain(struct nm_inproc *ip, struct ip_lane *lane)
{
	while (lane->batch_head != lane->batch_tail) {
		uint32_t *marker = &lane->markers[lane->batch_head % IP_LANE_BATCHES];

		if (__atomic_load_n(marker, __ATOMIC_ACQUIRE) != UDMA_MARKER)
			break;
		batch_done(ip, lane);
	}
	if (!TAILQ_EMPTY(&lane->copies))
		lane_ready(ip, lane);
}

/* --- submission -------------------------------------------------------------------------------- */

static uint32_t desc_len(uint64_t bytes)
{
	return (uint32_t)bytes & UDMA_DESC_LEN; /* 64 KiB is 0 */
}

static void put_desc(struct ip_lane *lane, uint64_t src, uint64_t dst, uint64_t bytes, bool barrier,
		     bool marker)
{
	const uint32_t id = HW_SET(UDMA_DESC_RING_ID, lane->ring_id);

	lane->tx[lane->tail] = (struct udma_desc){
		.ctrl = desc_len(bytes) | id | UDMA_DESC_FIRST | UDMA_DESC_LAST |
			(barrier ? UDMA_DESC_DMB : 0),
		.meta = UDMA_META_COPY | (marker ? UDMA_META_WRITE_BARRIER : 0),
		.addr = src,
	};
	lane->rx[lane->tail] = (struct udma_desc){
		.ctrl = desc_len(bytes) | id | (marker ? UDMA_DESC_INT : 0),
		.addr = dst,
	};
	if (++lane->tail == IP_LANE_RING) {
		lane->tail = 0;
		lane->ring_id = (lane->ring_id + 1) & UDMA_RING_ID_MASK;
	}
}

/* Reserves room for the next batch of the lane's first copy. false: nothing to do, or no room. */
static bool next_batch(struct ip_lane *lane, struct ip_batch *batch, uint64_t *src, uint64_t *dst,
		       uint64_t *bytes)
{
	struct ip_copy *copy = TAILQ_FIRST(&lane->copies);
	const uint32_t room = IP_LANE_RING - UDMA_RING_STEP - lane->used;
	uint64_t descs;

	if (!copy || room < 2 || lane->batch_tail - lane->batch_head == IP_LANE_BATCHES)
		return false;
	descs = (copy->size - copy->pushed + UDMA_DESC_LEN_MAX - 1) / UDMA_DESC_LEN_MAX;
	if (descs > IP_LANE_BATCH)
		descs = IP_LANE_BATCH;
	if (descs > room - 1)
		descs = room - 1;
	*bytes = descs * UDMA_DESC_LEN_MAX;
	if (*bytes > copy->size - copy->pushed)
		*bytes = copy->size - copy->pushed;
	*src = copy->src_addr + copy->pushed;
	*dst = copy->dst_addr + copy->pushed;
	copy->pushed += *bytes;
	batch->copy = copy;
	batch->barrier = copy->barrier;
	copy->barrier = false;
	batch->descs = (uint32_t)descs + 1;
	batch->last = copy->pushed == copy->size;
	if (batch->last)
		TAILQ_REMOVE(&lane->copies, copy, list);
	lane->used += batch->descs;
	return true;
}

static void put_batch(struct ip_lane *lane, uint32_t index, uint64_t src, uint64_t dst,
		      uint64_t bytes, bool barrier)
{
	const uint64_t arena = lane->addr;

	while (bytes) {
		const uint64_t n = bytes < UDMA_DESC_LEN_MAX ? bytes : UDMA_DESC_LEN_MAX;

		put_desc(lane, src, dst, n, barrier, false);
		barrier = false;
		src += n;
		dst += n;
		bytes -= n;
	}
	put_desc(lane, arena + MARKER_SRC, arena + MARKERS + index * sizeof(uint32_t),
		 sizeof(uint32_t), true, true);
}

void ip_lane_push(struct nm_inproc *ip, struct ip_lane *lane)
{
	struct ip_batch batch;
	uint64_t src, dst, bytes;
	uint32_t index;

	pthread_mutex_lock(&lane->push);
	for (;;) {
		/* The device's time when a copy is handed over stands for its end, which the
		 * interrupt may not ask for. */
		const uint64_t now = nm_time_ns(ip->dev);

		pthread_mutex_lock(&ip->lock);
		if (now > ip->last_ns)
			ip->last_ns = now;
		if (!next_batch(lane, &batch, &src, &dst, &bytes)) {
			pthread_mutex_unlock(&ip->lock);
			break;
		}
		index = lane->batch_tail++ % IP_LANE_BATCHES;
		lane->batch[index] = batch;
		lane->markers[index] = 0;
		pthread_mutex_unlock(&ip->lock);

		put_batch(lane, index, src, dst, bytes, batch.barrier);
		apb_write(ip, half_reg(lane, UDMA_S2M, UDMA_Q_TAIL_INC), batch.descs);
		apb_write(ip, half_reg(lane, UDMA_M2S, UDMA_Q_TAIL_INC), batch.descs);
	}
	pthread_mutex_unlock(&lane->push);
}

static void assign(struct nm_inproc *ip, struct ip_copy *copy, unsigned int index)
{
	struct ip_lane *lane = &ip->lane[index];

	lane->load += copy->size;
	ip_deps_set_lane(&copy->deps, (int)index);
	TAILQ_INSERT_TAIL(&lane->copies, copy, list);
}

static unsigned int idlest(const struct nm_inproc *ip)
{
	unsigned int best = 0;

	for (unsigned int i = 1; i < ip->lanes; i++) {
		if (ip->lane[i].load < ip->lane[best].load)
			best = i;
	}
	return best;
}

void ip_copy_assign(struct nm_inproc *ip, struct ip_copy *copy)
{
	const unsigned int index = idlest(ip);

	assign(ip, copy, index);
	lane_ready(ip, &ip->lane[index]);
}

/* A free copy, or NULL. */
static struct ip_copy *copy_get(struct nm_inproc *ip)
{
	struct ip_copy *copy = TAILQ_FIRST(&ip->free_copies);

	if (!copy) {
		copy = calloc(1, sizeof(*copy));
		if (!copy)
			return NULL;
		TAILQ_INSERT_HEAD(&ip->free_copies, copy, list);
	}
	TAILQ_REMOVE(&ip->free_copies, copy, list);
	return copy;
}

static bool in_range(const struct ip_bo *bo, uint64_t offset, uint64_t size)
{
	return offset <= bo->size && size <= bo->size - offset;
}

static int check(const struct nm_inproc_copy *c, const struct ip_bo *src, const struct ip_bo *dst)
{
	if (!src || !dst)
		return -ENOENT;
	if (!c->size || !in_range(src, c->src_offset, c->size) ||
	    !in_range(dst, c->dst_offset, c->size))
		return -EINVAL;
	if (src == dst && c->src_offset < c->dst_offset + c->size &&
	    c->dst_offset < c->src_offset + c->size)
		return -EINVAL;
	return 0;
}

/* *lane is set when it is to be pushed. */
static int copy_locked(struct nm_inproc *ip, const struct nm_inproc_copy *c, struct ip_lane **lane)
{
	struct ip_bo *src = ip_table_get(&ip->bos, c->src);
	struct ip_bo *dst = ip_table_get(&ip->bos, c->dst);
	struct ip_copy *copy;
	int index;
	int ret = ip->broken ? -ENODEV : check(c, src, dst);

	if (ret)
		return ret;
	copy = copy_get(ip);
	if (!copy)
		return -ENOMEM;
	ret = ip_deps_init(ip, &copy->deps, c->in, c->n_in, c->out, c->n_out);
	if (ret) {
		TAILQ_INSERT_HEAD(&ip->free_copies, copy, list);
		return ret;
	}
	src->refs++;
	dst->refs++;
	copy->src = src;
	copy->dst = dst;
	copy->src_addr = src->addr + c->src_offset;
	copy->dst_addr = dst->addr + c->dst_offset;
	copy->size = c->size;
	copy->pushed = 0;
	copy->barrier = false;
	ip_fly(ip);
	index = ip_deps_ready(&copy->deps) ? (int)idlest(ip) : ip_deps_lane(&copy->deps);
	if (index < 0) {
		TAILQ_INSERT_TAIL(&ip->blocked_copies, copy, list);
		return 0;
	}
	/* The lane's order stands for what is left of the fences. */
	copy->barrier = copy->deps.n_in;
	assign(ip, copy, (unsigned int)index);
	*lane = &ip->lane[index];
	return 0;
}

int nm_inproc_copy(struct nm_inproc *ip, const struct nm_inproc_copy *c)
{
	struct ip_lane *lane = NULL;
	int ret;

	pthread_mutex_lock(&ip->lock);
	ret = copy_locked(ip, c, &lane);
	pthread_mutex_unlock(&ip->lock);
	if (lane)
		ip_lane_push(ip, lane);
	return ret;
}

/* --- watchdog -------------------------------------------------------------------------------------- */

/* Gives up everything in the lane. push and the lock are held. */
static void lane_fail(struct nm_inproc *ip, struct ip_lane *lane)
{
	struct ip_copy *copy;

	/* A copy only part of which is in the rings ends with its last batch below or here. */
	while (lane->batch_head != lane->batch_tail)
		batch_done(ip, lane);
	while ((copy = TAILQ_FIRST(&lane->copies))) {
		TAILQ_REMOVE(&lane->copies, copy, list);
		lane->load -= copy->size;
		copy_done(ip, copy);
	}
}

void ip_lane_watch(struct nm_inproc *ip)
{
	const uint64_t now = ip_now_ns();

	for (unsigned int i = 0; i < ip->lanes; i++) {
		struct ip_lane *lane = &ip->lane[i];

		ip_lane_drain(ip, lane); /* an interrupt may have been lost */
		if (ip_watch_ns(&lane->watch, lane->batch_head != lane->batch_tail,
				lane->batch_head, now) <= IP_COPY_TIMEOUT_NS)
			continue;
		ip_log(ip, NM_LOG_ERROR, "UDMA engine %u queue %u stands still: device given up",
		       lane->engine, lane->queue);
		/* The copies cannot be told apart from good ones any more. */
		ip->broken = true;
		pthread_mutex_unlock(&ip->lock);
		pthread_mutex_lock(&lane->push);
		queue_start(ip, lane);
		pthread_mutex_lock(&ip->lock);
		lane_fail(ip, lane);
		pthread_mutex_unlock(&lane->push);
	}
}

void ip_lanes_fini(struct nm_inproc *ip)
{
	struct ip_copy *copy;

	for (unsigned int i = 0; i < ip->lanes; i++) {
		struct ip_lane *lane = &ip->lane[i];

		lane_fail(ip, lane);
		ip_dma_free(ip, lane->arena, ARENA_BYTES, lane->iova);
	}
	while ((copy = TAILQ_FIRST(&ip->blocked_copies))) {
		TAILQ_REMOVE(&ip->blocked_copies, copy, list);
		copy_done(ip, copy);
	}
	while ((copy = TAILQ_FIRST(&ip->free_copies))) {
		TAILQ_REMOVE(&ip->free_copies, copy, list);
		free(copy);
	}
}
