/* A whole runner on the loop of its embedder: one thread, a store in memory, poll(2) and steps. */
#include <baton/queue.h>
#include <baton/runner.h>

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "support/child.h"
#include "support/harness.h"

#define MANY 50

struct world {
	struct baton_store *store;
	struct baton_str queue;
	struct baton_serve serve;
	struct baton_runner_options options;
	struct baton_engine *engine;
	pthread_t loop;
	unsigned begun, cancelled;
	uint64_t last; /* seq */
	bool out_of_order, elsewhere;
	bool keep;
	struct baton_run *kept[4];
	unsigned kept_count;
	unsigned answers; /* to who asked for more */
	size_t more;      /* batches that came so */
};

static void complete(struct baton_run *run)
{
	const struct baton_work_end end = {.how = BATON_COMPLETE};
	assert_int_equal(baton_run_end(run, &end), BATON_OK);
}

static void handle(void *arg, struct baton_run *run)
{
	struct world *w = arg;
	uint64_t seq = baton_run_claim(run)->batches[0].seq;
	w->begun++;
	w->out_of_order = w->out_of_order || seq <= w->last;
	w->elsewhere = w->elsewhere || !pthread_equal(pthread_self(), w->loop);
	w->last = seq;
	if (w->keep)
		w->kept[w->kept_count++] = run;
	else
		complete(run);
}

static void on_cancel(void *arg, struct baton_run *run)
{
	struct world *w = arg;
	const struct baton_work_end back = {.how = BATON_ABANDON};
	assert_true(baton_run_cancelled(run));
	w->cancelled++;
	assert_int_equal(baton_run_end(run, &back), BATON_OK);
}

static void world_init(struct world *w)
{
	const struct baton_store_options options = {.where = BATON_STR("memory:")};
	const struct baton_queue_policy policy = baton_queue_policy_default();
	memset(w, 0, sizeof *w);
	w->queue = BATON_STR("q");
	w->serve = (struct baton_serve){.queue = w->queue};
	w->loop = pthread_self();
	assert_int_equal(baton_store_open(&options, &w->store), BATON_OK);
	assert_int_equal(baton_queue_set(w->store, w->queue, &policy), BATON_OK);
	w->options = (struct baton_runner_options){
		.store = w->store,
		.ask = {.name = BATON_STR("r"), .weight = 1},
		.serves = &w->serve,
		.serve_count = 1,
		.slots = 4,
		.handler = {.call = handle,
	                    .cancel = on_cancel,
	                    .arg = w,
	                    .overtime = BATON_OVERTIME_ABORT,
	                    .on_loop = true},
	};
}

static int setup(void **state)
{
	static struct world w;
	world_init(&w);
	*state = &w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	baton_engine_close(w->engine);
	baton_store_close(w->store);
	return 0;
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

/* Waits as an embedder does, and has the runner do what there is. False: it is over. */
static bool turn(struct world *w, enum baton_err *ret)
{
	struct pollfd fd = {.fd = baton_engine_fd(w->engine), .events = POLLIN};
	assert_int_equal(poll(&fd, 1, -1), 1);
	return baton_engine_step(w->engine, ret);
}

static void start(struct world *w)
{
	enum baton_err err;
	assert_int_equal(baton_engine_open(&w->options, &w->engine), BATON_OK);
	assert_true(baton_engine_step(w->engine, &err));
}

static void turn_to_the_end(struct world *w)
{
	enum baton_err err = BATON_SYSTEM;
	while (turn(w, &err))
		;
	assert_int_equal(err, BATON_OK);
}

static void a_whole_life_is_led_on_one_thread(void **state)
{
	struct world *w = *state;
	struct baton_queue_info info;
	w->options.until_empty = true;
	put(w, "lane", MANY);
	start(w);
	turn_to_the_end(w);
	assert_int_equal(w->begun, MANY);
	assert_false(w->out_of_order);
	assert_false(w->elsewhere);
	assert_int_equal(baton_queue_get(w->store, w->queue, &info), BATON_OK);
	assert_int_equal(info.counts.done, MANY);
}

static void what_is_put_and_what_ends_later_makes_the_descriptor_readable(void **state)
{
	struct world *w = *state;
	enum baton_err err;
	start(w);
	w->keep = true;
	put(w, "", 3);
	while (w->begun < 3)
		assert_true(turn(w, &err));
	struct baton_runner_status status;
	baton_engine_look(w->engine, &status);
	assert_int_equal(status.running, 3);
	for (unsigned i = 0; i < 3; i++)
		complete(w->kept[i]);
	do {
		assert_true(turn(w, &err));
		baton_engine_look(w->engine, &status);
	} while (status.completed < 3);
	baton_engine_stop(w->engine, baton_duration_s(3600));
	turn_to_the_end(w);
}

static void on_more(void *arg, struct baton_run *run, const struct baton_work_claim *claim)
{
	struct world *w = arg;
	assert_ptr_equal(run, w->kept[0]);
	w->elsewhere = w->elsewhere || !pthread_equal(pthread_self(), w->loop);
	w->more += claim ? claim->count : 0;
	w->answers++;
}

static void a_function_of_the_loop_is_called_with_more(void **state)
{
	struct world *w = *state;
	const struct baton_str payload = BATON_STR("p");
	const struct baton_batch batch = {.queue = w->queue,
	                                  .lane = BATON_STR("x"),
	                                  .slot = BATON_JOIN,
	                                  .payloads = &payload,
	                                  .count = 1};
	const struct baton_batch batches[] = {batch, batch, batch};
	const struct baton_work_claim *none;
	struct baton_queue_info info;
	struct baton_put puts[3];
	enum baton_err err;
	start(w);
	w->keep = true;
	assert_int_equal(baton_work_put(w->store, batches, 3, puts), BATON_OK);
	while (w->begun < 1)
		assert_true(turn(w, &err));
	assert_int_equal(baton_run_more(w->kept[0], 1, &none), BATON_INVALID);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(baton_run_ask(w->kept[0], 10, on_more, w), BATON_OK);
		assert_int_equal(baton_run_ask(w->kept[0], 10, on_more, w), BATON_BUSY);
		while (w->answers <= i)
			assert_true(turn(w, &err));
		assert_int_equal(w->more, 2);
	}
	assert_false(w->elsewhere);
	complete(w->kept[0]);
	baton_engine_stop(w->engine, baton_duration_s(3600));
	turn_to_the_end(w);
	assert_int_equal(baton_queue_get(w->store, w->queue, &info), BATON_OK);
	assert_int_equal(info.counts.done, 3);
}

static void what_runs_is_cancelled_by_a_call_when_it_is_detached(void **state)
{
	struct world *w = *state;
	enum baton_err err;
	w->keep = true;
	put(w, "x", 1);
	start(w);
	while (w->begun < 1)
		assert_true(turn(w, &err));
	baton_engine_detach(w->engine);
	while (w->cancelled < 1)
		assert_true(turn(w, &err));
	w->keep = false;
	baton_engine_attach(w->engine);
	while (w->begun < 2)
		assert_true(turn(w, &err));
	baton_engine_stop(w->engine, baton_duration_s(3600));
	turn_to_the_end(w);
	assert_int_equal(w->cancelled, 1);
}

static void why_it_is_over_is_told_with_the_last_step(void **state)
{
	struct world *w = *state;
	enum baton_err err = BATON_OK;
	w->options.ask.name = (struct baton_str){NULL, 0};
	start(w);
	while (turn(w, &err))
		;
	assert_int_equal(err, BATON_INVALID);
	assert_non_null(strstr(baton_err_detail(), "name"));
}

/* Holds the loop up for ever. */
static void hang(void *arg, struct baton_run *run)
{
	(void)run;
	channel_send(*(int *)arg, "begun");
	for (;;)
		pause();
}

static int hung_body(int channel, void *arg)
{
	static struct world w;
	enum baton_err err;
	(void)arg;
	setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
	signal(SIGABRT, SIG_DFL);
	world_init(&w);
	w.options.ask.ttl = baton_duration_ms(1000);
	w.options.beat = baton_duration_ms(200);
	w.options.margin = baton_duration_ms(400);
	w.options.handler.call = hang;
	w.options.handler.arg = &channel;
	put(&w, "x", 1);
	if (baton_engine_open(&w.options, &w.engine) == BATON_OK)
		err = baton_engine_run(w.engine);
	else
		err = BATON_SYSTEM;
	return (int)err;
}

static void a_function_that_holds_the_loop_up_is_ended_with_its_process(void **state)
{
	(void)state;
	struct child c;
	char message[16];
	child_start(&c, hung_body, NULL);
	assert_true(channel_receive(c.channel, message, sizeof message));
	assert_int_equal(child_reap(&c), 128 + SIGABRT);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_whole_life_is_led_on_one_thread),
		TEST(what_is_put_and_what_ends_later_makes_the_descriptor_readable),
		TEST(a_function_of_the_loop_is_called_with_more),
		TEST(what_runs_is_cancelled_by_a_call_when_it_is_detached),
		TEST(why_it_is_over_is_told_with_the_last_step),
		cmocka_unit_test(a_function_that_holds_the_loop_up_is_ended_with_its_process),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
