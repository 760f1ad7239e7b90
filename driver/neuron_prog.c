// SPDX-License-Identifier: GPL-2.0-only
/*
 * Programs: the image is copied from the user once, checked once, and copied to
 * HBM that nobody can map. A launch then compares buffer sizes and nothing else.
 */

#include <linux/crc32c.h>
#include <linux/ctype.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include <drm/drm_drv.h>
#include <drm/drm_file.h>

#include "neuron_drv.h"
#include "neuron_prog.h"

/* CRC-32C of the image with the field itself taken as zero. */
static u32 prog_crc(const void *image, u64 size)
{
	const size_t field = offsetof(struct nprog_header, crc32c);
	const __le32 zero = 0;
	u32 crc = U32_MAX;

	crc = crc32c(crc, image, field);
	crc = crc32c(crc, &zero, sizeof(zero));
	crc = crc32c(crc, image + field + sizeof(zero), size - field - sizeof(zero));
	return ~crc;
}

/**
 * neuron_prog_check - Is this a program for a core of this generation?
 * @image: the image, 8-byte aligned
 * @size: its bytes
 * @arch: generation of the core
 * @finding: out: what is wrong with it
 *
 * Return: 0, -ENOEXEC malformed, -EOPNOTSUPP version or arch, -E2BIG too large.
 */
int neuron_prog_check(const void *image, u64 size, u32 arch, struct nprog_finding *finding)
{
	const struct nprog_header *header = image;
	u32 crc;

	switch (nprog_check(image, size, arch, finding)) {
	case NPROG_OK:
		break;
	case NPROG_TOO_LARGE:
		return -E2BIG;
	case NPROG_BAD_VERSION:
	case NPROG_BAD_ARCH:
		return -EOPNOTSUPP;
	default:
		return -ENOEXEC;
	}

	crc = prog_crc(image, size);
	if (crc != le32_to_cpu(header->crc32c)) {
		nprog_found(finding, NPROG_MALFORMED, "checksum is wrong",
			    offsetof(struct nprog_header, crc32c), le32_to_cpu(header->crc32c),
			    crc);
		return -ENOEXEC;
	}
	return 0;
}

static void prog_release(struct kref *ref)
{
	struct neuron_prog *prog = container_of(ref, struct neuron_prog, ref);
	struct neuron_file *nfile = prog->nfile;

	atomic64_sub(prog->hbm.size, &nfile->hbm_bytes);
	atomic64_sub(prog->hbm.size, &nfile->prog_bytes);
	atomic64_sub(prog->const_bytes, &nfile->const_bytes);
	neuron_evict_free(nfile->ndev, &prog->hbm);
	kvfree(prog);
	neuron_file_put(nfile);
}

/**
 * neuron_prog_put - Drop a reference
 * @prog: the program
 *
 * Context: Process; may free HBM.
 */
void neuron_prog_put(struct neuron_prog *prog)
{
	kref_put(&prog->ref, prog_release);
}

static void prog_put_work(struct work_struct *work)
{
	neuron_prog_put(container_of(work, struct neuron_prog, put_work));
}

/**
 * neuron_prog_put_later - Drop a reference without freeing the program here
 * @prog: the program
 *
 * For free_job, for the reason of neuron_bo_put_later(). The file stays as long as the program.
 */
void neuron_prog_put_later(struct neuron_prog *prog)
{
	if (!refcount_dec_not_one(&prog->ref.refcount))
		queue_work(neuron_free_wq, &prog->put_work);
}

/**
 * neuron_prog_lookup - Find a program
 * @nfile: its file
 * @id: its id
 *
 * Return: the program, counted; NULL if there is none.
 */
struct neuron_prog *neuron_prog_lookup(struct neuron_file *nfile, u32 id)
{
	struct neuron_prog *prog;

	xa_lock(&nfile->progs);
	prog = xa_load(&nfile->progs, id);
	if (prog)
		kref_get(&prog->ref);
	xa_unlock(&nfile->progs);
	return prog;
}

/*
 * Programs that fdinfo lists: enough for a person; it is read often, and the
 * lock is that of look-ups.
 */
#define PROG_PRINT_MAX 256

/**
 * neuron_prog_print - List the programs of a file, for fdinfo
 * @nfile: the file
 * @p: where to print
 */
void neuron_prog_print(struct neuron_file *nfile, struct drm_printer *p)
{
	unsigned int count = 0;
	struct neuron_prog *prog;
	unsigned long id;

	xa_lock(&nfile->progs);
	xa_for_each(&nfile->progs, id, prog) {
		if (++count > PROG_PRINT_MAX)
			continue;
		drm_printf(p, "neuron-program-%lu:\t%llu %llu %s\n", id, prog->hbm.size,
			   (u64)atomic64_read(&prog->launches), prog->name);
	}
	xa_unlock(&nfile->progs);
	drm_printf(p, "neuron-programs:\t%u\n", count);
}

/* Others print the name: nothing in it may end the line or command a terminal. */
static void prog_set_name(struct neuron_prog *prog, const struct nprog_header *header)
{
	unsigned int i;

	for (i = 0; i < sizeof(header->name) && header->name[i]; i++)
		prog->name[i] = isascii(header->name[i]) && isprint(header->name[i]) ?
					header->name[i] :
					'?';
}

/* A program of a checked image, in HBM. The device is there. */
static struct neuron_prog *prog_create(struct neuron_file *nfile, const void *image, u32 size)
{
	const struct nprog_header *header = image;
	const struct nprog_slot *slots = image + le32_to_cpu(header->slot_offset);
	u32 i, n_slots = le32_to_cpu(header->n_slots);
	struct neuron_device *ndev = nfile->ndev;
	struct neuron_prog *prog;
	int ret;

	prog = kvzalloc(struct_size(prog, slots, n_slots), GFP_KERNEL_ACCOUNT);
	if (!prog)
		return ERR_PTR(-ENOMEM);
	prog->n_slots = n_slots;
	ret = neuron_evict_alloc(ndev, round_up((u64)size, NEURON_HBM_GRANULE), &prog->hbm);
	if (ret) {
		kvfree(prog);
		return ERR_PTR(ret);
	}
	WRITE_ONCE(prog->hbm.code, true);
	kref_init(&prog->ref);
	INIT_WORK(&prog->put_work, prog_put_work);
	prog->nfile = neuron_file_get(nfile);
	prog->const_bytes = le32_to_cpu(header->const_bytes);
	prog_set_name(prog, header);
	atomic64_add(prog->hbm.size, &nfile->hbm_bytes);
	atomic64_add(prog->hbm.size, &nfile->prog_bytes);
	atomic64_add(prog->const_bytes, &nfile->const_bytes);
	prog->device_id = atomic64_inc_return(&ndev->program_id);
	prog->image_bytes = size;
	for (i = 0; i < n_slots; i++) {
		prog->slots[i].min_bytes = le64_to_cpu(slots[i].min_bytes);
		prog->slots[i].rights = le32_to_cpu(slots[i].rights);
		prog->slots[i].scalar = slots[i].kind == NPROG_SLOT_SCALAR;
	}
	/* What is written during a reset is lost. */
	ret = neuron_power_lock(ndev);
	if (ret) {
		neuron_prog_put(prog);
		return ERR_PTR(ret);
	}
	neuron_hbm_fill(&ndev->hbm, &prog->hbm, image, size);
	neuron_power_unlock(ndev);
	return prog;
}

static int prog_load(struct drm_file *file, struct drm_neuron_program_load *args, const void *image)
{
	struct neuron_file *nfile = file->driver_priv;
	struct drm_device *drm = &nfile->ndev->drm;
	struct nprog_finding finding;
	struct neuron_prog *prog;
	int ret, idx;

	ret = neuron_prog_check(image, args->size, nfile->ndev->hal->arch, &finding);
	if (ret) {
		drm_dbg(drm, "program refused: %s at 0x%x: 0x%llx, limit 0x%llx\n", finding.what,
			finding.offset, finding.value, finding.limit);
		return ret;
	}

	if (!drm_dev_enter(drm, &idx))
		return -ENODEV;
	prog = prog_create(nfile, image, args->size);
	drm_dev_exit(idx);
	if (IS_ERR(prog))
		return PTR_ERR(prog);

	/* With its id it can be unloaded by another thread. */
	kref_get(&prog->ref);
	ret = xa_alloc(&nfile->progs, &prog->id, prog, xa_limit_31b, GFP_KERNEL);
	if (ret)
		neuron_prog_put(prog);
	else
		args->program = prog->id;
	neuron_prog_put(prog);
	return ret;
}

/**
 * neuron_ioctl_program_load - DRM_IOCTL_NEURON_PROGRAM_LOAD
 * @drm: device
 * @data: struct drm_neuron_program_load
 * @file: caller
 *
 * Return: 0 or -errno as documented with the structure.
 */
int neuron_ioctl_program_load(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct drm_neuron_program_load *args = data;
	void *image;
	int ret;

	if (args->flags) {
		drm_dbg(drm, "program load: unknown flags 0x%x\n", args->flags);
		return -EINVAL;
	}
	if (args->size > NPROG_IMAGE_MAX) {
		drm_dbg(drm, "program of 0x%llx bytes, limit 0x%x\n", args->size, NPROG_IMAGE_MAX);
		return -E2BIG;
	}
	if (args->size < sizeof(struct nprog_header)) {
		drm_dbg(drm, "program of 0x%llx bytes is shorter than its header\n", args->size);
		return -ENOEXEC;
	}

	image = kvmalloc(args->size, GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!image)
		return -ENOMEM;
	if (copy_from_user(image, u64_to_user_ptr(args->image), args->size))
		ret = -EFAULT;
	else
		ret = prog_load(file, args, image);
	kvfree(image);
	return ret;
}

/**
 * neuron_ioctl_program_unload - DRM_IOCTL_NEURON_PROGRAM_UNLOAD
 * @drm: device
 * @data: struct drm_neuron_program_unload
 * @file: caller
 *
 * Return: 0 or -errno as documented with the structure.
 */
int neuron_ioctl_program_unload(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct drm_neuron_program_unload *args = data;
	struct neuron_file *nfile = file->driver_priv;
	struct neuron_prog *prog;

	if (args->pad) {
		drm_dbg(drm, "program unload: padding 0x%x\n", args->pad);
		return -EINVAL;
	}
	prog = xa_erase(&nfile->progs, args->program);
	if (!prog) {
		drm_dbg(drm, "no program %u\n", args->program);
		return -ENOENT;
	}
	neuron_prog_put(prog);
	return 0;
}
