/* Rows that have several batches, and the claims on them: see steps/6-bulk.sql. */
#ifndef POSTGRES_BULK_H
#define POSTGRES_BULK_H

#include "store/postgres/desk.h"

/* What batch rows of a desk are kept under that stand in one of these. */
#define IN_BULK (UINT64_C(1) << 63)

/* A claim that stands in a chunk: where. */
#define CLAIM_CHUNK 4
#define CHUNK_PLACE(kept) ((kept) >> 3 & (BULK_MAX - 1))
#define CHUNK_NUMBER(kept) ((kept) >> 16)

/* One of them, read to be claimed from. */
struct bulk_read {
	uint64_t first;
	struct queue *queue;
	int32_t pool, rank;
	uint64_t mark;    /* up to here they were claimed before */
	uint64_t reached; /* and up to here now                  */
};

#define PLACE_LEN 6

/* Claims on one of them. */
struct chunk_read {
	uint64_t first, id;
	uint32_t count;
	uint64_t gone;              /* bits: those that are completed now */
	char place[PLACE_LEN];      /* of the row */
	char bulk_place[PLACE_LEN]; /* and of that with the batches */
	uint64_t heads[BULK_MAX], fences[BULK_MAX];
	struct baton_id tokens[BULK_MAX];
};

/* Put what an answer has on the desk. The queues are there. */
enum baton_err desk_bulks(struct desk *d, const PGresult *r);
enum baton_err desk_chunks(struct desk *d, const PGresult *r);

/* Counts the new batches that may share rows; after that, whether one does. */
void bulk_count(struct desk *d);
bool bulk_takes(const struct desk *d, const struct batch *b);

/* Send what has changed: new batches that share rows, new claims, and those that are completed. */
struct bulk_writer {
	struct desk *d;
	struct conn *c;
	bool any;
};
enum baton_err bulk_batches_write(struct bulk_writer *w);
enum baton_err bulk_claims_write(struct bulk_writer *w);
void bulk_ends_write(struct bulk_writer *w);
enum baton_err bulk_answers_write(struct bulk_writer *w);

#endif
