/* Threads that meet to have their wishes granted in one commit. */
#include "jobs/meeting.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

enum state {
	WAITS = 0,
	GRANTED
};

static void futex(uint32_t *word, int op, uint32_t value)
{
	syscall(SYS_futex, word, op, value, NULL, NULL, 0);
}

static void join(struct meeting *m, struct guest *guest)
{
	guest->next = __atomic_load_n(&m->waiting, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&m->waiting, &guest->next, guest, true,
	                                    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
}

static void work(struct meeting *m, void (*grant)(void *arg, struct guest *list), void *arg)
{
	for (int i = 0; i < 2; i++)
		sched_yield(); /* those who were let go are about to come back */
	struct guest *list = __atomic_exchange_n(&m->waiting, NULL, __ATOMIC_SEQ_CST);
	grant(arg, list);
	for (struct guest *g = list, *next; g; g = next) {
		next = g->next;
		__atomic_store_n(&g->state, GRANTED, __ATOMIC_RELEASE);
	}
	__atomic_add_fetch(&m->done, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&m->busy, 0, __ATOMIC_SEQ_CST);
	futex(&m->done, FUTEX_WAKE_PRIVATE, INT_MAX);
}

void meeting_come(struct meeting *m, struct guest *guest,
                  void (*grant)(void *arg, struct guest *list), void *arg)
{
	guest->state = WAITS;
	join(m, guest);
	for (;;) {
		uint32_t done = __atomic_load_n(&m->done, __ATOMIC_SEQ_CST);
		if (__atomic_load_n(&guest->state, __ATOMIC_ACQUIRE) == GRANTED)
			return;
		if (__atomic_exchange_n(&m->busy, 1, __ATOMIC_SEQ_CST) == 0) {
			if (__atomic_load_n(&guest->state, __ATOMIC_ACQUIRE) == WAITS)
				work(m, grant, arg);
			else
				__atomic_store_n(&m->busy, 0, __ATOMIC_SEQ_CST);
			continue;
		}
		futex(&m->done, FUTEX_WAIT_PRIVATE, done);
	}
}
