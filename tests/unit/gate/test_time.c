/* Rates and time limits. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "world.h"

static struct baton_key_policy with_rate(uint32_t limit, uint32_t rate, int64_t window_ms)
{
	struct baton_key_policy policy = with_limit(limit);
	policy.rate = rate;
	policy.window = baton_duration_ms(window_ms);
	return policy;
}

static struct baton_key_policy with_ttl(uint32_t limit, int64_t ttl_ms)
{
	struct baton_key_policy policy = with_limit(limit);
	policy.ttl = baton_duration_ms(ttl_ms);
	return policy;
}

static enum baton_err renew_in(struct world *w, baton_gate_class cls, unsigned run, const char *key)
{
	struct ask a = {.ask = {a.keys, 0, run_id(run), w->clock.clock.now(&w->clock.clock)}};
	return baton_gate_renew(w->gate, &ask_more(&a, key, cls)->ask);
}

static struct baton_gate_yield why_in(struct world *w, baton_gate_class cls, unsigned run,
                                      const char *key)
{
	struct baton_gate_yield yield;
	struct ask a = {.ask = {a.keys, 0, run_id(run), w->clock.clock.now(&w->clock.clock)}};
	assert_int_equal(baton_gate_acquire(w->gate, &ask_more(&a, key, cls)->ask, NULL, &yield),
	                 BATON_YIELD);
	return yield;
}

static void a_rate_admits_n_starts_per_window_and_slides(void **state)
{
	struct world *w = *state;
	baton_gate_class cls = world_class(w, with_rate(10, 2, 100));
	assert_int_equal(try_in(w, cls, 1, "k"), BATON_OK);
	world_time(w, 1060);
	assert_int_equal(try_in(w, cls, 2, "k"), BATON_OK);
	struct baton_gate_yield yield = why_in(w, cls, 3, "k");
	assert_int_equal(yield.why, BATON_GATE_RATE);
	assert_int_equal(yield.until.ns, at_ms(1100).ns);
	world_time(w, 1099);
	assert_int_equal(try_in(w, cls, 3, "k"), BATON_YIELD);
	world_time(w, 1100);
	assert_int_equal(try_in(w, cls, 3, "k"), BATON_OK);
	assert_int_equal(why_in(w, cls, 4, "k").until.ns, at_ms(1160).ns);
	world_time(w, 1159);
	assert_int_equal(try_in(w, cls, 4, "k"), BATON_YIELD);
	world_time(w, 1160);
	assert_int_equal(try_in(w, cls, 4, "k"), BATON_OK);
}

static void a_rate_remembers_starts_after_the_release(void **state)
{
	struct world *w = *state;
	baton_gate_class cls = world_class(w, with_rate(1, 1, 100));
	assert_int_equal(try_in(w, cls, 1, "k"), BATON_OK);
	assert_int_equal(drop_in(w, cls, 1, "k"), BATON_OK);
	assert_int_equal(try_in(w, cls, 2, "k"), BATON_YIELD);
	assert_int_equal(try_in(w, cls, 2, "other"), BATON_OK);
	world_time(w, 1100);
	assert_int_equal(try_in(w, cls, 2, "k"), BATON_OK);
}

static void asking_again_is_no_new_start(void **state)
{
	struct world *w = *state;
	baton_gate_class cls = world_class(w, with_rate(5, 2, 100));
	for (int i = 0; i < 10; i++)
		assert_int_equal(try_in(w, cls, 1, "k"), BATON_OK);
	assert_int_equal(try_in(w, cls, 2, "k"), BATON_OK);
	assert_int_equal(try_in(w, cls, 3, "k"), BATON_YIELD);
}

static void a_late_reading_of_the_clock_does_not_open_the_window_early(void **state)
{
	struct world *w = *state;
	baton_gate_class cls = world_class(w, with_rate(5, 2, 100));
	struct ask a = {.ask = {a.keys, 0, run_id(2), at_ms(1000)}};
	world_time(w, 1050);
	assert_int_equal(try_in(w, cls, 1, "k"), BATON_OK);
	assert_int_equal(baton_gate_acquire(w->gate, &ask_more(&a, "k", cls)->ask, NULL, NULL),
	                 BATON_OK);
	world_time(w, 1149);
	assert_int_equal(try_in(w, cls, 3, "k"), BATON_YIELD);
	world_time(w, 1150);
	assert_int_equal(try_in(w, cls, 3, "k"), BATON_OK);
}

static void a_hold_is_live_until_its_ttl_and_void_at_it(void **state)
{
	struct world *w = *state;
	baton_gate_class cls = world_class(w, with_ttl(1, 100));
	struct baton_gate_key key = {BATON_STR("k"), cls};
	assert_int_equal(try_in(w, cls, 1, "k"), BATON_OK);
	world_time(w, 1099);
	struct baton_gate_yield yield = why_in(w, cls, 2, "k");
	assert_int_equal(yield.holder.expires.ns, at_ms(1100).ns);
	assert_int_equal(yield.until.ns, at_ms(1100).ns);
	assert_true(baton_gate_is_held(w->gate, &key, at_ms(1099)));
	world_time(w, 1100);
	assert_false(baton_gate_is_held(w->gate, &key, at_ms(1100)));
	assert_int_equal(try_in(w, cls, 2, "k"), BATON_OK);
	assert_int_equal(drop_in(w, cls, 1, "k"), BATON_NOT_HELD);
}

static void the_late_holder_has_the_lower_fence(void **state)
{
	struct world *w = *state;
	baton_gate_class cls = world_class(w, with_ttl(1, 100));
	baton_fence old;
	baton_fence new;
	struct ask a = {.ask = {a.keys, 0, run_id(1), at_ms(1000)}};
	assert_int_equal(baton_gate_acquire(w->gate, &ask_more(&a, "k", cls)->ask, &old, NULL),
	                 BATON_OK);
	a.ask.run = run_id(2);
	a.ask.now = at_ms(1100);
	assert_int_equal(baton_gate_acquire(w->gate, &a.ask, &new, NULL), BATON_OK);
	assert_true(new.v > old.v);
}

static void a_renewal_counts_the_ttl_anew_and_never_shortens(void **state)
{
	struct world *w = *state;
	baton_gate_class cls = world_class(w, with_ttl(1, 100));
	assert_int_equal(try_in(w, cls, 1, "k"), BATON_OK);
	world_time(w, 1050);
	assert_int_equal(renew_in(w, cls, 1, "k"), BATON_OK);
	struct baton_key_policy shorter = with_ttl(1, 10);
	assert_int_equal(baton_gate_class_set(w->gate, cls, &shorter, at_ms(1050)), BATON_OK);
	assert_int_equal(renew_in(w, cls, 1, "k"), BATON_OK);
	assert_int_equal(why_in(w, cls, 2, "k").holder.expires.ns, at_ms(1150).ns);
}

static void a_renewal_after_loss_says_not_held(void **state)
{
	struct world *w = *state;
	baton_gate_class cls = world_class(w, with_ttl(1, 100));
	assert_int_equal(renew_in(w, cls, 1, "k"), BATON_NOT_HELD);
	assert_int_equal(try_in(w, cls, 1, "k"), BATON_OK);
	world_time(w, 1100);
	assert_int_equal(renew_in(w, cls, 1, "k"), BATON_NOT_HELD);
	assert_int_equal(try_in(w, cls, 2, "k"), BATON_OK);
	assert_int_equal(renew_in(w, cls, 1, "k"), BATON_NOT_HELD);
}

static void a_key_without_a_ttl_can_be_renewed_to_no_effect(void **state)
{
	struct world *w = *state;
	assert_int_equal(try_key(w, 1, "k"), BATON_OK);
	assert_int_equal(renew_in(w, BATON_GATE_CLASS_DEFAULT, 1, "k"), BATON_OK);
	assert_int_equal(renew_in(w, BATON_GATE_CLASS_DEFAULT, 2, "k"), BATON_NOT_HELD);
}

static void of_many_holders_only_the_void_ones_go(void **state)
{
	struct world *w = *state;
	baton_gate_class cls = world_class(w, with_ttl(40, 100));
	for (unsigned run = 0; run < 40; run++)
		assert_int_equal(try_in(w, cls, run, "k"), BATON_OK);
	world_time(w, 1050);
	for (unsigned run = 0; run < 40; run += 3)
		assert_int_equal(renew_in(w, cls, run, "k"), BATON_OK);
	world_time(w, 1100);
	for (unsigned run = 0; run < 40; run++)
		assert_int_equal(drop_in(w, cls, run, "k"),
		                 run % 3 == 0 ? BATON_OK : BATON_NOT_HELD);
}

static void a_hold_made_under_a_ttl_keeps_it_when_the_class_loses_it(void **state)
{
	struct world *w = *state;
	baton_gate_class cls = world_class(w, with_ttl(1, 100));
	struct baton_key_policy plain = with_limit(1);
	assert_int_equal(try_in(w, cls, 1, "k"), BATON_OK);
	assert_int_equal(baton_gate_class_set(w->gate, cls, &plain, at_ms(1000)), BATON_OK);
	assert_int_equal(try_in(w, cls, 2, "k"), BATON_YIELD);
	world_time(w, 1100);
	assert_int_equal(try_in(w, cls, 2, "k"), BATON_OK);
	assert_int_equal(why_in(w, cls, 3, "k").holder.expires.ns, BATON_MONO_NEVER.ns);
}

static bool count_hold(const struct baton_gate_hold *hold, void *arg)
{
	(void)hold;
	++*(unsigned *)arg;
	return true;
}

static void a_renewal_takes_off_a_ttl_that_the_class_has_lost(void **state)
{
	struct world *w = *state;
	baton_gate_class cls = world_class(w, with_ttl(1, 100));
	struct baton_key_policy plain = with_limit(1);
	assert_int_equal(try_in(w, cls, 1, "k"), BATON_OK);
	assert_int_equal(baton_gate_class_set(w->gate, cls, &plain, at_ms(1000)), BATON_OK);
	assert_int_equal(renew_in(w, cls, 1, "k"), BATON_OK);
	world_time(w, 9000);
	assert_int_equal(try_in(w, cls, 2, "k"), BATON_YIELD);
	assert_int_equal(renew_in(w, cls, 1, "k"), BATON_OK);
}

static void a_hold_without_a_ttl_outlives_every_moment(void **state)
{
	struct world *w = *state;
	baton_gate_class cls = world_class(w, with_limit(2));
	struct ask a = {.ask = {a.keys, 0, run_id(1), BATON_MONO_NEVER}};
	assert_int_equal(try_in(w, cls, 1, "k"), BATON_OK);
	assert_int_equal(try_in(w, cls, 2, "k"), BATON_OK);
	struct baton_gate_ticket *t = enter_in(w, cls, 3, "k");
	struct baton_gate_ticket *last = enter_in(w, cls, 4, "k");
	assert_int_equal(baton_gate_release(w->gate, &ask_more(&a, "k", cls)->ask), BATON_OK);
	assert_int_equal(poll_ticket(w, t), BATON_OK);
	assert_int_equal(baton_gate_ticket_poll(last, BATON_MONO_NEVER, NULL, NULL), BATON_YIELD);
	assert_int_equal(drop_in(w, cls, 2, "k"), BATON_OK);
	baton_gate_ticket_free(t);
	baton_gate_ticket_free(last);
}

/* Renewed in another order than acquired, under ttls that change: each goes at its own moment. */
static void holders_expire_in_order_of_expiry_and_not_of_arrival(void **state)
{
	struct world *w = *state;
	baton_gate_class cls = world_class(w, with_ttl(100, 1000));
	static const int64_t ttls[] = {1000, 200, 600, 100, 900};
	int64_t expires[50];
	for (unsigned run = 0; run < 50; run++) {
		int64_t ttl = ttls[run % 5];
		struct baton_key_policy policy = with_ttl(100, ttl);
		world_time(w, 1000 + run);
		assert_int_equal(baton_gate_class_set(w->gate, cls, &policy, at_ms(1000 + run)),
		                 BATON_OK);
		assert_int_equal(try_in(w, cls, run, "k"), BATON_OK);
		expires[run] = 1000 + run + ttl;
	}
	for (unsigned run = 0; run < 50; run += 7) {
		assert_int_equal(renew_in(w, cls, run, "k"), BATON_OK);
		if (expires[run] < 1049 + 900)
			expires[run] = 1049 + 900;
	}
	struct baton_gate_key key = {BATON_STR("k"), cls};
	for (int64_t ms = 1050; ms < 2100; ms++) {
		unsigned live = 0;
		world_time(w, ms);
		for (unsigned run = 0; run < 50; run++)
			live += expires[run] > ms;
		(void)baton_gate_is_held(w->gate, &key, at_ms(ms));
		unsigned seen = 0;
		assert_int_equal(baton_gate_each(w->gate, at_ms(1050), count_hold, &seen),
		                 BATON_OK);
		assert_int_equal(seen, live);
	}
}

static void a_class_that_gets_a_ttl_and_a_rate_changes_no_hold(void **state)
{
	struct world *w = *state;
	baton_gate_class cls = world_class(w, with_limit(1));
	struct baton_key_policy policy = with_rate(1, 1, 100);
	policy.ttl = baton_duration_ms(50);
	assert_int_equal(try_in(w, cls, 1, "k"), BATON_OK);
	assert_int_equal(baton_gate_class_set(w->gate, cls, &policy, at_ms(1000)), BATON_OK);
	assert_int_equal(renew_in(w, cls, 1, "k"), BATON_OK);
	assert_int_equal(try_in(w, cls, 1, "k"), BATON_OK);
	world_time(w, 9000);
	assert_int_equal(try_in(w, cls, 2, "k"), BATON_YIELD);
	assert_int_equal(drop_in(w, cls, 1, "k"), BATON_OK);
	assert_int_equal(try_in(w, cls, 2, "k"), BATON_OK);
	assert_int_equal(drop_in(w, cls, 2, "k"), BATON_OK);
	assert_int_equal(try_in(w, cls, 3, "k"), BATON_YIELD);
}

static void a_waiting_ticket_is_let_in_by_a_poll_when_the_hold_is_void(void **state)
{
	struct world *w = *state;
	struct baton_gate_yield yield;
	baton_gate_class cls = world_class(w, with_ttl(1, 100));
	assert_int_equal(try_in(w, cls, 1, "k"), BATON_OK);
	struct baton_gate_ticket *t = enter_in(w, cls, 2, "k");
	assert_int_equal(baton_gate_ticket_poll(t, at_ms(1000), NULL, &yield), BATON_YIELD);
	assert_int_equal(yield.until.ns, at_ms(1100).ns);
	world_time(w, 1100);
	assert_int_equal(poll_ticket(w, t), BATON_OK);
	baton_gate_ticket_free(t);
}

static void a_newcomer_lets_the_line_move_first_when_the_hold_is_void(void **state)
{
	struct world *w = *state;
	baton_gate_class cls = world_class(w, with_ttl(1, 100));
	assert_int_equal(try_in(w, cls, 1, "k"), BATON_OK);
	struct baton_gate_ticket *t = enter_in(w, cls, 2, "k");
	world_time(w, 1100);
	assert_int_equal(try_in(w, cls, 3, "k"), BATON_YIELD);
	assert_int_equal(baton_gate_ticket_poll(t, at_ms(0), NULL, NULL), BATON_OK);
	baton_gate_ticket_free(t);
}

static void count_wake(void *arg)
{
	++*(unsigned *)arg;
}

/* The second in line last asked while the window was open: when it becomes the first and the window
 * is full, it has to learn that there is a moment to wait for. */
static void the_new_first_in_line_is_told_when_to_ask_again(void **state)
{
	struct world *w = *state;
	struct baton_gate_yield yield;
	unsigned woken = 0;
	struct baton_wake wake = {count_wake, &woken};
	baton_gate_class cls = world_class(w, with_rate(1, 2, 100));
	struct ask a = {.ask = {a.keys, 0, run_id(4), at_ms(1000)}};
	struct baton_gate_ticket *second = NULL;
	assert_int_equal(try_in(w, cls, 1, "k"), BATON_OK);
	struct baton_gate_ticket *first = enter_in(w, cls, 2, "k");
	assert_int_equal(baton_gate_enter(w->gate, &ask_more(&a, "k", cls)->ask, &wake, &second),
	                 BATON_OK);
	assert_int_equal(baton_gate_ticket_poll(second, at_ms(1000), NULL, &yield), BATON_YIELD);
	assert_int_equal(yield.until.ns, BATON_MONO_NEVER.ns);
	world_time(w, 1010);
	assert_int_equal(drop_in(w, cls, 1, "k"), BATON_OK);
	world_time(w, 1020);
	assert_int_equal(drop_in(w, cls, 2, "k"), BATON_OK);
	assert_int_equal(woken, 1);
	assert_int_equal(baton_gate_ticket_poll(second, at_ms(1020), NULL, &yield), BATON_YIELD);
	assert_int_equal(yield.why, BATON_GATE_RATE);
	assert_int_equal(yield.until.ns, at_ms(1100).ns);
	world_time(w, 1100);
	assert_int_equal(poll_ticket(w, second), BATON_OK);
	baton_gate_ticket_free(first);
	baton_gate_ticket_free(second);
}

struct waiter {
	struct world *w;
	baton_gate_class cls;
	unsigned run;
	pthread_t thread;
	enum baton_err answer;
};

static void *waiter_main(void *arg)
{
	struct waiter *waiter = arg;
	struct ask a = {.ask = {a.keys, 0, run_id(waiter->run), at_ms(1000)}};
	waiter->answer = baton_gate_wait(waiter->w->gate, &ask_more(&a, "k", waiter->cls)->ask,
	                                 BATON_MONO_NEVER, NULL);
	return NULL;
}

static void waiter_start(struct waiter *waiter, struct world *w, baton_gate_class cls, unsigned run)
{
	*waiter = (struct waiter){.w = w, .cls = cls, .run = run};
	assert_int_equal(pthread_create(&waiter->thread, NULL, waiter_main, waiter), 0);
}

static void a_blocked_thread_goes_on_when_the_window_opens(void **state)
{
	struct world *w = *state;
	struct waiter first;
	struct waiter second;
	baton_gate_class cls = world_class(w, with_rate(1, 1, 100));
	assert_int_equal(try_in(w, cls, 1, "k"), BATON_OK);
	waiter_start(&first, w, cls, 2);
	fake_clock_wait_blocked(&w->clock, 1);
	waiter_start(&second, w, cls, 3);
	fake_clock_wait_blocked(&w->clock, 2);
	assert_int_equal(drop_in(w, cls, 1, "k"), BATON_OK);
	fake_clock_wait_blocked(&w->clock, 2);
	world_time(w, 1100);
	pthread_join(first.thread, NULL);
	assert_int_equal(first.answer, BATON_OK);
	assert_int_equal(drop_in(w, cls, 2, "k"), BATON_OK);
	/* Whether it has slept or not: it goes on at 1200 and not before. */
	fake_clock_wait_blocked(&w->clock, 1);
	struct baton_gate_key key = {BATON_STR("k"), cls};
	assert_false(baton_gate_is_held(w->gate, &key, at_ms(1199)));
	world_time(w, 1200);
	pthread_join(second.thread, NULL);
	assert_int_equal(second.answer, BATON_OK);
}

static void a_blocked_thread_goes_on_when_the_hold_is_void(void **state)
{
	struct world *w = *state;
	struct waiter waiter;
	baton_gate_class cls = world_class(w, with_ttl(1, 100));
	assert_int_equal(try_in(w, cls, 1, "k"), BATON_OK);
	waiter_start(&waiter, w, cls, 2);
	fake_clock_wait_blocked(&w->clock, 1);
	world_time(w, 1100);
	pthread_join(waiter.thread, NULL);
	assert_int_equal(waiter.answer, BATON_OK);
}

/* Starts and void holds of keys that nobody asks for again do not pile up. */
static void keys_that_time_made_idle_take_no_memory(void **state)
{
	struct world *w = *state;
	struct baton_key_policy policy = with_rate(1, 3, 100);
	policy.ttl = baton_duration_ms(50);
	baton_gate_class cls = world_class(w, policy);
	char key[32];
	size_t peak = 0;
	for (unsigned i = 0; i < 20000; i++) {
		snprintf(key, sizeof key, "key-%u", i);
		assert_int_equal(try_in(w, cls, 1, key), BATON_OK);
		world_time(w, 1000 + i);
		if (i == 5000)
			peak = fault_live_bytes(&w->fault);
	}
	assert_true(fault_live_bytes(&w->fault) < peak + peak / 4);
	/* A policy without time forgets them at once. */
	struct baton_key_policy plain = with_limit(1);
	world_time(w, 30000);
	assert_int_equal(baton_gate_class_set(w->gate, cls, &plain, at_ms(30000)), BATON_OK);
	assert_true(fault_live_bytes(&w->fault) < peak);
	for (unsigned i = 0; i < 20000; i++) {
		snprintf(key, sizeof key, "key-%u", i);
		assert_int_equal(try_in(w, cls, 2, key), BATON_OK);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(a_rate_admits_n_starts_per_window_and_slides),
		WORLD_TEST(a_rate_remembers_starts_after_the_release),
		WORLD_TEST(asking_again_is_no_new_start),
		WORLD_TEST(a_late_reading_of_the_clock_does_not_open_the_window_early),
		WORLD_TEST(a_hold_is_live_until_its_ttl_and_void_at_it),
		WORLD_TEST(the_late_holder_has_the_lower_fence),
		WORLD_TEST(a_renewal_counts_the_ttl_anew_and_never_shortens),
		WORLD_TEST(a_renewal_after_loss_says_not_held),
		WORLD_TEST(a_key_without_a_ttl_can_be_renewed_to_no_effect),
		WORLD_TEST(of_many_holders_only_the_void_ones_go),
		WORLD_TEST(a_hold_made_under_a_ttl_keeps_it_when_the_class_loses_it),
		WORLD_TEST(a_renewal_takes_off_a_ttl_that_the_class_has_lost),
		WORLD_TEST(a_hold_without_a_ttl_outlives_every_moment),
		WORLD_TEST(holders_expire_in_order_of_expiry_and_not_of_arrival),
		WORLD_TEST(a_class_that_gets_a_ttl_and_a_rate_changes_no_hold),
		WORLD_TEST(a_waiting_ticket_is_let_in_by_a_poll_when_the_hold_is_void),
		WORLD_TEST(a_newcomer_lets_the_line_move_first_when_the_hold_is_void),
		WORLD_TEST(the_new_first_in_line_is_told_when_to_ask_again),
		WORLD_TEST(a_blocked_thread_goes_on_when_the_window_opens),
		WORLD_TEST(a_blocked_thread_goes_on_when_the_hold_is_void),
		WORLD_TEST(keys_that_time_made_idle_take_no_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
