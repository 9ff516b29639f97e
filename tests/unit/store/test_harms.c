/* Rules about lanes that have keys, in PostgreSQL: what breaks one is found, and told in a
 * sentence. */
#include <stdio.h>
#include <stdlib.h>

#include <baton/work.h>

#include "served.h"
#include "world.h"

/* What somebody did to the tables, what is said about it, and of how many. */
struct harm {
	const char *sql;
	const char *sentence;
	int amount;
};

#define KEY(name) "chr(1) || '" name "'"
#define UNCLAIMED "claims have a batch that is not claimed, or that another claim has"
#define CLAIMABLE "keys can be claimed, or cannot, though it should be otherwise"

static const struct harm harms[] = {
	{"UPDATE baton.batch SET head = false WHERE lane = 'd' AND head", CLAIMABLE, 1},
	{"UPDATE baton.batch SET head = true WHERE lane = 'b'", CLAIMABLE, 1},
	{"UPDATE baton.batch SET keeps = false WHERE keeps", CLAIMABLE, 1},
	{"UPDATE baton.claim SET guest = NULL", CLAIMABLE, 1},
	{"UPDATE baton.claim SET guest = NULL", UNCLAIMED, 1},
	{"UPDATE baton.claim SET guest = " KEY("m"), UNCLAIMED, 1},
	{"UPDATE baton.queue SET key_limit = 2", CLAIMABLE, 2},
	{"UPDATE baton.batch SET asks = true WHERE lane = 'a' AND state = 1",
         "lanes ask for a key that they do not begin with", 1},
	{"UPDATE baton.batch SET asks = true WHERE lane = 'd'",
         "lanes ask for a key that they do not begin with", 1},
	{"UPDATE baton.batch SET asks = true WHERE state = 3",
         "lanes ask for a key that they do not begin with", 1},
	{"UPDATE baton.batch SET asks = false WHERE lane = 'b'",
         "lanes cannot be claimed from, though they should", 1},
	{"UPDATE baton.batch SET asks = false WHERE lane = 'd'",
         "heads have a key that they do not ask for", 1},
	{"UPDATE baton.batch SET keeps = true WHERE lane = 'b'",
         "keys are kept by guests that do not wait", 1},
	{"UPDATE baton.batch SET guest = NULL WHERE keeps",
         "keys are kept by guests that do not wait", 1},
	{"UPDATE baton.queue SET guests = false",
         "batches have a lane and a key, and their queue does not know", 7},
	{"UPDATE baton.batch SET lane = NULL WHERE lane = 'b'",
         "batches have a lane and a key, and their queue does not know", 1},
};

#define ASKED "several keys are asked for by who does not, or not by who does"
#define HELD "several keys are held by who does not, or not by who does"

/* Where jobs have several keys. */
static const struct harm harms_of_several[] = {
	{"DELETE FROM baton.hold WHERE fence > 0", HELD, 2},
	{"DELETE FROM baton.hold WHERE fence = 0", HELD, 2},
	{"UPDATE baton.hold SET fence = fence + 1 WHERE line = " KEY("k"), HELD, 2},
	{"INSERT INTO baton.hold SELECT queue, " KEY("z") ", seq, fence FROM baton.hold LIMIT 1",
         HELD, 1},
	{"DELETE FROM baton.hold WHERE line = " KEY("k"), CLAIMABLE, 0},
	{"DELETE FROM baton.hold WHERE line = " KEY("l"), CLAIMABLE, 2},
	{"DELETE FROM baton.ask WHERE line = " KEY("n"), ASKED, 1},
	{"UPDATE baton.ask SET head = NOT head WHERE line = " KEY("m"), ASKED, 4},
	{"UPDATE baton.ask SET seq = seq + 1000 WHERE line = " KEY("n"), ASKED, 2},
	{"UPDATE baton.batch SET head = false WHERE guest = " KEY("n") "|| chr(1) || 'o'",
         CLAIMABLE, 2},
	{"UPDATE baton.batch SET head = true WHERE guest = " KEY("l") "|| chr(1) || 'm'", CLAIMABLE,
         2},
	{"UPDATE baton.claim SET guest = " KEY("k"), UNCLAIMED, 1},
	{"UPDATE baton.queue SET guests = false",
         "batches have a lane and a key, and their queue does not know", 5},
};

/* Claims one, which fails and keeps its keys for longer than the test takes. */
static void fail_one(struct baton_store *store)
{
	struct baton_work_claims *claims = NULL;
	assert_ok(claim_some(store, "q", 1, &claims));
	const struct baton_work_end end = {.proof = claims->claims[0].proof,
	                                   .how = BATON_FAIL,
	                                   .delay = baton_duration_s(3600)};
	struct baton_work_ended ended;
	assert_ok(baton_work_end(store, &end, 1, &ended));
	assert_ok(ended.err);
	baton_work_claims_free(claims);
}

static void put_guest(struct baton_store *store, const char *lane, const char *key)
{
	const struct baton_str bytes = BATON_STR("x");
	const struct baton_batch b = {.queue = BATON_STR("q"),
	                              .lane = baton_str_z(lane),
	                              .key = baton_str_z(key),
	                              .payloads = &bytes,
	                              .count = 1};
	assert_ok(baton_work_put(store, &b, 1, NULL));
}

/* The key k is held by the first of lane a, the second of which is ready, and lane b asks for it; l
 * is kept by one that waits for its next attempt, and lane e asks for it; m is free for lane d. */
static void make_guests(struct baton_store *store)
{
	struct baton_work_claims *claims = NULL;
	put_guest(store, "c", "l");
	fail_one(store);
	put_guest(store, "a", "k");
	put_guest(store, "a", "k");
	assert_ok(claim_some(store, "q", 1, &claims));
	baton_work_claims_free(claims);
	put_guest(store, "b", "k");
	put_guest(store, "d", "m");
	put_guest(store, "d", "m");
	put_guest(store, "e", "l");
	assert_sound(store);
}

static void put_several(struct baton_store *store, const char *lane, const char *one,
                        const char *other)
{
	const struct baton_str bytes = BATON_STR("x");
	const struct baton_str keys[] = {baton_str_z(one), baton_str_z(other)};
	const struct baton_batch b = {.queue = BATON_STR("q"),
	                              .lane = baton_str_z(lane),
	                              .keys = keys,
	                              .key_count = 2,
	                              .payloads = &bytes,
	                              .count = 1};
	assert_ok(baton_work_put(store, &b, 1, NULL));
}

/* The keys x and y are kept, k and l held; one that waits for l is the first to ask for m, and a
 * lane comes after it; n and o are free for another one. */
static void make_several(struct baton_store *store)
{
	struct baton_work_claims *claims = NULL;
	put_several(store, "", "x", "y");
	fail_one(store);
	put_several(store, "", "k", "l");
	assert_ok(claim_some(store, "q", 1, &claims));
	baton_work_claims_free(claims);
	put_several(store, "", "m", "l");
	put_several(store, "a", "m", "p");
	put_several(store, "", "n", "o");
	assert_sound(store);
}

static int amount_of(PGconn *pg, const char *sentence)
{
	char text[300];
	snprintf(text, sizeof text,
	         "SELECT coalesce(sum(amount), 0) FROM baton.faults() WHERE sentence = '%s'",
	         sentence);
	PGresult *r = PQexec(pg, text);
	assert_int_equal(PQresultStatus(r), PGRES_TUPLES_OK);
	int amount = atoi(PQgetvalue(r, 0, 0));
	PQclear(r);
	return amount;
}

static void assert_found(struct bench *b, const struct harm *list, size_t count)
{
	PGconn *user = user_of(b);
	for (size_t i = 0; i < count; i++) {
		const struct harm *h = &list[i];
		assert_int_equal(amount_of(user, h->sentence), 0);
		assert_true(does(user, "BEGIN"));
		assert_true(does(user, h->sql));
		int amount = amount_of(user, h->sentence);
		assert_true(does(user, "ROLLBACK"));
		if (amount != h->amount)
			fail_msg("%s: \"%d %s\"", h->sql, amount, h->sentence);
	}
	PQfinish(user);
}

static void whatever_does_not_fit_where_lanes_have_keys_is_found(void **state)
{
	struct bench *b = *state;
	make_guests(b->store);
	assert_found(b, harms, sizeof harms / sizeof harms[0]);
}

static void whatever_does_not_fit_where_jobs_have_several_keys_is_found(void **state)
{
	struct bench *b = *state;
	make_several(b->store);
	assert_found(b, harms_of_several, sizeof harms_of_several / sizeof harms_of_several[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SERVED_TEST(whatever_does_not_fit_where_lanes_have_keys_is_found),
		SERVED_TEST(whatever_does_not_fit_where_jobs_have_several_keys_is_found),
	};
	return served_main("harms", tests, sizeof tests / sizeof tests[0]);
}
