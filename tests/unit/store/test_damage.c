/* Files that are damaged: nobody crashes over it, whatever is done then, and nobody looks for
 * ever. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <baton/schedule.h>

#include "support/rng.h"
#include "support/soak.h"
#include "world.h"

#define PAGE 4096

static void set_schedule(struct world *w, const char *name)
{
	const struct baton_schedule schedule = {
		.name = baton_str_z(name),
		.cron = BATON_STR("@hourly"),
		.queue = BATON_STR("q"),
		.lane = BATON_STR("l"),
	};
	assert_ok(baton_schedule_set(w->store, &schedule));
}

/* Neither while it is not due nor then: it is told, and the others have their turn. */
static void a_schedule_that_cannot_be_keeps_nobody(void **state)
{
	static const char *const damages[] = {
		"name = zeroblob(4)",
		"name = printf('%.300c', 'x')",
		"lane = printf('%.256c', 'x')",
		"queue = 'a/b'",
		"missed = 4",
		"priority = 10",
		"cron = '* * * *'",
		"zone = '../x'",
	};
	struct world *w = *state;
	char original[WORLD_PATH], sql[128];
	world_file(w, "original", original);
	world_open(w);
	set_schedule(w, "s");
	set_schedule(w, "t");
	world_close(w);
	world_copy(w->path, original);
	for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
		size_t count = 1;
		world_copy(original, w->path);
		snprintf(sql, sizeof sql, "UPDATE schedule SET %s WHERE name = 's'", damages[i]);
		world_sql(w->path, sql);
		world_open(w);
		assert_ok(baton_schedule_tick(w->store, &count, NULL));
		assert_int_equal(count, 0);
		world_advance(w, 3600000);
		if (baton_schedule_tick(w->store, &count, NULL) == BATON_OK)
			fail_msg("%s: nobody says so", damages[i]);
		assert_int_equal(count, 1);
		world_close(w);
		world_advance(w, -3600000);
	}
}

/* Rows of jobs, of claims and of answers. */
static void make_together(struct world *w)
{
	struct baton_work_claims *claims = NULL;
	for (int i = 0; i < 3; i++)
		assert_ok(put_some(w->store, "together", "", 20));
	assert_ok(claim_each(w->store, "together", 30, &claims));
	assert_ok(complete_each(w->store, claims, 15));
	baton_work_claims_free(claims);
}

#define KEYED_MAX 8

/* Jobs with the keys from that one on, which may share a row; `lane`: each has that, too. */
static enum baton_err put_keyed(struct baton_store *store, const char *lane, size_t from,
                                size_t count)
{
	static const struct baton_str payload = {"with a key", 10};
	struct baton_batch batches[KEYED_MAX];
	struct baton_put puts[KEYED_MAX];
	char keys[KEYED_MAX][16];
	for (size_t i = 0; i < count; i++) {
		snprintf(keys[i], sizeof keys[i], "key %zu", from + i);
		batches[i] = (struct baton_batch){.queue = BATON_STR("keyed"),
		                                  .lane = baton_str_z(lane),
		                                  .key = baton_str_z(keys[i]),
		                                  .payloads = &payload,
		                                  .count = 1};
	}
	return baton_work_put(store, batches, count, puts);
}

/* More rows of jobs with keys than are kept in mind, claims of some, others who want the same keys,
 * and lanes that ask for keys. */
static void make_keyed(struct world *w)
{
	struct baton_work_claims *claims = NULL;
	for (size_t i = 0; i < 70; i++)
		assert_ok(put_keyed(w->store, "", 4 * i, 4));
	assert_ok(claim_each(w->store, "keyed", 30, &claims));
	assert_ok(complete_each(w->store, claims, 10));
	baton_work_claims_free(claims);
	assert_ok(put_keyed(w->store, "", 28, 4));
	assert_ok(put_keyed(w->store, "", 271, 1));
	assert_ok(put_keyed(w->store, "a", 276, 2));
	assert_ok(put_keyed(w->store, "b", 276, 2));
	assert_ok(put_keyed(w->store, "c", 500, 2));
	claims = NULL;
	assert_ok(claim_each(w->store, "keyed", 20, &claims));
	baton_work_claims_free(claims);
}

/* A store with something of everything, closed. */
static void make_full(struct world *w)
{
	static const enum baton_work_how hows[] = {BATON_FAIL, BATON_REJECT, BATON_COMPLETE};
	struct baton_lease l;
	world_open(w);
	for (int i = 0; i < 40; i++) {
		char name[16];
		struct baton_work_claims *claims = NULL;
		snprintf(name, sizeof name, "name %d", i);
		assert_ok(put_some(w->store, "q", name, 3));
		assert_ok(put_some(w->store, "q", "", 1));
		assert_ok(lease(w->store, name, &l));
		assert_ok(claim_some(w->store, "q", 1, &claims));
		if (i % 4 < 3)
			assert_ok(end_as(w->store, &claims->claims[0], hows[i % 4]));
		baton_work_claims_free(claims);
	}
	make_together(w);
	make_keyed(w);
	world_close(w);
}

static bool is_known(enum baton_err e)
{
	return e == BATON_OK || e == BATON_STORAGE || e == BATON_INVALID || e == BATON_NOT_HELD ||
	       e == BATON_NOT_FOUND || e == BATON_YIELD || e == BATON_FULL || e == BATON_BUSY ||
	       e == BATON_CONFLICT || e == BATON_NO_MEMORY;
}

/* Among those that share rows: what is done to one of them makes ordinary rows of all. */
static void use_together(struct baton_store *store)
{
	struct baton_work_claims *claims = NULL;
	struct baton_work_renewal renewal;
	struct baton_batch_id id;
	enum baton_cancelled cancelled;
	assert_true(is_known(put_some(store, "together", "", 5)));
	assert_true(is_known(claim_each(store, "together", 20, &claims)));
	if (claims && claims->count > 1) {
		assert_true(is_known(complete_each(store, claims, claims->count / 2)));
		assert_true(
			is_known(baton_work_renew(store, &claims->claims[claims->count - 1].proof,
		                                  1, baton_duration_ms(5000), &renewal)));
	}
	baton_work_claims_free(claims);
	for (int i = 100; i < 240; i += 10) {
		snprintf(id.text, sizeof id.text, "%d", i);
		assert_true(is_known(baton_work_cancel(store, &id, 1, &cancelled)));
	}
}

/* Among those that have keys. */
static void use_keyed(struct baton_store *store)
{
	const struct baton_queue_policy p = {.key_limit = 2};
	struct baton_work_claims *claims = NULL;
	assert_true(is_known(put_keyed(store, "", 40, 6)));
	assert_true(is_known(put_keyed(store, "", 600, 6)));
	assert_true(is_known(put_keyed(store, "a", 42, 1)));
	assert_true(is_known(put_keyed(store, "d", 274, 1)));
	assert_true(is_known(claim_each(store, "keyed", 40, &claims)));
	if (claims && claims->count > 3) {
		assert_true(is_known(complete_each(store, claims, claims->count / 2)));
		assert_true(
			is_known(end_as(store, &claims->claims[claims->count - 1], BATON_FAIL)));
		assert_true(
			is_known(end_as(store, &claims->claims[claims->count - 2], BATON_ABANDON)));
	}
	baton_work_claims_free(claims);
	assert_true(is_known(
		baton_queue_change(store, BATON_STR("keyed"), &p, BATON_POLICY_KEY_LIMIT)));
}

/* Works with a store that may be damaged; nothing has to succeed. */
static void use(struct baton_store *store)
{
	struct baton_work_claims *claims = NULL;
	struct baton_work_page *page = NULL;
	struct baton_lease l;
	const struct baton_work_filter all = {.max = BATON_LIST_MAX};
	assert_true(is_known(put_some(store, "q", "name 3", 2)));
	assert_true(is_known(claim_some(store, "q", 10, &claims)));
	if (claims)
		assert_true(is_known(complete(store, &claims->claims[0], "q")));
	assert_true(is_known(lease(store, "name 3", &l)));
	assert_true(is_known(baton_work_list(store, &all, &page)));
	assert_true(is_known(baton_store_tidy(store, 100, NULL)));
	baton_work_page_free(page);
	baton_work_claims_free(claims);
	use_together(store);
	use_keyed(store);
}

/* Whether the damage is noticed when the store is opened or checked. Uses it, too. */
static bool is_noticed(struct world *w)
{
	struct baton_store *store = NULL;
	uint64_t faults = 0;
	enum baton_err e = world_try_open(w, w->path, &store);
	if (e != BATON_OK) {
		assert_true(e == BATON_STORAGE || e == BATON_INVALID);
		assert_detail(w->path);
		return true;
	}
	e = baton_store_check(store, NULL, NULL, &faults);
	assert_true(e == BATON_OK || e == BATON_STORAGE);
	use(store);
	baton_store_close(store);
	return e != BATON_OK || faults > 0;
}

static void a_head_that_is_none_is_not_looked_at_for_ever(void **state)
{
	struct world *w = *state;
	static const struct baton_str payload = {"x", 1};
	const struct baton_batch guest = {.queue = BATON_STR("q"),
	                                  .lane = BATON_STR("a"),
	                                  .key = BATON_STR("k"),
	                                  .payloads = &payload,
	                                  .count = 1};
	struct baton_put put;
	struct baton_work_claims *claims = NULL;
	world_open(w);
	assert_ok(baton_work_put(w->store, &guest, 1, &put));
	assert_ok(put_some(w->store, "q", "b", 1));
	world_sql(w->path, "UPDATE lane SET head = 0 WHERE name = 'b'");
	assert_int_equal(claim_each(w->store, "q", 3, &claims), BATON_STORAGE);
	assert_detail("is damaged");
	world_close(w);
}

#define NO_MORE "UPDATE queue SET top = 9007199254740991, floor = 9007199254740991"
#define AS_BEFORE "UPDATE queue SET top = 0, floor = 0"

/* Who cannot have a fence has nothing, and what he asked for stays where it is. */
static void where_there_are_no_more_fences_nothing_is_half_done(void **state)
{
	struct world *w = *state;
	struct baton_work_claims *claims = NULL;
	struct baton_lease_answer answers[2];
	const struct baton_lease_ask asks[2] = {{.subject = BATON_STR("new")},
	                                        {.subject = BATON_STR("old")}};
	struct baton_lease l;
	world_open(w);
	assert_ok(put_some(w->store, "q", "", 1));
	assert_ok(put_some(w->store, "q", "lane", 1));
	assert_ok(put_some(w->store, "q", "", 6));
	assert_ok(lease(w->store, "old", &l));
	world_sql(w->path, NO_MORE ";UPDATE lease SET fence = 9007199254740991, held = 0");
	for (uint32_t i = 1; i <= 8; i++) {
		assert_int_equal(claim_each(w->store, "q", i, &claims), BATON_FULL);
		assert_detail("\"q\" has had all the fences there are");
		assert_int_equal(counts(w->store, "q").ready, 8);
		assert_sound(w->store);
	}
	assert_int_equal(baton_lease_claim(w->store, asks, 2, answers), BATON_FULL);
	assert_detail("\"old\" has had all the fences there are");
	struct baton_lease_holder holder;
	assert_int_equal(baton_lease_inspect(w->store, BATON_STR("new"), &holder), BATON_NOT_HELD);
	world_sql(w->path, AS_BEFORE);
	assert_ok(claim_each(w->store, "q", 8, &claims));
	assert_int_equal(claims->count, 8);
	assert_ok(complete_each(w->store, claims, 8));
	baton_work_claims_free(claims);
	assert_sound(w->store);
}

static void a_page_of_garbage_is_noticed(void **state)
{
	struct world *w = *state;
	struct stat st;
	char original[WORLD_PATH], garbage[PAGE];
	world_file(w, "original", original);
	make_full(w);
	world_copy(w->path, original);
	assert_int_equal(stat(original, &st), 0);
	memset(garbage, 0x5a, sizeof garbage);
	for (size_t offset = 0; offset < (size_t)st.st_size; offset += PAGE) {
		world_copy(original, w->path);
		world_write(w->path, offset, garbage, sizeof garbage);
		if (!is_noticed(w))
			fail_msg("page %zu is garbage, and nobody says so", offset / PAGE + 1);
	}
}

/* Each field of a policy with what it cannot be, and names that no queue has. */
static void a_queue_that_cannot_be_is_told(void **state)
{
	static const char *const damages[] = {
		"mode = 0",
		"mode = 5",
		"mode = -1",
		"shards = 0",
		"shards = 4097",
		"shards = 'some'",
		"payload_max = 0",
		"waiting_max = -1",
		"attempts = 0",
		"backoff = 0",
		"base = -1",
		"cap = 9223372036854775807",
		"lane_backoff = 4",
		"on_retry = 3",
		"on_dead = 0",
		"dedupe = -9223372036854775807",
		"keep = 9223372036854775807",
		"key_limit = 0",
		"hold_on_retry = 0",
		"on_conflict = 6",
		"key_waiting_max = 10001",
		"key_fair = 3",
		"key_starts = 9223372036854775807",
		"key_ttl = 1",
		"key_scope = 0",
		"name = x'71'",
		"name = zeroblob(64)",
		"name = 'a/b'",
		"name = printf('%0256d', 1)",
		"key_class = printf('%0256d', 1)",
		"key_class = x'6b'",
	};
	struct world *w = *state;
	char original[WORLD_PATH], sql[128];
	struct baton_queue_info infos[4];
	size_t count;
	world_file(w, "original", original);
	world_open(w);
	assert_ok(put_some(w->store, "q", "", 1));
	world_close(w);
	world_copy(w->path, original);
	for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
		world_copy(original, w->path);
		snprintf(sql, sizeof sql, "UPDATE queue SET %s", damages[i]);
		world_sql(w->path, sql);
		world_open(w);
		if (baton_queue_list(w->store, BATON_STR(""), infos, 4, &count) != BATON_STORAGE)
			fail_msg("%s: nobody says so", damages[i]);
		assert_detail("is damaged: queue 1 ");
		assert_detail("; baton check says more");
		if (!strstr(damages[i], "name")) {
			assert_int_equal(put_some(w->store, "q", "lane", 1), BATON_STORAGE);
			assert_detail("is damaged: queue 1 ");
		}
		use(w->store);
		world_close(w);
	}
}

/* Of rows that several jobs share, and of keys: whatever is done then, it ends, and nobody
 * crashes. */
static void numbers_that_cannot_be_crash_nobody(void **state)
{
	static const char *const damages[] = {
		"UPDATE bulk SET queue = -62",
		"UPDATE bulk SET queue = 9223372036854775807",
		"UPDATE bulk SET count = -1",
		"UPDATE bulk SET count = 0",
		"UPDATE bulk SET count = 9223372036854775807",
		"UPDATE bulk SET flags = -1",
		"UPDATE bulk SET first = first + 9223372036854775000",
		"UPDATE bulk SET first = -first",
		"UPDATE chunk SET queue = -62",
		"UPDATE chunk SET bulk = 9223372036854775807",
		"UPDATE chunk SET first = first + 9223372036854775000",
		"UPDATE chunk SET expires_at = -9223372036854775807",
		"UPDATE chunk SET claims = zeroblob(31)",
		"UPDATE chunk SET claims = zeroblob(32 * 65)",
		"UPDATE chunk SET claims = zeroblob(32 * 64)",
		"UPDATE chunk SET owner = -9223372036854775807",
		"UPDATE reply SET claims = zeroblob(33)",
		"UPDATE reply SET first = first - 9223372036854775807",
		"UPDATE bulk SET jobs = zeroblob(100)",
		"UPDATE bulk SET jobs = randomblob(4000)",
		"UPDATE head SET seq = 9223372036854775807 WHERE tried = 2",
		"UPDATE head SET seq = -seq WHERE tried = 2",
		"UPDATE state SET seq = 9223372036854775807",
		"UPDATE state SET seq = -1, lane = -9",
		"UPDATE state SET lane = 9223372036854775807",
		"UPDATE bulk SET keys = x'' WHERE length(keys) > 0",
		"UPDATE bulk SET keys = zeroblob(40)",
		"UPDATE bulk SET keys = randomblob(200)",
		"UPDATE bulk SET keys = (SELECT keys FROM bulk WHERE length(keys) > 0)",
		"UPDATE state SET young = zeroblob(8 * 64)",
		"UPDATE state SET young = zeroblob(7)",
		"UPDATE state SET young = randomblob(8 * 100)",
		"UPDATE state SET young = substr(young, 1, 8) || young || young",
		"UPDATE state SET young = x''",
		"UPDATE head SET last = -1 WHERE tried = 2",
		"UPDATE head SET last = seq - 1 WHERE tried = 2",
		"UPDATE head SET last = 9223372036854775807 WHERE tried = 2",
		"UPDATE head SET last = NULL",
		"UPDATE head SET place = place + 2 WHERE tried = 2",
		"UPDATE lone SET seq = 9223372036854775807",
		"UPDATE lone SET seq = -seq",
		"UPDATE lone SET seq = seq + 1",
		"DELETE FROM lone",
		"UPDATE guest SET lane = 9223372036854775807",
		"UPDATE guest SET seq = seq + 1000",
		"UPDATE guest SET key = -key",
		"DELETE FROM guest",
		"UPDATE lane SET asks = 9223372036854775807, asked = -1",
		"UPDATE lane SET asks = id WHERE asks > 0",
		"UPDATE lane SET guest = 9223372036854775807",
		"UPDATE lane SET guest = id WHERE holds IS NOT NULL",
		"UPDATE lane SET holds = -9223372036854775807 WHERE holds IS NOT NULL",
		"UPDATE lane SET holds = 9223372036854775807 WHERE holds IS NOT NULL",
		"UPDATE claim SET key = 9223372036854775807",
		"UPDATE claim SET lone = 5, lane = NULL",
		"UPDATE queue SET top = 9007199254740991, floor = 9007199254740991",
		"UPDATE queue SET guests = 1 - guests",
	};
	struct world *w = *state;
	char original[WORLD_PATH];
	world_file(w, "original", original);
	make_full(w);
	world_copy(w->path, original);
	for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
		world_copy(original, w->path);
		world_sql(w->path, damages[i]);
		is_noticed(w);
		world_advance(w, 2000); /* once more, when what is claimed has expired */
		is_noticed(w);
	}
}

/* Whatever they do, and whether they are noticed or not: nobody crashes. */
static void flipped_bytes_crash_nobody(void **state)
{
	struct world *w = *state;
	struct rng rng = rng_seed_from_env();
	size_t size;
	char original[WORLD_PATH];
	world_file(w, "original", original);
	make_full(w);
	world_copy(w->path, original);
	char *bytes = world_read(original, &size);
	unsigned rounds = soak_scale(100, 20000), noticed = 0;
	for (unsigned i = 0; i < rounds; i++) {
		world_copy(original, w->path);
		for (int flip = 0; flip < 20; flip++) {
			size_t at = 100 + rng_below(&rng, size - 100);
			char byte = (char)rng_below(&rng, 256);
			world_write(w->path, at, &byte, 1);
		}
		noticed += is_noticed(w);
	}
	print_message("# %u of %u noticed\n", noticed, rounds);
	assert_true(noticed > 0);
	free(bytes);
}

static void a_file_that_was_cut_is_noticed(void **state)
{
	struct world *w = *state;
	struct stat st;
	char original[WORLD_PATH];
	world_file(w, "original", original);
	make_full(w);
	world_copy(w->path, original);
	assert_int_equal(stat(original, &st), 0);
	/* A piece of the last page may be that of a payload, which can be anything. */
	for (off_t size = 1; size < st.st_size - PAGE; size += st.st_size / 20) {
		world_copy(original, w->path);
		assert_int_equal(truncate(w->path, size), 0);
		if (!is_noticed(w))
			fail_msg("only %d bytes are left, and nobody says so", (int)size);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(a_schedule_that_cannot_be_keeps_nobody),
		WORLD_TEST(a_head_that_is_none_is_not_looked_at_for_ever),
		WORLD_TEST(a_page_of_garbage_is_noticed),
		WORLD_TEST(where_there_are_no_more_fences_nothing_is_half_done),
		WORLD_TEST(a_queue_that_cannot_be_is_told),
		WORLD_TEST(numbers_that_cannot_be_crash_nobody),
		WORLD_TEST(flipped_bytes_crash_nobody),
		WORLD_TEST(a_file_that_was_cut_is_noticed),
	};
	return cmocka_run_group_tests_name("damage", tests, NULL, NULL);
}
