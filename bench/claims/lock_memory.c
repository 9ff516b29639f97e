/* Locks in shared memory: the C library's robust mutex, and sixteen bytes that are compared and
 * swapped. */
#include <err.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "claims/arena.h"
#include "claims/locks.h"

static void check(int error, const char *what)
{
	if (error != 0)
		errx(1, "%s: error %d", what, error);
}

static void *mutex_make(void)
{
	pthread_mutex_t *mutex = arena_share(sizeof(pthread_mutex_t));
	pthread_mutexattr_t attr;
	check(pthread_mutexattr_init(&attr), "pthread_mutexattr_init");
	check(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED), "setpshared");
	check(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST), "setrobust");
	check(pthread_mutex_init(mutex, &attr), "pthread_mutex_init");
	pthread_mutexattr_destroy(&attr);
	return mutex;
}

static void mutex_unmake(void *made)
{
	munmap(made, sizeof(pthread_mutex_t));
}

static void *same(void *made)
{
	return made;
}

static void nothing(void *handle)
{
	(void)handle;
}

static int mutex_lock(pthread_mutex_t *mutex)
{
	int error = pthread_mutex_lock(mutex);
	return error == EOWNERDEAD ? pthread_mutex_consistent(mutex) : error;
}

static void mutex_take(void *handle)
{
	check(mutex_lock(handle), "pthread_mutex_lock");
}

static void mutex_give(void *handle)
{
	check(pthread_mutex_unlock(handle), "pthread_mutex_unlock");
}

static uint64_t mutex_pairs(void *handle, uint64_t count)
{
	uint64_t done = 0;
	for (uint64_t i = 0; i < count; i++)
		done += mutex_lock(handle) == 0 && pthread_mutex_unlock(handle) == 0;
	return done;
}

/* Who holds it, counted, and until when: what the contest's word has. */
struct cell {
	_Alignas(16) union {
		struct {
			_Atomic uint64_t who;
			_Atomic uint64_t until;
		};
		unsigned __int128 both;
	};
};

static void *cas_make(void)
{
	return arena_share(sizeof(struct cell));
}

static void cas_unmake(void *made)
{
	munmap(made, sizeof(struct cell));
}

static bool cas_once(struct cell *cell, uint64_t difference)
{
	uint64_t who = atomic_load_explicit(&cell->who, memory_order_acquire);
	unsigned __int128 until = atomic_load_explicit(&cell->until, memory_order_acquire);
	return __sync_bool_compare_and_swap(&cell->both, until << 64 | who,
	                                    until << 64 | (who + difference));
}

static uint64_t cas_pairs(void *handle, uint64_t count)
{
	uint64_t done = 0;
	for (uint64_t i = 0; i < count; i++)
		done += cas_once(handle, 0x10001) && cas_once(handle, UINT64_MAX);
	return done;
}

const struct lock_kind lock_mutex = {
	.make = mutex_make,
	.unmake = mutex_unmake,
	.attach = same,
	.detach = nothing,
	.take = mutex_take,
	.give = mutex_give,
	.pairs = mutex_pairs,
};

const struct lock_kind lock_cas = {
	.make = cas_make,
	.unmake = cas_unmake,
	.attach = same,
	.detach = nothing,
	.pairs = cas_pairs,
};
