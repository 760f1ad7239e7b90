/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long things take on the device. Results never depend on it. All times are integers of
 * picoseconds, so that a launch takes the same time on every host.
 */
#ifndef NM_TIMING_H
#define NM_TIMING_H

#include <stdbool.h>
#include <stdint.h>

#include "decode.h"

#define NM_DMA_ENGINES 16

/* From the doorbell to the first instruction, and from the last effect to the record. */
extern const uint64_t nm_launch_start_ps;
extern const uint64_t nm_launch_end_ps;

/* From the instruction to the first byte, and from the last byte to the semaphore update. */
extern const uint64_t nm_dma_start_ps;
extern const uint64_t nm_dma_end_ps;

/* Clock of an engine. */
uint32_t nm_clock_khz(unsigned int engine);

/* Fills in busy_ps and latency_ps of a decoded instruction. */
void nm_time_control(struct nm_inst *inst, unsigned int engine);
void nm_time_compute(struct nm_inst *inst, const struct nm_compute *c, unsigned int engine,
		     uint32_t hidden_cycles);

/* Fills in cost_ps, engines and hbm_bytes of a transfer whose contiguous runs are run_bytes long. */
void nm_time_dma(struct nm_dma *dma, uint64_t run_bytes);

/* The same of one that the DMA engines transpose. */
void nm_time_transpose(struct nm_dma *dma);

/* Time of a core's share of HBM that bytes take while so many cores are in use. */
uint64_t nm_hbm_ps(uint64_t bytes, unsigned int cores);

/* Time that a descriptor of a UDMA copy takes its engine. */
uint64_t nm_udma_ps(uint64_t bytes);

/* Cycles that a MATMUL keeps the array busy. */
uint32_t nm_matmul_cycles(uint32_t columns, bool fp32);

#endif /* NM_TIMING_H */
