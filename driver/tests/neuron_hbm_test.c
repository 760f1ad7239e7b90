// SPDX-License-Identifier: GPL-2.0-only
/* Device memory: two stacks of 16 MiB at odd addresses. */

#include <kunit/test.h>
#include <linux/prandom.h>
#include <linux/random.h>

#include "../neuron_hbm.h"
#include "neuron_fail.h"

#define STACK_BYTES ((u64)SZ_16M)
#define STACK_0	    0x1000000ull
#define STACK_1	    0x4001000000ull

static int hbm_init(struct kunit *test)
{
	struct neuron_hbm *hbm = kunit_kzalloc(test, sizeof(*hbm), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, hbm);
	test->priv = hbm;
	KUNIT_ASSERT_EQ(test, neuron_hbm_init(hbm), 0);
	KUNIT_ASSERT_EQ(test, neuron_hbm_add_stack(hbm, STACK_0, 0, STACK_BYTES, NULL), 0);
	KUNIT_ASSERT_EQ(test, neuron_hbm_add_stack(hbm, STACK_1, SZ_32M, STACK_BYTES, NULL), 0);
	return 0;
}

static void hbm_exit(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, neuron_hbm_fini(test->priv), 0);
}

static void neuron_hbm_counts(struct kunit *test)
{
	struct neuron_hbm *hbm = test->priv;
	struct neuron_hbm_block a, b;

	KUNIT_EXPECT_EQ(test, hbm->total, 2 * STACK_BYTES);
	KUNIT_ASSERT_EQ(test, neuron_hbm_alloc(hbm, NEURON_HBM_GRANULE, &a), 0);
	KUNIT_ASSERT_EQ(test, neuron_hbm_alloc(hbm, 3 * NEURON_HBM_GRANULE, &b), 0);
	KUNIT_EXPECT_EQ(test, neuron_hbm_used(hbm), 4 * NEURON_HBM_GRANULE);
	neuron_hbm_free(hbm, &a);
	KUNIT_EXPECT_EQ(test, neuron_hbm_used(hbm), 3 * NEURON_HBM_GRANULE);
	neuron_hbm_free(hbm, &b);
	KUNIT_EXPECT_EQ(test, neuron_hbm_used(hbm), 0);
}

/* Whoever saves HBM finds all that is given out, and only that. */
static void neuron_hbm_lists_what_is_given(struct kunit *test)
{
	struct neuron_hbm *hbm = test->priv;
	struct neuron_hbm_block a, b;

	KUNIT_ASSERT_EQ(test, neuron_hbm_reserve_zero(hbm), 0);
	KUNIT_EXPECT_TRUE(test, list_empty(&hbm->given));
	KUNIT_ASSERT_EQ(test, neuron_hbm_alloc(hbm, SZ_1M, &a), 0);
	KUNIT_ASSERT_EQ(test, neuron_hbm_alloc(hbm, SZ_2M, &b), 0);
	KUNIT_EXPECT_PTR_EQ(test, list_first_entry(&hbm->given, struct neuron_hbm_block, node), &a);
	KUNIT_EXPECT_PTR_EQ(test, list_last_entry(&hbm->given, struct neuron_hbm_block, node), &b);
	KUNIT_EXPECT_NULL(test, a.saved);
	KUNIT_EXPECT_EQ(test, hbm->stack[a.stack].used, SZ_1M);
	KUNIT_EXPECT_EQ(test, hbm->stack[b.stack].used, SZ_2M);
	neuron_hbm_free(hbm, &a);
	KUNIT_EXPECT_PTR_EQ(test, list_first_entry(&hbm->given, struct neuron_hbm_block, node), &b);
	neuron_hbm_free(hbm, &b);
	KUNIT_EXPECT_TRUE(test, list_empty(&hbm->given));
	KUNIT_EXPECT_EQ(test, hbm->stack[b.stack].used, 0);
	KUNIT_EXPECT_EQ(test, hbm->stack[b.stack].peak, SZ_2M);
}

static void neuron_hbm_window_follows_address(struct kunit *test)
{
	struct neuron_hbm *hbm = test->priv;
	struct neuron_hbm_block block[2];
	u64 base, window;
	int i;

	for (i = 0; i < 2; i++)
		KUNIT_ASSERT_EQ(test, neuron_hbm_alloc(hbm, SZ_1M, &block[i]), 0);
	/* Spread: the second goes where more is free. */
	KUNIT_EXPECT_NE(test, block[0].stack, block[1].stack);
	for (i = 0; i < 2; i++) {
		base = block[i].stack ? STACK_1 : STACK_0;
		window = block[i].stack ? SZ_32M : 0;
		KUNIT_EXPECT_GE(test, block[i].addr, base);
		KUNIT_EXPECT_LE(test, block[i].addr + SZ_1M, base + STACK_BYTES);
		KUNIT_EXPECT_EQ(test, block[i].window - window, block[i].addr - base);
		neuron_hbm_free(hbm, &block[i]);
	}
}

static void neuron_hbm_runs_out_and_recovers(struct kunit *test)
{
	struct neuron_hbm *hbm = test->priv;
	struct neuron_hbm_block all[2], more;
	int i;

	/* Larger than a stack can never be contiguous. */
	KUNIT_EXPECT_EQ(test, neuron_hbm_alloc(hbm, STACK_BYTES + NEURON_HBM_GRANULE, &more),
			-ENOSPC);
	for (i = 0; i < 2; i++)
		KUNIT_ASSERT_EQ(test, neuron_hbm_alloc(hbm, STACK_BYTES, &all[i]), 0);
	KUNIT_EXPECT_EQ(test, neuron_hbm_used(hbm), hbm->total);
	KUNIT_EXPECT_EQ(test, neuron_hbm_alloc(hbm, NEURON_HBM_GRANULE, &more), -ENOSPC);
	KUNIT_EXPECT_EQ(test, neuron_hbm_used(hbm), hbm->total);
	neuron_hbm_free(hbm, &all[0]);
	KUNIT_EXPECT_EQ(test, neuron_hbm_alloc(hbm, STACK_BYTES, &more), 0);
	neuron_hbm_free(hbm, &more);
	neuron_hbm_free(hbm, &all[1]);
}

static void neuron_hbm_tries_the_other_stack(struct kunit *test)
{
	struct neuron_hbm *hbm = test->priv;
	struct neuron_hbm_block small[2], large;

	/* Most of the free memory is in the stack that cannot serve 9 MiB in one piece. */
	KUNIT_ASSERT_EQ(test, neuron_hbm_alloc(hbm, SZ_8M, &small[0]), 0);
	KUNIT_ASSERT_EQ(test, neuron_hbm_alloc(hbm, SZ_4M, &small[1]), 0);
	KUNIT_ASSERT_NE(test, small[0].stack, small[1].stack);
	KUNIT_EXPECT_EQ(test, neuron_hbm_alloc(hbm, 9 * SZ_1M, &large), 0);
	neuron_hbm_free(hbm, &large);
	neuron_hbm_free(hbm, &small[0]);
	neuron_hbm_free(hbm, &small[1]);
}

static void neuron_hbm_zeroes_are_not_for_users(struct kunit *test)
{
	struct neuron_hbm *hbm = test->priv;

	KUNIT_ASSERT_EQ(test, neuron_hbm_reserve_zero(hbm), 0);
	KUNIT_EXPECT_EQ(test, hbm->total, 2 * STACK_BYTES - NEURON_HBM_ZERO_BYTES);
	KUNIT_EXPECT_EQ(test, neuron_hbm_used(hbm), 0);
	KUNIT_EXPECT_EQ(test, hbm->zero.size, NEURON_HBM_ZERO_BYTES);
}

#define RANDOM_BLOCKS 64

static bool overlap(const struct neuron_hbm_block *a, const struct neuron_hbm_block *b)
{
	return a->size && b->size && a->addr < b->addr + b->size && b->addr < a->addr + a->size;
}

static void neuron_hbm_random_blocks_never_overlap(struct kunit *test)
{
	struct neuron_hbm_block *block;
	struct neuron_hbm *hbm = test->priv;
	u32 seed = get_random_u32();
	struct rnd_state rnd;
	u64 size, used = 0;
	int i, j, k, ret;

	kunit_info(test, "seed %u\n", seed);
	prandom_seed_state(&rnd, seed);
	block = kunit_kcalloc(test, RANDOM_BLOCKS, sizeof(*block), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, block);
	for (k = 0; k < 2000; k++) {
		i = prandom_u32_state(&rnd) % RANDOM_BLOCKS;
		if (block[i].size) {
			used -= block[i].size;
			neuron_hbm_free(hbm, &block[i]);
			block[i].size = 0;
			continue;
		}
		size = (1 + prandom_u32_state(&rnd) % 200) * NEURON_HBM_GRANULE;
		ret = neuron_hbm_alloc(hbm, size, &block[i]);
		if (ret) {
			KUNIT_ASSERT_EQ(test, ret, -ENOSPC);
			block[i].size = 0;
			continue;
		}
		used += block[i].size;
		for (j = 0; j < RANDOM_BLOCKS; j++)
			if (j != i)
				KUNIT_ASSERT_FALSE(test, overlap(&block[i], &block[j]));
		KUNIT_ASSERT_EQ(test, neuron_hbm_used(hbm), used);
	}
	for (i = 0; i < RANDOM_BLOCKS; i++)
		if (block[i].size)
			neuron_hbm_free(hbm, &block[i]);
}

static void neuron_hbm_names_what_was_lost(struct kunit *test)
{
	struct neuron_hbm *hbm = kunit_kzalloc(test, sizeof(*hbm), GFP_KERNEL);
	struct neuron_hbm_block block;

	KUNIT_ASSERT_NOT_NULL(test, hbm);
	neuron_hbm_init(hbm);
	KUNIT_ASSERT_EQ(test, neuron_hbm_add_stack(hbm, 0, 0, STACK_BYTES, NULL), 0);
	KUNIT_ASSERT_EQ(test, neuron_hbm_alloc(hbm, SZ_64K, &block), 0);
	/* Lost memory stays lost; so that the test loses none, free it and keep the count. */
	scoped_guard(mutex, &hbm->lock)
		gpu_buddy_free_list(&hbm->stack[0].mm, &block.blocks, 0);
	gpu_buddy_fini(&hbm->stack[0].mm);
	KUNIT_EXPECT_EQ(test, neuron_hbm_fini(hbm), SZ_64K);
}

static int fail_stack(struct kunit *test, void *arg)
{
	return neuron_hbm_add_stack(arg, 0, 0, 3 * SZ_1M, NULL);
}

static void fail_unstack(struct kunit *test, void *arg)
{
	struct neuron_hbm *hbm = arg;

	gpu_buddy_fini(&hbm->stack[--hbm->stacks].mm);
	hbm->total -= 3 * SZ_1M;
}

static void fail_check_stack(struct kunit *test, void *arg)
{
	struct neuron_hbm *hbm = arg;

	KUNIT_EXPECT_EQ(test, hbm->stacks, 2);
	KUNIT_EXPECT_EQ(test, hbm->total, 2 * STACK_BYTES);
}

static void neuron_hbm_adds_no_stack_without_memory(struct kunit *test)
{
	static const struct neuron_fail_op op = {
		.call = fail_stack,
		.undo = fail_unstack,
		.check = fail_check_stack,
	};

	neuron_fail_init(test);
	neuron_fail_each(test, &op, test->priv);
}

static struct kunit_case neuron_hbm_cases[] = { KUNIT_CASE(neuron_hbm_counts),
						KUNIT_CASE(neuron_hbm_lists_what_is_given),
						KUNIT_CASE(neuron_hbm_window_follows_address),
						KUNIT_CASE(neuron_hbm_runs_out_and_recovers),
						KUNIT_CASE(neuron_hbm_tries_the_other_stack),
						KUNIT_CASE(neuron_hbm_zeroes_are_not_for_users),
						KUNIT_CASE(neuron_hbm_random_blocks_never_overlap),
						KUNIT_CASE(neuron_hbm_names_what_was_lost),
						KUNIT_CASE(neuron_hbm_adds_no_stack_without_memory),
						{} };

static struct kunit_suite neuron_hbm_suite = {
	.name = "neuron_hbm",
	.init = hbm_init,
	.exit = hbm_exit,
	.test_cases = neuron_hbm_cases,
};

kunit_test_suite(neuron_hbm_suite);
