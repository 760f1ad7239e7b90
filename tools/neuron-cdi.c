// SPDX-License-Identifier: Apache-2.0
/*
 * neuron-cdi: describes the machine's devices for container runtimes, as the Container Device
 * Interface asks (github.com/cncf-tags/container-device-interface, SPEC.md).
 *
 * A device is called by its number, a core of it N:CORE, and all of them "all":
 *
 *	neuron-cdi >/etc/cdi/neuron.json
 *	podman run --device amazonaws.com/neuron=0:3 ...
 *
 * Inside, the runtime counts the cores of the devices that it can open; so a container with one
 * core of one device is told the core's index on that device. With NEURON_LOGICAL_NC_CONFIG=2 these
 * are logical cores, as they are in the containers then.
 */
#define _GNU_SOURCE
#include <argp.h>
#include <stdio.h>
#include <string.h>

#include <json.h>

#include "neuron_devices.h"

#define CDI_VERSION "0.6.0"
#define CDI_KIND    "amazonaws.com/neuron"

static struct json_object *string(const char *text)
{
	return json_object_new_string(text);
}

static void add_node(struct json_object *nodes, const struct nd_device *d)
{
	struct json_object *node = json_object_new_object();
	char path[64];

	snprintf(path, sizeof(path), "/dev/accel/accel%u", d->minor);
	json_object_object_add(node, "path", string(path));
	json_object_array_add(nodes, node);
}

/* Takes nodes and env, which may be NULL, into a new entry of the list of devices. */
static void add_device(struct json_object *list, const char *name, struct json_object *nodes,
		       struct json_object *env)
{
	struct json_object *o = json_object_new_object(), *edits = json_object_new_object();

	json_object_object_add(edits, "deviceNodes", nodes);
	if (env)
		json_object_object_add(edits, "env", env);
	json_object_object_add(o, "name", string(name));
	json_object_object_add(o, "containerEdits", edits);
	json_object_array_add(list, o);
}

static void add_cores(struct json_object *list, const struct nd_device *d)
{
	const uint32_t lnc = nd_lnc(d);

	for (uint32_t core = 0; core < d->cores / lnc; core++) {
		struct json_object *nodes = json_object_new_array(), *env = json_object_new_array();
		char name[32], text[64];

		snprintf(name, sizeof(name), "%u:%u", d->minor, core);
		add_node(nodes, d);
		snprintf(text, sizeof(text), "NEURON_RT_VISIBLE_CORES=%u", core);
		json_object_array_add(env, string(text));
		snprintf(text, sizeof(text), "NEURON_LOGICAL_NC_CONFIG=%u", lnc);
		json_object_array_add(env, string(text));
		add_device(list, name, nodes, env);
	}
}

static struct json_object *specification(const struct nd_device *devices, size_t n)
{
	struct json_object *o = json_object_new_object(), *list = json_object_new_array();
	struct json_object *every = json_object_new_array();

	for (size_t i = 0; i < n; i++) {
		struct json_object *nodes = json_object_new_array();
		char name[16];

		if (devices[i].error) {
			json_object_put(nodes);
			continue;
		}
		snprintf(name, sizeof(name), "%u", devices[i].minor);
		add_node(nodes, &devices[i]);
		add_node(every, &devices[i]);
		add_device(list, name, nodes, NULL);
		add_cores(list, &devices[i]);
	}
	add_device(list, "all", every, NULL);
	json_object_object_add(o, "cdiVersion", string(CDI_VERSION));
	json_object_object_add(o, "kind", string(CDI_KIND));
	json_object_object_add(o, "devices", list);
	return o;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.doc = "Prints a Container Device Interface specification of the Neuron devices: "
		       "store it as /etc/cdi/neuron.json, then "
		       "'podman run --device " CDI_KIND "=0' passes a device, '=0:3' one core "
		       "of it, '=all' all devices.",
	};
	static struct nd_device devices[ND_DEVICES_MAX];
	struct json_object *o;
	size_t n, usable = 0;
	char why[256];

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	n = nd_devices(devices);
	for (size_t i = 0; i < n; i++) {
		usable += !devices[i].error;
		if (!devices[i].error)
			continue;
		nd_why(&devices[i], why, sizeof(why));
		fprintf(stderr, "neuron-cdi: left out: %s\n", why);
	}
	if (!usable) {
		fputs("neuron-cdi: no device to describe: is the module neuron loaded?\n", stderr);
		return 1;
	}
	o = specification(devices, n);
	puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY |
						       JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(o);
	return nd_end_output("neuron-cdi");
}
