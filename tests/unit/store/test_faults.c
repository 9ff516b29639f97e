/* What the system refuses: room, writes, syncs, the lock. Nothing is half done, nothing that was
 * acknowledged is lost, and once the fault is gone the same handle works again. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <baton/shard.h>
#include <sqlite3.h>

#include "store/sqlite/sqlite.h"
#include "support/child.h"
#include "support/skips.h"
#include "support/strike.h"
#include "world.h"

#define FILLER (256 * 1024)
#define PUTS_MAX 10000

/* For use in a child, where cmocka's assertions do not reach. */
static void need(bool condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "# %s; %s\n", what, baton_err_detail());
	_exit(1);
}

static bool says(const char *words)
{
	return strstr(baton_err_detail(), words) != NULL;
}

static bool is_sound(struct baton_store *store)
{
	uint64_t faults;
	return baton_store_check(store, NULL, NULL, &faults) == BATON_OK && faults == 0;
}

static bool mount_small(const struct world *w)
{
	return child_unshare(CLONE_NEWNS) &&
	       mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("none", w->folder, "tmpfs", 0, "size=1m,mode=0700") == 0;
}

static void fill(const char *path, size_t size)
{
	static const char zeros[4096];
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	for (size_t i = 0; i < size / sizeof zeros; i++)
		need(write(fd, zeros, sizeof zeros) == (ssize_t)sizeof zeros, "fill");
	close(fd);
}

/* Until there is no room: the number of puts that were acknowledged. */
static uint64_t put_until_full(struct baton_store *store)
{
	uint64_t puts = 0;
	enum baton_err e;
	while ((e = put_some(store, "q", "lane", 20)) == BATON_OK && puts < PUTS_MAX)
		puts++;
	need(e == BATON_STORAGE, "a full disk is BATON_STORAGE");
	need(says("there is no room left on its disk; nothing was changed"), "full");
	return puts;
}

/* A lease needs less room than a put, so there may be some still. */
static void lease_until_full(struct baton_store *store)
{
	struct baton_lease l;
	enum baton_err e;
	unsigned i = 0;
	do {
		char subject[16];
		snprintf(subject, sizeof subject, "lease %u", i++);
		e = lease(store, subject, &l);
	} while (e == BATON_OK && i < PUTS_MAX);
	need(e == BATON_STORAGE, "a full disk is BATON_STORAGE");
	need(says("there is no room left on its disk; nothing was changed"), "full");
}

/* A runner that has nothing to write notices it all the same. */
static void prove_until_full(struct baton_runner *runner)
{
	enum baton_err e;
	unsigned i = 0;
	while ((e = baton_runner_prove(runner)) == BATON_OK && i < PUTS_MAX)
		i++;
	need(e == BATON_STORAGE, "a full disk is BATON_STORAGE");
	need(says("there is no room left on its disk; nothing was changed"), "full");
	need(baton_runner_beat(runner) == BATON_OK, "beats need no disk");
}

static int use_a_disk_that_cannot_be_written(int channel, void *arg)
{
	struct world *w = arg;
	struct baton_store *store = NULL;
	(void)channel;
	if (!mount_small(w))
		return CHILD_SKIP;
	need(world_try_open(w, w->path, &store) == BATON_OK, "open");
	baton_store_close(store);
	if (mount("none", w->folder, NULL, MS_REMOUNT | MS_RDONLY, NULL) != 0)
		return CHILD_SKIP;
	need(world_try_open(w, w->path, &store) == BATON_STORAGE, "open what cannot be written");
	need(says("its file and its folder have to be writable (Read-only file system)"), "told");
	return 0;
}

static int use_a_full_disk(int channel, void *arg)
{
	struct world *w = arg;
	struct baton_store *store = NULL;
	struct baton_work_claims *before = NULL, *claims = NULL;
	struct baton_runner *runner = NULL;
	const struct baton_runner_ask ask = {.name = BATON_STR("r"), .ttl = baton_duration_s(10)};
	char filler[WORLD_PATH];
	(void)channel;
	if (!mount_small(w))
		return CHILD_SKIP;
	world_file(w, "filler", filler);
	fill(filler, FILLER);
	need(world_try_open(w, w->path, &store) == BATON_OK, "open");
	need(put_some(store, "q", "lane", 1) == BATON_OK, "put");
	need(claim_some(store, "q", 1, &before) == BATON_OK && before, "claim");
	need(put_some(store, "q", "", 1) == BATON_OK, "put");
	need(baton_runner_register(store, &ask, &runner, NULL) == BATON_OK, "register");
	uint64_t puts = put_until_full(store);
	lease_until_full(store);
	prove_until_full(runner);
	for (int i = 0; i < 3; i++) {
		need(complete(store, &before->claims[0], "next") == BATON_STORAGE, "complete");
		need(says("there is no room left on its disk"), "complete");
		need(claim_some(store, "q", 1, &claims) == BATON_STORAGE, "claim");
	}
	need(is_sound(store), "a full store is sound");
	unlink(filler);
	need(baton_runner_prove(runner) == BATON_OK, "prove after all");
	baton_runner_leave(runner);
	need(complete(store, &before->claims[0], "next") == BATON_OK, "complete after all");
	need(put_some(store, "q", "lane", 20) == BATON_OK, "put after all");
	struct baton_queue_info info;
	need(baton_queue_get(store, BATON_STR("q"), &info) == BATON_OK, "look");
	need(info.counts.ready == (puts + 1) * 20 + 1 && info.counts.done == 1,
	     "all that was told");
	need(is_sound(store), "it is sound after all");
	baton_work_claims_free(before);
	baton_store_close(store);
	return 0;
}

static void run_in_child(struct world *w, int (*body)(int channel, void *arg))
{
	struct child c;
	child_start(&c, body, w);
	int code = child_reap(&c);
	if (code == CHILD_SKIP)
		skip();
	assert_int_equal(code, 0);
}

static void a_disk_that_cannot_be_written_is_told(void **state)
{
	run_in_child(*state, use_a_disk_that_cannot_be_written);
}

static void a_full_disk_is_told_and_is_no_harm(void **state)
{
	run_in_child(*state, use_a_full_disk);
}

static int open_on_a_full_disk(int channel, void *arg)
{
	struct world *w = arg;
	struct baton_store *store = NULL;
	char filler[WORLD_PATH];
	(void)channel;
	if (!mount_small(w))
		return CHILD_SKIP;
	world_file(w, "filler", filler);
	/* Room for a part of the tables, and then for a little more. */
	for (size_t left = 0; left < 600; left += 40) {
		fill(filler, (1000 - left) * 1024);
		enum baton_err e = world_try_open(w, w->path, &store);
		if (e == BATON_OK)
			break;
		need(e == BATON_STORAGE, "a full disk is BATON_STORAGE");
		need(says(w->path), "it is named");
		need(says("no room left") || says("No space left"), "it is full");
		unlink(filler);
	}
	need(store, "it was made at last");
	unlink(filler);
	need(put_some(store, "q", "", 1) == BATON_OK && is_sound(store), "it can be used");
	baton_store_close(store);
	return 0;
}

static void a_store_cannot_be_made_on_a_full_disk(void **state)
{
	run_in_child(*state, open_on_a_full_disk);
}

static int use_without(struct world *w, int number)
{
	struct baton_store *store = NULL;
	struct baton_work_claims *claims = NULL;
	struct baton_lease l;
	need(world_try_open(w, w->path, &store) == BATON_OK, "open");
	need(put_some(store, "q", "", 1) == BATON_OK, "put");
	if (!strike_deny(number, EIO))
		return CHILD_SKIP;
	need(put_some(store, "q", "", 2) == BATON_STORAGE, "put");
	need(says("cannot use store ") && says(w->path), "put");
	need(claim_some(store, "q", 1, &claims) == BATON_STORAGE, "claim");
	need(lease(store, "subject", &l) == BATON_STORAGE, "lease");
	return 0;
}

static int use_without_writes(int channel, void *arg)
{
	(void)channel;
	return use_without(arg, SYS_pwrite64);
}

static int use_without_syncs(int channel, void *arg)
{
	(void)channel;
	return use_without(arg, SYS_fdatasync);
}

static void writes_that_fail_change_nothing(void **state)
{
	struct world *w = *state;
	run_in_child(w, use_without_writes);
	world_open(w);
	assert_sound(w->store);
	assert_int_equal(counts(w->store, "q").ready, 1);
	assert_int_equal(counts(w->store, "q").running, 0);
}

/* What was written but could not be synced may be there or not. */
static void syncs_that_fail_lose_nothing(void **state)
{
	struct world *w = *state;
	run_in_child(w, use_without_syncs);
	world_open(w);
	assert_sound(w->store);
	struct baton_queue_counts q = counts(w->store, "q");
	assert_true(q.ready + q.running == 1 || q.ready + q.running == 3);
}

/* Has the write lock until the test hangs up. */
static int keep_lock(int channel, void *arg)
{
	const struct world *w = arg;
	sqlite3 *db = NULL;
	char message[8];
	if (sqlite3_open(w->path, &db) != SQLITE_OK ||
	    sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
		return 1;
	channel_send(channel, "locked");
	while (channel_receive(channel, message, sizeof message))
		;
	sqlite3_close(db);
	return 0;
}

static void a_lock_that_is_kept_for_too_long_is_told(void **state)
{
	static const char words[] = "locked for more than 30 ms";
	struct world *w = *state;
	struct baton_work_claims *claims = NULL;
	struct baton_lease l;
	struct child locker;
	char message[8];
	w->patience = baton_duration_ms(30);
	world_open(w);
	assert_ok(put_some(w->store, "q", "", 2));
	child_start(&locker, keep_lock, w);
	assert_true(channel_receive(locker.channel, message, sizeof message));
	assert_int_equal(put_some(w->store, "q", "", 1), BATON_BUSY);
	assert_detail(words);
	assert_detail(w->path);
	assert_int_equal(claim_some(w->store, "q", 1, &claims), BATON_BUSY);
	assert_detail(words);
	assert_int_equal(lease(w->store, "subject", &l), BATON_BUSY);
	assert_detail(words);
	assert_int_equal(counts(w->store, "q").ready, 2); /* looking needs no lock */
	child_hang_up(&locker);
	assert_int_equal(child_reap(&locker), 0);
	assert_ok(claim_some(w->store, "q", 1, &claims));
	assert_ok(complete(w->store, &claims->claims[0], NULL));
	assert_int_equal(counts(w->store, "q").ready, 1);
	assert_sound(w->store);
	baton_work_claims_free(claims);
}

/* The one who has it is found beside the file, not beside the link. */
static void a_lock_is_told_alike_by_any_name_of_the_store(void **state)
{
	struct world *w = *state;
	struct baton_store *linked = NULL;
	struct child locker;
	char message[8], link[WORLD_PATH], expected[512];
	w->patience = baton_duration_ms(30);
	world_open(w);
	world_file(w, "link", link);
	assert_int_equal(symlink(w->path, link), 0);
	assert_ok(world_try_open(w, link, &linked));
	child_start(&locker, keep_lock, w);
	assert_true(channel_receive(locker.channel, message, sizeof message));
	assert_int_equal(put_some(w->store, "q", "", 1), BATON_BUSY);
	const char *path = strstr(baton_err_detail(), w->path);
	assert_non_null(path);
	snprintf(expected, sizeof expected, "%.*s%s%s", (int)(path - baton_err_detail()),
	         baton_err_detail(), link, path + strlen(w->path));
	assert_int_equal(put_some(linked, "q", "", 1), BATON_BUSY);
	assert_string_equal(baton_err_detail(), expected);
	child_hang_up(&locker);
	assert_int_equal(child_reap(&locker), 0);
	baton_store_close(linked);
	unlink(link);
}

static void a_locked_store_can_be_opened(void **state)
{
	struct world *w = *state;
	struct child locker;
	char message[8];
	w->patience = baton_duration_ms(30);
	world_open(w);
	assert_ok(put_some(w->store, "q", "", 2));
	world_close(w);
	child_start(&locker, keep_lock, w);
	assert_true(channel_receive(locker.channel, message, sizeof message));
	world_open(w);
	assert_int_equal(counts(w->store, "q").ready, 2);
	child_hang_up(&locker);
	assert_int_equal(child_reap(&locker), 0);
}

/* Whoever looks at it again finds that a second has passed. */
static struct baton_mono hurry(const struct baton_clock *self)
{
	struct fake_clock *c = (struct fake_clock *)self;
	fake_clock_advance(c, baton_duration_s(1));
	return c->now;
}

static void the_clock_says_when_a_lock_was_waited_for_long_enough(void **state)
{
	struct world *w = *state;
	struct child locker;
	char message[8];
	w->patience = baton_duration_s(10);
	world_open(w);
	child_start(&locker, keep_lock, w);
	assert_true(channel_receive(locker.channel, message, sizeof message));
	w->clock.clock.now = hurry;
	struct baton_mono begin = w->clock.now;
	for (int i = 1; i <= 2; i++) { /* each has all of it */
		assert_int_equal(put_some(w->store, "q", "", 1), BATON_BUSY);
		assert_detail("locked for more than 10000 ms");
		assert_int_equal(baton_mono_sub(w->clock.now, begin).ns,
		                 baton_duration_s(11 * i).ns);
	}
	child_hang_up(&locker);
	assert_int_equal(child_reap(&locker), 0);
	assert_ok(put_some(w->store, "q", "", 1));
}

#define CALLERS 4

/* How often a transaction was begun; the first one waits until the others have gathered. */
struct gathering {
	struct sqlite_store *store;
	unsigned begins;
};

static size_t gathered(struct group *g)
{
	size_t count = 0;
	pthread_mutex_lock(&g->mu);
	for (const struct request *r = g->head; r; r = r->next)
		count++;
	pthread_mutex_unlock(&g->mu);
	return count;
}

static int on_statement(unsigned kind, void *arg, void *statement, void *text)
{
	struct gathering *g = arg;
	(void)kind, (void)text;
	if (strcmp(sqlite3_sql(statement), "BEGIN IMMEDIATE") != 0)
		return 0;
	g->begins++;
	while (g->begins == 1 && gathered(&g->store->group) < CALLERS - 1)
		sched_yield();
	return 0;
}

static void *put_while_locked(void *arg)
{
	struct world *w = arg;
	bool told =
		put_some(w->store, "q", "", 1) == BATON_BUSY && says("locked for more than 1 ms");
	return told ? arg : NULL;
}

static void those_who_gather_wait_for_the_lock_together(void **state)
{
	struct world *w = *state;
	struct gathering g = {.begins = 0};
	struct child locker;
	pthread_t threads[CALLERS];
	char message[8];
	w->patience = baton_duration_ms(1);
	world_open(w);
	child_start(&locker, keep_lock, w);
	assert_true(channel_receive(locker.channel, message, sizeof message));
	g.store = (struct sqlite_store *)w->store;
	sqlite3_trace_v2(g.store->db.handle, SQLITE_TRACE_STMT, on_statement, &g);
	for (size_t i = 0; i < CALLERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, put_while_locked, w), 0);
	for (size_t i = 0; i < CALLERS; i++) {
		void *told;
		assert_int_equal(pthread_join(threads[i], &told), 0);
		assert_non_null(told);
	}
	assert_int_equal(g.begins, 2);
	child_hang_up(&locker);
	assert_int_equal(child_reap(&locker), 0);
	sqlite3_trace_v2(g.store->db.handle, 0, NULL, NULL);
	assert_ok(put_some(w->store, "q", "", 1));
	assert_int_equal(counts(w->store, "q").ready, 1);
}

int main(void)
{
	skips_repair();
	const struct CMUnitTest tests[] = {
		WORLD_TEST(a_full_disk_is_told_and_is_no_harm),
		WORLD_TEST(a_store_cannot_be_made_on_a_full_disk),
		WORLD_TEST(a_disk_that_cannot_be_written_is_told),
		WORLD_TEST(writes_that_fail_change_nothing),
		WORLD_TEST(syncs_that_fail_lose_nothing),
		WORLD_TEST(a_lock_that_is_kept_for_too_long_is_told),
		WORLD_TEST(those_who_gather_wait_for_the_lock_together),
		WORLD_TEST(a_lock_is_told_alike_by_any_name_of_the_store),
		WORLD_TEST(a_locked_store_can_be_opened),
		WORLD_TEST(the_clock_says_when_a_lock_was_waited_for_long_enough),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
