/* How far long work is. */
#include <inttypes.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "out.h"
#include "progress.h"

#define BAR "########################################"
#define BAR_WIDTH ((int)sizeof BAR - 1)
#define BAR_LEAST 5 /* where there is no room for that, there is no bar */

/* Elsewhere than on a terminal it tells each tenth, or each so many units if nobody knows how many
 * there are. */
#define PARTS 10
#define UNITS 100000

#define COLUMNS_USUAL 80
#define LINE_SIZE 256

struct progress progress_begin(const char *unit)
{
	return (struct progress){.unit = unit, .terminal = out_is_screen(STDERR_FILENO)};
}

static int columns(void)
{
	struct winsize size = {.ws_col = 0};
	bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
	return known ? size.ws_col : COLUMNS_USUAL;
}

/* What goes beyond the last column would begin a line that nobody clears. */
static void draw(const struct progress *p, uint64_t count, uint64_t done, uint64_t all)
{
	char text[LINE_SIZE];
	int room = columns() - 1;
	int len = snprintf(text, sizeof text, "%" PRIu64 " %s", count, p->unit);
	if (all > 0)
		len = snprintf(text, sizeof text, "%3" PRIu64 " %%  %" PRIu64 " %s",
		               done * 100 / all, count, p->unit);
	int width = room - len - 3;
	if (width > BAR_WIDTH)
		width = BAR_WIDTH;
	fprintf(stderr, "\r\033[K");
	if (all > 0 && width >= BAR_LEAST) {
		int filled = (int)(done * (uint64_t)width / all);
		fprintf(stderr, "[%.*s%*s] ", filled, BAR, width - filled, "");
	}
	fprintf(stderr, "%.*s", room, text);
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

void progress_clear(const struct progress *p)
{
	if (p->terminal)
		fprintf(stderr, "\r\033[K");
}
