/* Jobs that stand in one row with others, and what becomes of them when something unusual is done
 * to one of them. */
#include <stdio.h>
#include <string.h>

#include <baton/queue.h>
#include <baton/shard.h>
#include <baton/work.h>

#include "served.h"

#define MANY 10

struct put {
	struct baton_put puts[MANY];
	uint32_t priority;
};

static void put_many(struct baton_store *store, struct put *p)
{
	struct baton_batch batches[MANY];
	struct baton_str payloads[MANY];
	char texts[MANY][16];
	for (int i = 0; i < MANY; i++) {
		snprintf(texts[i], sizeof texts[i], "%u.%d", p->priority, i);
		payloads[i] = baton_str_z(texts[i]);
		batches[i] = (struct baton_batch){.queue = BATON_STR("q"),
		                                  .priority = p->priority,
		                                  .payloads = &payloads[i],
		                                  .count = 1};
	}
	assert_int_equal(baton_work_put(store, batches, MANY, p->puts), BATON_OK);
}

static struct baton_work_claims *claim_some(struct baton_store *store, size_t count)
{
	const struct baton_work_ask ask = {.queue = BATON_STR("q"),
	                                   .claims = (uint32_t)count,
	                                   .max = 1};
	struct baton_work_claims *claims = NULL;
	assert_int_equal(baton_work_claim(store, &ask, &claims), BATON_OK);
	assert_non_null(claims);
	assert_int_equal(claims->count, count);
	return claims;
}

static enum baton_err end_one(struct baton_store *store, const struct baton_work_claim *c,
                              enum baton_work_how how)
{
	const struct baton_work_end end = {.proof = c->proof,
	                                   .how = how,
	                                   .delay = how == BATON_FAIL ? baton_duration_s(600)
	                                                              : (struct baton_duration){0}};
	struct baton_work_ended ended;
	assert_int_equal(baton_work_end(store, &end, 1, &ended), BATON_OK);
	return ended.err;
}

static void assert_sound(struct bench *b)
{
	uint64_t faults = 1;
	assert_int_equal(baton_store_check(b->store, NULL, NULL, &faults), BATON_OK);
	assert_int_equal(faults, 0);
}

static long long rows(struct bench *b, const char *table)
{
	char sql[80];
	snprintf(sql, sizeof sql, "SELECT count(*) FROM baton.%s", table);
	assert_sound(b);
	return cluster_number(b->where, sql);
}

static void they_live_without_rows_of_their_own(void **state)
{
	struct bench *b = *state;
	struct put low = {.priority = 0}, high = {.priority = 5};
	put_many(b->store, &low);
	put_many(b->store, &high);
	assert_int_equal(rows(b, "batch"), 0);
	assert_in_range(rows(b, "bulk"), 2, 4);
	struct baton_work_claims *first = claim_some(b->store, MANY + 3);
	assert_int_equal(rows(b, "claim"), 0);
	for (int i = 0; i < MANY + 3; i++) {
		const struct put *of = i < MANY ? &high : &low;
		char text[16];
		snprintf(text, sizeof text, "%u.%d", of->priority, i % MANY);
		const struct baton_work_batch *got = &first->claims[i].batches[0];
		assert_true(baton_str_equal(got->payloads[0], baton_str_z(text)));
		assert_string_equal(got->id.text, of->puts[i % MANY].id.text);
		assert_true(i == 0 || first->claims[i].fence.v > first->claims[i - 1].fence.v);
	}
	struct baton_work_claims *rest = claim_some(b->store, MANY - 3);
	for (int i = MANY + 2; i >= 0; i--)
		assert_int_equal(end_one(b->store, &first->claims[i], BATON_COMPLETE), BATON_OK);
	assert_int_equal(end_one(b->store, &first->claims[0], BATON_COMPLETE), BATON_OK);
	assert_int_equal(end_one(b->store, &first->claims[0], BATON_ABANDON), BATON_NOT_HELD);
	for (int i = 0; i < MANY - 3; i++)
		assert_int_equal(end_one(b->store, &rest->claims[i], BATON_COMPLETE), BATON_OK);
	assert_int_equal(rows(b, "bulk"), 0);
	assert_int_equal(rows(b, "chunk"), 0);
	baton_work_claims_free(first);
	baton_work_claims_free(rest);
}

static void assert_state(struct bench *b, const struct baton_batch_id *id,
                         enum baton_batch_state expected)
{
	struct baton_work_page *page = NULL;
	assert_int_equal(baton_work_get(b->store, id, &page), BATON_OK);
	assert_int_equal(page->infos[0].state, expected);
	baton_work_page_free(page);
}

static void what_fails_is_tried_again_and_the_others_are_not(void **state)
{
	struct bench *b = *state;
	struct put put = {.priority = 0};
	put_many(b->store, &put);
	struct baton_work_claims *claims = claim_some(b->store, 4);
	assert_int_equal(end_one(b->store, &claims->claims[1], BATON_FAIL), BATON_OK);
	assert_int_equal(end_one(b->store, &claims->claims[0], BATON_COMPLETE), BATON_OK);
	assert_state(b, &put.puts[1].id, BATON_BATCH_RETRY);
	assert_state(b, &put.puts[2].id, BATON_BATCH_CLAIMED);
	assert_state(b, &put.puts[4].id, BATON_BATCH_READY);
	assert_int_equal(end_one(b->store, &claims->claims[2], BATON_ABANDON), BATON_OK);
	assert_next(b, "0.2");
	assert_next(b, "0.4");
	assert_int_equal(end_one(b->store, &claims->claims[3], BATON_COMPLETE), BATON_OK);
	assert_sound(b);
	baton_work_claims_free(claims);
}

static void what_is_cancelled_is_gone_or_its_holder_is_told(void **state)
{
	struct bench *b = *state;
	struct put put = {.priority = 0};
	put_many(b->store, &put);
	struct baton_work_claims *claims = claim_some(b->store, 1);
	const struct baton_batch_id ids[] = {put.puts[0].id, put.puts[1].id};
	enum baton_cancelled cancelled[2];
	assert_int_equal(baton_work_cancel(b->store, ids, 2, cancelled), BATON_OK);
	assert_int_equal(cancelled[0], BATON_CANCEL_TOLD);
	assert_int_equal(cancelled[1], BATON_CANCEL_REMOVED);
	struct baton_work_renewal renewal;
	assert_int_equal(baton_work_renew(b->store, &claims->claims[0].proof, 1,
	                                  baton_duration_s(60), &renewal),
	                 BATON_OK);
	assert_true(renewal.cancel);
	assert_next(b, "0.2");
	assert_int_equal(rows(b, "bulk"), 0);
	baton_work_claims_free(claims);
}

static void what_is_renewed_lasts_and_what_has_expired_is_given_again(void **state)
{
	struct bench *b = *state;
	struct put put = {.priority = 0};
	struct baton_work_renewal renewal;
	put_many(b->store, &put);
	struct baton_work_claims *two = claim_some(b->store, 2);
	cluster_run(b->where, "UPDATE baton.chunk SET expires_at = 1; SELECT baton.untend(id, 1) "
	                      "FROM baton.queue");
	struct baton_work_claims *again = claim_some(b->store, 2);
	for (int i = 0; i < 2; i++) {
		assert_true(again->claims[i].fence.v > two->claims[i].fence.v);
		assert_string_equal(again->claims[i].batches[0].id.text,
		                    two->claims[i].batches[0].id.text);
		assert_int_equal(again->claims[i].batches[0].attempt, 2);
		assert_int_equal(end_one(b->store, &two->claims[i], BATON_COMPLETE),
		                 BATON_NOT_HELD);
	}
	put_many(b->store, &put);
	struct baton_work_claims *one = claim_some(b->store, MANY);
	const struct baton_work_claim *last = &one->claims[MANY - 1];
	assert_int_equal(rows(b, "chunk"), 1);
	assert_int_equal(baton_work_renew(b->store, &last->proof, 1, baton_duration_s(600),
	                                  &renewal),
	                 BATON_OK);
	assert_int_equal(renewal.err, BATON_OK);
	assert_true(renewal.expires_at.ms > last->expires_at.ms);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(end_one(b->store, &one->claims[i], BATON_COMPLETE), BATON_OK);
	baton_work_claims_free(one);
	baton_work_claims_free(two);
	baton_work_claims_free(again);
}

static void users_complete_and_cancel_them_in_their_own_transactions(void **state)
{
	struct bench *b = *state;
	struct put put = {.priority = 0};
	PGconn *user = user_of(b);
	char sql[200], token[33];
	put_many(b->store, &put);
	struct baton_work_claims *claims = claim_some(b->store, 2);
	snprintf(sql, sizeof sql, "SELECT baton.complete('%s', '%s')", claims->claims[0].proof.id,
	         baton_id_print(&claims->claims[0].proof.token, token));
	assert_int_equal(cluster_number(b->where, "SELECT count(*) FROM baton.jobs "
	                                          "WHERE state = 'claimed'"),
	                 2);
	assert_true(does(user, sql));
	assert_false(does(user, sql));
	assert_int_equal(end_one(b->store, &claims->claims[0], BATON_ABANDON), BATON_NOT_HELD);
	snprintf(sql, sizeof sql, "SELECT baton.cancel(%s)", put.puts[2].id.text);
	assert_true(does(user, sql));
	assert_int_equal(end_one(b->store, &claims->claims[1], BATON_COMPLETE), BATON_OK);
	assert_next(b, "0.3");
	assert_int_equal(cluster_number(b->where, "SELECT count(*) FROM baton.jobs"), MANY - 4);
	baton_work_claims_free(claims);
	PQfinish(user);
}

static void results_that_are_kept_have_rows_of_their_own(void **state)
{
	struct bench *b = *state;
	struct put put = {.priority = 0};
	struct baton_queue_policy policy = {.keep = baton_duration_s(60)};
	assert_int_equal(baton_queue_change(b->store, BATON_STR("q"), &policy, BATON_POLICY_KEEP),
	                 BATON_OK);
	put_many(b->store, &put);
	struct baton_work_claims *claims = claim_some(b->store, 2);
	assert_int_equal(end_one(b->store, &claims->claims[1], BATON_COMPLETE), BATON_OK);
	assert_state(b, &put.puts[1].id, BATON_BATCH_DONE);
	assert_state(b, &put.puts[0].id, BATON_BATCH_CLAIMED);
	assert_int_equal(rows(b, "batch") + rows(b, "bulk") > 0, true);
	baton_work_claims_free(claims);
}

struct said {
	const char *words;
	bool found;
};

static void hear(void *arg, const char *sentence)
{
	struct said *said = arg;
	said->found = said->found || strstr(sentence, said->words);
}

#define CLAIMED                                                                               \
	"INSERT INTO baton.batch(seq, put_at, fence, queue, shard, pool, attempts, state, "   \
	"rank, flags, head, line, cancel, holds, blocks, payload) SELECT last, 1, 1, queue, " \
	"0, 0, 0, 4, rank, 0, false, false, false, false, false, 'x' FROM baton.bulk LIMIT 1"
#define CLAIM(head)                                                                         \
	"INSERT INTO baton.claim(head, fence, granter, claimed_at, expires_at, queue, "     \
	"offered, token, owner, seqs) SELECT " head ", 1, 1, 1, 9223372036854775806, id, "  \
	"false, '\\x00', 'x', ARRAY[(SELECT last FROM baton.bulk ORDER BY first LIMIT 1)] " \
	"FROM baton.queue"

static void a_check_finds_what_does_not_fit_together(void **state)
{
	struct bench *b = *state;
	struct put low = {.priority = 0}, high = {.priority = 5};
	static const struct {
		const char *harm, *undo, *words;
	} cases[] = {
		{"UPDATE baton.bulk SET has = has # 2", "UPDATE baton.bulk SET has = has # 2",
	         "have other batches than they say"},
		{"UPDATE baton.bulk SET n = n + 1", "UPDATE baton.bulk SET n = n - 1",
	         "have other batches than they say"},
		{"UPDATE baton.bulk SET last = last + 1", "UPDATE baton.bulk SET last = last - 1",
	         "have other batches than they say"},
		{"UPDATE baton.mark SET seq = seq + 1000 WHERE rank = 9",
	         "UPDATE baton.mark SET seq = seq - 1000 WHERE rank = 9",
	         "have none that is not done"},
		{"UPDATE baton.queue SET ready = ready + 1",
	         "UPDATE baton.queue SET ready = ready - 1", "another number of batches"},
		{"UPDATE baton.queue SET dead = dead + 1", "UPDATE baton.queue SET dead = dead - 1",
	         "another number of batches"},
		{CLAIMED, "DELETE FROM baton.batch", "batches stand in two rows"},
		{CLAIMED, "DELETE FROM baton.batch", "batches are claimed without a claim"},
		{CLAIM("7"), "DELETE FROM baton.claim", "claims have a batch that is not claimed"},
		{CLAIMED "; " CLAIM("7") "; " CLAIM("8"),
	         "DELETE FROM baton.batch; DELETE FROM baton.claim", "or that another claim has"},
	};
	put_many(b->store, &low);
	put_many(b->store, &high);
	baton_work_claims_free(claim_some(b->store, 3));
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		uint64_t faults = 0;
		struct said said = {.words = cases[i].words};
		assert_sound(b);
		cluster_run(b->where, cases[i].harm);
		assert_int_equal(baton_store_check(b->store, hear, &said, &faults), BATON_OK);
		if (!said.found)
			fail_msg("%s: not told", cases[i].harm);
		cluster_run(b->where, cases[i].undo);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SERVED_TEST(they_live_without_rows_of_their_own),
		SERVED_TEST(what_fails_is_tried_again_and_the_others_are_not),
		SERVED_TEST(what_is_cancelled_is_gone_or_its_holder_is_told),
		SERVED_TEST(what_is_renewed_lasts_and_what_has_expired_is_given_again),
		SERVED_TEST(users_complete_and_cancel_them_in_their_own_transactions),
		SERVED_TEST(results_that_are_kept_have_rows_of_their_own),
		SERVED_TEST(a_check_finds_what_does_not_fit_together),
	};
	return served_main("bulk", tests, sizeof tests / sizeof tests[0]);
}
