/* Rows of a store in memory, and the tables that they are found in. */
#ifndef STORE_MEMORY_ROW_H
#define STORE_MEMORY_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <baton/alloc.h>

struct table;

/* The first member of every row. */
struct row {
	struct table *table; /* NULL: not in one any more                        */
	struct row *next;    /* in its bucket                                    */
	struct row *older;   /* in the order in which they were added            */
	struct row *newer;
	uint64_t hash;
	uint64_t epoch; /* in which the journal saw it last                       */
	size_t size;    /* of its block                                           */
	bool gone;      /* deleted by the transaction in progress                 */
	bool noted;     /* the keeper's: it has changed                           */
	uint64_t kept;  /* the keeper's: under which number it is kept; 0: it is not yet */
};

/* Rows of one kind. */
struct table {
	const struct baton_alloc *alloc; /* [const] */
	size_t from, len;                /* [const] where in a row that is which can change */

	/* [const] NULL, or told that a row leaves its table, that is, is deleted; returns another
	 * row that is no longer needed because of that, or NULL. */
	struct row *(*left)(struct row *row);

	/* [const] NULL, or told that a row has got back what it was before. */
	void (*restored)(struct row *row);

	struct row **buckets;
	size_t bucket_count;
	size_t count;
	struct row *oldest, *newest;
};

/* Gives all rows back. Fine for a zeroed table. */
void memory_table_done(struct table *t);

/* A new row of `size` bytes, zeros but for its head. NULL: no memory. */
struct row *memory_row_add(struct table *t, size_t size, uint64_t hash);

/* The rows with that hash, one after the other; NULL: no more. Those that are gone are left out. */
struct row *memory_row_first(const struct table *t, uint64_t hash);
struct row *memory_row_next(const struct row *row);

/* Takes a row out of its table; its block is to be freed. Returns what its `left` does. */
struct row *memory_row_leave(struct row *row);
void memory_row_free(const struct baton_alloc *alloc, struct row *row);

/* Deletes a row, and what is no longer needed because of that. */
void memory_row_drop(struct row *row);

/* Makes the oldest row the newest. */
void memory_table_turn(struct table *t);

#endif
