/* What a store in memory tells those who wait. */
#include "store/memory/news.h"

#include "queue/line.h"
#include "store/memory/lane.h"
#include "store/memory/queue.h"

struct baton_store_news memory_news_of_queue(const struct memory *m, struct baton_str queue)
{
	return (struct baton_store_news){.queue = baton_queue_hash(&m->store, queue)};
}

struct baton_store_news memory_news_of_lane(const struct memory *m, const struct lane *lane)
{
	return (struct baton_store_news){
		.queue = baton_queue_hash(&m->store, lane->queue->name),
		.lane = store_lane_hash(line_lane(lane->name)),
		.shard = memory_claim_shard(lane),
	};
}

static bool split(struct baton_str s, char at, struct baton_str *ret_left,
                  struct baton_str *ret_right)
{
	const char *found = s.len > 0 ? memchr(s.ptr, at, s.len) : NULL;
	if (!found)
		return false;
	*ret_left = (struct baton_str){s.ptr, (size_t)(found - s.ptr)};
	*ret_right = (struct baton_str){found + 1, s.len - ret_left->len - 1};
	return true;
}

size_t memory_news_of_peers(const struct memory *m, const struct lane *lane,
                            struct baton_store_news *ret)
{
	struct baton_str rest = lane->queue->peers, name;
	size_t count = 0;
	if (!line_is_keyed(lane->name) && !lane->queue->is.guests)
		return 0;
	while (rest.len > 0 && count < BATON_QUEUE_CLASS_MAX - 1) {
		if (!split(rest, '/', &name, &rest)) {
			name = rest;
			rest.len = 0;
		}
		ret[count++] = memory_news_of_queue(m, name);
	}
	return count;
}

bool memory_news_of_subject(const struct memory *m, struct baton_str subject,
                            struct baton_store_news *ret)
{
	struct baton_str kind, queue, name;
	if (!split(subject, '/', &kind, &queue))
		return false;
	if (baton_str_equal(kind, BATON_STR("pull")) && memory_queue_find(m, queue)) {
		*ret = memory_news_of_queue(m, queue);
		return true;
	}
	if (!baton_str_equal(kind, BATON_STR("lane")) || !split(queue, '/', &queue, &name))
		return false;
	if (queue.len > BATON_NAME_MAX || name.len > BATON_NAME_MAX)
		return false;
	const struct lane *lane = memory_lane_find(m, queue, name);
	if (lane)
		*ret = memory_news_of_lane(m, lane);
	return lane != NULL;
}
