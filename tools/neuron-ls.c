// SPDX-License-Identifier: Apache-2.0
/* neuron-ls: the Neuron devices of the machine and who uses them. */
#define _GNU_SOURCE
#include <argp.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json.h>

#include "neuron_devices.h"

struct options {
	bool wide, all, json, topology;
};

static struct nd_device devices[ND_DEVICES_MAX];
static struct nd_client clients[ND_PROCESSES_MAX];
static size_t n_devices, n_clients;

static const struct argp_option option_table[] = {
	{ "wide", 'w', NULL, 0, "with the processes of each device", 0 },
	{ "show-all-procs", 'a', NULL, 0,
	  "with the processes, and all files that each has open on the device", 0 },
	{ "topology", 't', NULL, 0, "with the connections between the devices", 0 },
	{ "json-output", 'j', NULL, 0, "JSON instead of tables", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case 'w':
		o->wide = true;
		break;
	case 'a':
		o->all = o->wide = true;
		break;
	case 't':
		o->topology = true;
		break;
	case 'j':
		o->json = true;
		break;
	case ARGP_KEY_ARG:
		argp_error(state, "unexpected argument '%s'", arg);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

/* Whether a file of the same process on the same device comes before it. */
static bool is_second(const struct nd_client *c)
{
	for (const struct nd_client *b = clients; b < c; b++)
		if (b->pid == c->pid && b->minor == c->minor)
			return true;
	return false;
}

/* Copies the next client of a device from *i on: each file, or each process with its files' sums. */
static bool next_client(const struct nd_device *d, size_t *i, bool files, struct nd_client *c)
{
	while (*i < n_clients) {
		const struct nd_client *found = &clients[(*i)++];

		if (found->minor != d->minor || (!files && is_second(found)))
			continue;
		*c = *found;
		for (const struct nd_client *b = found + 1; b < clients + n_clients && !files;
		     b++) {
			if (b->pid != c->pid || b->minor != c->minor)
				continue;
			c->core_ns += b->core_ns;
			c->copy_ns += b->copy_ns;
			c->hbm_bytes += b->hbm_bytes;
			c->host_bytes += b->host_bytes;
		}
		return true;
	}
	return false;
}

/* --- JSON --------------------------------------------------------------------------------- */

static struct json_object *json_processes(const struct nd_device *d, bool files)
{
	struct json_object *list = json_object_new_array();
	struct nd_client c;
	size_t i = 0;

	while (next_client(d, &i, files, &c)) {
		struct json_object *o = json_object_new_object();

		json_object_object_add(o, "pid", json_object_new_int(c.pid));
		json_object_object_add(o, "command", json_object_new_string(c.command));
		/* Not to be seen from outside the process. */
		json_object_object_add(o, "neuron_runtime_version", NULL);
		json_object_array_add(list, o);
	}
	return list;
}

/* Numbers of the devices that NeuronLink joins it to; null where the driver does not tell. */
static struct json_object *json_links(const struct nd_device *d)
{
	struct json_object *list;

	if (!d->has_place)
		return NULL;
	list = json_object_new_array();
	for (size_t i = 0; i < n_devices; i++)
		if (nd_linked(d, &devices[i]))
			json_object_array_add(list, json_object_new_int((int)devices[i].minor));
	return list;
}

static struct json_object *json_device(const struct nd_device *d, bool files)
{
	struct json_object *o = json_object_new_object(), *ids = json_object_new_array();
	const uint32_t lnc = nd_lnc(d);
	char serial[24];

	for (uint32_t i = 0; i < d->cores / lnc; i++)
		json_object_array_add(ids, json_object_new_int((int)(d->first_core / lnc + i)));
	snprintf(serial, sizeof(serial), "%016" PRIx64, d->serial);
	json_object_object_add(o, "neuron_device", json_object_new_int((int)d->minor));
	json_object_object_add(o, "bdf", json_object_new_string(d->bdf));
	json_object_object_add(o, "cpu_affinity", json_object_new_string(d->cpus));
	json_object_object_add(o, "numa_node", json_object_new_int(d->numa_node));
	json_object_object_add(o, "connected_to", json_links(d));
	json_object_object_add(o, "nc_count", json_object_new_int((int)(d->cores / lnc)));
	json_object_object_add(o, "logical_neuroncore_config", json_object_new_int((int)lnc));
	json_object_object_add(o, "memory_size", json_object_new_uint64(d->hbm_bytes));
	json_object_object_add(o, "neuroncore_ids", ids);
	json_object_object_add(o, "neuron_processes", json_processes(d, files));
	json_object_object_add(o, "arch", json_object_new_string(nd_arch_name(d->arch)));
	json_object_object_add(o, "virtual", json_object_new_boolean(d->revision == 255));
	json_object_object_add(o, "serial_number", json_object_new_string(serial));
	json_object_object_add(o, "memory_used", json_object_new_uint64(d->hbm_used));
	json_object_object_add(o, "driver_version", json_object_new_string(d->driver));
	return o;
}

static void print_json(const struct options *options)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < n_devices; i++)
		if (!devices[i].error)
			json_object_array_add(list, json_device(&devices[i], options->all));
	puts(json_object_to_json_string_ext(list, JSON_C_TO_STRING_PRETTY |
							  JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(list);
}

/* --- tables ------------------------------------------------------------------------------- */

#define COLUMNS 9

static const char *const heads[COLUMNS][2] = {
	{ "NEURON", "DEVICE" }, { "NEURON", "CORES" },	    { "NEURON", "CORE IDS" },
	{ "NEURON", "MEMORY" }, { "CONNECTED", "DEVICES" }, { "PCI", "BDF" },
	{ "CPU", "AFFINITY" },	{ "NUMA", "NODE" },	    { "ARCH", "" },
};

/* The same as a word. */
static void fill_links(char text[128], const struct nd_device *d)
{
	int n = 0;

	text[0] = 0;
	for (size_t i = 0; i < n_devices && n < 120; i++)
		if (nd_linked(d, &devices[i]))
			n += snprintf(text + n, 128 - (size_t)n, "%s%u", n ? ", " : "",
				      devices[i].minor);
	if (!n)
		snprintf(text, 128, "-");
}

static void fill_row(char row[COLUMNS][128], const struct nd_device *d)
{
	const uint32_t lnc = nd_lnc(d), n = d->cores / lnc, first = d->first_core / lnc;

	snprintf(row[0], 128, "%u", d->minor);
	snprintf(row[1], 128, "%u", n);
	snprintf(row[2], 128, "%u-%u", first, first + n - 1);
	snprintf(row[3], 128, "%.0f GB", (double)d->hbm_bytes / (1 << 30));
	fill_links(row[4], d);
	snprintf(row[5], 128, "%s", d->bdf);
	snprintf(row[6], 128, "%s", d->cpus);
	snprintf(row[7], 128, "%d", d->numa_node);
	snprintf(row[8], 128, "%s%s", nd_arch_name(d->arch), d->revision == 255 ? " virtual" : "");
}

static void print_rule(const int *width)
{
	for (int c = 0; c < COLUMNS; c++) {
		putchar('+');
		for (int i = 0; i < width[c] + 2; i++)
			putchar('-');
	}
	puts("+");
}

static void print_table(void)
{
	static char rows[ND_DEVICES_MAX][COLUMNS][128];
	int width[COLUMNS] = { 0 };

	for (int c = 0; c < COLUMNS; c++)
		for (int h = 0; h < 2; h++)
			if ((int)strlen(heads[c][h]) > width[c])
				width[c] = (int)strlen(heads[c][h]);
	for (size_t i = 0; i < n_devices; i++) {
		if (devices[i].error)
			continue;
		fill_row(rows[i], &devices[i]);
		for (int c = 0; c < COLUMNS; c++)
			if ((int)strlen(rows[i][c]) > width[c])
				width[c] = (int)strlen(rows[i][c]);
	}
	print_rule(width);
	for (int h = 0; h < 2; h++) {
		for (int c = 0; c < COLUMNS; c++)
			printf("| %-*s ", width[c], heads[c][h]);
		puts("|");
	}
	print_rule(width);
	for (size_t i = 0; i < n_devices; i++) {
		if (devices[i].error)
			continue;
		for (int c = 0; c < COLUMNS; c++)
			printf("| %-*s ", width[c], rows[i][c]);
		puts("|");
	}
	print_rule(width);
}

static void print_processes(bool files)
{
	printf("\n%-6s %8s %12s %12s %12s  %s\n", "DEVICE", "PID", "HBM MiB", "HOST MiB",
	       "CORE TIME s", "COMMAND");
	for (size_t d = 0; d < n_devices; d++) {
		struct nd_client c;
		size_t i = 0;

		while (next_client(&devices[d], &i, files, &c))
			printf("%-6u %8d %12.1f %12.1f %12.2f  %s\n", c.minor, c.pid,
			       (double)c.hbm_bytes / (1 << 20), (double)c.host_bytes / (1 << 20),
			       (double)c.core_ns / 1e9, c.command);
	}
}

/* A line and a column for each device: X where NeuronLink joins two. */
static void print_topology(void)
{
	puts("\nNeuronLink:");
	printf("%8s", "");
	for (size_t i = 0; i < n_devices; i++)
		printf("%4u", devices[i].minor);
	putchar('\n');
	for (size_t i = 0; i < n_devices; i++) {
		printf("%8u", devices[i].minor);
		for (size_t j = 0; j < n_devices; j++)
			printf("%4s", i == j				  ? "." :
				      nd_linked(&devices[i], &devices[j]) ? "X" :
									    "-");
		if (devices[i].has_place)
			printf("   routing id %u", devices[i].routing_id);
		putchar('\n');
	}
}

static void print_tables(const struct options *options)
{
	char type[64], id[64];
	uint32_t lnc = 1;

	for (size_t i = 0; i < n_devices; i++)
		if (!devices[i].error && nd_lnc(&devices[i]) > lnc)
			lnc = nd_lnc(&devices[i]);
	nd_instance(type, id, sizeof(type));
	printf("instance-type: %s\n", type[0] ? type : "-");
	printf("instance-id: %s\n", id[0] ? id : "-");
	printf("logical-neuroncore-config: %u\n", lnc);
	print_table();
	if (options->wide)
		print_processes(options->all);
	if (options->topology)
		print_topology();
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		option_table,
		parse,
		NULL,
		"Lists the Neuron devices that the neuron accel driver serves, and the processes "
		"that use them, as far as the caller may see these.",
		NULL,
		NULL,
		NULL,
	};
	struct options options = { 0 };
	size_t usable = 0;
	char why[256];

	argp_parse(&argp, argc, argv, 0, NULL, &options);
	n_devices = nd_devices(devices);
	for (size_t i = 0; i < n_devices; i++) {
		usable += !devices[i].error;
		if (devices[i].error) {
			nd_why(&devices[i], why, sizeof(why));
			fprintf(stderr, "neuron-ls: %s\n", why);
		}
	}
	if (!usable) {
		if (!n_devices)
			fputs("neuron-ls: no Neuron device: is there one in lspci -d 1d0f: and is "
			      "the "
			      "module neuron loaded?\n",
			      stderr);
		return 1;
	}
	n_clients = nd_clients(devices, n_devices, clients, ND_PROCESSES_MAX, NULL);
	if (options.json)
		print_json(&options);
	else
		print_tables(&options);
	return nd_end_output("neuron-ls");
}
