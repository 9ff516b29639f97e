/* What a fleet is like: its geometry, how full it is, and who is in it. */
#ifndef CLI_CENSUS_H
#define CLI_CENSUS_H

#include <baton.h>

#include "wall.h"

struct census {
	const char *path; /* borrowed */
	struct wall now;
	struct baton_fleet_usage usage;
	struct baton_member *members; /* by label, then by pid */
	size_t count;
	size_t room;
};

/* Looks at the fleet. False: there is not enough memory; *ret is untouched. Freed by
 * census_done(). */
bool census_take(struct baton_watch *watch, struct census *ret);

void census_done(struct census *census);

struct out;
void census_print(const struct census *census, struct out *out);
void census_json(const struct census *census, struct out *out);

#endif
