/* Merges what several threads want to write into one commit. */
#include "store/group.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fail.h"

void group_init(struct group *g, void (*commit)(void *store, struct request *list), void *store)
{
	*g = (struct group){.tail = &g->head, .number = 1, .commit = commit, .store = store};
	pthread_mutex_init(&g->mu, NULL);
}

void group_done(struct group *g)
{
	pthread_mutex_destroy(&g->mu);
}

/* Pairs with await(): what was written before is seen by those who wait. */
static void announce(uint32_t *word, uint32_t value, int sleepers)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
	if (sleepers > 0)
		syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, sleepers, NULL, NULL, 0);
}

/* Until the word has that value or a later one. */
static void await(uint32_t *word, uint32_t value)
{
	for (;;) {
		uint32_t seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);
		if ((int32_t)(seen - value) >= 0)
			return;
		syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
	}
}

static void add_locked(struct group *g, struct request *r)
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

static struct request *take_all(struct group *g, uint32_t *ret_number)
{
	pthread_mutex_lock(&g->mu);
	struct request *list = g->head;
	*ret_number = g->number++;
	g->previous = g->size;
	g->size = 0;
	g->head = NULL;
	g->tail = &g->head;
	pthread_mutex_unlock(&g->mu);
	return list;
}

static void pass_on(struct group *g)
{
	pthread_mutex_lock(&g->mu);
	struct request *next = g->size > 0 ? g->leader : NULL;
	g->leading = next != NULL;
	pthread_mutex_unlock(&g->mu);
	if (next)
		announce(&next->leads, 1, 1);
}

static void lead(struct group *g)
{
	uint32_t number;
	gather(g);
	struct request *list = take_all(g, &number);
	bool alone = !list->next;
	g->commit(g->store, list);
	announce(&g->done[number % 2], number, alone ? 0 : INT_MAX);
	pass_on(g);
}

enum baton_err group_do(struct group *g, struct request *r)
{
	r->leads = 0;
	r->detail[0] = '\0';
	pthread_mutex_lock(&g->mu);
	bool begins = g->size == 0;
	if (begins)
		g->leader = r;
	add_locked(g, r);
	uint32_t number = g->number;
	bool now = !g->leading;
	g->leading = true;
	pthread_mutex_unlock(&g->mu);
	if (begins && !now)
		await(&r->leads, 1);
	if (begins)
		lead(g);
	else
		await(&g->done[number % 2], number);
	if (r->err != BATON_OK && r->detail[0])
		fail_detail("%s", r->detail);
	return r->err;
}
