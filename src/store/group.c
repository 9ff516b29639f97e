/* Merges what several threads want to write into one commit. */
#include "store/group.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/fail.h"

#define AWAKE_NS 1000000 /* how long somebody stays awake, and lets others have the processor */
#define VAIN_WITHIN 4u   /* in vain twice in so many batches: it is no chance                 */
#define CROWDED_MIN 8u   /* for how many batches nobody does so then                          */
#define CROWDED_MAX 1024u

void group_init(struct group *g, void (*commit)(void *store, struct request *list), void *store)
{
	*g = (struct group){.tail = &g->head,
	                    .number = 1,
	                    .vain = UINT32_MAX / 2,
	                    .crowded_until = 1,
	                    .commit = commit,
	                    .store = store};
	pthread_mutex_init(&g->mu, NULL);
}

void group_done(struct group *g)
{
	pthread_mutex_destroy(&g->mu);
}

static void wake(uint32_t *word, int sleepers)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, sleepers, NULL, NULL, 0);
}

/* Pairs with announce(): what was written before is seen by those who wait. Until the word has that
 * value or a later one. */
static void await(uint32_t *word, uint32_t value)
{
	for (;;) {
		uint32_t seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);
		if ((int32_t)(seen - value) >= 0)
			return;
		syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
	}
}

static int64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static bool is_crowded(struct group *g, uint32_t number)
{
	return (int32_t)(__atomic_load_n(&g->crowded_until, __ATOMIC_RELAXED) - number) > 0;
}

/* Somebody was awake in vain. Once that is a disk that was slow for a moment, or a machine that had
 * something else to do; if it is so again at once, all sleep for some batches, and for longer each
 * time, as long as it is in vain again after that. */
static void crowd(struct group *g, uint32_t number)
{
	uint32_t last = __atomic_exchange_n(&g->vain, number, __ATOMIC_RELAXED);
	uint32_t until = __atomic_load_n(&g->crowded_until, __ATOMIC_RELAXED);
	uint32_t spell = __atomic_load_n(&g->crowded_for, __ATOMIC_RELAXED) * 2;
	/* Others of the same batch have just found the same. */
	if (last == number || number - last > VAIN_WITHIN || (int32_t)(until - number) > 0)
		return;
	if (spell < CROWDED_MIN || number - until > CROWDED_MIN)
		spell = CROWDED_MIN;
	if (spell > CROWDED_MAX)
		spell = CROWDED_MAX;
	if (__atomic_compare_exchange_n(&g->crowded_until, &until, number + spell, false,
	                                __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		__atomic_store_n(&g->crowded_for, spell, __ATOMIC_RELAXED);
}

/* To sleep and to be woken costs several times as much as to have a look whenever it is one's turn,
 * as long as it is callers who take turns, and a commit is soon done. If somebody else wants the
 * processor, who is awake waits for that one each time, while those who are woken go first. */
static void watch(struct group *g, const uint32_t *word, uint32_t number)
{
	if (is_crowded(g, number))
		return;
	int64_t until = now_ns() + AWAKE_NS;
	while ((int32_t)(__atomic_load_n(word, __ATOMIC_ACQUIRE) - number) < 0) {
		if (now_ns() > until) {
			crowd(g, number);
			return;
		}
		sched_yield();
	}
}

static uint32_t place_of_self(void)
{
	int cpu = sched_getcpu();
	return cpu < 0 ? 0 : (uint32_t)cpu % GROUP_PLACES;
}

static void push(struct group *g, struct request *r)
{
	if (r->first) {
		r->next = g->head;
		g->head = r;
		if (!r->next)
			g->tail = &r->next;
	} else {
		r->next = NULL;
		*g->tail = r;
		g->tail = &r->next;
	}
}

static void add_locked(struct group *g, struct request *r)
{
	if (r->after)
		push(g, r->after);
	push(g, r);
	g->size++;
}

static uint32_t size_of(struct group *g)
{
	pthread_mutex_lock(&g->mu);
	uint32_t size = g->size;
	pthread_mutex_unlock(&g->mu);
	return size;
}

/* Those whom the last commit has let go are about to come back: as long as more of them do, they
 * get the processor first. So they are in this batch and not in the next one. */
static void gather(struct group *g)
{
	uint32_t before = 0;
	for (uint32_t size = size_of(g); before < size && size < g->previous; size = size_of(g)) {
		before = size;
		sched_yield();
	}
}

/* A batch whose time has come. */
struct batch {
	struct request *list;
	uint32_t number;
	uint32_t sleepers[GROUP_PLACES];
};

static struct berths *berths_of(struct group *g, uint32_t number)
{
	return &g->berths[number % GROUP_BATCHES];
}

static void take_all(struct group *g, struct batch *ret)
{
	pthread_mutex_lock(&g->mu);
	struct berths *b = berths_of(g, g->number);
	ret->list = g->head;
	ret->number = g->number++;
	memcpy(ret->sleepers, b->sleepers, sizeof ret->sleepers);
	memset(b->sleepers, 0, sizeof b->sleepers);
	g->previous = g->size;
	g->size = 0;
	g->head = NULL;
	g->tail = &g->head;
	pthread_mutex_unlock(&g->mu);
}

/* To wake somebody on another processor costs several times as much as on one's own. So one is
 * woken on each of them, who wakes the others there; here all are.
 *
 * That they may go is said before that there are more: whoever wakes them, though it be a late one
 * of an earlier batch, wakes them for good. And that there are more is taken back by nobody but the
 * one who wakes all: of an earlier batch some may sleep still, and the one of this batch that is
 * woken here may be one of them. */
static void announce(struct group *g, const struct batch *batch)
{
	struct berths *b = berths_of(g, batch->number);
	uint32_t own = place_of_self();
	for (uint32_t i = 0; i < GROUP_PLACES; i++)
		__atomic_store_n(&b->done[i], batch->number, __ATOMIC_RELEASE);
	for (uint32_t i = 0; i < GROUP_PLACES; i++) {
		if (batch->sleepers[i] == 0 || i == own)
			continue;
		if (batch->sleepers[i] > 1)
			__atomic_store_n(&b->more[i], 1, __ATOMIC_RELEASE);
		wake(&b->done[i], 1);
	}
	if (batch->sleepers[own] > 0)
		wake(&b->done[own], INT_MAX);
}

static void sleep_until_done(struct group *g, uint32_t number, uint32_t place)
{
	struct berths *b = berths_of(g, number);
	watch(g, &b->done[place], number);
	await(&b->done[place], number);
	if (__atomic_load_n(&b->more[place], __ATOMIC_RELAXED) > 0 &&
	    __atomic_exchange_n(&b->more[place], 0, __ATOMIC_ACQUIRE) > 0)
		wake(&b->done[place], INT_MAX);
}

static void pass_on(struct group *g)
{
	pthread_mutex_lock(&g->mu);
	struct request *next = g->size > 0 ? g->leader : NULL;
	g->leading = next != NULL;
	pthread_mutex_unlock(&g->mu);
	if (!next)
		return;
	__atomic_store_n(&next->leads, 1, __ATOMIC_RELEASE);
	wake(&next->leads, 1);
}

static void lead(struct group *g)
{
	struct batch batch;
	gather(g);
	take_all(g, &batch);
	g->commit(g->store, batch.list);
	announce(g, &batch);
	pass_on(g);
}

enum baton_err group_do(struct group *g, struct request *r)
{
	r->leads = 0;
	r->detail[0] = '\0';
	uint32_t place = place_of_self();
	pthread_mutex_lock(&g->mu);
	bool begins = g->size == 0;
	uint32_t number = g->number;
	if (begins)
		g->leader = r;
	else
		berths_of(g, number)->sleepers[place]++;
	add_locked(g, r);
	bool now = !g->leading;
	g->leading = true;
	pthread_mutex_unlock(&g->mu);
	if (begins && !now)
		await(&r->leads, 1);
	if (begins)
		lead(g);
	else
		sleep_until_done(g, number, place);
	if (r->err != BATON_OK && r->detail[0])
		fail_detail("%s", r->detail);
	return r->err;
}
