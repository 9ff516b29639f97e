/* Where a broker's sockets are. */
#include "handoff/site.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "base/fail.h"

#define BACKLOG 4096

static_assert(SITE_PATH_MAX + 1 == sizeof(((struct sockaddr_un *)0)->sun_path), "an address");

/* Whether the folder is there and this user's. */
static bool is_own(const char *folder)
{
	struct stat s;
	return lstat(folder, &s) == 0 && S_ISDIR(s.st_mode) && s.st_uid == geteuid();
}

static enum baton_err folder_set(struct site *site, const char *what, const char *folder,
                                 const char *below)
{
	if (folder[0] != '/')
		return fail(BATON_INVALID, "'%.80s' is no %s: an absolute path is needed", folder,
		            what);
	size_t len = strlen(folder), more = strlen(below);
	if (len + more > SITE_FOLDER_MAX)
		return fail(BATON_INVALID, "a %s of %zu bytes is too long: %d are allowed", what,
		            len + more, SITE_FOLDER_MAX);
	memcpy(site->folder, folder, len);
	memcpy(site->folder + len, below, more + 1);
	return BATON_OK;
}

enum baton_err site_find(const char *folder, struct site *ret)
{
	char own[64];
	ret->uid = geteuid();
	if (folder)
		return folder_set(ret, "folder of a broker", folder, "");
	const char *named = getenv("BATON_BROKER");
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	if (named && named[0] != '\0')
		return folder_set(ret, "folder of a broker (BATON_BROKER)", named, "");
	if (runtime && runtime[0] != '\0')
		return folder_set(ret, "runtime folder (XDG_RUNTIME_DIR)", runtime, "/baton");
	/* A cron job has no such variable, but has to find the same broker. */
	snprintf(own, sizeof own, "/run/user/%u", (unsigned)ret->uid);
	if (is_own(own))
		return folder_set(ret, "runtime folder", own, "/baton");
	snprintf(own, sizeof own, "/tmp/baton-%u", (unsigned)ret->uid);
	return folder_set(ret, "folder of a broker", own, "");
}

enum baton_err site_check(const struct site *site, int make)
{
	struct stat s;
	if (make && mkdir(site->folder, 0700) != 0 && errno != EEXIST)
		return fail_errno(errno, "the folder '%s' cannot be made", site->folder);
	if (lstat(site->folder, &s) != 0)
		return errno == ENOENT ? fail(BATON_NOT_FOUND,
		                              "no broker runs here, as there is no folder '%s'; "
		                              "'baton serve' is one",
		                              site->folder)
		                       : fail_errno(errno, "the folder '%s' cannot be looked at",
		                                    site->folder);
	if (!S_ISDIR(s.st_mode))
		return fail(BATON_INVALID, "'%s', where a broker should be, is no folder",
		            site->folder);
	if (s.st_uid != site->uid)
		return fail(BATON_INVALID, "the folder '%s' belongs to the user %u, not to %u",
		            site->folder, (unsigned)s.st_uid, (unsigned)site->uid);
	if ((s.st_mode & 0077) != 0)
		return fail(BATON_INVALID,
		            "the folder '%s' has mode %03o; others must be kept out "
		            "of it, as by mode 700",
		            site->folder, (unsigned)s.st_mode & 0777);
	return BATON_OK;
}

void site_path(const struct site *site, const char *name, char path[SITE_PATH_MAX + 1])
{
	size_t len = strlen(site->folder), more = strlen(name);
	CHECK(len + 1 + more <= SITE_PATH_MAX);
	memcpy(path, site->folder, len);
	path[len] = '/';
	memcpy(path + len + 1, name, more + 1);
}

enum baton_err site_lock(const struct site *site, int *ret_fd)
{
	char path[SITE_PATH_MAX + 1];
	site_path(site, SITE_LOCK, path);
	int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return fail_errno(errno, "'%s' cannot be opened", path);
	if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
		*ret_fd = fd;
		return BATON_OK;
	}
	int why = errno;
	close(fd);
	if (why == EWOULDBLOCK)
		return fail(BATON_BUSY, "another broker runs in '%s'", site->folder);
	return fail_errno(why, "'%s' cannot be locked", path);
}

static enum baton_err address_of(const char *path, struct sockaddr_un *ret)
{
	if (strlen(path) > SITE_PATH_MAX)
		return fail(BATON_INVALID,
		            "a path of %zu bytes is too long for a socket: %d are "
		            "allowed",
		            strlen(path), SITE_PATH_MAX);
	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(ret->sun_path, path, strlen(path));
	return BATON_OK;
}

/* Whether nobody listens at a socket that is there: the kernel says so, and nothing else counts. */
static bool is_deserted(const struct sockaddr_un *address)
{
	AUTO(fd_closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	return fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof *address) != 0 &&
	       errno == ECONNREFUSED;
}

/* Makes room for a socket of ours. */
static enum baton_err path_clear(const struct sockaddr_un *address)
{
	struct stat s;
	const char *path = address->sun_path;
	if (lstat(path, &s) != 0)
		return errno == ENOENT ? BATON_OK : fail_errno(errno, "'%s' cannot be seen", path);
	if (!S_ISSOCK(s.st_mode))
		return fail(BATON_INVALID, "'%s' is in the way, and is no socket", path);
	if (!is_deserted(address))
		return fail(BATON_BUSY, "somebody else listens at '%s'", path);
	if (unlink(path) != 0 && errno != ENOENT)
		return fail_errno(errno, "'%s', at which nobody listens, cannot be removed", path);
	return BATON_OK;
}

bool site_sweep(const char *path)
{
	struct sockaddr_un address;
	struct stat s;
	if (address_of(path, &address) != BATON_OK || lstat(path, &s) != 0 || !S_ISSOCK(s.st_mode))
		return true;
	if (!is_deserted(&address))
		return false;
	unlink(path);
	return true;
}

enum baton_err site_listen(const char *path, int type, int *ret_fd)
{
	struct sockaddr_un address;
	enum baton_err e = address_of(path, &address);
	if (e == BATON_OK)
		e = path_clear(&address);
	if (e != BATON_OK)
		return e;
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return fail_errno(errno, "no socket");
	/* The mode of the file comes from that of the socket, so it is never another one. */
	if (fchmod(fd, 0600) != 0 ||
	    bind(fd, (const struct sockaddr *)&address, sizeof address) != 0 ||
	    listen(fd, BACKLOG) != 0) {
		int why = errno;
		close(fd);
		return fail_errno(why, "cannot listen at '%s'", path);
	}
	*ret_fd = fd;
	return BATON_OK;
}

static bool socket_is(int fd, int option, int value)
{
	int is;
	socklen_t len = sizeof is;
	return getsockopt(fd, SOL_SOCKET, option, &is, &len) == 0 && is == value;
}

enum baton_err site_adopt(const char *path, int type, int fd)
{
	struct sockaddr_un address = {.sun_family = AF_UNSPEC};
	socklen_t len = sizeof address;
	if (!socket_is(fd, SO_TYPE, type) || !socket_is(fd, SO_ACCEPTCONN, 1))
		return fail(BATON_INVALID, "descriptor %d is no socket that listens, of type %s",
		            fd, type == SOCK_STREAM ? "stream" : "seqpacket");
	if (getsockname(fd, (struct sockaddr *)&address, &len) != 0)
		return fail_errno(errno, "the kernel does not say where a socket is");
	if (address.sun_family != AF_UNIX ||
	    strncmp(address.sun_path, path, sizeof address.sun_path) != 0)
		return fail(BATON_INVALID, "the socket of descriptor %d is not at '%s'", fd, path);
	if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 || fcntl(fd, F_SETFL, O_NONBLOCK) != 0)
		return fail_errno(errno, "cannot change a socket");
	return BATON_OK;
}

int site_accept(int listener)
{
	/* cppcheck-suppress nullPointer */
	return accept4(listener, NULL, NULL, SOCK_CLOEXEC);
}

enum baton_err site_peer(int fd, struct site_peer *ret)
{
	struct ucred who;
	socklen_t len = sizeof who;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) != 0)
		return fail_errno(errno, "the kernel does not say who is at a socket");
	*ret = (struct site_peer){who.pid, who.uid, who.gid};
	return BATON_OK;
}

static enum baton_err listener_check(int fd, const char *path, uint32_t self)
{
	struct site_peer peer;
	enum baton_err e = site_peer(fd, &peer);
	if (e == BATON_OK && peer.uid != self && peer.uid != 0)
		return fail(BATON_INVALID, "the user %u listens at '%s', not %u",
		            (unsigned)peer.uid, path, (unsigned)self);
	return e;
}

/* How long a connect() may take; 0: for ever. */
static bool patience_set(int fd, int ms)
{
	struct timeval t = {ms / 1000, ms % 1000 * 1000L};
	return setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t) == 0;
}

/* 0, or -1 and errno. */
static int join(int fd, const struct sockaddr_un *address)
{
	int result;
	do
		result = connect(fd, (const struct sockaddr *)address, sizeof *address);
	while (result != 0 && errno == EINTR);
	return result;
}

/* Waits until whoever listens has accepted others. */
static int join_queue(int fd, const struct sockaddr_un *address, int wait_ms)
{
	if (fcntl(fd, F_SETFL, 0) != 0 || !patience_set(fd, wait_ms > 0 ? wait_ms : 1))
		return -1;
	int result = join(fd, address);
	int why = errno;
	patience_set(fd, 0);
	errno = why;
	return result;
}

enum baton_err site_reach(const char *path, int type, uint32_t self, int wait_ms, int *ret_fd)
{
	struct sockaddr_un address;
	enum baton_err e = address_of(path, &address);
	if (e != BATON_OK)
		return e;
	AUTO(fd_closep) int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return fail_errno(errno, "no socket");
	int result = join(fd, &address);
	if (result != 0 && errno == EAGAIN)
		result = join_queue(fd, &address, wait_ms);
	if (result != 0 && (errno == ENOENT || errno == ECONNREFUSED))
		return fail(BATON_NOT_FOUND, "nobody listens at '%s'", path);
	if (result != 0 && errno == EAGAIN)
		return fail(BATON_TIMEOUT, "too many others wait at '%s'", path);
	if (result != 0)
		return fail_errno(errno, "cannot connect to '%s'", path);
	e = listener_check(fd, path, self);
	if (e != BATON_OK)
		return e;
	*ret_fd = fd_take(&fd);
	return BATON_OK;
}

enum baton_err site_settle(int fd)
{
	return fcntl(fd, F_SETFL, 0) == 0 ? BATON_OK : fail_errno(errno, "cannot change a socket");
}

enum baton_err site_connect(const char *path, int type, int wait_ms, int *ret_fd)
{
	AUTO(fd_closep) int fd = -1;
	enum baton_err e = site_reach(path, type, geteuid(), wait_ms, &fd);
	if (e == BATON_OK)
		e = site_settle(fd);
	if (e == BATON_OK)
		*ret_fd = fd_take(&fd);
	return e;
}
