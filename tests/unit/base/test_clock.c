/* The system's clocks. */
#include <baton/clock.h>

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/child.h"
#include "support/harness.h"
#include "support/skips.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

/* One clock and the kernel's name for it. */
struct subject {
	const struct baton_clock *clock;
	clockid_t id;
};

static void each_clock(void (*body)(const struct subject *s))
{
	body(&(struct subject){baton_clock_awake(), CLOCK_MONOTONIC});
	body(&(struct subject){baton_clock_boot(), CLOCK_BOOTTIME});
}

static int64_t kernel_ns(clockid_t id)
{
	struct timespec t;
	assert_int_equal(clock_gettime(id, &t), 0);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void shows_the_kernels_time(const struct subject *s)
{
	int64_t before = kernel_ns(s->id);
	struct baton_mono now = s->clock->now(s->clock);
	int64_t after = kernel_ns(s->id);
	assert_true(before <= now.ns && now.ns <= after);

	before = kernel_ns(CLOCK_REALTIME) / 1000000;
	struct baton_store_time wall = s->clock->wall(s->clock);
	after = kernel_ns(CLOCK_REALTIME) / 1000000;
	assert_true(before <= wall.ms && wall.ms <= after);
}

static void each_clock_shows_the_kernels_time(void **state)
{
	(void)state;
	each_clock(shows_the_kernels_time);
}

static void returns_at_once(const struct subject *s)
{
	static const int64_t past[] = {INT64_MIN, -1, 0, 1};
	uint32_t word = 1;
	s->clock->wait(s->clock, &word, 2, BATON_MONO_NEVER);
	for (size_t i = 0; i < sizeof past / sizeof *past; i++)
		s->clock->wait(s->clock, &word, 1, (struct baton_mono){past[i]});
	s->clock->wait(s->clock, &word, 1, s->clock->now(s->clock));
}

static void a_changed_word_or_a_past_moment_needs_no_wait(void **state)
{
	(void)state;
	each_clock(returns_at_once);
}

static void reaches_the_moment(const struct subject *s)
{
	uint32_t word = 1;
	struct baton_mono start = s->clock->now(s->clock);
	struct baton_mono until = baton_mono_add(start, baton_duration_ms(2));
	while (s->clock->now(s->clock).ns < until.ns)
		s->clock->wait(s->clock, &word, 1, until);
	/* Nothing wakes the word and the moment is past, so the wait has ended by itself. */
	assert_int_equal(word, 1);
}

static void a_wait_ends_when_its_moment_is_reached(void **state)
{
	(void)state;
	each_clock(reaches_the_moment);
}

/* A thread that waits until the word changes. */
struct sleeper {
	const struct baton_clock *clock;
	struct baton_mono until;
	pid_t tid;     /* [atomic] 0 until it runs */
	uint32_t word; /* [atomic]                 */
};

/* Returns once the thread is in the kernel, waiting for the word; the kernel shows it, but signals
 * it to nobody. Where it does not even show it, the test is weaker. */
static void await_asleep(struct sleeper *s)
{
	pid_t tid;
	while ((tid = __atomic_load_n(&s->tid, __ATOMIC_ACQUIRE)) == 0)
		sched_yield();
	char path[64], expected[64], text[256] = "";
	snprintf(path, sizeof path, "/proc/self/task/%d/syscall", (int)tid);
	snprintf(expected, sizeof expected, "%d %p ", SYS_futex, (void *)&s->word);
	while (strncmp(text, expected, strlen(expected)) != 0) {
		FILE *file = fopen(path, "re");
		if (file == NULL || fgets(text, sizeof text, file) == NULL)
			text[0] = '\0';
		if (file == NULL)
			return;
		fclose(file);
		sched_yield();
	}
}

static void *sleep_until_changed(void *arg)
{
	struct sleeper *s = arg;
	__atomic_store_n(&s->tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	while (__atomic_load_n(&s->word, __ATOMIC_ACQUIRE) == 0)
		s->clock->wait(s->clock, &s->word, 0, s->until);
	return NULL;
}

static void wakes_a_sleeper(const struct subject *s, struct baton_mono until)
{
	struct sleeper sleeper = {.clock = s->clock, .until = until};
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, sleep_until_changed, &sleeper), 0);
	await_asleep(&sleeper);
	__atomic_store_n(&sleeper.word, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &sleeper.word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT_MAX, NULL, NULL, 0);
	pthread_join(thread, NULL);
}

static void is_woken(const struct subject *s)
{
	wakes_a_sleeper(s, BATON_MONO_NEVER);
	wakes_a_sleeper(s, (struct baton_mono){INT64_MAX - 1});
	wakes_a_sleeper(s, baton_mono_add(s->clock->now(s->clock), baton_duration_s(3600)));
}

static void a_wait_ends_when_its_word_changes(void **state)
{
	(void)state;
	each_clock(is_woken);
}

/* In a time namespace where the machine seems to have slept for 1000 s. */
static int compare_after_a_long_sleep(void)
{
	const struct baton_clock *awake = baton_clock_awake();
	const struct baton_clock *boot = baton_clock_boot();
	int64_t ahead = boot->now(boot).ns - awake->now(awake).ns;
	if (ahead < baton_duration_s(900).ns)
		return 1;
	/* A deadline in the past of one of them is not one of the other. */
	uint32_t word = 1;
	struct baton_mono until = baton_mono_add(boot->now(boot), baton_duration_ms(2));
	while (boot->now(boot).ns < until.ns)
		boot->wait(boot, &word, 1, until);
	until = baton_mono_add(awake->now(awake), baton_duration_ms(2));
	while (awake->now(awake).ns < until.ns)
		awake->wait(awake, &word, 1, until);
	return 0;
}

static int sleep_long(int channel, void *arg)
{
	(void)channel;
	(void)arg;
	static const char offsets[] = "boottime 1000 0\n";
	if (!child_unshare(CLONE_NEWTIME))
		return CHILD_SKIP;
	int fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, offsets, sizeof offsets - 1) < 0)
		return CHILD_SKIP;
	pid_t pid = fork();
	if (pid == 0)
		_exit(compare_after_a_long_sleep());
	int status;
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}

static void only_the_boot_clock_counts_the_machines_sleep(void **state)
{
	(void)state;
	struct child c;
	child_start(&c, sleep_long, NULL);
	int code = child_reap(&c);
	if (code == CHILD_SKIP)
		skip();
	assert_int_equal(code, 0);
}

int main(void)
{
	skips_repair();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_clock_shows_the_kernels_time),
		cmocka_unit_test(a_changed_word_or_a_past_moment_needs_no_wait),
		cmocka_unit_test(a_wait_ends_when_its_moment_is_reached),
		cmocka_unit_test(a_wait_ends_when_its_word_changes),
		cmocka_unit_test(only_the_boot_clock_counts_the_machines_sleep),
	};
	return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
