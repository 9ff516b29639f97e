/* How the processes of a host tell each other that there is work: wake-ups through the user's
 * fleet. Where there is none, whoever waits looks at the store now and then, and finds it a little
 * later. */
#ifndef CLI_BELL_H
#define CLI_BELL_H

#include <pthread.h>
#include <stdbool.h>

#include <baton.h>

#define BELL_QUEUES_MAX BATON_RUNNER_SERVES_MAX

/* Begins as zeros. */
struct bell {
	bool verbose; /* say on standard error what is heard, and what does not work */
	bool tried;   /* to join the fleet */
	struct baton_fleet *fleet;
	struct baton_listener *listener;
	struct baton_store *store; /* the one that is poked */
	struct baton_cancel cancel;
	pthread_t thread;
};

/* What a store calls when something in it has become ready: it tells those who listen. */
struct baton_store_hook bell_hook(struct bell *bell);

/* Has every baton_store_wait() on `store` look again when another process has put work into
 * one of the queues, until bell_done(). It is no failure if that does not work. */
void bell_listen(struct bell *bell, struct baton_store *store, const struct baton_str *queues,
                 size_t count);

void bell_done(struct bell *bell);

#endif
