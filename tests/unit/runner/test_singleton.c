/* Singletons that are functions, and the ticker, in whole runners on a store in memory. */
#include <baton/lease.h>
#include <baton/queue.h>
#include <baton/runner.h>
#include <baton/schedule.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/harness.h"

#define RUNNERS 2

/* What instances leave, and what they wait for. */
struct diary {
	pthread_mutex_t mu;
	pthread_cond_t changed;
	unsigned begun, ended, running, most;
	uint64_t fences[16];
	bool brief; /* an instance ends at once */
};

struct world {
	struct baton_store *store;
	struct diary diary;
	struct baton_singleton singleton;
	struct runner {
		struct baton_engine *engine;
		pthread_t thread;
		enum baton_err result;
		bool runs;
	} runners[RUNNERS];
};

static void note(struct diary *d, const struct baton_duty *duty)
{
	pthread_mutex_lock(&d->mu);
	d->fences[d->begun++ % 16] = baton_duty_fence(duty).v;
	d->running++;
	d->most = d->running > d->most ? d->running : d->most;
	pthread_cond_broadcast(&d->changed);
	pthread_mutex_unlock(&d->mu);
}

static void be_the_one(void *arg, struct baton_duty *duty)
{
	struct diary *d = arg;
	note(d, duty);
	while (!d->brief && baton_duty_rest(duty, baton_duration_s(3600)))
		;
	pthread_mutex_lock(&d->mu);
	d->running--;
	d->ended++;
	pthread_cond_broadcast(&d->changed);
	pthread_mutex_unlock(&d->mu);
}

static int setup(void **state)
{
	static struct world w;
	const struct baton_store_options options = {.where = BATON_STR("memory:")};
	memset(&w, 0, sizeof w);
	pthread_mutex_init(&w.diary.mu, NULL);
	pthread_cond_init(&w.diary.changed, NULL);
	assert_int_equal(baton_store_open(&options, &w.store), BATON_OK);
	w.singleton = (struct baton_singleton){
		.name = BATON_STR("one"),
		.call = be_the_one,
		.arg = &w.diary,
		.overtime = BATON_OVERTIME_ABORT,
	};
	*state = &w;
	return 0;
}

static void *run(void *arg)
{
	struct runner *r = arg;
	r->result = baton_engine_run(r->engine);
	return NULL;
}

static struct baton_runner_options options_of(struct world *w, size_t i)
{
	static const struct baton_str names[RUNNERS] = {BATON_STR("a"), BATON_STR("b")};
	return (struct baton_runner_options){
		.store = w->store,
		.ask = {.name = names[i], .weight = 1, .ttl = baton_duration_s(60)},
		.beat = baton_duration_ms(50),
		.singletons = &w->singleton,
		.singleton_count = 1,
	};
}

static void start(struct world *w, size_t i, const struct baton_runner_options *options)
{
	struct runner *r = &w->runners[i];
	assert_int_equal(baton_engine_open(options, &r->engine), BATON_OK);
	assert_int_equal(pthread_create(&r->thread, NULL, run, r), 0);
	r->runs = true;
}

static void stop_within(struct world *w, size_t i, struct baton_duration grace)
{
	struct runner *r = &w->runners[i];
	baton_engine_stop(r->engine, grace);
	pthread_join(r->thread, NULL);
	r->runs = false;
	assert_int_equal(r->result, BATON_OK);
}

static void stop(struct world *w, size_t i)
{
	stop_within(w, i, baton_duration_s(3600));
}

static int teardown(void **state)
{
	struct world *w = *state;
	for (size_t i = 0; i < RUNNERS; i++) {
		if (w->runners[i].runs)
			stop(w, i);
		baton_engine_close(w->runners[i].engine);
	}
	baton_store_close(w->store);
	pthread_cond_destroy(&w->diary.changed);
	pthread_mutex_destroy(&w->diary.mu);
	return 0;
}

static void await(struct diary *d, const unsigned *number, unsigned count)
{
	pthread_mutex_lock(&d->mu);
	while (*number < count)
		pthread_cond_wait(&d->changed, &d->mu);
	pthread_mutex_unlock(&d->mu);
}

static void start_both(struct world *w)
{
	for (size_t i = 0; i < RUNNERS; i++) {
		const struct baton_runner_options options = options_of(w, i);
		start(w, i, &options);
		if (i == 0)
			await(&w->diary, &w->diary.begun, 1);
	}
}

static const char *holder(struct world *w, struct baton_lease_holder *ret)
{
	assert_int_equal(baton_lease_inspect(w->store, BATON_STR("singleton/one"), ret), BATON_OK);
	return ret->owner.id;
}

static void who_ends_is_replaced_and_the_fence_grows(void **state)
{
	struct world *w = *state;
	struct baton_lease_holder h;
	start_both(w);
	assert_string_equal(holder(w, &h), "a");
	stop(w, 0);
	assert_int_equal(w->diary.ended, 1);
	await(&w->diary, &w->diary.begun, 2);
	assert_string_equal(holder(w, &h), "b");
	assert_true(w->diary.fences[1] > w->diary.fences[0]);
	assert_int_equal(h.fence.v, w->diary.fences[1]);
	stop(w, 1);
	assert_int_equal(w->diary.most, 1);
	assert_int_equal(baton_lease_inspect(w->store, BATON_STR("singleton/one"), &h),
	                 BATON_NOT_HELD);
}

static void who_is_detached_stops_and_another_one_goes_on(void **state)
{
	struct world *w = *state;
	struct baton_lease_holder h;
	start_both(w);
	baton_engine_detach(w->runners[0].engine);
	await(&w->diary, &w->diary.begun, 2);
	assert_string_equal(holder(w, &h), "b");
	assert_int_equal(w->diary.most, 1);
	baton_engine_attach(w->runners[0].engine);
	stop(w, 1);
	await(&w->diary, &w->diary.begun, 3);
	assert_string_equal(holder(w, &h), "a");
}

static void who_drains_gives_it_to_another_one(void **state)
{
	struct world *w = *state;
	struct baton_lease_holder h;
	start_both(w);
	assert_int_equal(baton_runner_wish(w->store, BATON_STR("a"), BATON_WISH_DRAIN), BATON_OK);
	await(&w->diary, &w->diary.begun, 2);
	assert_string_equal(holder(w, &h), "b");
}

static void who_loses_the_lease_stops(void **state)
{
	struct world *w = *state;
	const struct baton_str subject = BATON_STR("singleton/one");
	struct baton_lease_answer answer;
	struct baton_runner_options options = options_of(w, 0);
	options.ask.ttl = baton_duration_s(1);
	options.margin = baton_duration_ms(500);
	start(w, 0, &options);
	await(&w->diary, &w->diary.begun, 1);
	assert_int_equal(baton_lease_force(w->store, &subject, 1, &answer), BATON_OK);
	await(&w->diary, &w->diary.begun, 2);
	assert_int_equal(w->diary.most, 1);
	assert_true(w->diary.fences[1] > w->diary.fences[0]);
}

static void what_ends_is_started_again_under_the_same_fence(void **state)
{
	struct world *w = *state;
	const struct baton_runner_options options = options_of(w, 0);
	w->diary.brief = true;
	start(w, 0, &options);
	await(&w->diary, &w->diary.begun, 3);
	stop(w, 0);
	assert_int_equal(w->diary.most, 1);
	assert_int_equal(w->diary.fences[0], w->diary.fences[2]);
}

static struct baton_queue_counts await_ready(struct world *w, uint64_t count)
{
	const struct baton_store_wait wait = {.until = BATON_MONO_NEVER};
	struct baton_queue_info info;
	uint64_t seen = 0;
	for (;;) {
		assert_int_equal(baton_store_wait(w->store, &wait, &seen), BATON_OK);
		if (baton_queue_get(w->store, BATON_STR("q"), &info) == BATON_OK &&
		    info.counts.ready >= count)
			return info.counts;
	}
}

static void schedules_tick_by_themselves_also_one_that_is_set_later(void **state)
{
	struct world *w = *state;
	const struct baton_schedule s = {
		.name = BATON_STR("s"),
		.cron = BATON_STR("* * * * * *"),
		.queue = BATON_STR("q"),
		.payload = BATON_STR("x"),
	};
	struct baton_lease_holder h;
	for (size_t i = 0; i < RUNNERS; i++) {
		struct baton_runner_options options = options_of(w, i);
		options.singleton_count = 0;
		options.schedules = true;
		start(w, i, &options);
	}
	while (baton_lease_inspect(w->store, BATON_STR("singleton/schedule"), &h) != BATON_OK)
		;
	assert_int_equal(baton_schedule_set(w->store, &s), BATON_OK);
	await_ready(w, 1);
	stop(w, h.owner.id[0] == 'a' ? 0 : 1);
	await_ready(w, 2);
}

static void refuse(struct baton_runner_options options, const char *words)
{
	struct baton_engine *engine = NULL;
	assert_int_equal(baton_engine_open(&options, &engine), BATON_INVALID);
	assert_null(engine);
	assert_non_null(strstr(baton_err_detail(), words));
}

static void what_is_offered_has_its_limits(void **state)
{
	struct world *w = *state;
	struct baton_singleton two[2] = {w->singleton, w->singleton};
	struct baton_runner_options o = options_of(w, 0);
	char *const nothing[] = {NULL};
	o.singletons = two;
	o.singleton_count = 2;
	refuse(o, "singleton 'one' is named twice");
	two[1].name = BATON_STR("schedule");
	refuse(o, "the singleton 'schedule' is the one that puts what schedules have due");
	two[1].name = BATON_STR("");
	refuse(o, "the singleton's name is empty");
	two[1].name = BATON_STR("two");
	two[1].overtime = 0;
	refuse(o, "needs its overtime");
	two[1].call = NULL;
	refuse(o, "a singleton is either a command or a function");
	two[1].command = nothing;
	refuse(o, "a singleton is either a command or a function");
	o.singleton_count = BATON_SINGLETONS_MAX + 1;
	refuse(o, "17 singletons: at most 16 are allowed");
	o.singleton_count = 0;
	refuse(o, "0 queues: 1 to 64 are allowed");
}

/* It takes longer to end than a runner waits for what it has killed. */
static void a_command_has_the_grace_of_its_singleton(void **state)
{
	struct world *w = *state;
	char folder[] = "/tmp/baton-test-XXXXXX", where[64], gate[64], script[192], byte;
	assert_non_null(mkdtemp(folder));
	snprintf(where, sizeof where, "sqlite:%s/store.db", folder);
	snprintf(gate, sizeof gate, "%s/gate", folder);
	snprintf(script, sizeof script,
	         "trap 'sleep 11; echo > %s/ended; exit 0' TERM; echo > %s; while :; do sleep 0.1; "
	         "done",
	         folder, gate);
	char *command[] = {(char *)"sh", (char *)"-c", script, NULL};
	const struct baton_store_options file = {.where = baton_str_z(where)};
	baton_store_close(w->store);
	assert_int_equal(baton_store_open(&file, &w->store), BATON_OK);
	assert_int_equal(mkfifo(gate, 0600), 0);
	w->singleton = (struct baton_singleton){.name = BATON_STR("one"),
	                                        .command = command,
	                                        .grace = baton_duration_s(60)};
	const struct baton_runner_options options = options_of(w, 0);
	start(w, 0, &options);
	int fd = open(gate, O_RDONLY | O_CLOEXEC);
	assert_int_equal(read(fd, &byte, 1), 1);
	close(fd);
	stop_within(w, 0, baton_duration_ms(0));
	snprintf(gate, sizeof gate, "%s/ended", folder);
	assert_int_equal(access(gate, F_OK), 0);
	snprintf(script, sizeof script, "rm -r %s", folder);
	assert_int_equal(system(script), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(who_ends_is_replaced_and_the_fence_grows),
		TEST(who_is_detached_stops_and_another_one_goes_on),
		TEST(who_drains_gives_it_to_another_one),
		TEST(who_loses_the_lease_stops),
		TEST(what_ends_is_started_again_under_the_same_fence),
		TEST(schedules_tick_by_themselves_also_one_that_is_set_later),
		TEST(what_is_offered_has_its_limits),
		TEST(a_command_has_the_grace_of_its_singleton),
	};
	return cmocka_run_group_tests_name("singleton", tests, NULL, NULL);
}
