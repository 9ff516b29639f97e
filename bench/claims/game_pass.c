/* Two processes that hand one thing back and forth.
 *
 * Holds are numbered, and whose turn the next one is stands in shared memory. Nobody asks before
 * the other one holds, and nobody lets go before the other one asks, so that every hold is handed
 * over to somebody else, whatever a kind of lock does about those who push ahead. */
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "claims/arena.h"
#include "claims/game.h"
#include "claims/locks.h"
#include "claims/sleeper.h"

/* How often to look before leaving the processor to somebody else, who may be the other one. */
#define LOOKS 200

struct board {
	_Alignas(64) _Atomic uint64_t asked; /* so many holds have been asked for */
	_Alignas(64) _Atomic uint64_t held;  /* so many have begun                */
	_Alignas(64) _Atomic uint32_t ready;
	_Alignas(64) _Atomic uint32_t turn;
	_Alignas(64) _Atomic uint32_t done; /* the turn that the peer has finished */
	uint64_t from, to;                  /* the holds of the turn               */
};

struct pass {
	const struct lock_kind *kind;
	void *made;
	void *handle; /* of the process that looks */
	struct board *board;
	uint64_t holds;
	struct peer peer;
};

static void counter_await(_Atomic uint64_t *counter, uint64_t least)
{
	for (unsigned i = 1; atomic_load_explicit(counter, memory_order_acquire) < least; i++) {
		__builtin_ia32_pause();
		if (i % LOOKS == 0)
			sched_yield();
	}
}

/* Every second hold from `first` on, up to but not including `to`. */
static void pass_on(struct pass *p, uint64_t first, uint64_t to)
{
	struct board *b = p->board;
	for (uint64_t n = first; n < to; n += 2) {
		counter_await(&b->held, n);
		atomic_store_explicit(&b->asked, n + 1, memory_order_release);
		p->kind->take(p->handle);
		atomic_store_explicit(&b->held, n + 1, memory_order_release);
		if (n + 1 < to)
			counter_await(&b->asked, n + 2);
		p->kind->give(p->handle);
	}
}

static void pass_peer(void *arg)
{
	struct pass *p = arg;
	struct board *b = p->board;
	p->handle = p->kind->attach(p->made);
	word_set(&b->ready, 1);
	for (uint32_t turn = 1;; turn++) {
		word_await(&b->turn, turn, NULL);
		pass_on(p, b->from + 1, b->to);
		word_set(&b->done, turn);
	}
}

static const struct lock_kind *kind_of(enum player who)
{
	static const struct lock_kind *const kinds[PLAYER_END] = {
		[PLAYER_CONTEST] = &lock_contest,
		[PLAYER_FLOCK] = &lock_flock,
		[PLAYER_OFD] = &lock_ofd,
		[PLAYER_MUTEX] = &lock_mutex,
	};
	return kinds[who];
}

static void *pass_setup(enum player who, const struct load *load)
{
	(void)load;
	if (!kind_of(who))
		return NULL;
	struct pass *p = arena_new(sizeof *p);
	p->kind = kind_of(who);
	p->made = p->kind->make();
	p->board = arena_share(sizeof *p->board);
	p->peer = peer_start(pass_peer, p);
	word_await(&p->board->ready, 1, &p->peer);
	p->handle = p->kind->attach(p->made);
	return p;
}

static void pass_teardown(void *state)
{
	struct pass *p = state;
	peer_end(&p->peer);
	p->kind->detach(p->handle);
	p->kind->unmake(p->made);
	munmap(p->board, sizeof *p->board);
	free(p);
}

static uint64_t pass_run(void *state, unsigned thread, uint64_t from, uint64_t ops)
{
	struct pass *p = state;
	struct board *b = p->board;
	(void)thread;
	(void)from;
	b->from = p->holds;
	b->to = p->holds + ops;
	uint32_t turn = atomic_load(&b->turn) + 1;
	word_set(&b->turn, turn);
	pass_on(p, b->from, b->to);
	word_await(&b->done, turn, &p->peer);
	p->holds += ops;
	return ops - (p->holds - atomic_load(&b->held));
}

/* One that holds, and one that sleeps in line. */
struct handover {
	const struct lock_kind *kind;
	void *made;
	void *handle;
	struct sleeper *sleeper;
};

static void *next_attach(const void *arg)
{
	const struct handover *h = arg;
	return h->kind->attach(h->made);
}

static void *handover_setup(enum player who, const struct load *load)
{
	(void)load;
	if (!kind_of(who))
		return NULL;
	struct handover *h = arena_new(sizeof *h);
	h->kind = kind_of(who);
	h->made = h->kind->make();
	h->sleeper = sleeper_start(&(struct sleeper_job){
		.attach = next_attach,
		.wait = h->kind->take,
		.after = h->kind->give,
		.arg = h,
	});
	h->handle = h->kind->attach(h->made);
	return h;
}

static void handover_teardown(void *state)
{
	struct handover *h = state;
	sleeper_free(h->sleeper);
	h->kind->detach(h->handle);
	h->kind->unmake(h->made);
	free(h);
}

static double handover_sample(void *state)
{
	struct handover *h = state;
	h->kind->take(h->handle);
	sleeper_ask(h->sleeper);
	int64_t gave = arena_now();
	h->kind->give(h->handle);
	return (double)(sleeper_woke_at(h->sleeper) - gave);
}

const struct game game_pass = {
	.setup = pass_setup,
	.run = pass_run,
	.teardown = pass_teardown,
};

const struct game game_pass_asleep = {
	.setup = handover_setup,
	.sample = handover_sample,
	.teardown = handover_teardown,
};
