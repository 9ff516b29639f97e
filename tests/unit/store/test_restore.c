/* Copies of a store in use: complete or not there, and nothing that the original has handed out is
 * valid in them, or handed out again. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <baton/shard.h>

#include "support/child.h"
#include "support/rng.h"
#include "support/skips.h"
#include "support/soak.h"
#include "support/strike.h"
#include "world.h"

#define MOMENTS_MAX 5000

/* Fences of each kind. */
struct fences {
	uint64_t pulled; /* of a claim in queue "q" */
	uint64_t lane;   /* of the lease of lane "l" of queue "lanes" */
	uint64_t laned;  /* of a claim under it */
	uint64_t puller; /* of the lease on pulling from "p" */
	uint64_t plain;
};

static uint64_t lane_fence(struct baton_store *store, const struct baton_lease *l)
{
	struct baton_work_claims *claims = NULL;
	const struct baton_lane_ask ask = {
		.queue = BATON_STR("lanes"),
		.lane = BATON_STR("l"),
		.lease = l,
		.ttl = baton_duration_ms(1000),
		.at = BATON_CHECKPOINT,
		.max = 1,
	};
	assert_ok(put_some(store, "lanes", "l", 1));
	assert_ok(baton_lane_claim(store, &ask, &claims));
	assert_non_null(claims);
	uint64_t fence = claims->claims[0].fence.v;
	assert_ok(complete(store, &claims->claims[0], NULL));
	baton_work_claims_free(claims);
	return fence;
}

/* Those that are handed out next; all leases and claims are over then. */
static struct fences hand_out(struct world *w, struct baton_store *store)
{
	struct fences f;
	struct baton_lease l;
	f.pulled = next_claim_fence(store, "q");
	assert_ok(lease(store, "lane/lanes/l", &l));
	f.lane = l.fence.v;
	f.laned = lane_fence(store, &l);
	assert_ok(lease(store, "pull/p", &l));
	f.puller = l.fence.v;
	assert_ok(lease(store, "plain", &l));
	f.plain = l.fence.v;
	world_advance(w, 1000);
	return f;
}

static void assert_above(const struct fences *f, const struct fences *than)
{
	assert_true(f->pulled > than->pulled);
	assert_true(f->lane > than->lane);
	assert_true(f->laned > than->laned);
	assert_true(f->puller > than->puller);
	assert_true(f->plain > than->plain);
}

static void no_fence_of_the_original_is_handed_out_by_the_copy(void **state)
{
	struct world *w = *state;
	struct baton_store *copy = NULL;
	char path[WORLD_PATH];
	world_file(w, "copy", path);
	world_open(w);
	hand_out(w, w->store);
	/* The copy is opened when the clock shows this again, so that it is no help. */
	struct baton_store_time then = baton_store_now(w->store);
	assert_ok(baton_store_backup(w->store, path, NULL));
	struct fences last = {0};
	for (int i = 0; i < 50; i++) {
		struct fences next = hand_out(w, w->store);
		assert_above(&next, &last);
		last = next;
	}
	fake_clock_set_wall(&w->clock, then);
	assert_ok(world_try_open(w, path, &copy));
	struct fences first = hand_out(w, copy);
	assert_above(&first, &last);
	struct fences second = hand_out(w, copy);
	assert_above(&second, &first);
	assert_sound(copy);
	baton_store_close(copy);
}

static void what_was_held_is_not_held_in_the_copy(void **state)
{
	struct world *w = *state;
	struct baton_store *copy = NULL;
	struct baton_work_claims *claims = NULL, *again = NULL;
	struct baton_lease l, lane;
	char path[WORLD_PATH];
	world_file(w, "copy", path);
	world_open(w);
	assert_ok(put_some(w->store, "q", "lane", 1));
	assert_ok(claim_some(w->store, "q", 1, &claims));
	assert_ok(lease(w->store, "subject", &l));
	assert_ok(put_some(w->store, "lanes", "l", 1));
	assert_ok(lease(w->store, "lane/lanes/l", &lane));
	assert_ok(baton_store_backup(w->store, path, NULL));

	assert_ok(world_try_open(w, path, &copy));
	struct baton_lease_proof proof = {BATON_STR("subject"), &l};
	struct baton_work_renewal renewal;
	enum baton_err answer;
	assert_ok(baton_lease_renew(copy, &proof, 1, baton_duration_ms(1000), false, &answer));
	assert_int_equal(answer, BATON_NOT_HELD);
	assert_ok(baton_work_renew(copy, &claims->claims[0].proof, 1, baton_duration_ms(1000),
	                           &renewal));
	assert_int_equal(renewal.err, BATON_NOT_HELD);
	assert_int_equal(complete(copy, &claims->claims[0], NULL), BATON_NOT_HELD);
	const struct baton_lane_ask ask = {.queue = BATON_STR("lanes"),
	                                   .lane = BATON_STR("l"),
	                                   .lease = &lane,
	                                   .max = 1,
	                                   .at = BATON_IDLE};
	assert_int_equal(baton_lane_claim(copy, &ask, &again), BATON_NOT_HELD);
	assert_ok(claim_some(copy, "q", 1, &again));
	assert_non_null(again);
	assert_int_equal(again->claims[0].batches[0].attempt, 2);
	assert_ok(complete(copy, &again->claims[0], NULL));
	assert_sound(copy);
	baton_store_close(copy);
	baton_work_claims_free(again);

	/* In the original all goes on. */
	assert_ok(baton_lease_renew(w->store, &proof, 1, baton_duration_ms(1000), false, &answer));
	assert_int_equal(answer, BATON_OK);
	assert_ok(complete(w->store, &claims->claims[0], NULL));
	baton_work_claims_free(claims);
}

#define JOBS 6 /* so many share a row */

/* Neither a claim of the original nor a copy of it can be used, of jobs that share a row. */
static void what_was_held_in_a_shared_row_is_not_held_in_the_copy(void **state)
{
	struct world *w = *state;
	struct baton_store *copy = NULL;
	struct baton_work_claims *claims = NULL, *again = NULL;
	struct baton_work_renewal renewal;
	char path[WORLD_PATH];
	world_file(w, "copy", path);
	world_open(w);
	assert_ok(put_some(w->store, "q", "", JOBS));
	assert_ok(claim_each(w->store, "q", JOBS, &claims));
	assert_int_equal(claims->count, JOBS);
	assert_ok(baton_store_backup(w->store, path, NULL));

	assert_ok(world_try_open(w, path, &copy));
	assert_int_equal(complete(copy, &claims->claims[0], NULL), BATON_NOT_HELD);
	assert_ok(baton_work_renew(copy, &claims->claims[1].proof, 1, baton_duration_ms(1000),
	                           &renewal));
	assert_int_equal(renewal.err, BATON_NOT_HELD);
	assert_int_equal(end_as(copy, &claims->claims[2], BATON_FAIL), BATON_NOT_HELD);
	assert_ok(claim_each(copy, "q", JOBS, &again));
	assert_int_equal(again->count, JOBS);
	for (size_t i = 0; i < JOBS; i++) {
		assert_int_equal(again->claims[i].batches[0].attempt, 2);
		assert_true(again->claims[i].fence.v > claims->claims[JOBS - 1].fence.v);
	}
	assert_ok(complete_each(copy, again, JOBS));
	assert_sound(copy);
	baton_store_close(copy);
	baton_work_claims_free(again);
	assert_ok(complete_each(w->store, claims, JOBS));
	baton_work_claims_free(claims);
}

/* The only shard of "shards", and what there is to claim from it. */
static struct baton_runner *runner_with_shard(struct baton_store *store, uint64_t *ret_fence,
                                              struct baton_work_claims **ret_claims)
{
	static const struct baton_shard shard = {BATON_STR("shards"), 0, JOBS, 1};
	const struct baton_runner_ask ask = {.name = BATON_STR("r"),
	                                     .weight = 1,
	                                     .ttl = baton_duration_s(10)};
	struct baton_shard_answer answer = {.err = BATON_SYSTEM};
	const struct baton_tick tick = {.shards = &shard, .shard_count = 1, .owned = &answer};
	struct baton_runner *r = NULL;
	assert_ok(baton_runner_register(store, &ask, &r, NULL));
	assert_ok(baton_shard_take(r, &shard, 1, &answer));
	assert_ok(answer.err);
	*ret_fence = answer.fence.v;
	assert_ok(baton_runner_tick(r, &tick, ret_claims));
	assert_non_null(*ret_claims);
	return r;
}

static void what_a_runner_had_is_not_held_in_the_copy(void **state)
{
	struct world *w = *state;
	const struct baton_queue_policy one = {.shards = 1};
	struct baton_store *copy = NULL;
	struct baton_work_claims *claims = NULL, *again = NULL;
	uint64_t fence, last, first;
	char path[WORLD_PATH];
	world_file(w, "copy", path);
	world_open(w);
	assert_ok(baton_queue_change(w->store, BATON_STR("shards"), &one, BATON_POLICY_SHARDS));
	assert_ok(put_some(w->store, "shards", "lane", 1));
	assert_ok(put_some(w->store, "shards", "", JOBS));
	struct baton_runner *r = runner_with_shard(w->store, &fence, &claims);
	assert_int_equal(claims->count, JOBS);
	struct baton_store_time then = baton_store_now(w->store);
	assert_ok(baton_store_backup(w->store, path, NULL));

	/* In the original the shard changes hands a few times more. */
	for (int i = 0; i < 20; i++) {
		baton_runner_leave(r);
		baton_work_claims_free(claims);
		r = runner_with_shard(w->store, &last, &claims);
		assert_true(last > fence);
	}
	fake_clock_set_wall(&w->clock, then);
	assert_ok(world_try_open(w, path, &copy));
	struct baton_runner *other = runner_with_shard(copy, &first, &again);
	assert_true(first > last);
	assert_int_equal(again->count, JOBS);
	for (size_t i = 0; i < JOBS; i++) {
		const struct baton_work_claim *c = &again->claims[i];
		assert_int_equal(c->batches[0].attempt, 2);
		for (size_t k = 0; k < claims->count; k++)
			assert_true(c->fence.v > claims->claims[k].fence.v);
	}
	assert_sound(copy);
	baton_work_claims_free(again);
	baton_runner_leave(other);
	baton_store_close(copy);
	baton_work_claims_free(claims);
	baton_runner_leave(r);
}

static unsigned files_in(const char *folder)
{
	unsigned count = 0;
	DIR *d = opendir(folder);
	assert_non_null(d);
	while (readdir(d))
		count++;
	closedir(d);
	return count;
}

/* Enough for several reports of progress. */
static void put_much(struct baton_store *store)
{
	enum {
		SIZE = 1 << 20
	};
	char *bytes = calloc(1, SIZE);
	assert_non_null(bytes);
	const struct baton_str payload = {bytes, SIZE};
	const struct baton_batch batch = {.queue = BATON_STR("q"),
	                                  .payloads = &payload,
	                                  .count = 1};
	struct baton_put put;
	for (int i = 0; i < 3; i++)
		assert_ok(baton_work_put(store, &batch, 1, &put));
	free(bytes);
}

struct watcher {
	struct baton_store *writer;
	unsigned calls, end; /* the last one that goes on */
	uint64_t done, all;
};

static bool on_progress(void *arg, uint64_t done, uint64_t all)
{
	struct watcher *p = arg;
	p->calls++;
	p->done = done;
	p->all = all;
	if (p->writer && put_some(p->writer, "q", "", 1) != BATON_OK)
		return false;
	return p->calls <= p->end;
}

static void a_copy_is_that_of_one_moment_while_others_write(void **state)
{
	struct world *w = *state;
	struct baton_store *copy = NULL;
	struct watcher watcher = {.end = UINT32_MAX};
	const struct baton_store_progress progress = {on_progress, &watcher};
	char path[WORLD_PATH];
	world_file(w, "copy", path);
	world_open(w);
	put_much(w->store);
	assert_ok(world_try_open(w, w->path, &watcher.writer));
	assert_ok(baton_store_backup(w->store, path, &progress));
	assert_true(watcher.calls > 2 && watcher.done == watcher.all && watcher.all > 700);
	assert_int_equal(counts(w->store, "q").ready, 3 + watcher.calls);
	baton_store_close(watcher.writer);
	assert_ok(world_try_open(w, path, &copy));
	assert_int_equal(counts(copy, "q").ready, 3);
	assert_sound(copy);
	baton_store_close(copy);
}

static void a_copy_that_is_stopped_leaves_nothing(void **state)
{
	struct world *w = *state;
	struct watcher watcher = {.end = 1};
	const struct baton_store_progress progress = {on_progress, &watcher};
	char path[WORLD_PATH];
	world_file(w, "copy", path);
	world_open(w);
	put_much(w->store);
	unsigned before = files_in(w->folder);
	assert_int_equal(baton_store_backup(w->store, path, &progress), BATON_CANCELLED);
	assert_int_equal(watcher.calls, 2);
	assert_int_equal(files_in(w->folder), before);
	assert_ok(baton_store_backup(w->store, path, NULL));
	assert_int_equal(files_in(w->folder), before + 1);
}

static bool die(void *arg, uint64_t done, uint64_t all)
{
	(void)arg;
	(void)done;
	(void)all;
	return raise(SIGKILL) != 0;
}

static int die_while_copying(int channel, void *arg)
{
	struct world *w = arg;
	const struct baton_store_progress progress = {die, NULL};
	struct baton_store *store = NULL;
	char path[WORLD_PATH];
	(void)channel;
	world_file(w, "copy", path);
	if (world_try_open(w, w->path, &store) != BATON_OK)
		return 1;
	baton_store_backup(store, path, &progress);
	return 2;
}

static void what_a_killed_process_has_copied_is_removed_by_the_next_copy(void **state)
{
	struct world *w = *state;
	struct child c;
	char path[WORLD_PATH], other[WORLD_PATH];
	world_file(w, "copy", path);
	world_file(w, "copy.backup", other);
	world_open(w);
	put_much(w->store);
	unsigned before = files_in(w->folder);
	for (int i = 0; i < 2; i++) {
		child_start(&c, die_while_copying, w);
		assert_int_equal(child_reap(&c), 128 + SIGKILL);
		assert_true(files_in(w->folder) > before);
	}
	assert_ok(baton_store_backup(w->store, other, NULL));
	assert_true(files_in(w->folder) > before + 1);
	assert_ok(baton_store_backup(w->store, path, NULL));
	assert_int_equal(files_in(w->folder), before + 2);
	assert_int_equal(access(other, F_OK), 0);
}

/* Copies to the same path, under the other's nose. */
struct rival {
	struct baton_store *store;
	const char *path;
	enum baton_err err;
};

static bool copy_too(void *arg, uint64_t done, uint64_t all)
{
	struct rival *r = arg;
	(void)done;
	(void)all;
	if (r->store)
		r->err = baton_store_backup(r->store, r->path, NULL);
	baton_store_close(r->store);
	r->store = NULL;
	return true;
}

static void what_a_living_process_has_copied_is_left_alone(void **state)
{
	struct world *w = *state;
	char path[WORLD_PATH];
	struct rival rival = {.path = path};
	const struct baton_store_progress progress = {copy_too, &rival};
	world_file(w, "copy", path);
	world_open(w);
	put_much(w->store);
	unsigned before = files_in(w->folder);
	assert_ok(world_try_open(w, w->path, &rival.store));
	assert_int_equal(baton_store_backup(w->store, path, &progress), BATON_INVALID);
	assert_detail("is there already: a copy replaces nothing");
	assert_ok(rival.err);
	assert_int_equal(files_in(w->folder), before + 1);
}

static void a_copy_replaces_nothing(void **state)
{
	struct world *w = *state;
	char path[WORLD_PATH];
	world_file(w, "nowhere/copy", path);
	world_open(w);
	assert_ok(put_some(w->store, "q", "", 1));
	assert_int_equal(baton_store_backup(w->store, w->path, NULL), BATON_INVALID);
	assert_detail("is there already: a copy replaces nothing");
	assert_detail(w->path);
	assert_int_equal(baton_store_backup(w->store, path, NULL), BATON_STORAGE);
	assert_detail("No such file or directory");
	assert_int_equal(counts(w->store, "q").ready, 1);
}

static void a_copy_is_not_opened_with_the_log_of_another_store(void **state)
{
	struct world *w = *state;
	struct baton_store *other = NULL;
	char copy[WORLD_PATH], log[WORLD_PATH + 8], kept[WORLD_PATH], link[WORLD_PATH];
	world_file(w, "copy", copy);
	world_file(w, "kept", kept);
	world_file(w, "link", link);
	assert_int_equal(symlink(w->path, link), 0);
	snprintf(log, sizeof log, "%s-wal", w->path);
	world_open(w);
	assert_ok(put_some(w->store, "q", "", 1));
	assert_ok(baton_store_backup(w->store, copy, NULL));
	assert_ok(put_some(w->store, "q", "", 1));
	world_copy(log, kept);
	world_close(w);
	world_copy(copy, w->path);
	world_copy(kept, log);
	const char *const names[] = {link, w->path};
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(world_try_open(w, names[i], &other), BATON_INVALID);
		assert_detail("is a copy, but");
		assert_detail(log);
	}
	assert_int_equal(unlink(log), 0);
	assert_int_equal(unlink(link), 0);
	world_open(w);
	assert_int_equal(counts(w->store, "q").ready, 1);
	assert_sound(w->store);
}

static void a_copy_is_not_made_beside_the_log_of_another_store(void **state)
{
	static const char *const names[] = {"copy-wal", "copy-journal"};
	struct world *w = *state;
	char copy[WORLD_PATH], beside[WORLD_PATH];
	world_file(w, "copy", copy);
	world_open(w);
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		world_file(w, names[i], beside);
		FILE *f = fopen(beside, "w");
		assert_non_null(f);
		fclose(f);
		assert_int_equal(baton_store_backup(w->store, copy, NULL), BATON_INVALID);
		assert_detail(beside);
		assert_int_equal(access(copy, F_OK), -1);
		assert_int_equal(unlink(beside), 0);
	}
	assert_ok(baton_store_backup(w->store, copy, NULL));
}

struct copier {
	struct world *w;
	char path[WORLD_PATH];
};

static int copy_it(void *arg)
{
	struct copier *c = arg;
	struct baton_store *store = NULL;
	if (world_try_open(c->w, c->w->path, &store) != BATON_OK)
		return 1;
	return baton_store_backup(store, c->path, NULL) == BATON_OK ? 0 : 1;
}

static void who_copies_may_be_killed_at_any_moment(void **state)
{
	struct world *w = *state;
	struct copier c = {.w = w};
	struct rng rng = rng_seed_from_env();
	int code = 128 + SIGKILL;
	unsigned copies = 0, moment = 0;
	world_file(w, "copy", c.path);
	world_open(w);
	assert_ok(put_some(w->store, "q", "", 20));
	world_close(w);
	while (code != 0) {
		struct baton_store *copy = NULL;
		moment += 1 + (unsigned)rng_below(&rng, soak_scale(5, 1));
		assert_true(moment < MOMENTS_MAX);
		world_remove(c.path);
		code = strike_kill(moment, copy_it, &c);
		if (code == CHILD_SKIP)
			skip();
		if (access(c.path, F_OK) != 0)
			continue;
		copies++;
		assert_ok(world_try_open(w, c.path, &copy));
		assert_int_equal(counts(copy, "q").ready, 20);
		assert_sound(copy);
		assert_true(next_fence(copy, "subject") > 0);
		baton_store_close(copy);
	}
	assert_true(copies > 0 && copies < moment);
	world_open(w);
	assert_sound(w->store);
}

int main(void)
{
	skips_repair();
	const struct CMUnitTest tests[] = {
		WORLD_TEST(no_fence_of_the_original_is_handed_out_by_the_copy),
		WORLD_TEST(what_was_held_is_not_held_in_the_copy),
		WORLD_TEST(what_was_held_in_a_shared_row_is_not_held_in_the_copy),
		WORLD_TEST(what_a_runner_had_is_not_held_in_the_copy),
		WORLD_TEST(a_copy_is_that_of_one_moment_while_others_write),
		WORLD_TEST(a_copy_that_is_stopped_leaves_nothing),
		WORLD_TEST(what_a_killed_process_has_copied_is_removed_by_the_next_copy),
		WORLD_TEST(what_a_living_process_has_copied_is_left_alone),
		WORLD_TEST(a_copy_replaces_nothing),
		WORLD_TEST(a_copy_is_not_opened_with_the_log_of_another_store),
		WORLD_TEST(a_copy_is_not_made_beside_the_log_of_another_store),
		WORLD_TEST(who_copies_may_be_killed_at_any_moment),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
