/* Who hears that something was committed elsewhere: a thread, with a connection that listens if it
 * is the one that does so for the processes of its host, else with what that one repeats. */
#ifndef POSTGRES_LISTEN_H
#define POSTGRES_LISTEN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <baton/err.h>

#include "store/postgres/board.h"

struct pg_store;

struct listener {
	pthread_mutex_t mu;
	pthread_t thread;
	int end;              /* [mu] an eventfd: the thread is to end; -1: there is no thread */
	struct board board;   /* [by the thread]                                               */
	uint32_t hearer;      /* [by the thread] who hears, as far as it knows                 */
	bool shy;             /* [by the thread] its last connection came to nothing           */
	_Atomic bool listens; /* [atomic] it, or another process for it                        */
	_Atomic bool marked;  /* [atomic] as far as is known, those who commit are told to ring */
};

void listener_init(struct listener *l);

/* Ends the thread, if it is this process that has it. */
void listener_done(struct pg_store *s);

/* As store_ops.doze. */
struct baton_store;
bool pg_doze(struct baton_store *store);

#endif
