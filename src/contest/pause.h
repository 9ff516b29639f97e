/* Sleeping until one of several words changes, and waking whoever sleeps on one. */
#ifndef CONTEST_PAUSE_H
#define CONTEST_PAUSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* A word and what it was when it was last looked at. */
struct spot {
	const void *word; /* 32 bits; NULL: nothing to wait for */
	uint32_t seen;
	bool mine; /* nobody outside of this process uses the word */
};

#define PAUSE_SPOTS_MAX 66

/* This moment on a clock, in ns. */
static inline int64_t now_on(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* This moment on the boot clock, in ns. */
static inline int64_t pause_now(void)
{
	return now_on(CLOCK_BOOTTIME);
}

/* Sleeps until one of the words is not what was seen and its futex is woken, until `until` on the
 * boot clock, or for no reason at all. `plain`, or an old kernel: it notices only the first word at
 * once, and returns every few milliseconds. */
void pause_until(const struct spot *spots, size_t count, int64_t until, bool plain);

/* Wakes up to `count` of those that sleep on the word. */
void pause_wake(const void *word, int count, bool mine);

#endif
