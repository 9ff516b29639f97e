/* Every limit, crossed, and what is said about it. */
#include <stdlib.h>

#include "world.h"

static char long_text[300];

static struct baton_str of_length(size_t len)
{
	memset(long_text, 'n', sizeof long_text);
	return (struct baton_str){long_text, len};
}

static void refuse_put(struct world *w, const struct baton_batch *b, const char *words)
{
	struct baton_put answer;
	assert_int_equal(try_put(w, b, &answer), BATON_INVALID);
	assert_detail(words);
	size_t count;
	struct baton_queue_info info;
	assert_int_equal(baton_queue_list(w->store, BATON_STR(""), &info, 1, &count), BATON_OK);
	assert_int_equal(count, 0);
}

static void names_have_their_limits(void **state)
{
	struct world *w = *state;
	struct baton_batch b = batch_of("", "x", NULL);
	refuse_put(w, &b, "the queue's name");
	b.queue = of_length(256);
	refuse_put(w, &b, "256");
	b = batch_of("a\nb", "x", NULL);
	refuse_put(w, &b, "the queue's name");
	b = batch_of("\xff", "x", NULL);
	refuse_put(w, &b, "UTF-8");
	b = batch_of("q", "", NULL);
	b.lane = of_length(256);
	refuse_put(w, &b, "the lane's name");
	b = batch_of("q", "", NULL);
	b.source = of_length(256);
	refuse_put(w, &b, "the source key");
	b = batch_of("q", "", NULL);
	b.slot = BATON_JOIN;
	b.group = of_length(256);
	refuse_put(w, &b, "the group's name");
	b.group = b.source = b.queue = b.lane = of_length(255);
	put_batch(w, &b);
}

static void kinds_have_their_limits(void **state)
{
	struct world *w = *state;
	struct baton_batch b = batch_of("q", "x", NULL);
	b.cls = (enum baton_batch_class)3;
	refuse_put(w, &b, "class is 3: 1 (work) and 2 (command) are allowed");
	b = batch_of("q", "x", NULL);
	b.delivery = (enum baton_batch_delivery)3;
	refuse_put(w, &b, "delivery is 3");
	b = batch_of("q", "x", NULL);
	b.slot = (enum baton_batch_slot)3;
	refuse_put(w, &b, "slot is 3");
	b = batch_of("q", "x", NULL);
	b.group = BATON_STR("g");
	refuse_put(w, &b, "a group is given, but the batch joins no others");
	b = batch_of("q", "x", NULL);
	b.slot = BATON_JOIN;
	b.cls = BATON_COMMAND;
	refuse_put(w, &b, "a command joins no others");
	b = batch_of("q", "x", NULL);
	b.priority = 10;
	refuse_put(w, &b, "priority is 10: 0 to 9 are allowed");
}

static void times_have_their_limits(void **state)
{
	struct world *w = *state;
	struct baton_batch b = batch_of("q", "x", NULL);
	b.delay = baton_duration_ms(BATON_QUEUE_SPAN_MAX_MS + 1);
	refuse_put(w, &b, "are allowed");
	b.delay.ns = -1;
	refuse_put(w, &b, "delay is -1ns: 0 to");
	b.delay = baton_duration_ms(1);
	b.at.ms = START_MS;
	refuse_put(w, &b, "both a delay and a time are given");
	b.delay.ns = 0;
	b.at.ms = -1;
	refuse_put(w, &b, "the time is before 1970");
	b.at.ms = 0;
	b.retry.attempts = 1;
	refuse_put(w, &b, "backoff is 0: 1 to 3 are allowed");
	b.delay = baton_duration_ms(BATON_QUEUE_SPAN_MAX_MS);
	b.retry = (struct baton_retry){.attempts = 1, .backoff = BATON_BACKOFF_NONE};
	put_batch(w, &b);
}

static void payloads_have_their_limits(void **state)
{
	struct world *w = *state;
	struct baton_str *payloads = calloc(10001, sizeof *payloads);
	struct baton_batch b = batch_of("q", "x", payloads);
	b.count = 0;
	refuse_put(w, &b, "the batch has 0 payloads: 1 to 10000 are allowed");
	b.count = 10001;
	refuse_put(w, &b, "the batch has 10001 payloads");
	char *big = calloc(1, (1u << 20) + 1);
	payloads[0] = (struct baton_str){big, (1u << 20) + 1};
	b.count = 1;
	refuse_put(w, &b, "the payload has 1048577 bytes: queue \"q\" allows 1048576");
	payloads[0].len = 1u << 20;
	put_batch(w, &b);
	payloads[0].len = 0;
	b.count = 10000;
	put_batch(w, &b);
	free(payloads);
	free(big);
}

static void calls_have_their_limits(void **state)
{
	struct world *w = *state;
	struct baton_batch *b = calloc(10001, sizeof *b);
	struct baton_put *puts = calloc(10001, sizeof *puts);
	for (int i = 0; i < 10001; i++)
		b[i] = batch_of("q", "", NULL);
	assert_int_equal(baton_work_put(w->store, b, 10001, puts), BATON_INVALID);
	assert_detail("10001 batches in one call: at most 10000 are allowed");
	assert_int_equal(baton_work_put(w->store, b, 10000, puts), BATON_OK);
	struct baton_batch_id *ids = calloc(10001, sizeof *ids);
	enum baton_cancelled *cancelled = calloc(10001, sizeof *cancelled);
	enum baton_err *errs = calloc(10001, sizeof *errs);
	assert_int_equal(baton_work_cancel(w->store, ids, 10001, cancelled), BATON_INVALID);
	assert_detail("10001 batches in one call");
	assert_int_equal(baton_work_revive(w->store, ids, 10001, errs), BATON_INVALID);
	assert_detail("10001 batches in one call");
	free(b);
	free(puts);
	free(ids);
	free(cancelled);
	free(errs);
}

static enum baton_err claim_with(struct world *w, uint32_t claims, uint32_t max, int64_t ttl_ms)
{
	struct baton_work_claims *given = NULL;
	const struct baton_work_ask ask = {.queue = BATON_STR("q"),
	                                   .ttl = baton_duration_ms(ttl_ms),
	                                   .claims = claims,
	                                   .max = max};
	enum baton_err e = baton_work_claim(w->store, &ask, &given);
	keep_claims(w, given);
	return e;
}

static void claims_have_their_limits(void **state)
{
	struct world *w = *state;
	put(w, "q", "x");
	assert_int_equal(claim_with(w, 1001, 1, 1), BATON_INVALID);
	assert_detail("1001 claims in one call: at most 1000 are allowed");
	assert_int_equal(claim_with(w, 1, 10001, 1), BATON_INVALID);
	assert_detail("10001 batches in one call: at most 10000 are allowed");
	assert_int_equal(claim_with(w, 1, 1, -1), BATON_INVALID);
	assert_detail("1ms to 1d are allowed");
	assert_int_equal(claim_with(w, 1, 1, 86400001), BATON_INVALID);
	assert_detail("1ms to 1d are allowed");
	assert_int_equal(counts(w, "q").running, 0);
	assert_int_equal(claim_with(w, 1000, 10000, 86400000), BATON_OK);
	struct baton_work_proof *proofs = calloc(1001, sizeof *proofs);
	struct baton_work_renewal *answers = calloc(1001, sizeof *answers);
	assert_int_equal(baton_work_renew(w->store, proofs, 1001, baton_duration_ms(1), answers),
	                 BATON_INVALID);
	assert_detail("1001 renewals in one call");
	assert_int_equal(baton_work_renew(w->store, proofs, 1, baton_duration_ms(86400001),
	                                  answers),
	                 BATON_INVALID);
	assert_detail("1ms to 1d are allowed");
	free(proofs);
	free(answers);
}

static void lanes_have_their_limits(void **state)
{
	struct world *w = *state;
	struct baton_lease lease = hold_lane(w, "q", "x", NULL);
	struct baton_batch_id id = put(w, "q", "x");
	struct baton_lane_ask ask = lane_ask("q", "x", &lease);
	ask.at = (enum baton_boundary)0;
	assert_int_equal(try_lane(w, &ask, NULL), BATON_INVALID);
	assert_detail("the boundary is 0: 1 (idle) and 2 (checkpoint) are allowed");
	ask = lane_ask("q", "x", &lease);
	ask.max = 10001;
	assert_int_equal(try_lane(w, &ask, NULL), BATON_INVALID);
	assert_detail("10001 batches in one call: at most 10000 are allowed");
	ask = lane_ask("q", "x", &lease);
	ask.ttl = baton_duration_ms(86400001);
	assert_int_equal(try_lane(w, &ask, NULL), BATON_INVALID);
	assert_detail("1ms to 1d are allowed");
	ask = lane_ask("q", "x", &lease);
	ask.ids = &id;
	ask.count = 10001;
	assert_int_equal(try_lane(w, &ask, NULL), BATON_INVALID);
	assert_detail("10001 ids in one call");
	ask = lane_ask("q", "", &lease);
	assert_int_equal(try_lane(w, &ask, NULL), BATON_INVALID);
	assert_detail("the lane's name");
}

static void refuse_end(struct world *w, const struct baton_work_end *e, size_t count,
                       const char *words)
{
	static struct baton_work_ended answers[1001];
	assert_int_equal(baton_work_end(w->store, e, count, answers), BATON_INVALID);
	assert_detail(words);
}

static void ends_have_their_limits(void **state)
{
	struct world *w = *state;
	put(w, "q", "x");
	char *big = calloc(1, (1u << 20) + 1);
	struct baton_batch bad = batch_of("q/", "", NULL);
	struct baton_batch_id none;
	const struct baton_work_end good = {.proof = claim(w, "q", 1)->proof,
	                                    .how = BATON_COMPLETE};
	struct baton_work_end e = good;
	e.how = (enum baton_work_how)6;
	refuse_end(w, &e, 1, "an end of kind 6: 1 to 5 are allowed");
	e.how = BATON_FAIL;
	e.result = BATON_STR("r");
	refuse_end(w, &e, 1, "only what is completed has a result or emits work");
	e = good;
	e.result = (struct baton_str){big, (1u << 20) + 1};
	refuse_end(w, &e, 1, "the result has 1048577 bytes: at most 1048576 are allowed");
	e = good;
	e.ids = &none;
	refuse_end(w, &e, 1, "the list of batches to end is empty");
	e = good;
	e.emits = &bad;
	e.emit_count = 1;
	refuse_end(w, &e, 1, "the queue's name");
	e = good;
	e.delay.ns = -1;
	refuse_end(w, &e, 1, "delay is -1ns");
	e = good;
	e.ids = &none;
	e.count = 10001;
	refuse_end(w, &e, 1, "10001 batches in one call: at most 10000 are allowed");
	e = good;
	e.emits = &bad;
	e.emit_count = 10001;
	refuse_end(w, &e, 1, "10001 emitted batches in one call: at most 10000 are allowed");
	e = good;
	e.how = BATON_SNOOZE;
	e.delay = baton_duration_ms(BATON_QUEUE_SPAN_MAX_MS + 1);
	refuse_end(w, &e, 1, "are allowed");
	struct baton_work_end *many = calloc(1001, sizeof *many);
	refuse_end(w, many, 1001, "1001 ends in one call: at most 1000 are allowed");
	free(many);
	e = good;
	e.result = (struct baton_str){big, 1u << 20};
	assert_int_equal(end_with(w, &e).err, BATON_OK);
	free(big);
}

static void lists_have_their_limits(void **state)
{
	struct world *w = *state;
	struct baton_work_page *page;
	struct baton_work_filter f = {.max = 0};
	assert_int_equal(baton_work_list(w->store, &f, &page), BATON_INVALID);
	assert_detail("a page of 0 batches: 1 to 1000 are allowed");
	f.max = 1001;
	assert_int_equal(baton_work_list(w->store, &f, &page), BATON_INVALID);
	assert_detail("a page of 1001 batches: 1 to 1000 are allowed");
	f.max = 1;
	f.state = BATON_BATCH_GONE;
	assert_int_equal(baton_work_list(w->store, &f, &page), BATON_INVALID);
	assert_detail("batches of state 7");
	struct baton_schedules *schedules;
	assert_int_equal(baton_schedule_list(w->store, BATON_STR(""), 0, &schedules),
	                 BATON_INVALID);
	assert_detail("a page of 0 schedules: 1 to 1000 are allowed");
}

static void leases_have_their_limits(void **state)
{
	struct world *w = *state;
	struct baton_lease_answer answer;
	struct baton_lease_ask ask = {.subject = BATON_STR("")};
	assert_int_equal(baton_lease_claim(w->store, &ask, 1, &answer), BATON_INVALID);
	assert_detail("the subject");
	ask.subject = of_length(256);
	assert_int_equal(baton_lease_claim(w->store, &ask, 1, &answer), BATON_INVALID);
	assert_detail("256");
	ask.subject = BATON_STR("s");
	ask.ttl = baton_duration_ms(86400001);
	assert_int_equal(baton_lease_claim(w->store, &ask, 1, &answer), BATON_INVALID);
	assert_detail("1ms to 1d are allowed");
	ask.ttl.ns = -1;
	assert_int_equal(baton_lease_claim(w->store, &ask, 1, &answer), BATON_INVALID);
	assert_detail("ttl is -1ns: 1ms to 1d are allowed");
	ask.ttl = baton_duration_ms(86400000);
	assert_int_equal(baton_lease_claim(w->store, &ask, 1, &answer), BATON_OK);
}

static void the_longest_lane_has_a_lease_too(void **state)
{
	struct world *w = *state;
	char subject[BATON_LEASE_SUBJECT_MAX + 1];
	struct baton_str name = of_length(255);
	assert_int_equal(baton_lane_subject(name, name, subject), BATON_OK);
	assert_int_equal(strlen(subject), 5 + 255 + 1 + 255);
	struct baton_lease_answer answer;
	const struct baton_lease_ask ask = {.subject = baton_str_z(subject)};
	assert_int_equal(baton_lease_claim(w->store, &ask, 1, &answer), BATON_OK);
	static struct baton_lease_entry entry;
	size_t count;
	assert_int_equal(baton_lease_list(w->store, BATON_STR("lane/"), BATON_STR(""), &entry, 1,
	                                  &count),
	                 BATON_OK);
	assert_string_equal(entry.subject, subject);
}

static void a_store_has_a_name_that_is_known(void **state)
{
	struct world *w = *state;
	struct baton_store *store = NULL;
	struct baton_store_options o = {.where = BATON_STR("mysql://user:secret@host"),
	                                .alloc = &w->fault.alloc};
	assert_int_equal(baton_store_open(&o, &store), BATON_INVALID);
	assert_detail("\"memory:\" and \"sqlite:PATH\" are known");
	assert_null(strstr(baton_err_detail(), "secret"));
	o.where = BATON_STR("sqlite:");
	assert_int_equal(baton_store_open(&o, &store), BATON_INVALID);
	assert_detail("the path of the store has 0 bytes: 1 to 4000 without a NUL are allowed");
	o.where = BATON_STR("");
	assert_int_equal(baton_store_open(&o, &store), BATON_INVALID);
}

static const struct CMUnitTest tests[] = {
	WORLD_TEST(names_have_their_limits),          WORLD_TEST(kinds_have_their_limits),
	WORLD_TEST(times_have_their_limits),          WORLD_TEST(payloads_have_their_limits),
	WORLD_TEST(calls_have_their_limits),          WORLD_TEST(claims_have_their_limits),
	WORLD_TEST(lanes_have_their_limits),          WORLD_TEST(ends_have_their_limits),
	WORLD_TEST(lists_have_their_limits),          WORLD_TEST(leases_have_their_limits),
	WORLD_TEST(the_longest_lane_has_a_lease_too), WORLD_TEST(a_store_has_a_name_that_is_known),
};

WORLD_MAIN("limits", tests)
