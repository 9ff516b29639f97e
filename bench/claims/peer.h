/* Another process of a bench: forked, told what to do through memory that both share, and ended
 * when the bench ends, however that happens. */
#ifndef BENCH_CLAIMS_PEER_H
#define BENCH_CLAIMS_PEER_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

struct peer {
	pid_t pid;
	int stat; /* its /proc/PID/stat */
};

/* Forks. The child runs body(arg), and exits if that returns. */
struct peer peer_start(void (*body)(void *arg), void *arg);

/* Kills it and waits for its end. */
void peer_end(struct peer *p);

/* Returns once the peer's first thread sleeps in the kernel. */
void peer_await_sleep(const struct peer *p);

/* Stops it, and returns once it is. */
void peer_stop(const struct peer *p);
void peer_continue(const struct peer *p);

/* Ends the program if the peer has ended, which it should not. */
void peer_check(const struct peer *p);

/* A word in shared memory that one side sets and the other waits for. */
void word_set(_Atomic uint32_t *word, uint32_t value);

/* Sleeps until the word has that value, or a later one. `p`: who will set it; NULL: whoever started
 * this one. */
void word_await(_Atomic uint32_t *word, uint32_t value, const struct peer *p);

#endif
