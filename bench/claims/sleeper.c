/* A process that waits for something on command, and says when it got it. */
#include "claims/sleeper.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "claims/arena.h"

/* What both processes see. */
struct board {
	int64_t at;             /* when it got what it waited for, the last time */
	_Atomic uint32_t ready; /* 1: it is attached                             */
	_Atomic uint32_t asked; /* how often it was told to wait                 */
	_Atomic uint32_t waits; /* how often it has begun to                     */
	_Atomic uint32_t woke;  /* how often it got what it waited for           */
};

struct sleeper {
	struct sleeper_job job;
	struct board *board;
	struct peer peer;
};

static void sleeper_main(void *arg)
{
	const struct sleeper *s = arg;
	struct board *b = s->board;
	void *handle = s->job.attach(s->job.arg);
	word_set(&b->ready, 1);
	for (uint32_t n = 1;; n++) {
		word_await(&b->asked, n, NULL);
		atomic_store(&b->waits, n);
		s->job.wait(handle);
		b->at = arena_now();
		if (s->job.after)
			s->job.after(handle);
		word_set(&b->woke, n);
	}
}

struct sleeper *sleeper_start(const struct sleeper_job *job)
{
	struct sleeper *s = arena_new(sizeof *s);
	s->job = *job;
	s->board = arena_share(sizeof *s->board);
	s->peer = peer_start(sleeper_main, s);
	word_await(&s->board->ready, 1, &s->peer);
	return s;
}

void sleeper_free(struct sleeper *s)
{
	peer_end(&s->peer);
	munmap(s->board, sizeof *s->board);
	free(s);
}

void sleeper_ask(struct sleeper *s)
{
	uint32_t n = atomic_load(&s->board->asked) + 1;
	word_set(&s->board->asked, n);
	while (atomic_load(&s->board->waits) != n)
		peer_check(&s->peer);
	peer_await_sleep(&s->peer);
}

int64_t sleeper_woke_at(struct sleeper *s)
{
	word_await(&s->board->woke, atomic_load(&s->board->asked), &s->peer);
	return s->board->at;
}

const struct peer *sleeper_peer(const struct sleeper *s)
{
	return &s->peer;
}
