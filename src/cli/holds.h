/* Who holds what, as it was at one moment, in order of their names. */
#ifndef CLI_HOLDS_H
#define CLI_HOLDS_H

#include <baton.h>

#include "json.h"
#include "subject.h"
#include "wall.h"

struct hold {
	struct baton_store_time since; /* or BATON_STORE_TIME_NEVER: not known */
	struct baton_store_time expires;
	baton_fence fence;
	struct baton_id incarnation;
	int32_t pid; /* 0: not known */
	struct baton_str space;
	struct baton_str label;
	struct baton_str owner; /* empty: not known */
	char text[];            /* what the three above point to */
};

struct holds {
	struct hold **items;
	size_t count;
	size_t room;
};

/* Takes down who holds what of `filter` now, by namespace and then by label.
 *
 * False: there is not enough memory; *ret is untouched. Freed by holds_done(). */
bool holds_take(struct baton_watch *watch, const struct wall *now,
                const struct subject_filter *filter, struct holds *ret);

/* Adds a copy of `hold`, with what it points to. False: there is not enough memory. */
bool holds_add(struct holds *holds, const struct hold *hold);

/* Brings them into that order. */
void holds_sort(struct holds *holds);

void holds_done(struct holds *holds);

/* Adds the fields of a hold to an object. */
void hold_json(struct json *j, const struct hold *hold, struct baton_store_time now);

/* Adds what has just a pid, or null if it is not known. */
void pid_json(struct json *j, int32_t pid);

#define OWNER_SHOWN (TEXT_SHOWN(BATON_NAME_MAX) + 32)

/* Writes "LABEL (pid N)", or "somebody who has left" if it is not known. Returns `shown`. */
const char *owner_show(struct baton_str owner, int32_t pid, char shown[OWNER_SHOWN]);

#endif
