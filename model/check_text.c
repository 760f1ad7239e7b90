// SPDX-License-Identifier: Apache-2.0
/* Findings as sentences, and the words that switch checks on. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "check_priv.h"

struct who {
	char text[64];
};

static struct who who(unsigned int engine, uint32_t pc, unsigned int opcode)
{
	const char *name = isa_opcode_name(opcode);
	struct who w;

	snprintf(w.text, sizeof(w.text), "%s engine, instruction %u (%s)", isa_engine_name(engine),
		 pc, name ? name : "?");
	return w;
}

static struct who where(const struct nm_fault *f)
{
	struct who w;

	if (f->slot != NM_SLOT_NONE)
		snprintf(w.text, sizeof(w.text), "slot %u, byte %llu", f->slot,
			 (unsigned long long)f->value);
	else
		snprintf(w.text, sizeof(w.text), "%s, partition %u, byte %u",
			 EXI_PLACE_SPACE(f->value) == ISA_SPACE_PSUM ? "PSUM" : "SBUF",
			 EXI_PLACE_PART(f->value), EXI_PLACE_BYTE(f->value));
	return w;
}

void nm_check_text(const struct nm_program *p, const struct nm_finding *finding, char *text,
		   size_t size)
{
	const struct nm_fault *f = &finding->fault;
	struct who me = who(f->engine, f->pc, f->opcode), at = where(f), other = { "nothing" };
	int n = snprintf(text, size, "check: program '%s': ", p->name);

	if (n < 0 || (size_t)n >= size)
		return;
	text += n;
	size -= (size_t)n;
	if (f->limit != EXI_OTHER_NONE)
		other = who(EXI_OTHER_ENGINE(f->limit), EXI_OTHER_PC(f->limit),
			    EXI_OTHER_OPCODE(f->limit));
	switch (f->status) {
	case EXI_FAULT_RACE:
		snprintf(text, size, "race on %s: %s %s it, %s %s it, nothing orders the two",
			 at.text, other.text, finding->other_write ? "writes" : "reads", me.text,
			 finding->write ? "writes" : "reads");
		break;
	case EXI_FAULT_UNINITIALISED:
		snprintf(text, size, "%s reads %s, which nothing has written", me.text, at.text);
		break;
	case EXI_FAULT_SEM_AMBIGUOUS:
		snprintf(text, size, "%s: its wait for semaphore %u may hold by %s alone", me.text,
			 (unsigned int)f->value, other.text);
		break;
	case EXI_FAULT_PSUM_NO_START:
		snprintf(text, size, "%s adds to %s, where this launch has started no sum", me.text,
			 at.text);
		break;
	case EXI_FAULT_PSUM_EARLY_READ:
		snprintf(text, size, "%s adds to the sum at %s after %s read it", me.text, at.text,
			 other.text);
		break;
	case EXI_FAULT_PSUM_MIXED:
		snprintf(text, size, "%s adds to several sums, or to none: at %s to what %s began",
			 me.text, at.text, other.text);
		break;
	case EXI_FAULT_UNCHECKED:
		snprintf(text, size, "what follows %s is not checked: %s, %llu instructions before",
			 me.text,
			 f->opcode == ISA_REG_LOAD ? "it depends on data" : "the loop is too long",
			 (unsigned long long)f->value);
		break;
	case EXI_FAULT_DEADLOCK:
		snprintf(text, size,
			 "deadlock: %s waits for semaphore %u to reach %u, raised by %s", me.text,
			 (uint32_t)f->value, (uint32_t)(f->value >> 32), other.text);
		break;
	default:
		snprintf(text, size, "%s raises semaphore %u above %u, after %s", me.text,
			 (unsigned int)f->value, ISA_SEM_MAX, other.text);
		break;
	}
}

/* --- words -------------------------------------------------------------------------------- */

static const struct {
	const char *word;
	uint32_t check;
} words[] = {
	{ "race", NM_CHECK_RACE },
	{ "uninit", NM_CHECK_UNINIT },
	{ "hbm", NM_CHECK_HBM },
	{ "semaphore", NM_CHECK_SEMAPHORE },
	{ "psum", NM_CHECK_PSUM },
	{ "all", NM_CHECK_ALL },
	{ "1", NM_CHECK_ALL },
	{ "warn", NM_CHECK_WARN },
	{ "0", 0 },
};

int nm_check_parse(const char *text, uint32_t *check)
{
	const size_t n_words = sizeof(words) / sizeof(words[0]);

	*check = 0;
	while (*text) {
		size_t n = strcspn(text, ","), i = 0;

		while (i < n_words &&
		       (strlen(words[i].word) != n || strncmp(words[i].word, text, n)))
			i++;
		if (i == n_words)
			return -EINVAL;
		*check |= words[i].check;
		text += n;
		if (*text == ',' && !*++text)
			return -EINVAL;
	}
	/* How to tell without what to look for: everything. */
	if (*check == NM_CHECK_WARN)
		*check |= NM_CHECK_ALL;
	return 0;
}
