/* Which fleet a command is about, and what to say when it cannot be had. */
#include <string.h>
#include <sysexits.h>

#include "denied.h"
#include "out.h"
#include "status.h"
#include "where.h"

bool where_option(struct where *w, int option, const char *value)
{
	if (option == WHERE_FLEET)
		w->given = value;
	else if (option == 'v')
		w->verbose = true;
	else
		return false;
	return true;
}

/* Whether `path` is one that a fleet can have; complains if not. */
static bool path_check(const char *path)
{
	char shown[SHOWN_MAX];
	size_t len = strlen(path);
	show(path, shown);
	if (path[0] != '/' || path[len - 1] == '/')
		complain("'%s' is no path of a fleet; it must be the absolute path of a file",
		         shown);
	else if (len > BATON_FLEET_PATH_MAX)
		complain("the path of the fleet has %zu bytes; %d are allowed", len,
		         BATON_FLEET_PATH_MAX);
	else
		return true;
	return false;
}

int where_find(struct where *w)
{
	if (!w->given) {
		enum baton_err e = baton_fleet_default(w->path);
		if (e == BATON_INVALID) {
			complain("%s", baton_err_detail());
			return EX_USAGE;
		}
		if (e != BATON_OK)
			return where_fail(w, e);
		w->given = w->path;
	}
	if (!path_check(w->given))
		return EX_USAGE;
	memmove(w->path, w->given, strlen(w->given) + 1);
	if (w->verbose)
		complain("the fleet is '%s'", w->path);
	return EX_OK;
}

int where_fail(const struct where *w, enum baton_err e)
{
	const char *detail = baton_err_detail();
	complain("%s", detail[0] != '\0' ? detail : baton_strerror(e));
	return e == BATON_SYSTEM && denied(w->path) ? EX_NOPERM : status_of(e);
}

int where_absent(const struct where *w)
{
	complain("there is no fleet at '%s'; 'baton fleet --create' makes one", w->path);
	return EX_UNAVAILABLE;
}

int where_watch(const struct where *w, struct baton_watch **ret_watch)
{
	enum baton_err e = baton_watch_open(w->path, ret_watch);
	if (e == BATON_NOT_HELD) {
		*ret_watch = NULL;
		return EX_OK;
	}
	return e == BATON_OK ? EX_OK : where_fail(w, e);
}
