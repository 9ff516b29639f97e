/* Names for things that must never be confused with one another. */
#ifndef BATON_ID_H
#define BATON_ID_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <baton/api.h>
#include <baton/err.h>
#include <baton/str.h>

BATON_BEGIN

/* 128 bits: an incarnation, a run, a nonce. */
struct baton_id {
	uint8_t bytes[16];
};

/* A number that only ever grows for its subject. 0 is no fence. Always below 2^53. */
typedef struct {
	uint64_t v;
} baton_fence;

/* Draws an id from the system's random source.
 *
 * BATON_SYSTEM: there is none; *ret is untouched. Any thread. */
BATON_API enum baton_err baton_id_random(struct baton_id *ret);

static inline bool baton_id_equal(const struct baton_id *a, const struct baton_id *b)
{
	return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

/* Room for what baton_id_print() writes, with the terminator. */
#define BATON_ID_TEXT 33

/* Writes 32 lower-case hexadecimal digits. Returns `text`. */
BATON_API char *baton_id_print(const struct baton_id *id, char text[BATON_ID_TEXT]);

/* Reads 32 hexadecimal digits of either case.
 *
 * BATON_INVALID: anything else; *ret is untouched. Any thread. */
BATON_API enum baton_err baton_id_parse(struct baton_str text, struct baton_id *ret);

BATON_END

#endif
