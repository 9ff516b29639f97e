/* How the processes of a host tell each other that there is work. */
#include <string.h>
#include <unistd.h>

#include "bell.h"
#include "out.h"

#define NEWS_MAX 16

static void mute(const struct bell *bell, const char *why)
{
	if (bell->verbose)
		complain("no wake-ups between processes: %s", why);
}

static void join(struct bell *bell)
{
	const struct baton_fleet_options options = {.owner = BATON_STR("baton")};
	bell->tried = true;
	if (baton_fleet_join(&options, &bell->fleet) != BATON_OK)
		mute(bell, baton_err_detail());
}

/* Without a fleet nobody listens, so none is made: whoever makes it looks at the store afterwards,
 * and what this is about is there already. */
static void join_those_there(struct bell *bell)
{
	char path[BATON_FLEET_PATH_MAX + 1];
	if (baton_fleet_default(path) != BATON_OK)
		bell->tried = true;
	else if (access(path, F_OK) == 0)
		join(bell);
}

static void on_news(void *arg, const struct baton_store_news *news, size_t count)
{
	struct bell *bell = arg;
	if (!bell->tried)
		join_those_there(bell);
	for (size_t i = 0; i < count && bell->fleet; i++) {
		const struct baton_wakeup wakeup = {
			.queue = news[i].queue,
			.lane = news[i].lane,
			.shard = news[i].shard,
		};
		baton_wakeup_publish(bell->fleet, &wakeup, 1);
	}
}

struct baton_store_hook bell_hook(struct bell *bell)
{
	return (struct baton_store_hook){.call = on_news, .arg = bell};
}

static void *listen_on(void *arg)
{
	struct bell *bell = arg;
	struct baton_wakeup wakeups[NEWS_MAX];
	enum baton_err e;
	do {
		struct baton_wakeup_news news = {.wakeups = wakeups, .max = NEWS_MAX};
		e = baton_listener_wait(bell->listener, BATON_MONO_NEVER, &bell->cancel, &news);
		if (e == BATON_OK && bell->verbose)
			complain("woken by another process");
		baton_store_poke(bell->store);
	} while (e == BATON_OK);
	return NULL;
}

static bool listener_open(struct bell *bell, const struct baton_str *queues, size_t count)
{
	struct baton_wakeup_interest interests[BELL_QUEUES_MAX];
	for (size_t i = 0; i < count; i++)
		interests[i] = (struct baton_wakeup_interest){
			.queue = baton_queue_hash(bell->store, queues[i]),
			.shard = BATON_WAKEUP_ANY_SHARD,
		};
	if (!bell->tried)
		join(bell);
	if (!bell->fleet)
		return false;
	if (baton_listener_open(bell->fleet, interests, count, &bell->listener) == BATON_OK)
		return true;
	mute(bell, baton_err_detail());
	return false;
}

void bell_listen(struct bell *bell, struct baton_store *store, const struct baton_str *queues,
                 size_t count)
{
	bell->store = store;
	if (!listener_open(bell, queues, count))
		return;
	int errnum = pthread_create(&bell->thread, NULL, listen_on, bell);
	if (errnum == 0 && bell->verbose)
		complain("listening for wake-ups");
	if (errnum == 0)
		return;
	mute(bell, strerror(errnum));
	baton_listener_close(bell->listener);
	bell->listener = NULL;
}

void bell_done(struct bell *bell)
{
	if (bell->listener) {
		baton_cancel(&bell->cancel);
		pthread_join(bell->thread, NULL);
	}
	baton_listener_close(bell->listener);
	baton_fleet_leave(bell->fleet);
	bell->listener = NULL;
	bell->fleet = NULL;
}
