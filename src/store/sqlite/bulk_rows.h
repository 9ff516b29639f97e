/* The rows of jobs that stand together. */
#ifndef SQLITE_BULK_ROWS_H
#define SQLITE_BULK_ROWS_H

#include "store/sqlite/batches.h"
#include "store/sqlite/bulk.h"
#include "store/sqlite/claims.h"

/* The row that one of the jobs would have, but in the shard of them all, which is not the one that
 * its key would give it. `keys`: as bulk_load() gives them, or NULL. */
void bulk_batch(const struct bulk_row *row, const struct baton_str *keys, size_t index,
                struct batch_row *ret);

/* The same, in the shard that its key gives it, which takes a while to tell. */
void bulk_batch_placed(const struct bulk_row *row, const struct baton_str *keys, size_t index,
                       const struct queue_row *q, struct batch_row *ret);

/* Writes the row of those that are gathered, with the jobs whose bits are set. */
enum baton_err bulk_store(struct sqlite_store *s, const struct bulk_put *p, uint64_t which);

/* Whether the number is one of the row's. */
bool bulk_has(const struct bulk_row *row, int64_t seq);

/* The row is written down as damaged. */
enum baton_err bulk_damaged(const struct db *db, int64_t seq);

/* The row that the number is in. *ret_found false: there is none. */
enum baton_err bulk_find(struct db *db, int64_t seq, struct bulk_row *ret, bool *ret_found);

/* The row that the number is in, which has to be there, its jobs and their keys, which are the
 * arena's; *ret_keys is NULL if there are none. */
enum baton_err bulk_load(struct db *db, struct arena *a, int64_t seq, struct bulk_row *ret,
                         const struct baton_str **ret_jobs, const struct baton_str **ret_keys);

/* The keys alone. *ret_keys NULL: there is no such row any more. */
enum baton_err bulk_load_keys(struct db *db, struct arena *a, int64_t first,
                              const struct baton_str **ret_keys, size_t *ret_count);

/* The hash of the key of one of the jobs; 0: it has none. */
int64_t bulk_hash(const struct bulk_row *row, const struct baton_str *keys, size_t index);

/* Adds a head, or drops it. */
enum baton_err bulk_head_write(struct sqlite_store *s, const struct bulk_head *head);
enum baton_err bulk_head_drop(struct db *db, const struct bulk_head *head);

/* The first head of the row that stands for that number or ones behind it; its `seq` is 0 without
 * one. */
enum baton_err bulk_head_find(struct db *db, const struct bulk_row *row, int64_t seq,
                              struct bulk_head *ret);

/* Which of the row's jobs are ready or claimed, a bit each. */
enum baton_err bulk_live(struct db *db, const struct bulk_row *row, uint64_t *ret);

/* Deletes the row if nothing of it is ready or claimed. */
enum baton_err bulk_end_if_done(struct sqlite_store *s, int64_t first);

/* A row that is to be deleted has no keys any more. */
enum baton_err bulk_keys_end(struct sqlite_store *s, const struct bulk_row *row);

/* Ordinary rows for a job, which is ready or claimed. */
enum baton_err bulk_melt_ready(struct sqlite_store *s, struct queue_row *q,
                               const struct batch_row *b, const struct baton_str *job);
enum baton_err bulk_melt_claimed(struct sqlite_store *s, const struct chunk *c,
                                 const struct bulk_claim *claim, const struct batch_row *b,
                                 const struct baton_str *job);

/* Which of the gathered jobs can stand together, a bit each: not those whose key others have. */
enum baton_err bulk_keys_sort(struct sqlite_store *s, const struct bulk_put *p, uint64_t *ret);

/* Those of a new row are to be found by their keys. */
enum baton_err bulk_keys_add(struct sqlite_store *s, const struct bulk_put *p, uint64_t which);

/* Before something is looked up: what claims and completions have gathered is written. */
enum baton_err bulk_settle(struct sqlite_store *s);

/* What is put and gathered, too. */
enum baton_err bulk_flush_put(struct sqlite_store *s);

enum baton_err chunk_add(struct db *db, const struct chunk *c);
enum baton_err chunk_shrink(struct db *db, const struct chunk *c);

/* The last chunk that begins at that number or before it. */
enum baton_err chunk_load(struct db *db, int64_t seq, struct chunk *ret, bool *ret_found);

enum baton_err reply_add(struct db *db, const struct bulk_end *end);
enum baton_err reply_has(struct db *db, const struct claim_name *name,
                         const struct baton_work_proof *proof, struct baton_store_time now,
                         bool *ret);

#endif
