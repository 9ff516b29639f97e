/* What the kernel tells about processes. */
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/number.h"

/* More than any of the files below has before the part that is looked for. */
#define FILE_MAX 1024

/* The first bytes of a file. */
struct content {
	char bytes[FILE_MAX];
	size_t len;
};

static bool not_understood(void)
{
	errno = EBADMSG;
	return false;
}

static bool read_file(const char *path, struct content *ret)
{
	AUTO(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ret->len = 0;
	while (ret->len < sizeof ret->bytes) {
		ssize_t n = read(fd, ret->bytes + ret->len, sizeof ret->bytes - ret->len);
		if (n < 0)
			return false;
		if (n == 0)
			break;
		ret->len += (size_t)n;
	}
	return true;
}

static struct baton_str content_str(const struct content *c)
{
	return (struct baton_str){c->bytes, c->len};
}

/* Takes what stands before the first `end`, or all, off the front of *rest. */
static struct baton_str take_until(struct baton_str *rest, char end)
{
	const char *at = rest->len > 0 ? memchr(rest->ptr, end, rest->len) : NULL;
	struct baton_str taken = {rest->ptr, at != NULL ? (size_t)(at - rest->ptr) : rest->len};
	size_t used = taken.len + (at != NULL);
	*rest = (struct baton_str){rest->ptr + used, rest->len - used};
	return taken;
}

static struct baton_str take_word(struct baton_str *rest)
{
	struct baton_str word;
	do
		word = take_until(rest, ' ');
	while (word.len == 0 && rest->len > 0);
	return word;
}

static bool inode_of(const char *path, uint64_t *ret)
{
	struct stat st;
	if (stat(path, &st) != 0)
		return false;
	*ret = st.st_ino;
	return true;
}

bool process_boot(struct baton_id *ret)
{
	struct content c;
	if (!read_file("/proc/sys/kernel/random/boot_id", &c))
		return false;
	struct baton_str rest = content_str(&c);
	struct baton_str line = take_until(&rest, '\n');
	struct baton_id id;
	size_t len;
	if (sodium_hex2bin(id.bytes, sizeof id.bytes, line.ptr, line.len, "-", &len, NULL) != 0 ||
	    len != sizeof id.bytes)
		return not_understood();
	*ret = id;
	return true;
}

/* Of the thread, because /proc/self is its process's first one, which may have ended. */
bool process_pid_ns(uint64_t *ret)
{
	return inode_of("/proc/thread-self/ns/pid", ret);
}

bool process_parse_start(struct baton_str stat, uint64_t *ret)
{
	/* The second field is a name in parentheses, which may hold spaces and parentheses. */
	const char *name_end = stat.len > 0 ? memrchr(stat.ptr, ')', stat.len) : NULL;
	if (name_end == NULL)
		return not_understood();
	size_t used = (size_t)(name_end + 1 - stat.ptr);
	struct baton_str rest = {stat.ptr + used, stat.len - used};
	struct baton_str field = {NULL, 0};
	for (int i = 3; i <= 22; i++)
		field = take_word(&rest);
	return number_parse(field, UINT64_MAX, ret) || not_understood();
}

bool process_parse_unshifted(struct baton_str offsets)
{
	while (offsets.len > 0) {
		struct baton_str line = take_until(&offsets, '\n');
		if (!baton_str_equal(take_word(&line), BATON_STR("boottime")))
			continue;
		struct baton_str seconds = take_word(&line);
		struct baton_str nanoseconds = take_word(&line);
		return baton_str_equal(seconds, BATON_STR("0")) &&
		       baton_str_equal(nanoseconds, BATON_STR("0"));
	}
	return false;
}

bool process_parse_pid(struct baton_str fdinfo, int32_t *ret)
{
	while (fdinfo.len > 0) {
		struct baton_str line = take_until(&fdinfo, '\n');
		if (!baton_str_equal(take_until(&line, '\t'), BATON_STR("Pid:")))
			continue;
		uint64_t pid;
		if (!number_parse(line, INT32_MAX, &pid) || pid == 0)
			return not_understood();
		*ret = (int32_t)pid;
		return true;
	}
	return not_understood();
}

/* Whether the times since boot that this process reads are those of the host: the kernel shifts
 * them by the reader's time namespace. The offsets in /proc are those that its children will have,
 * so the two namespaces have to be the same. */
static bool times_are_unshifted(void)
{
	struct content c;
	if (!read_file("/proc/self/timens_offsets", &c))
		return errno == ENOENT; /* a kernel without time namespaces */
	uint64_t mine, childrens;
	return process_parse_unshifted(content_str(&c)) &&
	       inode_of("/proc/thread-self/ns/time", &mine) &&
	       inode_of("/proc/thread-self/ns/time_for_children", &childrens) && mine == childrens;
}

static bool start_in(const char *path, uint64_t *ret)
{
	struct content c;
	return read_file(path, &c) && process_parse_start(content_str(&c), ret);
}

bool process_start(uint64_t *ret)
{
	uint64_t start;
	if (!start_in("/proc/self/stat", &start))
		return false;
	*ret = times_are_unshifted() ? start : 0;
	return true;
}

/* The letter for what the thread does; 0: nobody can tell. */
static char state_of(int32_t tid)
{
	char path[64];
	struct content c;
	snprintf(path, sizeof path, "/proc/%d/stat", (int)tid);
	if (tid <= 0 || !read_file(path, &c))
		return 0;
	const char *name_end = memrchr(c.bytes, ')', c.len);
	if (name_end == NULL || name_end + 2 >= c.bytes + c.len)
		return 0;
	return name_end[2];
}

bool process_is_runnable(int32_t tid)
{
	return state_of(tid) == 'R';
}

bool process_is_stopped(int32_t pid)
{
	char state = state_of(pid);
	return state == 'T' || state == 't';
}

/* `4711 `, `fe:`: the number, and *at is behind what ends it. */
static bool take_number(const char **at, int base, char end, uint64_t *ret)
{
	char *rest;
	errno = 0;
	*ret = strtoull(*at, &rest, base);
	if (rest == *at || errno != 0 || *rest != end)
		return false;
	*at = rest + 1;
	return true;
}

/* `1: POSIX  ADVISORY  WRITE 4711 fe:00:1234 120 120`; a line of one that waits has an arrow, and
 * the last number may be `EOF`. */
bool process_parse_lock(const char *line, const struct process_lock *lock, int32_t *ret)
{
	static const char kind[] = ": POSIX  ADVISORY  WRITE ";
	uint64_t pid, high, low, inode, first, last;
	const char *at = strstr(line, kind);
	if (!at)
		return false;
	at += sizeof kind - 1;
	if (!take_number(&at, 10, ' ', &pid) || !take_number(&at, 16, ':', &high) ||
	    !take_number(&at, 16, ':', &low) || !take_number(&at, 10, ' ', &inode) ||
	    !take_number(&at, 10, ' ', &first))
		return false;
	if (!take_number(&at, 10, '\n', &last))
		last = UINT64_MAX;
	if (makedev((unsigned)high, (unsigned)low) != lock->device || inode != lock->inode ||
	    first > lock->at || last < lock->at || pid == 0 || pid > INT32_MAX)
		return false;
	*ret = (int32_t)pid;
	return true;
}

bool process_of_lock(const char *path, int64_t at, int32_t *ret)
{
	char line[256];
	struct stat st;
	bool found = false;
	if (stat(path, &st) != 0)
		return false;
	FILE *locks = fopen("/proc/locks", "re");
	if (!locks)
		return false;
	const struct process_lock lock = {st.st_dev, st.st_ino, (uint64_t)at};
	while (!found && fgets(line, sizeof line, locks))
		found = process_parse_lock(line, &lock, ret);
	fclose(locks);
	errno = found ? errno : ESRCH;
	return found;
}

bool process_open(int32_t pid, int *ret_pidfd)
{
	long fd = syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0)
		return false;
	*ret_pidfd = (int)fd;
	return true;
}

/* Not by its state in /proc: there a process whose first thread has ended looks like one that
 * has. */
bool process_has_ended(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};
	return poll(&p, 1, 0) == 1 && (p.revents & POLLIN) != 0;
}

bool process_shown(int pidfd, int32_t *ret)
{
	char path[64];
	struct content c;
	snprintf(path, sizeof path, "/proc/thread-self/fdinfo/%d", pidfd);
	return read_file(path, &c) && process_parse_pid(content_str(&c), ret);
}

bool process_start_of(int pidfd, uint64_t *ret)
{
	char path[64];
	int32_t pid;
	uint64_t start;
	if (!process_shown(pidfd, &pid))
		return false;
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	if (!start_in(path, &start))
		return false;
	if (start == 0 || !times_are_unshifted())
		return not_understood();
	*ret = start;
	return true;
}
