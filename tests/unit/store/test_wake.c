/* How those who wait for work in PostgreSQL are woken by those who commit elsewhere. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <baton/queue.h>
#include <baton/store.h>
#include <baton/work.h>

#include "served.h"
#include "store/postgres/postgres.h"
#include "support/child.h"
#include "support/fake_clock.h"

/* Somebody who waits, for whom time passes only when the test says so. */
struct sleeper {
	struct fake_clock clock;
	struct baton_store *store;
	struct baton_store_wait wait;
	uint64_t seen;
	uint64_t known; /* of what is ready */
	enum baton_err err;
	pthread_t thread;
};

static uint64_t ready(const struct sleeper *z)
{
	struct baton_queue_info info = {.counts = {.ready = 0}};
	baton_queue_get(z->store, BATON_STR("q"), &info);
	return info.counts.ready;
}

/* Until there is more: who was rung twice sleeps on. */
static void *sleep_once(void *arg)
{
	struct sleeper *z = arg;
	do
		z->err = baton_store_wait(z->store, &z->wait, &z->seen);
	while (z->err == BATON_OK && ready(z) == z->known);
	return NULL;
}

/* Whether he counts on being woken. */
static bool is_rung(const struct sleeper *z)
{
	struct listener *l = &((struct pg_store *)z->store)->listener;
	return atomic_load(&l->listens) && atomic_load(&l->marked);
}

static long long marks(const struct bench *b)
{
	return cluster_number(b->where, "SELECT count(*) FROM baton.sleeper");
}

static void pass(struct sleeper *z, int64_t ms)
{
	fake_clock_advance(&z->clock, baton_duration_ms(ms));
}

/* Returns once he sleeps, and has left word of it. */
static void fall_asleep(const struct bench *b, struct sleeper *z)
{
	z->known = ready(z);
	assert_int_equal(pthread_create(&z->thread, NULL, sleep_once, z), 0);
	fake_clock_wait_blocked(&z->clock, 1);
	while (marks(b) == 0 || !is_rung(z)) {
		pass(z, 1000);
		fake_clock_wait_blocked(&z->clock, 1);
	}
	fake_clock_wait_blocked(&z->clock, 1);
}

static void begin(const struct bench *b, struct sleeper *z)
{
	*z = (struct sleeper){.wait = {.until = BATON_MONO_NEVER}};
	fake_clock_init(&z->clock, (struct baton_mono){1});
	const struct baton_store_options options = {.where = baton_str_z(b->where),
	                                            .clock = &z->clock.clock};
	assert_int_equal(baton_store_open(&options, &z->store), BATON_OK);
	assert_int_equal(baton_store_wait(z->store, &z->wait, &z->seen), BATON_OK);
	fall_asleep(b, z);
}

static void assert_woken(struct sleeper *z)
{
	pthread_join(z->thread, NULL);
	assert_int_equal(z->err, BATON_OK);
}

static void end(struct sleeper *z)
{
	baton_store_close(z->store);
	fake_clock_done(&z->clock);
}

/* No time passes in these two: it is the ring that wakes. */
static void a_put_elsewhere_wakes_who_sleeps(void **state)
{
	struct bench *b = *state;
	struct sleeper z;
	begin(b, &z);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(put_into(b->store, "x", "y"), BATON_OK);
		assert_woken(&z);
		fall_asleep(b, &z);
	}
	assert_int_equal(put_into(b->store, "x", "y"), BATON_OK);
	assert_woken(&z);
	end(&z);
}

static void a_put_in_a_users_transaction_wakes_who_sleeps(void **state)
{
	struct bench *b = *state;
	struct sleeper z;
	begin(b, &z);
	cluster_run(b->where, "SELECT baton.put('q', 'x')");
	assert_woken(&z);
	end(&z);
}

/* What takes a wake-up away: the mark is gone, nobody listens, or both. */
static const char *const losses[] = {
	"DELETE FROM baton.sleeper",
	"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query = 'LISTEN baton' "
	"AND datname = current_database()",
	"DELETE FROM baton.sleeper; SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
	"WHERE query = 'LISTEN baton' AND datname = current_database()",
};

static void a_lost_wake_up_costs_time_only(void **state)
{
	struct bench *b = *state;
	for (size_t i = 0; i < sizeof losses / sizeof losses[0]; i++) {
		struct sleeper z;
		begin(b, &z);
		cluster_run(b->where, losses[i]);
		assert_int_equal(put_into(b->store, "x", "y"), BATON_OK);
		pass(&z, 1000);
		assert_woken(&z);
		end(&z);
	}
}

/* After it was cut off he listens again. */
static void a_lost_listener_comes_back(void **state)
{
	struct bench *b = *state;
	struct sleeper z;
	begin(b, &z);
	cluster_run(b->where, losses[2]);
	while (marks(b) == 0) {
		pass(&z, 1000);
		fake_clock_wait_blocked(&z.clock, 1);
	}
	assert_int_equal(put_into(b->store, "x", "y"), BATON_OK);
	assert_woken(&z);
	end(&z);
}

/* The first that it is told after this, which it says itself, is the end. */
static unsigned count_rings(const struct bench *b, PGconn *user)
{
	unsigned count = 0;
	assert_int_equal(put_into(b->store, "x", "what was sent before is done"), BATON_OK);
	assert_true(does(user, "NOTIFY baton, 'end'"));
	for (PGnotify *n = PQnotifies(user); n; n = PQnotifies(user)) {
		bool last = strcmp(n->extra, "end") == 0;
		PQfreemem(n);
		if (last)
			return count;
		count++;
	}
	fail_msg("the end was not heard");
	return count;
}

static void who_puts_rings_only_for_those_who_sleep_and_only_once(void **state)
{
	struct bench *b = *state;
	PGconn *user = user_of(b);
	assert_true(does(user, "LISTEN baton"));
	assert_int_equal(put_into(b->store, "x", "y"), BATON_OK);
	assert_true(does(user, "SELECT baton.put('q', 'x')"));
	assert_int_equal(count_rings(b, user), 0);
	assert_true(does(user, "INSERT INTO baton.sleeper VALUES (1), (2)"));
	assert_int_equal(put_into(b->store, "x", "y"), BATON_OK);
	assert_int_equal(put_into(b->store, "x", "y"), BATON_OK);
	assert_int_equal(count_rings(b, user), 1);
	PQfinish(user);
}

#define MUCH 600

/* Into a queue that is known already. */
static void *put_much(void *store)
{
	static const struct baton_str payload = BATON_STR("x");
	static struct baton_batch batches[MUCH];
	static struct baton_put puts[MUCH];
	for (int i = 0; i < MUCH; i++)
		batches[i] = (struct baton_batch){.queue = BATON_STR("q"),
		                                  .payloads = &payload,
		                                  .count = 1};
	assert_int_equal(baton_work_put(store, batches, MUCH, puts), BATON_OK);
	return NULL;
}

/* Its counts are written by then, and its rows are not. */
static void who_falls_asleep_while_much_is_put_is_rung(void **state)
{
	struct bench *b = *state;
	pthread_t thread;
	PGconn *user = user_of(b);
	for (int i = 0; i < 3; i++) /* makes the queue, its row of counts, and remembers both */
		put_much(b->store);
	assert_true(does(user, "BEGIN"));
	assert_true(does(user, "LOCK TABLE baton.bulk IN SHARE MODE"));
	assert_int_equal(pthread_create(&thread, NULL, put_much, b->store), 0);
	while (cluster_number(b->where, "SELECT count(*) FROM pg_locks WHERE NOT granted AND "
	                                "relation = 'baton.bulk'::regclass") == 0)
		;
	cluster_run(b->where, "INSERT INTO baton.sleeper VALUES (1)");
	assert_true(does(user, "COMMIT"));
	pthread_join(thread, NULL);
	baton_store_close(b->store); /* the server has heard all that was sent */
	assert_int_equal(marks(b), 0);
	b->store = open_as(b->where);
	PQfinish(user);
}

/* His transaction has taken the mark and stays open. */
static void a_user_who_does_not_commit_keeps_nobody_from_ringing(void **state)
{
	struct bench *b = *state;
	struct sleeper z;
	PGconn *user = user_of(b);
	begin(b, &z);
	assert_true(does(user, "BEGIN; SET CONSTRAINTS ALL IMMEDIATE; "
	                       "SELECT baton.put('other', 'x')"));
	assert_int_equal(put_into(b->store, "x", "y"), BATON_OK);
	assert_woken(&z);
	PQfinish(user);
	end(&z);
}

/* Connections to the database that listen. */
static long long listeners(const struct bench *b)
{
	return cluster_number(b->where,
	                      "SELECT count(*) FROM pg_stat_activity WHERE query = 'LISTEN baton' "
	                      "AND datname = current_database()");
}

/* Returns once there is one: while one takes the place of another there may be two. */
static void await_one(const struct bench *b)
{
	while (listeners(b) != 1)
		;
}

/* The server's process that has it. */
static long long listener(const struct bench *b)
{
	return cluster_number(b->where, "SELECT pid FROM pg_stat_activity WHERE state = 'idle' "
	                                "AND query = 'LISTEN baton' "
	                                "AND datname = current_database()");
}

/* Returns once another one than that listens. */
static void await_other(const struct bench *b, long long than)
{
	char text[200];
	snprintf(text, sizeof text,
	         "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle' "
	         "AND query = 'LISTEN baton' AND datname = current_database() AND pid <> %lld",
	         than);
	while (cluster_number(b->where, text) == 0)
		;
}

static void one_who_listens_wakes_all_who_sleep(void **state)
{
	enum {
		CROWD = 4
	};
	struct bench *b = *state;
	struct sleeper crowd[CROWD];
	for (int i = 0; i < CROWD; i++)
		begin(b, &crowd[i]);
	for (int round = 0; round < 2; round++) {
		await_one(b);
		assert_int_equal(put_into(b->store, "x", "y"), BATON_OK);
		for (int i = 0; i < CROWD; i++)
			assert_woken(&crowd[i]);
		for (int i = 0; i < CROWD && round == 0; i++)
			fall_asleep(b, &crowd[i]);
	}
	for (int i = 0; i < CROWD; i++)
		end(&crowd[i]);
}

/* A process that sleeps each time that it is told to, and says so; and that it was woken. No time
 * passes for it then. */
static int sleep_and_tell(int channel, void *arg)
{
	const struct bench *b = arg;
	struct sleeper z;
	char word[16];
	begin(b, &z);
	do {
		channel_send(channel, "asleep");
		assert_woken(&z);
		channel_send(channel, "woken");
		if (!channel_receive(channel, word, sizeof word))
			return 0;
		fall_asleep(b, &z);
	} while (true);
}

static void hear_from(const struct child *c, const char *expected)
{
	char word[16];
	assert_true(channel_receive(c->channel, word, sizeof word));
	assert_string_equal(word, expected);
}

/* The first one listens for the other two, at the latest when nobody counts any more on one that
 * the test before has killed. */
static void start_three(struct bench *b, struct child three[3])
{
	for (int i = 0; i < 3; i++) {
		child_start(&three[i], sleep_and_tell, b);
		hear_from(&three[i], "asleep");
		await_other(b, 0);
		await_one(b);
	}
}

static void put_and_wake(struct bench *b, struct child *woken, int count)
{
	assert_int_equal(put_into(b->store, "x", "y"), BATON_OK);
	for (int i = 0; i < count; i++)
		hear_from(&woken[i], "woken");
}

static void sleep_again(const struct child *sleepers, int count)
{
	for (int i = 0; i < count; i++) {
		channel_send(sleepers[i].channel, "sleep");
		hear_from(&sleepers[i], "asleep");
	}
}

static void end_all(struct child *children, int count)
{
	for (int i = 0; i < count; i++) {
		kill(children[i].pid, SIGKILL);
		child_reap(&children[i]);
	}
}

static void when_the_one_who_listens_is_killed_another_does(void **state)
{
	struct bench *b = *state;
	struct child three[3];
	start_three(b, three);
	put_and_wake(b, three, 3);
	long long first = listener(b);
	kill(three[0].pid, SIGKILL);
	child_reap(&three[0]);
	await_other(b, first);
	sleep_again(three + 1, 2);
	await_one(b);
	put_and_wake(b, three + 1, 2);
	end_all(three + 1, 2);
}

/* He finds that another has his seat when he goes on. */
static void when_the_one_who_listens_is_frozen_another_does(void **state)
{
	struct bench *b = *state;
	struct child three[3];
	start_three(b, three);
	put_and_wake(b, three, 3);
	long long first = listener(b);
	kill(three[0].pid, SIGSTOP);
	await_other(b, first);
	sleep_again(three + 1, 2);
	put_and_wake(b, three + 1, 2);
	kill(three[0].pid, SIGCONT);
	await_one(b);
	sleep_again(three, 3);
	await_one(b);
	put_and_wake(b, three, 3);
	end_all(three, 3);
}

static void when_the_one_who_listens_is_cut_off_somebody_does_again(void **state)
{
	struct bench *b = *state;
	struct child three[3];
	start_three(b, three);
	put_and_wake(b, three, 3);
	long long first = listener(b);
	cluster_run(b->where, losses[1]);
	await_other(b, first);
	sleep_again(three, 3);
	await_one(b);
	put_and_wake(b, three, 3);
	end_all(three, 3);
}

/* As if there were no memory that processes share. */
static void who_cannot_share_listens_by_himself(void **state)
{
	struct bench *b = *state;
	struct sleeper one, two;
	setenv("BATON_FLEET", "/nonexistent/fleet", 1);
	begin(b, &one);
	begin(b, &two);
	unsetenv("BATON_FLEET");
	assert_int_equal(listeners(b), 2);
	assert_int_equal(put_into(b->store, "x", "y"), BATON_OK);
	assert_woken(&one);
	assert_woken(&two);
	end(&one);
	end(&two);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SERVED_TEST(a_put_elsewhere_wakes_who_sleeps),
		SERVED_TEST(a_put_in_a_users_transaction_wakes_who_sleeps),
		SERVED_TEST(a_lost_wake_up_costs_time_only),
		SERVED_TEST(a_lost_listener_comes_back),
		SERVED_TEST(who_puts_rings_only_for_those_who_sleep_and_only_once),
		SERVED_TEST(who_falls_asleep_while_much_is_put_is_rung),
		SERVED_TEST(a_user_who_does_not_commit_keeps_nobody_from_ringing),
		SERVED_TEST(one_who_listens_wakes_all_who_sleep),
		SERVED_TEST(when_the_one_who_listens_is_killed_another_does),
		SERVED_TEST(when_the_one_who_listens_is_frozen_another_does),
		SERVED_TEST(when_the_one_who_listens_is_cut_off_somebody_does_again),
		SERVED_TEST(who_cannot_share_listens_by_himself),
	};
	return served_main("wake", tests, sizeof tests / sizeof tests[0]);
}
