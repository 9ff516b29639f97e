/* How fast the gate admits and lets go, beside the hash tables that C programs use. */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>

#include <baton/err.h>

#include "gate_facts.h"
#include "harness.h"
#include "keys.h"
#include "tables/table.h"

#define GOAL 1.5
#define GOAL_KEYS 1000000
#define THREADS_MAX 2

static const struct table_kind *const kinds[] = {
	&table_gate,
#ifdef BENCH_UTHASH
	&table_uthash,
#endif
#ifdef BENCH_CK
	&table_ck,
#endif
#ifdef BENCH_LFHT
	&table_lfht,
#endif
#ifdef BENCH_GLIB
	&table_glib,
#endif
#ifdef BENCH_JUDY
	&table_judy,
#endif
	&table_open,
};

#define KINDS (sizeof kinds / sizeof(void *))

enum workload {
	CHURN = 1,
	TRANSIENT,
	WORKLOAD_END
};

/* How many keys are held, and how many operations a turn has: enough to visit as much of a large
 * table as fits into the caches, few enough to be done in a fraction of a second. */
struct size {
	size_t keys;
	uint64_t ops;
	const char *label;
};

static const struct size sizes[] = {
	{10, 300000, "10 keys"},
	{1000, 300000, "1,000 keys"},
	{100000, 200000, "100,000 keys"},
	{GOAL_KEYS, 200000, "1,000,000 keys"},
};

#define SIZES (sizeof sizes / sizeof *sizes)

/* What a case means to its tables. */
struct load {
	enum workload workload;
	size_t count;
	struct keys **keys; /* shared by the cases of that size; made when first needed */
};

/* A table in a case: it holds its keys, of which each thread has its own share. */
struct game {
	const struct table_kind *kind;
	void *table;
	const struct load *load;
	size_t share; /* how many keys a thread has */
	struct caller callers[THREADS_MAX];
};

static struct caller caller_make(unsigned thread)
{
	struct caller who = {.thread = thread};
	if (baton_id_random(&who.owner) != BATON_OK)
		errx(1, "%s", baton_err_detail());
	return who;
}

static void thread_enter(const struct table_kind *kind, void *table)
{
	if (kind->enter)
		kind->enter(table);
}

static void thread_leave(const struct table_kind *kind, void *table)
{
	if (kind->leave)
		kind->leave(table);
}

/* Whose share the key of that index is in. */
static const struct caller *game_owner(const struct game *g, size_t index)
{
	return &g->callers[index / g->share];
}

static void game_fill(struct game *g)
{
	const struct keys *keys = *g->load->keys;
	thread_enter(g->kind, g->table);
	for (size_t i = 0; i < keys->count; i++) {
		size_t index = keys->order[i];
		if (!g->kind->acquire(g->table, &keys->held[index], game_owner(g, index)))
			errx(1, "%s cannot acquire a free key", g->kind->name);
	}
	thread_leave(g->kind, g->table);
}

static void *game_setup(const struct contestant *self, const struct bench_case *c)
{
	const struct load *load = c->load;
	struct game *g = calloc(1, sizeof *g);
	if (!g)
		errx(1, "no memory");
	if (!*load->keys)
		*load->keys = keys_new(load->count);
	g->kind = self->arg;
	g->table = g->kind->make(load->count, c->threads);
	g->load = load;
	g->share = load->count / c->threads;
	for (unsigned i = 0; i < c->threads; i++)
		g->callers[i] = caller_make(i);
	game_fill(g);
	return g;
}

static void game_teardown(void *state)
{
	struct game *g = state;
	g->kind->unmake(g->table);
	free(g);
}

/* A share of the keys, visited round and round. */
struct visit {
	const struct key *keys;
	size_t count;
	size_t at;
};

static const struct key *visit_next(struct visit *v)
{
	const struct key *key = &v->keys[v->at];
	v->at = v->at + 1 == v->count ? 0 : v->at + 1;
	return key;
}

static struct visit visit_of(const struct game *g, const struct key *keys, unsigned thread,
                             uint64_t from)
{
	return (struct visit){keys + thread * g->share, g->share, from % g->share};
}

static uint64_t churn(const struct game *g, struct visit v, const struct caller *who, uint64_t ops)
{
	uint64_t done = 0;
	for (uint64_t i = 0; i < ops; i++) {
		const struct key *key = visit_next(&v);
		done += g->kind->release(g->table, key, who) &&
		        g->kind->acquire(g->table, key, who);
	}
	return done;
}

static uint64_t transient(const struct game *g, struct visit v, const struct caller *who,
                          uint64_t ops)
{
	uint64_t done = 0;
	for (uint64_t i = 0; i < ops; i++) {
		const struct key *key = visit_next(&v);
		done += g->kind->acquire(g->table, key, who) &&
		        g->kind->release(g->table, key, who);
	}
	return done;
}

static uint64_t game_run(void *state, unsigned thread, uint64_t from, uint64_t ops)
{
	struct game *g = state;
	const struct keys *keys = *g->load->keys;
	const struct caller *who = &g->callers[thread];
	thread_enter(g->kind, g->table);
	uint64_t done = g->load->workload == CHURN
	                        ? churn(g, visit_of(g, keys->held, thread, from), who, ops)
	                        : transient(g, visit_of(g, keys->absent, thread, from), who, ops);
	thread_leave(g->kind, g->table);
	return done;
}

/* What acquire and release mean, in a table that starts empty. */
struct step {
	unsigned who;
	bool acquire; /* else release */
	bool ok;
};

static const struct step steps[] = {
	{0, false, false}, {0, true, true},  {1, true, false},  {0, true, true},
	{1, false, false}, {0, false, true}, {0, false, false}, {1, true, true},
};

/* Ends the program if the table does not follow the steps, or needs the key that it was given
 * after the call. */
static void kind_check(const struct table_kind *kind)
{
	void *table = kind->make(1, 1);
	struct caller callers[] = {caller_make(0), caller_make(0)};
	thread_enter(kind, table);
	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
		struct key key = {"tenant/000123/session/00004567", 30};
		const struct caller *who = &callers[steps[i].who];
		bool ok = steps[i].acquire ? kind->acquire(table, &key, who)
		                           : kind->release(table, &key, who);
		if (ok != steps[i].ok)
			errx(1, "%s: step %zu of the check went wrong", kind->name, i);
		memset(&key, 'x', sizeof key);
	}
	thread_leave(kind, table);
	kind->unmake(table);
}

#define CASES ((size_t)(WORKLOAD_END - 1) * THREADS_MAX * SIZES)
#define TEXT_MAX 48

/* The cases and what they point to. */
struct program {
	struct bench_case cases[CASES];
	struct load loads[CASES];
	char names[CASES][TEXT_MAX];
	char groups[CASES][TEXT_MAX];
	struct contestant contestants[KINDS];
	struct keys *keys[SIZES];
};

static void case_add(struct program *p, size_t n, enum workload workload, unsigned threads,
                     size_t size)
{
	static const char *const names[] = {[CHURN] = "churn", [TRANSIENT] = "transient"};
	const struct size *s = &sizes[size];
	snprintf(p->names[n], TEXT_MAX, "%s/%zu/%u", names[workload], s->keys, threads);
	snprintf(p->groups[n], TEXT_MAX, "%s, %u thread%s", names[workload], threads,
	         threads == 1 ? "" : "s");
	p->loads[n] = (struct load){workload, s->keys, &p->keys[size]};
	p->cases[n] = (struct bench_case){
		.name = p->names[n],
		.group = p->groups[n],
		.label = s->label,
		.threads = threads,
		.ops = s->ops,
		.goal[ROLE_RIVAL] = s->keys == GOAL_KEYS ? GOAL : 0,
		.load = &p->loads[n],
	};
}

static void program_init(struct program *p)
{
	size_t n = 0;
	for (enum workload w = CHURN; w < WORKLOAD_END; w++)
		for (unsigned threads = 1; threads <= THREADS_MAX; threads++)
			for (size_t size = 0; size < SIZES; size++)
				case_add(p, n++, w, threads, size);
	for (size_t i = 0; i < KINDS; i++)
		p->contestants[i] = (struct contestant){
			.name = kinds[i]->name,
			.about = kinds[i]->about,
			.role = kinds[i]->role,
			.setup = game_setup,
			.run = game_run,
			.teardown = game_teardown,
			.arg = kinds[i],
		};
}

static size_t facts(struct fact *ret, size_t max)
{
	return gate_facts(kinds, KINDS, GOAL_KEYS, ret, max);
}

static const char about[] =
	"Nanoseconds per acquire+release of one key while so many keys are held. Keys have 12\n"
	"to 40 bytes. *churn*: a held key is released and acquired again. *transient*: a key\n"
	"that is not among the held ones is acquired and released. The keys come in random\n"
	"order, the same for all. With two threads each works on its own half of them, and\n"
	"the figure is the wall time of the turn per operation of one thread. Every\n"
	"contestant keeps its own copy of the key, refuses it to a second owner, and compares\n"
	"the owner before it lets go; the gate always locks, the others lock only where there\n"
	"are two threads. Behind the median stands its 95 % interval.";

int main(int argc, char **argv)
{
	static struct program program;
	program_init(&program);
	for (size_t i = 0; i < KINDS; i++)
		kind_check(kinds[i]);
	struct bench bench = {
		.name = "gate",
		.title = "Gate",
		.text = about,
		.contestants = program.contestants,
		.contestant_count = KINDS,
		.cases = program.cases,
		.case_count = CASES,
		.facts = facts,
	};
	int status = bench_main(&bench, argc, argv);
	for (size_t i = 0; i < SIZES; i++)
		keys_free(program.keys[i]);
	return status;
}
