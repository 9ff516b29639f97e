/* Sleeping until one of several words changes. */
#include "contest/pause.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "contest/layout.h"

/* How long a sleep lasts at most where only one word can be waited for. */
#define PLAIN_NS (2 * NS_PER_MS)

#define NS_PER_S (1000 * NS_PER_MS)

static struct timespec timespec_of(int64_t ns)
{
	return (struct timespec){.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};
}

static void pause_plain(const struct spot *spot, int64_t left)
{
	struct timespec t = timespec_of(left < PLAIN_NS ? left : PLAIN_NS);
	int op = FUTEX_WAIT | (spot->mine ? FUTEX_PRIVATE_FLAG : 0);
	syscall(SYS_futex, spot->word, op, spot->seen, &t, NULL, 0);
}

void pause_until(const struct spot *spots, size_t count, int64_t until, bool plain)
{
	int64_t left = until - pause_now();
	if (left <= 0)
		return;
	if (left > BACKSTOP_NS)
		left = BACKSTOP_NS;
	if (plain) {
		pause_plain(&spots[0], left);
		return;
	}
	struct futex_waitv waits[PAUSE_SPOTS_MAX];
	unsigned used = 0;
	for (size_t i = 0; i < count && used < PAUSE_SPOTS_MAX; i++) {
		if (spots[i].word == NULL)
			continue;
		waits[used++] = (struct futex_waitv){
			.uaddr = (uintptr_t)spots[i].word,
			.val = spots[i].seen,
			.flags = FUTEX_32 | (spots[i].mine ? FUTEX_PRIVATE_FLAG : 0u),
		};
	}
	struct timespec t = timespec_of(now_on(CLOCK_MONOTONIC) + left);
	if (syscall(SYS_futex_waitv, waits, used, 0, &t, CLOCK_MONOTONIC) < 0 && errno == ENOSYS)
		pause_plain(&spots[0], left);
}

void pause_wake(const void *word, int count, bool mine)
{
	syscall(SYS_futex, word, FUTEX_WAKE | (mine ? FUTEX_PRIVATE_FLAG : 0), count, NULL, NULL,
	        0);
}
