/* Files that others find complete or not at all. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"

enum baton_err folder_check(const char *folder, int fd)
{
	struct stat st;
	if (fd < 0 || fstat(fd, &st) != 0)
		return fail_errno(errno, "the folder '%.200s' cannot be opened", folder);
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return fail(BATON_INVALID,
		            "the folder '%.200s' belongs to uid %u; it must belong to uid %u or "
		            "root",
		            folder, (unsigned)st.st_uid, (unsigned)geteuid());
	if ((st.st_mode & S_IWOTH) && !(st.st_mode & S_ISVTX))
		return fail(BATON_INVALID,
		            "the folder '%.200s' is writable by everybody; take that away with "
		            "chmod o-w",
		            folder);
	return BATON_OK;
}

/* What is shared with a group is shared with that of the folder. */
static bool group_give(int fd, int folder, mode_t mode)
{
	struct stat st;
	return mode != 0660 || (fstat(folder, &st) == 0 && fchown(fd, (uid_t)-1, st.st_gid) == 0);
}

int file_new(int folder, mode_t mode)
{
	int fd = openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
	if (fd < 0 || (fchmod(fd, mode) == 0 && group_give(fd, folder, mode)))
		return fd;
	int err = errno;
	close(fd);
	errno = err;
	return -1;
}

int file_name(int fd, int folder, const char *name)
{
	char self[64];
	snprintf(self, sizeof self, "/proc/thread-self/fd/%d", fd);
	return linkat(AT_FDCWD, self, folder, name, AT_SYMLINK_FOLLOW);
}
