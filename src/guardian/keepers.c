/* The processes that have a file open. */
#include "guardian/keepers.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/process.h"
#include "guardian/numbered.h"

/* Whether the entry of /proc/PID/fd is one that can be written to: its link has the mode. */
static bool is_writable(int folder, const char *name)
{
	struct stat st;
	return fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && (st.st_mode & S_IWUSR);
}

/* Whether the process has the file open; with `written` only if it can write to it. */
static bool has_open(int32_t pid, const struct stat *file, bool written)
{
	char path[32];
	AUTO(numbered_close) struct numbered descriptors = {.dir = NULL};
	snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
	if (!numbered_open(&descriptors, AT_FDCWD, path))
		return false;
	for (int32_t fd; numbered_next(&descriptors, &fd);) {
		struct stat st;
		int folder = numbered_fd(&descriptors);
		snprintf(path, sizeof path, "%d", (int)fd);
		if (fstatat(folder, path, &st, 0) == 0 && st.st_dev == file->st_dev &&
		    st.st_ino == file->st_ino && (!written || is_writable(folder, path)))
			return true;
	}
	return false;
}

size_t keepers_find(const struct stat *file, int32_t *pids, size_t max)
{
	size_t count = 0;
	AUTO(numbered_close) struct numbered processes = {.dir = NULL};
	if (!numbered_open(&processes, AT_FDCWD, "/proc"))
		return 0;
	for (int32_t pid; count < max && numbered_next(&processes, &pid);) {
		if (pid != getpid() && has_open(pid, file, false))
			pids[count++] = pid;
	}
	return count;
}

static void kill_one(int32_t pid, const struct stat *file, int32_t spared)
{
	AUTO(fd_closep) int pidfd = -1;
	if (!process_open(pid, &pidfd) || (spared > 0 && getpgid(pid) == spared))
		return;
	if (has_open(pid, file, true))
		(void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
}

void keepers_kill(int fd, int32_t spared)
{
	struct stat file;
	AUTO(numbered_close) struct numbered processes = {.dir = NULL};
	if (fstat(fd, &file) != 0 || !numbered_open(&processes, AT_FDCWD, "/proc"))
		return;
	for (int32_t pid; numbered_next(&processes, &pid);) {
		if (pid != getpid() && has_open(pid, &file, true))
			kill_one(pid, &file, spared);
	}
}
