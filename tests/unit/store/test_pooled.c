/* A store behind a proxy that gives every transaction another connection to the server. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <baton/lease.h>
#include <baton/queue.h>

#include "served.h"

#define SERVERS 3

static void through(const struct bench *b, const char *more, char *where, size_t size)
{
	snprintf(where, size, "%s" CLUSTER_THROUGH "%s", b->where, more);
}

static int pooled_setup(void **state)
{
	if (!served_cluster()->proxy && !cluster_proxy(served_cluster(), SERVERS))
		return -1;
	return served_setup(state);
}

struct writer {
	const char *where;
	pthread_t thread;
	char lane[8];
};

static void *write_some(void *arg)
{
	struct writer *w = arg;
	struct baton_store *store = open_as(w->where);
	for (int i = 0; i < 20; i++) {
		char text[8];
		snprintf(text, sizeof text, "%d", i);
		assert_int_equal(put_into(store, w->lane, text), BATON_OK);
	}
	baton_store_close(store);
	return NULL;
}

static void take_all(struct baton_store *store, int count)
{
	int next[4] = {0};
	char lane[64], text[64];
	for (int i = 0; i < count; i++) {
		assert_true(take_one(store, lane, text) > 0);
		assert_int_equal(atoi(text), next[atoi(lane)]++);
	}
	assert_int_equal(take_one(store, lane, text), 0);
}

static void everything_works_through_it(void **state)
{
	struct bench *b = *state;
	struct writer w[4];
	struct baton_lease_answer answer;
	struct baton_queue_info info;
	enum baton_err renewed;
	char where[400];
	through(b, " baton_pooled=1", where, sizeof where);
	struct baton_store *store = open_as(where);
	for (int i = 0; i < 4; i++) {
		w[i] = (struct writer){.where = where};
		snprintf(w[i].lane, sizeof w[i].lane, "%d", i);
		assert_int_equal(pthread_create(&w[i].thread, NULL, write_some, &w[i]), 0);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(w[i].thread, NULL);
	take_all(store, 80);
	const struct baton_lease_ask ask = {.subject = BATON_STR("s")};
	assert_int_equal(baton_lease_claim(store, &ask, 1, &answer), BATON_OK);
	struct baton_lease_proof proof = {BATON_STR("s"), &answer.lease};
	assert_int_equal(baton_lease_renew(store, &proof, 1, baton_duration_s(9), false, &renewed),
	                 BATON_OK);
	assert_int_equal(renewed, BATON_OK);
	assert_int_equal(baton_queue_get(store, BATON_STR("q"), &info), BATON_OK);
	assert_int_equal(info.counts.done, 80);
	baton_store_close(store);
}

/* What the next one gets who is given a connection of the proxy. */
static void nothing_is_left_behind_on_its_connections(void **state)
{
	struct bench *b = *state;
	char where[400];
	through(b, " baton_pooled=1", where, sizeof where);
	struct baton_store *store = open_as(where);
	for (int i = 0; i < SERVERS; i++)
		assert_int_equal(put_into(store, "x", "y"), BATON_OK);
	through(b, "", where, sizeof where);
	for (int i = 0; i < SERVERS; i++) {
		assert_int_equal(cluster_number(where, "SELECT count(*) FROM "
		                                       "pg_prepared_statements"),
		                 0);
		assert_int_equal(cluster_number(where, "SELECT count(*) FROM pg_settings WHERE "
		                                       "source = 'session' AND name NOT IN "
		                                       "('application_name', 'client_encoding')"),
		                 0);
	}
	baton_store_close(store);
}

#define POOLED_TEST(f) cmocka_unit_test_setup_teardown(f, pooled_setup, served_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		POOLED_TEST(everything_works_through_it),
		POOLED_TEST(nothing_is_left_behind_on_its_connections),
	};
	if (access("/usr/sbin/pgbouncer", X_OK) != 0) {
		printf("1..0 # SKIP there is no pgbouncer\n");
		return 0;
	}
	return served_main("pooled", tests, sizeof tests / sizeof tests[0]);
}
