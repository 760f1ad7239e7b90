// SPDX-License-Identifier: Apache-2.0
/*
 * The text of /proc/PID/fdinfo/FD of our driver: the keys that every DRM driver has
 * (Documentation/gpu/drm-usage-stats.rst) and ours (driver/neuron_fdinfo.c). Unknown keys are
 * those of a newer driver.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "neuron_devices.h"

/* A size as drm_print_memory_stats() prints it. */
static uint64_t memory_size(const char *text)
{
	char unit[8] = "";
	uint64_t n = 0;

	if (sscanf(text, "%" SCNu64 " %7s", &n, unit) < 1)
		return 0;
	if (!strcmp(unit, "KiB"))
		return n << 10;
	if (!strcmp(unit, "MiB"))
		return n << 20;
	return n;
}

/* BYTES LAUNCHES NAME, where the name may have spaces and may be missing. */
static void add_program(struct nd_programs *programs, uint32_t id, const char *value)
{
	struct nd_program p = { .id = id };
	int name = 0;

	if (!programs || programs->n == ND_PROGRAMS_MAX ||
	    sscanf(value, "%" SCNu64 " %" SCNu64 " %n", &p.bytes, &p.launches, &name) < 2)
		return;
	if (name)
		snprintf(p.name, sizeof(p.name), "%s", value + name);
	programs->list[programs->n++] = p;
}

/* Keys with a number at the end; whether it was one. */
static bool numbered(struct nd_client *c, struct nd_programs *programs, const char *key,
		     const char *value)
{
	unsigned int i;
	int end = 0;

	if (sscanf(key, "neuron-core-%u%n", &i, &end) == 1 && !key[end]) {
		if (i < ND_CORES_MAX)
			c->ns_of_core[i] = strtoull(value, NULL, 10);
		return true;
	}
	if (sscanf(key, "neuron-program-%u%n", &i, &end) == 1 && !key[end]) {
		add_program(programs, i, value);
		return true;
	}
	return false;
}

static void plain(struct nd_client *c, const char *key, const char *value)
{
	const struct {
		const char *key;
		uint64_t *to;
		bool memory;
	} rows[] = {
		{ "drm-client-id", &c->id, false },
		{ "drm-engine-core", &c->core_ns, false },
		{ "drm-engine-copy", &c->copy_ns, false },
		{ "drm-resident-hbm", &c->hbm_bytes, true },
		{ "drm-resident-memory", &c->host_bytes, true },
		{ "neuron-launches", &c->launches, false },
		{ "neuron-constants", &c->constant_bytes, false },
		{ "neuron-code", &c->code_bytes, false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!strcmp(key, rows[i].key))
			*rows[i].to = rows[i].memory ? memory_size(value) :
						       strtoull(value, NULL, 10);
	if (!strcmp(key, "neuron-programs"))
		c->programs = (uint32_t)strtoul(value, NULL, 10);
}

bool nd_fdinfo(FILE *f, struct nd_client *c, char *pdev, size_t pdev_size,
	       struct nd_programs *programs)
{
	size_t first = programs ? programs->n : 0;
	char line[256], driver[32] = "";
	char *value;

	pdev[0] = 0;
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		value = strchr(line, ':');
		if (!value)
			continue;
		*value++ = 0;
		value += strspn(value, " \t");
		if (!strcmp(line, "drm-driver"))
			snprintf(driver, sizeof(driver), "%s", value);
		else if (!strcmp(line, "drm-pdev"))
			snprintf(pdev, pdev_size, "%s", value);
		else if (!numbered(c, programs, line, value))
			plain(c, line, value);
	}
	if (strcmp(driver, "neuron") != 0) {
		if (programs)
			programs->n = first;
		return false;
	}
	/* The id may have come behind them. */
	for (size_t i = first; programs && i < programs->n; i++)
		programs->list[i].client = c->id;
	return true;
}
