/* Contestants side by side: set up, rounds, verdicts, and the command line. */
#include "harness.h"

#include <err.h>
#include <fnmatch.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "progress.h"
#include "report.h"

#define ROUNDS_MIN 7
#define ROUNDS_MAX 9       /* without a goal */
#define ROUNDS_GOAL_MAX 21 /* with one       */
#define ROUNDS_LATENCY 11
#define SECONDS_MAX 25     /* after which nothing is added to ROUNDS_MIN */
#define WIDTH_SETTLED 0.04 /* a ratio known this well needs no more rounds */

/* Of the operations of a turn, one in so many is added in front and not timed: it brings back
 * into the caches what the others have displaced. */
#define LEAD_SHARE 4

struct options {
	const char *json;      /* NULL: none                               */
	const char *once;      /* the only contestant; NULL: all of them   */
	unsigned rounds;       /* exactly so many; 0: until settled        */
	char *const *patterns; /* of names of cases; ends with NULL        */
};

/* Everyone who takes part in a case, while it is played. */
struct match {
	const struct bench *bench;
	const struct bench_case *c;
	struct crew *crew;
	void **states; /* by contestant; NULL: has no part in it */
};

static bool takes_part(const struct options *o, const struct contestant *one)
{
	return !o->once || strcmp(o->once, one->name) == 0;
}

static struct match match_begin(const struct bench *b, const struct bench_case *c,
                                const struct options *o)
{
	struct match m = {b, c, crew_new(c->threads), calloc(b->contestant_count, sizeof(void *))};
	if (!m.states)
		errx(1, "no memory");
	for (size_t i = 0; i < b->contestant_count; i++)
		if (takes_part(o, &b->contestants[i]))
			m.states[i] = b->contestants[i].setup(&b->contestants[i], c);
	return m;
}

static void match_end(struct match *m)
{
	for (size_t i = 0; i < m->bench->contestant_count; i++)
		if (m->states[i])
			m->bench->contestants[i].teardown(m->states[i]);
	free(m->states);
	crew_free(m->crew);
}

static void record_sample(struct record *r, double ns)
{
	r->samples[r->sample_count++] = ns;
}

/* The median of the latencies of one turn. */
static double turn_of_latencies(struct match *m, size_t i, struct record *r, unsigned round)
{
	unsigned count = round == 0 ? 1 : m->c->samples; /* round 0 warms up */
	size_t before = r->sample_count;
	for (unsigned k = 0; k < count; k++)
		record_sample(r, m->bench->contestants[i].sample(m->states[i]));
	stats_sort(r->samples + before, count);
	double median = quantile_of(r->samples + before, count, 0.5).median;
	if (round == 0)
		r->sample_count = before;
	return median;
}

static unsigned slices_of(const struct bench_case *c)
{
	return c->slices > 1 ? c->slices : 1;
}

/* Nanoseconds per operation of a slice; `number` counts them all. Work that was not done is an
 * error: a figure for it would be worth nothing. */
static double slice_of_ops(struct match *m, size_t i, uint64_t number)
{
	const struct contestant *one = &m->bench->contestants[i];
	uint64_t ops = m->c->ops / slices_of(m->c);
	uint64_t lead = ops / LEAD_SHARE;
	uint64_t done;
	struct crew_turn t = {
		.work = one->run,
		.state = m->states[i],
		.from = number * (lead + ops),
		.lead = lead,
		.ops = ops,
		.cpu = m->c->cpu,
	};
	double ns = crew_run(m->crew, &t, &done);
	uint64_t due = (lead + ops) * m->c->threads;
	if (done != due)
		errx(1, "%s, %s: %" PRIu64 " of %" PRIu64 " operations did what they should",
		     m->c->name, one->name, done, due);
	return ns / (double)ops;
}

/* Who plays as number k of a round. */
static size_t player_of(const struct match *m, unsigned round, size_t k)
{
	return (round + k) % m->bench->contestant_count;
}

static void round_of_latencies(struct match *m, struct outcome *out, unsigned round)
{
	for (size_t k = 0; k < m->bench->contestant_count; k++) {
		size_t i = player_of(m, round, k);
		if (!m->states[i])
			continue;
		double ns = turn_of_latencies(m, i, &out->records[i], round);
		if (round > 0)
			out->records[i].ns[round - 1] = ns;
	}
}

static void round_of_ops(struct match *m, struct outcome *out, unsigned round)
{
	unsigned slices = slices_of(m->c);
	for (unsigned s = 0; s < slices; s++) {
		for (size_t k = 0; k < m->bench->contestant_count; k++) {
			size_t i = player_of(m, round + s, k);
			if (m->states[i])
				out->records[i].slices[s] =
					slice_of_ops(m, i, (uint64_t)round * slices + s);
		}
	}
	for (size_t i = 0; round > 0 && i < m->bench->contestant_count; i++) {
		if (m->states[i])
			out->records[i].ns[round - 1] =
				spread_of(out->records[i].slices, slices).median;
	}
}

/* Round 0 warms up; its times are not kept. */
static void round_play(struct match *m, struct outcome *out, unsigned round)
{
	if (m->c->samples > 0)
		round_of_latencies(m, out, round);
	else
		round_of_ops(m, out, round);
}

/* The contestant that counts in that role, or NULL: the named one, or that with the lowest
 * median. */
static const struct contestant *best_of(const struct match *m, const struct outcome *out,
                                        enum role role)
{
	const char *named = out->c->against[role];
	const struct contestant *best = NULL;
	double best_ns = 0;
	for (size_t i = 0; i < m->bench->contestant_count; i++) {
		if (!m->states[i] || m->bench->contestants[i].role != role)
			continue;
		if (named && strcmp(named, m->bench->contestants[i].name) != 0)
			continue;
		double ns = spread_of(out->records[i].ns, out->rounds).median;
		if (best && ns >= best_ns)
			continue;
		best = &m->bench->contestants[i];
		best_ns = ns;
	}
	return best;
}

static enum verdict judge(struct spread s, double goal)
{
	if (goal == 0)
		return VERDICT_NONE;
	if (s.high <= goal)
		return VERDICT_MET;
	return s.low > goal ? VERDICT_MISSED : VERDICT_UNDECIDED;
}

static struct ratio ratio_of(const struct match *m, const struct outcome *out, enum role role)
{
	const struct contestant *ours = best_of(m, out, ROLE_SUBJECT);
	const struct contestant *theirs = best_of(m, out, role);
	if (!ours || !theirs)
		return (struct ratio){.verdict = VERDICT_NONE};
	const double *a = out->records[ours - m->bench->contestants].ns;
	const double *b = out->records[theirs - m->bench->contestants].ns;
	double each[STATS_MAX];
	for (unsigned r = 0; r < out->rounds; r++)
		each[r] = a[r] / b[r];
	struct ratio ratio = {theirs, spread_of(each, out->rounds), m->c->goal[role], VERDICT_NONE};
	ratio.verdict = judge(ratio.spread, ratio.goal);
	return ratio;
}

/* Whether more rounds would change little. */
static bool settled(const struct outcome *out)
{
	for (enum role role = ROLE_RIVAL; role < ROLE_END; role++) {
		const struct ratio *r = &out->ratios[role];
		if (r->against &&
		    (r->verdict == VERDICT_UNDECIDED || spread_width(r->spread) > WIDTH_SETTLED))
			return false;
	}
	return true;
}

static unsigned rounds_max(const struct bench_case *c, const struct options *o)
{
	if (o->rounds > 0)
		return o->rounds;
	if (c->samples > 0)
		return ROUNDS_LATENCY;
	for (enum role role = ROLE_RIVAL; role < ROLE_END; role++)
		if (c->goal[role] > 0)
			return ROUNDS_GOAL_MAX;
	return ROUNDS_MAX;
}

static bool enough(const struct outcome *out, const struct options *o, time_t began)
{
	if (out->rounds >= rounds_max(out->c, o))
		return true;
	return o->rounds == 0 && out->c->samples == 0 && out->rounds >= ROUNDS_MIN &&
	       (settled(out) || time(NULL) - began > SECONDS_MAX);
}

static struct record *records_new(const struct match *m)
{
	struct record *records = calloc(m->bench->contestant_count, sizeof *records);
	if (!records)
		errx(1, "no memory");
	for (size_t i = 0; i < m->bench->contestant_count; i++) {
		records[i].played = m->states[i] != NULL;
		if (m->c->samples == 0 || !records[i].played)
			continue;
		records[i].samples = calloc(m->c->samples, sizeof(double) * (STATS_MAX + 1));
		if (!records[i].samples)
			errx(1, "no memory");
	}
	return records;
}

static void records_free(struct record *records, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(records[i].samples);
	free(records);
}

/* Of the contestant that counts in that role. */
static enum verdict judge_p99(const struct match *m, const struct outcome *out, enum role role)
{
	const struct contestant *one = best_of(m, out, role);
	if (!one)
		return VERDICT_NONE;
	const struct record *r = &out->records[one - m->bench->contestants];
	return judge(quantile_of(r->samples, r->sample_count, 0.99), m->c->p99_goal_ns);
}

/* Sorts the latencies and judges the subject's. Where the rival whom the case names misses the goal
 * too, the machine is too slow to tell. */
static void finish(const struct match *m, struct outcome *out)
{
	out->p99_verdict = VERDICT_NONE;
	if (m->c->samples == 0)
		return;
	for (size_t i = 0; i < m->bench->contestant_count; i++)
		if (out->records[i].played)
			stats_sort(out->records[i].samples, out->records[i].sample_count);
	out->p99_verdict = judge_p99(m, out, ROLE_SUBJECT);
	enum verdict rival =
		m->c->against[ROLE_RIVAL] ? judge_p99(m, out, ROLE_RIVAL) : VERDICT_MET;
	if (out->p99_verdict == VERDICT_MISSED && rival == VERDICT_MISSED)
		out->p99_verdict = VERDICT_LIMITED;
}

static struct outcome play(const struct bench *b, const struct bench_case *c,
                           const struct options *o, struct progress *p)
{
	progress_step(p, c->name, 0, rounds_max(c, o));
	struct match m = match_begin(b, c, o);
	struct outcome out = {.c = c, .records = records_new(&m)};
	time_t began = time(NULL);
	round_play(&m, &out, 0);
	do {
		round_play(&m, &out, ++out.rounds);
		for (enum role role = ROLE_RIVAL; role < ROLE_END; role++)
			out.ratios[role] = ratio_of(&m, &out, role);
		progress_step(p, c->name, out.rounds, rounds_max(c, o));
	} while (!enough(&out, o, began));
	finish(&m, &out);
	match_end(&m);
	progress_next(p, c->name, out.rounds);
	return out;
}

static bool selected(const struct options *o, const struct bench_case *c)
{
	if (!*o->patterns)
		return true;
	for (char *const *pattern = o->patterns; *pattern; pattern++)
		if (fnmatch(*pattern, c->name, 0) == 0)
			return true;
	return false;
}

static size_t count_selected(const struct bench *b, const struct options *o)
{
	size_t n = 0;
	for (size_t i = 0; i < b->case_count; i++)
		n += selected(o, &b->cases[i]);
	return n;
}

/* For profilers: one contestant, and no figures but the plainest. */
static void print_once(const struct findings *found)
{
	const struct bench *b = found->bench;
	for (size_t k = 0; k < found->outcome_count; k++) {
		const struct outcome *out = &found->outcomes[k];
		for (size_t i = 0; i < b->contestant_count; i++)
			if (out->records[i].played)
				printf("%s, %s: %.1f ns\n", out->c->name, b->contestants[i].name,
				       spread_of(out->records[i].ns, out->rounds).median);
	}
}

static void write_json(const char *path, const struct findings *found)
{
	FILE *f = fopen(path, "we");
	if (!f)
		err(1, "%s", path);
	report_json(f, found);
	if (fclose(f) != 0)
		err(1, "%s", path);
}

static void play_all(const struct options *o, struct findings *found)
{
	const struct bench *b = found->bench;
	struct progress p = progress_begin(b->name, count_selected(b, o));
	for (size_t i = 0; i < b->case_count; i++)
		if (selected(o, &b->cases[i]))
			found->outcomes[found->outcome_count++] = play(b, &b->cases[i], o, &p);
	progress_end(&p);
}

static void bench_run(const struct bench *b, const struct options *o)
{
	struct findings found = {.bench = b,
	                         .outcomes = calloc(b->case_count, sizeof *found.outcomes)};
	if (!found.outcomes)
		errx(1, "no memory");
	play_all(o, &found);
	if (o->once) {
		print_once(&found);
	} else {
		if (b->facts && !*o->patterns)
			found.fact_count = b->facts(found.facts, BENCH_FACTS_MAX);
		report_markdown(stdout, &found);
		if (o->json)
			write_json(o->json, &found);
	}
	for (size_t i = 0; i < found.outcome_count; i++)
		records_free(found.outcomes[i].records, b->contestant_count);
	free(found.outcomes);
}

static void usage(const struct bench *b, FILE *to)
{
	fprintf(to,
	        "usage: bench-%s [--json FILE] [--rounds N] [--once CONTESTANT] [CASE]...\n"
	        "CASE is a pattern, such as 'churn/*'; without one every case is played:\n",
	        b->name);
	for (size_t i = 0; i < b->case_count; i++)
		fprintf(to, "  %s\n", b->cases[i].name);
	fprintf(to, "contestants:\n");
	for (size_t i = 0; i < b->contestant_count; i++)
		fprintf(to, "  %s\n", b->contestants[i].name);
}

/* 1 to STATS_MAX. */
static unsigned rounds_parse(const char *text)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);
	if (end == text || *end != '\0' || n < 1 || n > STATS_MAX)
		errx(2, "--rounds %s: must be a number from 1 to %d", text, STATS_MAX);
	return (unsigned)n;
}

static void check_once(const struct bench *b, const struct options *o)
{
	for (size_t i = 0; i < b->contestant_count; i++)
		if (takes_part(o, &b->contestants[i]))
			return;
	errx(2, "--once %s: no such contestant; --help lists them", o->once);
}

static void *idle(void *unused)
{
	for (;;)
		pause();
	return unused;
}

/* While a process has a single thread the C library does without atomic instructions. Who uses
 * what is measured here has several, so there is always another one. */
static void be_threaded(void)
{
	pthread_t thread;
	if (pthread_create(&thread, NULL, idle, NULL) != 0 || pthread_detach(thread) != 0)
		errx(1, "cannot start a thread");
}

int bench_main(const struct bench *bench, int argc, char **argv)
{
	static const struct option known[] = {
		{"json", required_argument, NULL, 'j'},
		{"rounds", required_argument, NULL, 'r'},
		{"once", required_argument, NULL, 'o'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct options o = {0};
	for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;) {
		if (c == 'j')
			o.json = optarg;
		else if (c == 'r')
			o.rounds = rounds_parse(optarg);
		else if (c == 'o')
			o.once = optarg;
		else {
			usage(bench, c == 'h' ? stdout : stderr);
			return c == 'h' ? 0 : 2;
		}
	}
	o.patterns = argv + optind;
	if (count_selected(bench, &o) == 0)
		errx(2, "no case has such a name; --help lists them");
	check_once(bench, &o);
	if (o.once && o.rounds == 0)
		o.rounds = 1;
	be_threaded();
	bench_run(bench, &o);
	return 0;
}
