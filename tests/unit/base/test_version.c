/* Which Baton this is. */
#include <baton/version.h>

#include <stdio.h>

#include "support/harness.h"

static void the_library_and_its_headers_are_of_one_version(void **state)
{
	(void)state;
	assert_string_equal(baton_version(), BATON_VERSION);
}

static void the_version_is_three_numbers(void **state)
{
	(void)state;
	unsigned major, minor, patch;
	char end;
	assert_int_equal(sscanf(baton_version(), "%u.%u.%u%c", &major, &minor, &patch, &end), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_library_and_its_headers_are_of_one_version),
		cmocka_unit_test(the_version_is_three_numbers),
	};
	return cmocka_run_group_tests_name("version", tests, NULL, NULL);
}
