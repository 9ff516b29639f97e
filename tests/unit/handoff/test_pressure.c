/* What is done when descriptors run out, and when there are some again. */
#include "handoff/pressure.h"

#include "support/harness.h"

static void handoffs_stop_at_three_quarters(void **state)
{
	(void)state;
	struct pressure p;
	pressure_init(&p, 100);
	pressure_accepted(&p, 74);
	assert_int_equal(p.level, PRESSURE_NONE);
	pressure_accepted(&p, 75);
	assert_int_equal(p.level, PRESSURE_SHORT);
}

static void three_good_accepts_in_a_row_end_it(void **state)
{
	(void)state;
	struct pressure p;
	pressure_init(&p, 100);
	pressure_failed(&p, true);
	assert_int_equal(p.level, PRESSURE_REFUSING);
	pressure_accepted(&p, 10);
	pressure_accepted(&p, 10);
	pressure_failed(&p, true);
	pressure_accepted(&p, 10);
	pressure_accepted(&p, 10);
	pressure_accepted(&p, 75);
	assert_int_equal(p.level, PRESSURE_REFUSING);
	pressure_accepted(&p, 10);
	pressure_accepted(&p, 10);
	assert_int_equal(p.level, PRESSURE_REFUSING);
	pressure_accepted(&p, 10);
	assert_int_equal(p.level, PRESSURE_NONE);
}

static void without_even_the_reserve_it_pauses(void **state)
{
	(void)state;
	struct pressure p;
	pressure_init(&p, 100);
	pressure_failed(&p, false);
	assert_int_equal(p.level, PRESSURE_PAUSED);
	pressure_resume(&p);
	assert_int_equal(p.level, PRESSURE_REFUSING);
	pressure_resume(&p);
	assert_int_equal(p.level, PRESSURE_REFUSING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(handoffs_stop_at_three_quarters),
		cmocka_unit_test(three_good_accepts_in_a_row_end_it),
		cmocka_unit_test(without_even_the_reserve_it_pauses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
