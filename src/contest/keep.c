/* A file that processes change together under its lock. */
#include "contest/keep.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <baton/clock.h>

#include "base/cleanup.h"
#include "base/fail.h"
#include "base/file.h"

#define PATH_BYTES_MAX 4095

/* How often somebody else may remove or make the file between two of our steps. */
#define ATTEMPTS 100

/* How long to sleep between two tries for the lock, which is held for microseconds. */
#define PAUSE_FIRST_NS 10000
#define PAUSE_MAX_NS 500000

enum baton_err keep_refuse(const char *path, const char *why)
{
	return fail(BATON_INVALID, "'%.200s' %s; it was left as it is", path, why);
}

/* Splits the path into the folder and the name in it. */
static enum baton_err path_split(const struct keep_spec *spec, char folder[PATH_BYTES_MAX + 1],
                                 char name[NAME_MAX + 1])
{
	const char *slash = strrchr(spec->path, '/');
	const char *last = slash ? slash + 1 : spec->path;
	size_t len = strnlen(spec->path, PATH_BYTES_MAX + 1);
	size_t last_len = strlen(last);
	if (len > PATH_BYTES_MAX || last_len == 0 || last_len > NAME_MAX)
		return fail(BATON_INVALID,
		            "'%.80s' is no path for a %s: the path of a file is needed, of at most "
		            "%d bytes, and %d in its name",
		            spec->path, spec->what, PATH_BYTES_MAX, NAME_MAX);
	size_t folder_len = (size_t)(last - spec->path);
	memcpy(folder, spec->path, folder_len);
	folder[folder_len] = '\0';
	if (folder_len == 0)
		memcpy(folder, ".", 2);
	memcpy(name, last, last_len + 1);
	return BATON_OK;
}

/* Root may use what belongs to a user; a user what is his own or root's, or what his group shares.
 */
static enum baton_err stat_check(const struct keep_spec *spec, const struct stat *st)
{
	mode_t mode = st->st_mode & 07777;
	bool shared = spec->group && mode == 0660;
	if (!S_ISREG(st->st_mode))
		return keep_refuse(spec->path, "is no regular file");
	if (mode & S_IWOTH)
		return keep_refuse(spec->path, "is writable by everybody");
	if (st->st_uid != geteuid() && st->st_uid != 0 && geteuid() != 0 && !shared)
		return keep_refuse(spec->path, "belongs to another user");
	return BATON_OK;
}

static bool is_no_room(int err)
{
	return err == ENOSPC || err == EDQUOT || err == EFBIG;
}

/* Makes the file complete and without a name, and then gives it its name if nobody was faster; the
 * result is to be opened again. A maker that dies on the way leaves nothing behind. */
static enum baton_err file_make(const struct keep_spec *spec, int folder, const char *name,
                                bool *ret_made)
{
	AUTO(fd_closep)
	int fd = file_new(folder, spec->mode);
	if (fd < 0 && is_no_room(errno))
		return fail(BATON_FULL, "there is no room for a %s at '%.200s'", spec->what,
		            spec->path);
	if (fd < 0)
		return fail_errno(errno, "a %s cannot be made at '%.200s'", spec->what, spec->path);
	enum baton_err e = spec->fill(fd, spec->arg);
	if (e != BATON_OK)
		return e;
	if (fsync(fd) != 0)
		return fail_errno(errno, "a %s cannot be brought to the disk at '%.200s'",
		                  spec->what, spec->path);
	if (file_name(fd, folder, name) == 0) {
		*ret_made = true;
		return BATON_OK;
	}
	if (errno == EEXIST)
		return BATON_OK;
	if (is_no_room(errno))
		return fail(BATON_FULL, "there is no room for the name '%.200s'", spec->path);
	return fail_errno(errno, "a %s cannot be given the name '%.200s'", spec->what, spec->path);
}

/* What an open file is like. */
static enum baton_err file_look(const struct keep_spec *spec, int fd, struct keep *k)
{
	struct stat st;
	if (fstat(fd, &st) != 0)
		return fail_errno(errno, "'%.200s' cannot be looked at", spec->path);
	k->dev = st.st_dev;
	k->ino = st.st_ino;
	k->size = st.st_size;
	return stat_check(spec, &st);
}

/* Opens what is there. BATON_NOT_HELD: there is nothing. */
static enum baton_err file_open(const struct keep_spec *spec, struct keep *k)
{
	int fd = openat(k->folder, k->name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return BATON_NOT_HELD;
	if (fd < 0 && (errno == ELOOP || errno == EISDIR || errno == ENXIO))
		return keep_refuse(spec->path, "is no regular file");
	if (fd < 0)
		return fail_errno(errno, "'%.200s' cannot be opened", spec->path);
	k->fd = fd;
	return file_look(spec, fd, k);
}

/* Opens what is there, and makes it if need be, with the folder open already. */
static enum baton_err open_or_make(const struct keep_spec *spec, struct keep *k)
{
	for (int i = 0; i < ATTEMPTS; i++) {
		enum baton_err e = file_open(spec, k);
		if (e != BATON_NOT_HELD)
			return e;
		if (!spec->make)
			return BATON_OK;
		e = file_make(spec, k->folder, k->name, &k->made);
		if (e != BATON_OK)
			return e;
	}
	return fail(BATON_SYSTEM, "'%.200s' was removed %d times while it was being opened",
	            spec->path, ATTEMPTS);
}

enum baton_err keep_open(const struct keep_spec *spec, struct keep *ret)
{
	char folder[PATH_BYTES_MAX + 1];
	struct keep k = KEEP_NONE;
	enum baton_err e = path_split(spec, folder, k.name);
	if (e != BATON_OK)
		return e;
	k.path = spec->path;
	k.folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	e = folder_check(folder, k.folder);
	if (e == BATON_OK)
		e = open_or_make(spec, &k);
	/* Not only if it is new: whoever made it may have died before he could do this. */
	if (e == BATON_OK && spec->make && fsync(k.folder) != 0)
		e = fail_errno(errno, "the name '%.200s' cannot be brought to the disk",
		               spec->path);
	if (e != BATON_OK) {
		keep_close(&k);
		return e;
	}
	*ret = k;
	return BATON_OK;
}

void keep_close(struct keep *k)
{
	fd_closep(&k->fd);
	fd_closep(&k->folder);
	*k = KEEP_NONE;
}

enum baton_err keep_lock(const struct keep *k, struct baton_duration *patience)
{
	const struct baton_clock *clock = baton_clock_awake();
	struct baton_mono now = clock->now(clock);
	struct baton_mono until = baton_mono_add(now, *patience);
	long pause_ns = PAUSE_FIRST_NS;
	for (;;) {
		if (flock(k->fd, LOCK_EX | LOCK_NB) == 0) {
			struct baton_duration left = baton_mono_sub(until, now);
			*patience = left.ns > 0 ? left : (struct baton_duration){0};
			return BATON_OK;
		}
		if (errno != EWOULDBLOCK && errno != EINTR)
			return fail_errno(errno, "'%.200s' cannot be locked", k->path);
		/* As it was before the try, so that one is made after all the time has passed. */
		if (!baton_mono_live(until, now)) {
			*patience = (struct baton_duration){0};
			return fail(BATON_BUSY,
			            "'%.200s' has been locked for %lld ms by a process that does "
			            "not go on",
			            k->path, (long long)(KEEP_PATIENCE.ns / 1000000));
		}
		struct timespec t = {.tv_nsec = pause_ns};
		nanosleep(&t, NULL);
		pause_ns = pause_ns * 2 < PAUSE_MAX_NS ? pause_ns * 2 : PAUSE_MAX_NS;
		now = clock->now(clock);
	}
}

void keep_unlock(const struct keep *k)
{
	flock(k->fd, LOCK_UN);
}

bool keep_is_current(const struct keep *k)
{
	struct stat st;
	return fstatat(k->folder, k->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_dev == k->dev &&
	       st.st_ino == k->ino;
}

enum baton_err keep_read(const struct keep *k, void *bytes, size_t len, off_t at)
{
	ssize_t n = pread(k->fd, bytes, len, at);
	if (n < 0)
		return fail_errno(errno, "'%.200s' cannot be read", k->path);
	if ((size_t)n < len)
		return keep_refuse(k->path, "is damaged: it is too short");
	return BATON_OK;
}

enum baton_err keep_write(const struct keep *k, const void *bytes, size_t len, off_t at)
{
	ssize_t n = pwrite(k->fd, bytes, len, at);
	if (n < 0 && is_no_room(errno))
		return fail(BATON_FULL, "there is no room to write to '%.200s'", k->path);
	if (n < 0)
		return fail_errno(errno, "'%.200s' cannot be written", k->path);
	if ((size_t)n < len)
		return fail(BATON_FULL, "there is no room to write all of '%.200s'", k->path);
	return BATON_OK;
}

enum baton_err keep_sync(const struct keep *k)
{
	if (fdatasync(k->fd) != 0)
		return fail_errno(errno, "'%.200s' cannot be brought to the disk", k->path);
	return BATON_OK;
}
