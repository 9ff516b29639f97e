/* The descriptors that a process has from its parent. */
#include "guardian/inherited.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fail.h"
#include "base/mem.h"
#include "base/number.h"

#define ROOM_FIRST 16

static void dir_closep(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

static enum baton_err add(struct inherited *i, int fd)
{
	if (i->count == i->room) {
		size_t room = i->room > 0 ? i->room * 2 : ROOM_FIRST;
		int *fds = mem_resize(i->alloc, i->fds, i->room, room, sizeof *fds);
		if (!fds)
			return fail_memory(room * sizeof *fds, "a list of descriptors");
		i->fds = fds;
		i->room = room;
	}
	i->fds[i->count++] = fd;
	return BATON_OK;
}

enum baton_err inherited_list(struct inherited *i, int except)
{
	AUTO(dir_closep) DIR *dir = opendir("/proc/self/fd");
	if (!dir)
		return fail_errno(errno, "/proc/self/fd cannot be read");
	for (struct dirent *d; (d = readdir(dir));) {
		uint64_t fd;
		if (!number_parse(baton_str_z(d->d_name), INT32_MAX, &fd) ||
		    (int)fd == dirfd(dir) || (int)fd == except || fd <= STDERR_FILENO)
			continue;
		enum baton_err e = add(i, (int)fd);
		if (e != BATON_OK) {
			i->count = 0;
			return e;
		}
	}
	return BATON_OK;
}

void inherited_close(struct inherited *i)
{
	for (size_t n = 0; n < i->count; n++)
		close(i->fds[n]);
	mem_free(i->alloc, i->fds, i->room, sizeof *i->fds);
	*i = (struct inherited){.alloc = i->alloc};
	int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = STDIN_FILENO; nowhere >= 0 && fd <= STDERR_FILENO; fd++) {
		if (fd != nowhere)
			dup2(nowhere, fd);
	}
	if (nowhere > STDERR_FILENO)
		close(nowhere);
	(void)!chdir("/");
}
