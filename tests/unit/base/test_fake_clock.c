/* The clock of the tests itself. */
#include "support/fake_clock.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/harness.h"

/* A thread in one wait(), which tells when it has returned. */
struct sleeper {
	const struct baton_clock *clock;
	struct baton_mono until;
	pthread_t thread;
	uint32_t word; /* [atomic] */
	int returned;  /* [atomic] */
};

static void *sleep_once(void *arg)
{
	struct sleeper *s = arg;
	s->clock->wait(s->clock, &s->word, 0, s->until);
	__atomic_store_n(&s->returned, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void sleeper_start(struct sleeper *s, struct fake_clock *c, int64_t until_ns)
{
	*s = (struct sleeper){.clock = &c->clock, .until = {until_ns}};
	assert_int_equal(pthread_create(&s->thread, NULL, sleep_once, s), 0);
}

static int has_returned(struct sleeper *s)
{
	return __atomic_load_n(&s->returned, __ATOMIC_ACQUIRE);
}

static void time_moves_only_when_it_is_moved(void **state)
{
	(void)state;
	struct fake_clock c;
	fake_clock_init(&c, (struct baton_mono){1000});
	assert_int_equal(c.clock.now(&c.clock).ns, 1000);
	assert_int_equal(c.clock.wall(&c.clock).ms, INT64_C(1767225600000));
	fake_clock_advance(&c, baton_duration_ms(5));
	assert_int_equal(c.clock.now(&c.clock).ns, 5001000);
	assert_int_equal(c.clock.wall(&c.clock).ms, INT64_C(1767225600005));
	fake_clock_set_wall(&c, (struct baton_store_time){7});
	fake_clock_advance(&c, baton_duration_ms(1));
	assert_int_equal(c.clock.wall(&c.clock).ms, 8);
	fake_clock_done(&c);
}

static void a_wait_for_a_past_moment_or_on_a_changed_word_returns(void **state)
{
	(void)state;
	struct fake_clock c;
	fake_clock_init(&c, (struct baton_mono){1000});
	uint32_t word = 1;
	c.clock.wait(&c.clock, &word, 1, (struct baton_mono){1000});
	c.clock.wait(&c.clock, &word, 0, BATON_MONO_NEVER);
	fake_clock_done(&c);
}

static void only_those_whose_moment_is_reached_go_on(void **state)
{
	(void)state;
	struct fake_clock c;
	fake_clock_init(&c, (struct baton_mono){0});
	struct sleeper early, late;
	sleeper_start(&early, &c, 10);
	sleeper_start(&late, &c, 20);
	fake_clock_wait_blocked(&c, 2);

	fake_clock_advance(&c, (struct baton_duration){9});
	fake_clock_wait_blocked(&c, 2);
	assert_false(has_returned(&early));
	fake_clock_advance(&c, (struct baton_duration){1});
	pthread_join(early.thread, NULL);
	fake_clock_wait_blocked(&c, 1);
	assert_false(has_returned(&late));
	fake_clock_advance(&c, (struct baton_duration){10});
	pthread_join(late.thread, NULL);
	fake_clock_done(&c);
}

static void a_wake_up_of_the_word_ends_the_wait(void **state)
{
	(void)state;
	struct fake_clock c;
	fake_clock_init(&c, (struct baton_mono){0});
	struct sleeper s;
	sleeper_start(&s, &c, INT64_MAX);
	fake_clock_wait_blocked(&c, 1);
	__atomic_store_n(&s.word, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &s.word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT_MAX, NULL, NULL, 0);
	pthread_join(s.thread, NULL);
	fake_clock_done(&c);
}

static void no_advance_passes_a_waiter_unnoticed(void **state)
{
	(void)state;
	struct fake_clock c;
	fake_clock_init(&c, (struct baton_mono){0});
	for (int i = 1; i <= 2000; i++) {
		struct sleeper s;
		sleeper_start(&s, &c, i);
		fake_clock_advance(&c, (struct baton_duration){1});
		pthread_join(s.thread, NULL);
	}
	fake_clock_done(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(time_moves_only_when_it_is_moved),
		cmocka_unit_test(a_wait_for_a_past_moment_or_on_a_changed_word_returns),
		cmocka_unit_test(only_those_whose_moment_is_reached_go_on),
		cmocka_unit_test(a_wake_up_of_the_word_ends_the_wait),
		cmocka_unit_test(no_advance_passes_a_waiter_unnoticed),
	};
	return cmocka_run_group_tests_name("fake_clock", tests, NULL, NULL);
}
