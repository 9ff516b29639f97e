/* Every rule about what is in a store: what breaks it is found, and told in a sentence. */
#include <stdio.h>
#include <string.h>

#include <sqlite3.h>

#include "world.h"

/* What somebody did to the file, and what is said about it. */
struct harm {
	const char *sql;
	const char *sentence;
};

static const struct harm harms[] = {
	{"INSERT INTO head(pool, rank, place, seq, tried) VALUES(8192, 0, 99, 99, 0)",
         "1 heads have no batch"},
	{"INSERT INTO line SELECT id, 99, 0 FROM lane", "1 places in a line have no batch"},
	{"INSERT INTO line SELECT 99, min(seq), 0 FROM batch", "1 places in a line have no lane"},
	{"INSERT INTO lane(id, queue, name) VALUES(99, 1, 'x')", "1 lanes are empty"},
	{"INSERT INTO later VALUES(1, 5, 99, 0)", "1 delays have no batch"},
	{"INSERT INTO dead(queue, seq, at) VALUES(1, 99, 5)", "1 dead ones have no batch"},
	{"INSERT INTO done VALUES(99, 5, 5, '', NULL)", "1 results have no batch"},
	{"INSERT INTO trouble VALUES(99, 1, 1, NULL, NULL, 0, NULL)", "1 troubles have no batch"},
	{"UPDATE claim SET head = 99", "1 claims have no batch"},
	{"UPDATE claim SET owner = 99", "1 claims have no owner"},
	{"UPDATE claim SET lane = 99", "1 claims have no lane"},
	{"UPDATE batch SET queue = 99 WHERE lane IS NOT NULL", "2 batches have no queue"},
	{"DELETE FROM later", "1 batches without a lane are in no state"},
	{"DELETE FROM dead", "1 batches without a lane are in no state"},
	{"DELETE FROM claim", "1 batches without a lane are in no state"},
	{"DELETE FROM head WHERE lane IS NULL", "1 batches without a lane are in no state"},
	{"DELETE FROM line", "2 batches of lanes are in no state"},
	{"DELETE FROM head WHERE lane IS NOT NULL",
         "1 lanes cannot be claimed from, though they should"},
	{"UPDATE head SET rank = rank + 1 WHERE lane IS NOT NULL",
         "1 lanes cannot be claimed from, though they should"},
	{"UPDATE lane SET head = NULL", "1 heads are not those of their lanes"},
	{"UPDATE queue SET dead = dead + 1 WHERE name = 'q'",
         "1 queues have another number of dead ones than they count"},
	{"UPDATE queue SET delayed = delayed + 1 WHERE name = 'q'",
         "1 queues have another number of delayed ones than they count"},
	{"UPDATE queue SET ready = ready + 1 WHERE name = 'q'",
         "1 queues have another number of batches than they count"},
	{"UPDATE state SET seq = seq - 1", "1 batches have a number that was not given out"},
	{"UPDATE owner SET claims = claims + 1",
         "1 owners have another number of claims than they count"},
	{"DELETE FROM claim", "1 owners have another number of claims than they count"},
	{"INSERT INTO lone VALUES(5, 99)",
         "1 keys are had by one job that is neither ready nor claimed"},
	{"UPDATE claim SET lone = 7", "1 claims have a key that is another job's"},
	{"INSERT INTO lone SELECT 5, min(seq) FROM line",
         "1 keys are had by one job, and have a line"},
	{"UPDATE head SET lane = NULL WHERE lane IS NOT NULL",
         "1 heads are not in the line that they should be in"},
	{"INSERT INTO kept VALUES(1, 99)", "1 keys are kept by what does not wait"},
	{"UPDATE lane SET holds = 1", "1 keys have another number of holders than they count"},
	{"UPDATE lane SET holds = 0, head = NULL",
         "1 keys can be claimed, or cannot, though it should be otherwise"},
	{"UPDATE lane SET place = place + 2; UPDATE head SET place = place + 2 WHERE lane > 0",
         "1 lanes are not in their place among others"},
	{"UPDATE lane SET head = head + 1, place = place + 2;"
         " UPDATE head SET seq = seq + 1, place = place + 2 WHERE lane > 0",
         "1 lanes are claimed from elsewhere than at their beginning"},
	{"UPDATE lane SET until = 5", "1 keys wait for another time than their starts say"},
	{"INSERT INTO rate VALUES(1, 1, 'k', 0, 5, zeroblob(8))",
         "1 keys have another number of starts than they may"},
	{"UPDATE head SET seq = 99, place = 198 WHERE tried = 2", "1 heads have no row of jobs"},
	{"UPDATE bulk SET queue = 99", "1 rows of jobs have no queue"},
	{"DELETE FROM head WHERE tried = 2; DELETE FROM chunk", "1 rows of jobs are in no state"},
	{"UPDATE head SET pool = 1 << 13 WHERE tried = 2; DELETE FROM chunk",
         "1 rows of jobs are in no state"},
	{"DELETE FROM bulk", "1 rows of claims have no jobs"},
	{"UPDATE chunk SET bulk = 99", "1 rows of claims have no jobs"},
	{"UPDATE chunk SET owner = 99", "1 rows of claims have no owner"},
	{"UPDATE state SET seq = 1", "1 rows of jobs have a number that was not given out"},
	{"UPDATE bulk SET count = 60", "1 rows of jobs have a number that was not given out"},
	{"DELETE FROM head WHERE tried = 2",
         "1 queues have another number of batches than they count"},
	{"DELETE FROM chunk", "1 queues have another number of batches than they count"},
	{"DELETE FROM chunk", "1 owners have another number of claims than they count"},
	{"UPDATE chunk SET claims = substr(claims, 33)",
         "1 owners have another number of claims than they count"},
	{"UPDATE shard SET queue = 99", "1 shards have no queue"},
	{"DELETE FROM runner", "1 shards have an owner that is not registered"},
	{"UPDATE state SET runner = 0", "1 runners have a number that was not given out"},
	{"UPDATE runner SET wish = 0", "1 runners are asked for what there is not"},
	{"UPDATE runner SET wish = 5", "1 runners are asked for what there is not"},
	{"UPDATE head SET pool = pool + 8192 WHERE lane IS NULL AND tried = 0",
         "1 heads are where nobody looks for them"},
	{"UPDATE head SET pool = pool + 1 WHERE lane IS NULL AND tried = 0",
         "1 heads are where nobody looks for them"},
	{"UPDATE head SET rank = rank - 1 WHERE tried = 2",
         "1 heads are where nobody looks for them"},
	{"UPDATE head SET pool = pool + 2 WHERE lane IS NOT NULL",
         "1 heads are where nobody looks for them"},
	{"UPDATE queue SET mode = 4 WHERE name = 'q'", "2 heads are where nobody looks for them"},
	{"UPDATE chunk SET queue = 1", "1 rows of claims have another queue than their jobs"},
	{"UPDATE later SET due = due + 1",
         "1 delays have another time, or queue, than their batch"},
	{"UPDATE later SET queue = 2", "1 delays have another time, or queue, than their batch"},
	{"UPDATE claim SET queue = 2", "1 claims have another queue than their batch"},
	{"UPDATE claim SET fence = fence + 99", "1 claims have a fence that was not given out"},
	{"UPDATE state SET lane = 0", "1 lanes have a number that was not given out"},
	{"UPDATE owner SET text = CAST(text AS BLOB)",
         "1 rows of owner have a value of another kind"},
	{"UPDATE batch SET put_at = 'noon' WHERE lane IS NULL",
         "4 rows of batch have a value of another kind"},
	{"UPDATE batch SET due = 'noon' WHERE due IS NOT NULL",
         "1 rows of batch have a value of another kind"},
	{"UPDATE queue SET mode = 9 WHERE id = 1",
         "queue 1 cannot be: mode is 9: 1 to 4 are allowed"},
	{"UPDATE queue SET name = '' WHERE id = 1",
         "queue 1 cannot be: the queue's name is empty: 1 to 255 bytes are allowed"},
};

#define KEY(name) "char(1) || '" name "'"

/* Where lanes have keys. */
static const struct harm harms_of_guests[] = {
	{"UPDATE claim SET key = 99", "1 claims have no key"},
	{"UPDATE claim SET key = lane", "1 claims have no key"},
	{"UPDATE claim SET key = (SELECT id FROM lane WHERE name = " KEY("m") ")",
         "1 claims have another key than their batch"},
	{"UPDATE claim SET key = NULL", "1 claims have another key than their batch"},
	{"UPDATE claim SET key = NULL", "1 keys have another number of holders than they count"},
	{"UPDATE lane SET holds = 0 WHERE name = " KEY("k"),
         "1 keys have another number of holders than they count"},
	{"INSERT INTO guest SELECT key, 99, lane, 0 FROM guest LIMIT 1",
         "1 guests are not those of their key and their lane"},
	{"UPDATE guest SET lane = (SELECT id FROM lane WHERE name = 'a') WHERE lane ="
         " (SELECT id FROM lane WHERE name = 'b')",
         "1 guests are not those of their key and their lane"},
	{"UPDATE lane SET asks = (SELECT guest FROM lane WHERE guest > 0) WHERE name = 'b'",
         "1 guests are not those of their key and their lane"},
	{"DELETE FROM guest WHERE lane = (SELECT id FROM lane WHERE name = 'b')",
         "1 lanes ask for a key that does not know"},
	{"UPDATE lane SET asks = 0 WHERE name = 'b'", "1 lanes ask for a key that does not know"},
	{"DELETE FROM guest WHERE lane = (SELECT id FROM lane WHERE name = 'b');"
         " UPDATE lane SET asks = 0, asked = 0 WHERE name = 'b'",
         "1 lanes ask for a key, or do not, though it should be otherwise"},
	{"INSERT INTO guest SELECT asks, (SELECT max(seq) FROM line WHERE lane = (SELECT id"
         " FROM lane WHERE name = 'a')), (SELECT id FROM lane WHERE name = 'a'), 0 FROM lane"
         " WHERE name = 'b'; UPDATE lane SET asks = (SELECT asks FROM lane WHERE name = 'b'),"
         " asked = (SELECT max(seq) FROM line WHERE lane = lane.id) WHERE name = 'a'",
         "1 lanes ask for a key, or do not, though it should be otherwise"},
	{"UPDATE lane SET guest = 0", "1 keys have a head in a lane that does not have it"},
	{"UPDATE lane SET guest = (SELECT id FROM lane WHERE name = 'b') WHERE guest > 0",
         "2 keys have a head in a lane that does not have it"},
	{"UPDATE lane SET guest = 0",
         "1 keys can be claimed, or cannot, though it should be otherwise"},
	{"UPDATE lane SET guest = (SELECT id FROM lane WHERE name = 'b') WHERE name = " KEY("k"),
         "1 keys can be claimed, or cannot, though it should be otherwise"},
	{"UPDATE queue SET guests = 0",
         "6 batches have a lane and a key, and their queue does not know"},
	{"DELETE FROM kept", "1 keys have another number of holders than they count"},
	{"UPDATE kept SET seq = (SELECT max(seq) FROM line)",
         "1 keys are kept by what does not wait"},
	{"DELETE FROM lane WHERE name = " KEY("k"), "1 claims have no key"},
	{"INSERT INTO lane(id, queue, name, holds) VALUES(99, 1, " KEY("z") ", 0)",
         "1 lanes are empty"},
};

#define RENAME(from, to) \
	"UPDATE bulk SET keys = CAST(replace(CAST(keys AS TEXT), '" from "', '" to "') AS BLOB)"

/* Where jobs that stand together have keys. */
static const struct harm harms_of_keys[] = {
	{"UPDATE state SET young = x''",
         "12 jobs that stand together cannot be found by their keys"},
	{RENAME("k5", "l9"), "1 jobs that stand together have a key that has a line"},
	{RENAME("k5", "m9"), "1 jobs that stand together have a key that another one has"},
	{RENAME("k5", "n0"), "1 jobs that stand together have a key that another one has"},
};

static void harm(const char *path, const char *sql)
{
	sqlite3 *db = NULL;
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	assert_int_not_equal(sqlite3_changes(db), 0);
	sqlite3_close(db);
}

/* A batch in each state, two in a lane, a row of jobs with some claimed, and a runner with a
 * shard. */
static void make_all(struct world *w)
{
	struct baton_work_claims *claims = NULL;
	const struct baton_str bytes = BATON_STR("x");
	struct baton_batch later = {.queue = BATON_STR("q"),
	                            .payloads = &bytes,
	                            .count = 1,
	                            .delay = baton_duration_ms(1000000)};
	struct baton_put put;
	world_open(w);
	assert_ok(put_some(w->store, "q", "", 1));
	assert_ok(claim_some(w->store, "q", 1, &claims));
	assert_ok(end_as(w->store, &claims->claims[0], BATON_REJECT));
	baton_work_claims_free(claims);
	assert_ok(put_some(w->store, "together", "", 8));
	assert_ok(claim_each(w->store, "together", 4, &claims));
	baton_work_claims_free(claims);
	assert_ok(put_some(w->store, "q", "", 1));
	assert_ok(claim_some(w->store, "q", 1, &claims));
	baton_work_claims_free(claims);
	assert_ok(put_some(w->store, "q", "lane", 2));
	assert_ok(baton_work_put(w->store, &later, 1, &put));
	assert_ok(put_some(w->store, "q", "", 1));
	world_close(w);
	harm(w->path, "UPDATE state SET runner = 1");
	harm(w->path, "INSERT INTO runner(number, name, slot, endpoint, labels, owner, weight, ttl,"
	              " since) VALUES(1, 'r', 0, '', '', '', 1, 1, 1)");
	harm(w->path, "INSERT INTO shard VALUES(1, 0, 1, 1, 0)");
	world_open(w);
	assert_sound(w->store);
	world_close(w);
}

/* Where jobs have several keys. */
static const struct harm harms_of_several[] = {
	{"DELETE FROM held", "1 claims have keys that do not know"},
	{"DELETE FROM held", "1 keys have another number of holders than they count"},
	{"DELETE FROM held", "1 claims have another key than their batch"},
	{"UPDATE held SET key = (SELECT id FROM lane WHERE name = " KEY("n") ")",
         "1 claims have another key than their batch"},
	{"UPDATE held SET key = 99", "1 keys are held by claims that do not know"},
	{"UPDATE held SET fence = fence + 1", "1 keys are held by claims that do not know"},
	{"UPDATE claim SET also = NULL", "1 claims have keys that do not know"},
	{"DELETE FROM guest WHERE key = (SELECT id FROM lane WHERE name = " KEY("m") ")",
         "2 lanes ask for another number of keys than their first job has"},
	{"UPDATE lane SET also = NULL WHERE also IS NOT NULL AND asked = (SELECT min(asked)"
         " FROM lane WHERE asked > 0)",
         "1 lanes ask for another number of keys than their first job has"},
	{"UPDATE guest SET key = (SELECT id FROM lane WHERE name = " KEY(
		 "k") ") WHERE key ="
                      " (SELECT id FROM lane WHERE name = " KEY("o") ")",
         "1 guests are not those of their key and their lane"},
	{"UPDATE lane SET guest = 0 WHERE name = " KEY("n"),
         "1 keys can be claimed, or cannot, though it should be otherwise"},
	{"UPDATE lane SET guest = (SELECT id FROM lane WHERE asked = (SELECT min(asked) FROM lane"
         " WHERE asked > 0)) WHERE name = " KEY("m"),
         "1 keys can be claimed, or cannot, though it should be otherwise"},
	{"UPDATE queue SET guests = 0",
         "4 batches have a lane and a key, and their queue does not know"},
};

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
 * is kept by one that waits for its next attempt; m is free for lane d. */
static void make_guests(struct world *w)
{
	struct baton_work_claims *claims = NULL;
	world_open(w);
	put_guest(w->store, "c", "l");
	assert_ok(claim_some(w->store, "q", 1, &claims));
	assert_ok(end_as(w->store, &claims->claims[0], BATON_FAIL));
	baton_work_claims_free(claims);
	put_guest(w->store, "a", "k");
	put_guest(w->store, "a", "k");
	assert_ok(claim_some(w->store, "q", 1, &claims));
	baton_work_claims_free(claims);
	put_guest(w->store, "b", "k");
	put_guest(w->store, "d", "m");
	put_guest(w->store, "d", "l");
	put_guest(w->store, "", "k");
	assert_sound(w->store);
	world_close(w);
}

/* Two rows of jobs with keys, k0 to k5 and n0 to n5; l9 has a line, and one alone has m9. */
static void make_keys(struct world *w)
{
	const struct baton_str bytes = BATON_STR("x");
	struct baton_batch b[6];
	char keys[6][4];
	world_open(w);
	for (int row = 0; row < 2; row++) {
		for (int i = 0; i < 6; i++) {
			snprintf(keys[i], sizeof keys[i], "%c%d", row == 0 ? 'k' : 'n', i);
			b[i] = (struct baton_batch){.queue = BATON_STR("q"),
			                            .key = baton_str_z(keys[i]),
			                            .payloads = &bytes,
			                            .count = 1};
		}
		assert_ok(baton_work_put(w->store, b, 6, NULL));
	}
	put_guest(w->store, "", "l9");
	put_guest(w->store, "", "l9");
	put_guest(w->store, "", "m9");
	assert_sound(w->store);
	world_close(w);
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

/* The keys k and l are held; one that waits for l is the first to ask for m, and a lane comes after
 * it; n and o are free for another one. */
static void make_several(struct world *w)
{
	struct baton_work_claims *claims = NULL;
	world_open(w);
	put_several(w->store, "", "k", "l");
	assert_ok(claim_some(w->store, "q", 1, &claims));
	baton_work_claims_free(claims);
	put_several(w->store, "", "m", "l");
	put_several(w->store, "a", "m", "p");
	put_several(w->store, "", "n", "o");
	assert_sound(w->store);
	world_close(w);
}

struct wanted {
	const char *sentence;
	bool found;
};

static void compare(void *arg, const char *sentence)
{
	struct wanted *wanted = arg;
	wanted->found = wanted->found || strcmp(sentence, wanted->sentence) == 0;
}

static void assert_found(struct world *w, const struct harm *list, size_t count)
{
	char original[WORLD_PATH];
	world_file(w, "original", original);
	world_copy(w->path, original);
	for (size_t i = 0; i < count; i++) {
		struct wanted wanted = {.sentence = list[i].sentence};
		uint64_t faults = 0;
		world_copy(original, w->path);
		harm(w->path, list[i].sql);
		world_open(w);
		assert_ok(baton_store_check(w->store, compare, &wanted, &faults));
		world_close(w);
		if (!wanted.found || faults == 0)
			fail_msg("%s: nobody says \"%s\"", list[i].sql, list[i].sentence);
	}
}

static void whatever_does_not_fit_is_found(void **state)
{
	make_all(*state);
	assert_found(*state, harms, sizeof harms / sizeof harms[0]);
}

static void whatever_does_not_fit_where_lanes_have_keys_is_found(void **state)
{
	make_guests(*state);
	assert_found(*state, harms_of_guests, sizeof harms_of_guests / sizeof harms_of_guests[0]);
}

static void whatever_does_not_fit_where_jobs_have_keys_is_found(void **state)
{
	make_keys(*state);
	assert_found(*state, harms_of_keys, sizeof harms_of_keys / sizeof harms_of_keys[0]);
}

static void whatever_does_not_fit_where_jobs_have_several_keys_is_found(void **state)
{
	make_several(*state);
	assert_found(*state, harms_of_several,
	             sizeof harms_of_several / sizeof harms_of_several[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(whatever_does_not_fit_is_found),
		WORLD_TEST(whatever_does_not_fit_where_lanes_have_keys_is_found),
		WORLD_TEST(whatever_does_not_fit_where_jobs_have_keys_is_found),
		WORLD_TEST(whatever_does_not_fit_where_jobs_have_several_keys_is_found),
	};
	return cmocka_run_group_tests_name("check", tests, NULL, NULL);
}
