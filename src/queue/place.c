/* Which of a queue's shards a lane belongs to. */
#include "queue/place.h"

#include "base/check.h"
#include "base/digest.h"
#include "queue/line.h"

#define BYTES 7

uint32_t place_of_lane(struct baton_str queue, struct baton_str lane, uint32_t shards)
{
	char text[2 * BATON_NAME_MAX + 1];
	uint8_t digest[DIGEST_SIZE];
	CHECK(queue.len <= BATON_NAME_MAX && lane.len <= BATON_NAME_MAX && shards > 0);
	memcpy(text, queue.ptr, queue.len);
	text[queue.len] = '\0';
	memcpy(text + queue.len + 1, lane.ptr, lane.len);
	digest_bytes(text, queue.len + 1 + lane.len, digest);
	uint64_t number = 0;
	for (int i = 0; i < BYTES; i++)
		number = number << 8 | digest[i];
	return (uint32_t)(number % shards);
}

uint32_t place_of_line(struct baton_str queue, struct baton_str name, uint32_t shards)
{
	uint32_t shard;
	if (line_is_sited(name, &shard))
		return shard % shards;
	return place_of_lane(queue, line_is_keyed(name) ? line_key(name) : name, shards);
}
