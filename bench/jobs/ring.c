/* How processes of the bench tell each other that there is work. */
#include "jobs/ring.h"

#include <err.h>
#include <pthread.h>

#include <baton/queue.h>
#include <baton/wakeup.h>

#include "claims/arena.h"

static void publish(void *arg, const struct baton_store_news *news, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct baton_wakeup wakeup = {news[i].queue, news[i].lane, news[i].shard};
		must(baton_wakeup_publish(arg, &wakeup, 1));
	}
}

struct baton_store_hook ring_hook(struct baton_fleet *fleet)
{
	return (struct baton_store_hook){publish, fleet};
}

struct listening {
	struct baton_listener *listener;
	struct baton_store *store;
};

static void *listen_on(void *arg)
{
	const struct listening *l = arg;
	struct baton_wakeup wakeups[16];
	struct baton_wakeup_news news = {.wakeups = wakeups, .max = 16};
	while (baton_listener_wait(l->listener, BATON_MONO_NEVER, NULL, &news) == BATON_OK)
		baton_store_poke(l->store);
	return NULL;
}

void ring_listen(const char *fleet, struct baton_store *store)
{
	const struct baton_wakeup_interest interest = {baton_queue_hash(store, BATON_STR("bench")),
	                                               BATON_WAKEUP_ANY_SHARD};
	struct listening *l = arena_new(sizeof *l);
	pthread_t thread;
	l->store = store;
	must(baton_listener_open(arena_join(fleet, "waiter", 0), &interest, 1, &l->listener));
	if (pthread_create(&thread, NULL, listen_on, l) != 0)
		errx(1, "cannot start a thread");
}
