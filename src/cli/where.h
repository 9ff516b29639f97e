/* Which fleet a command is about, and what to say when it cannot be had. */
#ifndef CLI_WHERE_H
#define CLI_WHERE_H

#include <stdbool.h>

#include <baton.h>

#include "options.h"

/* The options of every command that is about a fleet. */
#define WHERE_FLEET OPTION_LONG
#define WHERE_OPTIONS                                                                         \
	{"fleet", required_argument, NULL, WHERE_FLEET}, {"verbose", no_argument, NULL, 'v'}, \
	{                                                                                     \
		"help", no_argument, NULL, 'h'                                                \
	}
#define WHERE_NEXT (WHERE_FLEET + 1) /* the first value for an option of the command's own */

struct where {
	const char *given; /* --fleet; NULL: that of baton_fleet_default() */
	bool verbose;
	char path[BATON_FLEET_PATH_MAX + 1];
};

/* Takes an option if it is one of WHERE_OPTIONS other than help. */
bool where_option(struct where *w, int option, const char *value);

/* Finds the path, and says it if that is wanted. Returns EX_OK, or else another status after one
 * line on standard error. */
int where_find(struct where *w);

/* Says on standard error why something with the fleet failed, and returns the status for it. */
int where_fail(const struct where *w, enum baton_err e);

/* Says that there is no such fleet, and returns the status for that. */
int where_absent(const struct where *w);

/* Opens a watch. EX_OK: *ret_watch is the caller's, ended by baton_watch_close(); NULL: there is no
 * such fleet, of which nothing has been said. Otherwise as where_fail(). */
int where_watch(const struct where *w, struct baton_watch **ret_watch);

#endif
