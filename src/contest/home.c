/* Where a fleet's files are. */
#include "contest/home.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"

#define SYSTEM_FOLDER "/run/baton"
#define SYSTEM_PATH SYSTEM_FOLDER "/fleet"
#define SYSTEM_MARK_FOLDER "/var/lib/baton"

/* Not below the home folder or $XDG_RUNTIME_DIR: a cron job and a shell of one user have to find
 * the same fleet, whatever their environments say. */
#define USER_BASE "/dev/shm"
#define USER_MARK_BASE "/var/tmp"

static bool can_write(const char *folder)
{
	return faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) == 0;
}

/* The user's own folder below `base`. */
static void user_folder(const char *base, char folder[64])
{
	snprintf(folder, 64, "%s/baton-%u", base, (unsigned)geteuid());
}

/* A folder for this user alone. One that is there already is looked at by whoever opens a file in
 * it. */
static enum baton_err folder_make(const char *folder)
{
	if (mkdir(folder, 0700) == 0 || errno == EEXIST)
		return BATON_OK;
	return fail_errno(errno, "the folder '%s' cannot be made", folder);
}

static enum baton_err path_check(const char *what, const char *path)
{
	if (path[0] != '/')
		return fail(BATON_INVALID, "'%.80s' is no %s: an absolute path is needed", path,
		            what);
	if (strlen(path) > BATON_FLEET_PATH_MAX)
		return fail(BATON_INVALID, "a %s of %zu bytes is too long: %d are allowed", what,
		            strlen(path), BATON_FLEET_PATH_MAX);
	return BATON_OK;
}

static bool is_user_path(const char *path)
{
	char folder[64];
	char own[80];
	user_folder(USER_BASE, folder);
	snprintf(own, sizeof own, "%s/fleet", folder);
	return strcmp(path, own) == 0;
}

enum baton_err baton_fleet_default(char path[BATON_FLEET_PATH_MAX + 1])
{
	const char *named = getenv("BATON_FLEET");
	if (named != NULL && named[0] != '\0') {
		enum baton_err e = path_check("path of a fleet (BATON_FLEET)", named);
		if (e == BATON_OK)
			memcpy(path, named, strlen(named) + 1);
		return e;
	}
	if (can_write(SYSTEM_FOLDER)) {
		memcpy(path, SYSTEM_PATH, sizeof SYSTEM_PATH);
		return BATON_OK;
	}
	char folder[64];
	user_folder(USER_BASE, folder);
	enum baton_err e = folder_make(folder);
	if (e == BATON_OK)
		snprintf(path, BATON_FLEET_PATH_MAX + 1, "%s/fleet", folder);
	return e;
}

/* The mark of a default fleet is kept where a reboot leaves it alone, if that can be. */
static void mark_find(const char *path, char mark[BATON_FLEET_PATH_MAX + 16])
{
	char folder[64] = SYSTEM_MARK_FOLDER;
	bool is_system = strcmp(path, SYSTEM_PATH) == 0;
	bool is_user = is_user_path(path);
	if (is_user) {
		user_folder(USER_MARK_BASE, folder);
		is_user = folder_make(folder) == BATON_OK;
	}
	if ((is_system || is_user) && can_write(folder))
		snprintf(mark, BATON_FLEET_PATH_MAX + 16, "%s/fleet.mark", folder);
	else
		snprintf(mark, BATON_FLEET_PATH_MAX + 16, "%s.mark", path);
}

enum baton_err home_look(const char *path, struct home *ret)
{
	struct home home = {.mode = 0600};
	enum baton_err e =
		path == NULL ? baton_fleet_default(home.path) : path_check("path of a fleet", path);
	if (e != BATON_OK)
		return e;
	if (path != NULL)
		memcpy(home.path, path, strlen(path) + 1);
	if (strcmp(home.path, SYSTEM_PATH) == 0)
		home.mode = 0660;
	*ret = home;
	return BATON_OK;
}

enum baton_err home_find(const char *path, const char *mark, struct home *ret)
{
	struct home home;
	enum baton_err e = home_look(path, &home);
	if (e == BATON_OK && mark != NULL)
		e = path_check("path of a fleet's mark", mark);
	if (e != BATON_OK)
		return e;
	if (mark != NULL)
		memcpy(home.mark, mark, strlen(mark) + 1);
	else
		mark_find(home.path, home.mark);
	*ret = home;
	return BATON_OK;
}
