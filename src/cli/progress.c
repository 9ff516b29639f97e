/* How far long work is. */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "out.h"
#include "progress.h"

#define BAR "########################################"
#define BAR_WIDTH ((int)sizeof BAR - 1)

/* Elsewhere than on a terminal it tells each tenth, or each so many units if nobody knows how many
 * there are. */
#define PARTS 10
#define UNITS 100000

struct progress progress_begin(const char *unit)
{
	return (struct progress){.unit = unit, .terminal = isatty(STDERR_FILENO) == 1};
}

static void draw(const struct progress *p, uint64_t count, uint64_t done, uint64_t all)
{
	fprintf(stderr, "\r\033[K");
	if (all > 0) {
		int filled = (int)(done * BAR_WIDTH / all);
		fprintf(stderr, "[%.*s%*s] %3" PRIu64 " %%  ", filled, BAR, BAR_WIDTH - filled, "",
		        done * 100 / all);
	}
	fprintf(stderr, "%" PRIu64 " %s", count, p->unit);
}

void progress_step(struct progress *p, uint64_t count, uint64_t done, uint64_t all)
{
	if (all > 0 && done > all)
		done = all;
	if (p->terminal) {
		draw(p, count, done, all);
		return;
	}
	uint64_t step = all > 0 ? done * PARTS / all : count / UNITS;
	if (step <= p->told || (all > 0 && done == all))
		return;
	p->told = step;
	if (all > 0)
		complain("%" PRIu64 " %s, %" PRIu64 " %%", count, p->unit, done * 100 / all);
	else
		complain("%" PRIu64 " %s", count, p->unit);
}

void progress_end(const struct progress *p)
{
	if (p->terminal)
		fprintf(stderr, "\r\033[K");
}
