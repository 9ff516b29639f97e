/* A lock between processes that outlives whoever holds it. */
#include "contest/lock.h"

#include <errno.h>
#include <linux/futex.h>
#include <time.h>

#include "base/check.h"
#include "base/fail.h"
#include "base/process.h"

/* How often to stand behind others who go on: a second. */
#define ROUNDS 100

static int mutex_make(pthread_mutex_t *mutex)
{
	pthread_mutexattr_t attr;
	int err = pthread_mutexattr_init(&attr);
	if (err != 0)
		return err;
	err = pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	if (err == 0)
		err = pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	if (err == 0)
		err = pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_NORMAL);
	if (err == 0)
		err = pthread_mutex_init(mutex, &attr);
	pthread_mutexattr_destroy(&attr);
	return err;
}

int lock_kind(void)
{
	pthread_mutex_t sample;
	CHECK(mutex_make(&sample) == 0);
	int kind = sample.__data.__kind;
	pthread_mutex_destroy(&sample);
	return kind;
}

enum baton_err lock_init(struct lock *l)
{
	int err = mutex_make(&l->mutex);
	return err == 0 ? BATON_OK : fail_errno(err, "a lock between processes cannot be made");
}

#ifdef __has_feature
#if __has_feature(thread_sanitizer)
#define LOCK_BY_TRYING
#endif
#endif

#ifdef LOCK_BY_TRYING
/* ThreadSanitizer does not know pthread_mutex_clocklock(), and takes the unlock for a mistake. */
static int mutex_lock_soon(pthread_mutex_t *mutex)
{
	int err = EBUSY;
	for (int i = 0; i < 100 && err == EBUSY; i++) {
		nanosleep(&(struct timespec){.tv_nsec = PATIENCE_NS / 100}, NULL);
		err = pthread_mutex_trylock(mutex);
	}
	return err == EBUSY ? ETIMEDOUT : err;
}
#else
static int mutex_lock_soon(pthread_mutex_t *mutex)
{
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += PATIENCE_NS;
	if (until.tv_nsec >= 1000 * NS_PER_MS) {
		until.tv_sec++;
		until.tv_nsec -= 1000 * NS_PER_MS;
	}
	return pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &until);
}
#endif

/* Whether whoever has the mutex wants to go on and has no processor: such a one is not in the way
 * on purpose. */
static bool holder_runs(const pthread_mutex_t *mutex)
{
	int word = __atomic_load_n(&mutex->__data.__lock, __ATOMIC_RELAXED);
	return process_is_runnable((int32_t)((unsigned)word & FUTEX_TID_MASK));
}

static int mutex_lock_patiently(struct lock *l)
{
	int err = pthread_mutex_trylock(&l->mutex);
	for (int i = 0; i < ROUNDS && (err == EBUSY || err == ETIMEDOUT); i++) {
		uint32_t turns = atomic_load(&l->turns);
		err = mutex_lock_soon(&l->mutex);
		if (err == ETIMEDOUT && atomic_load(&l->turns) == turns && !holder_runs(&l->mutex))
			break;
	}
	return err;
}

enum baton_err lock_take(const struct view *v, struct lock *l, bool *ret_orphaned)
{
	/* The C library ends the process over a mutex that it does not understand. */
	int err = EINVAL;
	if (__atomic_load_n(&l->mutex.__data.__kind, __ATOMIC_RELAXED) == v->lock_kind)
		err = mutex_lock_patiently(l);
	*ret_orphaned = err == EOWNERDEAD;
	if (err == EOWNERDEAD)
		err = pthread_mutex_consistent(&l->mutex);
	if (err == ETIMEDOUT)
		return fail(BATON_BUSY,
		            "a process that uses the fleet '%.200s' has been in the way for 10 ms; "
		            "it may be stopped: try again",
		            v->segment.path);
	if (err != 0)
		return fail(BATON_INVALID, "the fleet '%.200s' is damaged: a lock in it is none",
		            v->segment.path);
	atomic_fetch_add(&l->turns, 1);
	return BATON_OK;
}

void lock_give(struct lock *l)
{
	pthread_mutex_unlock(&l->mutex);
}
