/* A runner in this process, whose handlers do nothing. */
#include <err.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <baton/queue.h>
#include <baton/runner.h>

#include "claims/arena.h"
#include "jobs/pg.h"
#include "jobs/team.h"

#define SLOTS 64

struct place {
	char folder[PATH_MAX]; /* empty: it is in the server */
	struct baton_store *store;
};

struct place *place_open(bool server)
{
	struct place *p = arena_new(sizeof *p);
	if (!server) {
		jobs_folder(p->folder);
		p->store = jobs_store(p->folder, BATON_STORE_SAFE, NULL);
		return p;
	}
	if (!pg_server()) {
		free(p);
		return NULL;
	}
	char where[PG_WHERE_MAX];
	pg_database(where);
	must(baton_store_open(&(struct baton_store_options){.where = baton_str_z(where)},
	                      &p->store));
	return p;
}

struct baton_store *place_store(const struct place *place)
{
	return place->store;
}

void place_close(struct place *place)
{
	baton_store_close(place->store);
	if (place->folder[0])
		jobs_folder_remove(place->folder);
	free(place);
}

struct shift {
	struct place *place;
	struct baton_serve serve;
	struct baton_engine *engine;
	pthread_t thread;
	char *command[3];
	uint64_t put;
};

static void complete(void *arg, struct baton_run *run)
{
	(void)arg;
	must(baton_run_end(run, &(struct baton_work_end){.how = BATON_COMPLETE}));
}

static void *work(void *arg)
{
	must(baton_engine_run(arg));
	return NULL;
}

void *shift_open(enum hand hand, bool server)
{
	struct shift *s = arena_new(sizeof *s);
	s->serve = (struct baton_serve){.queue = BATON_STR("bench")};
	s->place = place_open(server);
	if (!s->place) {
		free(s);
		return NULL;
	}
	struct baton_runner_options options = {
		.store = s->place->store,
		.ask = {.name = BATON_STR("shift"), .weight = 1},
		.serves = &s->serve,
		.serve_count = 1,
		.slots = SLOTS,
		.handler = {.call = complete, .overtime = BATON_OVERTIME_FENCED},
	};
	if (hand == HAND_STREAM) {
		static char part[] = "--worker";
		s->command[0] = team_self();
		s->command[1] = part;
		options.slots = 2;
		options.handler = (struct baton_handler){.command = s->command,
		                                         .stream = true,
		                                         .in_flight = SLOTS / 2};
	} else if (hand == HAND_COMMAND) {
		static char nothing[] = "true";
		s->command[0] = nothing;
		options.slots = SHIFT_COMMANDS;
		options.handler = (struct baton_handler){.command = s->command};
	}
	options.handler.guardian = BENCH_GUARDIAN;
	must(baton_engine_open(&options, &s->engine));
	if (pthread_create(&s->thread, NULL, work, s->engine) != 0)
		errx(1, "cannot start a thread");
	return s;
}

void shift_live(void *shift, uint64_t count)
{
	struct shift *s = shift;
	const struct timespec pause = {.tv_nsec = 50000};
	struct baton_runner_status status;
	for (uint64_t left = count; left > 0;) {
		unsigned now = left < JOBS_EACH_MAX ? (unsigned)left : JOBS_EACH_MAX;
		jobs_put(s->place->store, now);
		left -= now;
	}
	s->put += count;
	for (;;) {
		baton_engine_look(s->engine, &status);
		if (status.completed >= s->put)
			return;
		nanosleep(&pause, NULL);
	}
}

void shift_close(void *shift)
{
	struct shift *s = shift;
	baton_engine_stop(s->engine, baton_duration_s(10));
	pthread_join(s->thread, NULL);
	baton_engine_close(s->engine);
	place_close(s->place);
	free(s);
}
