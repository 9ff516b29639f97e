/* Who of a host's processes listens for them all, and what it has heard: a segment of memory that
 * they share.
 *
 * It has a place for each database, with a seat that one process has at a time, for as long as it
 * says often enough that it lives, and a ring on which that one repeats what it is told. All of it
 * is advice: who is not told, or by two, looks by himself. */
#ifndef POSTGRES_BOARD_H
#define POSTGRES_BOARD_H

#include <stdbool.h>
#include <stdint.h>

#include <baton/id.h>

#include "shm/ring.h"
#include "shm/segment.h"

#define BOARD_TTL_MS 1500
#define BOARD_BEAT_MS 400

struct board_place;

/* A handle of one thread, but for board_nudge(). */
struct board {
	struct segment segment;
	struct board_place *at; /* NULL: none                                    */
	struct ring_reader reader;
	uint32_t seat; /* what this handle's seat is known by; 0: it has none */
};

/* Finds the place of the database with that key. Where no memory can be shared, or it is full, the
 * board is this process's own. False: there is no memory at all. */
bool board_open(struct board *b, uint64_t key);
void board_close(struct board *b);

/* Takes the seat. False: somebody else has it. */
bool board_sit(struct board *b);

/* Keeps it, and says whether he who has it hears now. False: it was taken away. */
bool board_keep(struct board *b, bool hears);

/* Gives it back. */
void board_rise(struct board *b);

/* Whether somebody has the seat, and for how long; and what is known of him if he hears, else 0. */
bool board_is_taken(const struct board *b, uint32_t *ret_left_ms);
uint32_t board_hearer(const struct board *b);

/* Tells all others that somebody has rung. */
void board_ring(struct board *b, const struct baton_id *who);

/* Whether there was a ring since the last call; *ret_others: one of somebody else than `self`. */
bool board_heard(struct board *b, const struct baton_id *self, bool *ret_others);

/* What board_wait() compares; waiting until it has changed, or the time is over. */
uint32_t board_bell(const struct board *b);
void board_wait(struct board *b, uint32_t bell, uint32_t timeout_ms);

/* Ends every board_wait(). Any thread. */
void board_nudge(struct board *b);

#endif
