/* Files that are no stores, or that change their place: each is told in a sentence, and nothing is
 * done to what is not ours. */
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
#include "support/skips.h"
#include "world.h"

#define NOBODY 65534

/* The file cannot be opened, with these words, and stays as it is. */
static void refused(struct world *w, enum baton_err expected, const char *words)
{
	struct baton_store *store = NULL;
	size_t before_size, after_size;
	char *before = world_read(w->path, &before_size);
	assert_int_equal(world_try_open(w, w->path, &store), expected);
	assert_null(store);
	assert_detail(words);
	assert_detail(w->path);
	char *after = world_read(w->path, &after_size);
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
		world_write(w->path, i * strlen(text), text, strlen(text));
	refused(w, BATON_INVALID, "is no store: it is not an SQLite file");
	assert_int_equal(truncate(w->path, 7), 0);
	refused(w, BATON_INVALID, "is no store: it is not an SQLite file");
}

static void a_database_of_another_program_is_no_store(void **state)
{
	struct world *w = *state;
	world_sql(w->path, "CREATE TABLE cake(name TEXT); INSERT INTO cake VALUES('apple')");
	refused(w, BATON_INVALID, "is no store: it is an SQLite file of another program");
	world_remove(w->path);
	world_sql(w->path, "PRAGMA application_id=7; CREATE TABLE state(one)");
	refused(w, BATON_INVALID, "is no store: it is an SQLite file of another program");
}

static void a_store_of_a_newer_version_is_refused(void **state)
{
	struct world *w = *state;
	world_open(w);
	world_close(w);
	world_sql(w->path, "PRAGMA user_version=1000; PRAGMA journal_mode=DELETE");
	refused(w, BATON_INVALID, "has version 1000 of its tables");
	assert_detail("a newer baton has to open it");
}

static void a_program_whose_store_was_upgraded_under_it_stops(void **state)
{
	struct world *w = *state;
	world_open(w);
	assert_ok(put_some(w->store, "q", "", 1));
	world_sql(w->path, "PRAGMA user_version=1000");
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
	world_write(w->path, 0, "another", 7);
	all_are_told(w, &claims->claims[0]);
	assert_int_equal(rename(away, w->path), 0);
	assert_ok(complete(w->store, &claims->claims[0], NULL));
	assert_int_equal(counts(w->store, "q").ready, 1);
	assert_sound(w->store);
	baton_work_claims_free(claims);
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
	world_open(w);
	assert_ok(put_some(w->store, "q", "", 1));
	world_close(w);
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
		WORLD_TEST(what_may_not_be_written_or_read_is_told),
		WORLD_TEST(a_forked_child_closes_nothing_of_its_parents),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
