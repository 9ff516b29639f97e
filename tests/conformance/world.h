/* A store of the kind that is tested, a clock that stands still, and short forms of the calls. */
#ifndef CONFORMANCE_WORLD_H
#define CONFORMANCE_WORLD_H

#include <stdio.h>
#include <string.h>

#include <baton/batch.h>
#include <baton/lease.h>
#include <baton/queue.h>
#include <baton/schedule.h>
#include <baton/store.h>
#include <baton/work.h>

#include "support/fake_clock.h"
#include "support/fault.h"
#include "support/harness.h"

#define CLAIMS_KEPT 4096
#define PAGES_KEPT 256

/* What the store's clock shows when a test begins. */
#define START_MS INT64_C(1767225600000)

struct world {
	struct baton_store *store;
	struct baton_store *twin; /* NULL: not asked for yet */
	struct fake_clock clock;
	struct fault fault;
	struct baton_owner own;   /* of the first who opened it    */
	struct baton_owner other; /* somebody elsewhere            */
	struct baton_owner dead;  /* a process that is known to be */
	char where[BATON_STORE_PATH_MAX];
	char directory[200];                           /* "": none */
	struct baton_work_claims *claims[CLAIMS_KEPT]; /* freed at the end */
	size_t claim_count;
	struct baton_work_page *pages[PAGES_KEPT]; /* freed at the end */
	size_t page_count;
	struct baton_store_news news; /* the last */
	unsigned rings;
};

/* main() of every program: the kind of store is its argument. */
int world_main(int argc, char **argv, const char *name, const struct CMUnitTest *tests,
               size_t count);

#define WORLD_MAIN(name, tests)                                                                 \
	int main(int argc, char **argv)                                                         \
	{                                                                                       \
		return world_main(argc, argv, name, tests, sizeof(tests) / sizeof((tests)[0])); \
	}
#define WORLD_TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

/* What stores of that kind need, once: false if it is not there, which was said. */
bool world_begin(const char *where);
void world_end(void);

int world_setup(void **state);
int world_teardown(void **state);

/* What the program was asked to test. */
/* Whether it is in a server; and then, more rows like that of the only runner. */
bool world_is_served(void);
void world_copy_runner(struct world *w, int copies);

const char *world_kind(void);

/* One more store of that kind, empty, on the same clock. */
void world_open(struct world *w, const char *where);
void world_close(struct world *w);

/* Another handle on what the store is kept in; the same one, if that can have no other. */
struct baton_store *world_twin(struct world *w);

void advance(struct world *w, int64_t ms);
void step_clock(struct world *w, int64_t ms); /* as somebody sets it */

/* Puts, which have to succeed. "" or NULL: no lane. */
struct baton_batch batch_of(const char *queue, const char *lane, const struct baton_str *payload);
struct baton_batch_id put(struct world *w, const char *queue, const char *lane);
struct baton_batch_id put_batch(struct world *w, const struct baton_batch *b);
struct baton_batch_id put_join(struct world *w, const char *queue, const char *lane,
                               const char *group);
struct baton_batch_id put_command(struct world *w, const char *queue, const char *lane);
struct baton_batch_id put_later(struct world *w, const char *queue, const char *lane, int64_t ms);
enum baton_err try_put(struct world *w, const struct baton_batch *b, struct baton_put *ret);

/* One claim of at most `max` batches for 1,000 ms; NULL: there is none. Belongs to the world. */
const struct baton_work_claim *claim(struct world *w, const char *queue, uint32_t max);
const struct baton_work_claim *claim_as(struct world *w, const char *queue,
                                        const struct baton_owner *owner);
const struct baton_work_claims *claim_many(struct world *w, const struct baton_work_ask *ask);
enum baton_err try_claim(struct world *w, const char *queue);
void keep_claims(struct world *w, struct baton_work_claims *claims);

/* The lease of the lane for 10,000 ms, which has to be free. */
struct baton_lease hold_lane(struct world *w, const char *queue, const char *lane,
                             const struct baton_owner *owner);

/* A claim of a lane for 1,000 ms, with ids NULL and max 10 unless `ask` was changed. */
struct baton_lane_ask lane_ask(const char *queue, const char *lane,
                               const struct baton_lease *lease);
enum baton_err try_lane(struct world *w, const struct baton_lane_ask *ask,
                        const struct baton_work_claim **ret);
const struct baton_work_claim *claim_lane(struct world *w, const struct baton_lane_ask *ask);

/* Ends. */
struct baton_work_ended end_with(struct world *w, const struct baton_work_end *end);
struct baton_work_ended end(struct world *w, const struct baton_work_claim *c,
                            enum baton_work_how how);
enum baton_batch_state complete(struct world *w, const struct baton_work_claim *c);
struct baton_work_renewal renew(struct world *w, const struct baton_work_claim *c, int64_t ttl_ms);

/* Changes. */
enum baton_cancelled cancel(struct world *w, const struct baton_batch_id *id);
enum baton_err revive(struct world *w, const struct baton_batch_id *id);

/* Looks. Pages belong to the world. */
const struct baton_work_info *look(struct world *w, const struct baton_batch_id *id);
enum baton_batch_state state_of(struct world *w, const struct baton_batch_id *id);
const struct baton_work_page *list(struct world *w, const struct baton_work_filter *filter);
struct baton_queue_info queue_info(struct world *w, const char *queue);
struct baton_queue_counts counts(struct world *w, const char *queue);
struct baton_queue_policy policy(struct world *w, const char *queue); /* or the default */
void set_policy(struct world *w, const char *queue, const struct baton_queue_policy *p);

/* Without a backoff: what fails can be tried again at once, `attempts` times in all. */
void set_attempts(struct world *w, const char *queue, uint32_t attempts);

#define assert_id(a, b) assert_string_equal((a).text, (b).text)
#define assert_str(s, z)                                    \
	do {                                                \
		assert_int_equal((s).len, strlen(z));       \
		assert_memory_equal((s).ptr, (z), (s).len); \
	} while (0)

/* The detail has to have these words. */
#define assert_detail(words)                                                           \
	do {                                                                           \
		if (!strstr(baton_err_detail(), (words)))                              \
			fail_msg("\"%s\" is not in: %s", (words), baton_err_detail()); \
	} while (0)

/* The store says that everything fits together. */
void assert_sound(struct world *w);

#endif
