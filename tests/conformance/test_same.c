/* The same random operations on a store of each kind: every answer has to be the same. */
#include <stdlib.h>

#include "same.h"
#include "support/rng.h"
#include "support/soak.h"

#define OPS 3000
#define LOOK_EVERY 8
#define SHORT 200 /* a list of which everything is looked at after each operation */

static const char *other = "sqlite:"; /* what is compared with a store in memory */

/* Where the keys of the queue of runners count at first: each of these in one of three rounds. */
static enum baton_key_scope scope = BATON_KEY_SCOPE_CLUSTER;

static bool guestless;

/* The queue of runners, with one shard. */
static void set_sharded(struct world *w)
{
	struct baton_queue_policy p = baton_queue_policy_default();
	p.mode = BATON_QUEUE_RUNNER;
	p.shards = 1;
	p.retry = p.retry_lane = (struct baton_retry){3, BATON_BACKOFF_NONE, {0}, {0}};
	p.key_scope = scope;
	p.hold_on_retry = BATON_HOLD_GIVE_UP;
	p.key_limit = 2;
	set_policy(w, SAME_SHARDED, &p);
}

static void join(struct world *w, const char *queue)
{
	struct baton_queue_policy p = {.key_class = "shared"};
	assert_int_equal(baton_queue_change(w->store, baton_str_z(queue), &p,
	                                    BATON_POLICY_KEY_CLASS),
	                 BATON_OK);
}

void same_open(struct same *s, bool classed)
{
	memset(s, 0, sizeof *s);
	s->classed = classed;
	s->guestless = guestless;
	world_open(&s->w[0], "memory:");
	world_open(&s->w[1], other);
	for (int i = 0; i < SIDES; i++) {
		s->self[i] = *baton_store_owner(s->w[i].store);
		set_attempts(&s->w[i], "a", 3);
		set_attempts(&s->w[i], "b", 2);
		set_attempts(&s->w[i], "c", 3);
		set_sharded(&s->w[i]);
		/* In a server, a tick sees to what is due though its runner has no shard. */
		for (int k = 0; classed && k < (world_is_served() ? 2 : 3); k++)
			join(&s->w[i], k == 0 ? "b" : k == 1 ? "c" : SAME_SHARDED);
	}
}

void same_close(struct same *s)
{
	same_runners_leave(s);
	for (int i = 0; i < SIDES; i++)
		world_close(&s->w[i]);
}

static void make_ops(struct op *ops, size_t count, uint64_t seed)
{
	struct rng rng = rng_seed(seed);
	for (size_t i = 0; i < count; i++) {
		ops[i].kind = same_kind(rng_next(&rng) >> 1);
		for (int j = 0; j < SAME_NUMBERS; j++)
			ops[i].n[j] = (uint32_t)(rng_next(&rng) >> 33);
	}
}

/* Returns after which operation they differed, counted from 1; 0: they did not. */
static size_t run(const struct op *ops, size_t count, bool classed, size_t look_every, bool show,
                  char why[600])
{
	struct same *s = malloc(sizeof *s);
	size_t at = 0;
	same_open(s, classed);
	for (size_t i = 0; i < count && at == 0; i++) {
		same_apply(s, &ops[i]);
		if ((i + 1) % look_every == 0 || i + 1 == count)
			same_compare_all(s);
		if (show)
			print_error("%4zu  %s\n", i + 1, s->did);
		at = s->why[0] ? i + 1 : 0;
	}
	snprintf(why, 600, "%s", s->why);
	same_close(s);
	free(s);
	return at;
}

static size_t every(size_t count)
{
	return count > SHORT ? LOOK_EVERY : 1;
}

/* Drops operations as long as the rest still makes a difference. Returns how many are left. */
static size_t shrink(struct op *ops, size_t count, bool classed)
{
	struct op *fewer = malloc(count * sizeof *fewer);
	char why[600];
	for (size_t size = count / 2 > 0 ? count / 2 : 1; size > 0; size /= 2) {
		for (size_t from = 0; from + size <= count;) {
			memcpy(fewer, ops, from * sizeof *ops);
			memcpy(fewer + from, ops + from + size,
			       (count - from - size) * sizeof *ops);
			size_t at = run(fewer, count - size, classed, every(count), false, why);
			if (at > 0) {
				memcpy(ops, fewer, at * sizeof *ops);
				count = at;
			} else {
				from += size;
			}
		}
	}
	free(fewer);
	return count;
}

static void assert_same(struct op *ops, size_t count, bool classed, uint64_t seed)
{
	char why[600];
	size_t at = run(ops, count, classed, LOOK_EVERY, false, why);
	if (at == 0)
		return;
	print_error("they differ after %zu operations%s, BATON_SEED=%" PRIu64 ": %s\n", at,
	            classed ? " with keys in common" : "", seed, why);
	at = shrink(ops, at, classed);
	run(ops, at, classed, every(at), true, why);
	fail_msg("the shortest list of operations that was found is above: %s", why);
}

static void assert_all_same(bool classed)
{
	struct rng seeds = rng_seed_from_env();
	static struct op ops[OPS];
	/* A server takes its time, and without prepared statements more of it. */
	const unsigned fewer = strcmp(other, "pooled:") == 0 ? 30 : 5;
	size_t count = world_is_served() ? soak_scale(OPS / fewer, OPS) : OPS;
	for (unsigned round = soak_scale(1, 100); round > 0; round--) {
		uint64_t seed = seeds.state;
		make_ops(ops, count, seed);
		scope = classed ? BATON_KEY_SCOPE_CLUSTER
		                : (enum baton_key_scope)(1 + seed / 7 % 3);
		assert_same(ops, count, classed, seed);
		rng_next(&seeds);
	}
}

static void the_same_operations_have_the_same_answers_in_every_store(void **state)
{
	(void)state;
	assert_all_same(false);
}

static void so_have_those_on_queues_with_keys_in_common(void **state)
{
	(void)state;
	guestless = false;
	assert_all_same(true);
}

static void so_have_those_where_they_give_way_to_each_other(void **state)
{
	(void)state;
	guestless = true;
	assert_all_same(true);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_operations_have_the_same_answers_in_every_store),
		cmocka_unit_test(so_have_those_on_queues_with_keys_in_common),
		cmocka_unit_test(so_have_those_where_they_give_way_to_each_other),
	};
	if (argc == 2)
		other = argv[1];
	if (!world_begin(other))
		return 0;
	int failed = cmocka_run_group_tests_name("same", tests, NULL, NULL);
	world_end();
	return failed;
}
