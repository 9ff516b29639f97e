/* The thread that lets connections in: it is a backend of the broker, and hands what comes to the
 * loop. A broker that hangs keeps this thread waiting, and nobody else. */
#ifndef RUNNER_PORTER_H
#define RUNNER_PORTER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <baton/backend.h>
#include <baton/log.h>

#include "runner/inbox.h"

/* The service of all runners: who asks for a lane need not name it. */
#define PORTER_SERVICE "lanes"
#define PORTER_WAITING 256 /* connections that the loop has not taken yet */

struct porter_options {
	const struct baton_alloc *alloc;
	const struct baton_log *log;
	const char *folder;     /* of the broker; NULL: the usual one */
	struct baton_str owner; /* the runner's name */
	struct inbox *inbox;    /* is woken */
};

struct porter {
	struct inbox *inbox;           /* [const] */
	struct baton_backend *backend; /* [const] but for what its thread does with it */
	int wake;                      /* [const] an eventfd, for the thread; -1: not open */
	pthread_t thread;              /* [loop] */
	bool runs;                     /* [loop] */
	pthread_mutex_t mu;
	bool quit;                                        /* [mu] */
	struct baton_connection *waiting[PORTER_WAITING]; /* [mu] a ring */
	uint32_t first, count;                            /* [mu] */
};

/* Opens an endpoint, and looks for a broker from now on. Fine if there is none yet.
 *
 * BATON_INVALID: the broker's folder. BATON_SYSTEM, BATON_NO_MEMORY. porter_done() is fine all the
 * same, also for a zeroed one. */
enum baton_err porter_init(struct porter *p, const struct porter_options *options);

/* Ends the thread, which may wait for a broker for some seconds, and closes what is waiting. */
void porter_done(struct porter *p);

/* Where clients reconnect. */
struct baton_str porter_endpoint(const struct porter *p);

/* The next connection, which is the caller's, and was not welcomed yet; NULL: none now. */
struct baton_connection *porter_next(struct porter *p);

#endif
