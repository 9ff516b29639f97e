/* Runners in processes of their own. */
#include "jobs/team.h"

#include <err.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <baton/queue.h>
#include <baton/runner.h>

#include "claims/arena.h"
#include "claims/peer.h"
#include "jobs/ring.h"

#define RUNNERS 2

/* What all processes of a team see, in a file. */
struct mark {
	_Atomic uint32_t begun;           /* handlers                              */
	_Atomic uint32_t over;            /* those that may end                    */
	_Atomic uint32_t who;             /* the runner of the last one            */
	_Atomic uint32_t shards[RUNNERS]; /* that each of them owns                */
	int64_t at_ns;                    /* when the last one began               */
};

struct team {
	char folder[PATH_MAX], fleet[PATH_MAX], marks[PATH_MAX + 8];
	enum hand hand;
	bool silent;
	unsigned wanted; /* runners */
	struct peer runners[RUNNERS];
	bool lives[RUNNERS];
	struct mark *mark;
	struct baton_fleet *mine;
	struct baton_store *store;
	uint32_t turns;
};

char *team_self(void)
{
	static char path[PATH_MAX];
	if (readlink("/proc/self/exe", path, sizeof path - 1) < 0)
		err(1, "/proc/self/exe");
	return path;
}

static struct mark *mark_open(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, sizeof(struct mark)) != 0)
		err(1, "%s", path);
	void *mark = mmap(NULL, sizeof(struct mark), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mark == MAP_FAILED)
		err(1, "mmap");
	close(fd);
	return mark;
}

static void mark_begin(struct mark *mark, uint32_t who)
{
	mark->at_ns = arena_now();
	atomic_store(&mark->who, who);
	word_set(&mark->begun, atomic_load(&mark->begun) + 1);
}

#define COMMAND_MS 5000

/* A command: says that it runs, and ends when it is allowed to. One that nobody waits for, because
 * its runner was too slow and the job was given to another one, ends by itself. */
static void command_part(char **argv)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	struct mark *mark = mark_open(argv[2]);
	mark_begin(mark, (uint32_t)strtoul(argv[3], NULL, 10));
	uint32_t own = atomic_load(&mark->begun);
	for (int i = 0; i < COMMAND_MS && (int32_t)(atomic_load(&mark->over) - own) < 0; i++)
		nanosleep(&pause, NULL);
}

/* A persistent worker: every claim is done as soon as it is read. */
static void worker_part(void)
{
	FILE *in = fdopen(3, "r");
	char *line = NULL;
	size_t size = 0;
	while (in && getline(&line, &size, in) > 0) {
		char claim[64];
		if (sscanf(line, "{\"claim\":\"%63[^\"]\"", claim) == 1)
			dprintf(3, "{\"claim\":\"%s\",\"ok\":true}\n", claim);
	}
	free(line);
}

/* What a runner's process has at hand. */
struct runner {
	struct mark *mark;
	struct baton_engine *engine;
	uint32_t index;
};

static void on_call(void *arg, struct baton_run *run)
{
	const struct runner *r = arg;
	mark_begin(r->mark, r->index);
	must(baton_run_end(run, &(struct baton_work_end){.how = BATON_COMPLETE}));
}

/* Says how many shards it owns. */
static void *tell(void *arg)
{
	const struct runner *r = arg;
	const struct timespec pause = {.tv_nsec = 5000000};
	struct baton_runner_status status;
	for (;;) {
		baton_engine_look(r->engine, &status);
		atomic_store(&r->mark->shards[r->index], status.shards);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

/* --runner FOLDER FLEET MARKS INDEX HAND */
static void runner_part(char **argv)
{
	const struct baton_serve serve = {.queue = BATON_STR("bench")};
	char name[32], part[] = "--command";
	char *command[] = {team_self(), part, argv[4], argv[5], NULL};
	struct runner r = {.mark = mark_open(argv[4]),
	                   .index = (uint32_t)strtoul(argv[5], NULL, 10)};
	struct baton_store *store = jobs_store(argv[2], BATON_STORE_SAFE, NULL);
	int len = snprintf(name, sizeof name, "runner-%d", (int)getpid());
	struct baton_runner_options options = {
		.store = store,
		.ask = {.name = {name, (size_t)len},
	                .weight = 1,
	                .ttl = baton_duration_ms(TEAM_TTL_MS)},
		.beat = baton_duration_ms(200),
		.margin = baton_duration_ms(300),
		.serves = &serve,
		.serve_count = 1,
		.slots = 4,
	};
	if (strtoul(argv[6], NULL, 10) == HAND_CALL)
		options.handler = (struct baton_handler){.call = on_call,
		                                         .arg = &r,
		                                         .overtime = BATON_OVERTIME_FENCED};
	else
		options.handler =
			(struct baton_handler){.command = command, .guardian = BENCH_GUARDIAN};
	pthread_t thread;
	ring_listen(argv[3], store);
	must(baton_engine_open(&options, &r.engine));
	if (pthread_create(&thread, NULL, tell, &r) != 0)
		errx(1, "cannot start a thread");
	must(baton_engine_run(r.engine));
}

void team_part(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--worker") == 0)
		worker_part();
	else if (argc == 4 && strcmp(argv[1], "--command") == 0)
		command_part(argv);
	else if (argc == 7 && strcmp(argv[1], "--runner") == 0)
		runner_part(argv);
	else
		return;
	exit(0);
}

struct post {
	const struct team *team;
	unsigned index;
};

/* The program anew, since a forked process must not use the store of its parent. */
static void become_runner(void *arg)
{
	const struct post *post = arg;
	const struct team *t = post->team;
	char index[16], hand[16];
	snprintf(index, sizeof index, "%u", post->index);
	snprintf(hand, sizeof hand, "%d", (int)t->hand);
	execl("/proc/self/exe", "bench-work", "--runner", t->folder, t->fleet, t->marks, index,
	      hand, (char *)NULL);
	err(1, "cannot start a runner");
}

/* Has all runners there, each with its share. */
static void settle(struct team *t)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	const uint32_t share = BATON_QUEUE_SHARDS / t->wanted;
	for (unsigned i = 0; i < t->wanted; i++) {
		if (t->lives[i])
			continue;
		atomic_store(&t->mark->shards[i], 0);
		t->runners[i] = peer_start(become_runner, &(struct post){t, i});
		t->lives[i] = true;
	}
	for (unsigned i = 0; i < t->wanted; i++) {
		while (atomic_load(&t->mark->shards[i]) != share) {
			peer_check(&t->runners[i]);
			nanosleep(&pause, NULL);
		}
	}
}

static void *team_setup(enum hand hand, unsigned runners, bool silent)
{
	struct team *t = arena_new(sizeof *t);
	t->hand = hand;
	t->wanted = runners;
	t->silent = silent;
	jobs_folder(t->folder);
	arena_path(t->fleet);
	snprintf(t->marks, sizeof t->marks, "%s/marks", t->folder);
	t->mark = mark_open(t->marks);
	t->mine = arena_join(t->fleet, "putter", 0);
	struct baton_store_hook hook = ring_hook(t->mine);
	t->store = jobs_store(t->folder, BATON_STORE_SAFE, &hook);
	const struct baton_queue_policy policy = baton_queue_policy_default();
	must(baton_queue_set(t->store, BATON_STR("bench"), &policy));
	settle(t);
	return t;
}

/* Until one more handler has begun. */
static void await_next(struct team *t)
{
	word_await(&t->mark->begun, t->turns + 1, NULL);
	t->turns = atomic_load(&t->mark->begun);
}

/* Puts one job in the one lane, and returns once it is being handled. */
static void put_and_await(struct team *t)
{
	static const char payload[JOB_BYTES];
	const struct baton_str bytes = {payload, sizeof payload};
	const struct baton_batch batch = {.queue = BATON_STR("bench"),
	                                  .lane = BATON_STR("lane"),
	                                  .payloads = &bytes,
	                                  .count = 1};
	struct baton_put put;
	t->turns = atomic_load(&t->mark->begun);
	must(baton_work_put(t->store, &batch, 1, &put));
	await_next(t);
}

void *start_setup(enum hand hand)
{
	return team_setup(hand, 1, false);
}

double start_sample(void *team)
{
	struct team *t = team;
	peer_await_sleep(&t->runners[0]);
	int64_t begin = arena_now();
	put_and_await(t);
	word_set(&t->mark->over, t->turns);
	return (double)(t->mark->at_ns - begin);
}

void *failover_setup(bool silent)
{
	return team_setup(HAND_COMMAND, RUNNERS, silent);
}

double failover_sample(void *team)
{
	struct team *t = team;
	settle(t);
	put_and_await(t);
	uint32_t victim = atomic_load(&t->mark->who);
	int64_t begin = arena_now();
	if (t->silent)
		peer_stop(&t->runners[victim]);
	else
		kill(t->runners[victim].pid, SIGKILL);
	await_next(t);
	peer_end(&t->runners[victim]);
	t->lives[victim] = false;
	word_set(&t->mark->over, t->turns);
	return (double)(t->mark->at_ns - begin);
}

void team_teardown(void *team)
{
	struct team *t = team;
	for (unsigned i = 0; i < t->wanted; i++) {
		if (t->lives[i])
			peer_end(&t->runners[i]);
	}
	baton_store_close(t->store);
	baton_fleet_leave(t->mine);
	munmap(t->mark, sizeof *t->mark);
	jobs_folder_remove(t->folder);
	free(t);
}
