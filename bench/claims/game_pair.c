/* Taking what is free and giving it back, in one process. */
#include <err.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <baton/claim.h>
#include <baton/clock.h>
#include <baton/watch.h>

#include "claims/arena.h"
#include "claims/game.h"
#include "claims/locks.h"
#include "claims/peer.h"

#define LABEL_MAX 32
#define SUBJECTS 200000 /* that a fleet has room for */

/* Who watches from another process. */
struct audience {
	const char *path;
	unsigned watches;
	bool reading;
	_Atomic uint32_t *ready; /* shared */
	struct peer peer;
};

/* The contest's part. */
struct side {
	struct load load;
	char path[PATH_MAX];
	struct baton_fleet *fleet;
	struct baton_subject subject;
	struct audience audience;
};

/* The state of a player: the contest's side, or somebody else's lock. */
struct pairs {
	struct side *side;
	const struct lock_kind *kind;
	void *made;
	void *handle;
};

static void *read_on(void *arg)
{
	struct baton_event event;
	uint64_t lost;
	enum baton_err e;
	do
		e = baton_watch_next(arg, BATON_MONO_NEVER, NULL, &event, &lost);
	while (e != BATON_GONE);
	return NULL;
}

static void audience_main(void *arg)
{
	const struct audience *a = arg;
	for (unsigned i = 0; i < a->watches; i++) {
		struct baton_watch *watch;
		pthread_t thread;
		must(baton_watch_open(a->path, &watch));
		if (a->reading && pthread_create(&thread, NULL, read_on, watch) != 0)
			errx(1, "cannot start a thread");
	}
	word_set(a->ready, 1);
	for (;;)
		pause();
}

static void audience_start(struct audience *a)
{
	a->ready = arena_share(sizeof *a->ready);
	a->peer = peer_start(audience_main, a);
	word_await(a->ready, 1, &a->peer);
}

static void hold_many(struct baton_fleet *fleet, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		char label[LABEL_MAX];
		int len = snprintf(label, sizeof label, "conversation/%08u", i);
		struct baton_subject subject = {BATON_STR("held"), {label, (size_t)len}, {0, 0}};
		struct baton_claim_ask ask = {.subject = &subject};
		struct baton_claim claim;
		must(baton_claim_try(fleet, &ask, &claim, NULL));
	}
}

static struct side *side_new(const struct load *load)
{
	struct side *s = arena_new(sizeof *s);
	s->load = *load;
	arena_path(s->path);
	s->fleet = arena_join(s->path, "bench", SUBJECTS);
	s->subject = (struct baton_subject)BATON_SUBJECT("bench", "conversation/00004711");
	hold_many(s->fleet, load->held);
	s->audience = (struct audience){
		.path = s->path,
		.watches = load->watches,
		.reading = load->reading,
	};
	if (load->watches > 0)
		audience_start(&s->audience);
	return s;
}

static void side_free(struct side *s)
{
	if (s->load.watches > 0)
		peer_end(&s->audience.peer);
	baton_fleet_leave(s->fleet);
	unlink(s->path);
	free(s);
}

static bool given_back(enum baton_err e, const struct baton_claim *claim)
{
	return e == BATON_OK && baton_claim_release(claim) == BATON_OK;
}

static uint64_t side_run(struct side *s, uint64_t count)
{
	struct baton_claim_ask ask = {
		.subject = &s->subject,
		.ttl = {(int64_t)s->load.ttl_ms * 1000000},
	};
	struct baton_claim claim;
	struct baton_mono now = baton_clock_boot()->now(baton_clock_boot());
	uint64_t done = 0;
	if (s->load.fixed_now) {
		for (uint64_t i = 0; i < count; i++)
			done += given_back(baton_claim_try_at(s->fleet, &ask, now, &claim, NULL),
			                   &claim);
	} else if (s->load.cold) {
		for (uint64_t i = 0; i < count; i++) {
			memset(s->subject.seen, 0, sizeof s->subject.seen);
			done += given_back(baton_claim_try(s->fleet, &ask, &claim, NULL), &claim);
		}
	} else {
		for (uint64_t i = 0; i < count; i++)
			done += given_back(baton_claim_try(s->fleet, &ask, &claim, NULL), &claim);
	}
	return done;
}

static const struct lock_kind *kind_of(enum player who)
{
	static const struct lock_kind *const kinds[PLAYER_END] = {
		[PLAYER_FLOCK] = &lock_flock,
		[PLAYER_OFD] = &lock_ofd,
		[PLAYER_MUTEX] = &lock_mutex,
		[PLAYER_CAS] = &lock_cas,
	};
	return kinds[who];
}

static struct side *side_of(enum player who, const struct load *load)
{
	struct load alone = {.cold = load->cold,
	                     .fixed_now = load->fixed_now,
	                     .ttl_ms = load->ttl_ms};
	if (who == PLAYER_CONTEST)
		return side_new(load);
	return who == PLAYER_ALONE && !load->rivals ? side_new(&alone) : NULL;
}

static void *pairs_setup(enum player who, const struct load *load)
{
	struct side *side = side_of(who, load);
	const struct lock_kind *kind = load->rivals ? kind_of(who) : NULL;
	if (!side && !kind)
		return NULL;
	struct pairs *p = arena_new(sizeof *p);
	p->side = side;
	if (side)
		return p;
	p->kind = kind;
	p->made = kind->make();
	p->handle = kind->attach(p->made);
	return p;
}

static void pairs_teardown(void *state)
{
	struct pairs *p = state;
	if (p->side) {
		side_free(p->side);
	} else {
		p->kind->detach(p->handle);
		p->kind->unmake(p->made);
	}
	free(p);
}

static uint64_t pairs_run(void *state, unsigned thread, uint64_t from, uint64_t ops)
{
	struct pairs *p = state;
	(void)thread;
	(void)from;
	return p->side ? side_run(p->side, ops) : p->kind->pairs(p->handle, ops);
}

const struct game game_pair = {
	.setup = pairs_setup,
	.run = pairs_run,
	.teardown = pairs_teardown,
};
