/* The contest as a lock: one subject of a fleet. */
#include <stdlib.h>

#include <baton/claim.h>

#include "claims/arena.h"
#include "claims/locks.h"

struct handle {
	struct baton_fleet *fleet;
	struct baton_subject subject;
	struct baton_claim claim;
};

static void *contest_make(void)
{
	char *path = arena_new(PATH_MAX);
	arena_path(path);
	return path;
}

static void contest_unmake(void *made)
{
	free(made);
}

static void *contest_attach(void *made)
{
	struct handle *h = arena_new(sizeof *h);
	h->fleet = arena_join(made, "bench", 0);
	h->subject = (struct baton_subject)BATON_SUBJECT("bench", "conversation/00004711");
	return h;
}

static void contest_detach(void *handle)
{
	struct handle *h = handle;
	baton_fleet_leave(h->fleet);
	free(h);
}

static void contest_take(void *handle)
{
	struct handle *h = handle;
	struct baton_claim_ask ask = {.subject = &h->subject, .until = BATON_MONO_NEVER};
	must(baton_claim_wait(h->fleet, &ask, &h->claim, NULL));
}

static void contest_give(void *handle)
{
	struct handle *h = handle;
	must(baton_claim_release(&h->claim));
}

const struct lock_kind lock_contest = {
	.make = contest_make,
	.unmake = contest_unmake,
	.attach = contest_attach,
	.detach = contest_detach,
	.take = contest_take,
	.give = contest_give,
};
