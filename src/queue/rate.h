/* How often a key may be claimed from: the times of its last starts. */
#ifndef QUEUE_RATE_H
#define QUEUE_RATE_H

#include <stdbool.h>
#include <stddef.h>

#include <baton/policy.h>
#include <baton/str.h>
#include <baton/time.h>

#include "queue/line.h"
#include "queue/site.h"

/* Whether the starts of that line are counted. */
bool line_is_rated(struct baton_str name, const struct baton_queue_policy *policy);

/* Under which name the starts of a line are kept, if they are those of that owner: its own, or,
 * where keys count in each place, a byte 3, the place and the line of the key; in `text`. */
#define RATE_NAME_MAX (1 + SITE_NAME_MAX + LINE_NAME_MAX)
struct baton_str rate_name(struct baton_str line, const struct baton_queue_policy *policy,
                           const struct baton_owner *owner, char text[RATE_NAME_MAX]);

/* What such names begin with where that owner is; in `text`. */
struct baton_str rate_site(enum baton_key_scope scope, const struct baton_owner *owner,
                           char text[RATE_NAME_MAX]);

/* The line of the key whose starts have that name. */
struct baton_str rate_line(struct baton_str name);

/* So many of those of a runner are forgotten when it goes, and the others when they have left the
 * window. */
#define RATES_FORGET_MAX 1000

static inline bool rate_equal(const struct baton_key_rate *a, const struct baton_key_rate *b)
{
	return a->starts == b->starts && a->window.ns == b->window.ns;
}

/* Those of `count` starts, in the order of their times, that count now, the newest and not more
 * than the rate allows; they are moved to the beginning. Those that have left the window are gone,
 * and those of a time that is yet to come, since the clock was set back, are taken for starts of
 * now. Returns how many are left. */
size_t rate_look(const struct baton_key_rate *rate, struct baton_store_time *starts, size_t count,
                 struct baton_store_time now);

/* One more start, now. There is room for as many as the rate allows, and for one. Returns how many
 * there are then. */
size_t rate_start(const struct baton_key_rate *rate, struct baton_store_time *starts, size_t count,
                  struct baton_store_time now);

/* When the key may start again, after rate_look() or rate_start(); 0: now. */
struct baton_store_time rate_until(const struct baton_key_rate *rate,
                                   const struct baton_store_time *starts, size_t count);

/* When the last of the starts leaves the window. There is one. */
struct baton_store_time rate_over(const struct baton_key_rate *rate,
                                  const struct baton_store_time *starts, size_t count);

/* Whether the key waits for longer than a window, since the clock was set back. */
bool rate_is_ahead(const struct baton_key_rate *rate, struct baton_store_time until,
                   struct baton_store_time now);

#endif
