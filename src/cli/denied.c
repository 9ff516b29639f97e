/* Whether it is permission that a user lacks. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "denied.h"

static bool denies(const char *path, int mode)
{
	return faccessat(AT_FDCWD, path, mode, AT_EACCESS) != 0 &&
	       (errno == EACCES || errno == EPERM || errno == EROFS);
}

bool denied(const char *path)
{
	char folder[PATH_MAX] = ".";
	const char *slash = strrchr(path, '/');
	if (slash && (size_t)(slash - path) + 2 <= sizeof folder) {
		memcpy(folder, path, (size_t)(slash - path) + 1);
		folder[slash - path + 1] = '\0';
	}
	if (faccessat(AT_FDCWD, path, F_OK, AT_EACCESS) == 0)
		return denies(path, R_OK | W_OK) || denies(folder, R_OK | X_OK);
	return denies(path, F_OK) || denies(folder, R_OK | W_OK | X_OK);
}
