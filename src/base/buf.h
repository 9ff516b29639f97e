/* A growable string of bytes with a bound. The first failure sticks: append all, then look once. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stddef.h>
#include <stdint.h>

#include <baton/alloc.h>
#include <baton/err.h>
#include <baton/str.h>

struct buf {
	const struct baton_alloc *alloc; /* [const]                                               */
	size_t max;                      /* [const] the most that data may grow to                */
	char *data;                      /* len bytes and a NUL; NULL while nothing was appended */
	size_t len;
	size_t cap;
	char *lent; /* where it began, if somebody else has that memory; else NULL         */
	enum baton_err err; /* BATON_OK, or what the first failing append ran into        */
};

/* An empty buffer of at most `max` bytes. Allocates nothing. */
void buf_init(struct buf *b, const struct baton_alloc *alloc, size_t max);

/* The same with room for the first `size` bytes, which stays the caller's: for what is mostly
 * short. */
void buf_init_in(struct buf *b, const struct baton_alloc *alloc, size_t max, char *room,
                 size_t size);

/* Frees the bytes. Fine for a zeroed buffer, and twice. For AUTO(). */
void buf_done(struct buf *b);

/* Forgets the bytes and the error, keeps the memory. */
void buf_reset(struct buf *b);

/* Each appends all or nothing, returns b->err and does nothing once that is set. BATON_FULL: beyond
 * `max`; BATON_NO_MEMORY. */
enum baton_err buf_append(struct buf *b, const void *bytes, size_t len);
enum baton_err buf_append_str(struct buf *b, struct baton_str s);
__attribute__((format(printf, 2, 3))) enum baton_err buf_printf(struct buf *b, const char *format,
                                                                ...);

/* Appends `len` bytes for the caller to write before the next append. NULL: as above, or `len` is
 * 0. */
char *buf_extend(struct buf *b, size_t len);

/* What the buffer holds; valid until the next append. */
struct baton_str buf_str(const struct buf *b);

#endif
