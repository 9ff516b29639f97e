/* Put before src/store/group.c in the tests' own build of it: whatever threads can see of each
 * other there goes through the walk, which decides who goes on. */
#ifndef STORE_GROUP_STEPS_H
#define STORE_GROUP_STEPS_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

uint32_t walk_load(const uint32_t *word);
void walk_store(uint32_t *word, uint32_t value);
uint32_t walk_exchange(uint32_t *word, uint32_t value);
bool walk_compare(uint32_t *word, uint32_t *expected, uint32_t value);
int walk_clock(struct timespec *ret);
int walk_lock(pthread_mutex_t *mu);
int walk_unlock(pthread_mutex_t *mu);
int walk_yield(void);
int walk_processor(void);
long walk_futex(uint32_t *word, int operation, uint32_t value);

#ifdef GROUP_STEPS
/* NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
#define __atomic_load_n(word, order) walk_load(word)
#define __atomic_store_n(word, value, order) walk_store(word, value)
#define __atomic_exchange_n(word, value, order) walk_exchange(word, value)
#define __atomic_compare_exchange_n(word, expected, value, weak, yes, no) \
	walk_compare(word, expected, value)
/* NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
#define pthread_mutex_lock walk_lock
#define pthread_mutex_unlock walk_unlock
#define sched_yield walk_yield
#define clock_gettime(clock, ret) walk_clock(ret)
#define sched_getcpu walk_processor
#define syscall(number, word, operation, value, ...) walk_futex(word, operation, (uint32_t)(value))
#endif

#endif
