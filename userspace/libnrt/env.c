// SPDX-License-Identifier: Apache-2.0
/* Every environment variable of the runtime: default, meaning, parser. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "env.h"

struct variable {
	const char *name;
	const char *preset;
	const char *meaning; /* ends the error message about a bad value */
	bool (*parse)(struct nrti_config *config, const char *value);
};

static bool parse_number(const char *text, uint64_t least, uint64_t most, uint64_t *value)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*value = strtoull(text, &end, 10);
	return !errno && !*end && *value >= least && *value <= most;
}

static bool parse_word(const char *text, const char *const *words, unsigned int n,
		       unsigned int *index)
{
	for (*index = 0; *index < n; ++*index) {
		if (!strcasecmp(text, words[*index]))
			return true;
	}
	return false;
}

static bool parse_transport(struct nrti_config *config, const char *value)
{
	static const char *const words[] = { "auto", "accel", "model" };
	unsigned int index;

	if (!parse_word(value, words, 3, &index))
		return false;
	config->transport = (enum nrti_transport_choice)index;
	return true;
}

/* Appends "a" or "a-b"; *text moves behind it. */
static bool parse_range(struct nrti_config *config, const char **text)
{
	unsigned long first, last;
	char *end;

	if (!isdigit((unsigned char)**text))
		return false;
	first = last = strtoul(*text, &end, 10);
	if (*end == '-') {
		if (!isdigit((unsigned char)end[1]))
			return false;
		last = strtoul(end + 1, &end, 10);
	}
	*text = end;
	if (last < first || last >= NRTI_CORES_MAX)
		return false;
	for (unsigned long core = first; core <= last; core++) {
		for (uint32_t i = 0; i < config->n_visible; i++) {
			if (config->visible[i] == core)
				return false;
		}
		config->visible[config->n_visible++] = (uint16_t)core;
	}
	return true;
}

static bool parse_visible(struct nrti_config *config, const char *value)
{
	config->all_visible = !*value;
	config->n_visible = 0;
	while (*value) {
		if (!parse_range(config, &value))
			return false;
		if (*value == ',' && value[1])
			value++;
		else if (*value)
			return false;
	}
	return true;
}

/* One setting by two names, both in use: set twice, it must be the same. */
static bool parse_lnc(struct nrti_config *config, const char *value)
{
	const uint32_t before = config->lnc;
	uint64_t n;

	if (!*value)
		return true;
	if (!parse_number(value, 1, NRTI_LNC_MAX, &n))
		return false;
	config->lnc = (uint32_t)n;
	return !before || before == config->lnc;
}

static bool parse_num_cores(struct nrti_config *config, const char *value)
{
	uint64_t n;

	if (!*value) {
		config->num_cores = 0;
		return true;
	}
	if (!parse_number(value, 1, NRTI_CORES_MAX, &n))
		return false;
	config->num_cores = (uint32_t)n;
	return true;
}

static bool parse_log_level(struct nrti_config *config, const char *value)
{
	static const char *const words[] = { "ERROR", "WARN", "INFO", "DEBUG", "TRACE" };
	unsigned int index;

	if (!parse_word(value, words, 5, &index))
		return false;
	config->log_level = (enum nrti_log_level)index;
	return true;
}

static bool parse_log_location(struct nrti_config *config, const char *value)
{
	static const char *const words[] = { "console", "syslog" };
	unsigned int index;

	if (!parse_word(value, words, 2, &index))
		return false;
	config->log_syslog = index == 1;
	return true;
}

static bool parse_exec_timeout(struct nrti_config *config, const char *value)
{
	uint64_t seconds;

	if (!parse_number(value, 0, 1000000, &seconds))
		return false;
	config->exec_timeout_ns = seconds * 1000000000ull;
	return true;
}

static bool parse_dump(struct nrti_config *config, const char *value)
{
	const size_t length = strlen(value);

	if (length >= sizeof(config->dump))
		return false;
	memcpy(config->dump, value, length + 1);
	return true;
}

static bool parse_model_chip(struct nrti_config *config, const char *value)
{
	static const char *const chips[] = { "trn1", "inf2", "trn2", "trn3" };
	unsigned int index;

	if (!parse_word(value, chips, 4, &index))
		return false;
	memcpy(config->model_chip, chips[index], strlen(chips[index]) + 1);
	return true;
}

static bool parse_model_cores(struct nrti_config *config, const char *value)
{
	uint64_t n = 0;

	if (value[0] && !parse_number(value, 1, 8, &n))
		return false;
	config->model_cores = (uint32_t)n;
	return true;
}

static bool parse_model_devices(struct nrti_config *config, const char *value)
{
	uint64_t n;

	if (!parse_number(value, 1, 16, &n))
		return false;
	config->model_devices = (uint32_t)n;
	return true;
}

static bool parse_model_hbm(struct nrti_config *config, const char *value)
{
	static const char suffixes[] = "KMG";
	uint64_t n, scale = 1;
	const char *suffix;
	char digits[24];
	size_t len = strlen(value);

	if (!len || len >= sizeof(digits))
		return false;
	memcpy(digits, value, len + 1);
	suffix = strchr(suffixes, toupper((unsigned char)digits[len - 1]));
	if (suffix) {
		scale = 1ull << (10 * (suffix - suffixes + 1));
		digits[len - 1] = 0;
	}
	if (!parse_number(digits, 1, (64ull << 30) / scale, &n))
		return false;
	n *= scale;
	config->model_hbm_bytes = n;
	return n >= (64ull << 20) && !(n & (n - 1));
}

static bool parse_model_threads(struct nrti_config *config, const char *value)
{
	uint64_t n = 0;

	if (value[0] && !parse_number(value, 1, NRTI_MODEL_THREADS_MAX, &n))
		return false;
	config->model_threads = (uint32_t)n;
	return true;
}

static bool parse_model_report(struct nrti_config *config, const char *value)
{
	config->model_report = *value ? value : NULL;
	return true;
}

static bool parse_model_check(struct nrti_config *config, const char *value)
{
	return nrti_check_words(value, &config->model_check);
}

static const struct variable variables[] = {
	{ "NEURON_RT_TRANSPORT", "auto",
	  "auto, accel (/dev/accel/accelN) or model (in this process)", parse_transport },
	{ "NEURON_LOGICAL_NC_CONFIG", "",
	  "cores of the chip that make a logical core, of which all else speaks: 1 or 2; empty: 1",
	  parse_lnc },
	{ "NEURON_RT_VIRTUAL_CORE_SIZE", "",
	  "the same as NEURON_LOGICAL_NC_CONFIG, and what that says, if both are set: 1 or 2",
	  parse_lnc },
	{ "NEURON_RT_VISIBLE_CORES", "", "logical cores to use, each once, as in 0-3,6; empty: all",
	  parse_visible },
	{ "NEURON_RT_NUM_CORES", "", "how many logical cores to use, 1 to 1024; empty: all",
	  parse_num_cores },
	{ "NEURON_RT_LOG_LEVEL", "WARN", "ERROR, WARN, INFO, DEBUG or TRACE", parse_log_level },
	{ "NEURON_RT_LOG_LOCATION", "console", "console or syslog", parse_log_location },
	{ "NEURON_RT_EXEC_TIMEOUT", "120",
	  "seconds after which a launch is stopped, up to 1000000; 0: never", parse_exec_timeout },
	{ "NEURON_DUMP", "",
	  "folder to which each program that is loaded is written, for neuron-objdump, at most "
	  "1023 "
	  "bytes long; empty: none",
	  parse_dump },
	{ "NEURON_MODEL_CHIP", "trn2", "chip of virtual devices: trn1, inf2, trn2 or trn3",
	  parse_model_chip },
	{ "NEURON_MODEL_CORES", "",
	  "cores of a virtual device, 1 to 8 (trn1, inf2: 2); empty: as many as the chip has",
	  parse_model_cores },
	{ "NEURON_MODEL_DEVICES", "1", "virtual devices, 1 to 16", parse_model_devices },
	{ "NEURON_MODEL_HBM", "4G",
	  "bytes of each of a virtual device's HBM stacks, a power of two from 64M to 64G (trn1, "
	  "inf2: 16G)",
	  parse_model_hbm },
	{ "NEURON_MODEL_THREADS", "",
	  "host threads that share an instruction of a virtual device, 1 to 16; empty: one for "
	  "each "
	  "processor",
	  parse_model_threads },
	{ "NEURON_REPORT", "",
	  "file for a report of what programs do with a virtual device's time; empty: none",
	  parse_model_report },
	{ "NEURON_CHECK", "0",
	  "what a virtual device checks in programs: 0, 1 (all), or a list of race, uninit, hbm, "
	  "semaphore, psum, all, warn",
	  parse_model_check },
};

bool nrti_env_read(struct nrti_config *config, char *error, size_t error_bytes)
{
	memset(config, 0, sizeof(*config));
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		const struct variable *v = &variables[i];
		const char *value = getenv(v->name);

		if (v->parse(config, value ? value : v->preset))
			continue;
		snprintf(error, error_bytes, "%s='%.64s' is not valid: it takes %s", v->name, value,
			 v->meaning);
		return false;
	}
	if (!config->lnc)
		config->lnc = 1;
	return true;
}
