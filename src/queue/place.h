/* Which of a queue's shards a lane belongs to. */
#ifndef QUEUE_PLACE_H
#define QUEUE_PLACE_H

#include <stdint.h>

#include <baton/str.h>

/* The first seven bytes of SHA-256 over the queue's name, a zero and the lane's, the highest first,
 * modulo the number of shards. */
uint32_t place_of_lane(struct baton_str queue, struct baton_str lane, uint32_t shards);

/* That of a line, which a lane's name or a key gives; see line.h. Not of no line. */
uint32_t place_of_line(struct baton_str queue, struct baton_str name, uint32_t shards);

#endif
