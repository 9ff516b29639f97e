/* This library's store. */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <baton/work.h>

#include "claims/arena.h"
#include "jobs/jobs.h"

static const char payload[JOB_BYTES];

struct baton_store *jobs_store(const char *folder, enum baton_store_sync sync,
                               const struct baton_store_hook *hook)
{
	char where[PATH_MAX + 32];
	struct baton_store *store;
	int len = snprintf(where, sizeof where, "sqlite:%s/store", folder);
	struct baton_store_options options = {.where = {where, (size_t)len}, .sync = sync};
	if (hook)
		options.hook = *hook;
	must(baton_store_open(&options, &store));
	return store;
}

void jobs_put(struct baton_store *store, unsigned each)
{
	const struct baton_str bytes = {payload, sizeof payload};
	struct baton_batch batches[JOBS_CALL_MAX];
	struct baton_put puts[JOBS_CALL_MAX];
	for (unsigned i = 0; i < each; i++)
		batches[i] = (struct baton_batch){.queue = BATON_STR("bench"),
		                                  .payloads = &bytes,
		                                  .count = 1};
	must(baton_work_put(store, batches, each, puts));
}

void jobs_live(struct baton_store *store, unsigned each)
{
	struct baton_work_ask ask = {.queue = BATON_STR("bench"), .claims = each, .max = 1};
	struct baton_work_claims *claims = NULL;
	struct baton_work_end ends[JOBS_CALL_MAX];
	struct baton_work_ended ended[JOBS_CALL_MAX];
	jobs_put(store, each);
	must(baton_work_claim(store, &ask, &claims));
	if (!claims || claims->count != each)
		errx(1, "there is not enough to claim");
	for (unsigned i = 0; i < each; i++)
		ends[i] = (struct baton_work_end){.proof = claims->claims[i].proof,
		                                  .how = BATON_COMPLETE};
	must(baton_work_end(store, ends, each, ended));
	for (unsigned i = 0; i < each; i++)
		must(ended[i].err);
	baton_work_claims_free(claims);
}

struct place {
	char folder[PATH_MAX];
	struct baton_store *store;
};

static void *place_open(void)
{
	struct place *p = arena_new(sizeof *p);
	jobs_folder(p->folder);
	p->store = jobs_store(p->folder, BATON_STORE_SAFE, NULL);
	return p;
}

static uint64_t place_lives(void *queue, unsigned thread, const struct lives *lives)
{
	struct place *p = queue;
	(void)thread;
	for (uint64_t i = 0; i < lives->count; i += lives->each)
		jobs_live(p->store, lives->each);
	return lives->count;
}

/* One job a call: who has done one completes it as he claims the next one. */
static uint64_t place_shifts(void *queue, unsigned thread, const struct lives *lives)
{
	struct place *p = queue;
	const struct baton_work_ask ask = {.queue = BATON_STR("bench"), .claims = 1, .max = 1};
	struct baton_work_claims *claims = NULL, *before;
	struct baton_work_end end = {.how = BATON_COMPLETE};
	struct baton_work_ended ended;
	(void)thread;
	for (uint64_t i = 0; i < lives->count; i++) {
		before = claims;
		claims = NULL;
		jobs_put(p->store, 1);
		must(baton_work_next(p->store, &end, before ? 1 : 0, &ended, &ask, &claims));
		if (!claims || (before && ended.err != BATON_OK))
			errx(1, "there is not enough to claim");
		end.proof = claims->claims[0].proof;
		baton_work_claims_free(before);
	}
	must(baton_work_end(p->store, &end, 1, &ended));
	must(ended.err);
	baton_work_claims_free(claims);
	return lives->count;
}

static void place_close(void *queue)
{
	struct place *p = queue;
	baton_store_close(p->store);
	jobs_folder_remove(p->folder);
	free(p);
}

static uint64_t place_work(void *queue, unsigned thread, const struct lives *lives)
{
	return lives->each == 1 ? place_shifts(queue, thread, lives)
	                        : place_lives(queue, thread, lives);
}

const struct queue_kind jobs_baton = {place_open, place_work, place_close, true};
const struct queue_kind jobs_baton_apart = {place_open, place_lives, place_close, false};
