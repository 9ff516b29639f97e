/* A store in a file, in a folder of its own, on a clock that stands still. */
#ifndef STORE_WORLD_H
#define STORE_WORLD_H

#include <baton/batch.h>
#include <baton/lease.h>
#include <baton/queue.h>
#include <baton/store.h>
#include <baton/work.h>

#include "support/fake_clock.h"
#include "support/harness.h"

#define WORLD_PATH 160
#define SOME_MAX 64 /* in one call of those below */

struct world {
	char folder[64];
	char path[WORLD_PATH]; /* of the store */
	struct fake_clock clock;
	enum baton_store_sync sync;
	struct baton_duration patience;
	struct baton_store *store; /* NULL: not open */
};

/* A new folder, and no store in it yet. */
int world_setup(void **state);
int world_teardown(void **state);
#define WORLD_TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

/* Where a file of that name is in the folder. */
void world_file(const struct world *w, const char *name, char path[WORLD_PATH]);

/* Opens the file as a store. Without assertions, as all that return an error. */
enum baton_err world_try_open(struct world *w, const char *path, struct baton_store **ret);

/* Opens and closes the world's store, which has to succeed. */
void world_open(struct world *w);
void world_close(struct world *w);

/* Copies a store that nobody has open; whatever was there before is gone. */
void world_copy(const char *from, const char *to);

/* Removes the store's file and those beside it. */
void world_remove(const char *path);

/* Does something to a file that no store would do. */
void world_sql(const char *path, const char *sql);
void world_write(const char *path, size_t offset, const void *bytes, size_t len);

/* All of a file, to be freed. */
char *world_read(const char *path, size_t *ret_size);

void world_advance(struct world *w, int64_t ms);

/* Puts `count` batches that can be claimed together, in one call. */
enum baton_err put_some(struct baton_store *store, const char *queue, const char *lane,
                        size_t count);

/* One claim of at most `max` batches for 1,000 ms; NULL: there is none. */
enum baton_err claim_some(struct baton_store *store, const char *queue, uint32_t max,
                          struct baton_work_claims **ret);

/* At most `claims` claims of one batch each, for 1,000 ms. */
enum baton_err claim_each(struct baton_store *store, const char *queue, uint32_t claims,
                          struct baton_work_claims **ret);

/* Completes the first `count` claims in one call. Without assertions. */
enum baton_err complete_each(struct baton_store *store, const struct baton_work_claims *claims,
                             size_t count);

/* Completes what was claimed, and puts one batch into `next` (NULL: none) in the same step. */
enum baton_err complete(struct baton_store *store, const struct baton_work_claim *claim,
                        const char *next);

/* Any other end. */
enum baton_err end_as(struct baton_store *store, const struct baton_work_claim *claim,
                      enum baton_work_how how);

/* The lease for 1,000 ms. BATON_YIELD: somebody else has it. */
enum baton_err lease(struct baton_store *store, const char *subject, struct baton_lease *ret);

/* A fence that is handed out now, whoever held the subject. */
uint64_t next_fence(struct baton_store *store, const char *subject);

/* The fence of a claim in the queue now. */
uint64_t next_claim_fence(struct baton_store *store, const char *queue);

/* Zeros for a queue that is not there. */
struct baton_queue_counts counts(struct baton_store *store, const char *queue);

void assert_ok(enum baton_err e);
void assert_sound(struct baton_store *store);

/* The detail has to have these words. */
void assert_detail(const char *words);

#endif
