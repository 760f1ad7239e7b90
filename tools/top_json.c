// SPDX-License-Identifier: Apache-2.0
#include "top.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <json.h>

/* Raised when a member goes away or changes its meaning; new ones may come at any time. */
#define SCHEMA_VERSION 1

static void put_double(struct json_object *o, const char *key, double value, int digits)
{
	char text[64];

	/* What is not known is null, as JSON has no other word for it. */
	if (isnan(value)) {
		json_object_object_add(o, key, NULL);
		return;
	}
	snprintf(text, sizeof(text), "%.*f", digits, value);
	json_object_object_add(o, key, json_object_new_double_s(value, text));
}

static void put_percent(struct json_object *o, const char *key, double value)
{
	put_double(o, key, value * 100, 2);
}

static void put_count(struct json_object *o, const char *key, uint64_t value)
{
	json_object_object_add(o, key, json_object_new_uint64(value));
}

static void put_string(struct json_object *o, const char *key, const char *value)
{
	json_object_object_add(o, key, value[0] ? json_object_new_string(value) : NULL);
}

/* A reading in thousandths or millionths of its unit. */
static void put_reading(struct json_object *o, const char *key, int64_t value, double unit)
{
	put_double(o, key, value == ND_UNKNOWN ? NAN : (double)value / unit, 3);
}

static void put_errors(struct json_object *o, const char *key, int64_t value)
{
	json_object_object_add(o, key, value == ND_UNKNOWN ? NULL : json_object_new_int64(value));
}

static struct json_object *json_core(const struct top_device *d, uint32_t index)
{
	const struct top_core *c = &d->core[index];
	struct json_object *o = json_object_new_object(), *engines = json_object_new_object();
	struct json_object *insts = json_object_new_object();

	for (int e = 0; e < ND_ENGINES; e++) {
		put_percent(engines, top_engine_names[e], c->engine[e]);
		put_double(insts, top_engine_names[e], c->insts[e], 1);
	}
	put_count(o, "neuroncore_id", d->d.first_core + index);
	put_percent(o, "utilization_percent", c->used);
	json_object_object_add(o, "engine_utilization_percent", engines);
	json_object_object_add(o, "engine_instructions_per_second", insts);
	put_double(o, "launches_per_second", c->launches, 1);
	put_double(o, "dma_bytes_per_second", c->dma_bytes, 0);
	json_object_object_add(o, "launches_faulted",
			       c->known ? json_object_new_uint64(c->faults) : NULL);
	put_count(o, "queues", c->queues);
	put_count(o, "queues_used", c->queues_used);
	return o;
}

static struct json_object *json_device(const struct top_device *d)
{
	struct json_object *o = json_object_new_object(), *cores = json_object_new_array();
	char serial[24], why[256] = "";

	if (d->d.error)
		nd_why(&d->d, why, sizeof(why));
	snprintf(serial, sizeof(serial), "%016" PRIx64, d->d.serial);
	put_count(o, "neuron_device", d->d.minor);
	put_string(o, "bdf", d->d.bdf);
	put_string(o, "error", why);
	put_string(o, "arch", nd_arch_name(d->d.arch));
	json_object_object_add(o, "virtual", json_object_new_boolean(d->d.revision == 255));
	put_string(o, "serial_number", serial);
	put_string(o, "driver_version", d->d.driver);
	put_count(o, "memory_total_bytes", d->d.hbm_bytes);
	put_count(o, "memory_used_bytes", d->d.hbm_used);
	put_reading(o, "power_watts", d->d.power_uw, 1e6);
	put_reading(o, "temperature_celsius", d->d.temp_mc, 1e3);
	put_errors(o, "mem_ecc_uncorrected", d->d.hbm_errors);
	put_errors(o, "sram_ecc_uncorrected", d->d.sram_errors);
	put_percent(o, "utilization_percent", d->used);
	for (uint32_t c = 0; c < d->d.cores && c < ND_CORES_MAX; c++)
		json_object_array_add(cores, json_core(d, c));
	json_object_object_add(o, "neuroncores", cores);
	return o;
}

/* Its part of one device, with its programs there. */
static struct json_object *json_use(const struct top_view *v, const struct top_app *a,
				    const struct top_use *u)
{
	struct json_object *o = json_object_new_object(), *cores = json_object_new_array();
	struct json_object *models = json_object_new_array();
	const struct top_device *d = top_view_device(v, (int)u->minor);
	char text[32];

	put_count(o, "neuron_device", u->minor);
	for (uint32_t c = 0; d && c < d->d.cores && c < ND_CORES_MAX; c++) {
		snprintf(text, sizeof(text), "%.2f", u->core[c] * 100);
		json_object_array_add(cores,
				      isnan(u->core[c]) ?
					      NULL :
					      json_object_new_double_s(u->core[c] * 100, text));
	}
	json_object_object_add(o, "neuroncore_utilization_percent", cores);
	put_percent(o, "copy_utilization_percent", u->copy);
	put_count(o, "device_memory_bytes", u->hbm);
	put_count(o, "device_memory_constants_bytes", u->constants);
	put_count(o, "device_memory_code_bytes", u->code);
	put_count(o, "host_memory_tensors_bytes", u->host);
	for (size_t i = 0; i < a->n_programs; i++) {
		const struct top_program *p = &v->programs[a->first_program + i];
		struct json_object *m;

		if (p->minor != u->minor)
			continue;
		m = json_object_new_object();
		put_count(m, "model_id", p->p.id);
		put_string(m, "name", p->p.name);
		put_count(m, "device_memory_bytes", p->p.bytes);
		put_count(m, "launches", p->p.launches);
		put_double(m, "launches_per_second", p->launches, 1);
		json_object_array_add(models, m);
	}
	json_object_object_add(o, "models", models);
	return o;
}

static struct json_object *json_app(const struct top_view *v, const struct top_app *a)
{
	struct json_object *o = json_object_new_object(), *uses = json_object_new_array();

	put_count(o, "pid", (uint64_t)a->pid);
	put_string(o, "command", a->command);
	put_percent(o, "vcpu_user_percent", a->user);
	put_percent(o, "vcpu_system_percent", a->system);
	put_count(o, "host_memory_bytes", a->rss);
	put_count(o, "models_loaded", a->programs);
	put_double(o, "launches_per_second", a->launches, 1);
	for (size_t i = 0; i < a->n_uses; i++)
		json_object_array_add(uses, json_use(v, a, &a->uses[i]));
	json_object_object_add(o, "neuron_devices", uses);
	return o;
}

char *top_json(const struct top_view *v, const struct top_facts *facts, double seconds)
{
	struct json_object *o = json_object_new_object(), *devices = json_object_new_array();
	struct json_object *apps = json_object_new_array();
	char *text;

	put_count(o, "schema_version", SCHEMA_VERSION);
	put_double(o, "timestamp_seconds", seconds, 3);
	put_double(o, "period_seconds", v->seconds, 3);
	put_string(o, "instance_type", facts->instance_type);
	put_string(o, "instance_id", facts->instance_id);
	put_percent(o, "vcpu_user_percent", v->cpu_user);
	put_percent(o, "vcpu_system_percent", v->cpu_system);
	for (size_t i = 0; i < v->n_devices; i++)
		json_object_array_add(devices, json_device(&v->devices[i]));
	for (size_t i = 0; i < v->n_apps; i++)
		json_object_array_add(apps, json_app(v, &v->apps[i]));
	json_object_object_add(o, "neuron_devices", devices);
	json_object_object_add(o, "neuron_processes", apps);
	text = strdup(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN |
								JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(o);
	return text;
}
