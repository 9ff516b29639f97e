/* Writing back what has changed on a desk: what the kinds of rows have in common. Each sends its
 * statements, and says nothing if nothing of it has changed. */
#ifndef POSTGRES_WRITE_H
#define POSTGRES_WRITE_H

#include "store/postgres/desk.h"

struct writer {
	struct desk *d;
	struct conn *c;
	bool any;
	int told; /* which answer has the number of the transaction; -1: none */
	bool sure;
};

/* So many arguments; all of them arrays of these types; and what becomes of the statement. */
void writer_args(struct writer *w, struct args *a, int count);
void writer_arrays(struct args *a, const enum arg_type *types);
void writer_send(struct writer *w, enum sql sql, struct args *a);

/* 0: NULL. */
void writer_add_time(struct args *a, int at, struct baton_store_time t);

enum baton_err write_queues(struct writer *w);   /* those that are new */
enum baton_err write_policies(struct writer *w); /* of the others      */
void write_counts(struct writer *w);

enum baton_err write_batches(struct writer *w);
enum baton_err write_claims(struct writer *w);
void write_sources(struct writer *w);

/* Whether a row says of its batch that a claim can begin with it. In a lane settle() has the last
 * word; what is right already it need not write again. */
bool write_is_head(const struct desk *d, const struct batch *b);

/* Of leases that get another fence nobody may have been admitted under the old one. */
void write_guard(struct writer *w);
void write_leases(struct writer *w);
void write_counters(struct writer *w); /* of those of which nothing else has changed */

void write_schedules(struct writer *w);
void write_schedules_gone(struct writer *w);
void write_runners(struct writer *w);

/* The turns of lines, and those that keys have left; the starts that keys have had. */
void write_paces(struct writer *w);
void write_paces_leave(struct writer *w);
enum baton_err write_rates(struct writer *w);

/* What follows from all that for the heads of lines, of lanes that have changed, and of all where a
 * policy has. */
void write_settle(struct writer *w);
void write_settle_all(struct writer *w);
void write_rates_settle(struct writer *w);

/* After all heads are as they should be. */
void write_lows(struct writer *w);

#endif
