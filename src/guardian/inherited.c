/* The descriptors that a process has from its parent. */
#include "guardian/inherited.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fail.h"
#include "base/mem.h"
#include "guardian/numbered.h"

#define ROOM_FIRST 16

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
	AUTO(numbered_close) struct numbered open_now = {.dir = NULL};
	if (!numbered_open(&open_now, AT_FDCWD, "/proc/self/fd"))
		return fail_errno(errno, "/proc/self/fd cannot be read");
	for (int32_t fd; numbered_next(&open_now, &fd);) {
		if (fd == numbered_fd(&open_now) || fd == except || fd <= STDERR_FILENO)
			continue;
		enum baton_err e = add(i, fd);
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
