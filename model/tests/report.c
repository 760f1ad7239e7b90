// SPDX-License-Identifier: Apache-2.0
/* The report of known programs: times, bytes, and what the critical path consists of. */
#include <unistd.h>

#include "report.h"
#include "rig.h"
#include "timing.h"

#define ROW   512u /* fp32 elements a partition */
#define BYTES (128 * ROW * 4)

static const struct exi_slot slots[] = {
	{ .base = 0, .size = 1u << 20, .rights = EXI_SLOT_READ | EXI_SLOT_WRITE },
	{ .base = 1u << 20, .size = 1u << 20, .rights = EXI_SLOT_READ | EXI_SLOT_WRITE },
};

struct bench {
	struct rig *rig;
	struct nm_report *report;
	char path[64];
	char *text;
};

static int setup(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));
	int fd;

	strcpy(b->path, "/tmp/neuron-report-XXXXXX");
	fd = mkstemp(b->path);
	assert_true(fd >= 0);
	close(fd);
	b->report = nm_report_create(b->path);
	b->rig = rig_create_with(0, b->report);
	rig_queue(b->rig, 0, 1);
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bench *b = *state;

	rig_destroy(b->rig);
	nm_report_destroy(b->report);
	unlink(b->path);
	free(b->text);
	free(b);
	return 0;
}

static void read_report(struct bench *b)
{
	const size_t max = 1 << 20;
	FILE *f;
	size_t n;

	assert_int_equal(nm_report_write(b->report), 0);
	f = fopen(b->path, "r");
	assert_non_null(f);
	free(b->text);
	b->text = calloc(1, max);
	n = fread(b->text, 1, max - 1, f);
	assert_true(n > 0 && n < max - 1);
	fclose(f);
}

/* What follows the first place of words in the report, with white space taken as one. */
static const char *after(const struct bench *b, const char *words)
{
	for (const char *at = b->text; *at; at++) {
		const char *t = at, *w = words;

		while (*w && *t) {
			if (*w == ' ' && *t == ' ') {
				while (*t == ' ')
					t++;
				w++;
			} else if (*w++ != *t++) {
				w = "\n\n";
				break;
			}
		}
		if (!*w)
			return t;
	}
	fail_msg("'%s' is not in:\n%s", words, b->text);
	return NULL;
}

static double number_after(const struct bench *b, const char *words)
{
	return strtod(after(b, words), NULL);
}

static void add_slots(struct program *p)
{
	asm_slot(p, NPROG_SLOT_INOUT, slots[0].size);
	asm_slot(p, NPROG_SLOT_INOUT, slots[1].size);
}

static struct isa_dma_side rows(unsigned int slot)
{
	struct isa_dma_side side = asm_flat(slot, 0, 128, ROW * 4);

	side.ndim = 2;
	side.step[1] = 4;
	side.count[1] = ROW;
	return side;
}

static struct isa_dma_side chip(uint32_t offset)
{
	return asm_chip(ISA_SPACE_SBUF, 0, 128, offset, ROW, 4);
}

/* Load, copy, store; beside them a scalar engine that nobody waits for. */
static struct program *chain(void)
{
	struct program *p = calloc(1, sizeof(*p));
	struct isa_inst *in;

	add_slots(p);
	asm_update(asm_dma(p, ISA_SYNC, 0, 4, chip(0), rows(0)), 3, 1);
	in = asm_inst(p, ISA_VECTOR, ISA_COPY);
	in->compute.src0 = asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 128, 0, ROW);
	in->compute.dst = asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 128, 4096, ROW);
	asm_wait(in, 3, 1);
	asm_update(in, 4, 1);
	in = asm_dma(p, ISA_SYNC, 1, 4, rows(1), chip(4096));
	asm_wait(in, 4, 1);
	in = asm_inst(p, ISA_SCALAR, ISA_MEMSET);
	in->compute.dst = asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 128, 8192, ROW);
	return p;
}

static void a_chain_is_its_own_critical_path(void **state)
{
	struct bench *b = *state;
	struct program *p = chain();
	struct exi_record rec = rig_program(b->rig, p, slots);
	double us = (double)(rec.end_ns - rec.start_ns) / 1e3;
	const char *host, *memset_row;
	double path;

	free(p);
	assert_int_equal(rec.status, EXI_OK);
	read_report(b);
	after(b, "1 programs, 1 launches, ");
	after(b, "program 'test': 1 launches");
	assert_float_equal(number_after(b, "\n device time "), us, 0.002);
	/* The path and what a launch itself takes are all of the time. */
	path = number_after(b, "critical path ");
	assert_float_equal(path + (double)(nm_launch_start_ps + nm_launch_end_ps) / 1e6, us, 0.002);
	after(b, "us in 3 steps");
	after(b, "sync 0 dma the launch\n");
	after(b, "vector 0 copy semaphore 3 of sync 0\n");
	after(b, "sync 1 dma semaphore 4 of vector 0\n");
	host = strstr(b->text, "\nhost time");
	assert_non_null(host);
	memset_row = strstr(b->text, "memset");
	assert_true(memset_row > host);

	/* Bytes: transfers and the copy touch SBUF four times, the scalar engine once more. */
	assert_int_equal(number_after(b, "HBM "), BYTES);
	after(b, "SBUF 524288 786432 ");
	after(b, "PSUM 0 0 ");
	after(b, "host 128 128 ");
	after(b, "DMA 2 transfers, 524288 bytes");
	after(b, "instructions 0 2 2 0 3\n");
}

/* Every instruction is in the table of the host's time, moved by registers or not, and it adds up. */
static void host_time_adds_up(void **state)
{
	struct bench *b = *state;
	const char *table;
	double whole, sum;

	for (unsigned int shift = 0; shift < 2; shift++) {
		struct program *p = chain();

		p->inst[ISA_SYNC][0].dma.src.shift = (uint8_t)shift;
		p->inst[ISA_VECTOR][0].compute.shift[0] = (uint8_t)shift;
		assert_int_equal(rig_program(b->rig, p, slots).status, EXI_OK);
		free(p);
	}
	read_report(b);
	after(b, "host us 0.0 ");
	/* Names come before, too: only the table is left. */
	table = after(b, "\nhost time of all launches: ");
	memmove(b->text, table, strlen(table) + 1);
	whole = strtod(b->text, NULL);
	assert_true(whole > 0 && whole < 10e3);
	assert_int_equal(number_after(b, "sync dma "), 4);
	assert_int_equal(number_after(b, "vector copy "), 2);
	assert_int_equal(number_after(b, "scalar memset "), 2);
	sum = number_after(b, "sync dma 4 ") + number_after(b, "vector copy 2 ") +
	      number_after(b, "scalar memset 2 ") + number_after(b, " sequencing 0 ");
	assert_true(number_after(b, "vector copy 2 ") > 0);
	assert_float_equal(sum, whole, 0.003);
}

/* Which of the engines waits for what: its engine, its queue, DMA engines. */
static void waits_are_told_apart(void **state)
{
	struct bench *b = *state;
	struct program *p = calloc(1, sizeof(*p));

	add_slots(p);
	for (unsigned int i = 0; i < 3; i++)
		asm_dma(p, ISA_SYNC, 0, 4, chip(i * 4096), rows(0));
	assert_int_equal(rig_program(b->rig, p, slots).status, EXI_OK);
	read_report(b);
	after(b, "us in 3 steps");
	after(b, "sync 0 dma the launch\n");
	after(b, "sync 1 dma its queue, behind sync 0\n");
	after(b, "sync 2 dma its queue, behind sync 1\n");

	for (unsigned int i = 1; i < 3; i++)
		p->inst[ISA_SYNC][i].dma_queue = (uint8_t)i;
	memset(&p->inst[ISA_SYNC][3], 0, sizeof(p->inst[0][0]));
	p->count[ISA_SYNC] = 3;
	assert_int_equal(rig_program(b->rig, p, slots).status, EXI_OK);
	read_report(b);
	after(b, "sync 2 dma a DMA engine, behind sync 1\n");
	free(p);
}

static void engines_are_used_as_they_are(void **state)
{
	const double khz = 960000, cycles = 8192 + 60;
	struct bench *b = *state;
	struct program *p = calloc(1, sizeof(*p));
	struct exi_record rec;
	double busy;

	add_slots(p);
	for (unsigned int i = 0; i < 3; i++) {
		struct isa_inst *in = asm_inst(p, ISA_VECTOR, ISA_MEMSET);

		in->compute.dst = asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 128, 0, 8192);
	}
	rec = rig_program(b->rig, p, slots);
	assert_int_equal(rec.status, EXI_OK);
	free(p);
	read_report(b);
	after(b, "vector 1 memset its engine, behind vector 0\n");
	/* 0 of tensor, then vector. */
	busy = strtod(after(b, "busy 0.0 % "), NULL);
	assert_float_equal(busy, 100 * 3 * cycles * 1e6 / khz / (double)(rec.end_ns - rec.start_ns),
			   0.2);
	after(b, "vector memset 3 steps\n");
	after(b, " 8252 vector 1 memset");
}

/* Launches of one program are one entry; the longest in all comes first. */
static void launches_add_up(void **state)
{
	struct bench *b = *state;
	struct program *p = chain();
	const char *first, *second;
	struct exi_launch l;
	uint64_t ns = 0;
	size_t size;
	void *image;

	assert_int_equal(rig_program(b->rig, p, slots).status, EXI_OK);
	p->count[ISA_SCALAR] = 0;
	image = asm_finish(p, &size);
	strcpy((char *)((struct nprog_header *)image)->name, "often");
	asm_seal(image, size);
	l = rig_load(b->rig, image, size);
	for (unsigned int i = 0; i < 5; i++) {
		struct exi_record rec = rig_run(b->rig, 0, l, slots, 2);

		assert_int_equal(rec.status, EXI_OK);
		ns += rec.end_ns - rec.start_ns;
	}
	free(image);
	free(p);
	read_report(b);
	after(b, "2 programs, 6 launches, ");
	first = after(b, "program 'often': 5 launches");
	second = after(b, "program 'test': 1 launches");
	assert_true(first < second);
	assert_float_equal(strtod(strstr(first, "us a launch, ") + 13, NULL), (double)ns / 1e3,
			   0.005);
	/* Throttled, the same program takes longer. */
	nm_core_throttle(b->rig->core, 10);
	assert_int_equal(rig_run(b->rig, 0, l, slots, 2).status, EXI_OK);
	read_report(b);
	assert_non_null(strstr(after(b, "program 'often': 6 launches"), " to "));
}

/* A launch that fails is no launch; a file that cannot be written is an error. */
static void failures(void **state)
{
	struct bench *b = *state;
	struct program *p = calloc(1, sizeof(*p));
	struct nm_report *nowhere = nm_report_create("/nowhere/report");

	asm_wait(asm_inst(p, ISA_SYNC, ISA_NOP), 0, 1);
	assert_int_equal(rig_program(b->rig, p, slots).status, EXI_FAULT_DEADLOCK);
	free(p);
	read_report(b);
	after(b, "0 programs, 0 launches, 0.000 us");
	assert_int_equal(nm_report_write(nowhere), -ENOENT);
	nm_report_destroy(nowhere);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_chain_is_its_own_critical_path),
		TEST(host_time_adds_up),
		TEST(waits_are_told_apart),
		TEST(engines_are_used_as_they_are),
		TEST(launches_add_up),
		TEST(failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
