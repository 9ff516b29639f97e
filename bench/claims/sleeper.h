/* A process that waits for something on command, and says when it got it. */
#ifndef BENCH_CLAIMS_SLEEPER_H
#define BENCH_CLAIMS_SLEEPER_H

#include "claims/peer.h"

/* What it waits for. */
struct sleeper_job {
	void *(*attach)(const void *arg); /* called once, in that process                   */
	void (*wait)(void *handle);       /* returns when it has what it waits for          */
	void (*after)(void *handle);      /* gives it back; may be NULL                     */
	const void *arg;
};

struct sleeper;

/* Returns once it is attached. */
struct sleeper *sleeper_start(const struct sleeper_job *job);
void sleeper_free(struct sleeper *s);

/* Lets it wait. Returns once it is asleep over that. */
void sleeper_ask(struct sleeper *s);

/* Returns when it got what it waited for, once it has given that back. */
int64_t sleeper_woke_at(struct sleeper *s);

const struct peer *sleeper_peer(const struct sleeper *s);

#endif
