/* What happens when one of our own assumptions does not hold. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "support/harness.h"

/* The line that a child writes to standard error while it aborts. */
static void abort_line(void (*body)(void), char *text, size_t size)
{
	int fds[2];
	assert_int_equal(pipe(fds), 0);
	pid_t pid = fork();
	assert_int_not_equal(pid, -1);
	if (pid == 0) {
		signal(SIGABRT, SIG_DFL);
		dup2(fds[1], STDERR_FILENO);
		body();
		_exit(0);
	}
	close(fds[1]);
	size_t len = 0;
	ssize_t n;
	while ((n = read(fds[0], text + len, size - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	close(fds[0]);

	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
}

static void breaks_a_rule(void)
{
#line 7 "somewhere.c"
	CHECK(1 + 1 == 3);
}

static void breaks_a_long_rule(void)
{
	char file[1000];
	memset(file, 'x', sizeof file - 1);
	file[sizeof file - 1] = '\0';
	check_failed(file, 1, "cond");
}

static void a_broken_rule_is_named_in_one_line_before_the_abort(void **state)
{
	(void)state;
	char text[2000];
	abort_line(breaks_a_rule, text, sizeof text);
	assert_string_equal(text, "baton: bug at somewhere.c:7: 1 + 1 == 3\n");
}

static void a_line_that_is_too_long_is_cut_and_still_a_line(void **state)
{
	(void)state;
	char text[2000];
	abort_line(breaks_a_long_rule, text, sizeof text);
	assert_int_equal(strlen(text), 511);
	assert_int_equal(text[510], '\n');
	assert_memory_equal(text, "baton: bug at xxx", 17);
}

static void a_rule_that_holds_is_evaluated_once(void **state)
{
	(void)state;
	int n = 0;
	CHECK(++n == 1);
	assert_int_equal(n, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_broken_rule_is_named_in_one_line_before_the_abort),
		cmocka_unit_test(a_line_that_is_too_long_is_cut_and_still_a_line),
		cmocka_unit_test(a_rule_that_holds_is_evaluated_once),
	};
	return cmocka_run_group_tests_name("check", tests, NULL, NULL);
}
