/* The thread that asks the store for the leases of singletons. */
#include "runner/usher.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "store/store.h"

/* Looks first, because a look does not wait for others who write. */
static enum baton_err claim(struct usher *u, const struct usher_request *r,
                            struct baton_lease *ret_lease)
{
	struct baton_lease_holder holder;
	const struct baton_lease_ask ask = {
		.subject = r->subject,
		.owner = &u->owner,
		.ttl = r->ttl,
		.reentrant = true, /* an answer may have been lost */
	};
	struct baton_lease_answer answer;
	enum baton_err e = baton_lease_inspect(u->store, r->subject, &holder);
	if (e == BATON_OK && !baton_id_equal(&holder.owner.incarnation, &u->owner.incarnation) &&
	    !baton_owner_is_dead(&u->owner, &holder.owner, u->store->reach))
		return BATON_YIELD;
	if (e == BATON_OK || e == BATON_NOT_HELD)
		e = baton_lease_claim(u->store, &ask, 1, &answer);
	if (e != BATON_OK)
		return e;
	*ret_lease = answer.lease;
	return answer.err;
}

static enum baton_err change(struct usher *u, const struct usher_request *r,
                             struct baton_lease *lease)
{
	const struct baton_lease_proof proof = {r->subject, lease};
	enum baton_err answer;
	enum baton_err e = r->kind == SEAT_RENEW
	                           ? baton_lease_renew(u->store, &proof, 1, r->ttl, false, &answer)
	                           : baton_lease_release(u->store, &proof, 1, &answer);
	return e == BATON_OK ? answer : e;
}

static void carry(struct usher *u, const struct usher_request *r, struct usher_answer *ret)
{
	*ret = (struct usher_answer){
		.seat = r->seat,
		.lease = r->lease,
		.sent = u->clock->now(u->clock),
	};
	ret->err = r->kind == SEAT_CLAIM ? claim(u, r, &ret->lease) : change(u, r, &ret->lease);
	if (ret->err != BATON_OK)
		snprintf(ret->why, sizeof ret->why, "%s", baton_err_detail());
}

static bool next(struct usher *u, struct usher_request *ret)
{
	pthread_mutex_lock(&u->mu);
	while (!u->asked && !u->quit)
		pthread_cond_wait(&u->changed, &u->mu);
	bool asked = u->asked;
	*ret = u->request;
	u->asked = false;
	pthread_mutex_unlock(&u->mu);
	return asked;
}

static void *work(void *arg)
{
	struct usher *u = arg;
	struct usher_request request;
	struct usher_answer answer;
	while (next(u, &request)) {
		carry(u, &request, &answer);
		pthread_mutex_lock(&u->mu);
		u->answer = answer;
		u->answered = true;
		pthread_mutex_unlock(&u->mu);
		inbox_wake(u->inbox);
	}
	return NULL;
}

enum baton_err usher_init(struct usher *u, struct inbox *inbox, struct baton_store *store,
                          struct baton_str name)
{
	*u = (struct usher){
		.inbox = inbox,
		.store = store,
		.clock = baton_clock_boot(),
		.owner = *baton_store_owner(store),
	};
	pthread_mutex_init(&u->mu, NULL);
	pthread_cond_init(&u->changed, NULL);
	if (name.len > 0 && name.len <= BATON_NAME_MAX)
		snprintf(u->owner.id, sizeof u->owner.id, "%.*s", (int)name.len, name.ptr);
	enum baton_err e = baton_id_random(&u->owner.incarnation);
	if (e != BATON_OK)
		return e;
	int errnum = pthread_create(&u->thread, NULL, work, u);
	if (errnum != 0)
		return fail_errno(errnum, "starting a thread for singletons");
	u->runs = true;
	return BATON_OK;
}

void usher_done(struct usher *u)
{
	if (!u->inbox)
		return;
	pthread_mutex_lock(&u->mu);
	u->quit = true;
	pthread_cond_signal(&u->changed);
	pthread_mutex_unlock(&u->mu);
	if (u->runs)
		pthread_join(u->thread, NULL);
	pthread_cond_destroy(&u->changed);
	pthread_mutex_destroy(&u->mu);
	u->inbox = NULL;
}

void usher_ask(struct usher *u, const struct usher_request *request)
{
	pthread_mutex_lock(&u->mu);
	u->request = *request;
	u->asked = true;
	pthread_cond_signal(&u->changed);
	pthread_mutex_unlock(&u->mu);
}

bool usher_answered(struct usher *u, struct usher_answer *ret)
{
	pthread_mutex_lock(&u->mu);
	bool answered = u->answered;
	if (answered)
		*ret = u->answer;
	u->answered = false;
	pthread_mutex_unlock(&u->mu);
	return answered;
}
