/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Execution interface, version 1.2: how the host hands launches to a NeuronCore.
 * Nothing of this is public hardware fact; it is the open interface that the
 * driver and the virtual device share. docs/execution-interface.md is its
 * specification.
 *
 * One queue belongs to one context of one core. The kernel owns the launch
 * ring, the slot tables and the completion ring, all in host memory. It writes
 * an entry, then the doorbell; the device answers every entry, in order, with
 * exactly one completion record and, if asked, an MSI-X message. Both rings
 * have the same number of entries, so a record never meets a full ring as
 * long as the driver has at most that many entries outstanding.
 *
 * Addresses are device addresses (neuron_map_v3.h): HBM, or host memory
 * through the host window.
 */
#ifndef NEURON_QUEUE_H
#define NEURON_QUEUE_H

#include "neuron_types.h"

#define EXI_VERSION_MAJOR 1
#define EXI_VERSION_MINOR 3

/* --- BAR 0 (EXI_BAR in neuron_pci.h), 1 MiB, 32-bit accesses ------------- */
#define EXI_BAR_BYTES 0x100000

#define EXI_MSIX_TABLE   0x00000
#define EXI_MSIX_PBA     0x00800
#define EXI_MSIX_VECTORS 64

/* Global registers. */
#define EXI_MAGIC         0x01000 /* RO */
#define   EXI_MAGIC_VALUE   0x4958454eu /* "NEXI" */
#define EXI_VERSION       0x01004 /* RO */
#define   EXI_VERSION_MAJOR_MASK 0xffff0000u
#define   EXI_VERSION_MINOR_MASK 0x0000ffffu
#define EXI_CORES         0x01008 /* RO: NeuronCores present, 1..8 */
#define EXI_QUEUES        0x0100c /* RO: queues per core */
#define EXI_ARCH          0x01010 /* RO: core generation, 2 (trn1), 3 (trn2), 4 (trn3) */
#define EXI_SBUF_BYTES    0x01014 /* RO: SBUF bytes a partition that programs may use */
#define EXI_PSUM_BYTES    0x01018 /* RO: PSUM bytes a partition */
#define EXI_HBM_MIB       0x0101c /* RO: MiB of each HBM stack */
#define EXI_HBM_STACKS    0x01020 /* RO */
#define EXI_TIME_LO       0x01028 /* RO: device time, ns; reading LO latches HI */
#define EXI_TIME_HI       0x0102c /* RO */
#define EXI_FEATURES      0x01030 /* RW */
#define   EXI_FEATURE_STALL_DETECT 0x1u /* reset value 1: a program whose engines all wait
					 * for each other ends with EXI_FAULT_DEADLOCK; 0: it hangs */

/* Serial number of the device behind neighbour window n (0..3), 0: nobody. RO. Low half first; the
 * neighbour need not be powered on. */
#define EXI_LINK_SERIAL(n) (0x01040 + (n) * 8)

/* RW, since 1.2, reset value 0. Bit e: engine e of core c tells of each of its instructions in its
 * NQ_TRACE queue (neuron_notify.h). */
#define EXI_CORE_TRACE(c) (0x01060 + (c) * 4)

/* Completion interrupt of UDMA engine e (0..131), queue q (0..15). */
#define EXI_UDMA_ROUTE(e, q) (0x40000 + ((e) * 16 + (q)) * 4)
#define EXI_UDMA_ROUTES      (132 * 16)

/* Vector fields of EXI_UDMA_ROUTE and EXI_Q_VECTOR; reset value 0. */
#define EXI_VECTOR_MASK   0x0000003fu
#define EXI_VECTOR_ENABLE 0x80000000u

/* Queue q of core c. */
#define EXI_QUEUE_COUNT      64 /* per core */
#define EXI_QUEUE_STRIDE     0x100
#define EXI_QUEUE_BASE       0x10000
#define EXI_QUEUE_CORE_STRIDE (EXI_QUEUE_COUNT * EXI_QUEUE_STRIDE)
#define EXI_QUEUE(c, q) (EXI_QUEUE_BASE + (c) * EXI_QUEUE_CORE_STRIDE + (q) * EXI_QUEUE_STRIDE)

#define EXI_Q_CONTROL    0x00 /* RW */
#define   EXI_Q_ENABLE     0x1u /* 0 -> 1 latches the set-up registers; refused entries end BAD_QUEUE */
#define   EXI_Q_ABORT      0x2u /* WO: stop the running launch, complete all entries up to the
				 * doorbell with EXI_FAULT_ABORTED, enter HALTED */
#define   EXI_Q_RESET      0x4u /* WO: as ABORT but without records, then all registers to reset values */
#define EXI_Q_STATUS     0x04 /* RO */
#define   EXI_Q_DISABLED   0u
#define   EXI_Q_IDLE       1u
#define   EXI_Q_RUNNING    2u
#define   EXI_Q_HALTED     3u /* after a fault or ABORT: entries rung later end ABORTED */
#define EXI_Q_RING_LO    0x08 /* RW: launch ring, 64-byte aligned */
#define EXI_Q_RING_HI    0x0c
#define EXI_Q_RING_LOG2  0x10 /* RW: log2 of entries, EXI_RING_LOG2_MIN..MAX */
#define EXI_Q_CQ_LO      0x14 /* RW: completion ring, 128-byte aligned */
#define EXI_Q_CQ_HI      0x18
#define EXI_Q_VECTOR     0x1c /* RW */
#define EXI_Q_DOORBELL   0x20 /* WO: number of entries ever written, modulo 2^32 */
#define EXI_Q_HEAD       0x24 /* RO: number of entries ever completed, modulo 2^32 */
#define EXI_Q_PRIORITY   0x28 /* RW: 0 (low) .. 3; the core takes its next launch from the
			       * highest priority, round robin within one */
#define EXI_Q_OWNER      0x2c /* RW: tag of the owning context. When a core starts a launch for
			       * another owner than the last, it first zeroes SBUF, PSUM and
			       * semaphores. */
#define EXI_Q_STARTED    0x30 /* RO: number of entries that ever got the core, modulo 2^32: HEAD when
			       * they all wait for their turn, HEAD + 1 while one runs */
#define EXI_Q_TRACE_LO   0x34 /* RW, since 1.1: trace ring, 64-byte aligned. Looked at when a launch
			       * with EXI_LAUNCH_TRACE starts, as the two that follow. */
#define EXI_Q_TRACE_HI   0x38
#define EXI_Q_TRACE_LOG2 0x3c /* RW: log2 of its entries, EXI_TRACE_LOG2_MIN..MAX; 0: no ring */

#define EXI_RING_LOG2_MIN 2
#define EXI_RING_LOG2_MAX 10

#define EXI_TRACE_LOG2_MIN 4
#define EXI_TRACE_LOG2_MAX 20

/* --- structures in memory -------------------------------------------------- */

#define EXI_SLOTS_MAX 1024 /* slots a launch */

/* One launch. The device reads it once, after the doorbell. */
struct exi_launch {
	__le64 program_addr;  /* program image in HBM, 64-byte aligned */
	__le64 program_id;    /* names these very bytes; never used twice between device resets,
			       * so the device may keep what it decoded under it */
	__le32 program_bytes; /* whole image */
	__le32 n_slots;       /* entries of the slot table; must equal the program's */
	__le64 slots_addr;    /* slot table in host memory, 64-byte aligned */
	__le32 seqno;         /* echoed in the record */
	__le32 flags;
#define EXI_LAUNCH_IRQ	 0x1u /* raise the queue's vector at completion */
#define EXI_LAUNCH_TRACE 0x2u /* since 1.1: write an entry of the trace ring for each instruction */
	__u8 pad[24];         /* zero */
};

/* What a program may touch through one slot. */
struct exi_slot {
	__le64 base; /* device address in HBM; EXI_SLOT_INLINE: the data */
	__le64 size; /* bytes from base */
	__le32 rights;
#define EXI_SLOT_READ  0x1u
#define EXI_SLOT_WRITE 0x2u
#define EXI_SLOT_INLINE 0x4u /* with READ alone: the slot is the 8 bytes of base itself, size 8 */
	__le32 pad0; /* zero */
	__le64 pad1; /* zero */
};

#define EXI_ENGINES 5 /* order of enum isa_engine (neuron_isa.h) */

/*
 * Answer to one launch. The device writes phase last: records of the n-th lap
 * of the ring carry phase (n & 1) ^ 1, so the first lap carries 1 and a zeroed
 * ring holds no record.
 */
struct exi_record {
	__le32 seqno;
	__le16 status; /* EXI_OK or EXI_FAULT_* */
	__u8 engine;   /* engine that faulted; 0xff: none in particular */
	__u8 phase;
	__le32 pc;     /* instruction index in that engine's stream */
	__u8 opcode;
	__u8 pad0;
	__le16 slot;   /* slot concerned; 0xffff: none */
	__le64 value;  /* offending value: byte offset, dtype, semaphore ... */
	__le64 limit;  /* what it should have stayed below or been */
	__le64 start_ns; /* device time */
	__le64 end_ns;
	__le64 dma_bytes; /* moved by the program */
	__le32 insts[EXI_ENGINES];   /* instructions completed */
	__le32 busy_ns[EXI_ENGINES]; /* time each engine was busy */
	__le32 traced;		     /* trace entries that the queue ever wrote, modulo 2^32 */
	__le32 pad1[7];
};

/*
 * One instruction of a traced launch, in order of issue, and last of each launch one of the launch
 * itself. The ring has no reader's position: who is a lap late loses entries and sees it by their
 * indices. The device makes the index of an entry wrong before it changes it, and right last.
 */
struct exi_trace {
	__le32 index; /* entries ever written before, modulo 2^32 */
	__le32 seqno; /* of the launch */
	__u8 engine;  /* 0xff: the launch */
	__u8 opcode;
	__le16 pad;
	__le32 pc;
	__le64 start_ps; /* device time; a transfer's is its start on the DMA queue */
	__le64 end_ps;
};

/* Fault codes. */
#define EXI_OK                  0
#define EXI_FAULT_BAD_QUEUE     1 /* ring set-up or entry malformed */
#define EXI_FAULT_BAD_PROGRAM   2 /* header, version, arch or checksum; value = field offset */
#define EXI_FAULT_BAD_OPCODE    3 /* not an opcode, or not one of this engine */
#define EXI_FAULT_BAD_OPERAND   4 /* field outside its range; value, limit */
#define EXI_FAULT_TILE_BOUNDS   5 /* on-chip access outside SBUF, PSUM, or across a PSUM bank */
#define EXI_FAULT_SLOT_INDEX    6 /* no such slot; value = index, limit = slots */
#define EXI_FAULT_SLOT_BOUNDS   7 /* transfer leaves the slot; value = offset, limit = size */
#define EXI_FAULT_SLOT_RIGHTS   8 /* read or write without the right */
#define EXI_FAULT_DEADLOCK      9 /* every unfinished engine waits; value = semaphore, limit = wanted */
#define EXI_FAULT_SEM_OVERFLOW 10 /* semaphore above ISA_SEM_MAX */
#define EXI_FAULT_BUS          11 /* ring, slot table or HBM address does not answer */
#define EXI_FAULT_ABORTED      12 /* by the host, or behind an entry that faulted */
#define EXI_FAULT_ECC          13 /* uncorrected memory error; value = byte in the slot, limit = its size */
/*
 * Only from a device in checking mode, at the end of a launch that ran. value: EXI_PLACE or, with a
 * slot, offset in it (SEM_AMBIGUOUS: the semaphore); limit: EXI_OTHER of the second instruction, or
 * EXI_OTHER_NONE.
 */
#define EXI_FAULT_RACE           14 /* nothing orders two accesses to the same bytes */
#define EXI_FAULT_UNINITIALISED  15 /* read of bytes that nothing has written */
#define EXI_FAULT_SEM_AMBIGUOUS  16 /* a wait that other updates than those meant could end */
#define EXI_FAULT_PSUM_NO_START  17 /* matmul adds to what this launch has not started */
#define EXI_FAULT_PSUM_EARLY_READ 18 /* matmul adds to a sum that was read already */
#define EXI_FAULT_PSUM_MIXED     19 /* matmul adds to several sums, or to what is none */
#define EXI_FAULT_INDEX          20 /* since 1.2: index of an indirect transfer out of bounds;
				     * value = index, sign extended, limit = rows; not of checking mode */
#define EXI_FAULT_UNCHECKED      21 /* since 1.2: control flow that checking mode cannot follow, at this
				     * instruction; value = instructions that it followed before */
#define EXI_FAULTS               22

/* What a status says, as in docs/execution-interface.md. */
static inline const char *exi_fault_text(__u32 status)
{
	switch (status) {
	case EXI_OK:
		return "completed";
	case EXI_FAULT_BAD_QUEUE:
		return "queue set-up or launch entry malformed";
	case EXI_FAULT_BAD_PROGRAM:
		return "program image malformed";
	case EXI_FAULT_BAD_OPCODE:
		return "opcode not known or not of this engine";
	case EXI_FAULT_BAD_OPERAND:
		return "instruction field outside its range";
	case EXI_FAULT_TILE_BOUNDS:
		return "operand leaves SBUF, PSUM or its PSUM bank";
	case EXI_FAULT_SLOT_INDEX:
		return "no such slot";
	case EXI_FAULT_SLOT_BOUNDS:
		return "transfer leaves its slot";
	case EXI_FAULT_SLOT_RIGHTS:
		return "slot without the right to do this";
	case EXI_FAULT_DEADLOCK:
		return "deadlock: all engines wait for each other";
	case EXI_FAULT_SEM_OVERFLOW:
		return "semaphore above its maximum";
	case EXI_FAULT_BUS:
		return "address does not answer";
	case EXI_FAULT_ABORTED:
		return "aborted";
	case EXI_FAULT_ECC:
		return "uncorrected memory error";
	case EXI_FAULT_RACE:
		return "race: nothing orders two accesses to the same bytes";
	case EXI_FAULT_UNINITIALISED:
		return "read of bytes that nothing has written";
	case EXI_FAULT_SEM_AMBIGUOUS:
		return "wait that other updates than those meant could end";
	case EXI_FAULT_PSUM_NO_START:
		return "matmul adds to a sum that this launch has not started";
	case EXI_FAULT_PSUM_EARLY_READ:
		return "matmul adds to a sum that was read already";
	case EXI_FAULT_PSUM_MIXED:
		return "matmul adds to several sums, or to what is none";
	case EXI_FAULT_INDEX:
		return "index of an indirect transfer out of bounds";
	case EXI_FAULT_UNCHECKED:
		return "control flow that checking mode cannot follow";
	default:
		return "unknown fault";
	}
}

#define EXI_PLACE(space, part, byte) \
	((__u64)(space) << 56 | (__u64)(part) << 32 | (byte))
#define EXI_PLACE_SPACE(v) ((__u32)((v) >> 56))
#define EXI_PLACE_PART(v)  ((__u32)((v) >> 32) & 0xffffffu)
#define EXI_PLACE_BYTE(v)  ((__u32)(v))

#define EXI_OTHER(engine, pc, opcode) \
	((__u64)(engine) << 40 | (__u64)(opcode) << 32 | (pc))
#define EXI_OTHER_NONE      (~(__u64)0)
#define EXI_OTHER_ENGINE(v) ((__u32)((v) >> 40) & 0xffu)
#define EXI_OTHER_OPCODE(v) ((__u32)((v) >> 32) & 0xffu)
#define EXI_OTHER_PC(v)     ((__u32)(v))

HW_ASSERT_SIZE(struct exi_launch, 64);
HW_ASSERT_SIZE(struct exi_slot, 32);
HW_ASSERT_SIZE(struct exi_record, 128);
HW_ASSERT_SIZE(struct exi_trace, 32);

#endif /* NEURON_QUEUE_H */
