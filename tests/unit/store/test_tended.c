/* Up to when nothing is due in a queue, as far as a process knows. */
#include "store/postgres/tended.h"
#include "support/harness.h"

#define Q 7
#define OTHER (Q + TENDED_QUEUES) /* has the same place */

static void what_was_clear_is_not_looked_at_again(void **state)
{
	(void)state;
	struct tended all[TENDED_QUEUES] = {{.queue = 0}};
	assert_int_equal(tended_since(all, Q, 1000), 0);
	tended_note(all, Q, 0, 1000, true);
	assert_int_equal(tended_since(all, Q, 1010), 0);
	tended_note(all, Q, 0, 1010, true);
	/* The look was after 1000, and maybe before 1010. */
	assert_int_equal(tended_since(all, Q, 1020), 1000);
	tended_note(all, Q, 1000, 1020, true);
	assert_int_equal(tended_since(all, Q, 1030), 1010);
}

static void what_was_due_is_looked_at_until_it_is_not(void **state)
{
	(void)state;
	struct tended all[TENDED_QUEUES] = {{.queue = 0}};
	tended_note(all, Q, 0, 1000, true);
	tended_note(all, Q, 0, 1010, true);
	tended_note(all, Q, 1000, 1020, false);
	assert_int_equal(tended_since(all, Q, 1030), 1000);
	tended_note(all, Q, 1000, 1030, true);
	assert_int_equal(tended_since(all, Q, 1040), 1020);
	/* Less was looked at than has to be. */
	tended_note(all, Q, 1030, 1050, true);
	assert_int_equal(tended_since(all, Q, 1060), 1020);
}

static void now_and_then_everything_is_looked_at(void **state)
{
	(void)state;
	struct tended all[TENDED_QUEUES] = {{.queue = 0}};
	tended_note(all, Q, 0, 1000, true);
	tended_note(all, Q, 0, 1010, true);
	assert_int_equal(tended_since(all, Q, 1009 + TENDED_ALL_MS), 1000);
	assert_int_equal(tended_since(all, Q, 1010 + TENDED_ALL_MS), 0);
	tended_note(all, Q, 0, 1010 + TENDED_ALL_MS, false);
	assert_int_equal(tended_since(all, Q, 1020 + TENDED_ALL_MS), 0);
}

static void when_the_clock_was_set_back_everything_is_looked_at(void **state)
{
	(void)state;
	struct tended all[TENDED_QUEUES] = {{.queue = 0}};
	tended_note(all, Q, 0, 1000, true);
	tended_note(all, Q, 0, 1010, true);
	assert_int_equal(tended_since(all, Q, 900), 0);
	tended_note(all, Q, 1000, 900, true);
	assert_int_equal(tended_since(all, Q, 1100), 0);
}

static void queues_do_not_know_of_each_other(void **state)
{
	(void)state;
	struct tended all[TENDED_QUEUES] = {{.queue = 0}};
	tended_note(all, Q, 0, 1000, true);
	tended_note(all, Q, 0, 1010, true);
	assert_int_equal(tended_since(all, OTHER, 1020), 0);
	tended_note(all, OTHER, 0, 1020, true);
	assert_int_equal(tended_since(all, Q, 1030), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_clear_is_not_looked_at_again),
		cmocka_unit_test(what_was_due_is_looked_at_until_it_is_not),
		cmocka_unit_test(now_and_then_everything_is_looked_at),
		cmocka_unit_test(when_the_clock_was_set_back_everything_is_looked_at),
		cmocka_unit_test(queues_do_not_know_of_each_other),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
