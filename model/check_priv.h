/* SPDX-License-Identifier: Apache-2.0 */
/* Between the check*.c files. */
#ifndef NM_CHECK_PRIV_H
#define NM_CHECK_PRIV_H

#include <stddef.h>

#include "check.h"
#include "neuron_model.h"

/* Memories of a replay: SBUF, PSUM, then slots; slots that overlap share one. */
#define NM_MEM_SLOTS 2

#define NM_FINDINGS 32 /* of a program that are kept; all are counted */

/* Engines, then each DMA queue as each engine feeds it. */
#define NM_ACTORS (EXI_ENGINES + ISA_DMA_QUEUES * EXI_ENGINES)

/* Where a slot's bytes are in its memory. */
struct nm_place {
	uint32_t mem;
	uint64_t offset;
};

enum nm_psum_write {
	NM_PSUM_OTHER, /* no sum that a matmul could go on with */
	NM_PSUM_FP32, /* written by another instruction: a start */
	NM_PSUM_BF16,
	NM_PSUM_MATMUL = 0x4, /* written by a matmul; with one of the above */
};

/* Instructions that a program with branches may take in a replay: a loop may have no end. */
#define NM_REPLAY_INSTS (1u << 16)

/* An instruction of the replay, by its number from 1 on. */
struct nm_access {
	uint32_t pc;
	uint32_t turn; /* instructions of its engine before it */
	uint32_t n; /* position among those of its actor */
	uint8_t actor;
	uint8_t engine;
	uint8_t opcode;
	uint8_t psum; /* enum nm_psum_write */
};

/* Bytes that one operand touches: rows of run bytes. On chip with the pitch of decode.h. */
struct nm_span {
	uint32_t mem;
	uint16_t slot;
	bool write;
	bool may; /* bytes that may be read, but need not */
	int64_t at;
	uint64_t run;
	unsigned int ndim;
	uint64_t count[NM_WALK_DIMS + 1];
	int64_t step[NM_WALK_DIMS + 1]; /* ascending */
};

/* Of one instruction; STREAM_SHUFFLE: every other partition of a group, read and written. */
#define NM_SPANS_MAX ISA_PART_QUANTUM

struct nm_finding {
	struct nm_fault fault;
	bool write, other_write;
	uint32_t mem;
};

/* Bytes of one row: on chip partition and byte, else offset in the memory. */
struct nm_bytes {
	uint32_t mem;
	uint32_t partition;
	uint64_t at, size;
	uint32_t pc; /* of the first that reads them */
	uint16_t slot;
	uint8_t engine, opcode;
};

struct nm_bytes_list {
	struct nm_bytes *item;
	size_t n, max;
};

/* What a replay with one layout of slots has shown. */
struct nm_checked {
	struct nm_checked *next;
	uint32_t n_slots;
	uint32_t n_mems;
	struct nm_place *place; /* of each slot */
	unsigned int n_findings;
	uint64_t found;
	struct nm_finding finding[NM_FINDINGS];
	struct nm_bytes_list exposed; /* read before they are written */
	struct nm_bytes_list written;
	bool unknown; /* the replay ended early: any byte may have been written */
	bool told;
	unsigned int uninit_lines; /* in the log */
};

struct nm_cell {
	uint32_t writer; /* access; 0: none */
	uint32_t reader; /* since then: access, or NM_SET | index of a set; 0: none */
};

struct nm_shadow {
	struct nm_cell *cell;
	size_t bytes; /* of cell */
	uint64_t granule; /* bytes of a cell; divides every row of the program */
	uint64_t row; /* cells of a partition, or of the memory */
	uint64_t end; /* slots: highest byte touched */
	uint64_t align; /* all offsets, steps and rows, or'ed */
};

#define NM_SET (1u << 31)

struct nm_reader {
	uint32_t access, next; /* index of a set, 0: none */
};

struct nm_psum_word {
	uint32_t start; /* access that began what is there */
	uint32_t last; /* matmul that added last; 0: none has */
	uint32_t reader; /* since then */
};

struct nm_replay {
	const struct nm_program *program;
	struct nm_checked *verdict;
	uint32_t checks;
	bool failed; /* no memory */

	struct nm_access *access;
	uint32_t n_accesses;
	const uint32_t *start; /* clock of the current one */

	struct nm_shadow *shadow; /* by memory */
	struct nm_psum_word *psum;
	struct nm_reader *set;
	uint32_t n_sets, max_sets;
	uint32_t memo_from, memo_to; /* of the current access: set of readers and what it became */
};

/* Whether an access is over before the current one starts. */
static inline bool nm_before(const struct nm_replay *r, uint32_t id)
{
	const struct nm_access *a = &r->access[id];

	return r->start[a->actor] >= a->n;
}

/* check_span.c: what an instruction touches, reads first; number of spans. */
unsigned int nm_spans(const struct nm_replay *r, const struct nm_inst *inst,
		      struct nm_span span[NM_SPANS_MAX]);

/* check_shadow.c */
bool nm_shadow_init(struct nm_replay *r);
void nm_shadow_fini(struct nm_replay *r);
/* The current access, id, touches bytes. */
void nm_shadow_touch(struct nm_replay *r, uint32_t id, const struct nm_span *span);
/* accumulate: the current access is a matmul that adds; else it writes or reads. */
void nm_psum_touch(struct nm_replay *r, uint32_t id, const struct nm_span *span, bool accumulate);

/* check_replay.c: fills in findings and bytes of a verdict whose places are set; false: no memory. */
bool nm_replay(const struct nm_program *program, uint32_t checks, struct nm_checked *v);

/* Notes a finding about the current access id and another (0: none) once for each pair. */
void nm_find(struct nm_replay *r, uint16_t status, uint32_t id, bool write, uint32_t other,
	     bool other_write, uint32_t mem, uint16_t slot, uint64_t value);

/* check_text.c */
void nm_check_text(const struct nm_program *p, const struct nm_finding *f, char *text, size_t size);

#endif /* NM_CHECK_PRIV_H */
