/* The thread that takes the core's requests to the store. */
#include "runner/clerk.h"

#include "base/fail.h"

static bool next(struct clerk *clerk)
{
	pthread_mutex_lock(&clerk->mu);
	while (!clerk->asked && !clerk->quit)
		pthread_cond_wait(&clerk->changed, &clerk->mu);
	bool asked = clerk->asked;
	clerk->asked = false;
	pthread_mutex_unlock(&clerk->mu);
	return asked;
}

static void *work(void *arg)
{
	struct clerk *clerk = arg;
	while (next(clerk)) {
		carry_out(&clerk->carrier, &clerk->request, &clerk->answer);
		inbox_answered(clerk->inbox);
	}
	return NULL;
}

enum baton_err clerk_init(struct clerk *clerk, struct inbox *inbox,
                          const struct carrier_options *options)
{
	*clerk = (struct clerk){.inbox = inbox};
	pthread_mutex_init(&clerk->mu, NULL);
	pthread_cond_init(&clerk->changed, NULL);
	enum baton_err e = carrier_init(&clerk->carrier, options);
	if (e != BATON_OK)
		return e;
	int errnum = pthread_create(&clerk->thread, NULL, work, clerk);
	if (errnum != 0)
		return fail_errno(errnum, "starting a thread for the store");
	clerk->runs = true;
	return BATON_OK;
}

void clerk_done(struct clerk *clerk)
{
	if (!clerk->inbox)
		return;
	pthread_mutex_lock(&clerk->mu);
	clerk->quit = true;
	pthread_cond_signal(&clerk->changed);
	pthread_mutex_unlock(&clerk->mu);
	if (clerk->runs)
		pthread_join(clerk->thread, NULL);
	carrier_done(&clerk->carrier);
	pthread_cond_destroy(&clerk->changed);
	pthread_mutex_destroy(&clerk->mu);
	clerk->inbox = NULL;
}

void clerk_ask(struct clerk *clerk, const struct core_request *request)
{
	pthread_mutex_lock(&clerk->mu);
	clerk->request = *request;
	clerk->asked = true;
	pthread_cond_signal(&clerk->changed);
	pthread_mutex_unlock(&clerk->mu);
}
