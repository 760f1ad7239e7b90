/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of the ioctl interface share: a device file, buffers, fences, programs. A call
 * that has no reason to fail ends the test when it does; the others are made by neuron_call().
 */
#ifndef TESTS_VM_DEV_H
#define TESTS_VM_DEV_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "drm/neuron_accel.h"
#include "neuron_isa.h"
#include "neuron_program.h"
#include "neuron_queue.h"

/* --- device --------------------------------------------------------------- */

/* The first device, or the first from /dev/accel/accel$NEURON_TEST_DEVICE on. */
int dev_open(void);
/* Generation of its cores. */
uint32_t dev_arch(void);
void dev_close(int fd);
/* Another device than that of fd, the next one if possible; -1 if there is none. */
int dev_open_other(int fd);

/* cmocka fixture: *state is a pointer to a file; HBM must be as free afterwards as before. */
int dev_setup(void **state);
int dev_teardown(void **state);
#define FD (*(int *)*state)
/* Whether programs that wait for ever hang, for 1 s in contexts made from now on. */
void dev_allow_hangs(bool allow);
/* Setup and teardown where they do. */
int dev_hang_setup(void **state);
int dev_hang_teardown(void **state);

/* 0 or -errno; restarts after a signal. */
int neuron_call(int fd, unsigned long request, void *arg);
/* The same with another size of structure than the header's. */
int neuron_call_sized(int fd, unsigned long request, unsigned int size, void *arg);

#define assert_ok(expr)		  assert_int_equal(expr, 0)
#define assert_errno(expr, error) assert_int_equal(expr, -(error))

struct drm_neuron_query_device dev_info(int fd);
struct drm_neuron_query_memory dev_memory(int fd);
struct drm_neuron_query_core dev_core(int fd, uint32_t core);
/* What the file's fdinfo has behind "KEY:" and blanks. */
void dev_fdinfo(int fd, const char *key, char *value, int size);
/* Waits up to 10 s for hbm_used to be this. */
void dev_wait_hbm(int fd, uint64_t used);

/* A file of the debug file system or of the module's parameters. */
void dev_debugfs_write(const char *name, const char *value);
void dev_param_write(const char *name, const char *value);
/* Tells the driver to let go of a device ("unbind") or to take it ("bind"): 0 or -errno. */
int dev_driver_write(const char *name, const char *address);
/* PCI address of the device of dev_open(), as sysfs writes it. */
const char *dev_pci_address(void);

/* Writes a text to a file that exists. */
void file_write(const char *path, const char *text);
/* Text of the one file that fits a pattern, waited for up to 5 s, and its path; NULL: there is none.
 * Good until the next call. */
char *file_read_glob(const char *pattern, char path[256]);
/* The same of a file that has a number. */
long long file_number(const char *pattern);

/* --- bytes ---------------------------------------------------------------- */

/* Byte i of a sequence that each seed has another of; its first n to memory. */
uint8_t bytes_pattern(uint64_t i, uint32_t seed);
void bytes_fill(void *ptr, uint64_t n, uint32_t seed);
/* That memory holds the first n; of them those from at on; n times the same byte. */
void bytes_assert(const void *ptr, uint64_t n, uint32_t seed);
void bytes_assert_from(const void *ptr, uint64_t at, uint64_t n, uint32_t seed);
void bytes_assert_all(const void *ptr, uint64_t n, uint8_t value);

/* --- buffers -------------------------------------------------------------- */

int bo_try(int fd, uint64_t size, uint32_t flags, uint32_t *handle);
uint32_t bo_new(int fd, uint64_t size, uint32_t flags);
void bo_close(int fd, uint32_t handle);
struct drm_neuron_bo_info bo_info(int fd, uint32_t handle);
void *bo_map(int fd, uint32_t handle);
void bo_unmap(int fd, uint32_t handle, void *ptr);

#define BO_HBM	DRM_NEURON_BO_HBM
#define BO_HOST DRM_NEURON_BO_HOST
#define BO_MMAP DRM_NEURON_BO_MMAP

/* --- fences --------------------------------------------------------------- */

uint32_t sync_new(int fd);
void sync_close(int fd, uint32_t handle);
/* Waits up to timeout_ms for a point (0: binary). 0, -ETIME. */
int sync_wait(int fd, uint32_t handle, uint64_t point, int timeout_ms);
/* How a binary fence ended: 1 well, 0 not yet, -errno. */
int sync_status(int fd, uint32_t handle);

#define ARRAY(ptr_, count_)                                                            \
	(struct drm_neuron_array)                                                      \
	{                                                                              \
		.stride = sizeof(*(ptr_)), .count = (count_), .ptr = (uintptr_t)(ptr_) \
	}

/* Copies and waits for it. */
void copy_now(int fd, uint32_t dst, uint64_t dst_offset, uint32_t src, uint64_t src_offset,
	      uint64_t size);
/* Starts a copy that signals out, unless 0. 0 or -errno. */
int copy_start(int fd, uint32_t dst, uint64_t dst_offset, uint32_t src, uint64_t src_offset,
	       uint64_t size, uint32_t out);

/* --- programs ------------------------------------------------------------- */

#define PROG_INSTS 8
#define PROG_SLOTS 4

/* Instructions and slots, collected; prog_image() makes the bytes. */
struct prog {
	const char *name; /* NULL: none */
	struct isa_inst inst[EXI_ENGINES][PROG_INSTS];
	unsigned int count[EXI_ENGINES];
	struct nprog_slot slot[PROG_SLOTS];
	unsigned int slots;
};

unsigned int prog_slot(struct prog *p, unsigned int kind, uint64_t min_bytes);
struct isa_inst *prog_inst(struct prog *p, unsigned int engine, unsigned int opcode);
void inst_wait(struct isa_inst *inst, unsigned int sem, uint32_t value);
void inst_signal(struct isa_inst *inst, unsigned int sem);
/* SBUF columns [0, bytes) of all partitions. */
void dma_sbuf(struct isa_dma_side *side, uint32_t bytes);
/* Bytes of a slot from offset on. */
void dma_slot(struct isa_dma_side *side, unsigned int slot, uint64_t offset, uint32_t bytes);

#define TILE_PARTS 128

/* The caller frees it. */
void *prog_image(const struct prog *p, size_t *size);
/* Makes the checksum right again after a change. */
void prog_seal(void *image, size_t size);
int prog_try(int fd, const void *image, uint64_t size, uint32_t *program);
uint32_t prog_load(int fd, const struct prog *p);
void prog_unload(int fd, uint32_t program);

/* Ready-made ones. */
uint32_t prog_nop(int fd);
/* Slot 0: output of TILE_PARTS * 4 * n bytes, filled with a float. */
uint32_t prog_fill(int fd, float value, unsigned int n);
/* Slot 0 to slot 1 through SBUF, TILE_PARTS * bytes. */
uint32_t prog_through_sbuf(int fd, uint32_t bytes);
/* The vector engine waits for ever. */
uint32_t prog_stall(int fd);

/* --- contexts ------------------------------------------------------------- */

uint32_t ctx_new(int fd, uint32_t core);
void ctx_close(int fd, uint32_t ctx);
struct drm_neuron_ctx_state ctx_state(int fd, uint32_t ctx);
/* Starts a launch that signals out, unless 0. Slots are whole buffers. 0 or -errno. */
int launch(int fd, uint32_t ctx, uint32_t program, const uint32_t *bo, unsigned int n,
	   uint32_t out);
/* Launches, waits, and returns how it ended: 1 or -errno. */
int launch_now(int fd, uint32_t ctx, uint32_t program, const uint32_t *bo, unsigned int n);

#endif /* TESTS_VM_DEV_H */
