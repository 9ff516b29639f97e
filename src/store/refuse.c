/* What a store says when it refuses something. */
#include "store/refuse.h"

#include <inttypes.h>

#include "base/fail.h"
#include "base/quote.h"
#include "queue/line.h"
#include "queue/policy.h"

enum baton_err refuse_full(struct baton_str queue, uint64_t waiting, uint64_t max)
{
	char shown[QUOTE_TEXT];
	return fail(BATON_FULL,
	            "queue %s has %" PRIu64 " jobs waiting, and its waiting_max is %" PRIu64
	            ": put again when some are done",
	            quote(queue, shown), waiting, max);
}

enum baton_err refuse_key_full(struct baton_str queue, struct baton_str key, uint32_t max)
{
	char shown[QUOTE_TEXT], name[QUOTE_TEXT];
	return fail(BATON_FULL,
	            "key %s of queue %s has as many jobs waiting as its key_waiting_max allows, "
	            "%" PRIu32 ": put again when some are done",
	            quote(key, name), quote(queue, shown), max);
}

enum baton_err refuse_conflict(const struct baton_batch *batch, uint64_t id)
{
	char source[QUOTE_TEXT], queue[QUOTE_TEXT];
	return fail(BATON_CONFLICT,
	            "source key %s is that of job %" PRIu64 " in queue %s, which has other content",
	            quote(batch->source, source), id, quote(batch->queue, queue));
}

enum baton_err refuse_queue(struct baton_str name)
{
	char shown[QUOTE_TEXT];
	return fail(BATON_NOT_FOUND, "there is no queue %s", quote(name, shown));
}

enum baton_err refuse_batch(const struct baton_batch_id *id)
{
	char shown[QUOTE_TEXT];
	struct baton_str text = {id->text, strnlen(id->text, sizeof id->text)};
	return fail(BATON_NOT_FOUND, "there is no job %s", quote(text, shown));
}

enum baton_err refuse_schedule(struct baton_str name)
{
	char shown[QUOTE_TEXT];
	return fail(BATON_NOT_FOUND, "there is no schedule %s", quote(name, shown));
}

static const char *mode_name(enum baton_queue_mode mode)
{
	switch (mode) {
	case BATON_QUEUE_OPEN:
		return "open";
	case BATON_QUEUE_PULL:
		return "pull";
	case BATON_QUEUE_LANE:
		return "lane";
	case BATON_QUEUE_RUNNER:
		return "runner";
	}
	return "unknown";
}

static const char *scope_name(enum baton_key_scope scope)
{
	switch (scope) {
	case BATON_KEY_SCOPE_PROCESS:
		return "process";
	case BATON_KEY_SCOPE_HOST:
		return "host";
	case BATON_KEY_SCOPE_CLUSTER:
		return "cluster";
	}
	return "unknown";
}

enum baton_err refuse_scope(struct baton_str queue, const struct baton_queue_policy *policy)
{
	char shown[QUOTE_TEXT];
	return fail(
		BATON_INVALID,
		"the key_scope of queue %s is %s, so its work is for runners: nothing else lives "
		"as long as a claim, and can be counted",
		quote(queue, shown), scope_name(policy->key_scope));
}

enum baton_err refuse_mode(struct baton_str queue, enum baton_queue_mode is,
                           enum baton_queue_mode asked)
{
	char shown[QUOTE_TEXT];
	return fail(BATON_BUSY,
	            "queue %s is in %s mode, and this needs %s mode: it can be changed while "
	            "nothing is claimed",
	            quote(queue, shown), mode_name(is), mode_name(asked));
}

enum baton_err refuse_puller(struct baton_str queue, const char *holder)
{
	char shown[QUOTE_TEXT], who[QUOTE_TEXT];
	return fail(BATON_BUSY, "the work of queue %s is handed out by %s: ask there",
	            quote(queue, shown), quote(baton_str_z(holder), who));
}

enum baton_err refuse_guest(struct baton_str queue, const struct baton_batch *b, const char *so)
{
	char shown[QUOTE_TEXT];
	return fail(BATON_INVALID,
	            "%s are given, which cannot be in a queue where %s, as in %s: give one of "
	            "them, or use another queue",
	            keys_are_several(b->key) ? "several keys" : "both a lane and a key", so,
	            quote(queue, shown));
}

enum baton_err refuse_for_guests(struct baton_str queue, const char *so)
{
	char shown[QUOTE_TEXT];
	return fail(
		BATON_INVALID,
		"queue %s has jobs, and has had some with both a lane and a key, or several keys, "
		"which cannot be where %s: set that when it has no jobs any more, or use another "
		"queue",
		quote(queue, shown), so);
}

enum baton_err refuse_class(struct baton_str queue, const struct baton_queue_policy *old,
                            const struct baton_queue_policy *new, uint64_t work)
{
	char shown[QUOTE_TEXT];
	if (policy_same_class(old, new) || work == 0)
		return BATON_OK;
	return fail(BATON_BUSY,
	            "queue %s has %" PRIu64
	            " jobs: its key_class can be changed while it has none but dead ones",
	            quote(queue, shown), work);
}

enum baton_err refuse_class_mode(struct baton_str queue, const struct baton_queue_policy *policy)
{
	char shown[QUOTE_TEXT], name[QUOTE_TEXT];
	return fail(
		BATON_INVALID,
		"queue %s has key_class %s, which cannot be where the mode is lane: use another "
		"queue",
		quote(queue, shown), quote(baton_str_z(policy->key_class), name));
}

enum baton_err refuse_class_full(const struct baton_queue_policy *policy)
{
	char shown[QUOTE_TEXT];
	return fail(BATON_FULL, "key_class %s has %d queues, which is as many as it may",
	            quote(baton_str_z(policy->key_class), shown), BATON_QUEUE_CLASS_MAX);
}

enum baton_err refuse_fence(struct baton_str name)
{
	char shown[QUOTE_TEXT];
	return fail(BATON_FULL, "%s has had all the fences there are", quote(name, shown));
}

enum baton_err refuse_change(struct baton_str queue, const struct baton_queue_policy *old,
                             const struct baton_queue_policy *new, struct queue_load load)
{
	char shown[QUOTE_TEXT];
	if (new->shards != old->shards)
		return fail(BATON_INVALID,
		            "shards is %" PRIu32 ": queue %s was made with %" PRIu32
		            ", which cannot be changed",
		            new->shards, quote(queue, shown), old->shards);
	if (new->mode != old->mode && load.running > 0)
		return fail(BATON_BUSY,
		            "queue %s is in %s mode and has %" PRIu64
		            " claimed: the mode can be changed while nothing is claimed",
		            quote(queue, shown), mode_name(old->mode), load.running);
	if (new->key_scope != old->key_scope && load.work > 0)
		return fail(BATON_BUSY,
		            "the key_scope of queue %s is %s, and it has %" PRIu64
		            " jobs: that can be changed when it has none",
		            quote(queue, shown), scope_name(old->key_scope), load.work);
	return BATON_OK;
}
