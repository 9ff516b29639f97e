/* How far a bench is, on standard error: a bar on a terminal, a line per case elsewhere. */
#ifndef BENCH_PROGRESS_H
#define BENCH_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct progress {
	const char *bench;
	size_t cases;
	size_t played;
	bool terminal;
	int64_t began_s;
};

struct progress progress_begin(const char *bench, size_t cases);

/* Round `round` of at most `rounds` of that case has been played. */
void progress_step(struct progress *p, const char *name, unsigned round, unsigned rounds);

/* The case is over. */
void progress_next(struct progress *p, const char *name, unsigned rounds);

void progress_end(struct progress *p);

#endif
