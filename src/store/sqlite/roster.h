/* Which keys the jobs have that were put lately and stand together in rows: from the hash of a key
 * to the number of the job.
 *
 * It may know more than is there: whoever finds a job looks whether it is still ready or claimed.
 * Of two jobs with one hash the later counts: the other was over when that was put. */
#ifndef SQLITE_ROSTER_H
#define SQLITE_ROSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROSTER_ROWS 64
#define ROSTER_JOBS 64 /* of a row at most */
#define ROSTER_CHAINS 1024

struct roster {
	bool synced;                 /* it has all rows that the books name */
	size_t top;                  /* there are no rows behind that place */
	int64_t firsts[ROSTER_ROWS]; /* the numbers of their first jobs; 0: no row */
	int64_t hashes[ROSTER_ROWS][ROSTER_JOBS];

	/* Where a job is: its row's place and its own, and one more; 0: nowhere. */
	uint16_t chains[ROSTER_CHAINS];
	uint16_t next[ROSTER_ROWS * ROSTER_JOBS];
};

/* Empties it. */
void roster_forget(struct roster *r);

/* Whether the row is there. */
bool roster_has(const struct roster *r, int64_t first);

/* Adds a row, later than all others; a hash of 0 is none. There is room for ROSTER_ROWS. */
void roster_add(struct roster *r, int64_t first, const int64_t *hashes, size_t count);

/* Takes a row out, or one job, if it is there. */
void roster_drop(struct roster *r, int64_t first);
void roster_strike(struct roster *r, int64_t seq);

/* The number of the last job that had a key of that hash, which is not 0; 0: there is none. */
int64_t roster_find(const struct roster *r, int64_t hash);

#endif
