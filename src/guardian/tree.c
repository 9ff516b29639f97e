/* The processes that descend from this one, as /proc shows them. */
#include "guardian/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fail.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/process.h"
#include "guardian/numbered.h"

#define ROOM_FIRST 256

/* More than a line of /proc/PID/stat has before the parent's pid: a name of 64 bytes at most. */
#define STAT_BYTES 256

bool tree_parse_parent(struct baton_str stat, int32_t *ret)
{
	/* "PID (NAME) STATE PARENT ...", and the name may hold spaces and parentheses. */
	const char *end = stat.len > 0 ? memrchr(stat.ptr, ')', stat.len) : NULL;
	size_t rest = end ? stat.len - (size_t)(end - stat.ptr) : 0;
	if (rest < 6 || end[1] != ' ' || end[3] != ' ')
		return false;
	struct baton_str number = {end + 4, 0};
	while (number.len < rest - 4 && number.ptr[number.len] != ' ')
		number.len++;
	uint64_t parent;
	if (number.len == rest - 4 || !number_parse(number, INT32_MAX, &parent))
		return false;
	*ret = (int32_t)parent;
	return true;
}

static bool parent_of(int32_t pid, int32_t *ret)
{
	char path[32], text[STAT_BYTES];
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t n = read(fd, text, sizeof text);
	close(fd);
	return n > 0 && tree_parse_parent((struct baton_str){text, (size_t)n}, ret);
}

static int by_pid(const void *a, const void *b)
{
	const struct kin *x = a, *y = b;
	return (x->pid > y->pid) - (x->pid < y->pid);
}

/* The place of `pid`; `count` if it is not there. */
static size_t find(const struct kin *kin, size_t count, int32_t pid)
{
	struct kin key = {.pid = pid};
	const struct kin *at = count > 0 ? bsearch(&key, kin, count, sizeof *kin, by_pid) : NULL;
	return at ? (size_t)(at - kin) : count;
}

/* Follows the line of kin[at] upwards and writes down for all of it whether it leads to `ancestor`.
 * A circle, which a look at things that change can show, leads nowhere. */
static void follow(struct kin *kin, size_t count, size_t at, int32_t ancestor)
{
	enum kin_line line = 0;
	size_t last = at;
	for (size_t steps = 0; line == 0; steps++) {
		size_t above = find(kin, count, kin[last].parent);
		if (kin[last].line != 0)
			line = kin[last].line;
		else if (kin[last].parent == ancestor)
			line = KIN_OURS;
		else if (above == count || steps > count)
			line = KIN_OTHERS;
		else
			last = above;
	}
	for (size_t i = at; i != last; i = find(kin, count, kin[i].parent))
		kin[i].line = line;
	kin[last].line = line;
}

size_t tree_keep(struct kin *kin, size_t count, int32_t ancestor)
{
	for (size_t i = 0; i < count; i++)
		follow(kin, count, i, ancestor);
	size_t kept = 0;
	for (size_t i = 0; i < count; i++) {
		if (kin[i].line == KIN_OURS)
			kin[kept++] = kin[i];
	}
	return kept;
}

static enum baton_err add(struct tree *t, int32_t pid, int32_t parent)
{
	if (t->count == t->room) {
		size_t room = t->room > 0 ? t->room * 2 : ROOM_FIRST;
		struct kin *kin = mem_resize(t->alloc, t->kin, t->room, room, sizeof *kin);
		if (!kin)
			return fail_memory(room * sizeof *kin, "a list of processes");
		t->kin = kin;
		t->room = room;
	}
	t->kin[t->count++] = (struct kin){.pid = pid, .parent = parent};
	return BATON_OK;
}

enum baton_err tree_look(struct tree *t)
{
	t->count = 0;
	AUTO(numbered_close) struct numbered processes = {.dir = NULL};
	if (!numbered_open(&processes, AT_FDCWD, "/proc"))
		return fail_errno(errno, "/proc cannot be read");
	for (int32_t pid; numbered_next(&processes, &pid);) {
		int32_t parent;
		if (!parent_of(pid, &parent))
			continue;
		enum baton_err e = add(t, pid, parent);
		if (e != BATON_OK) {
			t->count = 0;
			return e;
		}
	}
	if (t->count > 0)
		qsort(t->kin, t->count, sizeof *t->kin, by_pid);
	t->count = tree_keep(t->kin, t->count, getpid());
	return BATON_OK;
}

static bool is_among(const int32_t *pids, size_t count, int32_t pid)
{
	for (size_t i = 0; i < count; i++) {
		if (pids[i] == pid)
			return true;
	}
	return false;
}

/* Whether the line of kin[at] leads to one of `pids`, or begins there. */
static bool is_spared(const struct tree *t, size_t at, const int32_t *pids, size_t count)
{
	for (size_t steps = 0; at < t->count && steps <= t->count; steps++) {
		if (is_among(pids, count, t->kin[at].pid))
			return true;
		at = find(t->kin, t->count, t->kin[at].parent);
	}
	return false;
}

void tree_spare(struct tree *t, const int32_t *pids, size_t count)
{
	size_t kept = 0;
	for (size_t i = 0; i < t->count; i++) {
		if (is_spared(t, i, pids, count))
			t->kin[i].line = KIN_OTHERS;
	}
	for (size_t i = 0; i < t->count; i++) {
		if (t->kin[i].line != KIN_OTHERS)
			t->kin[kept++] = t->kin[i];
	}
	t->count = kept;
}

void tree_excuse(struct tree *t, const int32_t *pids, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t at = find(t->kin, t->count, pids[i]);
		if (at < t->count)
			t->kin[at].line = KIN_EXCUSED;
	}
}

/* The descriptor holds on to the process before its parent is looked at again: what is signalled is
 * still a child of one of ours, or of ourselves, who inherit the orphans. */
static void signal_one(const struct tree *t, const struct kin *kin, int sig)
{
	AUTO(fd_closep) int pidfd = -1;
	int32_t parent;
	if (!process_open(kin->pid, &pidfd) || !parent_of(kin->pid, &parent))
		return;
	if (parent == getpid() || find(t->kin, t->count, parent) < t->count)
		(void)syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0);
}

void tree_signal(const struct tree *t, int sig)
{
	for (size_t i = 0; i < t->count; i++) {
		if (t->kin[i].line != KIN_EXCUSED)
			signal_one(t, &t->kin[i], sig);
	}
}

void tree_done(struct tree *t)
{
	mem_free(t->alloc, t->kin, t->room, sizeof *t->kin);
	*t = (struct tree){.alloc = t->alloc};
}
