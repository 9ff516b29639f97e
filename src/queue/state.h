/* What can happen to a batch, and what it is afterwards. */
#ifndef QUEUE_STATE_H
#define QUEUE_STATE_H

#include <baton/batch.h>

enum batch_event {
	EVENT_PUT = 1,   /* ready at once                                       */
	EVENT_PUT_LATER, /* with a delay                                        */
	EVENT_DUE,       /* its time has come                                   */
	EVENT_CLAIM,     /* also of what was claimed by one who lost it         */
	EVENT_COMPLETE,  /* and nothing is kept                                 */
	EVENT_KEEP,      /* completed, and its result is kept                   */
	EVENT_FAIL,      /* and there is another attempt                        */
	EVENT_DIE,       /* failed, or lost, for the last time                  */
	EVENT_ABANDON,   /* given back, or lost with its owner                  */
	EVENT_SNOOZE,    /* given back for later                                */
	EVENT_CANCEL,
	EVENT_ABANDON_CANCELLED, /* given back, failed or lost after somebody cancelled it */
	EVENT_REVIVE,
	EVENT_FORGET, /* what was kept of it has had its time                      */
	EVENT_SKIP,   /* gives way to another of its key                           */
	EVENT_END
};

/* The state after the event; 0: it cannot happen in that state. BATON_BATCH_GONE is also the state
 * of what was never there. */
enum baton_batch_state batch_next(enum baton_batch_state state, enum batch_event event);

/* What others are shown: what was skipped is stored as done, with the id of whom it gave way to,
 * which is 0 for all others. */
static inline enum baton_batch_state batch_shown(enum baton_batch_state state, uint64_t by)
{
	return state == BATON_BATCH_DONE && by > 0 ? BATON_BATCH_SKIPPED : state;
}

#endif
