/* Where the contest's bench keeps its files. */
#include "claims/arena.h"

#include <err.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* One for the process and those that it forks. */
static struct {
	bool made;
	char folder[64];
	unsigned paths;
} arena;

void must(enum baton_err e)
{
	if (e != BATON_OK)
		errx(1, "%s: %s", baton_strerror(e), baton_err_detail());
}

void *arena_new(size_t size)
{
	void *p = calloc(1, size);
	if (!p)
		errx(1, "no memory");
	return p;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *where)
{
	(void)info;
	(void)type;
	(void)where;
	return remove(path);
}

/* A process of its own, so that nothing is left behind when the bench is interrupted or killed. It
 * sees the end of the pipe when nobody has the other end any more. */
static void janitor_start(void)
{
	int ends[2];
	char byte;
	if (pipe2(ends, O_CLOEXEC) != 0)
		err(1, "pipe");
	pid_t pid = fork();
	if (pid < 0)
		err(1, "fork");
	if (pid > 0) {
		close(ends[0]);
		return;
	}
	setsid();
	signal(SIGTERM, SIG_IGN);
	close(ends[1]);
	while (read(ends[0], &byte, 1) > 0)
		;
	nftw(arena.folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	_exit(0);
}

static void arena_make(void)
{
	snprintf(arena.folder, sizeof arena.folder, "%s/bench-contest-XXXXXX",
	         access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	if (!mkdtemp(arena.folder))
		err(1, "%s", arena.folder);
	arena.made = true;
	janitor_start();
}

void arena_path(char path[PATH_MAX])
{
	if (!arena.made)
		arena_make();
	snprintf(path, PATH_MAX, "%s/%u", arena.folder, arena.paths++);
}

struct baton_fleet *arena_join(const char *path, const char *owner, uint32_t subjects)
{
	struct baton_fleet *fleet;
	struct baton_fleet_options options = {
		.path = path,
		.owner = {owner, strlen(owner)},
		.limits = {.subjects = subjects},
	};
	must(baton_fleet_join(&options, &fleet));
	return fleet;
}

int64_t arena_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void *arena_share(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		err(1, "mmap");
	return p;
}
