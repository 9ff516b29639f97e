/* Put before src/runner/detach.c in the tests' own build of it: whatever threads can see of each
 * other there goes through the walk, which decides who goes on. */
#ifndef RUNNER_STEPS_H
#define RUNNER_STEPS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

uint64_t walk_load(const _Atomic uint64_t *word);
bool walk_swap(_Atomic uint64_t *word, uint64_t *expected, uint64_t next);
int walk_lock(pthread_mutex_t *mu);
int walk_unlock(pthread_mutex_t *mu);
int walk_wait(pthread_cond_t *cond, pthread_mutex_t *mu);
int walk_broadcast(pthread_cond_t *cond);

#ifdef RUNNER_STEPS
#undef atomic_load_explicit
#undef atomic_compare_exchange_strong_explicit
#define atomic_load_explicit(word, order) walk_load(word)
#define atomic_compare_exchange_strong_explicit(word, expected, next, won, lost) \
	walk_swap(word, expected, next)
#define pthread_mutex_lock walk_lock
#define pthread_mutex_unlock walk_unlock
#define pthread_cond_wait walk_wait
#define pthread_cond_broadcast walk_broadcast
#endif

#endif
