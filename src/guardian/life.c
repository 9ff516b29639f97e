/* The life file of a runner. */
#include "guardian/life.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/fail.h"
#include "guardian/wards.h"

/* How often those who only look may be in the way. */
#define ATTEMPTS 1000

enum baton_err life_take(struct latch *life, const char *path)
{
	size_t length = path ? strlen(path) : 0;
	if (length == 0 || path[0] != '/' || length > LATCH_PATH_MAX)
		return fail(BATON_INVALID,
		            "the path of a life file is absolute and has at most %d bytes, "
		            "not '%.80s' of %zu",
		            LATCH_PATH_MAX, length > 0 ? path : "", length);
	memcpy(life->path, path, length + 1);
	for (int i = 0; i < ATTEMPTS; i++) {
		enum baton_err e = latch_take(life);
		if (e != BATON_YIELD)
			return e;
		e = wards_lives(path);
		if (e != BATON_OK)
			return e;
		/* Somebody has looked at it between the two, and is about to be gone. */
		sched_yield();
	}
	return fail(BATON_BUSY, "'%.200s' was looked at by others %d times while it was locked",
	            path, ATTEMPTS);
}

enum baton_err wards_lives(const char *life)
{
	int fd = open(life, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return BATON_OK;
	if (fd < 0)
		return fail_errno(errno, "'%.200s' cannot be opened", life);
	/* Shared, so that those who look are not in each other's way. */
	int errnum = flock(fd, LOCK_SH | LOCK_NB) == 0 ? 0 : errno;
	close(fd);
	if (errnum == EWOULDBLOCK)
		return BATON_YIELD;
	if (errnum != 0)
		return fail_errno(errnum, "'%.200s' cannot be looked at", life);
	return BATON_OK;
}
