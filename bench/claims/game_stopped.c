/* A process is stopped where it is in the way of others: how long they stand behind it. */
#include <err.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <baton/claim.h>

#include "claims/arena.h"
#include "claims/game.h"
#include "claims/locks.h"
#include "claims/sleeper.h"
#include "contest/index.h"
#include "contest/lock.h"
#include "contest/member.h"
#include "contest/subjects.h"

/* One that holds, and two in line, of which the first is stopped. */
struct line {
	void *made;
	void *handle;
	struct sleeper *first, *second;
};

static void *waiter_attach(const void *arg)
{
	const struct line *l = arg;
	return lock_contest.attach(l->made);
}

static void *line_setup(enum player who, const struct load *load)
{
	(void)load;
	if (who != PLAYER_CONTEST)
		return NULL;
	struct line *l = arena_new(sizeof *l);
	struct sleeper_job job = {
		.attach = waiter_attach,
		.wait = lock_contest.take,
		.after = lock_contest.give,
		.arg = l,
	};
	l->made = lock_contest.make();
	l->first = sleeper_start(&job);
	l->second = sleeper_start(&job);
	l->handle = lock_contest.attach(l->made);
	return l;
}

static void line_teardown(void *state)
{
	struct line *l = state;
	sleeper_free(l->first);
	sleeper_free(l->second);
	lock_contest.detach(l->handle);
	lock_contest.unmake(l->made);
	free(l);
}

static double line_sample(void *state)
{
	struct line *l = state;
	lock_contest.take(l->handle);
	sleeper_ask(l->first);
	peer_stop(sleeper_peer(l->first));
	sleeper_ask(l->second);
	int64_t gave = arena_now();
	lock_contest.give(l->handle);
	int64_t held = sleeper_woke_at(l->second);
	peer_continue(sleeper_peer(l->first));
	sleeper_woke_at(l->first);
	return (double)(held - gave);
}

/* A subject that nobody has yet, and a process that is stopped while it has the lock under which it
 * would get its place. */
struct locked {
	char path[PATH_MAX];
	struct baton_fleet *fleet;
	struct baton_subject subject;
	_Atomic uint32_t *has_it; /* shared */
	struct peer holder;
};

static void holder_main(void *arg)
{
	struct locked *l = arg;
	struct baton_fleet *fleet = arena_join(l->path, "stopped", 0);
	struct key key = key_make(fleet->view, &l->subject);
	bool orphaned;
	must(lock_take(fleet->view, &index_shard(fleet->view, key.hash)->lock, &orphaned));
	word_set(l->has_it, 1);
	for (;;)
		pause();
}

static void *locked_setup(enum player who, const struct load *load)
{
	(void)load;
	if (who != PLAYER_CONTEST)
		return NULL;
	struct locked *l = arena_new(sizeof *l);
	arena_path(l->path);
	l->subject = (struct baton_subject)BATON_SUBJECT("bench", "conversation/00004711");
	l->has_it = arena_share(sizeof *l->has_it);
	l->fleet = arena_join(l->path, "bench", 0);
	l->holder = peer_start(holder_main, l);
	word_await(l->has_it, 1, &l->holder);
	peer_stop(&l->holder);
	return l;
}

static void locked_teardown(void *state)
{
	struct locked *l = state;
	peer_end(&l->holder);
	baton_fleet_leave(l->fleet);
	munmap(l->has_it, sizeof *l->has_it);
	free(l);
}

static double locked_sample(void *state)
{
	struct locked *l = state;
	struct baton_claim_ask ask = {.subject = &l->subject};
	struct baton_claim claim;
	int64_t asked = arena_now();
	enum baton_err e = baton_claim_try(l->fleet, &ask, &claim, NULL);
	int64_t answered = arena_now();
	if (e != BATON_BUSY)
		errx(1, "behind a stopped process: %s", baton_strerror(e));
	return (double)(answered - asked);
}

const struct game game_stopped_line = {
	.setup = line_setup,
	.sample = line_sample,
	.teardown = line_teardown,
};

const struct game game_stopped_lock = {
	.setup = locked_setup,
	.sample = locked_sample,
	.teardown = locked_teardown,
};
