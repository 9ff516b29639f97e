/* Locks of files: flock(2), and fcntl(2)'s that belong to an open file. Both are given back by the
 * kernel when their process ends. */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "claims/arena.h"
#include "claims/locks.h"

static void *file_make(void)
{
	char *path = arena_new(PATH_MAX);
	arena_path(path);
	return path;
}

static void file_unmake(void *made)
{
	free(made);
}

static void *file_attach(void *made)
{
	int *fd = arena_new(sizeof *fd);
	*fd = open(made, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (*fd < 0)
		err(1, "%s", (const char *)made);
	return fd;
}

static void file_detach(void *handle)
{
	int *fd = handle;
	close(*fd);
	free(fd);
}

static void flock_take(void *handle)
{
	while (flock(*(int *)handle, LOCK_EX) != 0)
		if (errno != EINTR)
			err(1, "flock");
}

static void flock_give(void *handle)
{
	if (flock(*(int *)handle, LOCK_UN) != 0)
		err(1, "flock");
}

static uint64_t flock_pairs(void *handle, uint64_t count)
{
	int fd = *(int *)handle;
	uint64_t done = 0;
	for (uint64_t i = 0; i < count; i++)
		done += flock(fd, LOCK_EX | LOCK_NB) == 0 && flock(fd, LOCK_UN) == 0;
	return done;
}

static int ofd_call(int fd, int command, short type)
{
	struct flock whole = {.l_type = type, .l_whence = SEEK_SET};
	return fcntl(fd, command, &whole);
}

static void ofd_take(void *handle)
{
	while (ofd_call(*(int *)handle, F_OFD_SETLKW, F_WRLCK) != 0)
		if (errno != EINTR)
			err(1, "fcntl");
}

static void ofd_give(void *handle)
{
	if (ofd_call(*(int *)handle, F_OFD_SETLK, F_UNLCK) != 0)
		err(1, "fcntl");
}

static uint64_t ofd_pairs(void *handle, uint64_t count)
{
	int fd = *(int *)handle;
	uint64_t done = 0;
	for (uint64_t i = 0; i < count; i++)
		done += ofd_call(fd, F_OFD_SETLK, F_WRLCK) == 0 &&
		        ofd_call(fd, F_OFD_SETLK, F_UNLCK) == 0;
	return done;
}

const struct lock_kind lock_flock = {
	.make = file_make,
	.unmake = file_unmake,
	.attach = file_attach,
	.detach = file_detach,
	.take = flock_take,
	.give = flock_give,
	.pairs = flock_pairs,
};

const struct lock_kind lock_ofd = {
	.make = file_make,
	.unmake = file_unmake,
	.attach = file_attach,
	.detach = file_detach,
	.take = ofd_take,
	.give = ofd_give,
	.pairs = ofd_pairs,
};
