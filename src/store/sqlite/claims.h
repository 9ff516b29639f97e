/* Claims as they are stored. */
#ifndef SQLITE_CLAIMS_H
#define SQLITE_CLAIMS_H

#include "queue/batch.h"
#include "store/sqlite/batches.h"
#include "store/sqlite/sqlite.h"

/* Lines of keys, by number. */
struct key_lines {
	int64_t list[BATON_KEYS_MAX];
	size_t count;
};

/* As they stand in two columns: the first, 0 being none, and the others. BATON_STORAGE. */
enum baton_err key_lines_read(const struct query *q, int column, int others, struct key_lines *ret);
void key_lines_bind_others(struct query *q, const struct key_lines *keys,
                           uint64_t room[BATON_KEYS_MAX]);

struct claim_row {
	int64_t head; /* the number of its first batch, when it was made */
	uint64_t fence;
	struct baton_id token;
	int64_t owner;
	int64_t queue;
	struct baton_store_time claimed_at, expires_at;
	bool offered;          /* it has expired, and its work can be taken  */
	bool tried;            /* some of its batches have had trouble before */
	uint64_t granter;      /* the fence that it was granted under */
	int64_t lane;          /* 0: none */
	int64_t lone;          /* the hash of its key, which nobody else wants; 0: none */
	struct key_lines keys; /* of those that it holds beside its lane */
	int64_t *seqs;         /* its batches, in order; the scratch's */
	size_t count;
};

/* The claim of that name. *ret_found false: there is none. */
enum baton_err claim_load(struct sqlite_store *s, const struct claim_name *name,
                          struct claim_row *ret, bool *ret_found);

/* The claim of a batch that has no lane. */
enum baton_err claim_of_single(struct sqlite_store *s, int64_t seq, struct claim_row *ret,
                               bool *ret_found);

/* Those of a lane: *ret_rows is the scratch's. */
enum baton_err claims_of_lane(struct sqlite_store *s, int64_t lane, struct claim_row **ret_rows,
                              size_t *ret_count);

/* Those of them whose work can be taken. */
enum baton_err claims_offered(struct sqlite_store *s, int64_t lane, struct claim_row **ret_rows,
                              size_t *ret_count);

/* Those of guests that hold, or held, the key of that line, and whose work can be taken. */
enum baton_err claims_late_of_key(struct sqlite_store *s, int64_t key, struct claim_row **ret_rows,
                                  size_t *ret_count);

/* The claim that the batch is under. */
enum baton_err claim_of_batch(struct db *db, struct arena *a, const struct batch_row *b,
                              struct claim_row *ret, bool *ret_found);
enum baton_err claim_has(struct db *db, const struct batch_row *b, bool *ret);

/* Writes its row, and nothing else. */
enum baton_err claim_write(struct sqlite_store *s, const struct claim_row *c);

/* Writes a new one. */
enum baton_err claim_add(struct sqlite_store *s, const struct claim_row *c);

/* Takes some of its batches, in order, out of it; it ends with the last one. */
enum baton_err claim_shrink(struct sqlite_store *s, struct claim_row *c, const int64_t *gone,
                            size_t count);

/* Ends it. */
enum baton_err claim_drop(struct sqlite_store *s, const struct claim_row *c);

/* The first batch of the lane that is claimed; 0: none is. `live`: by one that is not offered. */
enum baton_err claims_first(struct db *db, struct arena *a, int64_t lane, bool live,
                            int64_t *ret_seq);

/* The first of those of guests that hold the key of that line. */
enum baton_err claims_first_of_key(struct db *db, struct arena *a, int64_t key, int64_t *ret_seq);

/* The same of what a query finds, which has been bound: those that are live, and how many. */
enum baton_err claims_first_of(struct query q, struct arena *a, int64_t *ret_seq,
                               uint64_t *ret_count);

/* Those of the runner of which something is to be cancelled, at most `max`. */
enum baton_err claims_to_cancel(struct db *db, uint64_t runner, struct baton_claim_id *ids,
                                size_t max, size_t *ret_count);

/* Whether some of it is to be cancelled. */
enum baton_err claim_wants_cancel(struct db *db, const struct claim_row *c, bool *ret);

bool claim_row_has(const struct claim_row *c, int64_t seq);

/* The number under which the owner's text is kept. */
enum baton_err owner_number(struct sqlite_store *s, const struct baton_owner *owner, int64_t *ret);
enum baton_err owner_load(struct db *db, int64_t number, struct baton_owner *ret);

#endif
