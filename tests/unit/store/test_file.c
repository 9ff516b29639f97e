/* Files that are no stores, that are damaged, or that change their place: each is told in a
 * sentence, nothing is done to what is not ours, and nobody crashes over damage. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <baton/schedule.h>
#include <baton/shard.h>
#include <sqlite3.h>

#include "support/child.h"
#include "support/rng.h"
#include "support/skips.h"
#include "support/soak.h"
#include "world.h"

#define NOBODY 65534
#define PAGE 4096

static void run_sql(const char *path, const char *sql)
{
	sqlite3 *db = NULL;
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	sqlite3_close(db);
}

static char *read_all(const char *path, size_t *ret_size)
{
	struct stat st = {.st_size = 0};
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	char *bytes = malloc((size_t)st.st_size + 1);
	assert_non_null(bytes);
	assert_int_equal(read(fd, bytes, (size_t)st.st_size), st.st_size);
	close(fd);
	*ret_size = (size_t)st.st_size;
	return bytes;
}

static void write_at(const char *path, size_t offset, const void *bytes, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, len, (off_t)offset), len);
	close(fd);
}

/* The file cannot be opened, with these words, and stays as it is. */
static void refused(struct world *w, enum baton_err expected, const char *words)
{
	struct baton_store *store = NULL;
	size_t before_size, after_size;
	char *before = read_all(w->path, &before_size);
	assert_int_equal(world_try_open(w, w->path, &store), expected);
	assert_null(store);
	assert_detail(words);
	assert_detail(w->path);
	char *after = read_all(w->path, &after_size);
	assert_int_equal(after_size, before_size);
	assert_memory_equal(after, before, before_size);
	free(before);
	free(after);
}

static void a_text_is_no_store(void **state)
{
	struct world *w = *state;
	static const char text[] = "This is a letter to somebody, and not a database at all.\n";
	for (size_t i = 0; i < 100; i++)
		write_at(w->path, i * strlen(text), text, strlen(text));
	refused(w, BATON_INVALID, "is no store: it is not an SQLite file");
	assert_int_equal(truncate(w->path, 7), 0);
	refused(w, BATON_INVALID, "is no store: it is not an SQLite file");
}

static void a_database_of_another_program_is_no_store(void **state)
{
	struct world *w = *state;
	run_sql(w->path, "CREATE TABLE cake(name TEXT); INSERT INTO cake VALUES('apple')");
	refused(w, BATON_INVALID, "is no store: it is an SQLite file of another program");
	world_remove(w->path);
	run_sql(w->path, "PRAGMA application_id=7; CREATE TABLE state(one)");
	refused(w, BATON_INVALID, "is no store: it is an SQLite file of another program");
}

static void a_store_of_a_newer_version_is_refused(void **state)
{
	struct world *w = *state;
	world_open(w);
	world_close(w);
	run_sql(w->path, "PRAGMA user_version=1000; PRAGMA journal_mode=DELETE");
	refused(w, BATON_INVALID, "has version 1000 of its tables");
	assert_detail("a newer baton has to open it");
}

static void a_program_whose_store_was_upgraded_under_it_stops(void **state)
{
	struct world *w = *state;
	world_open(w);
	assert_ok(put_some(w->store, "q", "", 1));
	run_sql(w->path, "PRAGMA user_version=1000");
	for (int i = 0; i < 2; i++) {
		assert_int_equal(put_some(w->store, "q", "", 1), BATON_INVALID);
		assert_detail("has version 1000 of its tables");
	}
	world_close(w);
}

static void a_folder_is_no_store(void **state)
{
	struct world *w = *state;
	struct baton_store *store = NULL;
	assert_int_equal(world_try_open(w, w->folder, &store), BATON_INVALID);
	assert_detail("is no store: it is not a file");
}

static void a_name_that_means_something_to_sqlite_is_one_of_a_file(void **state)
{
	static const char *const names[] = {":memory:", "file:name?mode=memory", "file:other"};
	struct world *w = *state;
	int back = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(back >= 0);
	assert_int_equal(chdir(w->folder), 0);
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		for (uint64_t seen = 0; seen <= 1; seen++) {
			assert_ok(world_try_open(w, names[i], &w->store));
			assert_int_equal(counts(w->store, "q").ready, seen);
			assert_ok(put_some(w->store, "q", "", 1));
			world_close(w);
		}
		assert_int_equal(access(names[i], F_OK), 0);
	}
	assert_int_equal(fchdir(back), 0);
	close(back);
}

/* All who use a file are on one host, so what was before its last start is over. */
static void who_held_it_before_the_host_was_restarted_is_in_nobodys_way(void **state)
{
	struct world *w = *state;
	struct baton_lease_answer answer;
	struct baton_lease l = {.fence = {0}};
	world_open(w);
	struct baton_owner before = *baton_store_owner(w->store);
	before.boot.bytes[0] ^= 1;
	before.incarnation.bytes[0] ^= 1;
	const struct baton_lease_ask ask = {.subject = BATON_STR("s"), .owner = &before};
	assert_ok(baton_lease_claim(w->store, &ask, 1, &answer));
	assert_ok(answer.err);
	assert_ok(lease(w->store, "s", &l));
	assert_true(l.fence.v > answer.lease.fence.v);
	/* Not if it is this start, and the process lives. */
	before.boot.bytes[0] ^= 1;
	assert_ok(baton_lease_claim(w->store,
	                            &(const struct baton_lease_ask){.subject = BATON_STR("t"),
	                                                            .owner = &before},
	                            1, &answer));
	assert_int_equal(lease(w->store, "t", &l), BATON_YIELD);
}

static bool is_there(const struct world *w, const char *name)
{
	char path[WORLD_PATH];
	world_file(w, name, path);
	return access(path, F_OK) == 0;
}

/* Who writes waits for its turn among all, by whatever name they know the file. */
static void a_link_to_a_store_is_the_store(void **state)
{
	struct world *w = *state;
	struct baton_store *other = NULL;
	char link[WORLD_PATH];
	world_file(w, "link", link);
	assert_int_equal(symlink(w->path, link), 0);
	assert_ok(world_try_open(w, link, &w->store));
	assert_ok(put_some(w->store, "q", "", 1));
	assert_ok(world_try_open(w, w->path, &other));
	assert_ok(put_some(other, "q", "", 1));
	assert_int_equal(counts(w->store, "q").ready, 2);
	baton_store_close(other);
	assert_true(is_there(w, "store-turn"));
	assert_false(is_there(w, "link-turn"));
	world_close(w);
	unlink(link);
}

static void a_folder_that_is_not_there_is_named(void **state)
{
	struct world *w = *state;
	struct baton_store *store = NULL;
	char path[WORLD_PATH];
	world_file(w, "nowhere/store", path);
	assert_int_equal(world_try_open(w, path, &store), BATON_STORAGE);
	assert_detail("cannot open store");
	assert_detail("No such file or directory");
}

static void is_told(enum baton_err e)
{
	assert_int_equal(e, BATON_STORAGE);
	assert_detail("was removed or replaced while it was open: it has to be opened anew");
}

/* Nothing of the old file is shown. */
static void readers_are_told(struct world *w)
{
	const struct baton_str q = BATON_STR("q"), none = BATON_STR("");
	const struct baton_work_filter all = {.max = 1};
	const struct baton_batch_id id = {"1"};
	const struct baton_store_wait wait = {.queue = q};
	static struct baton_queue_info infos[2];
	struct baton_lease_entry entry;
	struct baton_lease_holder holder;
	struct baton_schedules *schedules = NULL;
	struct baton_runner_info runner;
	struct baton_shard_answer shard;
	struct baton_work_page *page = NULL;
	struct baton_store_time due;
	char path[WORLD_PATH];
	uint64_t seen = 0;
	size_t count;
	world_file(w, "copy", path);
	is_told(baton_queue_get(w->store, q, infos));
	is_told(baton_queue_list(w->store, none, infos, 2, &count));
	is_told(baton_work_get(w->store, &id, &page));
	is_told(baton_work_list(w->store, &all, &page));
	is_told(baton_work_next_due(w->store, q, &due));
	is_told(baton_lease_inspect(w->store, q, &holder));
	is_told(baton_lease_list(w->store, none, none, &entry, 1, &count));
	is_told(baton_schedule_list(w->store, none, 1, &schedules));
	is_told(baton_runner_list(w->store, 0, &runner, 1, &count));
	is_told(baton_shard_list(w->store, q, 0, &shard, 1));
	is_told(baton_store_wait(w->store, &wait, &seen));
	is_told(baton_store_check(w->store, NULL, NULL, &seen));
	is_told(baton_store_backup(w->store, path, NULL));
	assert_int_not_equal(access(path, F_OK), 0);
}

/* All of these see that the file is not where it was. */
static void all_are_told(struct world *w, const struct baton_work_claim *c)
{
	struct baton_work_claims *claims = NULL;
	struct baton_lease l;
	is_told(put_some(w->store, "q", "", 1));
	is_told(claim_some(w->store, "q", 1, &claims));
	is_told(complete(w->store, c, NULL));
	is_told(lease(w->store, "subject", &l));
	readers_are_told(w);
}

static void a_file_that_was_deleted_is_noticed(void **state)
{
	struct world *w = *state;
	struct baton_work_claims *claims = NULL;
	world_open(w);
	assert_ok(put_some(w->store, "q", "", 2));
	assert_ok(claim_some(w->store, "q", 1, &claims));
	assert_int_equal(unlink(w->path), 0);
	all_are_told(w, &claims->claims[0]);
	baton_work_claims_free(claims);
}

static void a_file_that_was_replaced_is_noticed_and_goes_on_when_it_is_back(void **state)
{
	struct world *w = *state;
	struct baton_work_claims *claims = NULL;
	char away[WORLD_PATH];
	world_file(w, "away", away);
	world_open(w);
	assert_ok(put_some(w->store, "q", "", 2));
	assert_ok(claim_some(w->store, "q", 1, &claims));
	assert_int_equal(rename(w->path, away), 0);
	write_at(w->path, 0, "another", 7);
	all_are_told(w, &claims->claims[0]);
	assert_int_equal(rename(away, w->path), 0);
	assert_ok(complete(w->store, &claims->claims[0], NULL));
	assert_int_equal(counts(w->store, "q").ready, 1);
	assert_sound(w->store);
	baton_work_claims_free(claims);
}

static void a_schedule_that_cannot_be_keeps_nobody(void **state)
{
	static const char *const damages[] = {
		"UPDATE schedule SET name = zeroblob(4) WHERE name = 's'",
		"UPDATE schedule SET name = printf('%.300c', 'x') WHERE name = 's'",
	};
	struct world *w = *state;
	const struct baton_schedule schedule = {
		.name = BATON_STR("s"),
		.cron = BATON_STR("@hourly"),
		.queue = BATON_STR("q"),
	};
	for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
		size_t count = 1;
		world_open(w);
		assert_ok(baton_schedule_set(w->store, &schedule));
		world_close(w);
		run_sql(w->path, damages[i]);
		world_open(w);
		assert_ok(baton_schedule_tick(w->store, &count, NULL));
		assert_int_equal(count, 0);
		world_close(w);
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
	run_sql(w->path, "UPDATE lane SET head = 0 WHERE name = 'b'");
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
	run_sql(w->path, NO_MORE ";UPDATE lease SET fence = 9007199254740991, held = 0");
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
	run_sql(w->path, AS_BEFORE);
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
		write_at(w->path, offset, garbage, sizeof garbage);
		if (!is_noticed(w))
			fail_msg("page %zu is garbage, and nobody says so", offset / PAGE + 1);
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
		run_sql(w->path, damages[i]);
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
	char *bytes = read_all(original, &size);
	unsigned rounds = soak_scale(100, 20000), noticed = 0;
	for (unsigned i = 0; i < rounds; i++) {
		world_copy(original, w->path);
		for (int flip = 0; flip < 20; flip++) {
			size_t at = 100 + rng_below(&rng, size - 100);
			char byte = (char)rng_below(&rng, 256);
			write_at(w->path, at, &byte, 1);
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

/* As somebody who may only look. 0: told so, with these words. */
static int open_as_nobody(int channel, void *arg)
{
	struct world *w = arg;
	struct baton_store *store = NULL;
	(void)channel;
	if (getuid() == 0 && (setgid(NOBODY) != 0 || setuid(NOBODY) != 0))
		return CHILD_SKIP;
	enum baton_err e = world_try_open(w, w->path, &store);
	if (e == BATON_OK)
		e = put_some(store, "q", "", 1);
	if (e != BATON_STORAGE || !strstr(baton_err_detail(), w->path))
		return 1;
	if (strstr(baton_err_detail(), "its file and its folder have to be writable"))
		return 10;
	return strstr(baton_err_detail(), "Permission denied") ? 11 : 2;
}

static int told_to_nobody(struct world *w, mode_t folder, mode_t file)
{
	struct child c;
	assert_int_equal(chmod(w->path, file), 0);
	assert_int_equal(chmod(w->folder, folder), 0);
	child_start(&c, open_as_nobody, w);
	int code = child_reap(&c);
	assert_int_equal(chmod(w->folder, 0700), 0);
	assert_int_equal(chmod(w->path, 0600), 0);
	if (code == CHILD_SKIP)
		skip();
	return code;
}

static void what_may_not_be_written_or_read_is_told(void **state)
{
	struct world *w = *state;
	make_full(w);
	assert_int_equal(told_to_nobody(w, 0755, 0000), 11); /* neither read nor written */
	assert_int_equal(told_to_nobody(w, 0755, 0444), 10); /* only read                */
	assert_int_equal(told_to_nobody(w, 0000, 0644), 11); /* not even found           */
	world_open(w);
	assert_ok(put_some(w->store, "q", "", 1));
	assert_sound(w->store);
}

/* Whether SQLite was left alone shows in what it keeps in memory. */
static int close_parents_store(int channel, void *arg)
{
	sqlite3_int64 before = sqlite3_memory_used();
	(void)channel;
	baton_store_close(arg);
	return sqlite3_memory_used() == before ? 0 : 1;
}

static void a_forked_child_closes_nothing_of_its_parents(void **state)
{
	struct world *w = *state;
	struct child c;
	world_open(w);
	assert_ok(put_some(w->store, "q", "", 1));
	child_start(&c, close_parents_store, w->store);
	assert_int_equal(child_reap(&c), 0);
	assert_ok(put_some(w->store, "q", "", 1));
	assert_sound(w->store);
}

int main(void)
{
	skips_repair();
	const struct CMUnitTest tests[] = {
		WORLD_TEST(a_text_is_no_store),
		WORLD_TEST(a_database_of_another_program_is_no_store),
		WORLD_TEST(a_store_of_a_newer_version_is_refused),
		WORLD_TEST(a_program_whose_store_was_upgraded_under_it_stops),
		WORLD_TEST(a_folder_is_no_store),
		WORLD_TEST(a_link_to_a_store_is_the_store),
		WORLD_TEST(who_held_it_before_the_host_was_restarted_is_in_nobodys_way),
		WORLD_TEST(a_folder_that_is_not_there_is_named),
		WORLD_TEST(a_name_that_means_something_to_sqlite_is_one_of_a_file),
		WORLD_TEST(a_file_that_was_deleted_is_noticed),
		WORLD_TEST(a_file_that_was_replaced_is_noticed_and_goes_on_when_it_is_back),
		WORLD_TEST(a_schedule_that_cannot_be_keeps_nobody),
		WORLD_TEST(a_head_that_is_none_is_not_looked_at_for_ever),
		WORLD_TEST(a_page_of_garbage_is_noticed),
		WORLD_TEST(where_there_are_no_more_fences_nothing_is_half_done),
		WORLD_TEST(numbers_that_cannot_be_crash_nobody),
		WORLD_TEST(flipped_bytes_crash_nobody),
		WORLD_TEST(a_file_that_was_cut_is_noticed),
		WORLD_TEST(what_may_not_be_written_or_read_is_told),
		WORLD_TEST(a_forked_child_closes_nothing_of_its_parents),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
