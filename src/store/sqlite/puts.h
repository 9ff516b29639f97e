/* Putting work and ending claims, as parts of something else. */
#ifndef SQLITE_PUTS_H
#define SQLITE_PUTS_H

#include "store/sqlite/sqlite.h"

/* Puts all of them; on an error some may have been. `puts` may be NULL. */
enum baton_err put_all(struct sqlite_store *s, const struct baton_batch *batches, size_t count,
                       struct baton_put *puts);

/* Ends each claim for itself. */
enum baton_err end_all(struct sqlite_store *s, const struct baton_work_end *ends, size_t count,
                       struct baton_work_ended *answers);

#endif
