/* A file that several processes map. */
#include "shm/segment.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/process.h"

/* File systems that <linux/magic.h> does not know on every machine. */
#ifndef CIFS_SUPER_MAGIC
#define CIFS_SUPER_MAGIC 0xff534d42
#endif
#ifndef SMB2_SUPER_MAGIC
#define SMB2_SUPER_MAGIC 0xfe534d42
#endif

#define MAGIC "BATONSHM"
#define LAYOUT 1u
#define DATA_OFFSET 4096u

/* How often somebody else may remove or make the file between two of our steps. */
#define ATTEMPTS 100

static_assert(sizeof(struct segment_header) == 136, "part of the file format");
static_assert(offsetof(struct segment_header, params) == 48, "part of the file format");
static_assert(offsetof(struct segment_header, id) == 80, "part of the file format");

static enum baton_err spec_check(const struct segment_spec *spec)
{
	size_t len = strlen(spec->path);
	if (spec->path[0] != '/' || len > SEGMENT_PATH_MAX || spec->path[len - 1] == '/')
		return fail(BATON_INVALID,
		            "'%.80s' is no path for a shared segment: an absolute path of a file, "
		            "of at most %d bytes, is needed",
		            spec->path, SEGMENT_PATH_MAX);
	if (spec->mode != 0600 && spec->mode != 0660)
		return fail(BATON_INVALID, "a shared segment has mode 600 or 660, not %03o",
		            (unsigned)spec->mode);
	return BATON_OK;
}

/* The folder of the path, which has at least one slash. */
static void folder_of(const char *path, char folder[SEGMENT_PATH_MAX + 1])
{
	size_t len = (size_t)(strrchr(path, '/') - path);
	memcpy(folder, path, len);
	folder[len] = '\0';
	if (len == 0)
		memcpy(folder, "/", 2);
}

static enum baton_err header_fill(struct segment_header *h, const struct segment_spec *spec,
                                  size_t data_size)
{
	*h = (struct segment_header){
		.layout = LAYOUT,
		.data_offset = DATA_OFFSET,
		.size = DATA_OFFSET + data_size,
		.kind_version = spec->kind_version,
		.param_count = spec->param_count,
	};
	memcpy(h->magic, MAGIC, sizeof h->magic);
	memcpy(h->kind, spec->kind, strnlen(spec->kind, sizeof h->kind - 1));
	memcpy(h->params, spec->params, spec->param_count * sizeof *h->params);
	if (!process_boot(&h->boot))
		return fail_errno(errno, "the kernel's boot id cannot be read from /proc");
	return baton_id_random(&h->id);
}

/* Gives the file all its room now, so that a full file system is an error here and no SIGBUS later.
 *  */
static enum baton_err file_size(int fd, const struct segment_spec *spec, uint64_t size)
{
	int err = posix_fallocate(fd, 0, (off_t)size);
	if (err == ENOSPC || err == EDQUOT || err == EFBIG)
		return fail(BATON_FULL,
		            "there is no room for a shared segment of %llu bytes at '%.200s'; make "
		            "room, or choose smaller limits",
		            (unsigned long long)size, spec->path);
	if (err != 0)
		return fail_errno(err, "a shared segment of %llu bytes cannot be made at '%.200s'",
		                  (unsigned long long)size, spec->path);
	return BATON_OK;
}

static enum baton_err file_fill(int fd, const struct segment_spec *spec,
                                const struct segment_header *header)
{
	char *base = mmap(NULL, header->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		return fail_errno(errno, "'%.200s' cannot be mapped", spec->path);
	enum baton_err e = spec->init(base + DATA_OFFSET, spec->params, spec->arg);
	memcpy(base, header, sizeof *header);
	munmap(base, header->size);
	return e;
}

/* Makes the file complete and without a name, and then gives it its name if nobody was faster.
 * A maker that dies on the way leaves nothing behind. */
static enum baton_err segment_make(const struct segment_spec *spec, int folder)
{
	struct segment_header header;
	size_t data_size = spec->size(spec->params);
	if (data_size == 0)
		return BATON_INVALID;
	enum baton_err e = header_fill(&header, spec, data_size);
	if (e != BATON_OK)
		return e;
	AUTO(fd_closep)
	int fd = file_new(folder, spec->mode);
	if (fd < 0)
		return fail_errno(errno, "a shared segment cannot be made at '%.200s'", spec->path);
	e = file_size(fd, spec, header.size);
	if (e == BATON_OK)
		e = file_fill(fd, spec, &header);
	if (e != BATON_OK)
		return e;
	if (file_name(fd, AT_FDCWD, spec->path) != 0 && errno != EEXIST)
		return fail_errno(errno, "a shared segment cannot be given the name '%.200s'",
		                  spec->path);
	return BATON_OK;
}

static enum baton_err foreign(const struct segment_spec *spec, const char *what)
{
	return fail(BATON_INVALID,
	            "'%.200s' %s; it was left as it is. Remove it if nothing uses it", spec->path,
	            what);
}

/* Root may use what belongs to a user; a user what is his own, or what his group shares. */
static enum baton_err stat_check(const struct segment_spec *spec, const struct stat *st)
{
	mode_t mode = st->st_mode & 07777;
	if (!S_ISREG(st->st_mode))
		return foreign(spec, "is no regular file");
	if (st->st_uid != geteuid() && st->st_uid != 0 && geteuid() != 0 && mode != 0660)
		return foreign(spec, "belongs to another user");
	if (mode != 0600 && mode != 0660)
		return fail(BATON_INVALID,
		            "'%.200s' has mode %03o instead of 600 or 660, so %s; it was left as "
		            "it is",
		            spec->path, (unsigned)mode,
		            (mode & 02) != 0 ? "anybody may have written to it"
		                             : "not all who share it have permission to use it");
	return BATON_OK;
}

/* Believes nothing that the file says before it fits what the file is. */
static enum baton_err header_check(const struct segment_spec *spec, const struct segment_header *h,
                                   uint64_t file_bytes)
{
	char kind[sizeof h->kind] = {0};
	memcpy(kind, spec->kind, strnlen(spec->kind, sizeof kind - 1));
	if (memcmp(h->magic, MAGIC, sizeof h->magic) != 0 ||
	    memcmp(h->kind, kind, sizeof kind) != 0)
		return foreign(spec, "is no shared segment of this kind");
	if (h->layout != LAYOUT || h->kind_version != spec->kind_version)
		return fail(BATON_INVALID,
		            "'%.200s' has version %u.%u, and this program speaks %u.%u; use the "
		            "same version of Baton for all processes that share it",
		            spec->path, h->layout, h->kind_version, LAYOUT, spec->kind_version);
	size_t data_size = 0;
	if (h->data_offset == DATA_OFFSET && h->param_count == spec->param_count)
		data_size = spec->size(h->params);
	if (data_size == 0 || h->size != DATA_OFFSET + data_size || h->size != file_bytes)
		return foreign(spec, "is damaged: its size does not fit what it says");
	return BATON_OK;
}

/* Whether the segment was made in an earlier boot, so that whoever used it is dead. *ret_stale is
 * false where this cannot be said from the header. */
static enum baton_err header_is_stale(const struct segment_header *h, bool *ret_stale)
{
	struct baton_id boot;
	if (!process_boot(&boot))
		return fail_errno(errno, "the kernel's boot id cannot be read from /proc");
	*ret_stale = memcmp(h->magic, MAGIC, sizeof h->magic) == 0 && h->layout == LAYOUT &&
	             !baton_id_equal(&boot, &h->boot);
	return BATON_OK;
}

/* Whether another machine, with a boot of its own, may use the file too. */
static bool is_shared_by_machines(int fd)
{
	static const long types[] = {
		NFS_SUPER_MAGIC, SMB_SUPER_MAGIC,  SMB2_SUPER_MAGIC, CIFS_SUPER_MAGIC,
		V9FS_MAGIC,      FUSE_SUPER_MAGIC, CEPH_SUPER_MAGIC,
	};
	struct statfs fs;
	if (fstatfs(fd, &fs) != 0)
		return true;
	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		if ((long)fs.f_type == types[i])
			return true;
	}
	return false;
}

/* Locks the file, and gives up after 10 ms: whoever has it may be stopped. Returns an errno. */
static int flock_soon(int fd)
{
	for (int i = 0; i < 20; i++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return errno;
		nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
	}
	return EWOULDBLOCK;
}

/* Removes the file of an earlier boot. Those who do so at once take turns at its lock, so that none
 * of them removes what another has put in its place. */
static enum baton_err stale_remove(const struct segment_spec *spec, int fd)
{
	struct stat here, there;
	if (is_shared_by_machines(fd))
		return foreign(spec, "is from another boot, maybe of another machine that uses it");
	int err = flock_soon(fd);
	if (err == EWOULDBLOCK)
		return fail(BATON_BUSY, "a process that replaces '%.200s' is in the way; try again",
		            spec->path);
	if (err != 0 || fstat(fd, &here) != 0)
		return fail_errno(err != 0 ? err : errno, "'%.200s' cannot be locked", spec->path);
	if (lstat(spec->path, &there) != 0 || there.st_dev != here.st_dev ||
	    there.st_ino != here.st_ino)
		return BATON_OK;
	if (unlink(spec->path) != 0 && errno != ENOENT)
		return fail_errno(errno,
		                  "'%.200s', which is from before the last boot, cannot be removed",
		                  spec->path);
	return BATON_OK;
}

/* Reads the header of a file whose owner and mode are as they should be. */
static enum baton_err header_read(const struct segment_spec *spec, int fd, const struct stat *st,
                                  struct segment_header *ret)
{
	enum baton_err e = stat_check(spec, st);
	if (e != BATON_OK)
		return e;
	ssize_t n = pread(fd, ret, sizeof *ret, 0);
	if (n < 0)
		return fail_errno(errno, "'%.200s' cannot be read", spec->path);
	if ((size_t)n < sizeof *ret)
		return foreign(spec, "is no shared segment: it is too short");
	return BATON_OK;
}

/* BATON_YIELD: it was one of an earlier boot, and is no more. */
static enum baton_err segment_map(const struct segment_spec *spec, int fd, struct segment *ret)
{
	struct stat st;
	struct segment_header header;
	bool stale = false;
	if (fstat(fd, &st) != 0)
		return fail_errno(errno, "'%.200s' cannot be looked at", spec->path);
	enum baton_err e = header_read(spec, fd, &st, &header);
	if (e == BATON_OK)
		e = header_is_stale(&header, &stale);
	if (e == BATON_OK && stale) {
		if (spec->read_only || spec->init == NULL)
			return BATON_NOT_HELD;
		e = stale_remove(spec, fd);
		return e == BATON_OK ? BATON_YIELD : e;
	}
	if (e == BATON_OK)
		e = header_check(spec, &header, (uint64_t)st.st_size);
	if (e != BATON_OK)
		return e;
	int prot = spec->read_only ? PROT_READ : PROT_READ | PROT_WRITE;
	char *base = mmap(NULL, header.size, prot, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		return fail_errno(errno, "'%.200s' cannot be mapped", spec->path);
	bool writable = !spec->read_only;
	if (spec->read_only && spec->writable > 0 && spec->writable <= header.size - DATA_OFFSET)
		writable =
			mprotect(base + DATA_OFFSET, spec->writable, PROT_READ | PROT_WRITE) == 0;
	*ret = (struct segment){
		.writable = writable,
		.base = base,
		.size = header.size,
		.header = (const struct segment_header *)(void *)base,
		.data = base + DATA_OFFSET,
		.dev = st.st_dev,
		.ino = st.st_ino,
	};
	memcpy(ret->params, header.params, sizeof ret->params);
	memcpy(ret->path, spec->path, strlen(spec->path));
	return BATON_OK;
}

static int file_open(const struct segment_spec *spec)
{
	int flags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	bool look_only = spec->read_only && spec->writable == 0;
	int fd = open(spec->path, flags | (look_only ? O_RDONLY : O_RDWR));
	if (fd < 0 && errno != ENOENT && spec->read_only && !look_only)
		fd = open(spec->path, flags | O_RDONLY);
	return fd;
}

enum baton_err segment_make_private(const struct segment_spec *spec, struct segment *ret)
{
	struct segment_header header;
	size_t data_size = spec->size(spec->params);
	if (data_size == 0)
		return BATON_INVALID;
	enum baton_err e = header_fill(&header, spec, data_size);
	if (e != BATON_OK)
		return e;
	char *base = mmap(NULL, header.size, PROT_READ | PROT_WRITE,
	                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		return fail_memory(header.size, "a segment");
	e = spec->init(base + DATA_OFFSET, spec->params, spec->arg);
	if (e != BATON_OK) {
		munmap(base, header.size);
		return e;
	}
	memcpy(base, &header, sizeof header);
	*ret = (struct segment){
		.writable = true,
		.base = base,
		.size = header.size,
		.header = (const struct segment_header *)(void *)base,
		.data = base + DATA_OFFSET,
	};
	memcpy(ret->params, header.params, sizeof ret->params);
	return BATON_OK;
}

enum baton_err segment_open(const struct segment_spec *spec, struct segment *ret)
{
	enum baton_err e = spec_check(spec);
	if (e != BATON_OK)
		return e;
	char folder[SEGMENT_PATH_MAX + 1];
	folder_of(spec->path, folder);
	AUTO(fd_closep) int folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool makes = !spec->read_only && spec->init != NULL;
	e = folder_check(folder, folder_fd);
	if (e != BATON_OK)
		return e;
	for (int i = 0; i < ATTEMPTS; i++) {
		AUTO(fd_closep) int fd = file_open(spec);
		if (fd >= 0) {
			e = segment_map(spec, fd, ret);
			if (e != BATON_YIELD)
				return e;
			continue;
		}
		if (errno == ENOENT && !makes)
			return BATON_NOT_HELD;
		if (errno != ENOENT)
			return fail_errno(errno, "'%.200s' cannot be opened", spec->path);
		e = segment_make(spec, folder_fd);
		if (e != BATON_OK)
			return e;
	}
	return fail(BATON_SYSTEM, "'%.200s' was removed %d times while it was being opened",
	            spec->path, ATTEMPTS);
}

void segment_close(struct segment *s)
{
	if (s->base)
		munmap(s->base, s->size);
	*s = (struct segment){.base = NULL};
}

bool segment_is_current(const struct segment *s)
{
	struct stat st;
	if (s->path[0] == '\0')
		return true;
	return stat(s->path, &st) == 0 && st.st_dev == s->dev && st.st_ino == s->ino;
}
