/* Tells ThreadSanitizer of a lock that it does not know: without this it takes the unlock that
 * follows for a mistake. In all other builds there is nothing here. */
#include <pthread.h>

typedef int support_clocklock_is_empty;

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#include <dlfcn.h>
#include <errno.h>
#include <sanitizer/tsan_interface.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

__attribute__((visibility("default"))) int
pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until)
{
	int (*real)(pthread_mutex_t *, clockid_t, const struct timespec *) = NULL;
	*(void **)&real = dlsym(RTLD_NEXT, "pthread_mutex_clocklock");
	__tsan_mutex_pre_lock(mutex, __tsan_mutex_try_lock);
	int err = real(mutex, clock, until);
	/* The lock of one who died is ours as well. */
	bool failed = err != 0 && err != EOWNERDEAD;
	__tsan_mutex_post_lock(mutex,
	                       __tsan_mutex_try_lock | (failed ? __tsan_mutex_try_lock_failed : 0),
	                       0);
	return err;
}
#endif
#endif
