/* Who is killed for an end of a pipe, and who is not. */
#include "guardian/keepers.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/child.h"
#include "support/harness.h"
#include "support/skips.h"

#define KILLED (128 + SIGKILL)

/* Which ends of the pipe a process keeps. */
struct ends {
	int pipe[2];
	bool reads;
	bool writes;
	bool leads; /* a process group of its own */
};

static int keep(int channel, void *arg)
{
	const struct ends *ends = arg;
	char word[8];
	if (!ends->reads)
		close(ends->pipe[0]);
	if (!ends->writes)
		close(ends->pipe[1]);
	if (ends->leads && setpgid(0, 0) != 0)
		return 1;
	channel_send(channel, "there");
	/* Until nobody needs it any more. */
	return channel_receive(channel, word, sizeof word) ? 2 : 0;
}

static void start(struct child *c, struct ends *ends)
{
	char word[8];
	child_start(c, keep, ends);
	assert_true(channel_receive(c->channel, word, sizeof word));
}

/* How one with these ends has ended: 0 when it was left alone. */
static int end_of(struct child *c)
{
	child_hang_up(c);
	return child_reap(c);
}

static void who_can_write_is_killed_and_nobody_else(void **state)
{
	(void)state;
	static const struct {
		bool reads, writes;
		int end;
	} cases[] = {
		{false, true, KILLED},
		{true, false, 0},
		{false, false, 0},
		/* A copy of this process, forked before it closed the end to write. */
		{true, true, 0},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct ends ends = {.reads = cases[i].reads, .writes = cases[i].writes};
		struct child c;
		assert_int_equal(pipe2(ends.pipe, O_CLOEXEC), 0);
		start(&c, &ends);
		keepers_kill(ends.pipe[0], 0);
		assert_int_equal(end_of(&c), cases[i].end);
		close(ends.pipe[0]);
		close(ends.pipe[1]);
	}
}

static void who_is_of_the_group_is_spared(void **state)
{
	(void)state;
	struct ends spared = {.writes = true, .leads = true}, other = {.writes = true};
	struct child a, b;
	assert_int_equal(pipe2(spared.pipe, O_CLOEXEC), 0);
	memcpy(other.pipe, spared.pipe, sizeof other.pipe);
	start(&a, &spared);
	start(&b, &other);
	keepers_kill(spared.pipe[0], a.pid);
	assert_int_equal(end_of(&a), 0);
	assert_int_equal(end_of(&b), KILLED);
	close(spared.pipe[0]);
	close(spared.pipe[1]);
}

/* The number that a process has in /proc. */
static int write_shown(int channel, void *arg)
{
	const struct ends *ends = arg;
	char number[16] = {0}, word[8];
	close(ends->pipe[0]);
	if (readlink("/proc/self", number, sizeof number - 1) <= 0)
		return 1;
	channel_send(channel, number);
	return channel_receive(channel, word, sizeof word) ? 2 : 0;
}

static int wait_alone(int channel, void *arg)
{
	const struct ends *ends = arg;
	close(ends->pipe[1]);
	return keep(channel, &(struct ends){.pipe = {ends->pipe[0], -1}, .writes = true});
}

/* The next process has that number. */
static bool number_next(const char *number)
{
	FILE *file = fopen("/proc/sys/kernel/ns_last_pid", "we");
	bool done = file && fprintf(file, "%d", atoi(number) - 1) > 0;
	return file && fclose(file) == 0 && done;
}

/* In the first process of a new pid namespace, which sees the /proc of the one above. */
static int be_first(struct ends *ends)
{
	struct child keeper, other;
	char number[16], word[8];
	child_start(&keeper, write_shown, ends);
	if (!channel_receive(keeper.channel, number, sizeof number) || !number_next(number))
		return CHILD_SKIP;
	child_start(&other, wait_alone, ends);
	if (other.pid != atoi(number))
		return CHILD_SKIP;
	if (!channel_receive(other.channel, word, sizeof word))
		return 1;
	close(ends->pipe[1]);
	keepers_kill(ends->pipe[0], 0);
	return end_of(&other);
}

static int enter_namespace(int channel, void *arg)
{
	(void)channel;
	if (!child_unshare(CLONE_NEWPID))
		return CHILD_SKIP;
	/* Not child_start(): from there its parent has no number. */
	pid_t pid = fork();
	if (pid == 0)
		_exit(be_first(arg));
	struct child first = {.pid = pid, .channel = -1};
	return pid < 0 ? CHILD_SKIP : child_reap(&first);
}

static void who_has_only_the_number_of_one_is_left_alone(void **state)
{
	(void)state;
	struct ends ends;
	struct child c;
	assert_int_equal(pipe2(ends.pipe, O_CLOEXEC), 0);
	child_start(&c, enter_namespace, &ends);
	int end = child_reap(&c);
	close(ends.pipe[0]);
	close(ends.pipe[1]);
	if (end == CHILD_SKIP)
		skip();
	assert_int_equal(end, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_can_write_is_killed_and_nobody_else),
		cmocka_unit_test(who_is_of_the_group_is_spared),
		cmocka_unit_test(who_has_only_the_number_of_one_is_left_alone),
	};
	skips_repair();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
