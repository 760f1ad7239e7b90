// SPDX-License-Identifier: Apache-2.0
/*
 * UDMA engines. Registers keep their values in the block's table; the position of each ring is in
 * struct ring. A doorbell marks its queue, and the device thread then takes the queue in turns of
 * at most TURN descriptors: it copies what it needs under dev->lock, moves data without it, and
 * writes the new position back unless the queue was reset meanwhile. The register write that resets
 * a queue returns when nothing of the queue is under way any more.
 *
 * An error stops the queue (UDMA_Q_STATUS_ERROR, until it is reset), sets its cause in the
 * secondary IOFIC and raises the queue's vector; if the cause is not masked in the abort mask, the
 * half goes to state abort. The failing descriptor stays the current one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "timing.h"
#include "udma_priv.h"

#define TURN 64

static const char *const half_name[HALVES] = { "M2S", "S2M" };

/* Of an access that got no answer. */
static const uint32_t bus_causes[HALVES] = {
	UDMA_M2S_CAUSE_DESC_BUS | UDMA_M2S_CAUSE_DATA_BUS | UDMA_M2S_CAUSE_COMP_BUS,
	UDMA_S2M_CAUSE_DESC_BUS | UDMA_S2M_CAUSE_DATA_BUS | UDMA_S2M_CAUSE_COMP_BUS,
};

static uint32_t q_value(struct udma *u, unsigned int reg, enum half h, unsigned int q)
{
	return *block_value(u->block, reg + h, q);
}

/* --- rings -------------------------------------------------------------------- */

static void ring_reset(struct ring *r)
{
	uint32_t generation = r->generation + 1;

	*r = (struct ring){ .current_id = UDMA_RING_ID_FIRST,
			    .tail_id = UDMA_RING_ID_FIRST,
			    .comp_id = UDMA_RING_ID_FIRST,
			    .generation = generation };
}

/* Steps an index and its ring id by n descriptors, n <= len. */
static void step(uint32_t *index, uint8_t *id, uint32_t n, uint32_t len)
{
	*index += n;
	if (*index < len)
		return;
	*index -= len;
	*id = (uint8_t)((*id + 1) & UDMA_RING_ID_MASK);
}

static uint32_t pointer(uint32_t index, uint8_t id)
{
	return HW_SET(UDMA_PTR_INDEX, index) | HW_SET(UDMA_PTR_RING_ID, (uint32_t)id);
}

static bool runnable(struct udma *u, unsigned int q)
{
	const uint32_t on = UDMA_Q_CFG_PREFETCH | UDMA_Q_CFG_SCHEDULE;

	for (enum half h = M2S; h < HALVES; h++)
		if (u->state[h] != UDMA_STATE_NORMAL || u->ring[h][q].error ||
		    !u->ring[h][q].pending || (q_value(u, R_Q_CFG, h, q) & on) != on)
			return false;
	return true;
}

static void kick(struct nm_device *dev, struct udma *u, unsigned int q)
{
	if (!runnable(u, q))
		return;
	u->kicked |= (uint16_t)(1u << q);
	pthread_cond_signal(&dev->work);
}

static void kick_all(struct nm_device *dev, struct udma *u)
{
	for (unsigned int q = 0; q < UDMA_QUEUES; q++)
		kick(dev, u, q);
}

static uint64_t q_base(struct udma *u, enum half h, unsigned int q)
{
	return (uint64_t)q_value(u, R_Q_BASE_HI, h, q) << 32 | q_value(u, R_Q_BASE_LO, h, q);
}

/* What is wrong with the set-up of a ring, NULL if nothing. */
static const char *ring_fault(struct udma *u, enum half h, unsigned int q)
{
	uint32_t len = q_value(u, R_Q_LEN, h, q);

	if (q_base(u, h, q) % UDMA_RING_ALIGN)
		return "base is not a multiple of 256";
	if (len < UDMA_RING_MIN || len > UDMA_RING_MAX || len % UDMA_RING_STEP)
		return "length is not a multiple of 16 from 32 to 2^24 - 16";
	if (u->ring[h][q].current >= len || u->ring[h][q].tail >= len)
		return "length was changed below the pointers";
	return NULL;
}

/* Caller holds dev->lock; the vector fires at the next nm_irq_flush(). */
static void raise_queue(struct nm_device *dev, struct udma *u, unsigned int q)
{
	uint32_t route = *block_value(dev->routes, 0, u->block->index * UDMA_QUEUES + q);
	int vector = nm_route_vector(route);

	if (vector >= 0)
		atomic_fetch_or(&dev->irq_todo, 1ull << vector);
}

/* Caller holds dev->lock. cause is a bit of the half's secondary group, 0 if none fits. */
static void queue_error(struct nm_device *dev, struct udma *u, enum half h, unsigned int q,
			uint32_t cause, const char *text, uint64_t value)
{
	struct ring *r = &u->ring[h][q];

	nm_guest_error(dev,
		       GUEST_KEY(GUEST_UDMA, u->block->index * 64u + q * 2 + h,
				 (uintptr_t)text & 0xffffff),
		       "UDMA engine %u %s queue %u, descriptor %u: %s (0x%llx); queue stopped",
		       u->block->index, half_name[h], q, r->current, text,
		       (unsigned long long)value);
	r->error = true;
	u->kicked &= (uint16_t)~(1u << q);
	*block_value(u->block, R_CAUSE + SECONDARY, h) |= cause;
	*block_value(u->block, R_CAUSE + PRIMARY, UDMA_IOFIC_D) |= h == M2S ? UDMA_IOFIC_D_M2S :
									      UDMA_IOFIC_D_S2M;
	if (cause & bus_causes[h])
		*block_value(u->block, R_AXI_Q_ERROR, q) |= h == M2S ? UDMA_GEN_AXI_Q_ERROR_M2S :
								       UDMA_GEN_AXI_Q_ERROR_S2M;
	if (cause & ~*block_value(u->block, R_ABORT_MASK + SECONDARY, h))
		u->state[h] = UDMA_STATE_ABORT;
	raise_queue(dev, u, q);
}

static void doorbell(struct nm_device *dev, struct udma *u, enum half h, unsigned int q, uint32_t n)
{
	struct ring *r = &u->ring[h][q];
	uint32_t len = q_value(u, R_Q_LEN, h, q);
	const char *fault = ring_fault(u, h, q);

	if (fault) {
		queue_error(dev, u, h, q, 0, fault, len);
		return;
	}
	n &= UDMA_PTR_INDEX;
	if (n > len - (r->pending - atomic_load(&u->left[h][q]))) {
		queue_error(dev, u, h, q, 0, "doorbell for more descriptors than are free", n);
		return;
	}
	step(&r->tail, &r->tail_id, n, len);
	if (h == M2S && !r->pending)
		u->fresh |= (uint16_t)(1u << q);
	r->pending += n;
	kick(dev, u, q);
}

/* --- one turn of a queue ------------------------------------------------------ */

struct failure {
	bool set;
	enum half half;
	uint32_t cause;
	const char *text;
	uint64_t value;
};

/* What the device thread works on without dev->lock. */
struct turn {
	struct nm_device *dev;
	struct ring ring[HALVES]; /* advanced as descriptors complete */
	uint64_t base[HALVES];
	uint32_t len[HALVES];
	uint64_t comp_base[HALVES];
	bool comp_on[HALVES];
	uint32_t comp_bytes;
	bool check_id[HALVES];
	bool zero_is_64k;
	uint32_t max_packet;
	uint32_t max_descs;
	struct udma_desc desc[HALVES][TURN];
	uint32_t n[HALVES]; /* descriptors fetched */
	uint32_t at[HALVES]; /* of them completed */
	uint64_t bytes; /* moved */
	uint64_t *time_ps; /* of the engine */
	bool interrupt[HALVES];
	_Atomic uint32_t *left[HALVES];
	struct failure failure;
	bool corrupt; /* injected */
};

static void fail(struct turn *t, enum half h, uint32_t cause, const char *text, uint64_t value)
{
	t->failure = (struct failure){ true, h, cause, text, value };
}

/* Descriptors up to the end of the ring. */
static bool fetch(struct turn *t, enum half h)
{
	struct ring *r = &t->ring[h];
	uint64_t from = t->base[h] + (uint64_t)r->current * sizeof(struct udma_desc);
	uint32_t n = r->pending < TURN ? r->pending : TURN;

	if (n > t->len[h] - r->current)
		n = t->len[h] - r->current;
	t->n[h] = n;
	if (!nm_bus_read(t->dev, from, t->desc[h], n * sizeof(struct udma_desc)))
		return true;
	fail(t, h, h == M2S ? UDMA_M2S_CAUSE_DESC_BUS : UDMA_S2M_CAUSE_DESC_BUS,
	     "descriptor fetch got no answer", from);
	return false;
}

static uint32_t desc_bytes(const struct turn *t, const struct udma_desc *d)
{
	uint32_t n = HW_GET(UDMA_DESC_LEN, d->ctrl);

	return n || !t->zero_is_64k ? n : UDMA_DESC_LEN_MAX;
}

static bool check_ring_id(struct turn *t, enum half h, const struct udma_desc *d)
{
	uint32_t id = HW_GET(UDMA_DESC_RING_ID, d->ctrl);

	if (!t->check_id[h] || id == t->ring[h].current_id)
		return true;
	fail(t, h, h == M2S ? UDMA_M2S_CAUSE_RING_ID : UDMA_S2M_CAUSE_RING_ID,
	     "wrong ring id, found", id);
	return false;
}

/* A source descriptor that is looked at for the first time. */
static bool check_source(struct turn *t, const struct udma_desc *d)
{
	struct ring *r = &t->ring[M2S];
	uint32_t op = HW_GET(UDMA_META_OP, d->meta);
	bool first = d->ctrl & UDMA_DESC_FIRST;

	if (first != !r->packet_descs)
		fail(t, M2S, UDMA_M2S_CAUSE_FIRST, "first bit in the wrong place, control word",
		     d->ctrl);
	else if (!(d->meta & UDMA_META_COPY_SOURCE) || op != UDMA_META_OP_COPY ||
		 (d->meta & UDMA_META_OP_TYPE))
		fail(t, M2S, 0, "operation is not a plain copy, metadata word", d->meta);
	else if (t->max_descs && r->packet_descs == t->max_descs)
		fail(t, M2S, UDMA_M2S_CAUSE_MAX_DESC, "too many descriptors in a packet, limit",
		     t->max_descs);
	else if (r->packet_bytes + desc_bytes(t, d) > t->max_packet)
		fail(t, M2S, UDMA_M2S_CAUSE_PKT_LEN, "packet too long, bytes",
		     r->packet_bytes + desc_bytes(t, d));
	else {
		r->packet_descs++;
		r->packet_bytes += desc_bytes(t, d);
	}
	return !t->failure.set;
}

/* Completion record of one descriptor, if the queue has a completion ring. */
static bool record(struct turn *t, enum half h, uint32_t bytes, uint32_t flags)
{
	struct ring *r = &t->ring[h];
	uint32_t word[UDMA_S2M_COMP_DESC_WORDS] = { 0 };
	uint64_t to = t->comp_base[h] + (uint64_t)r->comp_head * t->comp_bytes;

	if (!t->comp_on[h])
		return true;
	word[0] = HW_SET(UDMA_CDESC_LEN, bytes) | flags |
		  HW_SET(UDMA_CDESC_RING_ID, (uint32_t)r->comp_id);
	if (t->corrupt)
		word[0] ^= HW_SET(UDMA_CDESC_RING_ID, 1u);
	if (nm_bus_write(t->dev, to, word, t->comp_bytes)) {
		fail(t, h, h == M2S ? UDMA_M2S_CAUSE_COMP_BUS : UDMA_S2M_CAUSE_COMP_BUS,
		     "completion ring does not answer", to);
		return false;
	}
	step(&r->comp_head, &r->comp_id, 1, t->len[h]);
	return true;
}

static bool complete(struct turn *t, enum half h, const struct udma_desc *d, uint32_t flags)
{
	struct ring *r = &t->ring[h];

	if (!record(t, h, r->done, flags))
		return false;
	t->interrupt[h] |= (d->ctrl & UDMA_DESC_INT) != 0;
	r->done = 0;
	r->started = false;
	r->pending--;
	step(&r->current, &r->current_id, 1, t->len[h]);
	t->at[h]++;
	return true;
}

/* Queues share the time of their engine; n bytes of one descriptor. */
static void pass_time(struct turn *t, uint32_t n)
{
	uint64_t took = nm_udma_ps(nm_timing_of(t->dev->chip->arch), n);
	uint64_t end = *t->time_ps + took + nm_dma_end_ps;

	*t->time_ps += took;
	/* The device thread alone changes it. */
	if (end > atomic_load(&t->dev->udma_ps))
		atomic_store(&t->dev->udma_ps, end);
}

/* A queue that had nothing to do starts behind all that the host may know of, and takes as long to
 * start as any transfer. */
static void start_time(struct nm_device *dev, struct udma *u)
{
	uint64_t now = nm_time_ns(dev) * 1000;

	u->time_ps = (u->time_ps > now ? u->time_ps : now) + nm_dma_start_ps;
}

static int move_bytes(struct turn *t, const struct udma_desc *to, uint64_t dst, uint64_t src,
		      uint32_t n, enum half *failed)
{
	const uint32_t spoilt = ~UDMA_MARKER;

	if (!t->corrupt || n != sizeof(spoilt) || !(to->ctrl & UDMA_DESC_INT))
		return nm_bus_copy(t->dev, dst, src, n, failed);
	*failed = S2M;
	return nm_bus_write(t->dev, dst, &spoilt, n);
}

/* Moves what one source and one destination descriptor have in common. */
static bool move(struct turn *t)
{
	const struct udma_desc *s = &t->desc[M2S][t->at[M2S]];
	const struct udma_desc *d = &t->desc[S2M][t->at[S2M]];
	struct ring *src = &t->ring[M2S], *dst = &t->ring[S2M];
	uint32_t src_left, dst_left, n;
	enum half failed;
	bool last;

	if (!check_ring_id(t, M2S, s) || !check_ring_id(t, S2M, d))
		return false;
	if (!src->started && !check_source(t, s))
		return false;
	src->started = true;
	src_left = desc_bytes(t, s) - src->done;
	dst_left = desc_bytes(t, d) - dst->done;
	n = src_left < dst_left ? src_left : dst_left;
	last = n == src_left && (s->ctrl & UDMA_DESC_LAST);
	/* Before the host can see the data, a marker perhaps, and ring for the places again. */
	if (n == src_left)
		atomic_fetch_add(t->left[M2S], 1);
	if (n == dst_left || last)
		atomic_fetch_add(t->left[S2M], 1);
	/* The time too. */
	pass_time(t, n);
	if (move_bytes(t, d, d->addr + dst->done, s->addr + src->done, n, &failed)) {
		fail(t, failed, failed == M2S ? UDMA_M2S_CAUSE_DATA_BUS : UDMA_S2M_CAUSE_DATA_BUS,
		     "address does not answer", failed == M2S ? s->addr : d->addr);
		return false;
	}
	src->done += n;
	dst->done += n;
	t->bytes += n;

	if (n == src_left) {
		if (!complete(t, M2S, s, last ? UDMA_CDESC_LAST : 0))
			return false;
		if (last) {
			src->packet_descs = 0;
			src->packet_bytes = 0;
		}
	}
	if (n == dst_left || last)
		return complete(t, S2M, d, UDMA_CDESC_FIRST | (last ? UDMA_CDESC_LAST : 0));
	return true;
}

static void begin_turn(struct nm_device *dev, struct udma *u, unsigned int q, struct turn *t)
{
	uint32_t cfg_len = *block_value(u->block, R_CFG_LEN, 0);
	uint32_t words = HW_GET(UDMA_S2M_COMP_DESC_WORDS, *block_value(u->block, R_COMP_CFG_1C, 0));

	t->dev = dev;
	t->failure.set = false;
	t->corrupt = false;
	t->bytes = 0;
	t->time_ps = &u->time_ps;
	if (u->fresh >> q & 1)
		start_time(dev, u);
	u->fresh &= (uint16_t)~(1u << q);
	t->zero_is_64k = cfg_len & UDMA_M2S_CFG_LEN_64K;
	t->max_packet = HW_GET(UDMA_M2S_CFG_LEN_MAX, cfg_len);
	t->max_descs = HW_GET(UDMA_PREF_MAX_DESCS, *block_value(u->block, R_PREF_2 + M2S, 0));
	t->comp_bytes = (words ? words : 1) * 4;
	for (enum half h = M2S; h < HALVES; h++) {
		uint32_t id_error = h == M2S ? UDMA_M2S_ERR_RING_ID : UDMA_S2M_ERR_RING_ID;

		t->ring[h] = u->ring[h][q];
		t->base[h] = q_base(u, h, q);
		t->len[h] = q_value(u, R_Q_LEN, h, q);
		t->comp_base[h] = (uint64_t)q_value(u, R_Q_COMP_HI, h, q) << 32 |
				  q_value(u, R_Q_COMP_LO, h, q);
		t->comp_on[h] = q_value(u, R_Q_COMP_CFG, h, q) & UDMA_Q_COMP_ENABLE;
		t->check_id[h] = !(*block_value(u->block, R_ERR_MASK + h, 0) & id_error);
		t->at[h] = 0;
		t->interrupt[h] = false;
		t->left[h] = &u->left[h][q];
	}
}

static void end_turn(struct nm_device *dev, struct udma *u, unsigned int q, const struct turn *t)
{
	for (enum half h = M2S; h < HALVES; h++) {
		struct ring *r = &u->ring[h][q];
		uint32_t done = t->at[h];

		atomic_store(&u->left[h][q], 0);
		if (r->generation != t->ring[h].generation)
			continue; /* the host reset the queue meanwhile */
		/* The doorbell may have moved the tail meanwhile. */
		r->pending -= done;
		r->current = t->ring[h].current;
		r->current_id = t->ring[h].current_id;
		r->done = t->ring[h].done;
		r->started = t->ring[h].started;
		r->packet_bytes = t->ring[h].packet_bytes;
		r->packet_descs = t->ring[h].packet_descs;
		r->comp_head = t->ring[h].comp_head;
		r->comp_id = t->ring[h].comp_id;
		if (t->interrupt[h])
			*block_value(u->block, R_CAUSE + PRIMARY,
				     h == M2S ? UDMA_IOFIC_C : UDMA_IOFIC_B) |= 1u << q;
	}
	if (t->failure.set &&
	    u->ring[t->failure.half][q].generation == t->ring[t->failure.half].generation)
		queue_error(dev, u, t->failure.half, q, t->failure.cause, t->failure.text,
			    t->failure.value);
	else if (t->interrupt[M2S] || t->interrupt[S2M])
		raise_queue(dev, u, q);
}

/* An injected fault instead of a turn. dev->lock held, dropped for the interrupt. */
static void break_down(struct nm_device *dev, struct udma *u, unsigned int q,
		       enum nm_udma_fault fault)
{
	if (fault == NM_UDMA_STOP) {
		u->state[M2S] = UDMA_STATE_ABORT;
		u->state[S2M] = UDMA_STATE_ABORT;
		return;
	}
	queue_error(dev, u, M2S, q, UDMA_M2S_CAUSE_DATA_BUS, "injected fault, descriptor",
		    u->ring[M2S][q].current);
	pthread_mutex_unlock(&dev->lock);
	nm_irq_flush(dev);
	pthread_mutex_lock(&dev->lock);
}

static void run_queue(struct nm_device *dev, struct udma *u, unsigned int q)
{
	enum nm_udma_fault injected = NM_UDMA_FAULTS;
	struct turn t;
	const char *fault;

	u->kicked &= (uint16_t)~(1u << q);
	for (enum half h = M2S; h < HALVES; h++) {
		fault = ring_fault(u, h, q);
		if (!fault)
			continue;
		queue_error(dev, u, h, q, 0, fault, q_value(u, R_Q_LEN, h, q));
		return;
	}
	if (nm_armed(dev, NM_ARMED_UDMA) && nm_inject_takes_turn(dev, u->block->index, &injected)) {
		break_down(dev, u, q, injected);
		return;
	}
	begin_turn(dev, u, q, &t);
	t.corrupt = injected == NM_UDMA_CORRUPT;
	u->busy |= (uint16_t)(1u << q);
	pthread_mutex_unlock(&dev->lock);
	if (fetch(&t, M2S) && fetch(&t, S2M))
		while (t.at[M2S] < t.n[M2S] && t.at[S2M] < t.n[S2M] &&
		       !(atomic_load(&u->stop) >> q & 1) && move(&t))
			;
	pthread_mutex_lock(&dev->lock);
	u->busy &= (uint16_t)~(1u << q);
	pthread_cond_broadcast(&dev->idle);
	end_turn(dev, u, q, &t);
	kick(dev, u, q);
	pthread_mutex_unlock(&dev->lock);
	if (t.at[M2S])
		nm_sdma_trace(dev, u->block->index, q, t.at[M2S], t.bytes);
	nm_irq_flush(dev);
	pthread_mutex_lock(&dev->lock);
}

bool nm_udma_run(struct nm_device *dev)
{
	const unsigned int engines = dev->chip->engines;

	for (unsigned int i = 0; i < engines; i++) {
		unsigned int e = (dev->udma_next + i) % engines;
		struct udma *u = dev->udma[e];

		if (!u || !u->kicked)
			continue;
		for (unsigned int q = 0; q < UDMA_QUEUES && !dev->quiesce; q++)
			if (u->kicked >> q & 1 && runnable(u, q))
				run_queue(dev, u, q);
			else
				u->kicked &= (uint16_t)~(1u << q);
		dev->udma_next = (e + 1) % engines;
		return true;
	}
	return false;
}

/* --- registers ---------------------------------------------------------------- */

static uint32_t queue_status(struct udma *u, enum half h, unsigned int q)
{
	struct ring *r = &u->ring[h][q];
	uint32_t status = HW_SET(UDMA_Q_STATUS_USED, r->pending);

	if (r->error)
		status |= UDMA_Q_STATUS_ERROR;
	if (!(u->busy >> q & 1) && !r->pending)
		status |= UDMA_Q_STATUS_IDLE;
	return status;
}

/* Whether reading this cause clears it. */
static bool clears(struct block *b, unsigned int cause, unsigned int i)
{
	return *block_value(b, cause - R_CAUSE + R_CONTROL, i) & UDMA_IOFIC_CLEAR_ON_READ;
}

static uint32_t udma_read(struct nm_device *dev, struct block *b, unsigned int reg, unsigned int i,
			  uint32_t value)
{
	struct udma *u = dev->udma[b->index];
	enum half h;
	struct ring *r;

	if (reg < R_CHANGE)
		return u->state[reg - R_STATE] * 0x1111u; /* the four fields are equal */
	if (reg == R_AXI_Q_ERROR || (reg >= R_CAUSE && reg < R_CAUSE_SET && clears(b, reg, i)))
		*block_value(b, reg, i) = 0;
	if (reg < R_Q_CFG || reg >= R_CAUSE)
		return value;
	h = (reg - R_Q_CFG) % HALVES;
	r = &u->ring[h][i];
	switch (reg - h) {
	case R_Q_STATUS:
		return queue_status(u, h, i);
	case R_Q_HEAD:
	case R_Q_CURRENT:
		return pointer(r->current, r->current_id);
	case R_Q_TAIL:
		return pointer(r->tail, r->tail_id);
	case R_Q_COMP_HEAD:
		return pointer(r->comp_head, r->comp_id);
	default:
		return value;
	}
}

static void change_state(struct nm_device *dev, struct udma *u, enum half h, uint32_t value)
{
	if (value & UDMA_CHANGE_ABORT)
		u->state[h] = UDMA_STATE_ABORT;
	else if (value & UDMA_CHANGE_DISABLE)
		u->state[h] = UDMA_STATE_IDLE;
	else if (value & UDMA_CHANGE_NORMAL)
		u->state[h] = UDMA_STATE_NORMAL;
	kick_all(dev, u);
}

static void iofic_write(struct block *b, unsigned int reg, unsigned int i, uint32_t old,
			uint32_t value)
{
	unsigned int which = (reg - R_CAUSE) % 3;

	switch (reg - which) {
	case R_CAUSE:
		*block_value(b, R_CAUSE + which, i) = old & value;
		break;
	case R_CAUSE_SET:
		*block_value(b, R_CAUSE + which, i) |= value;
		break;
	case R_MASK_CLEAR:
		*block_value(b, R_MASK + which, i) &= value;
		break;
	default:
		break;
	}
}

static void reset_queue(struct nm_device *dev, struct udma *u, enum half h, unsigned int q)
{
	const uint16_t bit = (uint16_t)(1u << q);

	ring_reset(&u->ring[h][q]);
	atomic_fetch_or(&u->stop, bit);
	while (u->busy & bit)
		pthread_cond_wait(&dev->idle, &dev->lock);
	atomic_fetch_and(&u->stop, (uint16_t)~bit);
}

static void udma_write(struct nm_device *dev, struct block *b, unsigned int reg, unsigned int i,
		       uint32_t old, uint32_t value)
{
	struct udma *u = dev->udma[b->index];
	enum half h;

	if (reg >= R_CHANGE && reg < R_ERR_MASK) {
		change_state(dev, u, reg - R_CHANGE, value);
		return;
	}
	if (reg >= R_CAUSE && reg < R_AXI_Q_ERROR) {
		iofic_write(b, reg, i, old, value);
		return;
	}
	if (reg < R_Q_CFG || reg >= R_CAUSE)
		return;
	h = (reg - R_Q_CFG) % HALVES;
	switch (reg - h) {
	case R_Q_TAIL_INC:
		doorbell(dev, u, h, i, value);
		break;
	case R_Q_CFG:
		kick(dev, u, i);
		break;
	case R_Q_SW_CTRL:
		if (value & UDMA_Q_SW_CTRL_RESET)
			reset_queue(dev, u, h, i);
		break;
	default:
		break;
	}
}

void nm_udma_reset(struct udma *u)
{
	nm_block_reset(u->block);
	if (u->sdma)
		nm_block_reset(u->sdma);
	for (enum half h = M2S; h < HALVES; h++) {
		u->state[h] = UDMA_STATE_IDLE;
		for (unsigned int q = 0; q < UDMA_QUEUES; q++)
			ring_reset(&u->ring[h][q]);
	}
	u->kicked = 0;
}

int nm_udma_init(struct nm_device *dev, struct block *b)
{
	struct udma *u = calloc(1, sizeof(*u));

	if (!u)
		return -ENOMEM;
	dev->udma[b->index] = u;
	u->block = b;
	b->ops.read = udma_read;
	b->ops.write = udma_write;
	if (nm_block_init(b, nm_udma_regs, nm_udma_regs_count))
		return -ENOMEM;
	nm_udma_reset(u);
	return 0;
}
