/* The tables of a store, and how those of an earlier version become these. */
#ifndef POSTGRES_SCHEMA_H
#define POSTGRES_SCHEMA_H

#include "store/postgres/conn.h"

/* Makes the schema, or brings it to this version. BATON_NOT_FOUND: `existing`, and there is none.
 * BATON_INVALID: it is another program's, or of a newer version. The connection is not in pipeline
 * mode, and is told nothing else than libpq's defaults. */
enum baton_err pg_schema_open(struct conn *c, bool existing, int64_t now_ms);

/* To be called on each connection that is made later: a standby may have taken over meanwhile, and
 * then the next fences are above all that the server before it may have handed out. */
enum baton_err pg_schema_arrive(struct conn *c);

#endif
