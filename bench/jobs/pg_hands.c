/* A PostgreSQL server of the bench's own, and the processes that work on it. */
#include <err.h>
#include <fcntl.h>
#include <libpq-fe.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "claims/arena.h"
#include "jobs/pg.h"
#include "support/cluster.h"

#define KIND "postgres:"

static struct cluster cluster;
static pid_t starter;

static void stop_server(void)
{
	if (getpid() == starter)
		cluster_stop(&cluster);
}

bool pg_server(void)
{
	static bool asked;
	if (asked)
		return cluster.directory[0] != '\0';
	asked = true;
	setenv("TMPDIR", "/var/tmp", 0);
	if (!cluster_start(&cluster, true)) {
		warnx("everything is left out: no PostgreSQL server can be started");
		return false;
	}
	starter = getpid();
	atexit(stop_server);
	return true;
}

void pg_database(char where[PG_WHERE_MAX])
{
	cluster_database(&cluster, where, PG_WHERE_MAX);
}

const char *pg_info(const char *where)
{
	return where + strlen(KIND);
}

double pg_number(const char *where, const char *sql)
{
	PGconn *pg = PQconnectdb(pg_info(where));
	PGresult *r = PQexec(pg, sql);
	if (PQresultStatus(r) != PGRES_TUPLES_OK && PQresultStatus(r) != PGRES_COMMAND_OK)
		errx(1, "%s: %s", sql, PQerrorMessage(pg));
	double number = PQntuples(r) > 0 ? strtod(PQgetvalue(r, 0, 0), NULL) : 0;
	PQclear(r);
	PQfinish(pg);
	return number;
}

struct hand {
	pid_t pid;
	FILE *to, *from;
};

struct pg_hands {
	struct hand list[PG_HANDS_MAX];
	unsigned count;
};

static void work_on(const struct pg_work *work, const char *where, FILE *from, FILE *to)
{
	char line[64];
	void *state = work->begin(where);
	fputs("ready\n", to);
	fflush(to);
	while (fgets(line, sizeof line, from)) {
		work->live(state, strtoull(line, NULL, 10));
		fputs("done\n", to);
		fflush(to);
	}
}

/* In the child: never returns. */
static void run_hand(const struct pg_work *work, const char *script, const char *where, int in,
                     int out)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (work) {
		work_on(work, where, fdopen(in, "r"), fdopen(out, "w"));
		_exit(0);
	}
	dup2(in, 0);
	dup2(out, 1);
	execlp("node", "node", script, pg_info(where), (char *)NULL);
	_exit(127);
}

static void hear(const struct hand *hand)
{
	char line[64];
	if (!fgets(line, sizeof line, hand->from))
		errx(1, "a process of the bench ended");
}

static void hand_start(struct hand *hand, const struct pg_work *work, const char *script,
                       const char *where)
{
	int in[2], out[2];
	if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
		err(1, "pipe");
	hand->pid = fork();
	if (hand->pid < 0)
		err(1, "fork");
	if (hand->pid == 0)
		run_hand(work, script, where, in[0], out[1]);
	close(in[0]);
	close(out[1]);
	hand->to = fdopen(in[1], "w");
	hand->from = fdopen(out[0], "r");
	hear(hand);
}

struct pg_hands *pg_hands_start(const struct pg_work *work, const char *where, unsigned count)
{
	struct pg_hands *h = arena_new(sizeof *h);
	for (; h->count < count; h->count++)
		hand_start(&h->list[h->count], work, NULL, where);
	return h;
}

struct pg_hands *pg_hands_script(const char *script, const char *where)
{
	char path[4096];
	const char *peers = getenv("BATON_BENCH_PEERS");
	snprintf(path, sizeof path, "%s/%s", peers ? peers : "", script);
	if (access(path, R_OK) != 0) {
		warnx("%s is left out: bench/get-peers could not get it", script);
		return NULL;
	}
	struct pg_hands *h = arena_new(sizeof *h);
	hand_start(&h->list[h->count++], NULL, path, where);
	return h;
}

void pg_hands_do(struct pg_hands *h, unsigned hand, uint64_t jobs)
{
	fprintf(h->list[hand].to, "%llu\n", (unsigned long long)jobs);
	fflush(h->list[hand].to);
	hear(&h->list[hand]);
}

void pg_hands_end(struct pg_hands *h)
{
	for (unsigned i = 0; h && i < h->count; i++) {
		fclose(h->list[i].to);
		kill(h->list[i].pid, SIGTERM);
		waitpid(h->list[i].pid, NULL, 0);
		fclose(h->list[i].from);
	}
	free(h);
}
