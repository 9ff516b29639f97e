/* Functions that run on when their runner has lost its shards: the process is aborted, or what they
 * did is refused, as the embedder has said. */
#include <baton/queue.h>
#include <baton/runner.h>

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "support/child.h"
#include "support/harness.h"

#define BOUND_MS 60000

/* In a process of its own: a runner with one job, whose function does not heed that it should
 * stop. */
struct world {
	struct baton_store *store;
	struct baton_engine *engine;
	pthread_t thread;
	enum baton_err result;
	sem_t begun, go_on;
	_Atomic unsigned calls;
	struct baton_run *first;
};

/* In the process of its own there is nobody to assert to. */
static void need_at(bool ok, int line)
{
	if (ok)
		return;
	printf("# line %d\n", line);
	exit(9);
}

#define need(ok) need_at((ok), __LINE__)

static void handle(void *arg, struct baton_run *run)
{
	struct world *w = arg;
	const struct baton_work_end end = {.how = BATON_COMPLETE};
	if (atomic_fetch_add(&w->calls, 1) == 0) {
		w->first = run;
		sem_post(&w->begun);
		sem_wait(&w->go_on);
	}
	need(baton_run_end(run, &end) == BATON_OK);
}

static void *run(void *arg)
{
	struct world *w = arg;
	w->result = baton_engine_run(w->engine);
	return NULL;
}

static void put_one(const struct world *w)
{
	const struct baton_queue_policy policy = baton_queue_policy_default();
	const struct baton_str payload = BATON_STR("p");
	const struct baton_batch batch = {.queue = BATON_STR("q"),
	                                  .lane = BATON_STR("x"),
	                                  .payloads = &payload,
	                                  .count = 1};
	struct baton_put answer;
	need(baton_queue_set(w->store, BATON_STR("q"), &policy) == BATON_OK);
	need(baton_work_put(w->store, &batch, 1, &answer) == BATON_OK);
}

static void begin(struct world *w, enum baton_overtime overtime)
{
	const struct baton_store_options memory = {.where = BATON_STR("memory:")};
	const struct baton_serve serve = {.queue = BATON_STR("q")};
	need(baton_store_open(&memory, &w->store) == BATON_OK);
	const struct baton_runner_options options = {
		.store = w->store,
		.ask = {.name = BATON_STR("r"), .weight = 1, .ttl = baton_duration_ms(1000)},
		.serves = &serve,
		.serve_count = 1,
		.slots = 2,
		.beat = baton_duration_ms(100),
		.margin = baton_duration_ms(400),
		.handler = {.call = handle, .arg = w, .overtime = overtime},
	};
	sem_init(&w->begun, 0, 0);
	sem_init(&w->go_on, 0, 0);
	put_one(w);
	need(baton_engine_open(&options, &w->engine) == BATON_OK);
	need(pthread_create(&w->thread, NULL, run, w) == 0);
	while (sem_wait(&w->begun) != 0)
		;
}

/* Somebody else takes its place. */
static void take_over(const struct world *w)
{
	struct baton_runner_info info;
	size_t count;
	enum baton_err e = BATON_NOT_HELD;
	while (e == BATON_NOT_HELD) {
		need(baton_runner_list(w->store, 0, &info, 1, &count) == BATON_OK && count == 1);
		e = baton_runner_take_over(w->store, &info);
	}
	need(e == BATON_OK);
}

/* Waits until the time of its shard is over, as the function could ask itself. */
static void await_hard_stop(const struct world *w)
{
	while (baton_run_left(w->first).ns > 0)
		sched_yield();
	need(baton_run_cancelled(w->first));
}

/* Lets a recovery window pass: much longer than it takes to abort a process. */
static void await_window(const struct world *w)
{
	struct baton_runner_status status;
	baton_engine_detach(w->engine);
	baton_engine_attach(w->engine);
	do {
		sched_yield();
		baton_engine_look(w->engine, &status);
	} while (status.detach.state != BATON_ATTACHED);
}

static int aborted(int channel, void *arg)
{
	static struct world w;
	(void)channel;
	(void)arg;
	setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
	signal(SIGABRT, SIG_DFL);
	begin(&w, BATON_OVERTIME_ABORT);
	take_over(&w);
	await_hard_stop(&w);
	poll(NULL, 0, BOUND_MS);
	return 1;
}

static void a_function_that_outlives_its_shard_is_ended_with_its_process(void **state)
{
	struct child c;
	(void)state;
	child_start(&c, aborted, NULL);
	assert_int_equal(child_reap(&c), 128 + SIGABRT);
}

static uint64_t done(const struct world *w)
{
	struct baton_queue_info info;
	need(baton_queue_get(w->store, BATON_STR("q"), &info) == BATON_OK);
	return info.counts.done;
}

static int fenced(int channel, void *arg)
{
	static struct world w;
	struct baton_runner_status status;
	(void)channel;
	(void)arg;
	begin(&w, BATON_OVERTIME_FENCED);
	take_over(&w);
	await_hard_stop(&w);
	await_window(&w);
	baton_engine_look(w.engine, &status);
	need(status.detached > 0 && done(&w) == 0);
	/* Only when that has ended does it register anew, and the job is handled once more. */
	need(status.number == 0 && status.shards == 0 && status.running == 1);
	sem_post(&w.go_on);
	while (done(&w) == 0)
		sched_yield();
	baton_engine_stop(w.engine, baton_duration_s(3600));
	pthread_join(w.thread, NULL);
	baton_engine_look(w.engine, &status);
	need(w.result == BATON_OK && atomic_load(&w.calls) == 2 && done(&w) == 1);
	need(status.refused == 1 && status.completed == 1);
	baton_engine_close(w.engine);
	baton_store_close(w.store);
	return 0;
}

static void one_whose_effects_are_fenced_goes_on_and_what_it_did_is_refused(void **state)
{
	struct child c;
	(void)state;
	child_start(&c, fenced, NULL);
	assert_int_equal(child_reap(&c), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_function_that_outlives_its_shard_is_ended_with_its_process),
		cmocka_unit_test(one_whose_effects_are_fenced_goes_on_and_what_it_did_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
