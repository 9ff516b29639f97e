/* Commands under a guardian end with their time, with those who look after them and with the
 * runner, and what there is no room for never begins. */
#include "guardian/wards.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <baton/clock.h>

#include "support/child.h"
#include "support/fault.h"
#include "support/harness.h"
#include "support/skips.h"
#include "wards_world.h"

static struct baton_mono now_boot(void)
{
	return baton_clock_boot()->now(baton_clock_boot());
}

static void at_the_deadline_all_are_killed(void **state)
{
	struct world *w = *state;
	wards_deadline(w->wards, baton_mono_add(now_boot(), baton_duration_s(HOUR)));
	for (uint64_t i = 0; i < 3; i++) {
		assert_int_equal(start(w->wards, i,
		                       "trap '' TERM; (setsid sh -c 'echo up >&2; sleep 1000; :' "
		                       "&); while :; do sleep 1000; done"),
		                 BATON_OK);
		await_line(w, "up");
	}
	/* Later ones do not count once an earlier one was said. */
	wards_deadline(w->wards, baton_mono_add(now_boot(), baton_duration_s(2 * HOUR)));
	wards_deadline(w->wards, baton_mono_add(now_boot(), baton_duration_ms(20)));
	for (int i = 0; i < 3; i++) {
		struct ward_news news = await_end(w);
		killed_by(&news, SIGKILL);
		assert_false(news.timed_out);
	}
	struct ward_news news = run(w, "exit 0");
	assert_int_equal(news.how, WARD_UNSTARTED);
	assert_int_equal(news.code, ECANCELED);
	/* The guardian serves on. */
	wards_deadline(w->wards, baton_mono_add(now_boot(), baton_duration_s(HOUR)));
	news = run(w, "exit 7");
	exits_with(&news, 7);
	wards_deadline(w->wards, (struct baton_mono){0});
	news = run(w, "exit 7");
	assert_int_equal(news.code, ECANCELED);
	wards_deadline(w->wards, BATON_MONO_NEVER);
	news = run(w, "exit 7");
	exits_with(&news, 7);
}

/* In a process of its own: freezes while a command runs, and says how it went on. */
static int freeze(int channel, void *arg)
{
	struct world *w = arg;
	struct wards_ask ask = {.life = w->file, .awake = true};
	struct wards *wards;
	struct ward_news news = {.kind = 0};
	if (wards_open(&ask, &wards) != BATON_OK)
		return 1;
	char *argv[] = {(char *)"sleep", (char *)"1000", NULL};
	struct ward_spec spec = spec_of(1, argv);
	spec.channel = channel; /* it ends when both do */
	if (wards_start(wards, &spec) != BATON_OK)
		return 2;
	struct pollfd fd = {.fd = wards_fd(wards), .events = POLLIN};
	while (!wards_next(wards, &news))
		poll(&fd, 1, BOUND_MS);
	if (news.kind != WARD_BEGUN)
		return 3;
	const struct baton_clock *clock = baton_clock_awake();
	wards_deadline(wards, baton_mono_add(clock->now(clock), baton_duration_ms(20)));
	channel_send(channel, "frozen");
	close(channel);
	raise(SIGSTOP);
	_exit(0);
}

static void a_frozen_runner_does_not_put_the_deadline_off(void **state)
{
	struct world *w = *state;
	struct child c;
	char message[16];
	child_start(&c, freeze, w);
	assert_true(channel_receive(c.channel, message, sizeof message));
	/* Only the command has it now, so this is its end. */
	assert_false(channel_receive(c.channel, message, sizeof message));
	assert_int_equal(wards_lives(w->file), BATON_YIELD);
	siginfo_t info;
	assert_int_equal(waitid(P_PID, (id_t)c.pid, &info, WSTOPPED | WEXITED | WNOWAIT), 0);
	assert_int_equal(info.si_code, CLD_STOPPED);
	kill(c.pid, SIGCONT);
	assert_int_equal(child_reap(&c), 0);
}

/* In a process of its own: is past its deadline, has a byte of the file locked, and freezes. */
static int freeze_with_lock(int channel, void *arg)
{
	const struct world *w = arg;
	struct flock byte = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 120, .l_len = 1};
	struct wards_ask ask = {.life = w->file, .lock = w->gate, .lock_at = 120, .awake = true};
	struct wards *wards;
	int fd = open(w->gate, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || fcntl(fd, F_SETLK, &byte) != 0)
		return 1;
	if (dup2(channel, STDERR_FILENO) < 0 || wards_open(&ask, &wards) != BATON_OK)
		return 2;
	wards_deadline(wards, (struct baton_mono){0});
	raise(SIGSTOP);
	_exit(0);
}

/* What its log has then says why. */
static void a_runner_that_is_frozen_with_a_lock_is_killed(void **state)
{
	struct world *w = *state;
	struct child c;
	siginfo_t info;
	char said[256], expected[256];
	child_start(&c, freeze_with_lock, w);
	assert_true(channel_receive(c.channel, said, sizeof said));
	snprintf(expected, sizeof expected,
	         "baton-guardian: the runner, process %d, is killed: it was stopped in the middle "
	         "of a write, and kept everybody from the store beyond its time; start it again\n",
	         c.pid);
	assert_string_equal(said, expected);
	assert_int_equal(waitid(P_PID, (id_t)c.pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(info.si_code, CLD_KILLED);
	assert_int_equal(info.si_status, SIGKILL);
	child_reap(&c);
}

static void a_killed_guardian_is_told_and_takes_all_with_it(void **state)
{
	struct world *w = *state;
	for (uint64_t i = 0; i < 3; i++) {
		assert_int_equal(start(w->wards, i,
		                       "echo x; (setsid sh -c 'echo up >&2; sleep "
		                       "1000; :' &); sleep 1000; :"),
		                 BATON_OK);
		await_line(w, "up");
	}
	assert_int_equal(kill(wards_pid(w->wards), SIGKILL), 0);
	await_kind(w, WARD_GUARDIAN_LOST);
	for (int i = 0; i < 3; i++) {
		struct ward_news news = await_end(w);
		killed_by(&news, SIGKILL);
		assert_string_equal(w->text, "x\n");
	}
	assert_int_equal(start(w->wards, 9, "exit 0"), BATON_GONE);
	/* It can be begun anew. */
	wards_close(w->wards);
	w->wards = NULL;
	struct wards_ask ask = {.life = w->life};
	assert_int_equal(wards_open(&ask, &w->wards), BATON_OK);
	struct ward_news news = run(w, "exit 1");
	exits_with(&news, 1);
}

static void a_command_that_kills_its_nanny_is_ended(void **state)
{
	struct world *w = *state;
	assert_int_equal(start(w->wards, 2, "echo other >&2; sleep 1000"), BATON_OK);
	await_line(w, "other");
	struct ward_news news =
		run(w, "(setsid sleep 1000 &); echo out; kill -KILL $PPID; while :; do :; done");
	killed_by(&news, SIGKILL);
	assert_int_equal(news.id, 7);
	assert_string_equal(w->text, "out\n");
	/* Nobody else is. */
	wards_stop(w->wards, 2, false);
	news = await_end(w);
	killed_by(&news, SIGTERM);
}

static void a_stopped_nanny_does_not_put_the_deadline_off(void **state)
{
	struct world *w = *state;
	int hold[2];
	char byte;
	char *argv[] = {(char *)"sh", (char *)"-c",
	                (char *)"trap '' TERM; (setsid sleep 1000 &); echo $PPID >&2; sleep 1000",
	                NULL};
	assert_int_equal(pipe2(hold, O_CLOEXEC | O_NONBLOCK), 0);
	struct ward_spec spec = spec_of(1, argv);
	spec.channel = hold[1];
	assert_int_equal(wards_start(w->wards, &spec), BATON_OK);
	close(hold[1]);
	await_kind(w, WARD_SAID);
	assert_int_equal(kill(atoi(w->said), SIGSTOP), 0);
	wards_deadline(w->wards, now_boot());
	struct ward_news news = await_end(w);
	killed_by(&news, SIGKILL);
	assert_int_equal(read(hold[0], &byte, 1), 0);
	close(hold[0]);
}

/* A command and a daemon that keep `hold`, of which this process has the other end. Their nanny and
 * the daemon. */
struct family {
	int hold;
	pid_t nanny;
	pid_t daemon;
};

static struct family start_family(struct world *w)
{
	struct family f;
	int hold[2], nanny, daemon;
	char *argv[] = {(char *)"sh", (char *)"-c",
	                (char *)"trap '' TERM; d=$(setsid sh -c 'echo $$; exec sleep 1000 > "
	                        "/dev/null' &); echo $PPID $d >&2; sleep 1000; :",
	                NULL};
	assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
	struct ward_spec spec = spec_of(1, argv);
	spec.channel = hold[1];
	assert_int_equal(wards_start(w->wards, &spec), BATON_OK);
	close(hold[1]);
	await_kind(w, WARD_SAID);
	assert_int_equal(sscanf(w->said, "%d %d", &nanny, &daemon), 2);
	f = (struct family){.hold = hold[0], .nanny = nanny, .daemon = daemon};
	return f;
}

/* Guardian and nanny are killed, without a moment for one of them to clean up. */
static void kill_helpers(const struct world *w, const struct family *f)
{
	assert_int_equal(kill(wards_pid(w->wards), SIGSTOP), 0);
	assert_int_equal(kill(f->nanny, SIGKILL), 0);
	assert_int_equal(kill(wards_pid(w->wards), SIGKILL), 0);
}

static void await_no_family(const struct family *f)
{
	struct pollfd fd = {.fd = f->hold};
	assert_int_equal(poll(&fd, 1, BOUND_MS), 1);
	assert_int_equal(fd.revents, POLLHUP);
	close(f->hold);
}

static void what_a_killed_guardian_and_its_nanny_leave_is_killed(void **state)
{
	struct world *w = *state;
	struct family f = start_family(w);
	kill_helpers(w, &f);
	await_kind(w, WARD_GUARDIAN_LOST);
	struct ward_news news = await_end(w);
	killed_by(&news, SIGKILL);
	assert_true(wards_are_gone(w->wards));
	await_no_family(&f);
}

static void closing_kills_that_too(void **state)
{
	struct world *w = *state;
	struct family f = start_family(w);
	kill_helpers(w, &f);
	wards_close(w->wards);
	w->wards = NULL;
	await_no_family(&f);
}

/* The end to write of the leash that a process has: it is above the descriptors of scripts, and the
 * only pipe there. This process is then one that nobody kills. */
static int take_leash(pid_t pid)
{
	char path[64], link[64];
	for (int i = 100; i < 200; i++) {
		snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, i);
		ssize_t n = readlink(path, link, sizeof link);
		if (n > 5 && memcmp(link, "pipe:", 5) == 0)
			return open(path, O_WRONLY | O_CLOEXEC);
	}
	return -1;
}

static void an_end_is_told_only_when_all_have_gone_who_cannot_be_killed(void **state)
{
	struct world *w = *state;
	struct family f = start_family(w);
	int leash = take_leash(f.daemon);
	struct ward_news news;
	assert_true(leash >= 0);
	kill_helpers(w, &f);
	await_kind(w, WARD_GUARDIAN_LOST);
	await_no_family(&f);
	assert_false(wards_next(w->wards, &news));
	assert_false(wards_are_gone(w->wards));
	close(leash);
	news = await_end(w);
	killed_by(&news, SIGKILL);
}

static void closing_does_not_wait_for_ever_for_who_cannot_be_killed(void **state)
{
	struct world *w = *state;
	struct family f = start_family(w);
	int leash = take_leash(f.daemon);
	assert_true(leash >= 0);
	kill_helpers(w, &f);
	wards_close(w->wards);
	w->wards = NULL;
	await_no_family(&f);
	close(leash);
}

static int hold_life(int channel, void *arg)
{
	struct world *w = arg;
	struct wards_ask ask = {.life = w->file};
	struct wards *wards;
	if (wards_open(&ask, &wards) != BATON_OK ||
	    start(wards, 1, "trap '' TERM; (setsid sleep 1000 &); sleep 1000; :") != BATON_OK)
		return 1;
	channel_send(channel, "held");
	pause();
	return 0;
}

static void the_life_of_a_dead_runner_ends_with_the_last_of_its_commands(void **state)
{
	struct world *w = *state;
	struct wards_ask ask = {.life = w->file};
	struct wards *wards = NULL;
	struct child c;
	char message[16];
	assert_int_equal(wards_lives(w->file), BATON_OK);
	child_start(&c, hold_life, w);
	assert_true(channel_receive(c.channel, message, sizeof message));
	assert_int_equal(wards_lives(w->file), BATON_YIELD);
	assert_int_equal(wards_open(&ask, &wards), BATON_YIELD);
	assert_null(wards);
	int fd = open(w->file, O_RDONLY | O_CLOEXEC);
	kill(c.pid, SIGKILL);
	assert_int_equal(child_reap(&c), 128 + SIGKILL);
	assert_int_equal(flock(fd, LOCK_SH), 0);
	close(fd);
	assert_int_equal(wards_lives(w->file), BATON_OK);
	assert_int_equal(wards_open(&ask, &wards), BATON_OK);
	wards_close(wards);
	assert_int_equal(access(w->file, F_OK), -1);
	assert_int_equal(wards_lives("/no/such/folder/life"), BATON_OK);
	assert_int_equal(wards_lives(w->folder), BATON_OK);
}

static void whoever_only_looks_is_not_in_the_way_for_long(void **state)
{
	struct world *w = *state;
	struct wards_ask ask = {.life = w->file};
	struct wards *wards = NULL;
	int fd = open(w->file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(flock(fd, LOCK_SH), 0);
	assert_int_equal(wards_open(&ask, &wards), BATON_BUSY);
	assert_null(wards);
	close(fd);
	assert_int_equal(wards_open(&ask, &wards), BATON_OK);
	wards_close(wards);
}

static void what_is_no_helper_is_refused(void **state)
{
	struct world *w = *state;
	struct wards *wards = NULL;
	struct wards_ask ask = {.life = w->file, .helper = "/no/such/helper"};
	assert_int_equal(wards_open(&ask, &wards), BATON_SYSTEM);
	assert_non_null(strstr(baton_err_detail(), "/no/such/helper"));
	ask.helper = "/bin/true";
	assert_int_equal(wards_open(&ask, &wards), BATON_SYSTEM);
	assert_non_null(strstr(baton_err_detail(), "/bin/true"));
	assert_int_equal(access(w->file, F_OK), -1);
	ask = (struct wards_ask){.life = "relative"};
	assert_int_equal(wards_open(&ask, &wards), BATON_INVALID);
	ask = (struct wards_ask){.life = NULL};
	assert_int_equal(wards_open(&ask, &wards), BATON_INVALID);
	assert_null(wards);
}

static void closing_kills_what_lives(void **state)
{
	struct world *w = *state;
	int hold[2];
	char byte;
	char *argv[] = {(char *)"sh", (char *)"-c",
	                (char *)"trap '' TERM; (setsid sh -c 'echo up >&2; sleep 1000; :' &); "
	                        "sleep 1000; :",
	                NULL};
	assert_int_equal(pipe2(hold, O_CLOEXEC | O_NONBLOCK), 0);
	struct ward_spec spec = spec_of(1, argv);
	spec.channel = hold[1];
	assert_int_equal(wards_start(w->wards, &spec), BATON_OK);
	close(hold[1]);
	await_line(w, "up");
	wards_close(w->wards);
	w->wards = NULL;
	assert_int_equal(read(hold[0], &byte, 1), 0);
	close(hold[0]);
	assert_int_equal(access(w->life, F_OK), -1);
}

static void a_runner_short_of_descriptors_is_told(void **state)
{
	struct world *w = *state;
	struct rlimit limit, few;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	few = limit;
	int next = dup(0);
	close(next);
	for (int more = 0; more < 8; more++) {
		few.rlim_cur = (rlim_t)next + (rlim_t)more;
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		enum baton_err e = start(w->wards, 1, "exit 0");
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
		if (e == BATON_OK)
			await_end(w);
		else
			assert_int_equal(e, BATON_SYSTEM);
		int again = dup(0);
		close(again);
		assert_int_equal(again, next);
	}
}

static void each_failing_allocation_is_told_and_undone(void **state)
{
	struct world *w = *state;
	struct fault fault;
	fault_init(&fault);
	struct wards_ask ask = {.life = w->file, .alloc = &fault.alloc};
	struct wards *wards = NULL;
	for (unsigned n = 1;; n++) {
		fault_arm(&fault, n);
		enum baton_err e = wards_open(&ask, &wards);
		if (e == BATON_OK)
			e = start(wards, 1, "exit 0");
		bool fired = fault_fired(&fault);
		wards_close(wards);
		wards = NULL;
		assert_int_equal(fault_live_blocks(&fault), 0);
		assert_int_equal(e, fired ? BATON_NO_MEMORY : BATON_OK);
		if (!fired)
			break;
	}
	fault_done(&fault);
}

static void no_more_than_the_limit_can_be_started(void **state)
{
	struct world *w = *state;
	/* A guardian that does nothing lets all of them wait, with what they need. */
	struct rlimit limit;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	if (limit.rlim_max < WARDS_MAX * 8)
		skip();
	rlim_t before = limit.rlim_cur;
	limit.rlim_cur = limit.rlim_max < 100000 ? limit.rlim_max : 100000;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(kill(wards_pid(w->wards), SIGSTOP), 0);
	for (uint64_t i = 0; i < WARDS_MAX; i++)
		assert_int_equal(start(w->wards, i, "sleep 1000"), BATON_OK);
	assert_int_equal(start(w->wards, WARDS_MAX, "exit 0"), BATON_FULL);
	assert_non_null(strstr(baton_err_detail(), "1024"));
	/* Those that were not sent never begin. */
	wards_stop_all(w->wards, true);
	struct ward_news news = await_end(w);
	assert_int_equal(news.how, WARD_UNSTARTED);
	assert_int_equal(news.code, ECANCELED);
	assert_int_equal(kill(wards_pid(w->wards), SIGCONT), 0);
	for (int i = 1; i < WARDS_MAX; i++)
		await_end(w);
	limit.rlim_cur = before;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

int main(void)
{
	skips_repair();
	const struct CMUnitTest tests[] = {
		TEST(at_the_deadline_all_are_killed),
		TEST(a_frozen_runner_does_not_put_the_deadline_off),
		TEST(a_runner_that_is_frozen_with_a_lock_is_killed),
		TEST(a_killed_guardian_is_told_and_takes_all_with_it),
		TEST(a_command_that_kills_its_nanny_is_ended),
		TEST(a_stopped_nanny_does_not_put_the_deadline_off),
		TEST(what_a_killed_guardian_and_its_nanny_leave_is_killed),
		TEST(closing_kills_that_too),
		TEST(an_end_is_told_only_when_all_have_gone_who_cannot_be_killed),
		TEST(closing_does_not_wait_for_ever_for_who_cannot_be_killed),
		TEST(the_life_of_a_dead_runner_ends_with_the_last_of_its_commands),
		TEST(whoever_only_looks_is_not_in_the_way_for_long),
		TEST(what_is_no_helper_is_refused),
		TEST(closing_kills_what_lives),
		TEST(a_runner_short_of_descriptors_is_told),
		TEST(each_failing_allocation_is_told_and_undone),
		TEST(no_more_than_the_limit_can_be_started),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
