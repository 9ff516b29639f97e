/* Whether the file under an open store is still all there. SQLite does not look as long as it has
 * what it needs in memory, and what it writes meanwhile is lost. */
#ifndef SQLITE_WHOLE_H
#define SQLITE_WHOLE_H

#include <baton/err.h>

struct sqlite_store;

/* Reads the head of the file; writes nothing. Between sqlite_read_begin() and sqlite_read_end().
 *
 * BATON_GONE: it was cut off or overwritten. BATON_OK too if it cannot be told. */
enum baton_err whole_check(struct sqlite_store *s);

#endif
