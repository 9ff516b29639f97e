/* One job that a command looks at. */
#include <stdlib.h>
#include <sysexits.h>

#include "lookup.h"

int lookup(const struct store *store, const struct baton_batch_id *id,
           struct baton_work_page **ret_page)
{
	enum baton_err e = baton_work_get(store->handle, id, ret_page);
	if (e == BATON_NOT_FOUND) {
		complain("there is no job %s: it was never put, is done, or was cancelled",
		         id->text);
		return EXIT_FAILURE;
	}
	return e == BATON_OK ? EX_OK : store_fail(store, e);
}

struct baton_work_page *lookup_ahead(const struct store *store, const struct baton_work_info *info)
{
	struct baton_work_page *page = NULL;
	if (info->ahead.text[0] != '\0')
		baton_work_get(store->handle, &info->ahead, &page);
	return page;
}

bool lookup_stalled(const struct store *store, const struct baton_work_info *info,
                    struct baton_stalled *ret)
{
	bool waits = info->why == BATON_WHY_DELAYED || info->why == BATON_WHY_RETRY ||
	             info->why == BATON_WHY_RATE;
	bool due = waits && baton_store_time_ready(info->due, baton_store_now(store->handle));
	return (info->why == BATON_WHY_READY || due) &&
	       baton_stall_look(store->handle, info, ret) == BATON_OK;
}

int lookup_no_queue(struct baton_str queue)
{
	char shown[SHOWN_MAX];
	complain("there is no queue '%s'; 'baton queue list' has those there are",
	         show(queue.ptr, shown));
	return EXIT_FAILURE;
}
