/* Merges what several threads want to write into one commit. */
#include "store/sqlite/group.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fail.h"

enum {
	WAITING,
	ASLEEP,
	LEADER,
	DONE
};

void group_init(struct group *g, void (*commit)(void *store, struct request *list), void *store)
{
	pthread_mutex_init(&g->mu, NULL);
	g->head = NULL;
	g->tail = &g->head;
	g->leading = false;
	g->commit = commit;
	g->store = store;
}

void group_done(struct group *g)
{
	pthread_mutex_destroy(&g->mu);
}

/* Pairs with the load in request_wait(): what was written before is seen by the one who waits. */
static void request_set(struct request *r, uint32_t state)
{
	uint32_t before = __atomic_exchange_n(&r->state, state, __ATOMIC_ACQ_REL);
	if (before == ASLEEP)
		syscall(SYS_futex, &r->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static uint32_t request_wait(struct request *r)
{
	uint32_t state = __atomic_load_n(&r->state, __ATOMIC_ACQUIRE);
	while (state == WAITING || state == ASLEEP) {
		if (state == WAITING &&
		    !__atomic_compare_exchange_n(&r->state, &state, ASLEEP, false, __ATOMIC_ACQ_REL,
		                                 __ATOMIC_ACQUIRE))
			continue;
		syscall(SYS_futex, &r->state, FUTEX_WAIT_PRIVATE, ASLEEP, NULL, NULL, 0);
		state = __atomic_load_n(&r->state, __ATOMIC_ACQUIRE);
	}
	return state;
}

static void append_locked(struct group *g, struct request *r)
{
	r->next = NULL;
	*g->tail = r;
	g->tail = &r->next;
}

static void prepend_locked(struct group *g, struct request *r)
{
	r->next = g->head;
	g->head = r;
	if (!r->next)
		g->tail = &r->next;
}

static struct request *take_all(struct group *g)
{
	pthread_mutex_lock(&g->mu);
	struct request *list = g->head;
	g->head = NULL;
	g->tail = &g->head;
	pthread_mutex_unlock(&g->mu);
	return list;
}

static void pass_on(struct group *g)
{
	pthread_mutex_lock(&g->mu);
	struct request *next = g->head;
	g->leading = next != NULL;
	pthread_mutex_unlock(&g->mu);
	if (next)
		request_set(next, LEADER);
}

static void lead(struct group *g, struct request *own)
{
	struct request *list = take_all(g);
	g->commit(g->store, list);
	pass_on(g);
	while (list) {
		struct request *r = list;
		list = r->next; /* read before it is done: then it may be gone */
		if (r != own)
			request_set(r, DONE);
	}
}

enum baton_err group_do(struct group *g, struct request *r)
{
	r->state = WAITING;
	r->detail[0] = '\0';
	pthread_mutex_lock(&g->mu);
	if (r->first)
		prepend_locked(g, r);
	else
		append_locked(g, r);
	bool leads = !g->leading;
	g->leading = true;
	pthread_mutex_unlock(&g->mu);
	if (leads || request_wait(r) == LEADER)
		lead(g, r);
	if (r->err != BATON_OK && r->detail[0])
		fail_detail("%s", r->detail);
	return r->err;
}
