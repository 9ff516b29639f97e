/* One command as the runner sees it: what it says, and how it ends. */
#ifndef GUARDIAN_WARD_H
#define GUARDIAN_WARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <baton/alloc.h>
#include <baton/err.h>

#include "base/buf.h"
#include "guardian/errand.h"
#include "guardian/wards.h"

struct ward {
	const struct baton_alloc *alloc; /* [const] */
	uint64_t id;                     /* [const] */
	uint64_t serial;                 /* [const] */

	/* The order to start it, as long as it was not sent. */
	bool queued;
	struct errand_order order;
	int fds[ORDER_FDS];

	struct ward *next; /* in the list of those who have news */
	bool listed;
	bool stop_wanted; /* not sent yet */
	bool kill_wanted;
	bool begun;
	bool begun_told;
	bool over; /* `end` is how it ended, and nothing more is written */
	struct errand_report end;

	int out;         /* standard output; or -1, also if it goes where standard error goes */
	size_t out_left; /* that was in it at the end */
	struct buf text;
	bool cut;

	int err;         /* standard error; or -1 */
	size_t err_left; /* that was in it at the end */
	size_t line_at;  /* what is before it was told */
	size_t line_end;
	char line[WARDS_LINE_MAX];
};

/* Makes what a command needs to be started, in w->order and w->fds, and ends for us to read from.
 * The answers are those of wards_start(). */
enum baton_err ward_new(const struct baton_alloc *alloc, const struct ward_spec *spec,
                        uint64_t serial, struct ward **ret);

/* Reads some of what is there. False: that was all, and the descriptor has been closed. */
bool ward_read_out(struct ward *w);
bool ward_read_err(struct ward *w);

/* It has ended, and so have all who could write. Does nothing the second time. */
void ward_end(struct ward *w, const struct errand_report *end);

/* The next thing there is to tell; after WARD_ENDED nothing is. False: nothing now. */
bool ward_next(struct ward *w, struct ward_news *ret);

void ward_free(struct ward *w);

#endif
