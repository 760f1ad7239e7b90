// SPDX-License-Identifier: Apache-2.0
/*
 * Timelines. A submission adds an entry for the point it will reach; a point
 * counts as reached when its entry and all earlier ones are done, in whatever
 * order that happens.
 */
#include <errno.h>
#include <stdlib.h>

#include "inproc_priv.h"

#define HISTORY 1024u /* entries of a new timeline */
#define SPIN_NS 20000ull /* sleeping and being woken takes about as long */

static struct ip_entry *entry_at(const struct ip_sync *sync, uint64_t count)
{
	return &sync->entry[count & (sync->size - 1)];
}

/* Room for one more entry. */
static int reserve(struct ip_sync *sync)
{
	const uint32_t size = sync->size * 2;
	struct ip_entry *entry;

	if (sync->tail - sync->head < sync->size)
		return 0;
	entry = calloc(size, sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	for (uint64_t i = sync->head; i != sync->tail; i++)
		entry[i & (size - 1)] = *entry_at(sync, i);
	free(sync->entry);
	sync->entry = entry;
	sync->size = size;
	return 0;
}

static uint64_t add(struct ip_sync *sync, uint64_t point)
{
	*entry_at(sync, sync->tail) = (struct ip_entry){ .point = point, .lane = -1 };
	sync->submitted = point;
	return sync->tail++;
}

static void complete(struct nm_inproc *ip, struct ip_sync *sync, uint64_t count, uint64_t time_ns)
{
	struct ip_entry *entry = entry_at(sync, count);
	uint64_t reached = 0;

	entry->done = true;
	entry->time_ns = time_ns;
	while (sync->head != sync->tail && entry_at(sync, sync->head)->done)
		reached = entry_at(sync, sync->head++)->point;
	if (!reached)
		return;
	atomic_store_explicit(&sync->signalled, reached, memory_order_release);
	ip->advanced = true;
	if (reached >= sync->want) {
		sync->want = UINT64_MAX;
		pthread_cond_broadcast(&ip->changed);
	}
}

void ip_sync_put(struct ip_sync *sync)
{
	if (--sync->refs)
		return;
	free(sync->entry);
	free(sync);
}

/* --- dependencies -------------------------------------------------------------------- */

static int add_in(struct nm_inproc *ip, struct ip_deps *deps, const struct nm_inproc_sync *in)
{
	struct ip_sync *sync = ip_table_get(&ip->syncs, in->handle);

	if (in->flags)
		return -EINVAL;
	if (!sync)
		return -ENOENT;
	if (sync->signalled >= in->point)
		return 0;
	if (in->point > sync->submitted)
		return -EINVAL;
	sync->refs++;
	deps->in[deps->n_in++] = (struct ip_fence){ sync, in->point };
	return 0;
}

static int add_out(struct nm_inproc *ip, struct ip_deps *deps, const struct nm_inproc_sync *out)
{
	struct ip_sync *sync = ip_table_get(&ip->syncs, out->handle);

	if (out->flags)
		return -EINVAL;
	if (!sync)
		return -ENOENT;
	if (out->point <= sync->submitted)
		return -EINVAL;
	for (uint32_t i = 0; i < deps->n_out; i++) {
		if (deps->out[i].sync == sync)
			return -EINVAL;
	}
	if (reserve(sync))
		return -ENOMEM;
	sync->refs++;
	deps->out[deps->n_out++] = (struct ip_fence){ sync, out->point };
	return 0;
}

int ip_deps_init(struct nm_inproc *ip, struct ip_deps *deps, const struct nm_inproc_sync *in,
		 uint32_t n_in, const struct nm_inproc_sync *out, uint32_t n_out)
{
	int ret = 0;

	deps->n_in = 0;
	deps->n_out = 0;
	if (n_in > NM_INPROC_FENCES_MAX || n_out > NM_INPROC_FENCES_MAX)
		return -E2BIG;
	for (uint32_t i = 0; i < n_in && !ret; i++)
		ret = add_in(ip, deps, &in[i]);
	for (uint32_t i = 0; i < n_out && !ret; i++)
		ret = add_out(ip, deps, &out[i]);
	if (ret) {
		while (deps->n_in)
			ip_sync_put(deps->in[--deps->n_in].sync);
		while (deps->n_out)
			ip_sync_put(deps->out[--deps->n_out].sync);
		return ret;
	}
	for (uint32_t i = 0; i < n_out; i++)
		deps->out[i].point = add(deps->out[i].sync, deps->out[i].point);
	return 0;
}

bool ip_deps_ready(struct ip_deps *deps)
{
	while (deps->n_in) {
		const struct ip_fence *fence = &deps->in[deps->n_in - 1];

		if (fence->sync->signalled < fence->point)
			return false;
		ip_sync_put(fence->sync);
		deps->n_in--;
	}
	return true;
}

/* Will all entries up to a point be done by one lane? Else -1. */
static int lane_of(const struct ip_fence *fence)
{
	const struct ip_sync *sync = fence->sync;
	int lane = -1;

	for (uint64_t i = sync->head; i != sync->tail; i++) {
		const struct ip_entry *entry = entry_at(sync, i);

		if (!entry->done && entry->lane < 0)
			return -1;
		if (!entry->done && lane >= 0 && entry->lane != lane)
			return -1;
		if (!entry->done)
			lane = entry->lane;
		if (entry->point >= fence->point)
			break;
	}
	return lane;
}

int ip_deps_lane(const struct ip_deps *deps)
{
	int lane = deps->n_in ? lane_of(&deps->in[0]) : -1;

	for (uint32_t i = 1; i < deps->n_in && lane >= 0; i++) {
		if (lane_of(&deps->in[i]) != lane)
			lane = -1;
	}
	return lane;
}

void ip_deps_set_lane(struct ip_deps *deps, int lane)
{
	for (uint32_t i = 0; i < deps->n_out; i++)
		entry_at(deps->out[i].sync, deps->out[i].point)->lane = (int8_t)lane;
}

void ip_deps_signal(struct nm_inproc *ip, struct ip_deps *deps, uint64_t time_ns)
{
	while (deps->n_in)
		ip_sync_put(deps->in[--deps->n_in].sync);
	while (deps->n_out) {
		const struct ip_fence *fence = &deps->out[--deps->n_out];

		complete(ip, fence->sync, fence->point, time_ns);
		ip_sync_put(fence->sync);
	}
}

/* --- calls ------------------------------------------------------------------------------ */

int nm_inproc_sync_create(struct nm_inproc *ip, uint32_t *handle)
{
	struct ip_sync *sync = calloc(1, sizeof(*sync));
	int ret = 0;

	if (!sync)
		return -ENOMEM;
	sync->refs = 1;
	sync->want = UINT64_MAX;
	sync->size = HISTORY;
	sync->entry = calloc(sync->size, sizeof(*sync->entry));
	if (!sync->entry) {
		ip_sync_put(sync);
		return -ENOMEM;
	}
	pthread_mutex_lock(&ip->lock);
	*handle = ip_table_add(&ip->syncs, sync);
	if (!*handle) {
		ip_sync_put(sync);
		ret = -ENOMEM;
	}
	pthread_mutex_unlock(&ip->lock);
	return ret;
}

int nm_inproc_sync_destroy(struct nm_inproc *ip, uint32_t handle)
{
	struct ip_sync *sync;

	pthread_mutex_lock(&ip->lock);
	sync = ip_table_take(&ip->syncs, handle);
	if (sync)
		ip_sync_put(sync);
	pthread_mutex_unlock(&ip->lock);
	return sync ? 0 : -ENOENT;
}

/* Small launches are done sooner than a thread falls asleep and is woken. false: it worked. */
static bool spin(struct nm_inproc *ip, const struct ip_sync *sync, uint64_t point)
{
	const uint64_t start = ip_now_ns();

	while (sync->signalled < point && ip_now_ns() - start < SPIN_NS) {
		if (ip->work_left)
			return !ip_run_work(ip);
#if defined(__x86_64__)
		for (int i = 0; i < 8 && sync->signalled < point; i++)
			__builtin_ia32_pause();
#endif
	}
	return true;
}

int nm_inproc_sync_wait(struct nm_inproc *ip, uint32_t handle, uint64_t point, int64_t deadline_ns)
{
	struct ip_sync *sync;
	bool spun = false;
	int ret = 0;

	pthread_mutex_lock(&ip->lock);
	sync = ip_table_get(&ip->syncs, handle);
	if (!sync) {
		pthread_mutex_unlock(&ip->lock);
		return -ENOENT;
	}
	sync->refs++;
	while (sync->signalled < point && !ret) {
		if (!spun) {
			ip->spinners++;
			pthread_mutex_unlock(&ip->lock);
			spun = spin(ip, sync, point);
			pthread_mutex_lock(&ip->lock);
			ip->spinners--;
			ip_hand_over(ip);
			continue;
		}
		if (point < sync->want)
			sync->want = point;
		ret = ip_wait(ip, deadline_ns);
	}
	if (sync->signalled >= point)
		ret = 0;
	ip_sync_put(sync);
	pthread_mutex_unlock(&ip->lock);
	return ret;
}

int nm_inproc_sync_query(struct nm_inproc *ip, uint32_t handle, uint64_t *point)
{
	struct ip_sync *sync;

	pthread_mutex_lock(&ip->lock);
	sync = ip_table_get(&ip->syncs, handle);
	if (sync)
		*point = sync->signalled;
	pthread_mutex_unlock(&ip->lock);
	return sync ? 0 : -ENOENT;
}

int nm_inproc_sync_signal(struct nm_inproc *ip, uint32_t handle, uint64_t point)
{
	const struct nm_inproc_sync out = { .handle = handle, .point = point };
	struct ip_deps deps;
	int ret;

	pthread_mutex_lock(&ip->lock);
	ret = ip_deps_init(ip, &deps, NULL, 0, &out, 1);
	if (!ret) {
		ip_deps_signal(ip, &deps, ip->last_ns);
		ip_kick(ip);
	}
	pthread_mutex_unlock(&ip->lock);
	return ret;
}

/* Time of the first entry at or above a point that is reached; 0 when it is forgotten. */
static uint64_t time_of(const struct ip_sync *sync, uint64_t point)
{
	const uint64_t oldest = sync->tail > sync->size ? sync->tail - sync->size : 0;
	uint64_t lo = oldest, hi = sync->head;

	while (lo < hi) {
		const uint64_t mid = lo + (hi - lo) / 2;

		if (entry_at(sync, mid)->point < point)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo == sync->head || (lo == oldest && oldest) ? 0 : entry_at(sync, lo)->time_ns;
}

int nm_inproc_sync_time(struct nm_inproc *ip, uint32_t handle, uint64_t point, uint64_t *ns)
{
	struct ip_sync *sync;

	*ns = 0;
	pthread_mutex_lock(&ip->lock);
	sync = ip_table_get(&ip->syncs, handle);
	if (sync && sync->signalled >= point)
		*ns = time_of(sync, point);
	pthread_mutex_unlock(&ip->lock);
	return sync ? 0 : -ENOENT;
}
