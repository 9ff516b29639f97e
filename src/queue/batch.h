/* Batches as they are put: what is allowed, what makes two the same, and their names. */
#ifndef QUEUE_BATCH_H
#define QUEUE_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <baton/batch.h>
#include <baton/id.h>

#include "base/digest.h"

/* Whether it is within the limits that hold for every queue; that of the payloads is the queue's.
 *
 * BATON_INVALID: the detail says what is wrong, with the value and the limit. */
enum baton_err batch_check(const struct baton_batch *batch);

/* Whether its payloads are within the queue's limit. */
enum baton_err batch_check_payloads(const struct baton_batch *batch, uint32_t payload_max);

/* A name of a queue: BATON_INVALID as above. */
enum baton_err batch_check_queue(struct baton_str name);

/* The batch with what its zeros stand for. */
struct baton_batch batch_filled(const struct baton_batch *batch);

/* A digest over everything but the source key; of a delay its length counts, not its end. The batch
 * is filled. */
void batch_digest(const struct baton_batch *batch, uint8_t out[DIGEST_SIZE]);

/* What a source key is unique in: its queue, and its lane or none. */
void batch_source_digest(const struct baton_batch *batch, uint8_t out[DIGEST_SIZE]);

/* When it can be claimed: now, after its delay, or at its time. */
struct baton_store_time batch_available(const struct baton_batch *batch,
                                        struct baton_store_time now);

/* Numbers as names. Each parse returns false for what its print does not write. */
void batch_id_print(uint64_t number, struct baton_batch_id *ret);
bool batch_id_parse(const struct baton_batch_id *id, uint64_t *ret);

struct claim_name {
	uint64_t head;
	uint64_t fence;
};

#define CLAIM_NAME_TEXT 48
void claim_name_print(const struct claim_name *name, char text[CLAIM_NAME_TEXT]);
bool claim_name_parse(const char text[CLAIM_NAME_TEXT], struct claim_name *ret);

#endif
