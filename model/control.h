/* SPDX-License-Identifier: Apache-2.0 */
/* Commands in words to a device, and the socket that takes them. */
#ifndef NM_CONTROL_H
#define NM_CONTROL_H

#include "neuron_model.h"

#define NM_CONTROL_LINE 4096 /* bytes of a command or an answer, its end included */

/* The commands; part of neuron-model --help. */
#define NM_CONTROL_HELP                                                                           \
	"Commands of the control socket: one a line, answered by one line that starts with 'ok' " \
	"or "                                                                                     \
	"'error'. N is how often the fault happens (default 1, 0: no more).\n"                    \
	"  status                            what is injected\n"                                  \
	"  clear                             no faults any more\n"                                \
	"  ecc hbm0..hbm3|sram CORRECTED UNCORRECTED    adds to the counters\n"                   \
	"  poison CORE [N]                   uncorrected error in the next read of a buffer\n"    \
	"  hang CORE ENGINE [N]              engine tensor, vector, scalar, gpsimd or sync\n"     \
	"  irq lose VECTOR [N]               the interrupt never comes\n"                         \
	"  irq delay VECTOR MILLISECONDS [N]\n"                                                   \
	"  mailbox silent|sequence|garbage|error|crc [N]  answers to requests\n"                  \
	"  udma ENGINE error|stop|corrupt [N]           0..127 of cores, then of the host's\n"    \
	"  remove                            all reads give ones, no DMA\n"                       \
	"  return                            after remove: powered on again\n"                    \
	"  throttle PERCENT                  clocks of all engines"

/* Executes a command; answer gets one line without its end. dev NULL: an error, there is none. */
void nm_control_run(struct nm_device *dev, const char *line, char answer[NM_CONTROL_LINE]);

struct nm_control;

/* Serves a listening socket with a thread of its own, for any number of clients, one at a time. NULL:
 * no memory. Owns fd. Both functions below accept NULL. */
struct nm_control *nm_control_create(int fd);
void nm_control_destroy(struct nm_control *control);

/* The device that commands go to from now on, or NULL. Waits for a command that is under way. */
void nm_control_attach(struct nm_control *control, struct nm_device *dev);

#endif /* NM_CONTROL_H */
