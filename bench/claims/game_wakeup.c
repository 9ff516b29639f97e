/* One process wakes another that sleeps. */
#include <err.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <baton/wakeup.h>

#include "claims/arena.h"
#include "claims/game.h"
#include "claims/sleeper.h"

#define QUEUE UINT64_C(0x5eed)
#define SHARD 7

struct call {
	char path[PATH_MAX];       /* of the contest's fleet, ...                        */
	struct baton_fleet *fleet; /* ... of which the caller is a member                */
	_Atomic uint32_t *word;    /* shared: what the bare futex counts, or NULL        */
	uint32_t count;            /* what the listener has seen of it                   */
	struct sleeper *listener;
};

static void *listener_attach(const void *arg)
{
	const struct call *c = arg;
	struct baton_fleet *fleet = arena_join(c->path, "listener", 0);
	struct baton_wakeup_interest interest = {QUEUE, SHARD};
	struct baton_listener *listener;
	must(baton_listener_open(fleet, &interest, 1, &listener));
	return listener;
}

static void listener_wait(void *handle)
{
	struct baton_wakeup heard[4];
	struct baton_wakeup_news news = {.wakeups = heard, .max = 4};
	must(baton_listener_wait(handle, BATON_MONO_NEVER, NULL, &news));
	if (news.count != 1 || news.missed)
		errx(1, "one wake-up came as %zu", news.count);
}

static void *futex_attach(const void *arg)
{
	struct call *own = arena_new(sizeof *own);
	*own = *(const struct call *)arg;
	return own;
}

static void futex_wait(void *handle)
{
	struct call *c = handle;
	while (atomic_load(c->word) == c->count)
		syscall(SYS_futex, c->word, FUTEX_WAIT, c->count, NULL, NULL, 0);
	c->count = atomic_load(c->word);
}

static void *call_setup(enum player who, const struct load *load)
{
	(void)load;
	if (who != PLAYER_CONTEST && who != PLAYER_FUTEX)
		return NULL;
	struct call *c = arena_new(sizeof *c);
	struct sleeper_job contest = {.attach = listener_attach, .wait = listener_wait, .arg = c};
	struct sleeper_job futex = {.attach = futex_attach, .wait = futex_wait, .arg = c};
	if (who == PLAYER_FUTEX) {
		c->word = arena_share(sizeof *c->word);
		c->listener = sleeper_start(&futex);
		return c;
	}
	arena_path(c->path);
	c->listener = sleeper_start(&contest);
	c->fleet = arena_join(c->path, "caller", 0);
	return c;
}

static void call_teardown(void *state)
{
	struct call *c = state;
	sleeper_free(c->listener);
	baton_fleet_leave(c->fleet);
	if (c->word)
		munmap(c->word, sizeof *c->word);
	free(c);
}

static double call_sample(void *state)
{
	struct call *c = state;
	struct baton_wakeup wakeup = {.queue = QUEUE, .lane = 1, .shard = SHARD};
	sleeper_ask(c->listener);
	int64_t called = arena_now();
	if (c->word) {
		atomic_fetch_add(c->word, 1);
		syscall(SYS_futex, c->word, FUTEX_WAKE, 1, NULL, NULL, 0);
	} else {
		must(baton_wakeup_publish(c->fleet, &wakeup, 1));
	}
	return (double)(sleeper_woke_at(c->listener) - called);
}

const struct game game_wakeup = {
	.setup = call_setup,
	.sample = call_sample,
	.teardown = call_teardown,
};
