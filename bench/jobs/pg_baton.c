/* This library's store in PostgreSQL. */
#include <err.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <baton/work.h>

#include "claims/arena.h"
#include "jobs/jobs.h"
#include "jobs/pg.h"

#define PUTTERS 8 /* threads of a process that puts one by one */

static const char payload[JOB_BYTES];

static void *store_begin(const char *where)
{
	struct baton_store *store;
	struct baton_store_options options = {.where = baton_str_z(where)};
	must(baton_store_open(&options, &store));
	return store;
}

static void lives(void *state, uint64_t jobs)
{
	for (uint64_t i = 0; i < jobs; i += PG_EACH)
		jobs_live(state, PG_EACH);
}

static void lives_of_many(void *state, uint64_t jobs)
{
	for (uint64_t i = 0; i < jobs; i += PG_MANY)
		jobs_live(state, PG_MANY);
}

struct putter {
	struct baton_store *store;
	uint64_t count;
	pthread_t thread;
};

static void *putter_run(void *arg)
{
	const struct putter *p = arg;
	const struct baton_str bytes = {payload, sizeof payload};
	struct baton_batch batch = {.queue = BATON_STR("bench"), .payloads = &bytes, .count = 1};
	struct baton_put put;
	for (uint64_t i = 0; i < p->count; i++)
		must(baton_work_put(p->store, &batch, 1, &put));
	return NULL;
}

static void put_all(void *state, uint64_t jobs)
{
	struct putter putters[PUTTERS];
	for (unsigned i = 0; i < PUTTERS; i++) {
		putters[i] = (struct putter){.store = state, .count = jobs / PUTTERS};
		if (pthread_create(&putters[i].thread, NULL, putter_run, &putters[i]) != 0)
			errx(1, "no thread");
	}
	for (unsigned i = 0; i < PUTTERS; i++)
		pthread_join(putters[i].thread, NULL);
}

/* Sleeps from its first thread on, beside the one that is told what to do, which is nothing. */
static void *sleeper_run(void *arg)
{
	struct baton_store *store = arg;
	const struct baton_store_wait wait = {.until = {INT64_MAX}};
	uint64_t seen = 0;
	for (;;) {
		enum baton_err e = baton_store_wait(store, &wait, &seen);
		if (e != BATON_OK && e != BATON_TIMEOUT)
			must(e);
	}
	return NULL;
}

static void *sleeper_begin(const char *where)
{
	void *store = store_begin(where);
	pthread_t thread;
	if (pthread_create(&thread, NULL, sleeper_run, store) != 0)
		errx(1, "no thread");
	return store;
}

static void sleep_on(void *state, uint64_t jobs)
{
	(void)state;
	(void)jobs;
}

const struct pg_work pg_baton_lives = {store_begin, lives};
const struct pg_work pg_baton_many = {store_begin, lives_of_many};
const struct pg_work pg_baton_puts = {store_begin, put_all};
const struct pg_work pg_baton_sleeper = {sleeper_begin, sleep_on};
