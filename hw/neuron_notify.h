/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Notification queues: a block of them for each core (V3_APB_CORE_NOTIFY), each TopSP
 * (V3_APB_TOPSP_NOTIFY) and each SDMA wrapper (UDMA_SDMA_NOTIFY).
 * Registers: aws-neuron-driver v3/notific.h, v3/notific.c, neuron_nq.c. The entry format is not
 * public: execution interface, version 1.
 */
#ifndef NEURON_NOTIFY_H
#define NEURON_NOTIFY_H

#include "neuron_types.h"

#define NQ_BLOCK_BYTES 0x1000

/* Registers of queue i = NQ_INDEX(type, engine): offset + i * NQ_STRIDE. */
#define NQ_STRIDE   0x28
#define NQ_BASE_LO  0x100
#define NQ_BASE_HI  0x104
#define NQ_SIZE     0x108 /* bytes, a power of two; base 0 and size 0 halt the queue */
#define NQ_HEAD     0x10c /* reader's position in bytes, written by the reader */

#define NQ_PER_TYPE 16
#define NQ_INDEX(type, engine) ((type) * NQ_PER_TYPE + (engine))
#define NQ_QUEUES   (NQ_TYPES * NQ_PER_TYPE)

#define NQ_TRACE     0
#define NQ_NOTIFY    1
#define NQ_EVENT     2
#define NQ_ERROR     3
#define NQ_TRACE_DMA 4
#define NQ_THROTTLE  5
#define NQ_TYPES     6

/* Queue of each type for what is of no engine in particular. */
#define NQ_NO_ENGINE (NQ_PER_TYPE - 1)

/*
 * What is told in the queues of each type. Execution interface.
 * NQ_TRACE, by engine: it issued an instruction, while EXI_CORE_TRACE has it do so; time_ns when it
 * started (a transfer: on its DMA queue), value how many ps it took.
 * NQ_NOTIFY, by engine: the effects of an instruction with ISA_F_NOTIFY are visible since time_ns;
 * value the launch's program_id. Not told when the launch ends before, by a fault or an abort.
 * NQ_EVENT, queue 0: an event of the core or TopSP changed; value its number, seqno what it is now.
 * NQ_ERROR, by engine: a launch ended with a fault.
 * NQ_TRACE_DMA, queue 0 of an SDMA wrapper: its engine did descriptors in one go; queue which of its
 * queues, seqno how many, value their bytes.
 * NQ_THROTTLE, NQ_NO_ENGINE: the clocks changed, and once more at the core's first launch with them;
 * value per cent.
 */

/*
 * Entry, execution interface. Written at the queue's position, which starts at 0 when NQ_SIZE is
 * written and wraps at the size. phase is written last and is 1 on the first lap, 0 on the second,
 * and so on. NQ_HEAD is not consulted: a reader that is a lap late loses entries.
 */
struct nq_entry {
	__u8 phase;
	__u8 type;       /* NQ_ERROR, ... */
	__u8 engine;     /* enum isa_engine; 0xff: none in particular */
	__u8 opcode;     /* of the instruction at pc */
	__le16 status;   /* EXI_FAULT_* of neuron_queue.h */
	__le16 queue;    /* core queue that ran the launch */
	__le32 seqno;    /* of the launch */
	__le32 pc;       /* instruction index in the engine's stream */
	__le64 value;    /* NQ_ERROR: the offending one, as in struct exi_record */
	__le64 time_ns;  /* device time */
};

HW_ASSERT_SIZE(struct nq_entry, 32);

#endif /* NEURON_NOTIFY_H */
