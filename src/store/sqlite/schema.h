/* The tables of a store. */
#ifndef SQLITE_SCHEMA_H
#define SQLITE_SCHEMA_H

#include "store/sqlite/db.h"

/* Makes the tables of an empty file, brings those of an earlier version up to date, and sees to it
 * that a copy hands out no fence twice.
 *
 * BATON_INVALID: a file of another program, or of a newer version; it is left as it is. */
enum baton_err schema_open(struct db *db, struct baton_store_time now);

/* BATON_INVALID: since it was opened, a newer program has made tables of it that this one does not
 * know. */
enum baton_err schema_check(struct db *db);

#endif
