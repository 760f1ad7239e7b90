/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory that is short: every allocation of a call fails once. */
#ifndef __NEURON_FAIL_H__
#define __NEURON_FAIL_H__

struct kunit;

/**
 * struct neuron_fail_op - A call that allocates
 */
struct neuron_fail_op {
	/** @prepare: Before each call, with memory enough; NULL: nothing to do. */
	void (*prepare)(struct kunit *test, void *arg);
	/** @call: The call; 0 or -errno. It may not need what an allocation was for. */
	int (*call)(struct kunit *test, void *arg);
	/** @undo: Take back a call that succeeded; NULL: nothing to do. */
	void (*undo)(struct kunit *test, void *arg);
	/** @check: Expect all to be as before the call; NULL: it keeps nothing. */
	void (*check)(struct kunit *test, void *arg);
};

void neuron_fail_init(struct kunit *test);
void neuron_fail_each(struct kunit *test, const struct neuron_fail_op *op, void *arg);

#endif /* __NEURON_FAIL_H__ */
