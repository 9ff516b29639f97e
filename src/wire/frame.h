/* Frames on a stream: one byte version, a 32-bit length with its lowest byte first, a body. */
#ifndef WIRE_FRAME_H
#define WIRE_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <baton/alloc.h>
#include <baton/err.h>
#include <baton/str.h>

#define WIRE_FRAME_VERSION 1
#define WIRE_FRAME_HEAD 5
#define WIRE_FRAME_MAX (16u << 20)
#define WIRE_HELLO_MAX (64u << 10)

/* Writes the head of a frame whose body has `len` bytes. */
void wire_frame_head(uint32_t len, uint8_t head[WIRE_FRAME_HEAD]);

/* How many bytes of a body a head announces; 0: it is no head of a frame. */
uint32_t wire_frame_len(const uint8_t head[WIRE_FRAME_HEAD]);

/* A frame that arrives in parts. It takes memory for what has arrived, not for what the head
 * promises; and it never wants a byte that is behind the frame. */
struct wire_reader {
	const struct baton_alloc *alloc; /* [const]                       */
	uint32_t max;                    /* [const] of a body             */
	uint8_t head[WIRE_FRAME_HEAD];
	uint8_t head_len;
	uint32_t len; /* of the body, once the head is there */
	uint32_t have;
	uint32_t room;
	uint8_t *body;
};

/* Allocates nothing. `max` is the longest body that it takes, 1 to WIRE_FRAME_MAX. */
void wire_reader_init(struct wire_reader *r, const struct baton_alloc *alloc, uint32_t max);

/* Frees what it has. Fine for a zeroed reader, and twice. For AUTO(). */
void wire_reader_done(struct wire_reader *r);

/* Where the next bytes go, and how many at most: 0 once the frame is whole. BATON_NO_MEMORY. */
enum baton_err wire_reader_want(struct wire_reader *r, void **ret_place, size_t *ret_len);

/* Says that `n` of the bytes that were wanted are there now.
 *
 * BATON_OK: go on, or the frame is whole. BATON_INVALID: it is none: another version, no body, or a
 * longer one than `max`; known from the head alone. */
enum baton_err wire_reader_took(struct wire_reader *r, size_t n);

/* Whether anything has arrived, and whether all of it has. */
bool wire_reader_begun(const struct wire_reader *r);
bool wire_reader_whole(const struct wire_reader *r);

/* The body of a whole frame; lives as long as the reader. */
struct baton_str wire_reader_body(const struct wire_reader *r);

#endif
