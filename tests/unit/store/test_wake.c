/* How those who wait for work in PostgreSQL are woken by those who commit elsewhere. */
#include <pthread.h>
#include <string.h>

#include <baton/store.h>
#include <baton/work.h>

#include "served.h"
#include "support/fake_clock.h"

/* Somebody who waits, for whom time passes only when the test says so. */
struct sleeper {
	struct fake_clock clock;
	struct baton_store *store;
	struct baton_store_wait wait;
	uint64_t seen;
	enum baton_err err;
	pthread_t thread;
};

static void *sleep_once(void *arg)
{
	struct sleeper *z = arg;
	z->err = baton_store_wait(z->store, &z->wait, &z->seen);
	return NULL;
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
	assert_int_equal(pthread_create(&z->thread, NULL, sleep_once, z), 0);
	fake_clock_wait_blocked(&z->clock, 1);
	while (marks(b) == 0) {
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		SERVED_TEST(a_put_elsewhere_wakes_who_sleeps),
		SERVED_TEST(a_put_in_a_users_transaction_wakes_who_sleeps),
		SERVED_TEST(a_lost_wake_up_costs_time_only),
		SERVED_TEST(a_lost_listener_comes_back),
		SERVED_TEST(who_puts_rings_only_for_those_who_sleep_and_only_once),
		SERVED_TEST(a_user_who_does_not_commit_keeps_nobody_from_ringing),
	};
	return served_main("wake", tests, sizeof tests / sizeof tests[0]);
}
