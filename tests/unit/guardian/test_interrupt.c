/* An interrupt that is typed at whatever moment either ends the wait, and the command does not run,
 * or comes to the command. It is typed before each system call of patron, guardian and command. */
#include <baton/guardian.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
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
#define CALLS_DAILY 400

/* What the patron says of how it ended. */
enum {
	STATUS_BEFORE = 10, /* the command did not run */
	STATUS_COMMAND      /* the interrupt ended the command */
};

/* What the tracer says, besides 0, CHILD_SKIP and 1 when there is no such call. */
#define STATUS_LOST 2

struct world {
	char folder[64];
	char fleet[96], file[96], gate[96], log[112];
	int gate_fd;
	int terminal; /* the end at which somebody types */
	enum role role;
	unsigned call;
};

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof *w);
	if (!w)
		return -1;
	strcpy(w->folder, "/tmp/baton-typed-XXXXXX");
	if (!mkdtemp(w->folder))
		return -1;
	snprintf(w->fleet, sizeof w->fleet, "%s/fleet", w->folder);
	snprintf(w->file, sizeof w->file, "%s/witness", w->folder);
	snprintf(w->gate, sizeof w->gate, "%s/gate", w->folder);
	snprintf(w->log, sizeof w->log, "%s.log", w->file);
	w->gate_fd = open(w->gate, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	*state = w;
	return w->gate_fd < 0 || flock(w->gate_fd, LOCK_EX) != 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	close(w->gate_fd);
	int failed = scratch_remove(w->folder);
	free(w);
	return failed;
}

/* What becomes of a run that is interrupted. */
static int outcome(const struct baton_guardian_end *end)
{
	if (end->how == BATON_GUARDIAN_INTERRUPTED && end->code == SIGINT)
		return STATUS_BEFORE;
	if (end->how == BATON_GUARDIAN_SIGNALED && end->code == SIGINT)
		return STATUS_COMMAND;
	fprintf(stderr, "# how %d, code %d\n", end->how, end->code);
	return 1;
}

/* Until it hears signals an interrupt is its own death. */
static void be_patron(void *arg)
{
	struct world *w = arg;
	struct baton_guardian_end end;
	struct baton_subject subject = BATON_SUBJECT("lock", "typed");
	char mode[] = "typed";
	char *argv[] = {getenv("BATON_WITNESS"), w->file, mode, w->gate, NULL};
	struct baton_guardian_ask ask = {
		.fleet = w->fleet,
		.owner = BATON_STR("test"),
		.subject = &subject,
		.wait = BATON_DURATION_FOREVER,
		.argv = argv,
	};
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	enum baton_err e = baton_guardian_run(&ask, &end);
	if (e != BATON_OK)
		fprintf(stderr, "# %s: %s\n", baton_err_name(e), baton_err_detail());
	_exit(e == BATON_OK ? outcome(&end) : 1);
}

/* Returns when it has been sent to all: the terminal shows it afterwards. */
static void type_interrupt(void *arg)
{
	const struct world *w = arg;
	char shown = 0;
	if (write(w->terminal, "\003", 1) != 1)
		abort();
	while (shown != 'C') {
		if (read(w->terminal, &shown, 1) != 1)
			abort();
	}
}

/* Gets a terminal for this process and what it forks. Of what is typed it hears nothing itself. */
static bool terminal_open(struct world *w)
{
	sigset_t interrupt;
	sigemptyset(&interrupt);
	sigaddset(&interrupt, SIGINT);
	signal(SIGINT, SIG_DFL);
	sigprocmask(SIG_BLOCK, &interrupt, NULL);
	w->terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	return w->terminal >= 0 && grantpt(w->terminal) == 0 && unlockpt(w->terminal) == 0 &&
	       setsid() >= 0 && open(ptsname(w->terminal), O_RDWR | O_CLOEXEC) >= 0;
}

static bool is_interrupted(const struct world *w, int status)
{
	bool ran = access(w->log, F_OK) == 0;
	if (WIFSIGNALED(status))
		return WTERMSIG(status) == SIGINT;
	return WEXITSTATUS(status) == STATUS_COMMAND ||
	       (WEXITSTATUS(status) == STATUS_BEFORE && !ran);
}

static int trace(int channel, void *arg)
{
	struct world *w = arg;
	(void)channel;
	struct tracer_plan plan = {
		.body = be_patron,
		.arg = w,
		.role = w->role,
		.call = w->call,
		.settled = type_interrupt,
		.strike = type_interrupt,
	};
	if (!terminal_open(w))
		return CHILD_SKIP;
	struct tracer_end end = tracer_run(&plan);
	if (!is_interrupted(w, end.status))
		return STATUS_LOST;
	return end.killed ? 0 : 1;
}

/* Returns false when there is no such call. */
static bool type_at(struct world *w, enum role role, unsigned call)
{
	struct child tracer;
	w->role = role;
	w->call = call;
	unlink(w->log);
	child_start(&tracer, trace, w);
	int status = child_reap(&tracer);
	if (status == CHILD_SKIP)
		skip();
	if (status > 1)
		fail_msg("role %d, call %u: the tracer gets %d", role, call, status);
	return status == 0;
}

static void type_at_each(struct world *w, enum role role)
{
	if (!tracer_works())
		skip();
	unsigned most = soak_scale(CALLS_DAILY, CALLS_MAX);
	unsigned call = 1;
	while (call <= most && type_at(w, role, call))
		call++;
	print_message("# %u calls\n", call - 1);
	assert_true(call > 5);
}

static void an_interrupt_may_come_at_any_moment_of_the_patron(void **state)
{
	type_at_each(*state, ROLE_PATRON);
}

static void an_interrupt_may_come_at_any_moment_of_the_guardian(void **state)
{
	type_at_each(*state, ROLE_GUARDIAN);
}

static void an_interrupt_may_come_at_any_moment_of_the_command(void **state)
{
	type_at_each(*state, ROLE_COMMAND);
}

int main(void)
{
	skips_repair();
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(an_interrupt_may_come_at_any_moment_of_the_patron),
		TEST(an_interrupt_may_come_at_any_moment_of_the_guardian),
		TEST(an_interrupt_may_come_at_any_moment_of_the_command),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
