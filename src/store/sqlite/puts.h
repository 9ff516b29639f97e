/* Putting work, also as a part of something else. */
#ifndef SQLITE_PUTS_H
#define SQLITE_PUTS_H

#include "store/sqlite/sqlite.h"

/* Puts all of them; on an error some may have been. `puts` may be NULL. */
enum baton_err put_all(struct sqlite_store *s, const struct baton_batch *batches, size_t count,
                       struct baton_put *puts);

#endif
