/* SPDX-License-Identifier: Apache-2.0 */
/* A machine for the tests: two devices of two cores, two processes, two samples a second apart. */
#ifndef SAMPLES_H
#define SAMPLES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "top.h"

#define MS  1000000ull
#define MIB (1ull << 20)

/* Pid 100 has a file on both devices, 200 one on the second. */
static struct top_sample first, second;
static struct top_view view;

static void sample_device(struct nd_device *d, unsigned int minor)
{
	*d = (struct nd_device){
		.minor = minor,
		.arch = 3,
		.cores = 2,
		.first_core = 2 * minor,
		.serial = 1000 + minor,
		.hbm_bytes = 1024 * MIB,
		.hbm_used = 64 * MIB,
		.power_uw = ND_UNKNOWN,
		.temp_mc = ND_UNKNOWN,
		.hbm_errors = ND_UNKNOWN,
		.sram_errors = ND_UNKNOWN,
	};
	snprintf(d->bdf, sizeof(d->bdf), "0000:00:0%u.0", 4 + minor);
	for (int c = 0; c < 2; c++)
		d->core[c] = (struct nd_core){ .known = true, .active_known = true, .queues = 8 };
}

static void sample_client(struct nd_client *c, pid_t pid, uint64_t id, unsigned int minor)
{
	*c = (struct nd_client){ .pid = pid, .id = id, .minor = minor, .programs = 1 };
	snprintf(c->command, sizeof(c->command), "/usr/bin/python3 train%d.py", pid);
	c->hbm_bytes = 16 * MIB;
	c->constant_bytes = 2 * MIB;
	c->code_bytes = MIB;
	c->host_bytes = 4 * MIB;
}

static void sample_make(struct top_sample *s)
{
	memset(s, 0, sizeof(*s));
	s->ns = 5000 * MS;
	s->cpu_total = 1000;
	s->cpu_ticks = 200;
	s->n_devices = 2;
	sample_device(&s->devices[0], 0);
	sample_device(&s->devices[1], 1);
	s->n_clients = 3;
	sample_client(&s->clients[0], 100, 1, 0);
	sample_client(&s->clients[1], 100, 2, 1);
	sample_client(&s->clients[2], 200, 3, 1);
	s->n_processes = 2;
	s->processes[0] = (struct top_process){ .pid = 100, .rss_bytes = 100 * MIB };
	s->processes[1] = (struct top_process){ .pid = 200, .rss_bytes = 50 * MIB };
	s->programs.n = 3;
	for (uint32_t i = 0; i < 3; i++) {
		s->programs.list[i] = (struct nd_program){
			.client = 1 + i, .id = 7, .bytes = MIB, .launches = 5
		};
		snprintf(s->programs.list[i].name, sizeof(s->programs.list[i].name), "matmul");
	}
}

/*
 * In the second between: core 0 of device 1 had work for half of it. It took 100 ms of its own
 * time, 75 of these for pid 100 and 25 for 200; the tensor engine was at work for 40 of them.
 */
static int samples_setup(void **state)
{
	struct nd_core *core = &second.devices[1].core[0];

	(void)state;
	sample_make(&first);
	second = first;
	second.ns += 1000 * MS;
	core->active_ns = 500 * MS;
	core->busy_ns = 100 * MS;
	core->engine_ns[0] = 40 * MS;
	core->insts[0] = 3000;
	core->launches = 20;
	core->dma_bytes = 8 * MIB;
	second.clients[1].ns_of_core[0] = 75 * MS;
	second.clients[2].ns_of_core[0] = 25 * MS;
	second.clients[1].launches = 15;
	second.clients[2].launches = 5;
	second.clients[1].copy_ns = 100 * MS;
	second.programs.list[1].launches = 20;
	second.cpu_total += 200;
	second.cpu_user += 50;
	second.processes[0].user += 20;
	second.processes[0].system += 10;
	top_view_make(&view, &first, &second);
	return 0;
}

#endif /* SAMPLES_H */
