/* How fast the store is, beside SQLite by hand and other queues. */
#include <math.h>
#include <stdlib.h>

#include "claims/arena.h"
#include "harness.h"
#include "jobs/jobs.h"

#define CALLERS 64

/* What a case is about: lives, with so many jobs in each call, or a latency of ours. */
struct load {
	unsigned each;
	const struct wait *wait;
};

/* A queue. */
struct seat {
	const struct queue_kind *kind;
	void *queue;
	unsigned threads;
	unsigned each;
};

static void *life_setup(const struct contestant *self, const struct bench_case *c)
{
	const struct queue_kind *kind = *(const struct queue_kind *const *)self->arg;
	const struct load *load = c->load;
	bool takes_part = load->each == 1 || (load->each > 1 && kind->bulk);
	void *queue = takes_part ? kind->open() : NULL;
	if (!queue)
		return NULL;
	struct seat *seat = arena_new(sizeof *seat);
	*seat = (struct seat){kind, queue, c->threads, load->each};
	return seat;
}

static uint64_t life_run(void *state, unsigned thread, uint64_t from, uint64_t ops)
{
	const struct seat *seat = state;
	(void)from;
	return seat->kind->lives(seat->queue, thread,
	                         &(struct lives){seat->threads, seat->each, ops});
}

/* A latency that only this library has. */
struct wait {
	void *(*setup)(void);
	double (*sample)(void *state);
	void (*teardown)(void *state);
};

static const struct wait waits[] = {
	{wait_setup, wait_sample, wait_teardown},
	{renew_setup, renew_sample, renew_teardown},
};

static const struct load one = {.each = 1}, ten = {.each = 10}, to_claimed = {.wait = &waits[0]},
			 to_renewed = {.wait = &waits[1]};

struct turn {
	const struct wait *wait;
	void *state;
	struct seat *life;
};

static void *our_setup(const struct contestant *self, const struct bench_case *c)
{
	struct turn *turn = arena_new(sizeof *turn);
	turn->wait = ((const struct load *)c->load)->wait;
	if (turn->wait)
		turn->state = turn->wait->setup();
	else
		turn->life = life_setup(self, c);
	return turn;
}

static uint64_t our_run(void *state, unsigned thread, uint64_t from, uint64_t ops)
{
	const struct turn *turn = state;
	return life_run(turn->life, thread, from, ops);
}

static double our_sample(void *state)
{
	const struct turn *turn = state;
	return turn->wait->sample(turn->state);
}

static void life_teardown(void *state)
{
	struct seat *seat = state;
	seat->kind->close(seat->queue);
	free(seat);
}

static void our_teardown(void *state)
{
	struct turn *turn = state;
	if (turn->wait)
		turn->wait->teardown(turn->state);
	else
		life_teardown(turn->life);
	free(turn);
}

static const struct queue_kind
	*const baton = &jobs_baton,
	       *const apart = &jobs_baton_apart, *const hundred = &jobs_bare_hundred,
	       *const shared = &jobs_bare_shared, *const single = &jobs_bare_single,
	       *const beanstalkd = &jobs_beanstalkd, *const plainjob = &jobs_plainjob;

static const struct contestant contestants[] = {
	{.name = "baton",
         .about = "this library's store, 64 callers; with one job a call they complete one as they "
                  "claim the next",
         .role = ROLE_SUBJECT,
         .setup = our_setup,
         .run = our_run,
         .sample = our_sample,
         .teardown = our_teardown,
         .arg = &baton},
	{.name = "baton, apart",
         .role = ROLE_FLOOR,
         .about = "the same, with a call for each claim and for each completion",
         .setup = life_setup,
         .run = life_run,
         .teardown = life_teardown,
         .arg = &apart},
	{.name = "bare SQLite",
         .role = ROLE_FLOOR,
         .about = "a row for each job and each state, by hand, 100 jobs a commit, one thread",
         .setup = life_setup,
         .run = life_run,
         .teardown = life_teardown,
         .arg = &hundred},
	{.name = "bare SQLite, shared",
         .role = ROLE_FLOOR,
         .about = "the same rows, 64 callers with one job a call who share their commits",
         .setup = life_setup,
         .run = life_run,
         .teardown = life_teardown,
         .arg = &shared},
	{.name = "bare SQLite, singly",
         .role = ROLE_RIVAL,
         .about = "the same, every job with commits of its own",
         .setup = life_setup,
         .run = life_run,
         .teardown = life_teardown,
         .arg = &single},
	{.name = "beanstalkd",
         .role = ROLE_RIVAL,
         .about = "`beanstalkd -b DIR -f0` on a unix socket, 64 connections",
         .setup = life_setup,
         .run = life_run,
         .teardown = life_teardown,
         .arg = &beanstalkd},
	{.name = "plainjob",
         .role = ROLE_RIVAL,
         .about = "a queue for Node.js on better-sqlite3, with synchronous=FULL",
         .setup = life_setup,
         .run = life_run,
         .teardown = life_teardown,
         .arg = &plainjob},
};

static const struct bench_case cases[] = {
	{.name = "life/64",
         .group = "full life",
         .label = "put, claim, complete",
         .threads = CALLERS,
         .ops = 30,
         .load = &one,
         .goal = {[ROLE_FLOOR] = 1 / 0.7, [ROLE_RIVAL] = 0.1},
         .against = {[ROLE_FLOOR] = "bare SQLite"}},
	{.name = "life/64x10",
         .group = "full life",
         .label = "ten in each call",
         .threads = CALLERS,
         .ops = 100,
         .load = &ten,
         .goal = {[ROLE_FLOOR] = 1 / 0.7}},
	{.name = "wait",
         .group = "latency",
         .label = "put to claimed elsewhere",
         .threads = 1,
         .samples = 50,
         .load = &to_claimed},
	{.name = "renew",
         .group = "latency",
         .label = "renewal beside a writer",
         .threads = 1,
         .samples = 50,
         .load = &to_renewed,
         .p99_goal_ns = 50e6},
};

static const char about[] =
	"A job has 150 bytes. Everybody acknowledges only what survives a power failure.\n"
	"*full life*: the time of a job for each of 64 callers who put, claim and complete one\n"
	"after the other, one job a call or ten; contestants that have one thread do the work of\n"
	"all callers in it. Callers with one job a call can have 64 jobs in a commit at most, and\n"
	"each of them sleeps and is woken for each call: what that costs with the same rows,\n"
	"three calls for a job and nothing else is *bare SQLite, shared*.\n"
	"*latency*: from the call of put until another process, which waited, has claimed the\n"
	"job; and a renewal of a lease while another process writes as fast as it can.\n"
	"*log*: how many bytes a job without a lane writes to SQLite's log in its whole life.\n";

static size_t facts(struct fact *ret, size_t max)
{
	static const unsigned counts[] = {1, 10, 100};
	static const char *const names[] = {"log, 1 a commit", "log, 10 a commit",
	                                    "log, 100 a commit"};
	size_t count = 0;
	for (; count < 3 && count < max; count++)
		ret[count] =
			(struct fact){names[count], "bytes", jobs_log_bytes(counts[count]), NAN, 0};
	return count;
}

int main(int argc, char **argv)
{
	static const struct bench bench = {
		.name = "store",
		.title = "Store",
		.text = about,
		.contestants = contestants,
		.contestant_count = sizeof contestants / sizeof contestants[0],
		.cases = cases,
		.case_count = sizeof cases / sizeof cases[0],
		.facts = facts,
	};
	return bench_main(&bench, argc, argv);
}
