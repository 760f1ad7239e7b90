// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel's fault injection (CONFIG_FAILSLAB, CONFIG_FAIL_PAGE_ALLOC), which fails the nth
 * allocation of a task; without it the tests that need it are skipped. By default it spares
 * allocations that may sleep, and only files of debugfs change that.
 */

#include <kunit/test.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mman.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <linux/uaccess.h>

#include "neuron_fail.h"

#ifdef CONFIG_FAULT_INJECTION_DEBUG_FS

/* More allocations than any call makes: reaching it means that the loop does not end. */
#define FAIL_MAX 500

/* What the files are written from: they take pointers of user space only. */
static char __user *fail_text(struct kunit *test)
{
	unsigned long addr = kunit_vm_mmap(test, NULL, 0, PAGE_SIZE, PROT_READ | PROT_WRITE,
					   MAP_ANONYMOUS | MAP_PRIVATE, 0);

	KUNIT_ASSERT_NE_MSG(test, addr, 0, "no user memory to write debugfs files from");
	return (char __user *)addr;
}

static ssize_t fail_write(struct vfsmount *debugfs, const char *path, char __user *buf,
			  const char *text)
{
	size_t size = strlen(text);
	struct file *file;
	loff_t pos = 0;
	ssize_t ret;

	if (copy_to_user(buf, text, size))
		return -EFAULT;
	file = file_open_root_mnt(debugfs, path, O_WRONLY, 0);
	if (IS_ERR(file))
		return PTR_ERR(file);
	ret = file->f_op->write ? file->f_op->write(file, buf, size, &pos) : -EINVAL;
	fput(file);
	return ret;
}

/**
 * neuron_fail_init - Have all allocations that a test wants to fail, fail
 * @test: the test; skipped when the kernel has no fault injection
 */
void neuron_fail_init(struct kunit *test)
{
	/* Sleeping allocations too; single pages too; nothing in the log. */
	static const struct {
		const char *path;
		const char *text;
	} files[] = {
		{ "failslab/ignore-gfp-wait", "N" },	    { "failslab/verbose", "0" },
		{ "fail_page_alloc/ignore-gfp-wait", "N" }, { "fail_page_alloc/min-order", "0" },
		{ "fail_page_alloc/verbose", "0" },
	};
	struct file_system_type *type = get_fs_type("debugfs");
	char __user *buf = fail_text(test);
	struct vfsmount *debugfs;
	unsigned int i;
	ssize_t ret;

	KUNIT_ASSERT_NOT_NULL(test, type);
	debugfs = kern_mount(type);
	KUNIT_ASSERT_FALSE_MSG(test, IS_ERR(debugfs), "debugfs cannot be mounted: %pe", debugfs);
	for (i = 0; i < ARRAY_SIZE(files); i++) {
		ret = fail_write(debugfs, files[i].path, buf, files[i].text);
		KUNIT_EXPECT_EQ_MSG(test, ret, strlen(files[i].text), "debugfs file %s",
				    files[i].path);
	}
	kern_unmount(debugfs);
}

/* Whether the @nth allocation failed; false: the call makes fewer. */
static bool fail_one(struct kunit *test, const struct neuron_fail_op *op, void *arg,
		     unsigned int nth, int *ret)
{
	unsigned int left;

	if (op->prepare)
		op->prepare(test, arg);
	current->fail_nth = nth;
	*ret = op->call(test, arg);
	left = current->fail_nth;
	current->fail_nth = 0;
	return !left;
}

/**
 * neuron_fail_each - Repeat a call, another allocation failing each time, until all did
 * @test: the test, which called neuron_fail_init()
 * @op: the call
 * @arg: for its functions
 *
 * A call without what it asked for says -ENOMEM and has done nothing, or does
 * without. At least one must say so.
 */
void neuron_fail_each(struct kunit *test, const struct neuron_fail_op *op, void *arg)
{
	unsigned int nth = 0, failures = 0;
	bool injected;
	int ret;

	do {
		KUNIT_ASSERT_LT_MSG(test, nth, FAIL_MAX, "no end of allocations");
		injected = fail_one(test, op, arg, ++nth, &ret);
		failures += !!ret;
		if (ret)
			KUNIT_EXPECT_EQ_MSG(test, ret, injected ? -ENOMEM : 0, "allocation %u",
					    nth);
		else if (op->undo)
			op->undo(test, arg);
		if (op->check)
			op->check(test, arg);
	} while (injected);
	KUNIT_EXPECT_GT_MSG(test, failures, 0, "%u allocations, and no failure of any matters",
			    nth - 1);
	kunit_info(test, "%u allocations, %u of them needed\n", nth - 1, failures);
}

#else

void neuron_fail_init(struct kunit *test)
{
	kunit_skip(test, "the kernel has no CONFIG_FAULT_INJECTION_DEBUG_FS");
}

void neuron_fail_each(struct kunit *test, const struct neuron_fail_op *op, void *arg)
{
	KUNIT_FAIL(test, "called without neuron_fail_init()");
}

#endif
