/* Whoever is killed at whatever moment: never do processes of two commands live at once, and the
 * subject can be had afterwards. Patron, guardian, its threads and the command are killed before
 * each of their system calls in turn. */
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

/* How far the daily run goes on through the waiting, renewing and looking that repeats itself. */
#define CALLS_DAILY 400

struct world {
	char folder[64];
	char fleet[96], file[96], gate[96], log[112];
	int gate_fd;
	int channel; /* to the test, in the process that traces */
	enum role role;
	unsigned call;
	bool killed;
};

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof *w);
	if (!w)
		return -1;
	strcpy(w->folder, "/tmp/baton-kill-XXXXXX");
	if (!mkdtemp(w->folder))
		return -1;
	snprintf(w->fleet, sizeof w->fleet, "%s/fleet", w->folder);
	snprintf(w->file, sizeof w->file, "%s/witness", w->folder);
	snprintf(w->gate, sizeof w->gate, "%s/gate", w->folder);
	snprintf(w->log, sizeof w->log, "%s.log", w->file);
	w->gate_fd = open(w->gate, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	*state = w;
	return w->gate_fd < 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	close(w->gate_fd);
	int failed = scratch_remove(w->folder);
	free(w);
	return failed;
}

static enum baton_err run(struct world *w, const char *mode, struct baton_duration wait,
                          struct baton_guardian_end *end)
{
	struct baton_subject subject = BATON_SUBJECT("lock", "killed");
	char *argv[] = {getenv("BATON_WITNESS"), w->file, (char *)mode, w->gate, NULL};
	struct baton_guardian_ask ask = {
		.fleet = w->fleet,
		.owner = BATON_STR("test"),
		.subject = &subject,
		.wait = wait,
		.ttl = baton_duration_s(600),
		.grace = baton_duration_ms(20),
		.argv = argv,
	};
	return baton_guardian_run(&ask, end);
}

static void be_patron(void *arg)
{
	struct baton_guardian_end end;
	struct world *w = arg;
	_exit(run(w, "family", BATON_DURATION_FOREVER, &end) == BATON_OK ? 0 : 1);
}

static void open_gate(void *arg)
{
	flock(((struct world *)arg)->gate_fd, LOCK_UN);
}

static void tell_killed(void *arg)
{
	channel_send(((struct world *)arg)->channel, "killed");
}

static int trace(int channel, void *arg)
{
	struct world *w = arg;
	w->channel = channel;
	struct tracer_plan plan = {
		.body = be_patron,
		.arg = w,
		.role = w->role,
		.call = w->call,
		.settled = open_gate,
		.killed = tell_killed,
	};
	struct tracer_end end = tracer_run(&plan);
	if (!end.killed)
		return 1;
	/* A guardian takes its command with it, whatever that waits for. */
	bool guardian = w->role == ROLE_GUARDIAN || w->role == ROLE_KEEPER;
	return guardian && end.outlived ? 2 : 0;
}

/* Asks once. Returns 0 if the command ran alone, 75 if it yielded, 1 otherwise. */
static int ask_once(int channel, void *arg)
{
	struct baton_guardian_end end = {.code = 1};
	(void)channel;
	enum baton_err e = run(arg, "alone", baton_duration_ms(0), &end);
	if (e == BATON_YIELD)
		return 75;
	return e == BATON_OK && end.how == BATON_GUARDIAN_EXITED ? end.code : 1;
}

static int ask_and_wait(int channel, void *arg)
{
	struct baton_guardian_end end = {.code = 1};
	(void)channel;
	enum baton_err e = run(arg, "alone", baton_duration_s(60), &end);
	if (e != BATON_OK || end.how != BATON_GUARDIAN_EXITED)
		fprintf(stderr, "# %s: how %d, code %d, held by %s, %zu leftovers\n",
		        baton_err_name(e), end.how, end.code, end.holder.owner,
		        end.leftovers_count);
	return e == BATON_OK && end.how == BATON_GUARDIAN_EXITED ? end.code : 1;
}

static int ask_in_child(struct world *w, int (*ask)(int, void *))
{
	struct child c;
	child_start(&c, ask, w);
	return child_reap(&c);
}

static void no_overlap(const struct world *w)
{
	char line[128];
	unsigned long long last = 0, fence;
	FILE *log = fopen(w->log, "r");
	assert_non_null(log);
	while (fgets(line, sizeof line, log)) {
		assert_int_equal(sscanf(line, "enter %llu", &fence), 1);
		assert_true(fence > last);
		last = fence;
	}
	fclose(log);
}

/* Returns false when there is no such call. */
static bool kill_at(struct world *w, enum role role, unsigned call)
{
	struct child tracer;
	char message[16];
	w->role = role;
	w->call = call;
	assert_int_equal(flock(w->gate_fd, LOCK_EX), 0);
	child_start(&tracer, trace, w);
	bool killed = channel_receive(tracer.channel, message, sizeof message);
	int once = killed ? ask_in_child(w, ask_once) : 0;
	if (once != 0 && once != 75)
		fail_msg("role %d, call %u: who asks once gets %d", role, call, once);
	open_gate(w);
	int then = ask_in_child(w, ask_and_wait);
	if (then != 0)
		fail_msg("role %d, call %u: who waits gets %d", role, call, then);
	int traced = child_reap(&tracer);
	if (traced != (killed ? 0 : 1))
		fail_msg("role %d, call %u: the tracer gets %d", role, call, traced);
	no_overlap(w);
	return killed;
}

static void kill_at_each(struct world *w, enum role role)
{
	if (!tracer_works())
		skip();
	unsigned most = soak_scale(CALLS_DAILY, CALLS_MAX);
	assert_true(kill_at(w, role, CALL_SETTLED));
	unsigned call = 1;
	while (call <= most && kill_at(w, role, call))
		call++;
	print_message("# %u calls\n", call - 1);
	assert_true(call > 5);
}

static void a_patron_may_be_killed_at_any_moment(void **state)
{
	kill_at_each(*state, ROLE_PATRON);
}

static void a_guardian_may_be_killed_at_any_moment(void **state)
{
	kill_at_each(*state, ROLE_GUARDIAN);
}

static void a_guardian_may_be_killed_while_its_thread_does_anything(void **state)
{
	kill_at_each(*state, ROLE_KEEPER);
}

static void a_command_may_be_killed_at_any_moment(void **state)
{
	kill_at_each(*state, ROLE_COMMAND);
}

int main(void)
{
	skips_repair();
	/* What is traced cannot be searched for leaks. */
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_patron_may_be_killed_at_any_moment, setup,
	                                        teardown),
		cmocka_unit_test_setup_teardown(a_guardian_may_be_killed_at_any_moment, setup,
	                                        teardown),
		cmocka_unit_test_setup_teardown(
			a_guardian_may_be_killed_while_its_thread_does_anything, setup, teardown),
		cmocka_unit_test_setup_teardown(a_command_may_be_killed_at_any_moment, setup,
	                                        teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
