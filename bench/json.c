/* What a bench found out, for programs. Names and texts come from the benches' own tables, which
 * need no escapes beyond quotes and newlines. */
#include <math.h>
#include <stdbool.h>

#include "report.h"

static void print_string(FILE *to, const char *text)
{
	fputc('"', to);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', to);
		if (*text == '\n')
			fputs("\\n", to);
		else
			fputc(*text, to);
	}
	fputc('"', to);
}

/* `"name": ` after a comma, unless it is the first member. */
static void print_member(FILE *to, bool first, const char *name)
{
	if (!first)
		fputs(", ", to);
	print_string(to, name);
	fputs(": ", to);
}

static void print_text(FILE *to, bool first, const char *name, const char *value)
{
	print_member(to, first, name);
	print_string(to, value);
}

static void print_number(FILE *to, bool first, const char *name, double value)
{
	print_member(to, first, name);
	if (isfinite(value))
		fprintf(to, "%.10g", value);
	else
		fputs("null", to);
}

static void print_spread(FILE *to, struct spread s)
{
	print_number(to, true, "median", s.median);
	print_number(to, false, "low", s.low);
	print_number(to, false, "high", s.high);
}

/* How the latencies of a case that is about them are distributed. */
static void print_latencies(FILE *to, const struct record *r)
{
	if (!r->samples)
		return;
	print_number(to, false, "samples", (double)r->sample_count);
	print_number(to, false, "p50", quantile_of(r->samples, r->sample_count, 0.5).median);
	print_number(to, false, "p99", quantile_of(r->samples, r->sample_count, 0.99).median);
	print_number(to, false, "max", r->samples[r->sample_count - 1]);
}

static void print_figures(FILE *to, const struct bench *b, const struct outcome *out)
{
	bool first = true;
	for (size_t i = 0; i < b->contestant_count; i++) {
		const struct record *record = &out->records[i];
		if (!record->played)
			continue;
		fputs(first ? "\n      " : ",\n      ", to);
		first = false;
		print_member(to, true, b->contestants[i].name);
		fputc('{', to);
		print_spread(to, spread_of(record->ns, out->rounds));
		print_latencies(to, record);
		print_member(to, false, "rounds");
		for (unsigned r = 0; r < out->rounds; r++)
			fprintf(to, "%s%.2f", r == 0 ? "[" : ", ", record->ns[r]);
		fputs("]}", to);
	}
}

static void print_ratios(FILE *to, const struct outcome *out)
{
	bool first = true;
	for (enum role role = ROLE_RIVAL; role < ROLE_END; role++) {
		const struct ratio *r = &out->ratios[role];
		if (!r->against)
			continue;
		fputs(first ? "\n      {" : ",\n      {", to);
		first = false;
		print_spread(to, r->spread);
		print_text(to, false, "against", r->against->name);
		print_number(to, false, "at_most", r->goal > 0 ? r->goal : NAN);
		print_text(to, false, "goal", report_verdict(r->verdict));
		fputc('}', to);
	}
}

static void print_outcome(FILE *to, const struct bench *b, const struct outcome *out)
{
	fputs("    {", to);
	print_text(to, true, "name", out->c->name);
	print_number(to, false, "threads", out->c->threads);
	print_number(to, false, "ops", (double)out->c->ops);
	print_number(to, false, "rounds", out->rounds);
	print_member(to, false, "ns");
	fputc('{', to);
	print_figures(to, b, out);
	fputs("},\n     ", to);
	if (out->c->p99_goal_ns > 0) {
		print_number(to, true, "p99_at_most", out->c->p99_goal_ns);
		print_text(to, false, "p99_goal", report_verdict(out->p99_verdict));
		fputs(", ", to);
	}
	print_member(to, true, "ratios");
	fputc('[', to);
	print_ratios(to, out);
	fputs("]}", to);
}

static void print_fact(FILE *to, const struct fact *f)
{
	fputs("    {", to);
	print_text(to, true, "name", f->name);
	print_text(to, false, "unit", f->unit);
	print_number(to, false, "value", f->value);
	print_number(to, false, "at_most", f->at_most);
	print_text(to, false, "goal", report_verdict(report_fact_verdict(f)));
	fputc('}', to);
}

static void print_contestant(FILE *to, const struct contestant *one)
{
	fputs("    {", to);
	print_text(to, true, "name", one->name);
	print_text(to, false, "about", one->about);
	fputc('}', to);
}

static void print_separator(FILE *to, size_t i)
{
	fputs(i == 0 ? "\n" : ",\n", to);
}

void report_json(FILE *to, const struct findings *found)
{
	const struct bench *b = found->bench;
	fputs("{", to);
	print_text(to, true, "bench", b->name);
	print_text(to, false, "compiler", REPORT_COMPILER);
	fputs(",\n  \"contestants\": [", to);
	for (size_t i = 0; i < b->contestant_count; i++) {
		print_separator(to, i);
		print_contestant(to, &b->contestants[i]);
	}
	fputs("],\n  \"cases\": [", to);
	for (size_t i = 0; i < found->outcome_count; i++) {
		print_separator(to, i);
		print_outcome(to, b, &found->outcomes[i]);
	}
	fputs("],\n  \"facts\": [", to);
	for (size_t i = 0; i < found->fact_count; i++) {
		print_separator(to, i);
		print_fact(to, &found->facts[i]);
	}
	fputs("]}\n", to);
}
