/* The queues of a store: what is asked for is checked here, and kept by the backend. */
#include <baton/queue.h>

#include "base/hash.h"
#include "queue/batch.h"
#include "store/store.h"

enum baton_err baton_queue_change(struct baton_store *store, struct baton_str name,
                                  const struct baton_queue_policy *policy, uint32_t fields)
{
	enum baton_err e = store_enter(store);
	if (e == BATON_OK)
		e = batch_check_queue(name);
	return e == BATON_OK ? store->ops->queue_set(store, name, policy, fields, false) : e;
}

enum baton_err baton_queue_set(struct baton_store *store, struct baton_str name,
                               const struct baton_queue_policy *policy)
{
	return baton_queue_change(store, name, policy, BATON_POLICY_ALL);
}

enum baton_err baton_queue_pause(struct baton_store *store, struct baton_str name, bool paused)
{
	struct baton_queue_policy policy = baton_queue_policy_default();
	policy.paused = paused;
	enum baton_err e = store_enter(store);
	if (e == BATON_OK)
		e = batch_check_queue(name);
	if (e != BATON_OK)
		return e;
	return store->ops->queue_set(store, name, &policy, BATON_POLICY_PAUSED, true);
}

enum baton_err baton_queue_get(struct baton_store *store, struct baton_str name,
                               struct baton_queue_info *ret_info)
{
	enum baton_err e = store_enter(store);
	if (e == BATON_OK)
		e = batch_check_queue(name);
	return e == BATON_OK ? store->ops->queue_get(store, name, ret_info) : e;
}

enum baton_err baton_queue_list(struct baton_store *store, struct baton_str after,
                                struct baton_queue_info *infos, size_t max, size_t *ret_count)
{
	enum baton_err e = store_enter(store);
	if (e == BATON_OK && after.len > 0)
		e = batch_check_queue(after);
	return e == BATON_OK ? store->ops->queue_list(store, after, infos, max, ret_count) : e;
}

uint64_t baton_queue_hash(const struct baton_store *store, struct baton_str name)
{
	return hash_bytes(&store->name, name.ptr, name.len);
}
