/* How far a bench is. */
#include "progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define BAR "########################################"
#define BAR_WIDTH ((int)sizeof BAR - 1)

static int64_t clock_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

struct progress progress_begin(const char *bench, size_t cases)
{
	return (struct progress){
		.bench = bench,
		.cases = cases,
		.terminal = isatty(STDERR_FILENO) == 1,
		.began_s = clock_s(),
	};
}

void progress_step(struct progress *p, const char *name, unsigned round, unsigned rounds)
{
	if (!p->terminal)
		return;
	double part = (double)(round < rounds ? round : rounds) / rounds;
	int filled = (int)(((double)p->played + part) / (double)p->cases * BAR_WIDTH);
	fprintf(stderr, "\r\033[K%s [%.*s%*s] %zu/%zu %s", p->bench, filled, BAR,
	        BAR_WIDTH - filled, "", p->played + 1, p->cases, name);
}

void progress_next(struct progress *p, const char *name, unsigned rounds)
{
	p->played++;
	if (!p->terminal)
		fprintf(stderr, "%s: %zu/%zu %s, %u rounds, %lld s\n", p->bench, p->played,
		        p->cases, name, rounds, (long long)(clock_s() - p->began_s));
}

void progress_end(struct progress *p)
{
	if (p->terminal)
		fprintf(stderr, "\r\033[K");
}
