/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NRTI_LOG_H
#define NRTI_LOG_H

#include "env.h"

/* Takes level and location; before it, WARN and above go to the console. */
void nrti_log_setup(const struct nrti_config *config);
bool nrti_log_wants(enum nrti_log_level level);
void nrti_log(enum nrti_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif /* NRTI_LOG_H */
