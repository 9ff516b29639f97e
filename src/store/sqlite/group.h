/* Merges what several threads want to write into one commit.
 *
 * There is no thread of its own: whoever comes while nobody is at work leads, and does his own
 * request and those that came meanwhile; then he makes one of those that came since the leader. */
#ifndef SQLITE_GROUP_H
#define SQLITE_GROUP_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <baton/err.h>

struct request {
	/* Does the work inside of the transaction. May be called again after a rollback. */
	enum baton_err (*run)(void *store, void *args);
	void *args;
	bool first;  /* goes before the others: a renewal */
	bool fences; /* may hand out a fence */
	struct request *next;
	uint32_t state; /* [atomic] a futex */
	enum baton_err err;
	char detail[512]; /* of a failure, for the caller's thread */
};

struct group {
	pthread_mutex_t mu;
	struct request *head, **tail; /* [mu] those that wait */
	bool leading;                 /* [mu] */
	/* Does all of them in one transaction and sets their err and detail. [const] */
	void (*commit)(void *store, struct request *list);
	void *store; /* [const] */
};

void group_init(struct group *g, void (*commit)(void *store, struct request *list), void *store);
void group_done(struct group *g);

/* Returns once the request was done: request->err. */
enum baton_err group_do(struct group *g, struct request *request);

#endif
