/* How fast the store in PostgreSQL is, beside libpq by hand and other queues. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "claims/arena.h"
#include "harness.h"
#include "jobs/pg.h"

#define LOG_JOBS 20000

/* Who does what in a case; NULL or "": it has no part in it. */
struct load {
	bool puts;                  /* one by one, and else whole lives in bulk */
	const char *script;         /* of another queue: then all have large calls */
	const struct pg_work *load; /* instead of both */
};

static const struct load lives = {.script = NULL}, graphile = {.script = "graphile.mjs"},
			 boss = {.script = "pgboss.mjs"}, single = {.puts = true},
			 unlaned = {.load = &pg_baton_load}, laned = {.load = &pg_baton_load_lanes};

struct seat {
	struct pg_hands *hands, *sleepers;
};

static struct seat *seat_new(const struct pg_work *work, unsigned count, bool sleep)
{
	char where[PG_WHERE_MAX];
	struct seat *seat = arena_new(sizeof *seat);
	pg_database(where);
	seat->hands = pg_hands_start(work, where, count);
	seat->sleepers = sleep ? pg_hands_start(&pg_baton_sleeper, where, 1) : NULL;
	return seat;
}

static void *ours_setup(const struct contestant *self, const struct bench_case *c)
{
	const struct load *load = c->load;
	(void)self;
	if (!pg_server())
		exit(0);
	if (load->load)
		return seat_new(load->load, 1, false);
	if (load->script)
		return seat_new(&pg_baton_many, 1, false);
	return seat_new(load->puts ? &pg_baton_puts : &pg_baton_lives, c->threads, load->puts);
}

/* By hand, in one of two ways. */
static void *load_setup(const struct contestant *self, const struct bench_case *c)
{
	const struct load *load = c->load;
	return load->load ? seat_new(self->arg, 1, false) : NULL;
}

static void *bare_setup(const struct contestant *self, const struct bench_case *c)
{
	const struct load *load = c->load;
	(void)self;
	return load == &lives ? seat_new(&pg_bare_lives, c->threads, false) : NULL;
}

/* Ourselves, with nobody asleep. */
static void *awake_setup(const struct contestant *self, const struct bench_case *c)
{
	const struct load *load = c->load;
	(void)self;
	return load->puts ? seat_new(&pg_baton_puts, c->threads, false) : NULL;
}

static void *peer_setup(const struct contestant *self, const struct bench_case *c)
{
	char where[PG_WHERE_MAX];
	const char *script = ((const struct load *)c->load)->script;
	if (!script || strcmp(script, self->arg) != 0)
		return NULL;
	pg_database(where);
	struct pg_hands *hands = pg_hands_script(script, where);
	if (!hands)
		return NULL;
	struct seat *seat = arena_new(sizeof *seat);
	seat->hands = hands;
	return seat;
}

static uint64_t seat_run(void *state, unsigned thread, uint64_t from, uint64_t ops)
{
	const struct seat *seat = state;
	(void)from;
	if (ops > 0)
		pg_hands_do(seat->hands, thread, ops);
	return ops;
}

static void seat_teardown(void *state)
{
	struct seat *seat = state;
	pg_hands_end(seat->hands);
	pg_hands_end(seat->sleepers);
	free(seat);
}

static const struct contestant contestants[] = {
	{.name = "baton",
         .about = "this library's store, 100 jobs a call, and 1,000 beside other queues",
         .role = ROLE_SUBJECT,
         .setup = ours_setup,
         .run = seat_run,
         .teardown = seat_teardown},
	{.name = "bare libpq",
         .about = "a table with one index, 100 jobs a statement",
         .role = ROLE_FLOOR,
         .setup = bare_setup,
         .run = seat_run,
         .teardown = seat_teardown},
	{.name = "baton, nobody asleep",
         .about = "this library's store, without anybody who waits",
         .role = ROLE_FLOOR,
         .setup = awake_setup,
         .run = seat_run,
         .teardown = seat_teardown},
	{.name = "arrays by hand",
         .about = "one statement for rows as this library has them for lanes",
         .role = ROLE_FLOOR,
         .setup = load_setup,
         .run = seat_run,
         .teardown = seat_teardown,
         .arg = (void *)&pg_bare_arrays},
	{.name = "COPY by hand",
         .about = "straight into the same rows, in binary",
         .role = ROLE_FLOOR,
         .setup = load_setup,
         .run = seat_run,
         .teardown = seat_teardown,
         .arg = (void *)&pg_bare_copies},
	{.name = "graphile-worker",
         .about = "0.17, 1,000 jobs a call, two processes, local queues, completions in batches",
         .role = ROLE_RIVAL,
         .setup = peer_setup,
         .run = seat_run,
         .teardown = seat_teardown,
         .arg = "graphile.mjs"},
	{.name = "pg-boss",
         .about = "10, 1,000 jobs a call, after ANALYZE",
         .role = ROLE_RIVAL,
         .setup = peer_setup,
         .run = seat_run,
         .teardown = seat_teardown,
         .arg = "pgboss.mjs"},
};

static const struct bench_case cases[] = {
	{.name = "life/1",
         .group = "full life",
         .label = "put, claim, complete",
         .threads = 1,
         .ops = 2000,
         .load = &lives,
         .goal = {[ROLE_FLOOR] = 1 / 0.7}},
	{.name = "life/graphile",
         .group = "full life",
         .label = "beside graphile-worker",
         .threads = 1,
         .ops = 4000,
         .load = &graphile,
         .goal = {[ROLE_RIVAL] = 1 / 3.0}},
	{.name = "life/boss",
         .group = "full life",
         .label = "beside pg-boss",
         .threads = 1,
         .ops = 4000,
         .load = &boss,
         .goal = {[ROLE_RIVAL] = 1 / 4.0}},
	{.name = "life/2",
         .group = "full life",
         .label = "2 processes",
         .threads = 2,
         .ops = 2000,
         .load = &lives},
	{.name = "life/4",
         .group = "full life",
         .label = "4 processes",
         .threads = 4,
         .ops = 2000,
         .load = &lives},
	{.name = "put",
         .group = "puts",
         .label = "one by one, somebody asleep",
         .threads = 1,
         .ops = 800,
         .load = &single,
         .goal = {[ROLE_FLOOR] = 1 / 0.9}},
	{.name = "load",
         .group = "loads",
         .label = "without lanes",
         .threads = 1,
         .ops = PG_LOAD,
         .load = &unlaned},
	{.name = "load/lanes",
         .group = "loads",
         .label = "in a thousand lanes",
         .threads = 1,
         .ops = PG_LOAD,
         .load = &laned},
};

static const char about[] =
	"A job has 150 bytes. Everybody acknowledges only what survives a power failure, on one\n"
	"server (`fsync=on`, `synchronous_commit=on`).\n"
	"*full life*: the time of a job that is put, claimed and completed with 99 others in each\n"
	"call, by one process or several at once on one queue; beside other queues, everybody has\n"
	"calls of 1,000.\n"
	"*puts*: the time of a put by one of 8 threads while another process waits for work, and\n"
	"while nobody does.\n"
	"*loads*: the time of a job that is put with 9,999 others in one call.\n"
	"*log*: how many bytes a job without a lane writes to the server's log in its life.\n";

/* From one checkpoint to before the next, whole pages included. */
static double log_bytes(void)
{
	char where[PG_WHERE_MAX];
	pg_database(where);
	struct pg_hands *hands = pg_hands_start(&pg_baton_lives, where, 1);
	pg_hands_do(hands, 0, LOG_JOBS);
	double before = pg_number(where, "SELECT pg_current_wal_lsn() - '0/0'");
	pg_hands_do(hands, 0, LOG_JOBS);
	double after = pg_number(where, "SELECT pg_current_wal_lsn() - '0/0'");
	pg_hands_end(hands);
	return (after - before) / LOG_JOBS;
}

static size_t facts(struct fact *ret, size_t max)
{
	if (max == 0 || !pg_server())
		return 0;
	ret[0] = (struct fact){"log", "bytes", log_bytes(), 500, 0};
	return 1;
}

int main(int argc, char **argv)
{
	static const struct bench bench = {
		.name = "postgres",
		.title = "PostgreSQL",
		.text = about,
		.contestants = contestants,
		.contestant_count = sizeof contestants / sizeof contestants[0],
		.cases = cases,
		.case_count = sizeof cases / sizeof cases[0],
		.facts = facts,
	};
	return bench_main(&bench, argc, argv);
}
