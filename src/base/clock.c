/* Where the time comes from: the system's clocks. */
#include <baton/clock.h>

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"

#define NS_PER_S 1000000000
#define NS_PER_MS 1000000
#define MS_PER_S 1000

/* The longest time that a wait on the boot clock trusts the awake clock, on which futexes count. */
#define BOOT_SLICE_NS (100 * (int64_t)NS_PER_MS)

static struct timespec read_clock(clockid_t id)
{
	struct timespec t;
	CHECK(clock_gettime(id, &t) == 0);
	return t;
}

static struct baton_mono mono_now(clockid_t id)
{
	struct timespec t = read_clock(id);
	return (struct baton_mono){(int64_t)t.tv_sec * NS_PER_S + t.tv_nsec};
}

static struct baton_store_time wall(const struct baton_clock *self)
{
	(void)self;
	struct timespec t = read_clock(CLOCK_REALTIME);
	return (struct baton_store_time){(int64_t)t.tv_sec * MS_PER_S + t.tv_nsec / NS_PER_MS};
}

static struct timespec timespec_of(int64_t ns)
{
	return (struct timespec){.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};
}

/* Returns whether the wait ended because its time was over. `t` NULL waits without a limit; it is
 * absolute for FUTEX_WAIT_BITSET and relative for FUTEX_WAIT. */
static bool futex_wait(int op, const uint32_t *word, uint32_t seen, const struct timespec *t)
{
	long rc = syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, seen, t, NULL,
	                  FUTEX_BITSET_MATCH_ANY);
	if (rc == 0)
		return false;
	/* Anything else would have the caller look again for ever. */
	CHECK(errno == EAGAIN || errno == EINTR || errno == ETIMEDOUT);
	return errno == ETIMEDOUT;
}

static struct baton_mono awake_now(const struct baton_clock *self)
{
	(void)self;
	return mono_now(CLOCK_MONOTONIC);
}

static void awake_wait(const struct baton_clock *self, const uint32_t *word, uint32_t seen,
                       struct baton_mono until)
{
	(void)self;
	struct timespec t = timespec_of(until.ns > 0 ? until.ns : 0);
	bool never = until.ns == BATON_MONO_NEVER.ns;
	futex_wait(FUTEX_WAIT_BITSET, word, seen, never ? NULL : &t);
}

static struct baton_mono boot_now(const struct baton_clock *self)
{
	(void)self;
	return mono_now(CLOCK_BOOTTIME);
}

static void boot_wait(const struct baton_clock *self, const uint32_t *word, uint32_t seen,
                      struct baton_mono until)
{
	if (until.ns == BATON_MONO_NEVER.ns) {
		futex_wait(FUTEX_WAIT, word, seen, NULL);
		return;
	}
	for (;;) {
		struct baton_mono now = boot_now(self);
		if (until.ns <= now.ns)
			return;
		int64_t left = until.ns - now.ns;
		struct timespec t = timespec_of(left < BOOT_SLICE_NS ? left : BOOT_SLICE_NS);
		if (!futex_wait(FUTEX_WAIT, word, seen, &t))
			return;
	}
}

const struct baton_clock *baton_clock_awake(void)
{
	static const struct baton_clock awake = {
		.now = awake_now,
		.wall = wall,
		.wait = awake_wait,
	};
	return &awake;
}

const struct baton_clock *baton_clock_boot(void)
{
	static const struct baton_clock boot = {
		.now = boot_now,
		.wall = wall,
		.wait = boot_wait,
	};
	return &boot;
}
