/* Every statement that is prepared, by name. */
#ifndef POSTGRES_SQL_H
#define POSTGRES_SQL_H

#include "store/postgres/lists.h"
#include "store/postgres/reads.h"
#include "store/postgres/writes.h"

/* How long a transaction waits for its client, who may have been stopped or cut off: others wait
 * for what it has locked, and have less patience than that only if they were told to. */
#define IDLE_MS "3000"
#define IDLE_ENDED "25P03" /* the SQLSTATE of that */

/* Rows that are found by numbers are deleted by where they are (ctid), or looked for in a subquery
 * that cannot become a join: the planner joins by reading a whole table if the statistics say that
 * nothing is in it, and then walks over all that is dead in it.
 *
 * Lines are read by `b.lane BETWEEN x AND x ... ORDER BY b.lane, b.seq`: functions/6-lines.sql
 * says why. */
#define SQL_TABLE(X) SQL_READS(X) SQL_WRITES(X) SQL_LISTS(X)

#endif
