/* What a bench found out, for people and for programs. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <stdio.h>

#include "harness.h"

struct findings {
	const struct bench *bench;
	struct outcome *outcomes;
	size_t outcome_count;
	struct fact facts[BENCH_FACTS_MAX];
	size_t fact_count;
};

/* Markdown whose tables are aligned, so that it reads well as plain text too. */
void report_markdown(FILE *to, const struct findings *found);

/* One JSON object, with the figure of every round. */
void report_json(FILE *to, const struct findings *found);

/* What the benches were compiled with. */
#ifdef __clang__
#define REPORT_COMPILER __VERSION__
#else
#define REPORT_COMPILER "gcc " __VERSION__
#endif

/* How a verdict is written in both. */
const char *report_verdict(enum verdict v);

/* Whether a fact is within its goal. */
enum verdict report_fact_verdict(const struct fact *f);

#endif
