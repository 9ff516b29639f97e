/* Wake-ups between processes. */
#include <baton/wakeup.h>

#include <string.h>
#include <unistd.h>

#include "world.h"

static const struct baton_mono at_once = {0};

static struct baton_listener *listen_for(struct baton_fleet *f, uint64_t queue, uint32_t shard)
{
	struct baton_listener *l = NULL;
	struct baton_wakeup_interest interest = {queue, shard};
	assert_int_equal(baton_listener_open(f, &interest, 1, &l), BATON_OK);
	return l;
}

static void publish(struct baton_fleet *f, uint64_t queue, uint32_t shard, uint64_t lane)
{
	struct baton_wakeup wakeup = {.queue = queue, .lane = lane, .shard = shard};
	assert_int_equal(baton_wakeup_publish(f, &wakeup, 1), BATON_OK);
}

static void who_listens_hears_what_it_is_interested_in(void **state)
{
	struct world *w = *state;
	struct baton_wakeup heard[8];
	struct baton_wakeup_news news = {.wakeups = heard, .max = 8, .count = 77};
	publish(w->ada, 1, 0, 5);
	struct baton_listener *l = listen_for(w->ben, 1, 2),
			      *any = listen_for(w->ben, 1, BATON_WAKEUP_ANY_SHARD);
	/* Nothing from before. */
	assert_int_equal(baton_listener_wait(l, at_once, NULL, &news), BATON_TIMEOUT);
	assert_int_equal(news.count, 77);
	publish(w->ada, 1, 2, 10);
	publish(w->ada, 1, 3, 11);
	publish(w->ada, 2, 2, 12);
	assert_int_equal(baton_listener_wait(l, some_day(), NULL, &news), BATON_OK);
	assert_int_equal(news.count, 1);
	assert_false(news.missed);
	assert_int_equal(heard[0].queue, 1);
	assert_int_equal(heard[0].shard, 2);
	assert_int_equal(heard[0].lane, 10);
	assert_int_equal(baton_listener_wait(l, at_once, NULL, &news), BATON_TIMEOUT);
	assert_int_equal(baton_listener_wait(any, some_day(), NULL, &news), BATON_OK);
	assert_int_equal(news.count, 2);
	assert_int_equal(heard[1].lane, 11);
	baton_listener_close(l);
	baton_listener_close(any);
	baton_listener_close(NULL);
}

static void what_does_not_fit_is_heard_next_time(void **state)
{
	struct world *w = *state;
	struct baton_wakeup heard[2];
	struct baton_wakeup_news news = {.wakeups = heard, .max = 2};
	struct baton_listener *l = listen_for(w->ben, 1, 0);
	for (unsigned i = 0; i < 5; i++)
		publish(w->ada, 1, 0, i);
	for (unsigned i = 0; i < 5; i += 2) {
		assert_int_equal(baton_listener_wait(l, some_day(), NULL, &news), BATON_OK);
		assert_int_equal(news.count, i < 4 ? 2 : 1);
		assert_int_equal(heard[0].lane, i);
	}
	baton_listener_close(l);
}

static void who_missed_some_is_told_so(void **state)
{
	struct world *w = *state;
	struct baton_wakeup heard[2 * WORLD_WAKEUPS];
	struct baton_wakeup_news news = {.wakeups = heard, .max = 2 * WORLD_WAKEUPS};
	struct baton_listener *l = listen_for(w->ben, 1, 0);
	for (unsigned i = 0; i < WORLD_WAKEUPS + 1; i++)
		publish(w->ada, 1, 0, i);
	assert_int_equal(baton_listener_wait(l, some_day(), NULL, &news), BATON_OK);
	assert_true(news.missed);
	assert_int_equal(news.count, WORLD_WAKEUPS);
	assert_int_equal(heard[0].lane, 1);
	publish(w->ada, 1, 0, 9);
	assert_int_equal(baton_listener_wait(l, some_day(), NULL, &news), BATON_OK);
	assert_false(news.missed);
	/* Also if nothing that was left concerns it. */
	for (unsigned i = 0; i < WORLD_WAKEUPS + 1; i++)
		publish(w->ada, 2, 0, i);
	assert_int_equal(baton_listener_wait(l, some_day(), NULL, &news), BATON_OK);
	assert_true(news.missed);
	assert_int_equal(news.count, 0);
	baton_listener_close(l);
}

static void interests_are_limited(void **state)
{
	struct world *w = *state;
	static struct baton_wakeup_interest many[BATON_WAKEUP_INTERESTS_MAX + 1];
	struct baton_listener *l = NULL;
	assert_int_equal(baton_listener_open(w->ada, many, 0, &l), BATON_INVALID);
	assert_int_equal(baton_listener_open(w->ada, many, BATON_WAKEUP_INTERESTS_MAX + 1, &l),
	                 BATON_INVALID);
	assert_non_null(strstr(baton_err_detail(), "4097"));
	assert_non_null(strstr(baton_err_detail(), "4096"));
	assert_null(l);
	for (uint32_t i = 0; i < BATON_WAKEUP_INTERESTS_MAX; i++)
		many[i] = (struct baton_wakeup_interest){BATON_WAKEUP_INTERESTS_MAX - i, i};
	assert_int_equal(baton_listener_open(w->ada, many, BATON_WAKEUP_INTERESTS_MAX, &l),
	                 BATON_OK);
	/* They are copied, and all are found. */
	memset(many, 0, sizeof many);
	struct baton_wakeup heard[4];
	struct baton_wakeup_news news = {.wakeups = heard, .max = 4};
	publish(w->ben, 1, BATON_WAKEUP_INTERESTS_MAX - 1, 1);
	publish(w->ben, BATON_WAKEUP_INTERESTS_MAX, 0, 2);
	publish(w->ben, 1, 0, 3);
	assert_int_equal(baton_listener_wait(l, some_day(), NULL, &news), BATON_OK);
	assert_int_equal(news.count, 2);
	baton_listener_close(l);
}

static void listening_can_be_cancelled(void **state)
{
	struct world *w = *state;
	struct baton_wakeup heard[4];
	struct baton_wakeup_news news = {.wakeups = heard, .max = 4, .count = 77};
	struct baton_cancel cancel = {0};
	struct baton_listener *l = listen_for(w->ben, 1, 0);
	baton_cancel(&cancel);
	assert_int_equal(baton_listener_wait(l, some_day(), &cancel, &news), BATON_CANCELLED);
	assert_int_equal(news.count, 77);
	baton_listener_close(l);
}

static void listening_ends_with_the_fleet(void **state)
{
	struct world *w = *state;
	struct baton_wakeup heard[4];
	struct baton_wakeup_news news = {.wakeups = heard, .max = 4};
	struct baton_wakeup wakeup = {.queue = 1};
	struct baton_listener *l = listen_for(w->ben, 1, 0), *none = NULL;
	struct baton_wakeup_interest interest = {1, 0};
	assert_int_equal(unlink(w->path), 0);
	assert_int_equal(baton_listener_wait(l, some_day(), NULL, &news), BATON_GONE);
	assert_int_equal(baton_wakeup_publish(w->ben, &wakeup, 1), BATON_GONE);
	assert_int_equal(baton_listener_open(w->ben, &interest, 1, &none), BATON_GONE);
	baton_listener_close(l);
}

/* One listens and answers each wake-up with one of its own. */
static int answer(int channel, void *arg)
{
	struct world *w = arg;
	struct baton_fleet *f;
	struct baton_listener *l;
	struct baton_wakeup_interest ping = {1, 0};
	struct baton_wakeup heard[4];
	struct baton_wakeup_news news = {.wakeups = heard, .max = 4};
	if (baton_fleet_join(&w->options, &f) != BATON_OK ||
	    baton_listener_open(f, &ping, 1, &l) != BATON_OK)
		return 1;
	channel_send(channel, "ready");
	for (uint64_t n = 0; n < 200;) {
		if (baton_listener_wait(l, some_day(), NULL, &news) != BATON_OK)
			return 2;
		for (size_t i = 0; i < news.count; i++, n++) {
			struct baton_wakeup pong = {.queue = 2, .lane = heard[i].lane};
			if (heard[i].lane != n || baton_wakeup_publish(f, &pong, 1) != BATON_OK)
				return 3;
		}
	}
	baton_listener_close(l);
	baton_fleet_leave(f);
	return 0;
}

static void two_processes_wake_each_other(void **state)
{
	struct world *w = *state;
	struct child child;
	char ready[16];
	struct baton_wakeup heard[4];
	struct baton_wakeup_news news = {.wakeups = heard, .max = 4};
	struct baton_listener *l = listen_for(w->ada, 2, BATON_WAKEUP_ANY_SHARD);
	child_start(&child, answer, w);
	assert_true(channel_receive(child.channel, ready, sizeof ready));
	for (uint64_t n = 0; n < 200; n++) {
		publish(w->ada, 1, 0, n);
		assert_int_equal(baton_listener_wait(l, some_day(), NULL, &news), BATON_OK);
		assert_int_equal(news.count, 1);
		assert_int_equal(heard[0].lane, n);
	}
	assert_int_equal(child_reap(&child), 0);
	baton_listener_close(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(who_listens_hears_what_it_is_interested_in),
		WORLD_TEST(what_does_not_fit_is_heard_next_time),
		WORLD_TEST(who_missed_some_is_told_so),
		WORLD_TEST(interests_are_limited),
		WAIT_TEST(listening_can_be_cancelled),
		WAIT_TEST(listening_ends_with_the_fleet),
		WAIT_TEST(two_processes_wake_each_other),
	};
	return cmocka_run_group_tests_name("wakeup", tests, NULL, NULL);
}
