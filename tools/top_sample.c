// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "top.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* user, nice, system, idle, iowait, irq, softirq, steal; guest time is in user already. */
#define CPU_COLUMNS 8

static void read_cpu(struct top_sample *s)
{
	uint64_t t[CPU_COLUMNS] = { 0 };
	FILE *f = fopen("/proc/stat", "re");

	s->cpu_user = s->cpu_system = s->cpu_total = 0;
	s->cpu_ticks = (double)sysconf(_SC_CLK_TCK) * (double)sysconf(_SC_NPROCESSORS_ONLN);
	if (!f)
		return;
	if (fscanf(f,
		   "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
		   " %" SCNu64 " %" SCNu64,
		   &t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], &t[7]) >= 4) {
		s->cpu_user = t[0] + t[1];
		s->cpu_system = t[2] + t[5] + t[6];
		for (int i = 0; i < CPU_COLUMNS; i++)
			s->cpu_total += t[i];
	}
	fclose(f);
}

/* False: it has gone. */
static bool read_process(struct top_process *p, pid_t pid)
{
	char path[64], line[1024] = "", *end;
	uint64_t pages = 0;
	FILE *f;

	*p = (struct top_process){ .pid = pid };
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (!fgets(line, sizeof(line), f))
		line[0] = 0;
	fclose(f);
	/* The name, in parentheses, may hold anything. Behind it: state, 10 numbers, utime, stime. */
	end = strrchr(line, ')');
	if (!end ||
	    sscanf(end + 1, " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %" SCNu64 " %" SCNu64,
		   &p->user, &p->system) != 2)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/statm", pid);
	f = fopen(path, "re");
	if (f && fscanf(f, "%*u %" SCNu64, &pages) == 1)
		p->rss_bytes = pages * (uint64_t)sysconf(_SC_PAGESIZE);
	if (f)
		fclose(f);
	return true;
}

/* A moment: the devices first, since their counters are what rates are made of. */
void top_sample_take(struct top_sample *s)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	s->ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	s->n_devices = nd_devices(s->devices);
	read_cpu(s);
	s->n_clients =
		nd_clients(s->devices, s->n_devices, s->clients, ND_PROCESSES_MAX, &s->programs);
	s->n_processes = 0;
	for (size_t i = 0; i < s->n_clients; i++) {
		/* In order of pids. */
		if (i && s->clients[i].pid == s->clients[i - 1].pid)
			continue;
		s->n_processes += read_process(&s->processes[s->n_processes], s->clients[i].pid);
	}
}
