/* The thread that asks the store for the leases of singletons: one call at a time. */
#ifndef RUNNER_USHER_H
#define RUNNER_USHER_H

#include <pthread.h>
#include <stddef.h>

#include <baton/clock.h>
#include <baton/owner.h>
#include <baton/store.h>

#include "runner/inbox.h"
#include "runner/seat.h"

#define USHER_SUBJECT (BATON_NAME_MAX + 1)

struct usher_request {
	size_t seat;
	enum seat_kind kind;
	struct baton_str subject; /* outlives the thread */
	struct baton_duration ttl;
	struct baton_lease lease; /* to be renewed or released */
};

struct usher_answer {
	size_t seat;
	enum baton_err err;
	char why[256];
	struct baton_lease lease;
	struct baton_mono sent;
};

struct usher {
	struct inbox *inbox; /* [const] woken with each answer */
	struct baton_store *store;
	const struct baton_clock *clock;
	struct baton_owner owner; /* [const] an incarnation of its own */
	pthread_t thread;
	bool runs;
	pthread_mutex_t mu;
	pthread_cond_t changed;
	bool quit, asked, answered;   /* [mu] */
	struct usher_request request; /* [mu] */
	struct usher_answer answer;   /* [mu] */
};

/* `name`: what others are told about who holds a lease. */
enum baton_err usher_init(struct usher *usher, struct inbox *inbox, struct baton_store *store,
                          struct baton_str name);

/* Waits for a call that is under way, as long as it takes. Fine for a zeroed one. */
void usher_done(struct usher *usher);

/* Nothing is under way. */
void usher_ask(struct usher *usher, const struct usher_request *request);

/* Whether there is an answer, which is taken. */
bool usher_answered(struct usher *usher, struct usher_answer *ret);

#endif
