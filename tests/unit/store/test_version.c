/* Stores that an earlier version has left: all that is in them is there, and nothing goes back. */
#include <inttypes.h>
#include <stdio.h>

#include <baton/shard.h>
#include <sqlite3.h>

#include "world.h"

/* What each version has that the one before it does not, taken away again. */
static const char *const back[] = {
	/* 2 to 1 */
	"DROP INDEX claim_bound; DROP TABLE shard; DROP TABLE runner;"
	"ALTER TABLE lane DROP COLUMN shard; ALTER TABLE queue DROP COLUMN mixed;"
	"ALTER TABLE state DROP COLUMN runner;",
	/* 3 to 2 */
	"ALTER TABLE queue DROP COLUMN top; ALTER TABLE queue DROP COLUMN floor;",
	/* 4 to 3 */
	"ALTER TABLE state DROP COLUMN shards; ALTER TABLE runner DROP COLUMN queues;"
	"ALTER TABLE runner DROP COLUMN guardian; ALTER TABLE runner DROP COLUMN life;"
	"ALTER TABLE runner DROP COLUMN wish; ALTER TABLE runner DROP COLUMN state;"
	"ALTER TABLE runner DROP COLUMN proofs; ALTER TABLE runner DROP COLUMN host;",
	/* 5 to 4 */
	"ALTER TABLE runner DROP COLUMN report; ALTER TABLE runner DROP COLUMN reported;",
	/* 6 to 5 */
	("DROP INDEX claim_offered; DROP TABLE kept; ALTER TABLE lane DROP COLUMN holds;"
         "ALTER TABLE queue DROP COLUMN key_limit; ALTER TABLE queue DROP COLUMN hold_on_retry;"),
	/* 7 to 6 */
	("ALTER TABLE queue DROP COLUMN on_conflict; ALTER TABLE done DROP COLUMN rival;"
         "ALTER TABLE queue DROP COLUMN key_waiting_max; DROP TABLE lone;"
         "ALTER TABLE claim DROP COLUMN lone; ALTER TABLE trouble DROP COLUMN rival;"),
	/* 8 to 7 */
	("DROP TABLE bulk; DROP TABLE chunk; DROP TABLE reply;"
         "ALTER TABLE queue DROP COLUMN key_fair; ALTER TABLE lane DROP COLUMN turn;"
         "ALTER TABLE lane DROP COLUMN place; CREATE TABLE old(pool INTEGER NOT NULL,"
         " rank INTEGER NOT NULL, seq INTEGER NOT NULL, lane INTEGER, tried INTEGER NOT NULL,"
         " PRIMARY KEY(pool, rank, seq)) WITHOUT ROWID;"
         "INSERT INTO old SELECT pool, rank, seq, lane, tried FROM head; DROP TABLE head;"
         "ALTER TABLE old RENAME TO head;"),
	/* 9 to 8 */
	("ALTER TABLE queue DROP COLUMN key_starts; ALTER TABLE queue DROP COLUMN key_window;"
         "ALTER TABLE queue DROP COLUMN key_ttl;"
         "ALTER TABLE lane DROP COLUMN until; DROP TABLE rate;"),
	/* 10 to 9 */
	("ALTER TABLE bulk DROP COLUMN keys; ALTER TABLE state DROP COLUMN young;"
         "ALTER TABLE head DROP COLUMN last;"),
	/* 11 to 10 */
	("DROP TABLE guest; DROP INDEX claim_key; ALTER TABLE claim DROP COLUMN key;"
         "ALTER TABLE lane DROP COLUMN asks; ALTER TABLE lane DROP COLUMN asked;"
         "ALTER TABLE lane DROP COLUMN guest; ALTER TABLE queue DROP COLUMN guests;"),
	/* 12 to 11 */
	("DROP TABLE held; ALTER TABLE lane DROP COLUMN also; ALTER TABLE claim DROP COLUMN also;"),
	/* 13 to 12 */
	("DROP TABLE wish; ALTER TABLE queue DROP COLUMN waiting;"),
	/* 14 to 13 */
	"ALTER TABLE queue DROP COLUMN key_scope;",
	/* 15 to 14 */
	"DROP INDEX queue_class; ALTER TABLE queue DROP COLUMN key_class;",
};
#define NEWEST ((int)(sizeof back / sizeof back[0]) + 1)

static void run_sql(sqlite3 *db, const char *sql)
{
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sqlite3_errmsg(db), sql);
}

static int64_t number(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *stmt = NULL;
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	int64_t n = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	return n;
}

/* Makes the store, which is closed, one of an earlier version. */
static void go_back(struct world *w, int version)
{
	sqlite3 *db = NULL;
	char stamp[40];
	assert_int_equal(sqlite3_open(w->path, &db), SQLITE_OK);
	assert_int_equal(number(db, "PRAGMA user_version"), NEWEST);
	for (int v = NEWEST; v > version; v--)
		run_sql(db, back[v - 2]);
	snprintf(stamp, sizeof stamp, "PRAGMA user_version=%d", version);
	run_sql(db, stamp);
	sqlite3_close(db);
}

static void fill(struct baton_store *store)
{
	struct baton_work_claims *claims = NULL;
	assert_ok(put_some(store, "q", "a", 3));
	assert_ok(put_some(store, "q", "b", 2));
	/* So few at a time have rows of their own, as all had in earlier versions. */
	assert_ok(put_some(store, "q", "", 2));
	assert_ok(put_some(store, "q", "", 2));
	assert_ok(claim_some(store, "q", 1, &claims));
	assert_ok(end_as(store, &claims->claims[0], BATON_REJECT));
	baton_work_claims_free(claims);
	claims = NULL;
	assert_ok(claim_some(store, "q", 1, &claims));
	assert_ok(complete(store, &claims->claims[0], NULL));
	baton_work_claims_free(claims);
}

static void all_that_an_earlier_version_has_stored_is_there(void **state)
{
	struct world *w = *state;
	for (int version = 1; version < NEWEST; version++) {
		struct baton_work_claims *claims = NULL;
		world_open(w);
		fill(w->store);
		uint64_t plain = next_fence(w->store, "plain");
		struct baton_queue_counts before = counts(w->store, "q");
		world_close(w);
		go_back(w, version);
		world_open(w);
		struct baton_queue_counts now = counts(w->store, "q");
		assert_int_equal(now.ready, before.ready);
		assert_int_equal(now.dead, before.dead);
		assert_int_equal(now.done, before.done);
		assert_true(next_fence(w->store, "plain") > plain);
		assert_sound(w->store);
		assert_ok(claim_some(w->store, "q", 1, &claims));
		assert_ok(complete(w->store, &claims->claims[0], NULL));
		baton_work_claims_free(claims);
		assert_sound(w->store);
		world_close(w);
		world_remove(w->path);
	}
}

static void set_mode(struct baton_store *store, enum baton_queue_mode mode)
{
	const struct baton_queue_policy p = {.mode = mode, .shards = 1};
	assert_ok(baton_queue_change(store, BATON_STR("q"), &p,
	                             BATON_POLICY_MODE | BATON_POLICY_SHARDS));
}

static uint64_t laned(struct baton_store *store, int leases)
{
	uint64_t fence = 0;
	for (int i = 0; i < leases; i++)
		fence = next_fence(store, "lane/q/x");
	return fence << 20;
}

/* A claim that expired after the change is found by the index that is new. */
static void what_a_version_4_had_claimed_comes_back_in_its_lane(void **state)
{
	struct world *w = *state;
	struct baton_work_claims *claims = NULL;
	world_open(w);
	assert_ok(put_some(w->store, "q", "a", 2));
	assert_ok(claim_some(w->store, "q", 1, &claims));
	struct baton_batch_id first = claims->claims[0].batches[0].id;
	baton_work_claims_free(claims);
	claims = NULL;
	world_close(w);
	go_back(w, 4);
	world_open(w);
	assert_ok(claim_some(w->store, "q", 1, &claims));
	assert_null(claims);
	world_advance(w, 1000);
	assert_ok(claim_some(w->store, "q", 1, &claims));
	assert_string_equal(claims->claims[0].batches[0].id.text, first.text);
	baton_work_claims_free(claims);
	assert_sound(w->store);
	world_close(w);
	world_remove(w->path);
}

/* By how much its shard is ahead. */
static uint64_t sharded(struct baton_store *store, int times)
{
	const struct baton_runner_ask ask = {.name = BATON_STR("r"),
	                                     .weight = 1,
	                                     .ttl = baton_duration_s(10)};
	struct baton_runner *r = NULL;
	const struct baton_shard shard = {BATON_STR("q"), 0, 1, 1};
	struct baton_shard_answer answer = {.err = BATON_OK};
	assert_ok(baton_runner_register(store, &ask, &r, NULL));
	for (int i = 0; i < times; i++) {
		assert_ok(baton_shard_take(r, &shard, 1, &answer));
		assert_ok(baton_shard_give(r, &shard, 1, &answer));
	}
	baton_runner_leave(r);
	return answer.fence.v << 20;
}

/* The heads of rows with several jobs did not say how far they go. */
static void rows_of_jobs_of_version_9_go_over_to_a_runner_whole(void **state)
{
	struct world *w = *state;
	const struct baton_runner_ask ask = {.name = BATON_STR("r"),
	                                     .weight = 1,
	                                     .ttl = baton_duration_s(10)};
	const struct baton_shard shard = {BATON_STR("q"), 0, 1, 1};
	struct baton_shard_answer answer = {.err = BATON_OK};
	struct baton_runner *r = NULL;
	const struct baton_tick tick = {.shards = &shard,
	                                .shard_count = 1,
	                                .owned = &answer,
	                                .claims = 1};
	struct baton_work_claims *claims = NULL;
	struct baton_batch_id last = {.text = "40"};
	enum baton_cancelled cancelled;
	world_open(w);
	set_mode(w->store, BATON_QUEUE_OPEN);
	assert_ok(put_some(w->store, "q", "", 20));
	assert_ok(put_some(w->store, "q", "", 20));
	world_close(w);
	go_back(w, 9);
	world_open(w);
	assert_ok(baton_runner_register(w->store, &ask, &r, NULL));
	assert_ok(baton_shard_take(r, &shard, 1, &answer));
	assert_ok(answer.err);
	assert_ok(baton_runner_tick(r, &tick, &claims));
	assert_non_null(claims);
	assert_sound(w->store);
	assert_ok(baton_work_cancel(w->store, &last, 1, &cancelled));
	assert_int_equal(cancelled, BATON_CANCEL_REMOVED);
	assert_int_equal(counts(w->store, "q").ready, 38);
	assert_sound(w->store);
	baton_work_claims_free(claims);
	baton_runner_leave(r);
}

static void put_keyed(struct baton_store *store, const char *lane, const char *const *keys,
                      size_t count)
{
	const struct baton_str bytes = BATON_STR("x");
	struct baton_batch batches[8];
	for (size_t i = 0; i < count; i++)
		batches[i] = (struct baton_batch){.queue = BATON_STR("q"),
		                                  .lane = baton_str_z(lane),
		                                  .key = baton_str_z(keys[i]),
		                                  .payloads = &bytes,
		                                  .count = 1};
	assert_ok(baton_work_put(store, batches, count, NULL));
}

static void assert_keys_of(const struct baton_work_claims *claims, const char *expected)
{
	char keys[64] = "";
	for (size_t i = 0; claims && i < claims->count; i++)
		snprintf(keys + strlen(keys), sizeof keys - strlen(keys), "%.*s%s%.*s ",
		         (int)claims->claims[i].lane.len, claims->claims[i].lane.ptr,
		         claims->claims[i].lane.len > 0 ? ":" : "", (int)claims->claims[i].key.len,
		         claims->claims[i].key.ptr);
	assert_string_equal(keys, expected);
}

/* Together in a row, alone and in a line, ready and claimed: lanes wait for these keys now. */
static void keys_of_version_10_hold_up_lanes_that_want_them(void **state)
{
	struct world *w = *state;
	static const char *const together[] = {"a", "b", "c", "d", "e"}, *const line[] = {"l", "l"};
	static const char *const alone[] = {"f"}, *const none[] = {"g"};
	struct baton_work_claims *claims = NULL, *more = NULL, *last = NULL;
	world_open(w);
	put_keyed(w->store, "", together, 5);
	put_keyed(w->store, "", alone, 1);
	put_keyed(w->store, "", line, 2);
	assert_ok(claim_each(w->store, "q", 2, &claims));
	assert_keys_of(claims, "a b ");
	world_close(w);
	go_back(w, 10);
	world_open(w);
	assert_sound(w->store);
	put_keyed(w->store, "w", &together[0], 1);
	put_keyed(w->store, "x", &together[3], 1);
	put_keyed(w->store, "y", alone, 1);
	put_keyed(w->store, "z", line, 1);
	put_keyed(w->store, "v", none, 1);
	assert_sound(w->store);
	assert_ok(claim_each(w->store, "q", 8, &more));
	assert_keys_of(more, "c d e f l v:g ");
	assert_sound(w->store);
	assert_ok(complete_each(w->store, claims, 2));
	assert_ok(complete_each(w->store, more, more->count));
	assert_ok(claim_each(w->store, "q", 8, &last));
	assert_keys_of(last, "l w:a x:d y:f ");
	for (size_t i = 1; i < last->count; i++)
		assert_true(last->claims[i].fence.v > more->claims[more->count - 1].fence.v);
	assert_sound(w->store);
	baton_work_claims_free(claims);
	baton_work_claims_free(more);
	baton_work_claims_free(last);
}

static void lanes_of_version_11_share_keys_with_jobs_that_have_several(void **state)
{
	struct world *w = *state;
	static const char *const k[] = {"k"}, *const l[] = {"l"};
	static const struct baton_str payload = {"x", 1}, keys[] = {{"l", 1}, {"k", 1}};
	const struct baton_batch both = {.queue = BATON_STR("q"),
	                                 .keys = keys,
	                                 .key_count = 2,
	                                 .payloads = &payload,
	                                 .count = 1};
	struct baton_work_claims *claims = NULL, *more = NULL, *last = NULL;
	world_open(w);
	put_keyed(w->store, "v", k, 1);
	put_keyed(w->store, "w", l, 1);
	put_keyed(w->store, "x", k, 1);
	assert_ok(claim_each(w->store, "q", 8, &claims));
	assert_keys_of(claims, "v:k w:l ");
	world_close(w);
	go_back(w, 11);
	world_open(w);
	assert_sound(w->store);
	assert_ok(baton_work_put(w->store, &both, 1, NULL));
	put_keyed(w->store, "y", l, 1);
	assert_sound(w->store);
	assert_ok(complete_each(w->store, claims, 2));
	assert_ok(claim_each(w->store, "q", 8, &more));
	assert_keys_of(more, "x:k ");
	assert_ok(complete_each(w->store, more, 1));
	assert_ok(claim_each(w->store, "q", 8, &last));
	assert_int_equal(last->count, 1);
	assert_int_equal(last->claims[0].key_count, 2);
	assert_true(last->claims[0].fence.v > more->claims[0].fence.v);
	assert_sound(w->store);
	baton_work_claims_free(claims);
	baton_work_claims_free(more);
	baton_work_claims_free(last);
}

static uint64_t pulled(struct baton_store *store, int claims)
{
	uint64_t fence = 0;
	for (int i = 0; i < claims; i++) {
		struct baton_work_claims *given = NULL;
		assert_ok(put_some(store, "q", "x", 1));
		assert_ok(claim_some(store, "q", 1, &given));
		fence = given->claims[0].fence.v;
		assert_ok(complete(store, &given->claims[0], NULL));
		baton_work_claims_free(given);
	}
	return fence;
}

/* It did not know how far the claims of a queue had come, but who had granted them. */
static void after_version_2_fences_are_above_all_that_any_mode_had(void **state)
{
	struct world *w = *state;
	for (int high = 0; high < 3; high++) {
		world_open(w);
		set_mode(w->store, BATON_QUEUE_LANE);
		uint64_t lane = laned(w->store, high == 0 ? 20 : 1);
		set_mode(w->store, BATON_QUEUE_RUNNER);
		uint64_t shard = sharded(w->store, high == 1 ? 20 : 1);
		set_mode(w->store, BATON_QUEUE_PULL);
		uint64_t pull = pulled(w->store, high == 2 ? 20 : 1);
		world_close(w);
		go_back(w, 2);
		world_open(w);
		uint64_t fence = pulled(w->store, 1);
		if (fence <= lane || fence <= shard || fence <= pull)
			fail_msg("%" PRIu64 " is not above %" PRIu64 ", %" PRIu64 " and %" PRIu64,
			         fence, lane, shard, pull);
		assert_sound(w->store);
		world_close(w);
		world_remove(w->path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(all_that_an_earlier_version_has_stored_is_there),
		WORLD_TEST(rows_of_jobs_of_version_9_go_over_to_a_runner_whole),
		WORLD_TEST(keys_of_version_10_hold_up_lanes_that_want_them),
		WORLD_TEST(lanes_of_version_11_share_keys_with_jobs_that_have_several),
		WORLD_TEST(what_a_version_4_had_claimed_comes_back_in_its_lane),
		WORLD_TEST(after_version_2_fences_are_above_all_that_any_mode_had),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
