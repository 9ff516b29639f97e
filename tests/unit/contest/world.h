/* A small fleet in a fresh folder, with members of this process and of others. */
#ifndef CONTEST_WORLD_H
#define CONTEST_WORLD_H

#include <pthread.h>

#include <baton/claim.h>
#include <baton/clock.h>
#include <baton/fleet.h>
#include <baton/watch.h>

#include "contest/member.h"
#include "support/child.h"
#include "support/harness.h"

#define WORLD_MEMBERS 16u
#define WORLD_SUBJECTS 64u
#define WORLD_WAITERS 16u
#define WORLD_EVENTS 64u
#define WORLD_WAKEUPS 64u

struct world {
	char folder[64];
	char path[96];
	char mark[112];
	struct baton_fleet_options options; /* owner "ada"                                  */
	struct baton_fleet *ada, *ben;      /* members of this process; a test may end them */
};

/* Fixtures: both have joined. The folder must be empty but for the fleet and its mark at the end.
 * A plain one waits as on old kernels; a twin has no file; in an empty one nobody has joined, and
 * there is no file. */
int world_setup(void **state);
int world_setup_plain(void **state);
int world_setup_twin(void **state);
int world_setup_empty(void **state);
int world_teardown(void **state);

#define WORLD_TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
#define EMPTY_TEST(name) cmocka_unit_test_setup_teardown(name, world_setup_empty, world_teardown)

/* The same test with waits on several words and with waits on one. */
#define WAIT_TEST(name)                                                       \
	cmocka_unit_test_setup_teardown(name, world_setup, world_teardown),   \
	{                                                                     \
#name "_plain", name, world_setup_plain, world_teardown, NULL \
	}

/* One more member of this process. It is ended by baton_fleet_leave(). */
struct baton_fleet *world_join(struct world *w, const char *owner);
enum baton_err world_join_error(struct world *w, const char *owner, struct baton_fleet **ret);

struct baton_mono now(void);
struct baton_mono in_ms(int64_t ms);

/* As late as a test can wait for something that is about to happen. */
struct baton_mono some_day(void);

/* The subject `label` in the namespace "test". */
struct baton_subject subject_of(const char *label);

/* One attempt; `ttl_ms` 0: none. `claim` and `holder` may be NULL. */
enum baton_err try_for(struct baton_fleet *f, const char *label, int64_t ttl_ms,
                       struct baton_claim *claim, struct baton_claim_holder *holder);
enum baton_err try_label(struct baton_fleet *f, const char *label, struct baton_claim *claim);

/* It must succeed. */
struct baton_claim hold(struct baton_fleet *f, const char *label);
struct baton_claim hold_for(struct baton_fleet *f, const char *label, int64_t ttl_ms);

/* Who has it, with a pid and a fence of 0 if nobody does. */
struct baton_claim_holder holder_of(struct baton_fleet *f, const char *label);

/* Counts of the fleet at this moment. */
struct baton_fleet_usage usage_of(struct baton_fleet *f);

/* Returns once so many threads stand in lines. */
void await_in_line(struct baton_fleet *f, uint32_t count);

/* Returns once the fleet counts so many that wait. */
void await_waiting(struct baton_fleet *f, uint32_t count);

/* A thread that waits in line for a subject. */
struct queued {
	pthread_t thread;
	struct baton_fleet *fleet;
	char label[32];
	struct baton_mono until;
	struct baton_duration ttl;
	struct baton_cancel cancel;
	enum baton_err answer;
	struct baton_claim claim;
	struct baton_claim_holder holder;
};
void queued_start(struct queued *q, struct baton_fleet *f, const char *label,
                  struct baton_mono until);
void queued_start_for(struct queued *q, struct baton_fleet *f, const char *label,
                      struct baton_mono until, struct baton_duration ttl);
enum baton_err queued_end(struct queued *q);

/* Another process that has joined as "kid" and does what it is told:
 *
 *	try LABEL TTL_MS, wait LABEL MS, release, renew TTL_MS, check    with its last claim
 *	lock roster, lock shard, unlock                                  locks of the segment
 *	tear                                     leaves an index half changed under the shard's lock
 *	thread LABEL                             claims it in a thread, which then ends
 *	fork                                     leaves a child behind that lives on
 *	exec                                     becomes a program that sleeps
 *	leave, exit                              ends with or without leaving
 *
 * It answers with the name of the answer, and for a claim the fence. */
struct kid {
	struct child child;
	char said[128];
};
void kid_start(struct kid *k, struct world *w);

/* Tells it, and returns what it says; "" if it has hung up. */
const char *kid_ask(struct kid *k, const char *command);
void kid_tell(struct kid *k, const char *command);
const char *kid_hear(struct kid *k);

/* The fence in what it said last, after BATON_OK. */
uint64_t kid_fence(const struct kid *k);

/* Returns once it has stopped. */
void kid_stop(struct kid *k);
void kid_continue(struct kid *k);
void kid_kill(struct kid *k);

/* Ends it as a good member. */
void kid_end(struct kid *k);

#endif
