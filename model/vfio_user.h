/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NM_VFIO_USER_H
#define NM_VFIO_USER_H

#include "control.h"
#include "neuron_model.h"

/*
 * Serves one client on a connected stream socket with a device of its own, made from config (whose
 * irq, dma and user are set here) and destroyed at the end. Returns when the client hangs up (0),
 * breaks the protocol (-EPROTO, logged), the device can't be made, or stop_fd becomes readable
 * (-EINTR). stop_fd may be -1. Closes sock. control, which may be NULL, commands the device as long as
 * it exists.
 */
int vfio_user_serve(int sock, int stop_fd, const struct nm_config *config,
		    struct nm_control *control);

#endif /* NM_VFIO_USER_H */
