/* The rows of jobs that stand together. */
#ifndef SQLITE_BULK_ROWS_H
#define SQLITE_BULK_ROWS_H

#include "store/sqlite/batches.h"
#include "store/sqlite/bulk.h"
#include "store/sqlite/claims.h"

/* The row that one of the jobs would have. */
void bulk_batch(const struct bulk_row *row, size_t index, struct batch_row *ret);

enum baton_err bulk_store(struct sqlite_store *s, const struct bulk_row *row,
                          const struct baton_str *jobs);

/* The row that the number is in. *ret_found false: there is none. */
enum baton_err bulk_find(struct db *db, int64_t seq, struct bulk_row *ret, bool *ret_found);

/* The row that the number is in, which has to be there, and its jobs, which are the arena's. */
enum baton_err bulk_load(struct db *db, struct arena *a, int64_t seq, struct bulk_row *ret,
                         const struct baton_str **ret_jobs);

/* The head that stands for this job and those behind it. */
enum baton_err bulk_head_write(struct sqlite_store *s, const struct queue_row *q,
                               const struct batch_row *b);

/* Deletes the row if nothing of it is ready or claimed. */
enum baton_err bulk_end_if_done(struct sqlite_store *s, int64_t first);

enum baton_err chunk_add(struct db *db, const struct chunk *c);
enum baton_err chunk_shrink(struct db *db, const struct chunk *c);

/* The last chunk that begins at that number or before it. */
enum baton_err chunk_load(struct db *db, int64_t seq, struct chunk *ret, bool *ret_found);

enum baton_err reply_add(struct db *db, const struct bulk_end *end);
enum baton_err reply_has(struct db *db, const struct claim_name *name,
                         const struct baton_work_proof *proof, struct baton_store_time now,
                         bool *ret);

#endif
