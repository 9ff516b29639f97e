/* A clock that stands still until the test moves it. */
#include "support/fake_clock.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WALL_2026_MS INT64_C(1767225600000)
#define NS_PER_MS 1000000

/* A thread inside wait(), on its own stack. */
struct fake_waiter {
	struct fake_waiter *next;
	struct baton_mono until;
};

/* Sleeps until *word is not `seen` or is woken, or the time has moved since `moves`. Two words at
 * once, so that there is no moment at which one of the two can be missed. Returns whether it was
 * *word. */
static bool sleep_on(const uint32_t *word, uint32_t seen, const uint32_t *moves,
                     uint32_t moves_seen)
{
	struct futex_waitv on[] = {
		{.uaddr = (uintptr_t)word, .val = seen, .flags = FUTEX_32 | FUTEX_PRIVATE_FLAG},
		{.uaddr = (uintptr_t)moves,
	         .val = moves_seen,
	         .flags = FUTEX_32 | FUTEX_PRIVATE_FLAG},
	};
	long woken = syscall(SYS_futex_waitv, on, 2, 0, NULL, 0);
	if (woken < 0 && errno != EAGAIN && errno != EINTR) {
		perror("futex_waitv");
		abort();
	}
	return woken == 0;
}

static unsigned blocked(const struct fake_clock *c)
{
	unsigned n = 0;
	for (const struct fake_waiter *w = c->waiters; w != NULL; w = w->next)
		n += w->until.ns > c->now.ns;
	return n;
}

static void leave(struct fake_clock *c, struct fake_waiter *waiter)
{
	struct fake_waiter **at = &c->waiters;
	while (*at != waiter)
		at = &(*at)->next;
	*at = waiter->next;
}

static void fake_wait(const struct baton_clock *self, const uint32_t *word, uint32_t seen,
                      struct baton_mono until)
{
	struct fake_clock *c = (struct fake_clock *)self;
	struct fake_waiter waiter = {.until = until};
	bool woken = false;

	pthread_mutex_lock(&c->mu);
	waiter.next = c->waiters;
	c->waiters = &waiter;
	pthread_cond_broadcast(&c->changed);
	while (!woken && until.ns > c->now.ns && __atomic_load_n(word, __ATOMIC_ACQUIRE) == seen) {
		/* Read under the mutex, where it changes together with the time. */
		uint32_t moves = __atomic_load_n(&c->moves, __ATOMIC_RELAXED);
		pthread_mutex_unlock(&c->mu);
		woken = sleep_on(word, seen, &c->moves, moves);
		pthread_mutex_lock(&c->mu);
	}
	leave(c, &waiter);
	pthread_mutex_unlock(&c->mu);
}

static struct baton_mono fake_now(const struct baton_clock *self)
{
	struct fake_clock *c = (struct fake_clock *)self;
	pthread_mutex_lock(&c->mu);
	struct baton_mono now = c->now;
	pthread_mutex_unlock(&c->mu);
	return now;
}

static struct baton_store_time fake_wall(const struct baton_clock *self)
{
	struct fake_clock *c = (struct fake_clock *)self;
	pthread_mutex_lock(&c->mu);
	int64_t passed_ms = (c->now.ns - c->wall_since.ns) / NS_PER_MS;
	struct baton_store_time wall = {c->wall.ms + passed_ms};
	pthread_mutex_unlock(&c->mu);
	return wall;
}

void fake_clock_init(struct fake_clock *c, struct baton_mono now)
{
	*c = (struct fake_clock){
		.clock = {.now = fake_now, .wall = fake_wall, .wait = fake_wait},
		.now = now,
		.wall = {WALL_2026_MS},
		.wall_since = now,
	};
	pthread_mutex_init(&c->mu, NULL);
	pthread_cond_init(&c->changed, NULL);
}

void fake_clock_done(struct fake_clock *c)
{
	if (c->waiters != NULL) {
		fprintf(stderr, "fake_clock: ended while a thread waits on it\n");
		abort();
	}
	pthread_cond_destroy(&c->changed);
	pthread_mutex_destroy(&c->mu);
}

void fake_clock_advance(struct fake_clock *c, struct baton_duration d)
{
	pthread_mutex_lock(&c->mu);
	c->now = baton_mono_add(c->now, d);
	__atomic_add_fetch(&c->moves, 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&c->mu);
	syscall(SYS_futex, &c->moves, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT_MAX, NULL, NULL, 0);
}

void fake_clock_set_wall(struct fake_clock *c, struct baton_store_time wall)
{
	pthread_mutex_lock(&c->mu);
	c->wall = wall;
	c->wall_since = c->now;
	pthread_mutex_unlock(&c->mu);
}

void fake_clock_wait_blocked(struct fake_clock *c, unsigned n)
{
	pthread_mutex_lock(&c->mu);
	while (blocked(c) < n)
		pthread_cond_wait(&c->changed, &c->mu);
	pthread_mutex_unlock(&c->mu);
}
