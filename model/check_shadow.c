// SPDX-License-Identifier: Apache-2.0
/*
 * Shadow of the memories: for each granule who wrote it last and who has read it since. The granule
 * of a memory is the largest that no access of the program cuts, so nothing is rounded.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "check_priv.h"
#include "exec.h"

#define GRANULE_MAX 65536u
#define WORD	    2u /* of PSUM: the least element of a sum */
#define PSUM_WORDS  (NM_PSUM_BYTES / WORD)

/* --- life ------------------------------------------------------------------------------- */

static uint64_t usable(uint32_t mem)
{
	return mem == ISA_SPACE_SBUF ? NM_SBUF_BYTES_MAX : NM_PSUM_BYTES;
}

/* Notes offsets, steps and end of a span. */
static void measure(struct nm_shadow *s, const struct nm_span *span)
{
	uint64_t pitch = span->mem < NM_MEM_SLOTS ? (uint64_t)nm_pitch(span->mem) : UINT64_MAX;
	uint64_t end = (uint64_t)span->at + span->run;

	s->align |= (uint64_t)span->at % pitch | span->run;
	for (unsigned int i = 0; i < span->ndim; i++) {
		uint64_t step = (uint64_t)span->step[i], reach = step * (span->count[i] - 1);

		end += reach;
		if (step % pitch == 0)
			continue;
		/* Carries into the partition change the byte by the pitch. */
		s->align |= step | (reach >= pitch ? pitch : 0);
	}
	if (end > s->end)
		s->end = end;
}

/* The same of an instruction whose operands registers may move by any number of elements. */
static void measure_shifted(struct nm_replay *r, const struct nm_inst *inst)
{
	const struct nm_dma *dma = inst->dma;
	const struct nm_side *sides[2];
	unsigned int n = 0;

	if (inst->opcode == ISA_DMA) {
		sides[n++] = &dma->dst;
		sides[n++] = &dma->src;
	} else if (isa_is_reg(inst->opcode)) {
		sides[n++] = &inst->reg->place;
	} else {
		const struct nm_shifts *s = inst->compute->shifts;

		for (unsigned int i = 0; i < s->n; i++) {
			const struct nm_operand *o =
				(const struct nm_operand *)((const uint8_t *)inst->compute +
							    s->shift[i].operand);

			r->shadow[o->space].align |= o->bytes;
		}
	}
	for (unsigned int i = 0; i < n; i++) {
		uint32_t bytes = n == 2 ? dma->elem_bytes : inst->reg->bytes;
		uint32_t mem = sides[i]->space;

		if (mem == ISA_SPACE_SLOT && sides[i]->slot == ISA_SLOT_CONST)
			continue;
		if (mem == ISA_SPACE_SLOT) {
			const struct nm_place *place = &r->verdict->place[sides[i]->slot];
			uint64_t end = place->offset + sides[i]->reach.limit;

			mem = place->mem;
			if (end > r->shadow[mem].end)
				r->shadow[mem].end = end;
		}
		r->shadow[mem].align |= bytes;
	}
}

static bool map_cells(struct nm_shadow *s, uint32_t mem)
{
	uint64_t rows = mem < NM_MEM_SLOTS ? ISA_PARTITIONS : 1;
	uint64_t bytes = mem < NM_MEM_SLOTS ? usable(mem) : s->end;

	if (!s->align)
		return true; /* not touched */
	s->granule = s->align & -s->align;
	if (s->granule > GRANULE_MAX)
		s->granule = GRANULE_MAX;
	s->row = (bytes + s->granule - 1) / s->granule;
	s->bytes = rows * s->row * sizeof(struct nm_cell);
	s->cell = mmap(NULL, s->bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (s->cell == MAP_FAILED)
		s->cell = NULL;
	return s->cell;
}

bool nm_shadow_init(struct nm_replay *r)
{
	uint32_t n_mems = r->verdict->n_mems;
	struct nm_span span[NM_SPANS_MAX];

	r->shadow = calloc(n_mems, sizeof(*r->shadow));
	r->max_sets = 256;
	r->n_sets = 1;
	r->set = calloc(r->max_sets, sizeof(*r->set));
	if (r->checks & NM_CHECK_PSUM)
		r->psum = calloc((size_t)ISA_PARTITIONS * PSUM_WORDS, sizeof(*r->psum));
	if (!r->shadow || !r->set || (r->checks & NM_CHECK_PSUM && !r->psum))
		return false;
	for (unsigned int e = 0; e < EXI_ENGINES; e++) {
		const struct nm_stream *stream = &r->program->stream[e];

		for (uint32_t pc = 0; pc < stream->count; pc++) {
			unsigned int n = nm_spans(r, &stream->inst[pc], span);

			for (unsigned int i = 0; i < n; i++)
				measure(&r->shadow[span[i].mem], &span[i]);
			if (stream->inst[pc].shifted || isa_is_reg(stream->inst[pc].opcode))
				measure_shifted(r, &stream->inst[pc]);
		}
	}
	for (uint32_t m = 0; m < n_mems; m++)
		if (!map_cells(&r->shadow[m], m))
			return false;
	return true;
}

void nm_shadow_fini(struct nm_replay *r)
{
	for (uint32_t m = 0; r->shadow && m < r->verdict->n_mems; m++)
		if (r->shadow[m].cell)
			munmap(r->shadow[m].cell, r->shadow[m].bytes);
	free(r->shadow);
	free(r->psum);
	free(r->set);
}

/* --- rows --------------------------------------------------------------------------------- */

struct row {
	const struct nm_span *span;
	uint32_t id;
	uint32_t partition;
	uint64_t byte; /* of the partition, or of the memory */
};

typedef void (*row_fn)(struct nm_replay *r, const struct row *row);

static void each_row(struct nm_replay *r, uint32_t id, const struct nm_span *span, row_fn fn)
{
	struct row row = { .span = span, .id = id };
	uint64_t idx[NM_WALK_DIMS + 1] = { 0 };
	uint64_t at = (uint64_t)span->at;
	unsigned int d;

	do {
		row.byte = at;
		if (span->mem < NM_MEM_SLOTS) {
			row.partition = (uint32_t)(at / (uint64_t)nm_pitch(span->mem));
			row.byte = at % (uint64_t)nm_pitch(span->mem);
		}
		fn(r, &row);
		for (d = 0; d < span->ndim; d++) {
			at += (uint64_t)span->step[d];
			if (++idx[d] < span->count[d])
				break;
			at -= (uint64_t)span->step[d] * span->count[d];
			idx[d] = 0;
		}
	} while (d < span->ndim);
}

/* Value of a record for a byte of a row: docs/execution-interface.md. */
static uint64_t place(const struct nm_replay *r, const struct row *row, uint64_t skip)
{
	const struct nm_span *s = row->span;

	if (s->mem >= NM_MEM_SLOTS)
		return row->byte + skip - r->verdict->place[s->slot].offset;
	return EXI_PLACE(s->mem, row->partition, (uint32_t)(row->byte + skip));
}

static void find(struct nm_replay *r, uint16_t status, const struct row *row, uint64_t skip,
		 uint32_t other, bool other_write)
{
	nm_find(r, status, row->id, row->span->write, other, other_write, row->span->mem,
		row->span->slot, place(r, row, skip));
}

/* --- lists of bytes ------------------------------------------------------------------------- */

static void note(struct nm_replay *r, struct nm_bytes_list *list, const struct row *row,
		 uint64_t skip, uint64_t size)
{
	const struct nm_access *a = &r->access[row->id];
	struct nm_bytes *last = list->n ? &list->item[list->n - 1] : NULL;
	uint64_t at = row->byte + skip;

	if (last && last->mem == row->span->mem && last->partition == row->partition &&
	    last->at + last->size == at && last->engine == a->engine && last->pc == a->pc) {
		last->size += size;
		return;
	}
	if (list->n == list->max) {
		size_t max = list->max ? 2 * list->max : 64;
		struct nm_bytes *item = realloc(list->item, max * sizeof(*item));

		if (!item) {
			r->failed = true;
			return;
		}
		list->item = item;
		list->max = max;
	}
	list->item[list->n++] = (struct nm_bytes){
		.mem = row->span->mem,
		.partition = row->partition,
		.at = at,
		.size = size,
		.pc = a->pc,
		.slot = row->span->slot,
		.engine = a->engine,
		.opcode = a->opcode,
	};
}

/* --- readers -------------------------------------------------------------------------------- */

static uint32_t new_reader(struct nm_replay *r, uint32_t access, uint32_t next)
{
	if (r->n_sets == r->max_sets) {
		uint32_t max = 2 * r->max_sets;
		struct nm_reader *set = realloc(r->set, max * sizeof(*set));

		if (!set || max >= NM_SET) {
			r->failed = true;
			r->set = set ? set : r->set;
			return 0;
		}
		r->set = set;
		r->max_sets = max;
	}
	r->set[r->n_sets] = (struct nm_reader){ access, next };
	return r->n_sets++;
}

/* Readers that are known to be over are as good as none: whoever comes after id comes after them. */
static uint32_t add_reader(struct nm_replay *r, uint32_t readers, uint32_t id)
{
	uint32_t kept = 0;

	if (!readers || readers == id)
		return id;
	if (readers == r->memo_from)
		return r->memo_to;
	if (!(readers & NM_SET)) {
		if (!nm_before(r, readers))
			kept = new_reader(r, readers, 0);
	} else {
		for (uint32_t s = readers & ~NM_SET; s; s = r->set[s].next)
			if (r->set[s].access != id && !nm_before(r, r->set[s].access))
				kept = new_reader(r, r->set[s].access, kept);
	}
	r->memo_from = readers;
	r->memo_to = kept ? NM_SET | new_reader(r, id, kept) : id;
	return r->memo_to;
}

static void check_readers(struct nm_replay *r, const struct row *row, uint64_t skip,
			  uint32_t readers)
{
	if (!(readers & NM_SET)) {
		if (readers && readers != row->id && !nm_before(r, readers))
			find(r, EXI_FAULT_RACE, row, skip, readers, false);
		return;
	}
	for (uint32_t s = readers & ~NM_SET; s; s = r->set[s].next)
		if (r->set[s].access != row->id && !nm_before(r, r->set[s].access))
			find(r, EXI_FAULT_RACE, row, skip, r->set[s].access, false);
}

/* --- touching ------------------------------------------------------------------------------- */

static void touch_row(struct nm_replay *r, const struct row *row)
{
	const struct nm_shadow *s = &r->shadow[row->span->mem];
	struct nm_cell *cell = s->cell + row->partition * s->row + row->byte / s->granule;
	uint64_t n = row->span->run / s->granule, end;
	bool write = row->span->write;

	for (uint64_t i = 0; i < n; i = end) {
		struct nm_cell was = cell[i], is;
		uint64_t skip = i * s->granule;

		for (end = i + 1;
		     end < n && cell[end].writer == was.writer && cell[end].reader == was.reader;
		     end++)
			;
		if (was.writer && was.writer != row->id && !nm_before(r, was.writer))
			find(r, EXI_FAULT_RACE, row, skip, was.writer, true);
		if (write) {
			check_readers(r, row, skip, was.reader);
			is = (struct nm_cell){ .writer = row->id };
		} else {
			is = (struct nm_cell){ was.writer, add_reader(r, was.reader, row->id) };
		}
		if (!was.writer && write)
			note(r, &r->verdict->written, row, skip, (end - i) * s->granule);
		else if (!was.writer && !was.reader && !row->span->may)
			note(r, &r->verdict->exposed, row, skip, (end - i) * s->granule);
		for (uint64_t k = i; k < end; k++)
			cell[k] = is;
	}
}

void nm_shadow_touch(struct nm_replay *r, uint32_t id, const struct nm_span *span)
{
	r->memo_from = 0;
	each_row(r, id, span, touch_row);
}

/* --- PSUM ----------------------------------------------------------------------------------- */

static struct nm_psum_word *words_of(const struct nm_replay *r, const struct row *row, uint64_t *n)
{
	*n = (row->byte + row->span->run - 1) / WORD - row->byte / WORD + 1;
	return r->psum + (size_t)row->partition * PSUM_WORDS + row->byte / WORD;
}

static void psum_plain(struct nm_replay *r, const struct row *row)
{
	uint64_t n;
	struct nm_psum_word *w = words_of(r, row, &n);

	for (; n--; w++)
		if (row->span->write)
			*w = (struct nm_psum_word){ .start = row->id };
		else if (w->last)
			w->reader = row->id;
}

/* A matmul starts a sum. */
static void psum_start(struct nm_replay *r, const struct row *row)
{
	uint64_t n;
	struct nm_psum_word *w = words_of(r, row, &n);

	for (; n--; w++)
		*w = (struct nm_psum_word){ .start = row->id, .last = row->id };
}

static bool is_matmul(const struct nm_replay *r, uint32_t id)
{
	return r->access[id].psum & NM_PSUM_MATMUL;
}

/* Whether what an access began is a number of the dtype that a matmul adds. */
static bool holds_sum(const struct nm_replay *r, uint32_t start, uint32_t matmul)
{
	return (r->access[start].psum & ~NM_PSUM_MATMUL) ==
	       (r->access[matmul].psum & ~NM_PSUM_MATMUL);
}

/* A matmul adds: every element goes on with a sum, all with the same, which nobody took for done. */
static void psum_add(struct nm_replay *r, const struct row *row)
{
	uint64_t n;
	struct nm_psum_word *w = words_of(r, row, &n);
	uint32_t first = r->memo_from;

	for (uint64_t i = 0; i < n; i++, w++) {
		uint64_t skip = i * WORD;

		if (!w->start)
			find(r, EXI_FAULT_PSUM_NO_START, row, skip, 0, false);
		else if (!holds_sum(r, w->start, row->id))
			find(r, EXI_FAULT_PSUM_MIXED, row, skip, w->start, true);
		else if (first && first != w->start &&
			 (is_matmul(r, first) || is_matmul(r, w->start)))
			find(r, EXI_FAULT_PSUM_MIXED, row, skip,
			     is_matmul(r, w->start) ? w->start : first, true);
		if (w->reader)
			find(r, EXI_FAULT_PSUM_EARLY_READ, row, skip, w->reader, false);
		if (!first)
			first = w->start;
		if (!w->start)
			w->start = row->id;
		w->last = row->id;
		w->reader = 0;
	}
	r->memo_from = first;
}

void nm_psum_touch(struct nm_replay *r, uint32_t id, const struct nm_span *span, bool accumulate)
{
	r->memo_from = 0;
	if (accumulate)
		each_row(r, id, span, psum_add);
	else if (span->write && is_matmul(r, id))
		each_row(r, id, span, psum_start);
	else
		each_row(r, id, span, psum_plain);
}
