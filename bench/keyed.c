/* What keys cost: the same work with and without them, and beside a key that many wait for. */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>

#include <baton/work.h>

#include "claims/arena.h"
#include "harness.h"
#include "jobs/team.h"

#define KEYS 100000
#define WAITERS 100000
#define KEY_TEXT 16
#define CALLERS 64

struct load {
	unsigned each; /* jobs in a call                                         */
	bool server;   /* in PostgreSQL rather than SQLite                      */
	bool hot;      /* about a key that many wait for, else about keys as such */
};

/* A store, and whether the jobs in it have keys. */
struct seat {
	struct place *place;
	unsigned each;
	bool keyed;
};

static const char payload[JOB_BYTES];
static const struct baton_str bytes = {payload, sizeof payload};

static void put(const struct seat *s, const struct baton_batch *batches, unsigned count)
{
	struct baton_put puts[JOBS_EACH_MAX];
	must(baton_work_put(place_store(s->place), batches, count, puts));
}

static struct baton_work_claims *claim(const struct seat *s, unsigned count, int64_t ttl_s)
{
	const struct baton_work_ask ask = {
		.queue = BATON_STR("bench"),
		.claims = count,
		.max = 1,
		.ttl = baton_duration_s(ttl_s),
	};
	struct baton_work_claims *claims = NULL;
	must(baton_work_claim(place_store(s->place), &ask, &claims));
	if (!claims || claims->count != count)
		errx(1, "there is not enough to claim");
	return claims;
}

/* Jobs that are claimed and completed at once, a key for each. */
static void live(const struct seat *s, uint64_t from, unsigned count)
{
	char keys[JOBS_EACH_MAX][KEY_TEXT];
	struct baton_batch batches[JOBS_EACH_MAX];
	struct baton_work_end ends[JOBS_EACH_MAX];
	struct baton_work_ended ended[JOBS_EACH_MAX];
	for (unsigned i = 0; i < count; i++) {
		batches[i] = (struct baton_batch){.queue = BATON_STR("bench"),
		                                  .payloads = &bytes,
		                                  .count = 1};
		/* Neighbours in time are none in an index. The text is the caller's. */
		unsigned key = (unsigned)((from + i) * 7919 % KEYS);
		snprintf(keys[i], KEY_TEXT, "user %u", key);
		if (s->keyed)
			batches[i].key = baton_str_z(keys[i]);
	}
	put(s, batches, count);
	struct baton_work_claims *claims = claim(s, count, 30);
	for (unsigned i = 0; i < count; i++)
		ends[i] = (struct baton_work_end){.proof = claims->claims[i].proof,
		                                  .how = BATON_COMPLETE};
	must(baton_work_end(place_store(s->place), ends, count, ended));
	for (unsigned i = 0; i < count; i++)
		must(ended[i].err);
	baton_work_claims_free(claims);
}

/* One job holds a key for as long as the bench lasts, and the others wait for it. */
static void crowd(const struct seat *s)
{
	struct baton_batch batches[JOBS_EACH_MAX];
	for (unsigned i = 0; i < JOBS_EACH_MAX; i++)
		batches[i] = (struct baton_batch){.queue = BATON_STR("bench"),
		                                  .key = BATON_STR("hot"),
		                                  .payloads = &bytes,
		                                  .count = 1};
	put(s, batches, 1);
	baton_work_claims_free(claim(s, 1, 3600));
	for (unsigned i = 0; i < WAITERS; i += JOBS_EACH_MAX)
		put(s, batches, JOBS_EACH_MAX);
}

static struct seat *seat_new(const struct load *load, bool keyed)
{
	struct place *place = place_open(load->server);
	if (!place)
		return NULL;
	struct seat *s = arena_new(sizeof *s);
	s->place = place;
	s->each = load->each;
	s->keyed = keyed;
	return s;
}

static void *our_setup(const struct contestant *self, const struct bench_case *c)
{
	const struct load *load = c->load;
	struct seat *s = seat_new(load, true);
	(void)self;
	if (s && load->hot)
		crowd(s);
	return s;
}

static void *their_setup(const struct contestant *self, const struct bench_case *c)
{
	const struct load *load = c->load;
	(void)self;
	return seat_new(load, load->hot);
}

static uint64_t run(void *state, unsigned thread, uint64_t from, uint64_t ops)
{
	const struct seat *s = state;
	for (uint64_t done = 0; done < ops;) {
		uint64_t left = ops - done;
		unsigned now = left < s->each ? (unsigned)left : s->each;
		live(s, from + done + thread * (KEYS / CALLERS), now);
		done += now;
	}
	return ops;
}

static void teardown(void *state)
{
	struct seat *s = state;
	place_close(s->place);
	free(s);
}

static const struct contestant contestants[] = {
	{.name = "with",
         .about =
                 "every job has one of 100,000 keys; or that, beside a key which one job holds and "
                 "100,000 wait for",
         .role = ROLE_SUBJECT,
         .setup = our_setup,
         .run = run,
         .teardown = teardown},
	{.name = "without",
         .about = "the same jobs without keys; or with keys, and nobody waits for any",
         .role = ROLE_FLOOR,
         .setup = their_setup,
         .run = run,
         .teardown = teardown},
};

static const struct load singles = {.each = 1}, served_singles = {.each = 1, .server = true},
			 bulks = {.each = JOBS_EACH_MAX},
			 served_bulks = {.each = JOBS_EACH_MAX, .server = true},
			 hot = {.each = JOBS_EACH_MAX, .hot = true},
			 served_hot = {.each = JOBS_EACH_MAX, .server = true, .hot = true};

static const struct bench_case cases[] = {
	{.name = "keys/sqlite",
         .group = "keys, 64 callers",
         .label = "SQLite",
         .threads = CALLERS,
         .ops = 20,
         .load = &singles,
         .goal = {[ROLE_FLOOR] = 1 / 0.9}},
	{.name = "keys/postgres",
         .group = "keys, 64 callers",
         .label = "PostgreSQL",
         .threads = CALLERS,
         .ops = 20,
         .load = &served_singles,
         .goal = {[ROLE_FLOOR] = 1 / 0.9}},
	{.name = "bulk/sqlite",
         .group = "keys, 100 jobs in a call",
         .label = "SQLite",
         .threads = 1,
         .ops = 2000,
         .load = &bulks,
         .goal = {[ROLE_FLOOR] = 1 / 0.9}},
	{.name = "bulk/postgres",
         .group = "keys, 100 jobs in a call",
         .label = "PostgreSQL",
         .threads = 1,
         .ops = 2000,
         .load = &served_bulks,
         .goal = {[ROLE_FLOOR] = 1 / 0.9}},
	{.name = "hot/sqlite",
         .group = "beside a hot key",
         .label = "SQLite",
         .threads = 1,
         .ops = 2000,
         .load = &hot,
         .goal = {[ROLE_FLOOR] = 1 / 0.95}},
	{.name = "hot/postgres",
         .group = "beside a hot key",
         .label = "PostgreSQL",
         .threads = 1,
         .ops = 2000,
         .load = &served_hot,
         .goal = {[ROLE_FLOOR] = 1 / 0.95}},
};

static const char about[] =
	"A job has 150 bytes, and the store acknowledges only what survives a power failure.\n"
	"*keys*: 64 callers put, claim and complete one job after the other, or one does so with\n"
	"100 in a call; every job has a key, of which one may run at a time, of 100,000 keys;\n"
	"against the same without keys. *beside a hot key*: 100 in a call, with keys, while\n"
	"another job of the queue holds a key that 100,000 wait for; against nobody waiting.\n";

int main(int argc, char **argv)
{
	static const struct bench bench = {
		.name = "keyed",
		.title = "Keys",
		.text = about,
		.contestants = contestants,
		.contestant_count = sizeof contestants / sizeof contestants[0],
		.cases = cases,
		.case_count = sizeof cases / sizeof cases[0],
	};
	return bench_main(&bench, argc, argv);
}
