/* The thread that waits until there may be work. */
#ifndef RUNNER_EAR_H
#define RUNNER_EAR_H

#include <pthread.h>

#include <baton/clock.h>
#include <baton/store.h>

#include "runner/inbox.h"

struct ear {
	struct inbox *inbox;             /* [const] */
	struct baton_store *store;       /* [const] */
	const struct baton_clock *clock; /* [const] the store's */
	pthread_t thread;                /* [loop] */
	bool runs;                       /* [loop] */
	_Atomic uint32_t quit;           /* [atomic] a futex */
};

enum baton_err ear_init(struct ear *ear, struct inbox *inbox, struct baton_store *store,
                        const struct baton_clock *clock);
void ear_done(struct ear *ear);

#endif
