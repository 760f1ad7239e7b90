// SPDX-License-Identifier: Apache-2.0
/*
 * What the checking mode costs: CPU time of the host for a launch of a small and of a long program, without it
 * and with it; the first launch, which replays, apart. Usage: check_bench [ROUNDS]
 */
#include <math.h>

#include "rig.h"

#define LONG_INSTS 120
#define TURNS	   5 /* the best counts: others use the machine too */

static const struct exi_slot slot = { .base = 0,
				      .size = 16u << 20,
				      .rights = EXI_SLOT_READ | EXI_SLOT_WRITE };

/* n times: load, work on it, store; all in one buffer. */
static void *program(unsigned int n, size_t *size)
{
	struct program *p = calloc(1, sizeof(*p));
	void *image;

	asm_slot(p, NPROG_SLOT_INOUT, slot.size);
	for (unsigned int i = 0; i < n; i++) {
		struct isa_dma_side side = asm_flat(0, 0, 128, 2048);
		struct isa_inst *in;

		side.ndim = 2;
		side.step[1] = 4;
		side.count[1] = 512;
		in = asm_dma(p, ISA_SYNC, 0, 4, asm_chip(ISA_SPACE_SBUF, 0, 128, 0, 512, 4), side);
		if (i)
			asm_wait(in, 2, i);
		asm_update(in, 0, 1);
		in = asm_inst(p, ISA_VECTOR, ISA_COPY);
		in->compute.src0 = asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 128, 0, 512);
		in->compute.dst = asm_row(ISA_SPACE_SBUF, ISA_FP32, 0, 128, 4096, 512);
		asm_wait(in, 0, i + 1);
		asm_update(in, 1, 1);
		in = asm_dma(p, ISA_GPSIMD, 1, 4, side,
			     asm_chip(ISA_SPACE_SBUF, 0, 128, 4096, 512, 4));
		asm_wait(in, 1, i + 1);
		asm_update(in, 2, 1);
	}
	image = asm_finish(p, size);
	free(p);
	return image;
}

static double now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static void measure(uint32_t check, unsigned int n, unsigned int rounds, double *first,
		    double *each)
{
	struct rig *r = rig_create_checking(check);
	size_t size;
	void *image = program(n, &size);
	struct exi_launch l;
	double start;

	rig_queue(r, 0, 1);
	rig_written(r, 0, slot.size);
	l = rig_load(r, image, size);
	start = now_us();
	for (unsigned int i = 0; i <= rounds; i++) {
		struct exi_record rec = rig_run(r, 0, l, &slot, 1);

		if (rec.status != EXI_OK) {
			fprintf(stderr, "check_bench: fault %u at pc %u\n", rec.status, rec.pc);
			exit(1);
		}
		if (!i) {
			*first = fmin(*first, now_us() - start);
			start = now_us();
		}
	}
	*each = fmin(*each, (now_us() - start) / rounds);
	free(image);
	rig_destroy(r);
}

int main(int argc, char **argv)
{
	unsigned int rounds = argc > 1 ? (unsigned int)atoi(argv[1]) : 2000;
	static const unsigned int lengths[] = { 1, LONG_INSTS };

	printf("%-20s %10s %10s %8s %10s %10s\n", "CPU us a launch", "off", "checking", "ratio",
	       "first, off", "checking");
	for (unsigned int i = 0; i < 2; i++) {
		double first_off = 1e9, first_on = 1e9, off = 1e9, on = 1e9;

		for (unsigned int turn = 0; turn < TURNS; turn++) {
			measure(0, lengths[i], rounds / lengths[i] + 1, &first_off, &off);
			measure(NM_CHECK_ALL, lengths[i], rounds / lengths[i] + 1, &first_on, &on);
		}
		printf("%3u instructions     %10.1f %10.1f %8.2f %10.1f %10.1f\n", 3 * lengths[i],
		       off, on, on / off, first_off, first_on);
	}
	return 0;
}
