/* The shards that a runner has, kept from one of its ticks to the next. */
#ifndef SQLITE_HOLDINGS_H
#define SQLITE_HOLDINGS_H

#include <baton/alloc.h>

#include "queue/fence.h"
#include "store/sqlite/db.h"

/* A shard, and what a tick is at with it. */
struct holding {
	int64_t queue;
	uint32_t number;
	uint64_t fence;
	bool wanted, ready;     /* it is asked for; it has something            */
	bool counts;            /* something of it was given, counted in `base` */
	struct fence_base base; /* once it is ready                             */
};

/* All that the runner has, by queue and number. As long as no shard has changed hands they are not
 * read again, whoever else writes to the file. */
struct holdings {
	uint64_t runner; /* 0: nothing was read                                 */
	int64_t changes; /* how often shards had changed hands when it was      */
	struct holding *items;
	size_t count, cap;
};

/* Reads what the runner has, unless that is known, and wipes the marks of the last tick. */
enum baton_err holdings_load(struct holdings *h, const struct baton_alloc *alloc, struct db *db,
                             uint64_t runner, int64_t changes);

/* NULL: the runner does not have it. */
struct holding *holdings_find(const struct holdings *h, int64_t queue, uint32_t number);

/* After a rollback: what was read may never have been. */
void holdings_forget(struct holdings *h);
void holdings_done(struct holdings *h, const struct baton_alloc *alloc);

#endif
