/* The singleton that puts what schedules have due. */
#ifndef RUNNER_TICKER_H
#define RUNNER_TICKER_H

#include <baton/log.h>
#include <baton/singleton.h>
#include <baton/store.h>

#define TICKER_NAME "schedule"

struct ticker {
	struct baton_store *store;
	const struct baton_log *log;
};

/* `ticker` outlives the singleton. */
struct baton_singleton ticker_singleton(struct ticker *ticker);

#endif
