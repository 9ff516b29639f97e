/* The thread that waits until there may be work. */
#include "runner/ear.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fail.h"

#define PAUSE_MS 1000 /* after a failure; the loop notices by itself that the store is away */

static void rest(struct ear *ear)
{
	struct baton_mono until =
		baton_mono_add(ear->clock->now(ear->clock), baton_duration_ms(PAUSE_MS));
	while (atomic_load_explicit(&ear->quit, memory_order_acquire) == 0 &&
	       ear->clock->now(ear->clock).ns < until.ns)
		ear->clock->wait(ear->clock, (const uint32_t *)&ear->quit, 0, until);
}

static void *work(void *arg)
{
	struct ear *ear = arg;
	struct baton_store_time told = {0};
	const struct baton_store_wait wait = {
		.until = BATON_MONO_NEVER,
		.cancel = (const uint32_t *)&ear->quit,
		.told = &told,
	};
	uint64_t seen = 0;
	while (atomic_load_explicit(&ear->quit, memory_order_acquire) == 0) {
		enum baton_err e = baton_store_wait(ear->store, &wait, &seen);
		if (e == BATON_OK)
			inbox_news(ear->inbox);
		else if (e != BATON_CANCELLED)
			rest(ear);
	}
	return NULL;
}

enum baton_err ear_init(struct ear *ear, struct inbox *inbox, struct baton_store *store,
                        const struct baton_clock *clock)
{
	*ear = (struct ear){.inbox = inbox, .store = store, .clock = clock};
	int errnum = pthread_create(&ear->thread, NULL, work, ear);
	if (errnum != 0)
		return fail_errno(errnum, "starting a thread that waits for work");
	ear->runs = true;
	return BATON_OK;
}

void ear_done(struct ear *ear)
{
	if (!ear->runs)
		return;
	atomic_store_explicit(&ear->quit, 1, memory_order_release);
	syscall(SYS_futex, &ear->quit, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	baton_store_poke(ear->store);
	pthread_join(ear->thread, NULL);
	ear->runs = false;
}
