/* Where runners beat: a word for each in memory that the processes of a host share. */
#ifndef STORE_BEATS_H
#define STORE_BEATS_H

#include <stdbool.h>
#include <stdint.h>

#include <baton/id.h>

#include "shm/segment.h"

#define BEATS_MAX 1024

struct beats {
	struct segment segment;
};

/* `path` NULL: in the memory of this process alone. */
enum baton_err beats_open(struct beats *b, const char *path);
void beats_close(struct beats *b);

/* The word of a slot: the incarnation's tag, and how often it has beaten. */
uint64_t beats_read(const struct beats *b, uint32_t slot);

/* The first beat of an incarnation, which makes the slot its own. */
void beats_begin(struct beats *b, uint32_t slot, const struct baton_id *incarnation);

/* One more. False: the slot is not its own any more. */
bool beats_beat(struct beats *b, uint32_t slot, const struct baton_id *incarnation);

/* Whether the slot is still its own. */
bool beats_holds(const struct beats *b, uint32_t slot, const struct baton_id *incarnation);

/* Takes the slot away from whoever had it, if it is as it was seen. */
bool beats_stop(struct beats *b, uint32_t slot, uint64_t seen);

#endif
