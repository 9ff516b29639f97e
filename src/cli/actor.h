/* A thread that does what it is told, one thing after the other. */
#ifndef CLI_ACTOR_H
#define CLI_ACTOR_H

#include <pthread.h>
#include <stdbool.h>

struct actor {
	pthread_t thread;
	pthread_mutex_t mu;
	pthread_cond_t changed;
	void (*task)(void *arg); /* [mu] what it does or is about to do; NULL: nothing */
	void *arg;               /* [mu] */
	bool leaving;            /* [mu] */
};

/* Starts the thread. Returns 0, or an error number when there is none to be had. */
int actor_start(struct actor *a);

/* Has the actor call task(arg), and does not wait for it. The actor must be idle. */
void actor_tell(struct actor *a, void (*task)(void *arg), void *arg);

/* Returns when the actor is idle. What it wrote is visible to the caller. */
void actor_await(struct actor *a);

/* Ends the thread once it is idle. */
void actor_stop(struct actor *a);

#endif
