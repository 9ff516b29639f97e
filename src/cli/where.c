/* Which fleet a command is about, and what to say when it cannot be had. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

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

static bool denies(const char *path, int mode)
{
	return faccessat(AT_FDCWD, path, mode, AT_EACCESS) != 0 &&
	       (errno == EACCES || errno == EPERM || errno == EROFS);
}

/* Whether it is permission that this user lacks for the fleet's file or its folder. */
static bool is_denied(const struct where *w)
{
	char folder[BATON_FLEET_PATH_MAX + 2];
	size_t len = strlen(w->path);
	memcpy(folder, w->path, len + 1);
	while (len > 1 && folder[len - 1] != '/')
		len--;
	folder[len] = '\0';
	if (faccessat(AT_FDCWD, w->path, F_OK, AT_EACCESS) == 0)
		return denies(w->path, R_OK | W_OK) || denies(folder, R_OK | X_OK);
	return denies(w->path, F_OK) || denies(folder, R_OK | W_OK | X_OK);
}

int where_fail(const struct where *w, enum baton_err e)
{
	const char *detail = baton_err_detail();
	complain("%s", detail[0] != '\0' ? detail : baton_strerror(e));
	return e == BATON_SYSTEM && is_denied(w) ? EX_NOPERM : status_of(e);
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
