/* What the demo shows while it runs: on a terminal a picture that changes, with what happened above
 * it; elsewhere plain lines. */
#ifndef CLI_VIEW_H
#define CLI_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crew.h"
#include "out.h"

#define VIEW_SHARDS_MAX 64
#define VIEW_STATE_ROOM 40

/* How things are at one moment. */
struct picture {
	uint32_t accepted, all;
	size_t shards;
	int owners[VIEW_SHARDS_MAX]; /* which runner has the shard; -1: nobody */
	char states[CREW_RUNNERS][VIEW_STATE_ROOM];
};

struct view {
	struct out *out;
	int64_t began_ns;
	int64_t told_ns;   /* when it last wrote a plain line about how things are */
	unsigned drawn;    /* lines of the picture that is there now */
	uint32_t accepted; /* at the last look, and when that was, and what the rate is */
	int64_t looked_ns;
	uint32_t rate;
};

/* Begins now. */
void view_begin(struct view *v, struct out *out, int64_t now_ns);

/* One line about something that happened. */
__attribute__((format(printf, 3, 4))) void view_tell(struct view *v, int64_t now_ns,
                                                     const char *format, ...);

/* Shows how things are, at once on a terminal, elsewhere now and then. */
void view_show(struct view *v, int64_t now_ns, const struct picture *p);

/* Takes the picture away. */
void view_end(struct view *v);

#endif
