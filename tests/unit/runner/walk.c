/* Every order in which a few calls on one machine can meet, one after the other.
 *
 * Each call is a coroutine that stops before every step that others can see: a load or swap of the
 * word, and taking the lock. A schedule is the list of who went on at each stop; the next one has
 * the same beginning and another turn at the last stop where there is one left. */
#include "walk.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <baton/detach.h>

#include "base/check.h"
#include "steps.h"

#define STACK (32 * 1024)
#define STEPS_MAX 128

enum phase {
	PHASE_NEW = 1,
	PHASE_READY,
	PHASE_LOCKING,
	PHASE_WAITING,
	PHASE_DONE
};

struct strand {
	enum phase phase;
	ucontext_t context;
	char *stack;
};

/* The one walk that is under way. The calls under test have no way to carry it. */
static struct {
	struct walk *walk;
	ucontext_t scheduler;
	struct strand strands[WALK_CALLS_MAX];
	size_t current;
	bool active; /* a schedule is being run; else steps are nothing */
	bool locked;
	unsigned char turns[STEPS_MAX];   /* which of the calls that could go on did */
	unsigned char choices[STEPS_MAX]; /* how many could                          */
	size_t depth;
} now;

static void stop(enum phase phase)
{
	if (!now.active)
		return;
	struct strand *s = &now.strands[now.current];
	s->phase = phase;
	swapcontext(&s->context, &now.scheduler);
}

uint64_t walk_load(const _Atomic uint64_t *word)
{
	stop(PHASE_READY);
	return atomic_load(word);
}

bool walk_swap(_Atomic uint64_t *word, uint64_t *expected, uint64_t next)
{
	stop(PHASE_READY);
	bool attaches = (*expected & 3) == BATON_DETACHED && (next & 3) == BATON_ATTACHED;
	if (now.active && now.walk->blind && attaches) {
		atomic_store(word, next);
		return true;
	}
	return atomic_compare_exchange_strong(word, expected, next);
}

int walk_lock(pthread_mutex_t *mu)
{
	(void)mu;
	stop(PHASE_LOCKING);
	CHECK(!now.locked);
	now.locked = true;
	return 0;
}

int walk_unlock(pthread_mutex_t *mu)
{
	(void)mu;
	CHECK(now.locked);
	now.locked = false;
	return 0;
}

int walk_wait(pthread_cond_t *cond, pthread_mutex_t *mu)
{
	(void)cond;
	CHECK(now.active);
	walk_unlock(mu);
	stop(PHASE_WAITING);
	now.locked = true;
	return 0;
}

int walk_broadcast(pthread_cond_t *cond)
{
	(void)cond;
	for (size_t i = 0; i < WALK_CALLS_MAX; i++)
		if (now.strands[i].phase == PHASE_WAITING)
			now.strands[i].phase = PHASE_LOCKING;
	return 0;
}

static void strand_main(void)
{
	struct walk_call *call = &now.walk->calls[now.current];
	call->run(call->arg);
	now.strands[now.current].phase = PHASE_DONE;
}

static void strand_begin(struct strand *s)
{
	s->phase = PHASE_NEW;
	getcontext(&s->context);
	s->context.uc_stack.ss_sp = s->stack;
	s->context.uc_stack.ss_size = STACK;
	s->context.uc_link = &now.scheduler;
	makecontext(&s->context, strand_main, 0);
}

/* Whether a call of the same kind has to begin before. */
static bool has_elder(const struct strand *s)
{
	size_t i = (size_t)(s - now.strands);
	const struct walk_call *calls = now.walk->calls;
	return i > 0 && calls[i - 1].kind == calls[i].kind && s[-1].phase == PHASE_NEW;
}

static bool can_go_on(const struct strand *s)
{
	switch (s->phase) {
	case PHASE_NEW:
		return !has_elder(s);
	case PHASE_READY:
		return true;
	case PHASE_LOCKING:
		return !now.locked;
	case PHASE_WAITING:
	case PHASE_DONE:
		return false;
	}
	return false;
}

static unsigned done_mask(void)
{
	unsigned mask = 0;
	for (size_t i = 0; i < now.walk->count; i++)
		if (now.strands[i].phase == PHASE_DONE)
			mask |= 1u << i;
	return mask;
}

/* Lets one call go on to its next stop. False: none can. */
static bool schedule_step(size_t step)
{
	size_t able[WALK_CALLS_MAX];
	unsigned char count = 0;
	for (size_t i = 0; i < now.walk->count; i++)
		if (can_go_on(&now.strands[i]))
			able[count++] = i;
	if (count == 0)
		return false;
	CHECK(step < STEPS_MAX);
	if (step == now.depth)
		now.turns[now.depth++] = 0;
	now.choices[step] = count;
	now.current = able[now.turns[step]];
	struct strand *s = &now.strands[now.current];
	if (s->phase == PHASE_NEW) {
		now.walk->calls[now.current].started_after = done_mask();
		swapcontext(&now.scheduler, &s->context); /* to its first stop */
	}
	if (can_go_on(s))
		swapcontext(&now.scheduler, &s->context);
	return true;
}

static void schedule_run(void)
{
	now.walk->begin(now.walk->arg);
	for (size_t i = 0; i < now.walk->count; i++)
		strand_begin(&now.strands[i]);
	now.active = true;
	for (size_t step = 0; schedule_step(step); step++)
		;
	now.active = false;
	CHECK(done_mask() == (1u << now.walk->count) - 1);
}

/* False: that was the last one. */
static bool schedule_next(void)
{
	while (now.depth > 0 && now.turns[now.depth - 1] + 1 == now.choices[now.depth - 1])
		now.depth--;
	if (now.depth == 0)
		return false;
	now.turns[now.depth - 1]++;
	return true;
}

unsigned long walk_all(struct walk *walk)
{
	memset(&now, 0, sizeof now);
	now.walk = walk;
	for (size_t i = 0; i < walk->count; i++) {
		now.strands[i].stack = malloc(STACK);
		CHECK(now.strands[i].stack != NULL);
	}
	unsigned long schedules = 0;
	bool going = true;
	while (going) {
		schedule_run();
		schedules++;
		going = walk->end(walk->arg) && schedule_next();
	}
	for (size_t i = 0; i < walk->count; i++)
		free(now.strands[i].stack);
	return schedules;
}
