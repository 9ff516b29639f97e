/* Every allocation of SQLite fails in turn: each call does all or nothing, and says so. */
#include <stdio.h>
#include <string.h>

#include <baton/schedule.h>
#include <baton/shard.h>
#include <sqlite3.h>

#include "store/sqlite/sqlite.h"
#include "support/rng.h"
#include "support/skips.h"
#include "support/soak.h"
#include "world.h"

#define LEASES 4   /* more than there are */
#define REPEATED 8 /* how often a call that failed is made again */

static sqlite3_mem_methods real;
static unsigned armed; /* how many allocations from now the failing one is; 0: none */
static bool fired, forever;

static bool fails(void)
{
	if (fired && forever)
		return true;
	if (armed == 0 || --armed > 0)
		return false;
	fired = true;
	return true;
}

static void *on_malloc(int size)
{
	return fails() ? NULL : real.xMalloc(size);
}

static void *on_realloc(void *block, int size)
{
	return fails() ? NULL : real.xRealloc(block, size);
}

static void arm(unsigned n)
{
	armed = n;
	fired = false;
}

/* Ends it, and says whether the allocation was reached. */
static bool disarm(void)
{
	bool reached = fired;
	arm(0);
	return reached;
}

/* What the calls are made with: claims that were given before. */
struct scene {
	struct world *w;
	struct baton_work_claims *claims;
	struct baton_work_claims *chunk; /* of jobs that share a row */
	struct baton_batch_id waiting, dead;
	struct baton_lease held, lane;
	char original[WORLD_PATH];
};

static const struct baton_str payload = {"payload", 7};

static struct baton_batch keyed(struct baton_str content)
{
	static struct baton_str kept;
	kept = content;
	return (struct baton_batch){.queue = BATON_STR("q"),
	                            .lane = BATON_STR("keyed"),
	                            .source = BATON_STR("key"),
	                            .payloads = &kept,
	                            .count = 1};
}

static struct baton_batch plain(const char *queue)
{
	return (struct baton_batch){.queue = baton_str_z(queue), .payloads = &payload, .count = 1};
}

static enum baton_err do_put(struct scene *s, struct baton_store *store)
{
	(void)s;
	return put_some(store, "new", "lane", 3);
}

/* So many that they share a row. */
static enum baton_err do_put_together(struct scene *s, struct baton_store *store)
{
	(void)s;
	return put_some(store, "new", "", 6);
}

static enum baton_err do_claim_together(struct scene *s, struct baton_store *store)
{
	(void)s;
	struct baton_work_claims *claims = NULL;
	enum baton_err e = claim_each(store, "together", 5, &claims);
	baton_work_claims_free(claims);
	return e;
}

static enum baton_err do_complete_together(struct scene *s, struct baton_store *store)
{
	return complete_each(store, s->chunk, 3);
}

/* Each of these makes ordinary rows of all that share the row. */
static enum baton_err do_cancel_together(struct scene *s, struct baton_store *store)
{
	enum baton_cancelled answer;
	return baton_work_cancel(store, &s->chunk->claims[0].batches[0].id, 1, &answer);
}

static enum baton_err do_renew_together(struct scene *s, struct baton_store *store)
{
	struct baton_work_renewal answer;
	enum baton_err e = baton_work_renew(store, &s->chunk->claims[1].proof, 1,
	                                    baton_duration_ms(5000), &answer);
	return e == BATON_OK ? answer.err : e;
}

static enum baton_err do_fail_together(struct scene *s, struct baton_store *store)
{
	return end_as(store, &s->chunk->claims[1], BATON_FAIL);
}

/* What has expired is given to another. */
static enum baton_err do_recover_together(struct scene *s, struct baton_store *store)
{
	world_advance(s->w, 2000);
	enum baton_err e = do_claim_together(s, store);
	world_advance(s->w, -2000);
	return e;
}

/* Something new, and then what is refused: neither is there. */
static enum baton_err do_refused_put(struct scene *s, struct baton_store *store)
{
	(void)s;
	struct baton_batch batches[] = {plain("new"), keyed(BATON_STR("other"))};
	struct baton_put puts[2];
	return baton_work_put(store, batches, 2, puts);
}

static enum baton_err do_claim(struct scene *s, struct baton_store *store)
{
	(void)s;
	struct baton_work_claims *claims = NULL;
	enum baton_err e = claim_some(store, "q", 2, &claims);
	baton_work_claims_free(claims);
	return e;
}

static enum baton_err do_complete(struct scene *s, struct baton_store *store)
{
	return complete(store, &s->claims->claims[0], "next");
}

static enum baton_err do_refused_complete(struct scene *s, struct baton_store *store)
{
	struct baton_batch emits[] = {plain("next"), keyed(BATON_STR("other"))};
	struct baton_work_end end = {.proof = s->claims->claims[0].proof,
	                             .how = BATON_COMPLETE,
	                             .emits = emits,
	                             .emit_count = 2};
	struct baton_work_ended answer;
	enum baton_err e = baton_work_end(store, &end, 1, &answer);
	return e == BATON_OK ? answer.err : e;
}

static enum baton_err do_fail(struct scene *s, struct baton_store *store)
{
	return end_as(store, &s->claims->claims[0], BATON_FAIL);
}

static enum baton_err do_renew(struct scene *s, struct baton_store *store)
{
	struct baton_work_renewal answer;
	enum baton_err e = baton_work_renew(store, &s->claims->claims[0].proof, 1,
	                                    baton_duration_ms(5000), &answer);
	return e == BATON_OK ? answer.err : e;
}

static enum baton_err do_cancel(struct scene *s, struct baton_store *store)
{
	enum baton_cancelled answer;
	return baton_work_cancel(store, &s->waiting, 1, &answer);
}

static enum baton_err do_revive(struct scene *s, struct baton_store *store)
{
	enum baton_err answer;
	enum baton_err e = baton_work_revive(store, &s->dead, 1, &answer);
	return e == BATON_OK ? answer : e;
}

static enum baton_err do_lease(struct scene *s, struct baton_store *store)
{
	(void)s;
	struct baton_lease l;
	return lease(store, "subject", &l);
}

/* A release, of what nobody else can have. */
static enum baton_err do_release(struct scene *s, struct baton_store *store)
{
	const struct baton_lease_proof proof = {BATON_STR("held"), &s->held};
	enum baton_err answer;
	enum baton_err e = baton_lease_release(store, &proof, 1, &answer);
	return e == BATON_OK ? answer : e;
}

static enum baton_err do_lane(struct scene *s, struct baton_store *store)
{
	struct baton_work_claims *claims = NULL;
	const struct baton_lane_ask ask = {.queue = BATON_STR("lanes"),
	                                   .lane = BATON_STR("lane"),
	                                   .lease = &s->lane,
	                                   .at = BATON_IDLE,
	                                   .max = 2};
	enum baton_err e = baton_lane_claim(store, &ask, &claims);
	baton_work_claims_free(claims);
	return e;
}

static enum baton_err do_change(struct scene *s, struct baton_store *store)
{
	(void)s;
	const struct baton_queue_policy p = {.keep = baton_duration_s(9)};
	return baton_queue_change(store, BATON_STR("q"), &p, BATON_POLICY_KEEP);
}

static enum baton_err do_make(struct scene *s, struct baton_store *store)
{
	(void)s;
	const struct baton_queue_policy p = baton_queue_policy_default();
	return baton_queue_set(store, BATON_STR("next"), &p);
}

static enum baton_err do_schedule(struct scene *s, struct baton_store *store)
{
	(void)s;
	const struct baton_schedule schedule = {.name = BATON_STR("new"),
	                                        .cron = BATON_STR("* * * * *"),
	                                        .queue = BATON_STR("next"),
	                                        .payload = payload};
	return baton_schedule_set(store, &schedule);
}

static enum baton_err do_due(struct scene *s, struct baton_store *store)
{
	(void)s;
	struct baton_store_time next;
	size_t count;
	return baton_schedule_tick(store, &count, &next);
}

/* All that a runner does. What it was when it failed is given back, or taken over the next time. */
static enum baton_err do_runner(struct scene *s, struct baton_store *store)
{
	(void)s;
	const struct baton_runner_ask ask = {.name = BATON_STR("r"),
	                                     .weight = 1,
	                                     .ttl = baton_duration_s(10),
	                                     .replace = true};
	const struct baton_shard shard = {BATON_STR("shards"), 0, 1, 1};
	struct baton_shard_answer owned;
	const struct baton_tick tick = {.shards = &shard, .shard_count = 1, .owned = &owned};
	struct baton_work_claims *claims = NULL;
	struct baton_runner *r = NULL;
	enum baton_err e = baton_runner_register(store, &ask, &r, NULL);
	if (e == BATON_OK)
		e = baton_shard_take(r, &shard, 1, &owned);
	if (e == BATON_OK)
		e = baton_runner_tick(r, &tick, &claims);
	if (e == BATON_OK)
		e = baton_runner_tell(r, BATON_STR("attached"));
	if (e == BATON_OK)
		e = baton_runner_wish(store, ask.name, BATON_WISH_DRAIN);
	baton_work_claims_free(claims);
	baton_runner_leave(r);
	return e;
}

static enum baton_err do_tidy(struct scene *s, struct baton_store *store)
{
	(void)s;
	return baton_store_tidy(store, 100, NULL);
}

static enum baton_err do_list(struct scene *s, struct baton_store *store)
{
	(void)s;
	struct baton_work_page *page = NULL;
	const struct baton_work_filter all = {.max = 100};
	enum baton_err e = baton_work_list(store, &all, &page);
	baton_work_page_free(page);
	return e;
}

static enum baton_err do_backup(struct scene *s, struct baton_store *store)
{
	char path[WORLD_PATH];
	world_file(s->w, "copy", path);
	world_remove(path);
	return baton_store_backup(store, path, NULL);
}

/* What can be seen to change. */
struct sight {
	struct baton_queue_counts q, fresh, next, together;
	size_t leases, schedules;
	struct baton_store_time expires;
	int64_t keep, made; /* of queue "q", and whether there is a queue "next" */
};

static struct sight look(const struct scene *s, struct baton_store *store)
{
	struct sight seen;
	struct baton_lease_entry entries[LEASES];
	struct baton_schedules *schedules = NULL;
	struct baton_queue_info info;
	struct baton_work_page *page = NULL;
	memset(&seen, 0, sizeof seen);
	seen.q = counts(store, "q");
	seen.fresh = counts(store, "new");
	seen.next = counts(store, "next");
	seen.together = counts(store, "together");
	seen.made = baton_queue_get(store, BATON_STR("next"), &info) == BATON_OK;
	assert_ok(baton_queue_get(store, BATON_STR("q"), &info));
	seen.keep = info.policy.keep.ns;
	assert_ok(baton_lease_list(store, BATON_STR(""), BATON_STR(""), entries, LEASES,
	                           &seen.leases));
	assert_ok(baton_schedule_list(store, BATON_STR(""), LEASES, &schedules));
	seen.schedules = schedules->count;
	baton_schedules_free(schedules);
	if (baton_work_get(store, &s->claims->claims[0].batches[0].id, &page) == BATON_OK)
		seen.expires = page->infos[0].expires_at;
	baton_work_page_free(page);
	return seen;
}

/* A schedule that is due, and what can only be claimed under something else. */
static void make_more(struct scene *s)
{
	struct world *w = s->w;
	const struct baton_schedule schedule = {.name = BATON_STR("due"),
	                                        .cron = BATON_STR("* * * * * *"),
	                                        .queue = BATON_STR("next"),
	                                        .payload = payload};
	struct baton_queue_policy p = baton_queue_policy_default();
	p.shards = 1;
	assert_ok(baton_schedule_set(w->store, &schedule));
	world_advance(w, 1500);
	assert_ok(lease(w->store, "held", &s->held));
	assert_ok(lease(w->store, "lane/lanes/lane", &s->lane));
	assert_ok(put_some(w->store, "lanes", "lane", 2));
	assert_ok(baton_queue_set(w->store, BATON_STR("shards"), &p));
	assert_ok(put_some(w->store, "shards", "lane", 2));
}

static void make_scene(struct scene *s)
{
	struct baton_batch batch = keyed(payload);
	struct baton_put put;
	struct world *w = s->w;
	world_file(w, "original", s->original);
	world_open(w);
	make_more(s);
	assert_ok(put_some(w->store, "q", "lane", 5));
	assert_ok(claim_some(w->store, "q", 1, &s->claims));
	assert_ok(end_as(w->store, &s->claims->claims[0], BATON_REJECT));
	s->dead = s->claims->claims[0].batches[0].id;
	baton_work_claims_free(s->claims);
	assert_ok(claim_some(w->store, "q", 2, &s->claims));
	assert_ok(baton_work_put(w->store, &batch, 1, &put));
	s->waiting = put.id;
	assert_ok(put_some(w->store, "together", "", 12));
	assert_ok(claim_each(w->store, "together", 5, &s->chunk));
	world_close(w);
	world_copy(w->path, s->original);
}

static bool is_idle(struct baton_store *store)
{
	const struct sqlite_store *s = (struct sqlite_store *)store;
	return sqlite3_get_autocommit(s->db.handle) && sqlite3_get_autocommit(s->read.handle);
}

/* The store as it was at the beginning. */
static struct sight begin(const struct scene *s)
{
	struct world *w = s->w;
	world_copy(s->original, w->path);
	world_open(w);
	struct sight seen = look(s, w->store);
	world_close(w);
	return seen;
}

struct call {
	enum baton_err (*run)(struct scene *s, struct baton_store *store);
	enum baton_err expected;
	bool looks_after; /* it looks again after its change, and so may fail when that is done */
};

/* The call that failed works now, and everything begins anew. */
static void repeat(struct scene *s, const struct call *call, enum baton_err e)
{
	struct world *w = s->w;
	if (e == BATON_NO_MEMORY)
		assert_int_equal(call->run(s, w->store), call->expected);
	assert_sound(w->store);
	world_close(w);
	begin(s);
}

/* What is there before and after the call. */
struct sights {
	struct sight before, after;
};

/* Whether the call did all of it, or nothing, or what it may. */
static bool is_whole(const struct call *call, const struct sights *sights, enum baton_err e,
                     const struct sight *found)
{
	if (e == BATON_OK || memcmp(&sights->before, found, sizeof *found) == 0)
		return true;
	return call->looks_after && memcmp(&sights->after, found, sizeof *found) == 0;
}

/* Makes the call with one allocation failing. Returns false when there was no such allocation. */
static bool fail_once(struct scene *s, const struct call *call, const struct sights *sights,
                      unsigned n)
{
	struct world *w = s->w;
	world_open(w); /* anew, so that no statement is prepared yet */
	arm(n);
	enum baton_err e = call->run(s, w->store);
	bool reached = disarm();
	if (e != call->expected && e != BATON_NO_MEMORY)
		fail_msg("allocation %u: %s: %s", n, baton_err_name(e), baton_err_detail());
	assert_true(reached || e == call->expected);
	assert_true(is_idle(w->store));
	if (e == BATON_NO_MEMORY)
		assert_detail("no memory");
	struct sight found = look(s, w->store);
	bool changed = memcmp(&sights->before, &found, sizeof found) != 0;
	if (!is_whole(call, sights, e, &found))
		fail_msg("allocation %u: refused with %s, and yet something was changed", n,
		         baton_err_name(e));
	if (e == BATON_OK || changed || n % REPEATED == 0)
		repeat(s, call, e);
	else
		world_close(w);
	return reached;
}

static void fail_each(void **state, const struct call *call)
{
	struct scene s = {.w = *state};
	struct rng rng = rng_seed_from_env();
	make_scene(&s);
	struct sights sights = {.before = begin(&s)};
	world_open(s.w);
	assert_int_equal(call->run(&s, s.w->store), call->expected);
	sights.after = look(&s, s.w->store);
	world_close(s.w);
	begin(&s);
	sqlite3_int64 used = sqlite3_memory_used();
	unsigned n = 1;
	/* Alone, or with all after it. */
	while (fail_once(&s, call, &sights, n)) {
		forever = true;
		fail_once(&s, call, &sights, n);
		forever = false;
		n += 1 + (unsigned)rng_below(&rng, soak_scale(STRIDE_DAILY, 1));
		assert_true(n < 10000);
	}
	print_message("# %u allocations\n", n - 1);
	assert_true(n > 1);
	assert_int_equal(sqlite3_memory_used(), used);
	baton_work_claims_free(s.claims);
	baton_work_claims_free(s.chunk);
}

#define CALL_TEST(name, run, expected)                                            \
	static void name(void **state)                                            \
	{                                                                         \
		fail_each(state, &(const struct call){(run), (expected), false}); \
	}

CALL_TEST(a_put_is_whole_or_nothing, do_put, BATON_OK)
CALL_TEST(a_put_of_a_row_is_whole_or_nothing, do_put_together, BATON_OK)
CALL_TEST(a_claim_of_a_row_is_whole_or_nothing, do_claim_together, BATON_OK)
CALL_TEST(a_completion_of_a_row_is_whole_or_nothing, do_complete_together, BATON_OK)
CALL_TEST(a_row_is_melted_by_a_cancellation_or_not, do_cancel_together, BATON_OK)
CALL_TEST(a_row_is_melted_by_a_renewal_or_not, do_renew_together, BATON_OK)
CALL_TEST(a_row_is_melted_by_a_failure_or_not, do_fail_together, BATON_OK)
CALL_TEST(a_row_is_melted_by_an_expiry_or_not, do_recover_together, BATON_OK)
CALL_TEST(a_refused_put_is_nothing, do_refused_put, BATON_CONFLICT)
CALL_TEST(a_claim_is_whole_or_nothing, do_claim, BATON_OK)
CALL_TEST(a_completion_is_whole_or_nothing, do_complete, BATON_OK)
CALL_TEST(a_refused_completion_is_nothing, do_refused_complete, BATON_CONFLICT)
CALL_TEST(a_failure_is_whole_or_nothing, do_fail, BATON_OK)
CALL_TEST(a_renewal_is_whole_or_nothing, do_renew, BATON_OK)
CALL_TEST(a_cancellation_is_whole_or_nothing, do_cancel, BATON_OK)
CALL_TEST(a_revival_is_whole_or_nothing, do_revive, BATON_OK)
CALL_TEST(a_lease_is_whole_or_nothing, do_lease, BATON_OK)
CALL_TEST(a_release_is_whole_or_nothing, do_release, BATON_OK)
CALL_TEST(a_claim_of_a_lane_is_whole_or_nothing, do_lane, BATON_OK)
CALL_TEST(a_change_of_a_policy_is_whole_or_nothing, do_change, BATON_OK)
CALL_TEST(a_queue_is_made_or_not, do_make, BATON_OK)
CALL_TEST(a_schedule_is_whole_or_nothing, do_schedule, BATON_OK)
CALL_TEST(what_a_runner_does_is_whole_or_nothing, do_runner, BATON_OK)
CALL_TEST(tidying_is_whole_or_nothing, do_tidy, BATON_OK)
CALL_TEST(a_look_is_whole_or_nothing, do_list, BATON_OK)
CALL_TEST(a_copy_is_whole_or_nothing, do_backup, BATON_OK)

static void a_tick_of_a_schedule_is_whole_or_nothing(void **state)
{
	fail_each(state, &(const struct call){do_due, BATON_OK, true});
}

static void opening_is_whole_or_nothing(void **state)
{
	struct world *w = *state;
	sqlite3_int64 used = sqlite3_memory_used();
	bool reached = true;
	for (unsigned n = 1; reached; n += soak_scale(STRIDE_DAILY, 1)) {
		struct baton_store *store = NULL;
		world_remove(w->path);
		arm(n);
		enum baton_err e = world_try_open(w, w->path, &store);
		reached = disarm();
		if (e != BATON_OK && e != BATON_NO_MEMORY)
			fail_msg("allocation %u: %s: %s", n, baton_err_name(e), baton_err_detail());
		if (e != BATON_OK)
			assert_ok(world_try_open(w, w->path, &store));
		assert_ok(put_some(store, "q", "", 1));
		assert_sound(store);
		baton_store_close(store);
	}
	assert_int_equal(sqlite3_memory_used(), used);
}

int main(void)
{
	skips_repair();
	sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real);
	sqlite3_mem_methods methods = real;
	methods.xMalloc = on_malloc;
	methods.xRealloc = on_realloc;
	sqlite3_config(SQLITE_CONFIG_MALLOC, &methods);
	sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0); /* small ones come to us, too */
	const struct CMUnitTest tests[] = {
		WORLD_TEST(a_put_is_whole_or_nothing),
		WORLD_TEST(a_put_of_a_row_is_whole_or_nothing),
		WORLD_TEST(a_claim_of_a_row_is_whole_or_nothing),
		WORLD_TEST(a_completion_of_a_row_is_whole_or_nothing),
		WORLD_TEST(a_row_is_melted_by_a_cancellation_or_not),
		WORLD_TEST(a_row_is_melted_by_a_renewal_or_not),
		WORLD_TEST(a_row_is_melted_by_a_failure_or_not),
		WORLD_TEST(a_row_is_melted_by_an_expiry_or_not),
		WORLD_TEST(a_refused_put_is_nothing),
		WORLD_TEST(a_claim_is_whole_or_nothing),
		WORLD_TEST(a_completion_is_whole_or_nothing),
		WORLD_TEST(a_refused_completion_is_nothing),
		WORLD_TEST(a_failure_is_whole_or_nothing),
		WORLD_TEST(a_renewal_is_whole_or_nothing),
		WORLD_TEST(a_cancellation_is_whole_or_nothing),
		WORLD_TEST(a_revival_is_whole_or_nothing),
		WORLD_TEST(a_lease_is_whole_or_nothing),
		WORLD_TEST(a_release_is_whole_or_nothing),
		WORLD_TEST(a_claim_of_a_lane_is_whole_or_nothing),
		WORLD_TEST(a_change_of_a_policy_is_whole_or_nothing),
		WORLD_TEST(a_queue_is_made_or_not),
		WORLD_TEST(a_schedule_is_whole_or_nothing),
		WORLD_TEST(a_tick_of_a_schedule_is_whole_or_nothing),
		WORLD_TEST(what_a_runner_does_is_whole_or_nothing),
		WORLD_TEST(tidying_is_whole_or_nothing),
		WORLD_TEST(a_look_is_whole_or_nothing),
		WORLD_TEST(a_copy_is_whole_or_nothing),
		WORLD_TEST(opening_is_whole_or_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
