/* How fast a runner is: jobs of every kind of handler, how soon one starts, and how soon another
 * runner goes on. */
#include <err.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "claims/arena.h"
#include "harness.h"
#include "jobs/team.h"

extern char **environ;

/* A latency. */
struct wait {
	void *(*setup)(void);
	double (*sample)(void *state);
};

struct load {
	enum hand hand; /* of a case that counts jobs */
	bool server;    /* in PostgreSQL rather than SQLite */
	const struct wait *wait;
};

struct turn {
	const struct load *load;
	void *state;
};

static void *our_setup(const struct contestant *self, const struct bench_case *c)
{
	(void)self;
	struct turn *turn = arena_new(sizeof *turn);
	turn->load = c->load;
	turn->state = turn->load->wait ? turn->load->wait->setup()
	                               : shift_open(turn->load->hand, turn->load->server);
	if (turn->state)
		return turn;
	free(turn);
	return NULL;
}

static uint64_t our_run(void *state, unsigned thread, uint64_t from, uint64_t ops)
{
	const struct turn *turn = state;
	(void)thread;
	(void)from;
	shift_live(turn->state, ops);
	return ops;
}

static double our_sample(void *state)
{
	const struct turn *turn = state;
	return turn->load->wait->sample(turn->state);
}

static void our_teardown(void *state)
{
	struct turn *turn = state;
	if (turn->load->wait)
		team_teardown(turn->state);
	else
		shift_close(turn->state);
	free(turn);
}

/* The store alone: one thread that puts, claims and completes a hundred jobs at a time. */
static void *loop_setup(const struct contestant *self, const struct bench_case *c)
{
	const struct load *load = c->load;
	(void)self;
	return load->wait ? NULL : place_open(load->server);
}

static uint64_t loop_run(void *state, unsigned thread, uint64_t from, uint64_t ops)
{
	(void)thread;
	(void)from;
	for (uint64_t left = ops; left > 0;) {
		unsigned now = left < JOBS_EACH_MAX ? (unsigned)left : JOBS_EACH_MAX;
		jobs_live(place_store(state), now);
		left -= now;
	}
	return ops;
}

static void loop_teardown(void *state)
{
	place_close(state);
}

/* Processes that do nothing, as many at once as the runner has, and no store. */
static void *spawn_setup(const struct contestant *self, const struct bench_case *c)
{
	(void)self;
	return ((const struct load *)c->load)->hand == HAND_COMMAND ? arena_new(1) : NULL;
}

static uint64_t spawn_run(void *state, unsigned thread, uint64_t from, uint64_t ops)
{
	static char name[] = "true";
	static char *const nothing[] = {name, NULL};
	uint64_t started = 0, ended = 0;
	(void)state;
	(void)thread;
	(void)from;
	while (ended < ops) {
		pid_t pid;
		if (started < ops && started - ended < SHIFT_COMMANDS) {
			if (posix_spawnp(&pid, "true", NULL, NULL, nothing, environ) != 0)
				errx(1, "cannot start true");
			started++;
		} else {
			if (wait(NULL) < 0)
				err(1, "wait");
			ended++;
		}
	}
	return ended;
}

static const struct contestant contestants[] = {
	{.name = "baton",
         .about = "a runner",
         .role = ROLE_SUBJECT,
         .setup = our_setup,
         .run = our_run,
         .sample = our_sample,
         .teardown = our_teardown},
	{.name = "store loop",
         .about = "put, claim and complete, 100 jobs a call, in one thread without any handler",
         .role = ROLE_FLOOR,
         .setup = loop_setup,
         .run = loop_run,
         .teardown = loop_teardown},
	{.name = "spawn loop",
         .about = "as many processes at a time, and no store",
         .role = ROLE_RIVAL,
         .setup = spawn_setup,
         .run = spawn_run,
         .teardown = free},
};

static void *call_setup(void)
{
	return start_setup(HAND_CALL);
}

static void *command_setup(void)
{
	return start_setup(HAND_COMMAND);
}

static void *killed_setup(void)
{
	return failover_setup(false);
}

static void *silent_setup(void)
{
	return failover_setup(true);
}

static const struct wait waits[] = {
	{call_setup, start_sample},
	{command_setup, start_sample},
	{killed_setup, failover_sample},
	{silent_setup, failover_sample},
};

static const struct load calls = {.hand = HAND_CALL}, streams = {.hand = HAND_STREAM},
			 commands = {.hand = HAND_COMMAND},
			 served_calls = {.hand = HAND_CALL, .server = true},
			 served_streams = {.hand = HAND_STREAM, .server = true},
			 served_commands = {.hand = HAND_COMMAND, .server = true},
			 to_call = {.wait = &waits[0]}, to_command = {.wait = &waits[1]},
			 killed = {.wait = &waits[2]}, silent = {.wait = &waits[3]};

static const struct bench_case cases[] = {
	{.name = "jobs/call",
         .group = "jobs",
         .label = "function",
         .threads = 1,
         .ops = 1000,
         .load = &calls},
	{.name = "jobs/stream",
         .group = "jobs",
         .label = "persistent worker",
         .threads = 1,
         .ops = 1000,
         .load = &streams},
	{.name = "jobs/command",
         .group = "jobs",
         .label = "command for each",
         .threads = 1,
         .ops = 200,
         .load = &commands},
	{.name = "jobs/postgres/call",
         .group = "jobs in PostgreSQL",
         .label = "function",
         .threads = 1,
         .ops = 500,
         .load = &served_calls},
	{.name = "jobs/postgres/stream",
         .group = "jobs in PostgreSQL",
         .label = "persistent worker",
         .threads = 1,
         .ops = 500,
         .load = &served_streams},
	{.name = "jobs/postgres/command",
         .group = "jobs in PostgreSQL",
         .label = "command for each",
         .threads = 1,
         .ops = 200,
         .load = &served_commands},
	{.name = "start/call",
         .group = "latency",
         .label = "put to function",
         .threads = 1,
         .samples = 50,
         .load = &to_call},
	{.name = "start/command",
         .group = "latency",
         .label = "put to command",
         .threads = 1,
         .samples = 50,
         .load = &to_command},
	{.name = "failover/killed",
         .group = "latency",
         .label = "SIGKILL to the next",
         .threads = 1,
         .samples = 5,
         .load = &killed,
         .p99_goal_ns = 100e6},
	{.name = "failover/silent",
         .group = "latency",
         .label = "silence to the next",
         .threads = 1,
         .samples = 2,
         .load = &silent,
         .p99_goal_ns = (TEAM_TTL_MS + 500) * 1e6},
};

static const char about[] =
	"A job has 150 bytes and nothing to do, and the store acknowledges only what survives a\n"
	"power failure; it is SQLite where nothing else is said. *jobs*: the time of a job from\n"
	"put to completed, 1,000 of them (200 commands, 500 in PostgreSQL)\n"
	"put 100 at a time; 64 at once in functions and in two workers, 8 commands at once.\n"
	"*latency*: from the call of put until the handler runs in another process; and from the\n"
	"moment at which a runner is killed, or stopped, until another runner's command handles\n"
	"what it had begun. A stopped one is waited for during its ttl, which is 1 s here.\n";

int main(int argc, char **argv)
{
	static const struct bench bench = {
		.name = "work",
		.title = "Work",
		.text = about,
		.contestants = contestants,
		.contestant_count = sizeof contestants / sizeof contestants[0],
		.cases = cases,
		.case_count = sizeof cases / sizeof cases[0],
	};
	team_part(argc, argv);
	return bench_main(&bench, argc, argv);
}
