/* A whole runner in this process: its threads, a store in memory, and functions as handlers. */
#include <baton/progress.h>
#include <baton/queue.h>
#include <baton/runner.h>

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "support/harness.h"

#define MANY 200

/* What handlers leave, and what they wait for. */
struct diary {
	pthread_mutex_t mu;
	pthread_cond_t changed;
	unsigned begun;
	struct baton_run *kept[8]; /* those that were not ended at once */
	unsigned kept_count;
	uint64_t seqs[MANY];
	enum baton_work_how how;
	bool keep;
	const struct baton_batch *emit;
	size_t emit_count;
};

struct world {
	struct baton_store *store;
	struct baton_str queue;
	struct baton_serve serve;
	struct diary diary;
	struct baton_engine *engine;
	pthread_t thread;
	enum baton_err result;
};

static int setup(void **state)
{
	static struct world w;
	memset(&w, 0, sizeof w);
	const struct baton_store_options options = {.where = BATON_STR("memory:")};
	const struct baton_queue_policy policy = baton_queue_policy_default();
	w.queue = BATON_STR("q");
	w.serve = (struct baton_serve){.queue = w.queue};
	w.diary.how = BATON_COMPLETE;
	pthread_mutex_init(&w.diary.mu, NULL);
	pthread_cond_init(&w.diary.changed, NULL);
	assert_int_equal(baton_store_open(&options, &w.store), BATON_OK);
	assert_int_equal(baton_queue_set(w.store, w.queue, &policy), BATON_OK);
	*state = &w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	baton_engine_close(w->engine);
	baton_store_close(w->store);
	pthread_cond_destroy(&w->diary.changed);
	pthread_mutex_destroy(&w->diary.mu);
	return 0;
}

static void handle(void *arg, struct baton_run *run)
{
	struct diary *d = arg;
	const struct baton_work_claim *claim = baton_run_claim(run);
	pthread_mutex_lock(&d->mu);
	if (d->begun < MANY)
		d->seqs[d->begun] = claim->batches[0].seq;
	d->begun++;
	bool keep = d->keep;
	if (keep)
		d->kept[d->kept_count++] = run;
	const struct baton_work_end end = {
		.how = d->how,
		.error = d->how == BATON_COMPLETE ? (struct baton_str){NULL, 0} : BATON_STR("no"),
		.emits = d->emit,
		.emit_count = d->emit ? d->emit_count : 0,
	};
	d->emit = NULL;
	pthread_cond_broadcast(&d->changed);
	pthread_mutex_unlock(&d->mu);
	if (!keep)
		assert_int_equal(baton_run_end(run, &end), BATON_OK);
}

static struct baton_runner_options options_of(struct world *w)
{
	return (struct baton_runner_options){
		.store = w->store,
		.ask = {.name = BATON_STR("r"), .weight = 1},
		.serves = &w->serve,
		.serve_count = 1,
		.slots = 4,
		.handler = {.call = handle, .arg = &w->diary, .overtime = BATON_OVERTIME_FENCED},
	};
}

static void *run(void *arg)
{
	struct world *w = arg;
	w->result = baton_engine_run(w->engine);
	return NULL;
}

static void start(struct world *w, const struct baton_runner_options *options)
{
	assert_int_equal(baton_engine_open(options, &w->engine), BATON_OK);
	assert_int_equal(pthread_create(&w->thread, NULL, run, w), 0);
}

static void stop(struct world *w)
{
	baton_engine_stop(w->engine, baton_duration_s(3600));
	pthread_join(w->thread, NULL);
	assert_int_equal(w->result, BATON_OK);
}

static void put(struct world *w, const char *lane, int count)
{
	const struct baton_str payload = BATON_STR("p");
	const struct baton_batch batch = {
		.queue = w->queue,
		.lane = baton_str_z(lane),
		.payloads = &payload,
		.count = 1,
	};
	struct baton_put answer;
	for (int i = 0; i < count; i++)
		assert_int_equal(baton_work_put(w->store, &batch, 1, &answer), BATON_OK);
}

static struct baton_queue_counts counts_of(struct world *w)
{
	struct baton_queue_info info;
	assert_int_equal(baton_queue_get(w->store, w->queue, &info), BATON_OK);
	return info.counts;
}

static void await_begun(struct diary *d, unsigned count)
{
	pthread_mutex_lock(&d->mu);
	while (d->begun < count)
		pthread_cond_wait(&d->changed, &d->mu);
	pthread_mutex_unlock(&d->mu);
}

static void a_lane_is_handled_in_order_until_it_is_empty(void **state)
{
	struct world *w = *state;
	struct baton_runner_options options = options_of(w);
	options.until_empty = true;
	put(w, "lane", MANY);
	start(w, &options);
	pthread_join(w->thread, NULL);
	assert_int_equal(w->result, BATON_OK);
	assert_int_equal(w->diary.begun, MANY);
	for (unsigned i = 1; i < MANY; i++)
		assert_true(w->diary.seqs[i] > w->diary.seqs[i - 1]);
	assert_int_equal(counts_of(w).done, MANY);
	struct baton_runner_info info;
	size_t count;
	assert_int_equal(baton_runner_list(w->store, 0, &info, 1, &count), BATON_OK);
	assert_int_equal(count, 0);
}

static void what_is_put_while_it_waits_is_handled(void **state)
{
	struct world *w = *state;
	struct baton_runner_options options = options_of(w);
	start(w, &options);
	for (unsigned i = 1; i <= 20; i++) {
		put(w, "", 1);
		await_begun(&w->diary, i);
	}
	stop(w);
	assert_int_equal(counts_of(w).done, 20);
}

static void a_run_is_ended_later_by_another_thread(void **state)
{
	struct world *w = *state;
	struct baton_runner_options options = options_of(w);
	w->diary.keep = true;
	put(w, "", 4);
	start(w, &options);
	await_begun(&w->diary, 4);
	const struct baton_work_end end = {.how = BATON_COMPLETE, .result = BATON_STR("done")};
	for (unsigned i = 0; i < 4; i++) {
		assert_false(baton_run_cancelled(w->diary.kept[i]));
		assert_int_equal(baton_run_end(w->diary.kept[i], &end), BATON_OK);
	}
	stop(w);
	assert_int_equal(counts_of(w).done, 4);
}

static void follow_up_work_is_put_with_the_completion(void **state)
{
	struct world *w = *state;
	struct baton_runner_options options = options_of(w);
	const struct baton_str payload = BATON_STR("next");
	const struct baton_batch emit = {.queue = w->queue, .payloads = &payload, .count = 1};
	w->diary.emit = &emit;
	w->diary.emit_count = 1;
	options.until_empty = true;
	put(w, "", 1);
	start(w, &options);
	pthread_join(w->thread, NULL);
	assert_int_equal(w->result, BATON_OK);
	assert_int_equal(w->diary.begun, 2);
	assert_int_equal(counts_of(w).done, 2);
}

static void follow_up_work_waits_for_its_time(void **state)
{
	struct world *w = *state;
	struct baton_runner_options options = options_of(w);
	const struct baton_str payload = BATON_STR("later");
	const struct baton_batch emits[] = {
		{.queue = w->queue,
	         .payloads = &payload,
	         .count = 1,
	         .delay = baton_duration_s(86400)},
		{.queue = w->queue,
	         .payloads = &payload,
	         .count = 1,
	         .at = {INT64_C(4000000000000)}},
	};
	const struct baton_work_filter filter = {.queue = w->queue, .max = 10};
	struct baton_work_page *page;
	w->diary.emit = emits;
	w->diary.emit_count = 2;
	options.until_empty = true;
	put(w, "", 1);
	start(w, &options);
	pthread_join(w->thread, NULL);
	assert_int_equal(w->result, BATON_OK);
	assert_int_equal(w->diary.begun, 1);
	assert_int_equal(baton_work_list(w->store, &filter, &page), BATON_OK);
	assert_int_equal(page->count, 2);
	assert_int_equal(page->infos[0].state, BATON_BATCH_DELAYED);
	assert_int_equal(page->infos[1].state, BATON_BATCH_DELAYED);
	assert_int_equal(page->infos[1].due.ms, INT64_C(4000000000000));
	baton_work_page_free(page);
}

static void an_end_beyond_a_limit_fails_the_run(void **state)
{
	struct world *w = *state;
	struct baton_runner_options options = options_of(w);
	static char big[BATON_RESULT_MAX + 1];
	const struct baton_work_end end = {
		.how = BATON_COMPLETE,
		.result = {big, sizeof big},
	};
	w->diary.keep = true;
	put(w, "", 1);
	start(w, &options);
	await_begun(&w->diary, 1);
	assert_int_equal(baton_run_end(w->diary.kept[0], &end), BATON_INVALID);
	stop(w);
	assert_int_equal(counts_of(w).done, 0);
	assert_int_equal(counts_of(w).failed, 1);
}

static void detached_by_hand_it_cancels_what_runs_and_attached_it_goes_on(void **state)
{
	struct world *w = *state;
	struct baton_runner_options options = options_of(w);
	struct baton_runner_status status;
	const struct baton_work_end back = {.how = BATON_ABANDON};
	w->diary.keep = true;
	put(w, "x", 1);
	start(w, &options);
	await_begun(&w->diary, 1);
	baton_engine_detach(w->engine);
	while (!baton_run_cancelled(w->diary.kept[0]))
		sched_yield();
	baton_engine_look(w->engine, &status);
	assert_int_equal(status.detach.state, BATON_DETACHED);
	assert_string_equal(status.detach.text, "manual detachment");
	pthread_mutex_lock(&w->diary.mu);
	w->diary.keep = false;
	pthread_mutex_unlock(&w->diary.mu);
	baton_run_end(w->diary.kept[0], &back);
	baton_engine_attach(w->engine);
	await_begun(&w->diary, 2);
	stop(w);
	assert_int_equal(counts_of(w).done, 1);
	baton_engine_look(w->engine, &status);
	assert_int_equal(status.completed, 1);
	assert_int_equal(status.detached, 1);
}

/* What was told of the only job; false: nothing yet. */
static bool told(struct world *w, struct baton_progress *ret)
{
	const struct baton_work_filter filter = {.queue = w->queue, .max = 1};
	struct baton_work_page *page;
	assert_int_equal(baton_work_list(w->store, &filter, &page), BATON_OK);
	assert_int_equal(page->count, 1);
	enum baton_err e = baton_progress_read(w->store, &page->infos[0], ret);
	assert_true(e == BATON_OK || e == BATON_NOT_FOUND);
	baton_work_page_free(page);
	return e == BATON_OK;
}

static void how_far_a_run_is_can_be_seen_while_it_runs(void **state)
{
	struct world *w = *state;
	struct baton_runner_options options = options_of(w);
	const struct baton_work_end end = {.how = BATON_COMPLETE};
	struct baton_progress p;
	options.beat = baton_duration_ms(20);
	w->diary.keep = true;
	put(w, "x", 1);
	assert_false(told(w, &p));
	start(w, &options);
	await_begun(&w->diary, 1);
	struct baton_run *run = w->diary.kept[0];
	assert_int_equal(baton_run_progress(run, 101, BATON_STR("")), BATON_INVALID);
	assert_int_equal(baton_run_progress(run, -2, BATON_STR("")), BATON_INVALID);
	assert_int_equal(baton_run_progress(run, 1, BATON_STR("\xff")), BATON_INVALID);
	assert_int_equal(baton_run_progress(run, 10, BATON_STR("begun")), BATON_OK);
	while (!told(w, &p))
		sched_yield();
	for (int i = 11; i <= 90; i++)
		assert_int_equal(baton_run_progress(run, i, BATON_STR("goes on")), BATON_OK);
	while (!told(w, &p) || p.percent != 90)
		sched_yield();
	assert_string_equal(p.text, "goes on");
	assert_true(p.at.ms > 0);
	baton_run_end(run, &end);
	stop(w);
	assert_int_equal(counts_of(w).done, 1);
}

static void a_run_knows_how_long_it_may_take_and_is_told_when_that_is_over(void **state)
{
	struct world *w = *state;
	struct baton_runner_options options = options_of(w);
	const struct baton_work_end end = {.how = BATON_COMPLETE};
	options.handler.timeout = baton_duration_ms(1);
	w->diary.keep = true;
	put(w, "", 2);
	start(w, &options);
	await_begun(&w->diary, 2);
	for (unsigned i = 0; i < 2; i++) {
		while (!baton_run_cancelled(w->diary.kept[i]))
			sched_yield();
		assert_int_equal(baton_run_left(w->diary.kept[i]).ns, 0);
		assert_int_equal(baton_run_end(w->diary.kept[i], &end), BATON_OK);
	}
	stop(w);
	assert_int_equal(counts_of(w).done, 2);
}

static void without_a_timeout_it_may_take_as_long_as_the_shard_is_its_own(void **state)
{
	struct world *w = *state;
	struct baton_runner_options options = options_of(w);
	const struct baton_work_end end = {.how = BATON_COMPLETE};
	options.ask.ttl = baton_duration_s(3600);
	w->diary.keep = true;
	put(w, "", 1);
	start(w, &options);
	await_begun(&w->diary, 1);
	struct baton_duration left = baton_run_left(w->diary.kept[0]);
	assert_true(left.ns > baton_duration_s(60).ns);
	assert_true(left.ns <= baton_duration_s(3600).ns);
	assert_int_equal(baton_run_end(w->diary.kept[0], &end), BATON_OK);
	stop(w);
}

/* One job with a key, which may be held for so long. */
static void put_held(struct world *w, int64_t ttl_ms)
{
	const struct baton_str payload = BATON_STR("p");
	const struct baton_batch batch = {.queue = w->queue,
	                                  .key = BATON_STR("k"),
	                                  .payloads = &payload,
	                                  .count = 1};
	struct baton_queue_policy policy = baton_queue_policy_default();
	struct baton_put put;
	policy.key_ttl = baton_duration_ms(ttl_ms);
	assert_int_equal(baton_queue_set(w->store, w->queue, &policy), BATON_OK);
	assert_int_equal(baton_work_put(w->store, &batch, 1, &put), BATON_OK);
}

static void a_run_that_holds_a_key_for_too_long_is_told(void **state)
{
	struct world *w = *state;
	struct baton_runner_options options = options_of(w);
	const struct baton_work_end end = {.how = BATON_COMPLETE};
	options.handler.timeout = baton_duration_s(3600);
	w->diary.keep = true;
	put_held(w, 1);
	start(w, &options);
	await_begun(&w->diary, 1);
	while (!baton_run_cancelled(w->diary.kept[0]))
		sched_yield();
	assert_int_equal(baton_run_left(w->diary.kept[0]).ns, 0);
	assert_int_equal(baton_run_end(w->diary.kept[0], &end), BATON_OK);
	stop(w);
}

static void a_run_that_says_how_far_it_is_goes_on_holding_its_key(void **state)
{
	struct world *w = *state;
	struct baton_runner_options options = options_of(w);
	const struct baton_work_end end = {.how = BATON_COMPLETE};
	const struct baton_duration hold = baton_duration_s(600);
	options.ask.ttl = baton_duration_s(3600);
	w->diary.keep = true;
	put_held(w, 600000);
	start(w, &options);
	await_begun(&w->diary, 1);
	struct baton_run *run = w->diary.kept[0];
	struct baton_duration left = baton_run_left(run);
	assert_true(left.ns <= hold.ns);
	while (hold.ns - left.ns < 1000000)
		left = baton_run_left(run);
	/* As often as it takes to be quicker than that. */
	while (baton_run_left(run).ns <= left.ns)
		assert_int_equal(baton_run_progress(run, 1, BATON_STR("")), BATON_OK);
	assert_int_equal(baton_run_end(run, &end), BATON_OK);
	stop(w);
}

static void put_joined(struct world *w, const char *lane)
{
	const struct baton_str payload = BATON_STR("p");
	const struct baton_batch batch = {
		.queue = w->queue,
		.lane = baton_str_z(lane),
		.slot = BATON_JOIN,
		.payloads = &payload,
		.count = 1,
	};
	struct baton_put answer;
	assert_int_equal(baton_work_put(w->store, &batch, 1, &answer), BATON_OK);
}

static void a_run_takes_more_of_its_lane_and_ends_with_all_of_it(void **state)
{
	struct world *w = *state;
	struct baton_runner_options options = options_of(w);
	const struct baton_work_end end = {.how = BATON_COMPLETE};
	const struct baton_work_claim *more = NULL, *none;
	w->diary.keep = true;
	put_joined(w, "x");
	start(w, &options);
	await_begun(&w->diary, 1);
	struct baton_run *run = w->diary.kept[0];
	assert_int_equal(baton_run_more(run, 0, &more), BATON_INVALID);
	assert_int_equal(baton_run_more(run, BATON_JOIN_MAX + 1, &more), BATON_INVALID);
	assert_int_equal(baton_run_more(run, 10, &more), BATON_OK);
	assert_null(more);
	for (int i = 0; i < 3; i++)
		put_joined(w, "x");
	assert_int_equal(baton_run_more(run, 2, &more), BATON_OK);
	assert_int_equal(more->count, 2);
	assert_true(more->fence.v > baton_run_claim(run)->fence.v);
	assert_true(more->batches[0].seq > baton_run_claim(run)->batches[0].seq);
	assert_int_equal(baton_run_more(run, 10, &more), BATON_OK);
	assert_int_equal(more->count, 1);
	assert_int_equal(baton_run_more(run, 10, &none), BATON_OK);
	assert_null(none);
	assert_int_equal(counts_of(w).running, 4);
	assert_int_equal(baton_run_end(run, &end), BATON_OK);
	stop(w);
	assert_int_equal(counts_of(w).done, 4);
	assert_int_equal(w->diary.begun, 1);
}

static void what_a_run_took_fails_with_it(void **state)
{
	struct world *w = *state;
	struct baton_runner_options options = options_of(w);
	const struct baton_str payload = BATON_STR("p"), other = BATON_STR("other");
	struct baton_batch known = {.queue = BATON_STR("f"),
	                            .source = BATON_STR("once"),
	                            .payloads = &payload,
	                            .count = 1};
	struct baton_batch emit = known;
	struct baton_put answer;
	const struct baton_work_claim *more = NULL;
	emit.payloads = &other;
	assert_int_equal(baton_work_put(w->store, &known, 1, &answer), BATON_OK);
	const struct baton_work_end end = {.how = BATON_COMPLETE, .emits = &emit, .emit_count = 1};
	options.claims = 1;
	w->diary.keep = true;
	put_joined(w, "x");
	put_joined(w, "x");
	start(w, &options);
	await_begun(&w->diary, 1);
	assert_int_equal(baton_run_more(w->diary.kept[0], 1, &more), BATON_OK);
	assert_int_equal(more->count, 1);
	assert_int_equal(baton_run_end(w->diary.kept[0], &end), BATON_OK);
	pthread_join(w->thread, NULL);
	assert_int_equal(w->result, BATON_OK);
	assert_int_equal(counts_of(w).done, 0);
	assert_int_equal(counts_of(w).failed, 2);
}

/* A checkpoint of a run whose runner is stopped, or detached, gets nothing, and does not wait. */
static void who_is_to_stop_gets_nothing_more(void **state)
{
	struct world *w = *state;
	struct baton_runner_options options = options_of(w);
	const struct baton_work_end back = {.how = BATON_ABANDON};
	const struct baton_work_claim *more;
	w->diary.keep = true;
	put_joined(w, "x");
	start(w, &options);
	await_begun(&w->diary, 1);
	put_joined(w, "x");
	baton_engine_stop(w->engine, baton_duration_s(0));
	while (!baton_run_cancelled(w->diary.kept[0]))
		sched_yield();
	assert_int_equal(baton_run_more(w->diary.kept[0], 1, &more), BATON_OK);
	assert_null(more);
	assert_int_equal(baton_run_end(w->diary.kept[0], &back), BATON_OK);
	pthread_join(w->thread, NULL);
	assert_int_equal(w->result, BATON_OK);
	assert_int_equal(counts_of(w).ready, 2);
}

static void bad_options_are_named(void **state)
{
	struct world *w = *state;
	struct baton_engine *e = NULL;
	struct baton_runner_options good = options_of(w), bad;
	char *none[] = {NULL};
	bad = good, bad.serve_count = 0;
	assert_int_equal(baton_engine_open(&bad, &e), BATON_INVALID);
	assert_string_equal(baton_err_detail(), "0 queues: 1 to 64 are allowed");
	bad = good, bad.handler.overtime = 0;
	assert_int_equal(baton_engine_open(&bad, &e), BATON_INVALID);
	bad = good, bad.handler.command = none;
	assert_int_equal(baton_engine_open(&bad, &e), BATON_INVALID);
	bad = good, bad.slots = BATON_RUNNER_SLOTS_MAX + 1;
	assert_int_equal(baton_engine_open(&bad, &e), BATON_INVALID);
	bad = good, bad.ask.ttl = baton_duration_s(7);
	assert_int_equal(baton_engine_open(&bad, &e), BATON_INVALID);
	assert_string_equal(
		baton_err_detail(),
		"ttl is 7s: it has to be at least three beats of 1s and a margin of 5s, so "
		"make it longer, or those shorter");
	bad = good, bad.ask.name = (struct baton_str){NULL, 0};
	start(w, &bad);
	pthread_join(w->thread, NULL);
	assert_int_equal(w->result, BATON_INVALID);
	assert_null(e);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_lane_is_handled_in_order_until_it_is_empty),
		TEST(what_is_put_while_it_waits_is_handled),
		TEST(a_run_is_ended_later_by_another_thread),
		TEST(follow_up_work_is_put_with_the_completion),
		TEST(follow_up_work_waits_for_its_time),
		TEST(an_end_beyond_a_limit_fails_the_run),
		TEST(detached_by_hand_it_cancels_what_runs_and_attached_it_goes_on),
		TEST(how_far_a_run_is_can_be_seen_while_it_runs),
		TEST(a_run_knows_how_long_it_may_take_and_is_told_when_that_is_over),
		TEST(without_a_timeout_it_may_take_as_long_as_the_shard_is_its_own),
		TEST(a_run_that_holds_a_key_for_too_long_is_told),
		TEST(a_run_that_says_how_far_it_is_goes_on_holding_its_key),
		TEST(a_run_takes_more_of_its_lane_and_ends_with_all_of_it),
		TEST(what_a_run_took_fails_with_it),
		TEST(who_is_to_stop_gets_nothing_more),
		TEST(bad_options_are_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
