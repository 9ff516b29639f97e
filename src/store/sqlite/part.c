/* The file in which a copy is made, until it is complete. */
#include "store/sqlite/part.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"

#define MARK ".baton-"
#define RANDOM "XXXXXX"
#define TRIES 100
#define LOCK_AT (INT64_C(1) << 62) /* where SQLite locks nothing */

/* False: another file description has it, in whatever process. */
static bool lock(int fd)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = LOCK_AT, .l_len = 1};
	return fcntl(fd, F_OFD_SETLK, &l) == 0;
}

static bool is_mark(const char *rest)
{
	return strncmp(rest, MARK, strlen(MARK)) == 0 &&
	       strlen(rest) == strlen(MARK) + strlen(RANDOM);
}

/* With what SQLite has beside it. */
static void leave_nothing(int folder, const char *name)
{
	static const char *const suffixes[] = {"-journal", "-wal", "-shm", ""};
	for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
		char each[NAME_MAX + 16];
		snprintf(each, sizeof each, "%s%s", name, suffixes[i]);
		unlinkat(folder, each, 0);
	}
}

/* Removes it, unless somebody works on it. */
static void sweep_one(int folder, const char *name)
{
	struct stat st;
	int fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && lock(fd))
		leave_nothing(folder, name);
	close(fd);
}

/* What cannot be removed stays: that is no reason to make no copy. */
static void sweep(const char *path)
{
	char folder[BATON_STORE_PATH_MAX + 1];
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	size_t len = strlen(base);
	snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash + 1 - path) : 1,
	         slash ? path : ".");
	DIR *dir = opendir(folder);
	if (!dir)
		return;
	/* cppcheck-suppress readdirCalled */
	for (struct dirent *d; (d = readdir(dir));) {
		if (strncmp(d->d_name, base, len) == 0 && is_mark(d->d_name + len))
			sweep_one(dirfd(dir), d->d_name);
	}
	closedir(dir);
}

/* Another one's sweep may have come between its making and its lock. */
static bool is_mine(int fd)
{
	struct stat st;
	bool locked = lock(fd) || (errno != EAGAIN && errno != EACCES);
	return locked && fstat(fd, &st) == 0 && st.st_nlink > 0;
}

enum baton_err part_open(struct part *p, const char *path)
{
	sweep(path);
	for (int i = 0; i < TRIES; i++) {
		snprintf(p->path, sizeof p->path, "%s" MARK RANDOM, path);
		p->fd = mkostemp(p->path, O_CLOEXEC);
		if (p->fd < 0)
			return fail(BATON_STORAGE, "cannot make %s: %s", path, strerror(errno));
		if (is_mine(p->fd))
			return BATON_OK;
		close(p->fd);
	}
	return fail(BATON_STORAGE, "cannot make %s: others remove what is begun", path);
}

void part_close(struct part *p)
{
	unlink(p->path);
	close(p->fd);
}
