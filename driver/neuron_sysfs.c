// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tree that monitoring tools know from AWS's driver, its names as in the
 * Neuron Sysfs User Guide: /sys/class/neuron_device/neuronN, where N is that of
 * /dev/accel/accelN. What a counter of theirs has no counterpart here is left
 * out. A counter is a folder with total and present, both the same here, and
 * for memory also peak.
 *
 * Memory belongs to a stack of HBM, not to a core: it is shown at the first of
 * the cores beside the stack, so that the sum over the cores is right.
 */

#include <linux/bitfield.h>
#include <linux/device/class.h>
#include <linux/kobject.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include <drm/drm_drv.h>
#include <drm/drm_file.h>

#include "neuron_drv.h"
#include "neuron_hbm.h"
#include "neuron_mailbox.h"
#include "neuron_sysfs.h"

#define SYSFS_NO_CORE  U32_MAX
#define SYSFS_PATH_MAX 64

/* What a file shows. */
enum sysfs_value {
	SYSFS_CORE_COUNT,
	SYSFS_SERIAL,
	SYSFS_CONNECTED,
	SYSFS_DEVICE_ARCH,
	SYSFS_CORE_ARCH,
	SYSFS_INSTANCE,
	SYSFS_DEVICE_NAME,
	SYSFS_ECC_SRAM,
	SYSFS_ECC_HBM,
	SYSFS_ECC_REPAIRABLE,
	SYSFS_UNHEALTHY,
	SYSFS_HEARTBEAT,
	SYSFS_HEALTH_EVENTS,
	SYSFS_SUCCESS,
	SYSFS_FAILURE,
	SYSFS_TIMEOUT,
	SYSFS_FAULTS, /* those of a mask */
	SYSFS_TIME,
	SYSFS_RESETS,
	SYSFS_RESETS_FAILED,
	SYSFS_MEM,
	SYSFS_MEM_PEAK,
	SYSFS_MEM_CODE,
	SYSFS_MEM_TENSORS,
};

/* A file, or with a counter all files of its folder. */
struct sysfs_node {
	const char *folder;
	const char *file; /* NULL: total and present */
	enum sysfs_value value;
	u32 faults;
};

#define FAULT(name) BIT(EXI_FAULT_##name)

static const struct sysfs_node device_nodes[] = {
	{ "", "core_count", SYSFS_CORE_COUNT },
	{ "", "serial_number", SYSFS_SERIAL },
	{ "", "connected_devices", SYSFS_CONNECTED },
	{ "info/architecture", "arch_type", SYSFS_DEVICE_ARCH },
	{ "info/architecture", "instance_type", SYSFS_INSTANCE },
	{ "info/architecture", "device_name", SYSFS_DEVICE_NAME },
	{ "stats/hardware", "sram_ecc_uncorrected", SYSFS_ECC_SRAM },
	{ "stats/hardware", "mem_ecc_uncorrected", SYSFS_ECC_HBM },
	{ "stats/hardware", "mem_ecc_repairable_uncorrected", SYSFS_ECC_REPAIRABLE },
};

/* Of V4. */
static const struct sysfs_node health_nodes[] = {
	{ "stats/hardware/health_status", "unhealthy_components", SYSFS_UNHEALTHY },
	{ "stats/hardware/health_status", "healthcheck_heartbeat", SYSFS_HEARTBEAT },
	{ "stats/hardware/health_status", "hw_error_event", SYSFS_HEALTH_EVENTS },
};

static const struct sysfs_node core_nodes[] = {
	{ "info/architecture", "arch_type", SYSFS_CORE_ARCH },
	{ "stats/status/success", NULL, SYSFS_SUCCESS },
	{ "stats/status/failure", NULL, SYSFS_FAILURE },
	{ "stats/status/timeout", NULL, SYSFS_TIMEOUT },
	{ "stats/status/hw_error", NULL, SYSFS_FAULTS, FAULT(BUS) | FAULT(ECC) },
	{ "stats/status/hw_hbm_ue_error", NULL, SYSFS_FAULTS, FAULT(ECC) },
	{ "stats/status/oob_error", NULL, SYSFS_FAULTS, FAULT(SLOT_BOUNDS) | FAULT(TILE_BOUNDS) },
	{ "stats/status/execute_sw_semaphore_error", NULL, SYSFS_FAULTS,
	  FAULT(SEM_OVERFLOW) | FAULT(DEADLOCK) },
	{ "stats/status/invalid_error", NULL, SYSFS_FAULTS,
	  FAULT(BAD_QUEUE) | FAULT(BAD_PROGRAM) | FAULT(BAD_OPCODE) | FAULT(BAD_OPERAND) |
		  FAULT(SLOT_INDEX) | FAULT(SLOT_RIGHTS) },
	{ "stats/other_info/inference_count", NULL, SYSFS_SUCCESS },
	{ "stats/other_info/nc_time_in_use", NULL, SYSFS_TIME },
	{ "stats/other_info/reset_req_count", NULL, SYSFS_RESETS },
	{ "stats/other_info/reset_fail_count", NULL, SYSFS_RESETS_FAILED },
	{ "stats/memory_usage/device_mem", NULL, SYSFS_MEM },
	{ "stats/memory_usage/device_mem", "peak", SYSFS_MEM_PEAK },
	{ "stats/memory_usage/device_mem/model_code", NULL, SYSFS_MEM_CODE },
	{ "stats/memory_usage/device_mem/tensors", NULL, SYSFS_MEM_TENSORS },
};

/* Files of a node. */
#define SYSFS_FILES 2

struct sysfs_attr {
	struct kobj_attribute base;
	struct neuron_device *ndev;
	const struct sysfs_node *node;
	u32 core;
};

struct sysfs_folder {
	char path[SYSFS_PATH_MAX];
	struct kobject *kobj;
};

/**
 * struct neuron_sysfs - The tree of a device
 */
struct neuron_sysfs {
	/** @dev: Its root. */
	struct device *dev;
	/** @folders: Folders, parents first. */
	struct sysfs_folder *folders;
	/** @n_folders: How many. */
	unsigned int n_folders;
	/** @attrs: Files. */
	struct sysfs_attr *attrs;
	/** @n_attrs: How many. */
	unsigned int n_attrs;
};

static const struct class sysfs_class = {
	.name = "neuron_device",
};

static bool sysfs_class_is_ours;

/* --- values -------------------------------------------------------------- */

/* Sum of field @mask over registers; nothing from a device that sleeps. */
static int sysfs_sum(struct neuron_device *ndev, u32 first, unsigned int count, u32 mask,
		     u64 *value)
{
	unsigned int i;
	u32 reg;
	int ret;

	*value = 0;
	for (i = 0; i < count; i++) {
		ret = neuron_power_peek(ndev, first + i * sizeof(u32), &reg);
		if (ret)
			return ret;
		*value += HW_GET(mask, reg);
	}
	return 0;
}

/*
 * Uncorrected errors of HBM that a repair can mend, or those that none can:
 * newer firmware counts them apart. With older one all count as the former
 * while a repair is pending, as with AWS's driver.
 */
static int sysfs_ecc_hbm(struct neuron_device *ndev, bool repairable, u64 *value)
{
	u32 mask = repairable ? MBOX_ECC_REPAIRABLE : MBOX_ECC_UNREPAIRABLE;
	bool pending;
	u32 repair;
	int ret;

	if (ndev->fw.api_version < MBOX_API_REPAIR) {
		ret = neuron_power_peek(ndev, MBOX_HBM_REPAIR, &repair);
		if (ret)
			return ret;
		pending = FIELD_GET(MBOX_HBM_REPAIR_MASK, repair) == MBOX_HBM_REPAIR_PENDING;
		*value = 0;
		if (repairable != pending)
			return 0;
		mask = MBOX_ECC_UNCORRECTED;
	}
	return sysfs_sum(ndev, MBOX_ECC_HBM(0), ndev->hbm.stacks, mask, value);
}

/* Names with commas between them; an empty line when all is well. */
static ssize_t sysfs_unhealthy(struct neuron_device *ndev, char *buf)
{
	const char *name;
	unsigned int bit;
	int ret, n = 0;
	u32 health;

	ret = neuron_power_peek(ndev, MBOX_HEALTH, &health);
	if (ret)
		return ret;
	for (bit = 0; bit < 32; bit++) {
		name = health & BIT(bit) ? mbox_health_text(bit) : NULL;
		if (name)
			n += sysfs_emit_at(buf, n, "%s%s", n ? "," : "", name);
	}
	return n + sysfs_emit_at(buf, n, "\n");
}

static u64 sysfs_faults(struct neuron_core *core, u32 mask)
{
	u64 sum = 0;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(core->faults); i++)
		if (mask & BIT(i))
			sum += core->faults[i];
	return sum;
}

static u64 sysfs_count(struct neuron_device *ndev, const struct sysfs_attr *attr)
{
	struct neuron_core *core = &ndev->core[attr->core];

	guard(spinlock_irqsave)(&core->lock);
	switch (attr->node->value) {
	case SYSFS_SUCCESS:
		return core->count.launches;
	case SYSFS_FAILURE:
		return core->count.faults + core->timeouts;
	case SYSFS_TIMEOUT:
		return core->timeouts;
	case SYSFS_FAULTS:
		return sysfs_faults(core, attr->node->faults);
	default:
		return core->count.busy_ns;
	}
}

static u64 sysfs_memory(struct neuron_device *ndev, const struct sysfs_attr *attr)
{
	unsigned int i, per_stack = max(ndev->cores / max(ndev->hbm.stacks, 1u), 1u);
	enum sysfs_value value = attr->node->value;
	bool is_code = value == SYSFS_MEM_CODE;
	struct neuron_hbm_block *block;
	u64 sum = 0;

	guard(mutex)(&ndev->hbm.lock);
	if (value == SYSFS_MEM_PEAK) {
		for (i = 0; i < ndev->hbm.stacks; i++)
			if (min(i * per_stack, ndev->cores - 1) == attr->core)
				sum += ndev->hbm.stack[i].peak;
		return sum;
	}
	list_for_each_entry(block, &ndev->hbm.given, node) {
		if (min(block->stack * per_stack, ndev->cores - 1) != attr->core)
			continue;
		if (value == SYSFS_MEM || is_code == block->code)
			sum += block->size;
	}
	return sum;
}

static int sysfs_number(struct neuron_device *ndev, const struct sysfs_attr *attr, u64 *value)
{
	switch (attr->node->value) {
	case SYSFS_CORE_COUNT:
		*value = ndev->cores;
		return 0;
	case SYSFS_ECC_SRAM:
		return sysfs_sum(ndev, MBOX_ECC_SRAM, 1, MBOX_ECC_UNCORRECTED, value);
	case SYSFS_ECC_HBM:
	case SYSFS_ECC_REPAIRABLE:
		return sysfs_ecc_hbm(ndev, attr->node->value == SYSFS_ECC_REPAIRABLE, value);
	case SYSFS_HEARTBEAT:
		return sysfs_sum(ndev, MBOX_HEALTH_SEQUENCE, 1, MBOX_HEALTH_HEARTBEAT, value);
	case SYSFS_HEALTH_EVENTS:
		*value = READ_ONCE(ndev->health.events);
		return 0;
	case SYSFS_RESETS:
		*value = READ_ONCE(ndev->resets);
		return 0;
	case SYSFS_RESETS_FAILED:
		*value = READ_ONCE(ndev->resets_failed);
		return 0;
	case SYSFS_MEM:
	case SYSFS_MEM_PEAK:
	case SYSFS_MEM_CODE:
	case SYSFS_MEM_TENSORS:
		*value = sysfs_memory(ndev, attr);
		return 0;
	default:
		*value = sysfs_count(ndev, attr);
		return 0;
	}
}

static ssize_t sysfs_show(struct kobject *kobj, struct kobj_attribute *base, char *buf)
{
	struct sysfs_attr *attr = container_of(base, struct sysfs_attr, base);
	struct neuron_device *ndev = attr->ndev;
	u64 value;
	int ret;

	switch (attr->node->value) {
	case SYSFS_SERIAL:
		return sysfs_emit(buf, "%016llx\n", ndev->serial);
	case SYSFS_UNHEALTHY:
		return sysfs_unhealthy(ndev, buf);
	case SYSFS_CONNECTED:
		return sysfs_emit(buf, "\n");
	case SYSFS_DEVICE_ARCH:
		return sysfs_emit(buf, "NDv%u\n", ndev->hal->arch);
	case SYSFS_CORE_ARCH:
		return sysfs_emit(buf, "NCv%u\n", ndev->hal->arch);
	case SYSFS_INSTANCE:
		return sysfs_emit(buf, "%s\n", ndev->hal->instance);
	case SYSFS_DEVICE_NAME:
		return sysfs_emit(buf, "%s\n", ndev->hal->product);
	default:
		ret = sysfs_number(ndev, attr, &value);
		return ret ?: sysfs_emit(buf, "%llu\n", value);
	}
}

/* --- tree ---------------------------------------------------------------- */

/* The folder of a path below the root, made with its parents if there is none yet. */
static struct kobject *sysfs_folder(struct neuron_sysfs *sysfs, const char *path)
{
	struct sysfs_folder *folder;
	struct kobject *parent;
	char up[SYSFS_PATH_MAX];
	unsigned int i;
	char *slash;

	if (!*path)
		return &sysfs->dev->kobj;
	for (i = sysfs->n_folders; i--;)
		if (!strcmp(sysfs->folders[i].path, path))
			return sysfs->folders[i].kobj;

	strscpy(up, path, sizeof(up));
	slash = strrchr(up, '/');
	*(slash ?: up) = 0;
	parent = sysfs_folder(sysfs, up);
	if (!parent)
		return NULL;
	folder = &sysfs->folders[sysfs->n_folders];
	folder->kobj = kobject_create_and_add(slash ? path + (slash - up) + 1 : path, parent);
	if (!folder->kobj)
		return NULL;
	strscpy(folder->path, path, sizeof(folder->path));
	sysfs->n_folders++;
	return folder->kobj;
}

static int sysfs_add_file(struct neuron_device *ndev, struct kobject *folder,
			  const struct sysfs_node *node, const char *name, u32 core)
{
	struct neuron_sysfs *sysfs = ndev->sysfs;
	struct sysfs_attr *attr = &sysfs->attrs[sysfs->n_attrs++];

	sysfs_attr_init(&attr->base.attr);
	attr->base.attr.name = name;
	attr->base.attr.mode = 0444;
	attr->base.show = sysfs_show;
	attr->ndev = ndev;
	attr->node = node;
	attr->core = core;
	return sysfs_create_file(folder, &attr->base.attr);
}

static int sysfs_add_nodes(struct neuron_device *ndev, const struct sysfs_node *nodes,
			   unsigned int count, u32 core)
{
	char path[SYSFS_PATH_MAX];
	struct kobject *folder;
	unsigned int i;
	int ret = 0;

	for (i = 0; i < count && !ret; i++) {
		if (core == SYSFS_NO_CORE)
			strscpy(path, nodes[i].folder, sizeof(path));
		else
			snprintf(path, sizeof(path), "neuron_core%u/%s", core, nodes[i].folder);
		folder = sysfs_folder(ndev->sysfs, path);
		if (!folder)
			return -ENOMEM;
		if (nodes[i].file) {
			ret = sysfs_add_file(ndev, folder, &nodes[i], nodes[i].file, core);
			continue;
		}
		ret = sysfs_add_file(ndev, folder, &nodes[i], "total", core);
		if (!ret)
			ret = sysfs_add_file(ndev, folder, &nodes[i], "present", core);
	}
	return ret;
}

/* Waits for those who read. */
static void sysfs_fini(void *data)
{
	struct neuron_sysfs *sysfs = data;

	while (sysfs->n_folders)
		kobject_put(sysfs->folders[--sysfs->n_folders].kobj);
	if (!IS_ERR_OR_NULL(sysfs->dev))
		device_unregister(sysfs->dev);
	kfree(sysfs->folders);
	kfree(sysfs->attrs);
	kfree(sysfs);
}

/**
 * neuron_sysfs_init - Make the tree
 * @ndev: device, registered
 *
 * It goes with the binding.
 *
 * Return: 0 or -errno.
 */
int neuron_sysfs_init(struct neuron_device *ndev)
{
	unsigned int nodes = ARRAY_SIZE(device_nodes) + ARRAY_SIZE(health_nodes) +
			     ndev->cores * ARRAY_SIZE(core_nodes);
	struct neuron_sysfs *sysfs;
	unsigned int i;
	int ret;

	if (!sysfs_class_is_ours)
		return 0;
	sysfs = kzalloc_obj(*sysfs);
	if (!sysfs)
		return -ENOMEM;
	ndev->sysfs = sysfs;
	/* No node has more than three folders of its own above it. */
	sysfs->folders = kcalloc(3 * nodes, sizeof(*sysfs->folders), GFP_KERNEL);
	sysfs->attrs = kcalloc(SYSFS_FILES * nodes, sizeof(*sysfs->attrs), GFP_KERNEL);
	ret = devm_add_action_or_reset(ndev->drm.dev, sysfs_fini, sysfs);
	if (ret)
		return ret;
	if (!sysfs->folders || !sysfs->attrs)
		return -ENOMEM;
	sysfs->dev = device_create(&sysfs_class, NULL, MKDEV(0, 0), NULL, "neuron%d",
				   ndev->drm.accel->index);
	if (IS_ERR(sysfs->dev))
		return PTR_ERR(sysfs->dev);
	ret = sysfs_add_nodes(ndev, device_nodes, ARRAY_SIZE(device_nodes), SYSFS_NO_CORE);
	if (!ret && ndev->hal->arch == NEURON_ARCH_V4)
		ret = sysfs_add_nodes(ndev, health_nodes, ARRAY_SIZE(health_nodes), SYSFS_NO_CORE);
	for (i = 0; i < ndev->cores && !ret; i++)
		ret = sysfs_add_nodes(ndev, core_nodes, ARRAY_SIZE(core_nodes), i);
	return ret;
}

/**
 * neuron_sysfs_class_init - Make the class
 *
 * Without it, as when AWS's own driver has it, there are no trees.
 */
void neuron_sysfs_class_init(void)
{
	sysfs_class_is_ours = !class_register(&sysfs_class);
	if (!sysfs_class_is_ours)
		pr_info("neuron: no /sys/class/neuron_device: it is somebody else's\n");
}

/**
 * neuron_sysfs_class_fini - Undo neuron_sysfs_class_init()
 */
void neuron_sysfs_class_fini(void)
{
	if (sysfs_class_is_ours)
		class_unregister(&sysfs_class);
}
