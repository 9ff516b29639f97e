/* Where a fleet's files are. */
#ifndef CONTEST_HOME_H
#define CONTEST_HOME_H

#include <sys/types.h>

#include <baton/err.h>
#include <baton/fleet.h>

#define HOME_MARK_MAX (BATON_FLEET_PATH_MAX + 15)

struct home {
	char path[BATON_FLEET_PATH_MAX + 1];
	char mark[HOME_MARK_MAX + 1];
	mode_t mode; /* of what is made there */
};

/* Where a fleet is and would be made. `path` NULL: the default. `mark` NULL: what belongs to the
 * path.
 *
 * BATON_INVALID: no absolute path, or too long. BATON_SYSTEM: a folder cannot be made. */
enum baton_err home_find(const char *path, const char *mark, struct home *ret);

/* Where a fleet is that is only looked at: the mark is left out. Errors as above. */
enum baton_err home_look(const char *path, struct home *ret);

#endif
