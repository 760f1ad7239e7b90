/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * User interface of the neuron accel driver: AWS Trainium and Inferentia.
 *
 * Rules that every structure and ioctl here keeps:
 *
 * - Members are naturally aligned, padding is explicit, sizes are multiples of
 *   8; layouts are the same for 32- and 64-bit programs.
 * - Padding and reserved members must be zero, unknown flags are refused
 *   (EINVAL), so that they may get a meaning later.
 * - New members are added at the end only, and zero means the old behaviour. A
 *   shorter structure from an older program is taken as zero-extended; a longer
 *   one is accepted when the tail that this kernel does not know is zero
 *   (else E2BIG).
 * - Handles are __u32 and 0 is never one. Pointers travel as __u64. Sizes and
 *   offsets are bytes, times are ns, absolute ones CLOCK_MONOTONIC.
 * - Arrays are described by struct drm_neuron_array.
 * - Buffers are GEM handles: closed by DRM_IOCTL_GEM_CLOSE. Fences are
 *   drm_syncobj, binary or timeline: waited for with the syncobj ioctls.
 * - Buffers are shared as dma-bufs by the PRIME ioctls. HBM goes only to devices
 *   that can reach it over PCIe (others: EOPNOTSUPP when they attach) and is not
 *   mapped through the dma-buf (EACCES, as are buffers without
 *   DRM_NEURON_BO_MMAP). A foreign dma-buf becomes a DRM_NEURON_BO_HOST buffer,
 *   of nobody's account. On a buffer that has been shared, launches and copies
 *   also wait for and are waited for by what others do with it.
 * - A program never names a physical address. A launch binds buffers to the
 *   slots that the program declared; the device checks every transfer against
 *   them.
 *
 * Errors common to all: EINVAL (see the rules), EFAULT (pointer), ENOMEM (host
 * memory), ENODEV (device gone), EINTR. Others are listed at each ioctl.
 */
#ifndef _UAPI_DRM_NEURON_ACCEL_H_
#define _UAPI_DRM_NEURON_ACCEL_H_

#include "drm.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* Order is ABI: new ones at the end. */
enum drm_neuron_ioctl_id {
	DRM_NEURON_QUERY = 0,
	DRM_NEURON_BO_CREATE,
	DRM_NEURON_BO_INFO,
	DRM_NEURON_CTX_CREATE,
	DRM_NEURON_CTX_DESTROY,
	DRM_NEURON_CTX_STATE,
	DRM_NEURON_PROGRAM_LOAD,
	DRM_NEURON_PROGRAM_UNLOAD,
	DRM_NEURON_SUBMIT,
	DRM_NEURON_COPY,
	DRM_NEURON_SUBMIT_BATCH,
	DRM_NEURON_BO_PIN,
	DRM_NEURON_STREAM_OPEN,
};

/**
 * struct drm_neuron_array - An array in the caller's memory
 */
struct drm_neuron_array {
	/**
	 * @stride: in: Bytes from one element to the next, at least the first version's size, at
	 * most 4096 (else E2BIG).
	 */
	__u32 stride;
	/** @count: in: Number of elements. 0: no array, @ptr is ignored. */
	__u32 count;
	/** @ptr: in: Address of the first element. */
	__u64 ptr;
};

/* Blocks of DRM_IOCTL_NEURON_QUERY. */
#define DRM_NEURON_QUERY_DEVICE	  0 /* struct drm_neuron_query_device */
#define DRM_NEURON_QUERY_MEMORY	  1 /* struct drm_neuron_query_memory */
#define DRM_NEURON_QUERY_FIRMWARE 2 /* struct drm_neuron_query_firmware */
#define DRM_NEURON_QUERY_CORE	  3 /* struct drm_neuron_query_core, of core @index */
#define DRM_NEURON_QUERY_USAGE	  4 /* struct drm_neuron_query_usage */
#define DRM_NEURON_QUERY_TOPOLOGY 5 /* struct drm_neuron_query_topology */

/**
 * struct drm_neuron_query - Read one block of facts about the device
 *
 * With @size 0 the kernel only fills in its size of the block. Otherwise it
 * writes min(@size, its size) bytes, zeroes the rest of the caller's, and sets
 * @size to its own size.
 *
 * Errors: EINVAL unknown block, no such core, index for a block without.
 */
struct drm_neuron_query {
	/** @block: in: DRM_NEURON_QUERY_*. */
	__u32 block;
	/** @size: in-out: Bytes at @ptr; bytes that the kernel has. */
	__u32 size;
	/** @ptr: in: Where the block goes. */
	__u64 ptr;
	/** @index: in: Core that DRM_NEURON_QUERY_CORE is about; zero for other blocks. */
	__u32 index;
	/** @pad: in: Zero. */
	__u32 pad;
};

/**
 * struct drm_neuron_query_device - Block DRM_NEURON_QUERY_DEVICE
 */
struct drm_neuron_query_device {
	/** @arch: NeuronCore generation: 2 trn1/inf2, 3 trn2, 4 trn3. */
	__u32 arch;
	/** @cores: NeuronCores of the device. */
	__u32 cores;
	/** @exec_version: Execution interface, major << 16 | minor. */
	__u32 exec_version;
	/** @pci_device: PCI device id. */
	__u32 pci_device;
	/** @sbuf_bytes: SBUF bytes a partition that programs may use. */
	__u32 sbuf_bytes;
	/** @psum_bytes: PSUM bytes a partition. */
	__u32 psum_bytes;
	/** @serial: Serial number. */
	__u64 serial;
	/** @slots_max: Most slots a program may have. */
	__u32 slots_max;
	/** @inflight_max: Most launches that a context keeps in flight; more block in submit. */
	__u32 inflight_max;
	/** @pci_revision: PCI revision id; 255 is a virtual device. */
	__u32 pci_revision;
	/** @batch_max: Most launches of a DRM_NEURON_SUBMIT_BATCH; 0: the kernel has none. */
	__u32 batch_max;
};

/**
 * struct drm_neuron_query_topology - Block DRM_NEURON_QUERY_TOPOLOGY
 *
 * Place of the device among those of its server. A buffer of a neighbour,
 * imported as a dma-buf, is copied from and to directly.
 */
struct drm_neuron_query_topology {
	/** @routing_id: Routing id, as the device's firmware says. */
	__u32 routing_id;
	/** @number: Number of the device in its server, which follows from @routing_id. */
	__u32 number;
	/** @neighbour: Serial numbers of the devices that NeuronLink joins it to; 0: no more. */
	__u64 neighbour[4];
	/**
	 * @cores_joined: Cores that the chip has closest together, from each multiple of this
	 * number on: runtimes may offer them as one logical core. 1: none.
	 */
	__u32 cores_joined;
	/** @pad: Zero. */
	__u32 pad;
};

/**
 * struct drm_neuron_query_memory - Block DRM_NEURON_QUERY_MEMORY
 */
struct drm_neuron_query_memory {
	/** @hbm_bytes: All HBM that buffers can come from. */
	__u64 hbm_bytes;
	/** @hbm_used: HBM that buffers and programs occupy now, all users. */
	__u64 hbm_used;
	/** @hbm_own: Part of @hbm_used that this file holds. */
	__u64 hbm_own;
	/** @host_own: Host memory that this file's buffers hold, pinned memory included. */
	__u64 host_own;
	/** @granule: HBM is given out in multiples of this, a power of two. */
	__u64 granule;
	/** @evicted_own: Part of @host_own that are DRM_NEURON_BO_HBM buffers moved out of HBM. */
	__u64 evicted_own;
};

/**
 * struct drm_neuron_query_firmware - Block DRM_NEURON_QUERY_FIRMWARE
 */
struct drm_neuron_query_firmware {
	/** @api_version: Version of the mailbox interface that the firmware speaks. */
	__u32 api_version;
	/** @version: Of the firmware, major << 24 | minor << 16 | patch; 0: it does not say. */
	__u32 version;
	/** @flags: DRM_NEURON_FIRMWARE_*. */
	__u32 flags;
#define DRM_NEURON_FIRMWARE_LOADED 0x1 /* by the driver; not the one that the device came with */
	/** @starts: How often firmware has started since power-on, modulo 65536. */
	__u32 starts;
};

/**
 * struct drm_neuron_query_core - Block DRM_NEURON_QUERY_CORE
 *
 * Of one core, all users, since the driver was bound. All members are of the
 * same moment. A launch counts when the driver has seen that it is done.
 */
struct drm_neuron_query_core {
	/** @busy_ns: Device time that its launches took; without those that faulted. */
	__u64 busy_ns;
	/** @launches: Launches completed without fault. */
	__u64 launches;
	/** @faults: Launches that broke a rule. */
	__u64 faults;
	/** @insts: Instructions completed, by engine; see drm_neuron_ctx_state.engine. */
	__u64 insts[5];
	/** @engine_ns: Part of @busy_ns in which each engine worked. */
	__u64 engine_ns[5];
	/** @dma_bytes: Bytes that programs moved. */
	__u64 dma_bytes;
	/** @queues: Queues that contexts can have. */
	__u32 queues;
	/** @queues_used: Part of @queues that contexts have now. */
	__u32 queues_used;
	/**
	 * @active_ns: Host time during which it had launches to run; the one under
	 * way counts. A virtual device's clock is not the host's, so busy_ns of that
	 * says nothing about how much of its time the core has left.
	 */
	__u64 active_ns;
};

/**
 * struct drm_neuron_query_usage - Block DRM_NEURON_QUERY_USAGE
 *
 * Of this open file, since it was opened.
 */
struct drm_neuron_query_usage {
	/** @core_ns: Device time that its launches took on cores, summed over cores. */
	__u64 core_ns;
	/** @copy_ns: Time that its copies took. */
	__u64 copy_ns;
	/** @launches: Its launches completed without fault. */
	__u64 launches;
};

/**
 * struct drm_neuron_bo_create - Create a buffer object, zeroed
 *
 * Errors: ENOSPC not enough HBM, ENOMEM not enough host memory.
 */
struct drm_neuron_bo_create {
	/** @size: in-out: Bytes, not 0; out: rounded up to the granule. */
	__u64 size;
	/** @flags: in: DRM_NEURON_BO_*. Exactly one of HBM and HOST, not USER. */
	__u32 flags;
#define DRM_NEURON_BO_HBM    0x1 /* device memory; can be a slot */
#define DRM_NEURON_BO_HOST   0x2 /* host memory that the device can copy from and to */
#define DRM_NEURON_BO_MMAP   0x4 /* may be mapped by the CPU */
#define DRM_NEURON_BO_USER   0x8 /* with HOST: memory of the caller, DRM_IOCTL_NEURON_BO_PIN */
#define DRM_NEURON_BO_OVERCOMMIT 0x10 /* with HBM: although this file's may not all fit then */
	/** @handle: out: GEM handle. */
	__u32 handle;
};

/**
 * struct drm_neuron_bo_info - Facts about a buffer object
 *
 * Errors: ENOENT no such handle.
 */
struct drm_neuron_bo_info {
	/** @handle: in: GEM handle. */
	__u32 handle;
	/** @flags: out: DRM_NEURON_BO_* of its creation. */
	__u32 flags;
	/** @size: out: Bytes. */
	__u64 size;
	/** @mmap_offset: out: For mmap() on the device's file; 0: may not be mapped. */
	__u64 mmap_offset;
};

/**
 * struct drm_neuron_ctx_create - Create a context: an in-order queue on one core
 *
 * Either @core names the core or @cores a set of which the kernel takes one:
 * that with the fewest contexts that take launches, all users', and the lowest
 * of several. Cores without a queue left for this user are passed over. The
 * context stays there until it is destroyed; to have the cores of a set work at
 * the same time takes as many contexts, all with the same @cores.
 *
 * Priorities are strict, and a launch that runs is never interrupted. When it
 * ends, the core takes the next one from the contexts of the highest priority
 * that have one ready, in turns. So low priority waits for as long as others
 * keep the core busy, all of them together; the wait counts as no time-out.
 *
 * Errors: EINVAL no such core, ENOSPC all queues of the core or of each of
 * @cores are taken, or half of them by this user without CAP_SYS_RESOURCE,
 * EACCES DRM_NEURON_PRIORITY_HIGH without CAP_SYS_NICE.
 */
struct drm_neuron_ctx_create {
	/** @core: in-out: Core, 0 up to cores - 1; zero with @cores; out: the one taken. */
	__u32 core;
	/** @priority: in: DRM_NEURON_PRIORITY_*. */
	__u32 priority;
#define DRM_NEURON_PRIORITY_NORMAL 0
#define DRM_NEURON_PRIORITY_LOW    1
#define DRM_NEURON_PRIORITY_HIGH   2
	/** @flags: in: Zero. */
	__u32 flags;
	/** @ctx: out: Context id. */
	__u32 ctx;
	/** @cores: in: Set of cores, bit n is core n; 0: @core. */
	__u64 cores;
};

/**
 * struct drm_neuron_ctx_destroy - Destroy a context
 *
 * Its launches are cancelled; their fences signal with ECANCELED.
 *
 * Errors: ENOENT no such context.
 */
struct drm_neuron_ctx_destroy {
	/** @ctx: in: Context id. */
	__u32 ctx;
	/** @pad: in: Zero. */
	__u32 pad;
};

/**
 * struct drm_neuron_ctx_state - State of a context and why it stopped
 *
 * Errors: ENOENT no such context.
 */
struct drm_neuron_ctx_state {
	/** @ctx: in: Context id. */
	__u32 ctx;
	/** @state: out: DRM_NEURON_CTX_*. Once not OK it stays so and submits fail with EIO. */
	__u32 state;
#define DRM_NEURON_CTX_OK       0
#define DRM_NEURON_CTX_FAULTED  1 /* its program broke a rule; members below */
#define DRM_NEURON_CTX_TIMEDOUT 2 /* its program ran too long and was stopped */
#define DRM_NEURON_CTX_INNOCENT 3 /* lost in a reset that another context caused */
	/** @fault: out: Fault code of the execution interface, EXI_FAULT_*. */
	__u32 fault;
	/** @engine: out: 0 tensor, 1 vector, 2 scalar, 3 gpsimd, 4 sync; ~0 none. */
	__u32 engine;
	/** @pc: out: Index of the instruction in the engine's stream. */
	__u32 pc;
	/** @opcode: out: Its opcode. */
	__u32 opcode;
	/** @slot: out: Slot concerned; ~0 none. */
	__u32 slot;
	/** @program: out: Program id of the launch; 0 when unloaded since. */
	__u32 program;
	/** @value: out: Offending value. */
	__u64 value;
	/** @limit: out: What it should have stayed below or been. */
	__u64 limit;
	/** @launches: out: Launches completed without fault. */
	__u64 launches;
	/** @device_ns: out: Device time that they took. */
	__u64 device_ns;
	/** @insts: out: Instructions completed, by engine. */
	__u64 insts[5];
	/** @dma_bytes: out: Bytes that programs moved. */
	__u64 dma_bytes;
};

/**
 * struct drm_neuron_program_load - Check a program image and copy it to HBM
 *
 * The copy can be neither read nor written afterwards. Any context of this file
 * may launch it.
 *
 * Errors: ENOEXEC malformed image (with drm.debug the log says what and where),
 * EOPNOTSUPP version or arch that this device does not run, E2BIG above the
 * image limit, ENOSPC not enough HBM.
 */
struct drm_neuron_program_load {
	/** @image: in: Address of the image (hw/neuron_program.h). */
	__u64 image;
	/** @size: in: Its bytes. */
	__u64 size;
	/** @flags: in: Zero. */
	__u32 flags;
	/** @program: out: Program id. */
	__u32 program;
};

/**
 * struct drm_neuron_program_unload - Forget a program
 *
 * Launches in flight keep it until they are done.
 *
 * Errors: ENOENT no such program.
 */
struct drm_neuron_program_unload {
	/** @program: in: Program id. */
	__u32 program;
	/** @pad: in: Zero. */
	__u32 pad;
};

/**
 * struct drm_neuron_sync - One fence to wait for or to signal
 */
struct drm_neuron_sync {
	/** @handle: in: Syncobj handle. */
	__u32 handle;
	/** @flags: in: Zero. */
	__u32 flags;
	/** @point: in: Timeline point; 0 for a binary syncobj. */
	__u64 point;
};

/**
 * struct drm_neuron_slot - Buffer for one slot of a launch
 */
struct drm_neuron_slot {
	/** @handle: in: GEM handle of an HBM buffer; 0 with DRM_NEURON_SLOT_INLINE. */
	__u32 handle;
	/** @flags: in: DRM_NEURON_SLOT_*. */
	__u32 flags;
/* For a scalar slot: @offset holds the value's bits, @size is 8. */
#define DRM_NEURON_SLOT_INLINE 0x1
	/** @offset: in: First byte of the buffer that the slot shows, or the value. */
	__u64 offset;
	/** @size: in: Bytes that it shows. */
	__u64 size;
};

/**
 * struct drm_neuron_submit - Launch a program
 *
 * Launches of one context run in order. The launch starts when all @in fences
 * have signalled; it signals all @out when it is done. Nothing has happened if
 * the call fails.
 *
 * Errors: ENOENT no such context, program, buffer or syncobj; EINVAL wrong
 * number of slots, slot smaller than the program needs, range outside the
 * buffer, host buffer, inline value for a slot that is not a scalar or the
 * reverse; EIO the context is dead (DRM_NEURON_CTX_STATE says why).
 */
struct drm_neuron_submit {
	/** @ctx: in: Context id. */
	__u32 ctx;
	/** @program: in: Program id. */
	__u32 program;
	/** @flags: in: Zero. */
	__u32 flags;
	/** @pad: in: Zero. */
	__u32 pad;
	/** @slots: in: struct drm_neuron_slot, as many as the program has. */
	struct drm_neuron_array slots;
	/** @in: in: struct drm_neuron_sync to wait for. */
	struct drm_neuron_array in;
	/** @out: in: struct drm_neuron_sync to signal. */
	struct drm_neuron_array out;
};

/**
 * struct drm_neuron_launch - One launch of a batch
 */
struct drm_neuron_launch {
	/** @program: in: Program id. */
	__u32 program;
	/** @flags: in: Zero. */
	__u32 flags;
	/** @slots: in: struct drm_neuron_slot, as many as the program has. */
	struct drm_neuron_array slots;
};

/**
 * struct drm_neuron_submit_batch - Launch several programs in a row
 *
 * The same as a DRM_NEURON_SUBMIT of each, the first with @in, the last with
 * @out, except that launches of other threads do not come in between and that
 * it is all or nothing: if the call fails none of them has been taken, and
 * @refused says whose fault it was. The first one starts when all @in fences
 * have signalled. When one faults those behind it are cancelled, so @out ends
 * with an error if any of them did.
 *
 * Errors: those of DRM_NEURON_SUBMIT; EINVAL no launch, or more than
 * drm_neuron_query_device.batch_max.
 */
struct drm_neuron_submit_batch {
	/** @ctx: in: Context id. */
	__u32 ctx;
	/** @flags: in: Zero. */
	__u32 flags;
	/** @refused: out: On failure the index of the launch refused; ~0: not one of them. */
	__u32 refused;
	/** @pad: in: Zero. */
	__u32 pad;
	/** @launches: in: struct drm_neuron_launch, in the order in which they run. */
	struct drm_neuron_array launches;
	/** @in: in: struct drm_neuron_sync to wait for. */
	struct drm_neuron_array in;
	/** @out: in: struct drm_neuron_sync to signal. */
	struct drm_neuron_array out;
};

/**
 * struct drm_neuron_copy - Copy between two buffers by the device's DMA engines
 *
 * Either may be in HBM or host memory. Copies of one file run in order of
 * submission only as far as fences order them. Ranges of one buffer that
 * overlap are refused.
 *
 * Errors: ENOENT no such buffer or syncobj, EINVAL range outside the buffer or
 * overlapping.
 */
struct drm_neuron_copy {
	/** @src: in: GEM handle. */
	__u32 src;
	/** @dst: in: GEM handle. */
	__u32 dst;
	/** @src_offset: in: Byte in the source. */
	__u64 src_offset;
	/** @dst_offset: in: Byte in the destination. */
	__u64 dst_offset;
	/** @size: in: Bytes, not 0. */
	__u64 size;
	/** @flags: in: Zero. */
	__u32 flags;
	/** @pad: in: Zero. */
	__u32 pad;
	/** @in: in: struct drm_neuron_sync to wait for. */
	struct drm_neuron_array in;
	/** @out: in: struct drm_neuron_sync to signal. */
	struct drm_neuron_array out;
};

/**
 * struct drm_neuron_bo_pin - Make a buffer object of the caller's own memory
 *
 * For copies, as a DRM_NEURON_BO_HOST buffer. Its pages stay in place until the
 * buffer is gone, that is closed and no longer in use by a copy, and count
 * against RLIMIT_MEMLOCK until then. What is unmapped or mapped anew at these
 * addresses afterwards has nothing to do with the buffer. It can be neither
 * mapped through the device's file nor shared (EPERM).
 *
 * Errors: EINVAL address or size is not a multiple of the page size, EFAULT not
 * all of it is mapped, may be written, and is memory that can be pinned (memory
 * of devices and most files cannot), ENOMEM also above RLIMIT_MEMLOCK.
 */
struct drm_neuron_bo_pin {
	/** @addr: in: Address of the first byte. */
	__u64 addr;
	/** @size: in: Bytes, not 0. */
	__u64 size;
	/** @flags: in: Zero. */
	__u32 flags;
	/** @handle: out: GEM handle. */
	__u32 handle;
};

/**
 * struct drm_neuron_stream_open - Open the stream of what a context runs, for profilers
 *
 * Launches that the device gets from now on, until @fd is closed, are traced:
 * an event for each instruction at its issue and, last, one for the launch.
 * Device time is the same as without. read() on @fd gives whole struct
 * drm_neuron_event once their launch is complete. It waits for the first one
 * (EAGAIN with NONBLOCK, or O_NONBLOCK set later) and gives 0 bytes once the
 * context is gone; poll() works. Buffers shorter than one event are EINVAL.
 * Whoever reads slowly loses the oldest events and is told how many.
 *
 * Errors: ENOENT no such context, EBUSY it has a stream already, EIO it is
 * dead, EOPNOTSUPP the device has no trace.
 */
struct drm_neuron_stream_open {
	/** @ctx: in: Context id. */
	__u32 ctx;
	/** @flags: in: DRM_NEURON_STREAM_*. */
	__u32 flags;
#define DRM_NEURON_STREAM_NONBLOCK 0x1
	/** @entries: in-out: Events kept for the reader, 0: the default; out: what it got. */
	__u32 entries;
#define DRM_NEURON_STREAM_ENTRIES_MAX 16384
	/** @fd: out: File descriptor, close-on-exec. */
	__s32 fd;
};

/**
 * struct drm_neuron_event - One event of a stream
 */
struct drm_neuron_event {
	/** @launch: Number of the launch in its context, from 0 in order of execution. */
	__u32 launch;
	/** @pc: Index of the instruction in the engine's stream. */
	__u32 pc;
	/** @engine: As drm_neuron_ctx_state.engine; 0xff: the launch as a whole. */
	__u8 engine;
	/** @opcode: Of the instruction; 0 for a launch. */
	__u8 opcode;
	/** @pad: Zero. */
	__u16 pad;
	/** @lost: Events lost between the one before and this one. */
	__u32 lost;
	/** @start_ps: Device time in ps at which it started; a transfer: on the DMA queue. */
	__u64 start_ps;
	/** @end_ps: At which its effects were complete. */
	__u64 end_ps;
};

#define DRM_IOCTL_NEURON_QUERY \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_NEURON_QUERY, struct drm_neuron_query)
#define DRM_IOCTL_NEURON_BO_CREATE \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_NEURON_BO_CREATE, struct drm_neuron_bo_create)
#define DRM_IOCTL_NEURON_BO_INFO \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_NEURON_BO_INFO, struct drm_neuron_bo_info)
#define DRM_IOCTL_NEURON_CTX_CREATE \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_NEURON_CTX_CREATE, struct drm_neuron_ctx_create)
#define DRM_IOCTL_NEURON_CTX_DESTROY \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_NEURON_CTX_DESTROY, struct drm_neuron_ctx_destroy)
#define DRM_IOCTL_NEURON_CTX_STATE \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_NEURON_CTX_STATE, struct drm_neuron_ctx_state)
#define DRM_IOCTL_NEURON_PROGRAM_LOAD \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_NEURON_PROGRAM_LOAD, struct drm_neuron_program_load)
#define DRM_IOCTL_NEURON_PROGRAM_UNLOAD \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_NEURON_PROGRAM_UNLOAD, struct drm_neuron_program_unload)
#define DRM_IOCTL_NEURON_SUBMIT \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_NEURON_SUBMIT, struct drm_neuron_submit)
#define DRM_IOCTL_NEURON_COPY \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_NEURON_COPY, struct drm_neuron_copy)
#define DRM_IOCTL_NEURON_SUBMIT_BATCH \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_NEURON_SUBMIT_BATCH, struct drm_neuron_submit_batch)
#define DRM_IOCTL_NEURON_BO_PIN \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_NEURON_BO_PIN, struct drm_neuron_bo_pin)
#define DRM_IOCTL_NEURON_STREAM_OPEN \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_NEURON_STREAM_OPEN, struct drm_neuron_stream_open)

#if defined(__cplusplus)
}
#endif

#endif /* _UAPI_DRM_NEURON_ACCEL_H_ */
