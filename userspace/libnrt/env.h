/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration from the environment; env.c has the one table of variables. */
#ifndef NRTI_ENV_H
#define NRTI_ENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NRTI_CORES_MAX	1024
#define NRTI_LNC_MAX	2
#define NRTI_DUMP_BYTES 1024 /* longest folder of NEURON_DUMP, with its NUL */

enum nrti_transport_choice { NRTI_AUTO, NRTI_ACCEL, NRTI_MODEL };

enum nrti_log_level {
	NRTI_LOG_ERROR,
	NRTI_LOG_WARN,
	NRTI_LOG_INFO,
	NRTI_LOG_DEBUG,
	NRTI_LOG_TRACE,
};

#define NRTI_MODEL_THREADS_MAX 16 /* as the model has it */

struct nrti_config {
	enum nrti_transport_choice transport;
	uint32_t lnc; /* cores of the device that make one as applications count them */
	uint32_t num_cores; /* 0: all */
	bool all_visible;
	uint32_t n_visible;
	uint16_t visible[NRTI_CORES_MAX]; /* in the order given */
	enum nrti_log_level log_level;
	bool log_syslog;
	uint64_t exec_timeout_ns; /* 0: never */
	char dump[NRTI_DUMP_BYTES]; /* folder; empty: none */
	uint32_t model_cores; /* 0: all of the chip */
	char model_chip[8];
	uint32_t model_devices;
	uint64_t model_hbm_bytes; /* of a stack */
	uint32_t model_threads; /* 0: one for each processor */
	const char *model_report; /* the variable's own memory; NULL: none */
	uint32_t model_check; /* as nrti_check_words() gave it */
};

/* transport_model.c: what a virtual device looks for in programs; false: not such words. */
bool nrti_check_words(const char *words, uint32_t *check);

/*
 * Reads all variables. false: error holds a sentence that names the variable,
 * its value and what it may be.
 */
bool nrti_env_read(struct nrti_config *config, char *error, size_t error_bytes);

#endif /* NRTI_ENV_H */
