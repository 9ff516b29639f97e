/* Whoever is killed at whatever moment: no process of a command survives, and as long as one lives
 * the life file is locked. Runner, guardian, nanny and command are killed before each of their
 * system calls in turn, also while they clean up after another who was killed. */
#include "guardian/wards.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scratch.h"
#include "support/child.h"
#include "support/harness.h"
#include "support/skips.h"
#include "support/soak.h"
#include "tracer.h"

/* More system calls than anybody makes. */
#define CALLS_MAX 5000

/* How far the daily run goes on through what repeats itself. */
#define CALLS_DAILY 300

/* How many seconds one of them may take to end. */
#define BOUND 100

/* How the runner exits. */
enum {
	RUNNER_WELL = 0,
	RUNNER_HAS_NO_GUARDIAN = 2,
	RUNNER_IS_WRONG = 3
};

struct world {
	char folder[64];
	char life[96], file[96], gate[96], log[112];
	int gate_fd;
	int channel;   /* to the test, in the process that traces */
	pid_t *runner; /* shared */
	enum role role;
	unsigned call;
	bool runner_dies; /* once all have settled */
};

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof *w);
	if (!w)
		return -1;
	strcpy(w->folder, "/tmp/baton-wards-XXXXXX");
	if (!mkdtemp(w->folder))
		return -1;
	snprintf(w->life, sizeof w->life, "%s/life", w->folder);
	snprintf(w->file, sizeof w->file, "%s/witness", w->folder);
	snprintf(w->gate, sizeof w->gate, "%s/gate", w->folder);
	snprintf(w->log, sizeof w->log, "%s.log", w->file);
	w->gate_fd = open(w->gate, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	w->runner = mmap(NULL, sizeof *w->runner, PROT_READ | PROT_WRITE,
	                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	*state = w;
	return w->gate_fd < 0 || w->runner == MAP_FAILED ||
	       flock(w->gate_fd, LOCK_EX | LOCK_NB) != 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	close(w->gate_fd);
	munmap(w->runner, sizeof *w->runner);
	int failed = scratch_remove(w->folder);
	free(w);
	return failed;
}

/* Runs one command to its end. */
static int run(const struct world *w)
{
	struct wards_ask ask = {.life = w->life};
	struct wards *wards;
	char *argv[] = {getenv("BATON_WITNESS"), (char *)w->file, (char *)"family", (char *)w->gate,
	                NULL};
	struct ward_spec spec = {.id = 1, .argv = argv, .channel = -1};
	if (wards_open(&ask, &wards) != BATON_OK)
		return RUNNER_HAS_NO_GUARDIAN;
	if (wards_start(wards, &spec) != BATON_OK)
		return RUNNER_IS_WRONG;
	struct ward_news news = {.kind = 0};
	while (news.kind != WARD_ENDED) {
		struct pollfd fd = {.fd = wards_fd(wards), .events = POLLIN};
		if (!wards_next(wards, &news))
			(void)poll(&fd, 1, -1);
	}
	bool again = wards_next(wards, &news) && news.kind == WARD_ENDED;
	wards_close(wards);
	return again ? RUNNER_IS_WRONG : RUNNER_WELL;
}

static void be_runner(void *arg)
{
	struct world *w = arg;
	*w->runner = getpid();
	_exit(run(w));
}

static void settled(void *arg)
{
	struct world *w = arg;
	if (w->runner_dies)
		kill(*w->runner, SIGKILL);
	else
		flock(w->gate_fd, LOCK_UN);
}

static void tell_killed(void *arg)
{
	channel_send(((struct world *)arg)->channel, "killed");
}

/* Whether the runner ended as it has to. */
static bool ends_well(const struct world *w, int status)
{
	bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
	if (w->role == ROLE_PATRON || (w->runner_dies && killed))
		return killed;
	if (w->role == ROLE_GUARDIAN && WIFEXITED(status) &&
	    WEXITSTATUS(status) == RUNNER_HAS_NO_GUARDIAN)
		return true;
	return WIFEXITED(status) && WEXITSTATUS(status) == RUNNER_WELL;
}

static int trace(int channel, void *arg)
{
	struct world *w = arg;
	w->channel = channel;
	struct tracer_plan plan = {
		.body = be_runner,
		.arg = w,
		.nannies = true,
		.role = w->role,
		.call = w->call,
		.settled = settled,
		.killed = tell_killed,
	};
	struct tracer_end end = tracer_run(&plan);
	if (!end.killed)
		return 1;
	if (!ends_well(w, end.status))
		return 3;
	return w->role != ROLE_PATRON && end.outlived ? 2 : 0;
}

/* Whether no process of a command lives. */
static bool nobody_lives(const struct world *w)
{
	int fd = open(w->file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	bool nobody = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
	close(fd);
	return nobody;
}

/* Waits for the moment at which nobody has the life file any more. */
static void await_free(const struct world *w)
{
	int fd = open(w->life, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	assert_int_equal(flock(fd, LOCK_SH), 0);
	close(fd);
}

static void no_overlap(const struct world *w)
{
	char line[128];
	FILE *log = fopen(w->log, "r");
	while (log && fgets(line, sizeof line, log))
		assert_int_equal(strncmp(line, "enter", 5), 0);
	if (log)
		fclose(log);
}

/* Returns false when there is no such call. */
static bool kill_at(struct world *w, enum role role, unsigned call)
{
	struct child tracer;
	char message[16];
	w->role = role;
	w->call = call;
	alarm(BOUND);
	assert_int_equal(flock(w->gate_fd, LOCK_EX), 0);
	child_start(&tracer, trace, w);
	bool killed = channel_receive(tracer.channel, message, sizeof message);
	await_free(w);
	/* Nobody has let them go on: the gate is locked, unless it was before the kill. */
	if (!nobody_lives(w))
		fail_msg("role %d, call %u: a process of the command lives", role, call);
	int traced = child_reap(&tracer);
	if (traced != (killed ? 0 : 1))
		fail_msg("role %d, call %u: the tracer gets %d", role, call, traced);
	assert_int_equal(wards_lives(w->life), BATON_OK);
	no_overlap(w);
	alarm(0);
	return killed;
}

static void kill_at_each(struct world *w, enum role role)
{
	if (!tracer_works())
		skip();
	unsigned most = soak_scale(CALLS_DAILY, CALLS_MAX);
	if (!w->runner_dies)
		assert_true(kill_at(w, role, CALL_SETTLED));
	unsigned call = 1;
	while (call <= most && kill_at(w, role, call))
		call++;
	print_message("# %u calls\n", call - 1);
	assert_true(call > 5);
}

static void a_runner_may_be_killed_at_any_moment(void **state)
{
	kill_at_each(*state, ROLE_PATRON);
}

static void a_guardian_may_be_killed_at_any_moment(void **state)
{
	kill_at_each(*state, ROLE_GUARDIAN);
}

static void a_nanny_may_be_killed_at_any_moment(void **state)
{
	kill_at_each(*state, ROLE_NANNY);
}

static void a_command_may_be_killed_at_any_moment(void **state)
{
	kill_at_each(*state, ROLE_COMMAND);
}

static void a_guardian_may_be_killed_while_it_cleans_up_after_its_runner(void **state)
{
	struct world *w = *state;
	w->runner_dies = true;
	kill_at_each(w, ROLE_GUARDIAN);
}

static void a_nanny_may_be_killed_while_it_cleans_up_after_the_runner(void **state)
{
	struct world *w = *state;
	w->runner_dies = true;
	kill_at_each(w, ROLE_NANNY);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	skips_repair();
	/* What is traced cannot be searched for leaks. */
	const struct CMUnitTest tests[] = {
		TEST(a_runner_may_be_killed_at_any_moment),
		TEST(a_guardian_may_be_killed_at_any_moment),
		TEST(a_nanny_may_be_killed_at_any_moment),
		TEST(a_command_may_be_killed_at_any_moment),
		TEST(a_guardian_may_be_killed_while_it_cleans_up_after_its_runner),
		TEST(a_nanny_may_be_killed_while_it_cleans_up_after_the_runner),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
