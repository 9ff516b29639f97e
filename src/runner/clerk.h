/* The thread that takes the core's requests to the store, one at a time: a call may take long, or
 * never return, and the runner's loop has to act in time all the same. */
#ifndef RUNNER_CLERK_H
#define RUNNER_CLERK_H

#include <pthread.h>

#include "runner/carry.h"
#include "runner/inbox.h"

struct clerk {
	struct carrier carrier; /* [clerk] while a request is under way, else [loop] */
	struct inbox *inbox;    /* [const] */
	pthread_t thread;       /* [loop] */
	bool runs;              /* [loop] */
	pthread_mutex_t mu;
	pthread_cond_t changed;
	bool asked, quit;            /* [mu] */
	struct core_request request; /* [loop] writes before `asked`, [clerk] reads after it */
	struct core_answer answer;   /* the other way round: after inbox_answered() [loop] */
};

/* Starts the thread. clerk_done() is fine after a failure. */
enum baton_err clerk_init(struct clerk *clerk, struct inbox *inbox,
                          const struct carrier_options *options);

/* Waits for a call that is under way, as long as it takes. */
void clerk_done(struct clerk *clerk);

/* Has it done; inbox_answered() follows, and clerk->answer is there. None is under way. */
void clerk_ask(struct clerk *clerk, const struct core_request *request);

#endif
