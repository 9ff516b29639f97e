/* Every read, write and sync of SQLite's fails in turn: the call that meets it says so, nothing is
 * half done, nothing that was acknowledged is lost, and the same handle goes on. */
#include <stdio.h>

#include <sqlite3.h>

#include "disk.h"
#include "support/skips.h"
#include "support/soak.h"
#include "world.h"

#define CALLS_MAX 20000
#define STRIDE_DAILY 5
#define JOBS 6 /* share a row, but for the last, which has a lane */
#define LEFT 3 /* are there from the start, in rows of their own */

/* Few, so that what is in the log gets into the file along the way. */
#define LOG_PAGES 12

/* How the jobs stand after each step. */
static const struct {
	uint64_t ready, running, done;
} after[] = {{LEFT, 0, 0}, {LEFT + JOBS, 0, 0}, {LEFT, JOBS, 0}, {LEFT, 0, JOBS}};

/* Looking may be what fails. */
static bool is_after(struct baton_store *store, unsigned step)
{
	struct baton_queue_info info;
	bool before = disk_broke();
	enum baton_err e = baton_queue_get(store, BATON_STR("q"), &info);
	if (e != BATON_OK && disk_broke() && !before) {
		assert_int_equal(e, BATON_STORAGE);
		e = baton_queue_get(store, BATON_STR("q"), &info);
	}
	assert_ok(e);
	struct baton_queue_counts c = info.counts;
	return c.ready == after[step].ready && c.running == after[step].running &&
	       c.done == after[step].done;
}

static enum baton_err put_keyed(struct baton_store *store)
{
	static const struct baton_str payload = {"a payload", 9};
	struct baton_batch batches[JOBS];
	struct baton_put puts[JOBS];
	char keys[JOBS][8];
	for (size_t i = 0; i < JOBS; i++) {
		snprintf(keys[i], sizeof keys[i], "k%zu", i);
		batches[i] = (struct baton_batch){.queue = BATON_STR("q"),
		                                  .lane = baton_str_z(i + 1 < JOBS ? "" : "lane"),
		                                  .key = baton_str_z(keys[i]),
		                                  .priority = 1,
		                                  .payloads = &payload,
		                                  .count = 1};
	}
	return baton_work_put(store, batches, JOBS, puts);
}

/* What failed is said, and the store is as it was before, or, if it was the sync at the end, as it
 * would be after it. True: it has to be done again. */
static bool failed(struct world *w, enum baton_err e, unsigned step)
{
	if (e == BATON_OK) {
		assert_true(is_after(w->store, step));
		return false;
	}
	assert_int_equal(e, BATON_STORAGE);
	assert_detail(w->path);
	assert_true(disk_broke());
	bool done = is_after(w->store, step);
	assert_true(done || is_after(w->store, step - 1));
	return !done;
}

static void claim_them(struct world *w, struct baton_work_claims **ret)
{
	enum baton_err e = claim_each(w->store, "q", JOBS, ret);
	if (failed(w, e, 2)) {
		assert_ok(claim_each(w->store, "q", JOBS, ret));
		return;
	}
	if (e == BATON_OK)
		return;
	/* Nobody knows that they are claimed. */
	world_advance(w, 2000);
	assert_ok(claim_each(w->store, "q", JOBS, ret));
	assert_int_equal((*ret)->claims[0].batches[0].attempt, 2);
}

static void live(struct world *w)
{
	struct baton_work_claims *claims = NULL;
	struct baton_lease l = {.fence = {0}};
	if (failed(w, put_keyed(w->store), 1))
		assert_ok(put_keyed(w->store));
	claim_them(w, &claims);
	assert_non_null(claims);
	assert_int_equal(claims->count, JOBS);
	/* Whoever repeats it is told the same. */
	if (failed(w, complete_each(w->store, claims, JOBS), 3) || disk_broke())
		assert_ok(complete_each(w->store, claims, JOBS));
	baton_work_claims_free(claims);
	enum baton_err e = lease(w->store, "subject", &l);
	if (e != BATON_OK) {
		assert_int_equal(e, BATON_STORAGE);
		assert_true(next_fence(w->store, "subject") > 0);
	}
}

/* Returns false when nothing was left to fail. */
static bool break_at(struct world *w, const char *original, unsigned n)
{
	world_copy(original, w->path);
	disk_watch(w->path);
	disk_break(n);
	enum baton_err e = world_try_open(w, w->path, &w->store);
	if (e != BATON_OK) {
		assert_int_equal(e, BATON_STORAGE);
		assert_detail(w->path);
		world_open(w);
	}
	live(w);
	bool broke = disk_broke();
	disk_break(0);
	assert_sound(w->store);
	assert_true(is_after(w->store, 3));
	world_close(w);
	world_open(w);
	assert_sound(w->store);
	assert_true(is_after(w->store, 3));
	assert_ok(put_keyed(w->store));
	world_close(w);
	disk_watch("");
	return broke;
}

static int on_connection(sqlite3 *db, char **error, const struct sqlite3_api_routines *api)
{
	(void)error, (void)api;
	return sqlite3_wal_autocheckpoint(db, LOG_PAGES);
}

static void each_read_write_and_sync_may_fail(void **state)
{
	struct world *w = *state;
	struct rng rng = rng_seed_from_env();
	char original[WORLD_PATH];
	unsigned n = 0;
	world_file(w, "original", original);
	world_open(w);
	assert_ok(put_some(w->store, "q", "", LEFT));
	world_close(w);
	world_copy(w->path, original);
	disk_watch("");
	sqlite3_auto_extension((void (*)(void))on_connection);
	do {
		n += 1 + (unsigned)rng_below(&rng, soak_scale(STRIDE_DAILY, 1));
		assert_true(n < CALLS_MAX);
	} while (break_at(w, original, n));
	print_message("# %u calls\n", n - 1);
	assert_true(n > 100);
	sqlite3_reset_auto_extension();
}

/* One job of two is completed as the other is claimed. What is told of either is so, but for what
 * the sync at the end was to keep; and what has to be done again can be. Returns false when nothing
 * was left to fail. */
static bool break_next(struct world *w, const char *original, unsigned n)
{
	const struct baton_work_ask ask = {.queue = BATON_STR("q"), .claims = 1, .max = 1};
	struct baton_work_claims *first = NULL, *second = NULL;
	struct baton_work_ended ended = {.err = BATON_BUSY};
	world_copy(original, w->path);
	disk_watch(w->path);
	world_open(w);
	assert_ok(claim_each(w->store, "q", 1, &first));
	const struct baton_work_end end = {.proof = first->claims[0].proof, .how = BATON_COMPLETE};
	disk_break(n);
	enum baton_err e = baton_work_next(w->store, &end, 1, &ended, &ask, &second);
	bool broke = disk_broke();
	disk_break(0);
	struct baton_queue_counts c = counts(w->store, "q");
	if (e == BATON_OK) {
		assert_int_equal(ended.err, BATON_OK);
		assert_non_null(second);
		assert_int_equal(c.running, 1);
	} else {
		assert_int_equal(e, BATON_STORAGE);
		assert_true(broke);
		assert_null(second);
		assert_true(ended.err == BATON_OK || ended.err == BATON_STORAGE);
	}
	if (ended.err == BATON_OK)
		assert_int_equal(c.done, 1);
	baton_work_claims_free(first);
	baton_work_claims_free(second);
	second = NULL;
	assert_ok(baton_work_next(w->store, &end, 1, &ended, &ask, &second));
	baton_work_claims_free(second);
	assert_int_equal(ended.err, BATON_OK);
	c = counts(w->store, "q");
	assert_int_equal(c.done, 1);
	assert_int_equal(c.running + c.ready, LEFT - 1);
	assert_sound(w->store);
	world_close(w);
	disk_watch("");
	return broke;
}

static void each_read_write_and_sync_may_fail_between_two_jobs(void **state)
{
	struct world *w = *state;
	char original[WORLD_PATH];
	unsigned n = 1;
	world_file(w, "original", original);
	world_open(w);
	assert_ok(put_some(w->store, "q", "", LEFT));
	world_close(w);
	world_copy(w->path, original);
	while (break_next(w, original, n))
		n++;
	print_message("# %u calls\n", n - 1);
	assert_true(n > 5);
}

int main(void)
{
	skips_repair();
	const struct CMUnitTest tests[] = {
		WORLD_TEST(each_read_write_and_sync_may_fail),
		WORLD_TEST(each_read_write_and_sync_may_fail_between_two_jobs),
	};
	return cmocka_run_group_tests_name("io", tests, NULL, NULL);
}
