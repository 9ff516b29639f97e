/* What a bench found out, for people. */
#include "report.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "grid.h"

const char *report_verdict(enum verdict v)
{
	switch (v) {
	case VERDICT_NONE:
		return "-";
	case VERDICT_MET:
		return "met";
	case VERDICT_MISSED:
		return "missed";
	case VERDICT_LIMITED:
		return "limited by the machine";
	case VERDICT_UNDECIDED:
		return "undecided";
	}
	return "?";
}

enum verdict report_fact_verdict(const struct fact *f)
{
	if (isnan(f->at_most))
		return VERDICT_NONE;
	if (f->value <= f->at_most)
		return VERDICT_MET;
	return f->floor > f->at_most ? VERDICT_LIMITED : VERDICT_MISSED;
}

/* How many outcomes from the first one on belong to its group. */
static size_t group_size(const struct outcome *outs, size_t count)
{
	size_t n = 1;
	while (n < count && strcmp(outs[n].c->group, outs[0].c->group) == 0)
		n++;
	return n;
}

/* Whether the contestant had a part in any of the cases. */
static bool has_part(const struct outcome *outs, size_t count, size_t who)
{
	for (size_t i = 0; i < count; i++)
		if (outs[i].records[who].played)
			return true;
	return false;
}

static void add_figure(struct grid *g, const struct outcome *out, size_t who)
{
	if (!out->records[who].played) {
		grid_add(g, "-");
		return;
	}
	struct spread s = spread_of(out->records[who].ns, out->rounds);
	grid_add(g, "%.1f (%.1f-%.1f)", s.median, s.low, s.high);
}

/* One row per contestant, one column per case of the group. */
static void print_times(FILE *to, const struct bench *b, const struct outcome *outs, size_t count)
{
	struct grid g = {.columns = count + 1};
	grid_add(&g, "ns");
	for (size_t i = 0; i < count; i++)
		grid_add(&g, "%s", outs[i].c->label);
	for (size_t who = 0; who < b->contestant_count; who++) {
		if (!has_part(outs, count, who))
			continue;
		grid_add(&g, "%s", b->contestants[who].name);
		for (size_t i = 0; i < count; i++)
			add_figure(&g, &outs[i], who);
	}
	grid_print(to, &g);
}

static void add_latencies(struct grid *g, const struct contestant *one, const struct outcome *out,
                          const struct record *r)
{
	struct spread middle = quantile_of(r->samples, r->sample_count, 0.5);
	bool judged = one->role == ROLE_SUBJECT && out->c->p99_goal_ns > 0;
	grid_add(g, "%s: %s", out->c->label, one->name);
	grid_add(g, "%zu", r->sample_count);
	grid_add(g, "%.1f (%.1f-%.1f)", middle.median / 1e3, middle.low / 1e3, middle.high / 1e3);
	grid_add(g, "%.1f", quantile_of(r->samples, r->sample_count, 0.99).median / 1e3);
	grid_add(g, "%.1f", r->samples[r->sample_count - 1] / 1e3);
	if (judged)
		grid_add(g, "%.6g", out->c->p99_goal_ns / 1e3);
	else
		grid_add(g, "-");
	grid_add(g, "%s", judged ? report_verdict(out->p99_verdict) : "-");
}

/* One row per contestant and case. */
static void print_latencies(FILE *to, const struct bench *b, const struct outcome *outs,
                            size_t count)
{
	struct grid g = {.columns = 7};
	grid_add(&g, "us");
	grid_add(&g, "times");
	grid_add(&g, "p50");
	grid_add(&g, "p99");
	grid_add(&g, "max");
	grid_add(&g, "p99 at most");
	grid_add(&g, "goal");
	for (size_t i = 0; i < count; i++)
		for (size_t who = 0; who < b->contestant_count; who++)
			if (outs[i].records[who].played)
				add_latencies(&g, &b->contestants[who], &outs[i],
				              &outs[i].records[who]);
	grid_print(to, &g);
}

static void print_group(FILE *to, const struct bench *b, const struct outcome *outs, size_t count)
{
	fprintf(to, "\n### %s\n\n", outs[0].c->group);
	if (outs[0].c->samples > 0)
		print_latencies(to, b, outs, count);
	else
		print_times(to, b, outs, count);
}

static void add_goal(struct grid *g, double goal)
{
	if (goal > 0)
		grid_add(g, "%.2f", goal);
	else
		grid_add(g, "-");
}

static void add_ratio(struct grid *g, const struct outcome *out, const struct ratio *r)
{
	grid_add(g, "%s", out->c->name);
	grid_add(g, "%s", r->against->name);
	grid_add(g, "%.2f", r->spread.median);
	grid_add(g, "%.2f-%.2f", r->spread.low, r->spread.high);
	grid_add(g, "%u", out->rounds);
	add_goal(g, r->goal);
	grid_add(g, "%s", report_verdict(r->verdict));
}

static void print_ratios(FILE *to, const struct findings *found, enum role role, const char *title)
{
	struct grid g = {.columns = 7};
	grid_add(&g, "case");
	grid_add(&g, "against");
	grid_add(&g, "ratio");
	grid_add(&g, "spread");
	grid_add(&g, "rounds");
	grid_add(&g, "at most");
	grid_add(&g, "goal");
	for (size_t i = 0; i < found->outcome_count; i++)
		if (found->outcomes[i].ratios[role].against)
			add_ratio(&g, &found->outcomes[i], &found->outcomes[i].ratios[role]);
	if (g.count == g.columns)
		return;
	fprintf(to, "\n### %s\n\n", title);
	grid_print(to, &g);
}

static void print_facts(FILE *to, const struct findings *found)
{
	if (found->fact_count == 0)
		return;
	struct grid g = {.columns = 5};
	grid_add(&g, "figure");
	grid_add(&g, "value");
	grid_add(&g, "unit");
	grid_add(&g, "at most");
	grid_add(&g, "goal");
	for (size_t i = 0; i < found->fact_count; i++) {
		const struct fact *f = &found->facts[i];
		grid_add(&g, "%s", f->name);
		grid_add(&g, "%.6g", f->value);
		grid_add(&g, "%s", f->unit);
		if (isnan(f->at_most))
			grid_add(&g, "-");
		else
			grid_add(&g, "%.6g", f->at_most);
		grid_add(&g, "%s", report_verdict(report_fact_verdict(f)));
	}
	fprintf(to, "\n### Other figures\n\n");
	grid_print(to, &g);
}

static void print_contestants(FILE *to, const struct bench *b)
{
	static const char *const roles[ROLE_END] = {
		[ROLE_SUBJECT] = "ours", [ROLE_RIVAL] = "rival", [ROLE_FLOOR] = "floor"};
	fprintf(to, "\n### Contestants\n\n");
	for (size_t i = 0; i < b->contestant_count; i++) {
		const struct contestant *one = &b->contestants[i];
		fprintf(to, "- **%s** (%s): %s\n", one->name, roles[one->role], one->about);
	}
}

void report_markdown(FILE *to, const struct findings *found)
{
	fprintf(to, "## %s\n\n%s Compiled with %s.\n", found->bench->title, found->bench->text,
	        REPORT_COMPILER);
	const struct outcome *outs = found->outcomes;
	for (size_t i = 0, n; i < found->outcome_count; i += n) {
		n = group_size(outs + i, found->outcome_count - i);
		print_group(to, found->bench, outs + i, n);
	}
	print_ratios(to, found, ROLE_RIVAL, "Our time : the fastest rival's");
	print_ratios(to, found, ROLE_FLOOR, "Our time : the floor's");
	print_facts(to, found);
	print_contestants(to, found->bench);
}
