/* plainjob, a queue for Node.js on SQLite. */
#include <err.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "claims/arena.h"
#include "jobs/jobs.h"

struct node {
	char folder[PATH_MAX];
	pid_t pid;
	FILE *to, *from;
};

/* Where bench/get-peers has put it. */
static const char *modules(void)
{
	const char *path = getenv("BATON_BENCH_PEERS");
	return path ? path : "";
}

static bool can_be_found(char script[PATH_MAX])
{
	snprintf(script, PATH_MAX, "%s/plainjob.mjs", modules());
	return access(script, R_OK) == 0;
}

static void node_exec(const struct node *n, const char *script, const int in[2], const int out[2])
{
	char database[PATH_MAX + 16];
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(database, sizeof database, "%s/jobs.db", n->folder);
	dup2(in[0], 0);
	dup2(out[1], 1);
	execlp("node", "node", script, database, (char *)NULL);
	_exit(127);
}

static void *node_open(void)
{
	char script[PATH_MAX];
	int in[2], out[2];
	if (!can_be_found(script)) {
		warnx("plainjob is left out: bench/get-peers could not get it");
		return NULL;
	}
	struct node *n = arena_new(sizeof *n);
	jobs_folder(n->folder);
	if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
		err(1, "pipe");
	n->pid = fork();
	if (n->pid < 0)
		err(1, "fork");
	if (n->pid == 0)
		node_exec(n, script, in, out);
	close(in[0]);
	close(out[1]);
	n->to = fdopen(in[1], "w");
	n->from = fdopen(out[0], "r");
	return n;
}

/* It has one thread, which does the work of all. */
static uint64_t node_lives(void *queue, unsigned thread, const struct lives *lives)
{
	struct node *n = queue;
	char line[64];
	uint64_t all = lives->count * lives->threads;
	if (thread > 0 || all == 0)
		return 0;
	fprintf(n->to, "%llu\n", (unsigned long long)all);
	fflush(n->to);
	if (!fgets(line, sizeof line, n->from))
		errx(1, "plainjob ended");
	return all;
}

static void node_close(void *queue)
{
	struct node *n = queue;
	fclose(n->to);
	fclose(n->from);
	waitpid(n->pid, NULL, 0);
	jobs_folder_remove(n->folder);
	free(n);
}

const struct queue_kind jobs_plainjob = {node_open, node_lives, node_close, false};
