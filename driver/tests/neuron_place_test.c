// SPDX-License-Identifier: GPL-2.0-only
/* Where a new context goes, and who may ask for what. Part of neuron_place.c. */

#include <kunit/test.h>
#include <linux/cred.h>

#define PLACE_CORES  4
#define PLACE_QUEUES 4
#define PLACE_USER   KUIDT_INIT(1000)
#define PLACE_NOBODY PLACE_CORES

/* A letter for each queue of each core. */
struct place_row {
	const char *what;
	const char *queues[PLACE_CORES];
	u64 cores;
	u32 core, queue; /* PLACE_NOBODY: no room */
};

#define USER   'u' /* has a context of the user */
#define OTHER  'o' /* has one of somebody else */
#define DYING  'd' /* has one of somebody else that takes no launches */
#define BROKEN 'x' /* is out of use */
#define FREE   '.'

static const struct place_row place_rows[] = {
	{ "one core", { "o...", "....", "....", "...." }, 0x1, 0, 1 },
	{ "the first of equals", { "....", "....", "....", "...." }, 0xf, 0, 0 },
	{ "the emptiest", { "oo..", "uo..", "o...", "ou.." }, 0xf, 2, 1 },
	{ "the emptiest of the set", { "oo..", "uo..", "....", "o..." }, 0xb, 3, 1 },
	{ "own contexts count alike", { "u...", "o...", "....", "...." }, 0x3, 0, 1 },
	{ "dying ones do not count", { "o...", "ddd.", "oo..", "oo.." }, 0xf, 1, 3 },
	{ "a queue in between", { "o.o.", "ooo.", "ooo.", "ooo." }, 0xf, 0, 1 },
	{ "not one out of use", { "xo..", "oo..", "oo..", "oo.." }, 0xf, 0, 2 },
	{ "not a full core", { "dddd", "oo..", "o...", "oo.." }, 0xf, 2, 1 },
	{ "not a core half of which is the user's", { "uu..", "ooo.", "ooo.", "ooo." }, 0xf, 1, 3 },
	{ "no core has room", { "oooo", "uu..", "xxxx", "uudd" }, 0xf, PLACE_NOBODY, 0 },
	{ "no core of the set has room", { "....", "oooo", "....", "...." }, 0x2, PLACE_NOBODY, 0 },
};

KUNIT_ARRAY_PARAM_DESC(place, place_rows, what);

static struct neuron_device *place_device(struct kunit *test)
{
	struct neuron_device *ndev = kunit_kzalloc(test, sizeof(*ndev), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, ndev);
	mutex_init(&ndev->reset_lock);
	ndev->cores = PLACE_CORES;
	ndev->queues = PLACE_QUEUES;
	return ndev;
}

static struct neuron_ctx *place_queue(struct kunit *test, char letter)
{
	struct neuron_ctx *ctx;

	if (letter == FREE)
		return NULL;
	if (letter == BROKEN)
		return ERR_PTR(-EIO);
	ctx = kunit_kzalloc(test, sizeof(*ctx), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ctx);
	ctx->uid = letter == USER ? PLACE_USER : KUIDT_INIT(1001);
	ctx->running = letter != DYING;
	return ctx;
}

/* Go on without capabilities; place_revert() brings them back. */
static const struct cred *place_drop(struct kunit *test)
{
	struct cred *cred = prepare_creds();

	KUNIT_ASSERT_NOT_NULL(test, cred);
	cap_clear(cred->cap_effective);
	return override_creds(cred);
}

static void place_revert(const struct cred *old)
{
	put_cred(revert_creds(old));
}

static int place_as(struct kunit *test, bool plain, struct neuron_device *ndev, u64 cores,
		    u32 *core, u32 *queue)
{
	const struct cred *old = plain ? place_drop(test) : NULL;
	int ret;

	scoped_guard(mutex, &ndev->reset_lock)
		ret = neuron_place_ctx(ndev, cores, PLACE_USER, core, queue);
	if (plain)
		place_revert(old);
	return ret;
}

static void neuron_place_follows_its_rule(struct kunit *test)
{
	const struct place_row *row = test->param_value;
	struct neuron_device *ndev = place_device(test);
	u32 c, q, core = PLACE_NOBODY, queue = 0;
	int ret;

	for (c = 0; c < PLACE_CORES; c++)
		for (q = 0; q < PLACE_QUEUES; q++)
			ndev->core[c].ctx[q] = place_queue(test, row->queues[c][q]);
	ret = place_as(test, true, ndev, row->cores, &core, &queue);
	KUNIT_EXPECT_EQ(test, ret, row->core == PLACE_NOBODY ? -ENOSPC : 0);
	KUNIT_EXPECT_EQ(test, core, row->core);
	KUNIT_EXPECT_EQ(test, queue, row->queue);
}

/* Half of a core is no limit for an administrator. */
static void neuron_place_lets_an_administrator_fill_a_core(struct kunit *test)
{
	struct neuron_device *ndev = place_device(test);
	u32 core = PLACE_NOBODY, queue, q;

	for (q = 0; q < PLACE_QUEUES; q++) {
		KUNIT_EXPECT_EQ(test, place_as(test, false, ndev, 0x2, &core, &queue), 0);
		KUNIT_EXPECT_EQ(test, core, 1);
		KUNIT_EXPECT_EQ(test, queue, q);
		ndev->core[1].ctx[q] = place_queue(test, USER);
	}
	KUNIT_EXPECT_EQ(test, place_as(test, false, ndev, 0x2, &core, &queue), -ENOSPC);
}

/* As many contexts on each core of the set, in turns. */
static void neuron_place_spreads_contexts(struct kunit *test)
{
	struct neuron_device *ndev = place_device(test);
	static const u32 turns[] = { 0, 2, 3 };
	u32 core, queue, i;

	for (i = 0; i < 6; i++) {
		KUNIT_ASSERT_EQ(test, place_as(test, true, ndev, 0xd, &core, &queue), 0);
		KUNIT_EXPECT_EQ(test, core, turns[i % 3]);
		KUNIT_EXPECT_EQ(test, queue, i / 3);
		ndev->core[core].ctx[queue] = place_queue(test, USER);
	}
}

struct ask_row {
	const char *what;
	struct drm_neuron_ctx_create args;
	int ret, plain; /* with and without capabilities */
};

static const struct ask_row ask_rows[] = {
	{ "core 0", { .core = 0 }, 0, 0 },
	{ "the last core", { .core = PLACE_CORES - 1 }, 0, 0 },
	{ "no such core", { .core = PLACE_CORES }, -EINVAL, -EINVAL },
	{ "all cores", { .cores = BIT_ULL(PLACE_CORES) - 1 }, 0, 0 },
	{ "one core too many", { .cores = BIT_ULL(PLACE_CORES + 1) - 1 }, -EINVAL, -EINVAL },
	{ "only a core beyond", { .cores = BIT_ULL(63) }, -EINVAL, -EINVAL },
	{ "a core and a set", { .core = 1, .cores = 0x2 }, -EINVAL, -EINVAL },
	{ "a flag", { .flags = 1 }, -EINVAL, -EINVAL },
	{ "low priority", { .priority = DRM_NEURON_PRIORITY_LOW }, 0, 0 },
	{ "high priority", { .priority = DRM_NEURON_PRIORITY_HIGH }, 0, -EACCES },
	{ "no such priority", { .priority = DRM_NEURON_PRIORITY_HIGH + 1 }, -EINVAL, -EINVAL },
};

KUNIT_ARRAY_PARAM_DESC(ask, ask_rows, what);

static void neuron_place_checks_what_is_asked(struct kunit *test)
{
	const struct ask_row *row = test->param_value;
	struct neuron_device *ndev = place_device(test);
	const struct cred *old;

	KUNIT_EXPECT_EQ(test, neuron_place_check(ndev, &row->args), row->ret);
	old = place_drop(test);
	KUNIT_EXPECT_EQ(test, neuron_place_check(ndev, &row->args), row->plain);
	place_revert(old);
}

static struct kunit_case neuron_place_cases[] = {
	KUNIT_CASE_PARAM(neuron_place_follows_its_rule, place_gen_params),
	KUNIT_CASE(neuron_place_lets_an_administrator_fill_a_core),
	KUNIT_CASE(neuron_place_spreads_contexts),
	KUNIT_CASE_PARAM(neuron_place_checks_what_is_asked, ask_gen_params),
	{}
};

static struct kunit_suite neuron_place_suite = {
	.name = "neuron_place",
	.test_cases = neuron_place_cases,
};

kunit_test_suite(neuron_place_suite);
