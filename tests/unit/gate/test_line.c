/* Waiting in line: order, timeouts, cancelling, several keys. */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>

#include "world.h"

static void a_release_lets_the_first_in_line_go_on(void **state)
{
	struct world *w = *state;
	assert_int_equal(try_key(w, 1, "k"), BATON_OK);
	struct baton_gate_ticket *second = enter_key(w, 2, "k");
	struct baton_gate_ticket *third = enter_key(w, 3, "k");
	assert_int_equal(poll_ticket(w, second), BATON_YIELD);
	assert_int_equal(drop_key(w, 1, "k"), BATON_OK);
	assert_int_equal(poll_ticket(w, second), BATON_OK);
	assert_int_equal(poll_ticket(w, third), BATON_YIELD);
	assert_holder(w, "k", 2);
	assert_int_equal(drop_key(w, 2, "k"), BATON_OK);
	assert_int_equal(poll_ticket(w, third), BATON_OK);
	assert_holder(w, "k", 3);
	baton_gate_ticket_free(second);
	baton_gate_ticket_free(third);
}

static void a_line_moves_in_order_of_arrival(void **state)
{
	struct world *w = *state;
	struct baton_gate_ticket *line[50];
	assert_int_equal(try_key(w, 1000, "k"), BATON_OK);
	for (unsigned i = 0; i < 50; i++)
		line[i] = enter_key(w, i, "k");
	assert_int_equal(drop_key(w, 1000, "k"), BATON_OK);
	for (unsigned i = 0; i < 50; i++) {
		assert_holder(w, "k", i);
		for (unsigned j = 0; j < 50; j++)
			assert_int_equal(poll_ticket(w, line[j]), j <= i ? BATON_OK : BATON_YIELD);
		assert_int_equal(drop_key(w, i, "k"), BATON_OK);
	}
	for (unsigned i = 0; i < 50; i++)
		baton_gate_ticket_free(line[i]);
}

static void a_newcomer_yields_to_the_line(void **state)
{
	struct world *w = *state;
	struct ask a;
	struct baton_gate_yield yield;
	struct baton_id first = run_id(2);
	assert_int_equal(try_key(w, 1, "busy"), BATON_OK);
	/* The first in line waits for two keys, one of which is free. */
	struct baton_gate_ticket *t = NULL;
	ask_more(ask_key(&a, w, 2, "free"), "busy", (baton_gate_class){0});
	assert_int_equal(baton_gate_enter(w->gate, &a.ask, NULL, &t), BATON_OK);
	assert_int_equal(baton_gate_acquire(w->gate, &ask_key(&a, w, 3, "free")->ask, NULL, &yield),
	                 BATON_YIELD);
	assert_int_equal(yield.why, BATON_GATE_IN_LINE);
	assert_memory_equal(&yield.holder.run, &first, sizeof first);
	assert_int_equal(yield.holder.fence.v, 0);
	assert_int_equal(yield.holders, 0);
	assert_int_equal(yield.waiting, 1);
	baton_gate_ticket_free(t);
	assert_int_equal(try_key(w, 3, "free"), BATON_OK);
}

static void no_other_keys_line_moves(void **state)
{
	struct world *w = *state;
	assert_int_equal(try_key(w, 1, "a"), BATON_OK);
	assert_int_equal(try_key(w, 1, "b"), BATON_OK);
	struct baton_gate_ticket *for_a = enter_key(w, 2, "a");
	struct baton_gate_ticket *for_b = enter_key(w, 3, "b");
	assert_int_equal(drop_key(w, 1, "b"), BATON_OK);
	assert_int_equal(poll_ticket(w, for_a), BATON_YIELD);
	assert_int_equal(poll_ticket(w, for_b), BATON_OK);
	baton_gate_ticket_free(for_a);
	baton_gate_ticket_free(for_b);
}

static void a_ticket_for_a_free_key_holds_it_at_once(void **state)
{
	struct world *w = *state;
	baton_fence fence = {0};
	struct baton_gate_ticket *t = enter_key(w, 1, "k");
	assert_int_equal(baton_gate_ticket_poll(t, at_ms(1000), &fence, NULL), BATON_OK);
	assert_true(fence.v > 0);
	assert_false(baton_gate_ticket_cancel(t));
	baton_gate_ticket_free(t);
	assert_holder(w, "k", 1);
}

static void a_ticket_of_the_run_that_holds_the_key_holds_it_again(void **state)
{
	struct world *w = *state;
	assert_int_equal(try_key(w, 1, "k"), BATON_OK);
	struct baton_gate_ticket *other = enter_key(w, 2, "k");
	struct baton_gate_ticket *again = enter_key(w, 1, "k");
	assert_int_equal(poll_ticket(w, again), BATON_OK);
	assert_int_equal(drop_key(w, 1, "k"), BATON_OK);
	assert_int_equal(poll_ticket(w, other), BATON_OK);
	baton_gate_ticket_free(again);
	baton_gate_ticket_free(other);
}

static void a_waiting_ticket_tells_what_it_waits_for(void **state)
{
	struct world *w = *state;
	struct ask a;
	struct baton_gate_yield yield;
	struct baton_id holder = run_id(1);
	struct baton_gate_ticket *t = NULL;
	assert_int_equal(try_key(w, 1, "b"), BATON_OK);
	ask_more(ask_key(&a, w, 2, "a"), "b", (baton_gate_class){0});
	assert_int_equal(baton_gate_enter(w->gate, &a.ask, NULL, &t), BATON_OK);
	assert_int_equal(baton_gate_ticket_poll(t, at_ms(1000), NULL, &yield), BATON_YIELD);
	assert_int_equal(yield.key, 1);
	assert_int_equal(yield.why, BATON_GATE_HELD);
	assert_memory_equal(&yield.holder.run, &holder, sizeof holder);
	assert_int_equal(yield.waiting, 1);
	baton_gate_ticket_free(t);
}

static void who_gives_up_leaves_no_trace(void **state)
{
	struct world *w = *state;
	assert_int_equal(try_key(w, 1, "k"), BATON_OK);
	struct baton_gate_ticket *first = enter_key(w, 2, "k");
	struct baton_gate_ticket *middle = enter_key(w, 3, "k");
	struct baton_gate_ticket *last = enter_key(w, 4, "k");
	assert_true(baton_gate_ticket_cancel(middle));
	assert_false(baton_gate_ticket_cancel(middle));
	assert_int_equal(poll_ticket(w, middle), BATON_CANCELLED);
	assert_true(baton_gate_ticket_cancel(last));
	baton_gate_ticket_free(first);
	assert_int_equal(drop_key(w, 1, "k"), BATON_OK);
	assert_int_equal(try_key(w, 5, "k"), BATON_OK);
	baton_gate_ticket_free(middle);
	baton_gate_ticket_free(last);
}

static void the_next_goes_on_when_the_first_gives_up(void **state)
{
	struct world *w = *state;
	struct ask a;
	struct baton_gate_ticket *both = NULL;
	assert_int_equal(try_key(w, 1, "busy"), BATON_OK);
	ask_more(ask_key(&a, w, 2, "free"), "busy", (baton_gate_class){0});
	assert_int_equal(baton_gate_enter(w->gate, &a.ask, NULL, &both), BATON_OK);
	struct baton_gate_ticket *behind = enter_key(w, 3, "free");
	assert_int_equal(poll_ticket(w, behind), BATON_YIELD);
	assert_true(baton_gate_ticket_cancel(both));
	assert_holder(w, "free", 3);
	assert_int_equal(poll_ticket(w, behind), BATON_OK);
	baton_gate_ticket_free(both);
	baton_gate_ticket_free(behind);
}

static void several_keys_are_waited_for_all_or_none(void **state)
{
	struct world *w = *state;
	struct ask a;
	struct baton_gate_ticket *t = NULL;
	baton_fence fences[4];
	static const char *names[] = {"a", "b", "c"};
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(try_key(w, i + 1, names[i]), BATON_OK);
	ask_more(ask_more(ask_key(&a, w, 9, "a"), "b", (baton_gate_class){0}), "c",
	         (baton_gate_class){0});
	ask_more(&a, "b", (baton_gate_class){0});
	assert_int_equal(baton_gate_enter(w->gate, &a.ask, NULL, &t), BATON_OK);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(poll_ticket(w, t), BATON_YIELD);
		assert_int_equal(drop_key(w, i + 1, names[i]), BATON_OK);
	}
	assert_int_equal(baton_gate_ticket_poll(t, at_ms(1000), fences, NULL), BATON_OK);
	assert_int_equal(fences[1].v, fences[3].v);
	for (unsigned i = 0; i < 3; i++)
		assert_holder(w, names[i], 9);
	baton_gate_ticket_free(t);
}

/* One release sets several tickets free, through keys that it does not name. */
static void a_ticket_that_goes_on_lets_those_behind_it_go_on(void **state)
{
	struct world *w = *state;
	struct ask a;
	struct baton_gate_ticket *both = NULL;
	struct baton_gate_ticket *other = NULL;
	baton_gate_class two = world_class(w, with_limit(2));
	assert_int_equal(try_key(w, 1, "busy"), BATON_OK);
	ask_more(ask_key(&a, w, 2, "busy"), "shared", two);
	assert_int_equal(baton_gate_enter(w->gate, &a.ask, NULL, &both), BATON_OK);
	ask_more(ask_key(&a, w, 3, "free"), "shared", two);
	assert_int_equal(baton_gate_enter(w->gate, &a.ask, NULL, &other), BATON_OK);
	struct baton_gate_ticket *last = enter_key(w, 4, "free");
	assert_int_equal(drop_key(w, 1, "busy"), BATON_OK);
	assert_holder(w, "busy", 2);
	assert_holder(w, "free", 3);
	assert_int_equal(poll_ticket(w, both), BATON_OK);
	assert_int_equal(poll_ticket(w, other), BATON_OK);
	assert_int_equal(poll_ticket(w, last), BATON_YIELD);
	assert_int_equal(drop_key(w, 3, "free"), BATON_OK);
	assert_int_equal(poll_ticket(w, last), BATON_OK);
	baton_gate_ticket_free(both);
	baton_gate_ticket_free(other);
	baton_gate_ticket_free(last);
}

static void a_raised_limit_lets_waiters_in_at_once(void **state)
{
	struct world *w = *state;
	baton_gate_class cls = world_class(w, with_limit(1));
	struct baton_gate_ticket *line[4];
	struct baton_key_policy policy = with_limit(3);
	assert_int_equal(try_in(w, cls, 100, "k"), BATON_OK);
	for (unsigned i = 0; i < 4; i++)
		line[i] = enter_in(w, cls, i, "k");
	assert_int_equal(baton_gate_class_set(w->gate, cls, &policy, at_ms(1000)), BATON_OK);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(poll_ticket(w, line[i]), i < 2 ? BATON_OK : BATON_YIELD);
		baton_gate_ticket_free(line[i]);
	}
}

static void a_full_line_refuses_and_states_its_bound(void **state)
{
	struct world *w = *state;
	struct ask a;
	struct baton_key_policy policy = with_limit(1);
	policy.waiting_max = 2;
	baton_gate_class cls = world_class(w, policy);
	struct baton_gate_ticket *none = NULL;
	assert_int_equal(try_in(w, cls, 1, "k"), BATON_OK);
	struct baton_gate_ticket *first = enter_in(w, cls, 2, "k");
	struct baton_gate_ticket *second = enter_in(w, cls, 3, "k");
	a.ask = (struct baton_gate_ask){a.keys, 0, run_id(4), at_ms(1000)};
	assert_int_equal(baton_gate_enter(w->gate, &ask_more(&a, "k", cls)->ask, NULL, &none),
	                 BATON_FULL);
	assert_null(none);
	assert_string_equal(baton_err_detail(), "2 already wait for this key; waiting_max is 2");
	baton_gate_ticket_free(second);
	struct baton_gate_ticket *third = enter_in(w, cls, 4, "k");
	baton_gate_ticket_free(first);
	baton_gate_ticket_free(third);
}

static void count_wake(void *arg)
{
	++*(unsigned *)arg;
}

static void the_hook_is_called_when_the_keys_are_got_and_not_when_cancelled(void **state)
{
	struct world *w = *state;
	struct ask a;
	unsigned got = 0;
	unsigned cancelled = 0;
	struct baton_wake on_got = {count_wake, &got};
	struct baton_wake on_cancelled = {count_wake, &cancelled};
	struct baton_gate_ticket *first = NULL;
	struct baton_gate_ticket *second = NULL;
	assert_int_equal(try_key(w, 1, "k"), BATON_OK);
	ask_key(&a, w, 2, "k");
	assert_int_equal(baton_gate_enter(w->gate, &a.ask, &on_cancelled, &first), BATON_OK);
	ask_key(&a, w, 3, "k");
	assert_int_equal(baton_gate_enter(w->gate, &a.ask, &on_got, &second), BATON_OK);
	assert_true(baton_gate_ticket_cancel(first));
	assert_int_equal(got, 0);
	assert_int_equal(drop_key(w, 1, "k"), BATON_OK);
	assert_int_equal(got, 1);
	assert_int_equal(cancelled, 0);
	baton_gate_ticket_free(first);
	baton_gate_ticket_free(second);
}

/* A thread that waits for a key on the world's clock. */
struct waiter {
	struct world *w;
	pthread_t thread;
	unsigned run;
	struct baton_mono until;
	enum baton_err answer;
	baton_fence fence;
};

static void *waiter_main(void *arg)
{
	struct waiter *waiter = arg;
	struct ask a;
	ask_key(&a, waiter->w, waiter->run, "k");
	waiter->answer = baton_gate_wait(waiter->w->gate, &a.ask, waiter->until, &waiter->fence);
	return NULL;
}

static void waiter_start(struct waiter *waiter, struct world *w, unsigned run,
                         struct baton_mono until)
{
	*waiter = (struct waiter){.w = w, .run = run, .until = until};
	assert_int_equal(pthread_create(&waiter->thread, NULL, waiter_main, waiter), 0);
}

static void a_blocked_thread_wakes_with_the_key(void **state)
{
	struct world *w = *state;
	struct waiter waiter;
	assert_int_equal(try_key(w, 1, "k"), BATON_OK);
	waiter_start(&waiter, w, 2, BATON_MONO_NEVER);
	fake_clock_wait_blocked(&w->clock, 1);
	assert_int_equal(drop_key(w, 1, "k"), BATON_OK);
	pthread_join(waiter.thread, NULL);
	assert_int_equal(waiter.answer, BATON_OK);
	assert_true(waiter.fence.v > 1);
	assert_holder(w, "k", 2);
}

static void a_blocked_thread_times_out_at_the_deadline_and_not_before(void **state)
{
	struct world *w = *state;
	struct waiter early;
	struct waiter late;
	assert_int_equal(try_key(w, 1, "k"), BATON_OK);
	waiter_start(&early, w, 2, at_ms(2000));
	fake_clock_wait_blocked(&w->clock, 1);
	waiter_start(&late, w, 3, at_ms(2001));
	fake_clock_wait_blocked(&w->clock, 2);
	fake_clock_advance(&w->clock, (struct baton_duration){999999999});
	fake_clock_wait_blocked(&w->clock, 2);
	world_time(w, 2000);
	pthread_join(early.thread, NULL);
	assert_int_equal(early.answer, BATON_TIMEOUT);
	assert_int_equal(drop_key(w, 1, "k"), BATON_OK);
	pthread_join(late.thread, NULL);
	assert_int_equal(late.answer, BATON_OK);
	assert_holder(w, "k", 3);
}

static void waiting_until_now_is_one_attempt(void **state)
{
	struct world *w = *state;
	struct ask a;
	assert_int_equal(try_key(w, 1, "k"), BATON_OK);
	ask_key(&a, w, 2, "k");
	assert_int_equal(baton_gate_wait(w->gate, &a.ask, at_ms(1000), NULL), BATON_TIMEOUT);
	assert_int_equal(drop_key(w, 1, "k"), BATON_OK);
	assert_int_equal(baton_gate_wait(w->gate, &a.ask, at_ms(1000), NULL), BATON_OK);
}

struct blocked {
	struct baton_gate_ticket *ticket;
	enum baton_err answer;
};

static void *blocked_main(void *arg)
{
	struct blocked *blocked = arg;
	blocked->answer = baton_gate_ticket_wait(blocked->ticket, BATON_MONO_NEVER, NULL);
	return NULL;
}

static void a_blocked_thread_can_be_cancelled_from_another(void **state)
{
	struct world *w = *state;
	pthread_t thread;
	assert_int_equal(try_key(w, 1, "k"), BATON_OK);
	struct blocked blocked = {enter_key(w, 2, "k"), BATON_OK};
	assert_int_equal(pthread_create(&thread, NULL, blocked_main, &blocked), 0);
	fake_clock_wait_blocked(&w->clock, 1);
	assert_true(baton_gate_ticket_cancel(blocked.ticket));
	pthread_join(thread, NULL);
	assert_int_equal(blocked.answer, BATON_CANCELLED);
	baton_gate_ticket_free(blocked.ticket);
	assert_int_equal(drop_key(w, 1, "k"), BATON_OK);
	assert_int_equal(try_key(w, 3, "k"), BATON_OK);
}

/* A clock on which the key is released between a waiter's last look and his falling asleep. */
struct late_clock {
	struct baton_clock clock;
	struct world *w;
	unsigned sleeps;
	bool would_sleep;
};

static struct baton_mono late_now(const struct baton_clock *self)
{
	(void)self;
	return at_ms(1000);
}

static void late_wait(const struct baton_clock *self, const uint32_t *word, uint32_t seen,
                      struct baton_mono until)
{
	struct late_clock *late = (struct late_clock *)self;
	(void)until;
	late->sleeps++;
	assert_int_equal(drop_key(late->w, 1, "k"), BATON_OK);
	late->would_sleep = __atomic_load_n(word, __ATOMIC_RELAXED) == seen;
}

static void a_release_just_before_falling_asleep_is_not_slept_through(void **state)
{
	struct world *w = *state;
	struct late_clock late = {.clock = {.now = late_now, .wait = late_wait}, .w = w};
	struct baton_gate_options options = {&w->fault.alloc, &late.clock};
	struct ask a;
	baton_gate_free(w->gate);
	assert_int_equal(baton_gate_new(&options, &w->gate), BATON_OK);
	assert_int_equal(try_key(w, 1, "k"), BATON_OK);
	ask_key(&a, w, 2, "k");
	assert_int_equal(baton_gate_wait(w->gate, &a.ask, BATON_MONO_NEVER, NULL), BATON_OK);
	assert_int_equal(late.sleeps, 1);
	assert_false(late.would_sleep);
}

/* Stops the releasing thread inside the hook, and frees the ticket meanwhile. */
struct slow_hook {
	sem_t entered;
	sem_t go_on;
	atomic_bool left;
};

static void slow_wake(void *arg)
{
	struct slow_hook *hook = arg;
	sem_post(&hook->entered);
	sem_wait(&hook->go_on);
	atomic_store(&hook->left, true);
}

static void *release_main(void *arg)
{
	assert_int_equal(drop_key(arg, 1, "k"), BATON_OK);
	return NULL;
}

struct freeing {
	struct baton_gate_ticket *ticket;
	struct slow_hook *hook;
	bool left_when_freed;
};

static void *free_main(void *arg)
{
	struct freeing *freeing = arg;
	baton_gate_ticket_free(freeing->ticket);
	freeing->left_when_freed = atomic_load(&freeing->hook->left);
	return NULL;
}

static void freeing_a_ticket_waits_for_its_hook(void **state)
{
	struct world *w = *state;
	struct ask a;
	struct slow_hook hook;
	struct baton_wake wake = {slow_wake, &hook};
	struct freeing freeing = {.hook = &hook};
	pthread_t releaser;
	pthread_t freer;
	sem_init(&hook.entered, 0, 0);
	sem_init(&hook.go_on, 0, 0);
	atomic_init(&hook.left, false);
	assert_int_equal(try_key(w, 1, "k"), BATON_OK);
	ask_key(&a, w, 2, "k");
	assert_int_equal(baton_gate_enter(w->gate, &a.ask, &wake, &freeing.ticket), BATON_OK);
	assert_int_equal(pthread_create(&releaser, NULL, release_main, w), 0);
	sem_wait(&hook.entered);
	assert_int_equal(pthread_create(&freer, NULL, free_main, &freeing), 0);
	fake_clock_wait_blocked(&w->clock, 1);
	sem_post(&hook.go_on);
	pthread_join(freer, NULL);
	pthread_join(releaser, NULL);
	assert_true(freeing.left_when_freed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(a_release_lets_the_first_in_line_go_on),
		WORLD_TEST(a_line_moves_in_order_of_arrival),
		WORLD_TEST(a_newcomer_yields_to_the_line),
		WORLD_TEST(no_other_keys_line_moves),
		WORLD_TEST(a_ticket_for_a_free_key_holds_it_at_once),
		WORLD_TEST(a_ticket_of_the_run_that_holds_the_key_holds_it_again),
		WORLD_TEST(a_waiting_ticket_tells_what_it_waits_for),
		WORLD_TEST(who_gives_up_leaves_no_trace),
		WORLD_TEST(the_next_goes_on_when_the_first_gives_up),
		WORLD_TEST(several_keys_are_waited_for_all_or_none),
		WORLD_TEST(a_ticket_that_goes_on_lets_those_behind_it_go_on),
		WORLD_TEST(a_raised_limit_lets_waiters_in_at_once),
		WORLD_TEST(a_full_line_refuses_and_states_its_bound),
		WORLD_TEST(the_hook_is_called_when_the_keys_are_got_and_not_when_cancelled),
		WORLD_TEST(a_blocked_thread_wakes_with_the_key),
		WORLD_TEST(a_blocked_thread_times_out_at_the_deadline_and_not_before),
		WORLD_TEST(waiting_until_now_is_one_attempt),
		WORLD_TEST(a_blocked_thread_can_be_cancelled_from_another),
		WORLD_TEST(a_release_just_before_falling_asleep_is_not_slept_through),
		WORLD_TEST(freeing_a_ticket_waits_for_its_hook),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
