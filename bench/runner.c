/* What a runner pays for knowing whether it still owns its work, and for sharing it with others. */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include <baton/detach.h>

#include "harness.h"
#include "runner/balance.h"

static void *machine_setup(const struct contestant *self, const struct bench_case *c)
{
	(void)self;
	(void)c;
	struct baton_detach *d = malloc(sizeof *d);
	if (d == NULL)
		abort();
	baton_detach_init(d, NULL);
	return d;
}

static uint64_t machine_run(void *state, unsigned thread, uint64_t from, uint64_t ops)
{
	(void)thread;
	(void)from;
	uint64_t attached = 0;
	for (uint64_t i = 0; i < ops; i++)
		attached += baton_detach_state(state) == BATON_ATTACHED;
	return attached;
}

static void *word_setup(const struct contestant *self, const struct bench_case *c)
{
	(void)self;
	(void)c;
	_Atomic uint64_t *word = malloc(sizeof *word);
	if (word == NULL)
		abort();
	atomic_init(word, 1);
	return word;
}

static uint64_t word_run(void *state, unsigned thread, uint64_t from, uint64_t ops)
{
	(void)thread;
	(void)from;
	_Atomic uint64_t *word = state;
	uint64_t attached = 0;
	for (uint64_t i = 0; i < ops; i++)
		attached += atomic_load_explicit(word, memory_order_acquire) == 1;
	return attached;
}

static const struct contestant contestants[] = {
	{.name = "baton",
         .about = "baton_detach_state()",
         .role = ROLE_SUBJECT,
         .setup = machine_setup,
         .run = machine_run,
         .teardown = free},
	{.name = "load",
         .about = "a load of one word, in line",
         .role = ROLE_FLOOR,
         .setup = word_setup,
         .run = word_run,
         .teardown = free},
};

static const struct bench_case cases[] = {
	{.name = "detach/state",
         .group = "Whether it is attached",
         .label = "1 thread",
         .ops = 1000000,
         .slices = 20,
         .threads = 1},
};

#define TAKES 21

static double clock_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double check_ns(void)
{
	const unsigned ops = 1000000;
	void *machine = machine_setup(NULL, NULL);
	double ns[TAKES];
	for (size_t i = 0; i < TAKES; i++) {
		double begin = clock_ns();
		if (machine_run(machine, 0, 0, ops) != ops)
			abort();
		ns[i] = (clock_ns() - begin) / ops;
	}
	free(machine);
	return spread_of(ns, TAKES).median;
}

#define SHARDS 1000u
#define MEMBERS 100u

/* A hundred runners of three weights, one of which has just come: it is the one that plans. */
static double plan_us(void)
{
	static struct balance_member members[MEMBERS];
	static uint64_t owners[SHARDS];
	static uint32_t take[SHARDS];
	static uint32_t give[SHARDS];
	for (uint32_t i = 0; i < MEMBERS; i++)
		members[i] = (struct balance_member){i + 1, 1 + i % 3};
	for (uint32_t i = 0; i < SHARDS; i++)
		owners[i] = i % 20 == 0 ? 0 : 1 + i % (MEMBERS - 1);
	struct balance_ask ask = {members, MEMBERS, MEMBERS, owners, SHARDS};
	double ns[TAKES];
	for (size_t i = 0; i < TAKES; i++) {
		size_t takes;
		size_t gives;
		double begin = clock_ns();
		balance_plan(&ask, take, &takes, give, &gives);
		ns[i] = clock_ns() - begin;
		if (takes == 0)
			abort();
	}
	return spread_of(ns, TAKES).median / 1000;
}

static size_t facts(struct fact *ret, size_t max)
{
	(void)max;
	ret[0] = (struct fact){"the check before each dispatch", "ns", check_ns(), 50, 0};
	ret[1] = (struct fact){"one plan, 1,000 shards and 100 runners", "us", plan_us(), NAN, 0};
	return 2;
}

static const char about[] =
	"An operation asks once whether the process may act. The plan is what one runner "
	"computes when it looks which shards to take or to give up.";

int main(int argc, char **argv)
{
	static const struct bench bench = {
		.name = "runner",
		.title = "Runner",
		.text = about,
		.contestants = contestants,
		.contestant_count = sizeof contestants / sizeof contestants[0],
		.cases = cases,
		.case_count = sizeof cases / sizeof cases[0],
		.facts = facts,
	};
	return bench_main(&bench, argc, argv);
}
