/* SPDX-License-Identifier: Apache-2.0 */
/* NEURON_DUMP: the programs that are loaded, as files for neuron-objdump. */
#ifndef NRTI_DUMP_H
#define NRTI_DUMP_H

#include "env.h"

/* Takes the folder. Before the first load of the runtime's life. */
void nrti_dump_setup(const struct nrti_config *config);

/*
 * Writes an image that nprog_check() has passed to FOLDER/NAME-CHECKSUM.nprog, unless it is there
 * already. A failure is logged once and changes nothing else. Any thread, any process.
 */
void nrti_dump(const void *image, size_t bytes);

#endif /* NRTI_DUMP_H */
