/* A locked file that the processes of a command keep open. */
#include "guardian/latch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fail.h"
#include "base/hash.h"
#include "guardian/keepers.h"

/* How often somebody else may remove the file between two of our steps. */
#define ATTEMPTS 100

/* Above the descriptors that scripts use for themselves. */
#define DESCRIPTOR_MIN 100

#define SUBJECT_BYTES (1 + BATON_SPACE_MAX + BATON_LABEL_MAX)

/* Two subjects that share a latch only wait for each other's processes, so a hash that anybody can
 * compute will do. */
static void digits_of(const struct baton_subject *subject, char digits[33])
{
	static const struct baton_id seeds[2] = {{{1}}, {{2}}};
	char bytes[SUBJECT_BYTES];
	size_t space = subject->space.len <= BATON_SPACE_MAX ? subject->space.len : BATON_SPACE_MAX;
	size_t label = subject->label.len <= BATON_LABEL_MAX ? subject->label.len : BATON_LABEL_MAX;
	bytes[0] = (char)space;
	memcpy(bytes + 1, subject->space.ptr, space);
	memcpy(bytes + 1 + space, subject->label.ptr, label);
	snprintf(digits, 33, "%016" PRIx64 "%016" PRIx64,
	         hash_bytes(&seeds[0], bytes, 1 + space + label),
	         hash_bytes(&seeds[1], bytes, 1 + space + label));
}

/* Gives a new folder, or one that its maker did not finish, the mode and the group of the file. */
static enum baton_err folder_check(const char *folder, int fd, const struct stat *file)
{
	struct stat st;
	if (fstat(fd, &st) != 0)
		return fail_errno(errno, "the folder '%.200s' cannot be looked at", folder);
	/* Beside a file that a group shares, whoever of it was the first has made the folder. */
	bool shared = (file->st_mode & 060) == 060 && (st.st_mode & 0777) == 0770 &&
	              st.st_gid == file->st_gid;
	if (st.st_uid != geteuid() && st.st_uid != 0 && st.st_uid != file->st_uid && !shared)
		return fail(BATON_INVALID,
		            "the folder '%.200s' belongs to uid %u; it must belong to uid %u, "
		            "to the owner of the file beside it or to root",
		            folder, (unsigned)st.st_uid, (unsigned)geteuid());
	mode_t mode = (file->st_mode & 060) == 060 ? 0770 : 0700;
	bool own = st.st_uid == geteuid() || geteuid() == 0;
	bool others = st.st_uid != file->st_uid && geteuid() == 0;
	bool differs = (st.st_mode & 0777) != mode || (mode == 0770 && st.st_gid != file->st_gid);
	if (!own || !(others || differs))
		return BATON_OK;
	if (((mode == 0770 || others) &&
	     fchown(fd, geteuid() == 0 ? file->st_uid : (uid_t)-1, file->st_gid) != 0) ||
	    fchmod(fd, (st.st_mode & 07000) | mode) != 0)
		return fail_errno(errno,
		                  "the folder '%.200s' cannot be shared as the file beside it is",
		                  folder);
	return BATON_OK;
}

enum baton_err latch_name(struct latch *l, const char *beside, const struct baton_subject *subject)
{
	char folder[LATCH_PATH_MAX + 1], digits[33];
	struct stat st;
	int length = snprintf(folder, sizeof folder, "%s.locks", beside);
	if (length < 0 || (size_t)length + 1 + sizeof digits > sizeof l->path)
		return fail(BATON_INVALID, "'%.80s...' is too long for a file with locks beside it",
		            beside);
	if (stat(beside, &st) != 0)
		return fail_errno(errno, "'%.200s' cannot be looked at", beside);
	if (mkdir(folder, 0700) != 0 && errno != EEXIST)
		return fail_errno(errno, "the folder '%.200s' cannot be made", folder);
	AUTO(fd_closep) int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return fail_errno(errno, "the folder '%.200s' cannot be opened", folder);
	enum baton_err e = folder_check(folder, fd, &st);
	if (e != BATON_OK)
		return e;
	digits_of(subject, digits);
	memcpy(l->path, folder, (size_t)length);
	l->path[length] = '/';
	memcpy(l->path + length + 1, digits, sizeof digits);
	return BATON_OK;
}

/* Opens the file, which is made with the owner, the group and the mode that its folder has. */
static int file_open(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	struct stat st, folder;
	char above[LATCH_PATH_MAX + 1];
	memcpy(above, path, strlen(path) + 1);
	*strrchr(above, '/') = '\0';
	if (fd < 0 || fstat(fd, &st) != 0 || stat(above, &folder) != 0)
		return fd;
	bool others = geteuid() == 0 && st.st_uid != folder.st_uid;
	if (st.st_uid != geteuid() || !(others || ((st.st_mode ^ folder.st_mode) & 0060)))
		return fd;
	/* What goes wrong here goes wrong for others, when they open it, and they say so. */
	(void)!fchown(fd, geteuid() == 0 ? folder.st_uid : (uid_t)-1, folder.st_gid);
	(void)!fchmod(fd, folder.st_mode & 0660);
	return fd;
}

/* Whether the path still leads to the open file: whoever had it before may have removed it. */
static bool leads_to(const char *path, int fd)
{
	struct stat here, there;
	return fstat(fd, &here) == 0 && lstat(path, &there) == 0 && here.st_dev == there.st_dev &&
	       here.st_ino == there.st_ino;
}

enum baton_err latch_take(struct latch *l)
{
	for (int i = 0; i < ATTEMPTS; i++) {
		AUTO(fd_closep) int fd = file_open(l->path);
		if (fd < 0)
			return fail_errno(errno, "'%.200s' cannot be opened", l->path);
		if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
			if (errno == EWOULDBLOCK)
				return BATON_YIELD;
			return fail_errno(errno, "'%.200s' cannot be locked", l->path);
		}
		if (!leads_to(l->path, fd))
			continue;
		int high = fcntl(fd, F_DUPFD_CLOEXEC, DESCRIPTOR_MIN);
		l->fd = high >= 0 ? high : fcntl(fd, F_DUPFD_CLOEXEC, 3);
		if (l->fd < 0)
			return fail_errno(errno, "no descriptor for '%.200s'", l->path);
		return BATON_OK;
	}
	return fail(BATON_SYSTEM, "'%.200s' was removed %d times while it was being locked",
	            l->path, ATTEMPTS);
}

void latch_drop(struct latch *l)
{
	if (l->fd < 0)
		return;
	/* Whether somebody has a copy of the lock shows in whether it can be had anew. */
	AUTO(fd_closep) int fd = open(l->path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	close(l->fd);
	l->fd = -1;
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && leads_to(l->path, fd))
		unlink(l->path);
}

size_t latch_keepers(const struct latch *l, int32_t *pids, size_t max)
{
	struct stat file;
	return stat(l->path, &file) == 0 ? keepers_find(&file, pids, max) : 0;
}
