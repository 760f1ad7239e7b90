// SPDX-License-Identifier: Apache-2.0
/* Launches in checking mode: which replay stands for them, and what of memory is initialised. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bits.h"
#include "check_priv.h"
#include "core_priv.h"

#define VERDICTS_MAX 16 /* of a program */
#define UNINIT_LINES 8 /* in the log, of a program and layout */

struct nm_check {
	struct nm_core_bus bus;
	unsigned int core;
	uint8_t *written[NM_MEM_SLOTS]; /* SBUF and PSUM, a bit for each byte that programs may use */
	struct nm_place place[EXI_SLOTS_MAX]; /* of the launch at hand */
	uint32_t n_mems;
	struct nm_checked *verdict;
};

static const uint32_t partition_bytes[NM_MEM_SLOTS] = { NM_SBUF_BYTES_MAX, NM_PSUM_BYTES };

struct nm_check *nm_check_create(const struct nm_core_bus *bus, unsigned int core)
{
	struct nm_check *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	for (unsigned int m = 0; m < NM_MEM_SLOTS; m++) {
		c->written[m] = calloc(ISA_PARTITIONS, partition_bytes[m] / 8);
		if (!c->written[m]) {
			nm_check_destroy(c);
			return NULL;
		}
	}
	c->bus = *bus;
	c->core = core;
	return c;
}

void nm_check_destroy(struct nm_check *c)
{
	if (!c)
		return;
	for (unsigned int m = 0; m < NM_MEM_SLOTS; m++)
		free(c->written[m]);
	free(c);
}

void nm_checked_free(struct nm_checked *v)
{
	struct nm_checked *next;

	for (; v; v = next) {
		next = v->next;
		free(v->place);
		free(v->exposed.item);
		free(v->written.item);
		free(v);
	}
}

void nm_check_scrubbed(struct nm_check *c)
{
	for (unsigned int m = 0; m < NM_MEM_SLOTS; m++)
		memset(c->written[m], 0, (size_t)ISA_PARTITIONS * partition_bytes[m] / 8);
}

void nm_check_host_write(struct nm_check *c, unsigned int partition, uint32_t byte, size_t size)
{
	nm_bits_put(c->written[ISA_SPACE_SBUF], (uint64_t)partition * NM_SBUF_BYTES_MAX + byte,
		    size, true);
}

/* --- which replay ------------------------------------------------------------------------- */

struct range {
	uint64_t base, end;
	uint32_t slot;
	bool write;
};

static int by_base(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	if (x->base != y->base)
		return x->base < y->base ? -1 : 1;
	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

/* Slots that share memory with the first of range, one at least being written, n in all. */
static unsigned int cluster(const struct range *range, unsigned int left, bool *write)
{
	uint64_t end = range->end;
	unsigned int n = 1;

	*write = range->write;
	for (; n < left && range[n].base < end; n++) {
		*write |= range[n].write;
		end = range[n].end > end ? range[n].end : end;
	}
	return n;
}

/* Where slots lie to each other. Memories are numbered by their first slot, so that only the
 * overlaps make a difference, not the addresses. */
static void lay_out(struct nm_check *c, const struct nm_check_launch *l)
{
	const struct nm_program *p = l->program;
	struct range range[EXI_SLOTS_MAX];
	uint32_t root[EXI_SLOTS_MAX]; /* lowest slot of its memory */
	unsigned int n_ranges = 0, n;
	bool write;

	for (uint32_t i = 0; i < p->n_slots; i++) {
		root[i] = i;
		c->place[i] = (struct nm_place){ 0 };
		if (!l->slot[i].size || l->slot[i].rights & EXI_SLOT_INLINE)
			continue;
		range[n_ranges++] = (struct range){ l->slot[i].base,
						    l->slot[i].base + l->slot[i].size, i,
						    p->slot[i].rights & EXI_SLOT_WRITE };
	}
	qsort(range, n_ranges, sizeof(range[0]), by_base);
	for (unsigned int k = 0; k < n_ranges; k += n) {
		uint32_t lowest = UINT32_MAX;

		n = cluster(&range[k], n_ranges - k, &write);
		if (!write)
			continue;
		for (unsigned int i = k; i < k + n; i++)
			lowest = range[i].slot < lowest ? range[i].slot : lowest;
		for (unsigned int i = k; i < k + n; i++) {
			root[range[i].slot] = lowest;
			c->place[range[i].slot].offset = range[i].base - range[k].base;
		}
	}
	c->n_mems = NM_MEM_SLOTS;
	for (uint32_t i = 0; i < p->n_slots; i++)
		c->place[i].mem = root[i] == i ? c->n_mems++ : c->place[root[i]].mem;
}

static bool same_layout(const struct nm_check *c, const struct nm_checked *v)
{
	for (uint32_t i = 0; i < v->n_slots; i++)
		if (v->place[i].mem != c->place[i].mem || v->place[i].offset != c->place[i].offset)
			return false;
	return true;
}

static struct nm_checked *make_verdict(struct nm_check *c, const struct nm_program *p)
{
	struct nm_checked *v = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	v->n_slots = p->n_slots;
	v->n_mems = c->n_mems;
	v->place = calloc(p->n_slots + 1, sizeof(*v->place));
	if (v->place && p->n_slots)
		memcpy(v->place, c->place, p->n_slots * sizeof(*v->place));
	if (v->place && nm_replay(p, c->bus.check, v))
		return v;
	nm_checked_free(v);
	return NULL;
}

static struct nm_checked *verdict_of(struct nm_check *c, const struct nm_check_launch *l)
{
	/* The one part of a program that changes; its core's worker alone looks at it. */
	struct nm_checked **first = &((struct nm_program *)(uintptr_t)l->program)->verdict;
	struct nm_checked **link = first, *v;
	unsigned int n = 0;

	lay_out(c, l);
	for (; *link && !same_layout(c, *link); link = &(*link)->next)
		if (++n == VERDICTS_MAX - 1) {
			nm_checked_free((*link)->next);
			(*link)->next = NULL;
		}
	v = *link;
	if (v)
		*link = v->next;
	else
		v = make_verdict(c, l->program);
	if (v) {
		v->next = *first;
		*first = v;
	}
	return v;
}

/* --- findings ------------------------------------------------------------------------------- */

static void tell(struct nm_check *c, const struct nm_program *p, const struct nm_finding *f)
{
	char text[512];

	nm_check_text(p, f, text, sizeof(text));
	c->bus.log(c->bus.dev, NM_LOG_GUEST, text);
}

static uint32_t kind_of(uint16_t status)
{
	switch (status) {
	case EXI_FAULT_RACE:
		return NM_CHECK_RACE;
	case EXI_FAULT_DEADLOCK:
	case EXI_FAULT_SEM_OVERFLOW:
	case EXI_FAULT_SEM_AMBIGUOUS:
		return NM_CHECK_SEMAPHORE;
	default:
		return NM_CHECK_PSUM;
	}
}

/* What holds for every launch with this layout. */
static const struct nm_finding *findings(struct nm_check *c, const struct nm_program *p,
					 struct nm_checked *v)
{
	const struct nm_finding *first = NULL;

	for (unsigned int i = 0; i < v->n_findings; i++) {
		const struct nm_finding *f = &v->finding[i];

		/* That one says what was not looked for. */
		if (f->fault.status != EXI_FAULT_UNCHECKED)
			c->bus.found(c->bus.dev, kind_of(f->fault.status), 1);
		if (!v->told)
			tell(c, p, f);
		/* The sequencers tell of these themselves, if it comes to that. */
		if (!first && f->fault.status != EXI_FAULT_DEADLOCK &&
		    f->fault.status != EXI_FAULT_SEM_OVERFLOW)
			first = f;
	}
	if (v->found > v->n_findings && !v->told) {
		char text[128];

		snprintf(text, sizeof(text), "check: program '%s': %llu more findings", p->name,
			 (unsigned long long)(v->found - v->n_findings));
		c->bus.log(c->bus.dev, NM_LOG_GUEST, text);
	}
	v->told = true;
	return first;
}

/* First byte of b that nothing has written, as an offset in it; its size: none. */
static uint64_t unwritten(const struct nm_check *c, const struct nm_check_launch *l,
			  const struct nm_bytes *b)
{
	if (b->mem < NM_MEM_SLOTS) {
		if (!(c->bus.check & NM_CHECK_UNINIT))
			return b->size;
		return nm_bits_clear(c->written[b->mem],
				     (uint64_t)b->partition * partition_bytes[b->mem] + b->at,
				     b->size);
	}
	if (!(c->bus.check & NM_CHECK_HBM))
		return b->size;
	return c->bus.unwritten(c->bus.dev,
				l->slot[b->slot].base + b->at - c->place[b->slot].offset, b->size);
}

/* Reads of what was not written, neither in this launch nor ever before. True: *first is one. */
static bool uninitialised(struct nm_check *c, const struct nm_check_launch *l, struct nm_checked *v,
			  struct nm_finding *first)
{
	const struct nm_bytes *last = NULL;
	bool any = false;

	for (size_t i = 0; i < v->exposed.n; i++) {
		const struct nm_bytes *b = &v->exposed.item[i];
		struct nm_finding f = { .mem = b->mem };
		bool slot = b->mem >= NM_MEM_SLOTS;
		uint64_t skip;

		if (last && last->engine == b->engine && last->pc == b->pc)
			continue;
		skip = unwritten(c, l, b);
		if (skip == b->size)
			continue;
		last = b;
		f.fault = (struct nm_fault){
			.status = EXI_FAULT_UNINITIALISED,
			.slot = slot ? b->slot : NM_SLOT_NONE,
			.pc = b->pc,
			.engine = b->engine,
			.opcode = b->opcode,
			.value = slot ? b->at + skip - c->place[b->slot].offset :
					EXI_PLACE(b->mem, b->partition, (uint32_t)(b->at + skip)),
			.limit = EXI_OTHER_NONE,
		};
		c->bus.found(c->bus.dev, slot ? NM_CHECK_HBM : NM_CHECK_UNINIT, 1);
		if (v->uninit_lines < UNINIT_LINES) {
			v->uninit_lines++;
			tell(c, l->program, &f);
		}
		if (!any)
			*first = f;
		any = true;
	}
	return any;
}

bool nm_check_before(struct nm_check *c, const struct nm_check_launch *l, struct nm_fault *fault)
{
	const struct nm_finding *first;
	struct nm_finding read;
	struct nm_checked *v;

	v = verdict_of(c, l);
	c->verdict = v;
	if (!v) {
		c->bus.log(c->bus.dev, NM_LOG_ERROR, "no memory to check a program");
		return false;
	}
	first = findings(c, l->program, v);
	if (uninitialised(c, l, v, &read) && !first)
		first = &read;
	if (!first || c->bus.check & NM_CHECK_WARN)
		return false;
	*fault = first->fault;
	return true;
}

/* After a launch of which nobody knows what it wrote. */
static void all_written(struct nm_check *c, const struct nm_check_launch *l)
{
	for (unsigned int m = 0; m < NM_MEM_SLOTS; m++)
		memset(c->written[m], 0xff, (size_t)ISA_PARTITIONS * partition_bytes[m] / 8);
	for (uint32_t i = 0; i < l->program->n_slots; i++)
		if (l->program->slot[i].rights & EXI_SLOT_WRITE && l->slot[i].size)
			c->bus.written(c->bus.dev, l->slot[i].base, l->slot[i].size);
}

void nm_check_after(struct nm_check *c, const struct nm_check_launch *l)
{
	const struct nm_checked *v = c->verdict;

	if (v && v->unknown)
		all_written(c, l);
	for (size_t i = 0; v && i < v->written.n; i++) {
		const struct nm_bytes *b = &v->written.item[i];

		if (b->mem < NM_MEM_SLOTS)
			nm_bits_put(c->written[b->mem],
				    (uint64_t)b->partition * partition_bytes[b->mem] + b->at,
				    b->size, true);
		else
			c->bus.written(c->bus.dev,
				       l->slot[b->slot].base + b->at - c->place[b->slot].offset,
				       b->size);
	}
	c->verdict = NULL;
}
