/* How long it takes until somebody else notices, and until a renewal gets through. */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <baton/fleet.h>
#include <baton/lease.h>
#include <baton/work.h>

#include "claims/arena.h"
#include "claims/peer.h"
#include "jobs/jobs.h"
#include "jobs/ring.h"

/* What both processes see. */
struct shared {
	_Atomic uint32_t ready, claimed;
	int64_t at_ns; /* of the claim */
};

struct pair {
	char folder[PATH_MAX], fleet[PATH_MAX];
	struct shared *shared;
	struct peer peer;
	struct baton_fleet *mine;
	struct baton_store *store;
	struct baton_lease lease;
	uint32_t turns;
};

/* Claims whatever comes, and says when. */
static void claim_on(struct baton_store *store, struct shared *shared)
{
	struct baton_store_wait wait = {.queue = BATON_STR("bench"), .until = BATON_MONO_NEVER};
	struct baton_work_ask ask = {.queue = BATON_STR("bench"), .claims = 1, .max = 1};
	uint64_t seen = 0;
	for (;;) {
		struct baton_work_claims *claims = NULL;
		struct baton_work_ended ended;
		must(baton_store_wait(store, &wait, &seen));
		enum baton_err e = baton_work_claim(store, &ask, &claims);
		if (e == BATON_NOT_FOUND || !claims)
			continue;
		shared->at_ns = arena_now();
		struct baton_work_end end = {.proof = claims->claims[0].proof,
		                             .how = BATON_COMPLETE};
		must(baton_work_end(store, &end, 1, &ended));
		baton_work_claims_free(claims);
		word_set(&shared->claimed, atomic_load(&shared->claimed) + 1);
	}
}

static void waiter_main(void *arg)
{
	const struct pair *p = arg;
	struct baton_store *store = jobs_store(p->folder, BATON_STORE_SAFE, NULL);
	ring_listen(p->fleet, store);
	word_set(&p->shared->ready, 1);
	claim_on(store, p->shared);
}

static struct pair *pair_new(void (*body)(void *arg))
{
	struct pair *p = arena_new(sizeof *p);
	jobs_folder(p->folder);
	arena_path(p->fleet);
	p->shared = arena_share(sizeof *p->shared);
	baton_store_close(jobs_store(p->folder, BATON_STORE_SAFE, NULL));
	p->peer = peer_start(body, p);
	word_await(&p->shared->ready, 1, &p->peer);
	return p;
}

void *wait_setup(void)
{
	struct pair *p = pair_new(waiter_main);
	p->mine = arena_join(p->fleet, "putter", 0);
	struct baton_store_hook hook = ring_hook(p->mine);
	p->store = jobs_store(p->folder, BATON_STORE_SAFE, &hook);
	return p;
}

double wait_sample(void *state)
{
	struct pair *p = state;
	peer_await_sleep(&p->peer);
	int64_t begin = arena_now();
	jobs_put(p->store, 1);
	word_await(&p->shared->claimed, ++p->turns, &p->peer);
	return (double)(p->shared->at_ns - begin);
}

void wait_teardown(void *state)
{
	struct pair *p = state;
	peer_end(&p->peer);
	baton_store_close(p->store);
	baton_fleet_leave(p->mine);
	jobs_folder_remove(p->folder);
	free(p);
}

static void writer_main(void *arg)
{
	const struct pair *p = arg;
	struct baton_store *store = jobs_store(p->folder, BATON_STORE_SAFE, NULL);
	jobs_live(store, 1);
	word_set(&p->shared->ready, 1);
	for (;;)
		jobs_live(store, 1);
}

void *renew_setup(void)
{
	struct pair *p = pair_new(writer_main);
	struct baton_lease_ask ask = {.subject = BATON_STR("bench")};
	struct baton_lease_answer answer;
	p->store = jobs_store(p->folder, BATON_STORE_SAFE, NULL);
	must(baton_lease_claim(p->store, &ask, 1, &answer));
	p->lease = answer.lease;
	return p;
}

double renew_sample(void *state)
{
	struct pair *p = state;
	struct baton_lease_proof proof = {BATON_STR("bench"), &p->lease};
	enum baton_err answer;
	int64_t begin = arena_now();
	must(baton_lease_renew(p->store, &proof, 1, (struct baton_duration){0}, false, &answer));
	must(answer);
	return (double)(arena_now() - begin);
}

void renew_teardown(void *state)
{
	struct pair *p = state;
	peer_end(&p->peer);
	baton_store_close(p->store);
	jobs_folder_remove(p->folder);
	free(p);
}

static double log_size(const char *folder)
{
	char path[PATH_MAX + 16];
	struct stat st;
	snprintf(path, sizeof path, "%s/store-wal", folder);
	return stat(path, &st) == 0 ? (double)st.st_size : 0;
}

#define ROUNDS 10

double jobs_log_bytes(unsigned count)
{
	char folder[PATH_MAX];
	jobs_folder(folder);
	struct baton_store *store = jobs_store(folder, BATON_STORE_SAFE, NULL);
	jobs_live(store, count);
	double before = log_size(folder);
	for (int i = 0; i < ROUNDS; i++)
		jobs_live(store, count);
	double bytes = log_size(folder) - before;
	baton_store_close(store);
	jobs_folder_remove(folder);
	return bytes / ROUNDS / count;
}
