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

/* How a process has a file open. */
struct grip {
	bool any;
	bool reads;
	bool writes;
};

/* An entry of /proc/PID/fd is a link that has the mode of the descriptor. */
static void grip_add(struct grip *grip, int folder, const char *name)
{
	struct stat st;
	grip->any = true;
	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return;
	grip->reads = grip->reads || (st.st_mode & S_IRUSR);
	grip->writes = grip->writes || (st.st_mode & S_IWUSR);
}

static struct grip grip_of(int32_t pid, const struct stat *file)
{
	char path[32];
	struct grip grip = {.any = false};
	AUTO(numbered_close) struct numbered descriptors = {.dir = NULL};
	snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
	if (!numbered_open(&descriptors, AT_FDCWD, path))
		return grip;
	for (int32_t fd; numbered_next(&descriptors, &fd);) {
		struct stat st;
		int folder = numbered_fd(&descriptors);
		snprintf(path, sizeof path, "%d", (int)fd);
		if (fstatat(folder, path, &st, 0) == 0 && st.st_dev == file->st_dev &&
		    st.st_ino == file->st_ino)
			grip_add(&grip, folder, path);
	}
	return grip;
}

size_t keepers_find(const struct stat *file, int32_t *pids, size_t max)
{
	size_t count = 0;
	AUTO(numbered_close) struct numbered processes = {.dir = NULL};
	if (!numbered_open(&processes, AT_FDCWD, "/proc"))
		return 0;
	for (int32_t pid; count < max && numbered_next(&processes, &pid);) {
		if (pid != getpid() && grip_of(pid, file).any)
			pids[count++] = pid;
	}
	return count;
}

/* Whoever can read it too is a copy of this process, which had both ends for a moment. */
static bool only_writes(int32_t pid, const struct stat *file)
{
	struct grip grip = grip_of(pid, file);
	return grip.writes && !grip.reads;
}

/* What has this number in /proc may be another process than the one that has it here. */
static void kill_one(int32_t pid, const struct stat *file, int32_t spared)
{
	int32_t shown;
	AUTO(fd_closep) int pidfd = -1;
	if (!process_open(pid, &pidfd) || (spared > 0 && getpgid(pid) == spared))
		return;
	if (process_shown(pidfd, &shown) && shown == pid && only_writes(pid, file))
		(void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
}

void keepers_kill(int fd, int32_t spared)
{
	struct stat file;
	AUTO(numbered_close) struct numbered processes = {.dir = NULL};
	if (fstat(fd, &file) != 0 || !numbered_open(&processes, AT_FDCWD, "/proc"))
		return;
	for (int32_t pid; numbered_next(&processes, &pid);) {
		if (pid != getpid() && only_writes(pid, &file))
			kill_one(pid, &file, spared);
	}
}
