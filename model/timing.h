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

/* What engines hold against each other while an instruction runs: the port of SBUF that vector and
 * gpsimd share, and each bank of PSUM for vector and scalar; what products hold against each other: parts of the
 * tensor array. */
#define NM_PORTS	   (1 + ISA_PSUM_BANKS + NM_ARRAY_PARTS)
#define NM_PORT_SBUF	   0
#define NM_PORT_PSUM(bank) (1 + (bank))
#define NM_PORT_ARRAY(i)   (1 + ISA_PSUM_BANKS + (i))

/* Figures of a generation; times in cycles are of the engine's clock. */
struct nm_timing {
	uint32_t clock_khz[EXI_ENGINES];
	uint32_t scalar_min_cycles; /* of an instruction, however small */
	uint32_t dma_bytes_per_us; /* of one DMA engine */
	uint32_t hbm_bytes_per_us; /* of all stacks together */
	uint8_t transpose_4byte; /* passes of a transpose of 4-byte elements */
	uint8_t vector_inputs; /* cycles an element of a vector instruction with two inputs */
	uint8_t scalar_half; /* elements a cycle of the scalar engine, 2-byte floats */
	bool vector_half; /* the vector engine is faster with 2-byte floats */
	bool fp8_half; /* 8-bit floats are as fast as those of 2 bytes, on the vector and scalar engine */
	bool sbuf_port; /* vector and gpsimd share a port of SBUF */
	bool psum_port; /* vector and scalar share one of PSUM, not only its banks */
};

/* Of NEURON_ARCH_*. */
const struct nm_timing *nm_timing_of(uint32_t arch);

/* From the doorbell to the first instruction, and from the last effect to the record. */
extern const uint64_t nm_launch_start_ps;
extern const uint64_t nm_launch_end_ps;

/* From the instruction to the first byte, and from the last byte to the semaphore update. */
extern const uint64_t nm_dma_start_ps;
extern const uint64_t nm_dma_end_ps;

/* Fills in busy_ps, latency_ps and ports of a decoded instruction. */
void nm_time_control(const struct nm_timing *t, struct nm_inst *inst, unsigned int engine);
void nm_time_compute(const struct nm_timing *t, struct nm_inst *inst, const struct nm_compute *c,
		     unsigned int engine, uint32_t hidden_cycles);
/* An instruction on registers, whose body is decoded. */
void nm_time_reg(const struct nm_timing *t, struct nm_inst *inst, unsigned int engine);

/* Fills in cost_ps, engines and hbm_bytes of a transfer whose contiguous runs are run_bytes long. */
void nm_time_dma(const struct nm_timing *t, struct nm_dma *dma, uint64_t run_bytes);

/* The same of an indirect one, whose rows have runs of run_bytes, and lead_ps. */
void nm_time_indirect(const struct nm_timing *t, struct nm_dma *dma, uint64_t run_bytes);

/* A transfer with sides that registers move. */
void nm_time_shifted(struct nm_dma *dma);

/* The same of one that the DMA engines transpose. */
void nm_time_transpose(const struct nm_timing *t, struct nm_dma *dma);

/* Time of a core's share of HBM that bytes take while so many cores are in use. */
uint64_t nm_hbm_ps(const struct nm_timing *t, uint64_t bytes, unsigned int cores);

/* Time that a descriptor of a UDMA copy takes its engine. */
uint64_t nm_udma_ps(const struct nm_timing *t, uint64_t bytes);

/* Cycles that a MATMUL keeps the array, or its parts of it, busy. */
uint32_t nm_matmul_cycles(uint32_t columns, bool fp32);

/* Makes an instruction of the tensor engine hold parts of the array, in a stream with products on parts. */
void nm_time_array(const struct nm_timing *t, struct nm_inst *inst, uint16_t array);

#endif /* NM_TIMING_H */
