/* Batches as they are stored, and the books of what happened to them. */
#ifndef SQLITE_BATCHES_H
#define SQLITE_BATCHES_H

#include <baton/batch.h>

#include "queue/line.h"
#include "queue/select.h"
#include "queue/state.h"
#include "store/sqlite/sqlite.h"

/* A row of `batch` without its payload. */
struct batch_row {
	int64_t seq;
	int64_t id; /* the number that it was born with */
	int64_t queue;
	enum baton_batch_class cls;
	enum baton_batch_delivery delivery;
	enum baton_batch_slot slot;
	bool many; /* more than one payload */
	uint32_t priority;
	uint32_t shard;
	struct baton_store_time put_at;
	struct baton_store_time due; /* 0: it was not delayed when it was put */
	bool has_retry;
	struct baton_retry retry;
	char lane[LINE_NAME_MAX + 1]; /* the name of its line: see queue/line.h */
	size_t lane_len;
	char key[LINE_KEYS_MAX + 1]; /* those of the lines of keys which it has beside a lane */
	size_t key_len;
	char group[BATON_NAME_MAX + 1];
	size_t group_len;
};

static inline struct baton_str batch_row_line(const struct batch_row *b)
{
	return (struct baton_str){b->lane, b->lane_len};
}

static inline struct baton_str batch_row_guest(const struct batch_row *b)
{
	return (struct baton_str){b->key, b->key_len};
}

/* The line, or lines, whose key a claim of it holds, if that is one of a key. */
static inline struct baton_str batch_row_key(const struct batch_row *b)
{
	return b->key_len > 0 ? batch_row_guest(b) : batch_row_line(b);
}

static inline struct baton_str batch_row_group(const struct batch_row *b)
{
	return (struct baton_str){b->group, b->group_len};
}

/* Higher priorities come first. */
static inline int64_t batch_row_rank(const struct batch_row *b)
{
	return BATON_PRIORITY_MAX - (int64_t)b->priority;
}

/* What of it is kept as one number: all but names, times and its retry policy. */
int64_t batch_flags(const struct batch_row *b);
void batch_flags_read(int64_t flags, struct batch_row *ret);

struct candidate batch_row_candidate(const struct batch_row *b);

/* Reads one row of SQL_BATCH_COLUMNS; the payload is column BATCH_PAYLOAD. */
#define BATCH_PAYLOAD 9
void batch_row_read(const struct query *q, struct batch_row *ret);

/* The batch of that number. *ret_found false: there is none. */
enum baton_err batch_load(struct db *db, int64_t seq, struct batch_row *ret, bool *ret_found);

/* Of that number, which has to be there. */
enum baton_err batch_need(struct db *db, int64_t seq, struct batch_row *ret);

/* The number that the batch of that name has now; 0: there is none. */
enum baton_err batch_seq_of(struct db *db, int64_t id, int64_t *ret_seq);

/* Stores what was put. */
enum baton_err batch_store(struct db *db, const struct batch_row *row,
                           const struct baton_str *payloads, size_t count,
                           const struct baton_alloc *alloc);

/* What happened to a batch that did not go the straight way. */
struct trouble {
	uint32_t attempts;           /* that failed                                      */
	uint64_t fence;              /* of its last claim                                */
	struct baton_store_time due; /* while it waits outside of the ready ones; 0: it does not */
	bool cancel;                 /* somebody wants it cancelled                      */
	int64_t rival;               /* then: the id of whom it is to be skipped for; 0: nobody */
	size_t error_len;
	char error[BATON_ERROR_MAX];
};

/* Zeros where there is nothing. */
enum baton_err trouble_load(struct db *db, int64_t seq, struct trouble *ret);
enum baton_err trouble_save(struct db *db, int64_t seq, const struct trouble *t);

void trouble_error(struct trouble *t, struct baton_str error);

/* What the batch is at `now`, and when it is due if it waits for that. BATON_BATCH_GONE: it was
 * done, and has been kept for long enough. */
enum baton_err batch_state(struct db *db, const struct batch_row *b, struct baton_store_time now,
                           enum baton_batch_state *ret, struct baton_store_time *ret_due);

/* How often it may be tried. */
struct baton_retry batch_row_retry(const struct batch_row *b, const struct baton_queue_policy *p);

#define RUN(db, sql, ...)                                        \
	run_numbers((db), (sql), (const int64_t[]){__VA_ARGS__}, \
	            sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

/* Runs a statement with numbers for parameters. */
enum baton_err run_numbers(struct db *db, enum sql sql, const int64_t *numbers, size_t count);

/* The first column of the row that it finds, or 0. */
enum baton_err find_number(struct db *db, enum sql sql, const int64_t *numbers, size_t count,
                           int64_t *ret);
#define FIND(db, sql, ret, ...)                                  \
	find_number((db), (sql), (const int64_t[]){__VA_ARGS__}, \
	            sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (ret))

#endif
