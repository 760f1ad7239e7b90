// SPDX-License-Identifier: Apache-2.0
/* One line a message, to stderr or syslog. */
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "log.h"

static _Atomic int max_level = NRTI_LOG_WARN;
static _Atomic bool to_syslog;

void nrti_log_setup(const struct nrti_config *config)
{
	max_level = (int)config->log_level;
	to_syslog = config->log_syslog;
}

bool nrti_log_wants(enum nrti_log_level level)
{
	return (int)level <= max_level;
}

void nrti_log(enum nrti_log_level level, const char *fmt, ...)
{
	static const char *const names[] = { "ERROR", "WARN", "INFO", "DEBUG", "TRACE" };
	static const int priorities[] = { LOG_ERR, LOG_WARNING, LOG_INFO, LOG_DEBUG, LOG_DEBUG };
	struct timespec ts;
	char text[1024];
	struct tm tm;
	va_list args;

	if (!nrti_log_wants(level))
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (to_syslog) {
		syslog(LOG_USER | priorities[level], "nrt: %s", text);
		return;
	}
	clock_gettime(CLOCK_REALTIME, &ts);
	localtime_r(&ts.tv_sec, &tm);
	fprintf(stderr, "%04d-%02d-%02d %02d:%02d:%02d.%03ld %d nrt %s: %s\n", tm.tm_year + 1900,
		tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, ts.tv_nsec / 1000000,
		(int)getpid(), names[level], text);
}
