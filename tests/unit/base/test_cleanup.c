/* Cleanup by attribute, and ownership that moves. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "support/harness.h"

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) != -1;
}

static int open_and_leave(void)
{
	AUTO(fd_closep) int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_true(is_open(fd));
	int number = fd;
	errno = EXDEV;
	return number;
}

static void a_descriptor_is_closed_at_the_end_of_its_scope(void **state)
{
	(void)state;
	int fd = open_and_leave();
	assert_int_equal(errno, EXDEV);
	assert_false(is_open(fd));
}

static void errno_survives_a_close_that_fails(void **state)
{
	(void)state;
	int fd = 123456;
	errno = EXDEV;
	fd_closep(&fd);
	assert_int_equal(errno, EXDEV);
}

static void no_descriptor_is_fine(void **state)
{
	(void)state;
	int fd = -1;
	errno = 0;
	fd_closep(&fd);
	assert_int_equal(errno, 0);
}

static void count_up(int **counter)
{
	if (*counter != NULL)
		++**counter;
}

static int *leave_with(int *counter, bool take)
{
	AUTO(count_up) int *mine = counter;
	return take ? TAKE(mine) : NULL;
}

static void what_was_taken_is_not_cleaned_up(void **state)
{
	(void)state;
	int cleanups = 0;
	assert_null(leave_with(&cleanups, false));
	assert_int_equal(cleanups, 1);
	assert_ptr_equal(leave_with(&cleanups, true), &cleanups);
	assert_int_equal(cleanups, 1);
}

static void taking_evaluates_its_argument_once(void **state)
{
	(void)state;
	int a, b;
	int *items[] = {&a, &b};
	size_t i = 0;
	assert_ptr_equal(TAKE(items[i++]), &a);
	assert_int_equal(i, 1);
	assert_null(items[0]);
	assert_ptr_equal(items[1], &b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_descriptor_is_closed_at_the_end_of_its_scope),
		cmocka_unit_test(errno_survives_a_close_that_fails),
		cmocka_unit_test(no_descriptor_is_fine),
		cmocka_unit_test(what_was_taken_is_not_cleaned_up),
		cmocka_unit_test(taking_evaluates_its_argument_once),
	};
	return cmocka_run_group_tests_name("cleanup", tests, NULL, NULL);
}
