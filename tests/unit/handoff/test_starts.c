/* How often a service may be started. */
#include "handoff/starts.h"

#include "support/harness.h"

static struct baton_mono at_ms(int64_t ms)
{
	return (struct baton_mono){ms * 1000000};
}

static void the_fourth_start_waits_for_the_first_to_be_past(void **state)
{
	struct starts s = {.count = 0};
	(void)state;
	for (int64_t ms = 1000; ms <= 3000; ms += 1000) {
		assert_int_equal(starts_wait(&s, at_ms(ms)).ns, 0);
		starts_add(&s, at_ms(ms));
	}
	assert_int_equal(starts_wait(&s, at_ms(3000)).ns, baton_duration_ms(28000).ns);
	assert_int_equal(starts_wait(&s, at_ms(30999)).ns, baton_duration_ms(1).ns);
	assert_int_equal(starts_wait(&s, at_ms(31000)).ns, 0);
	starts_add(&s, at_ms(31000));
	assert_int_equal(starts_wait(&s, at_ms(31000)).ns, baton_duration_ms(1000).ns);
	assert_int_equal(s.count, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_fourth_start_waits_for_the_first_to_be_past),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
