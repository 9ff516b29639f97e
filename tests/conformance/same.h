/* The same operations on two stores of different kinds, whose answers have to be the same. */
#ifndef CONFORMANCE_SAME_H
#define CONFORMANCE_SAME_H

#include "world.h"

#define SIDES 2
#define SAME_QUEUES 4    /* in the last two, work may have a lane and a key, or several */
#define SAME_GUESTS 2    /* the first of these */
#define SAME_SHARDED "d" /* and that of runners */
#define SAME_CLASS 1     /* the first that may have its keys in common with those behind it */
#define SAME_RUNNERS 2
#define SAME_KEYS 3
#define SAME_LANES 4 /* the first has no name */
#define SAME_IDS 8192
#define SAME_CLAIMS 8192
#define SAME_BATCHES 6 /* in one claim */
#define SAME_NUMBERS 12

/* What is done: which kind, and numbers that choose among what there is at that moment. So every
 * part of a list of them is such a list too. */
struct op {
	uint32_t kind;
	uint32_t n[SAME_NUMBERS];
};

/* A claim as each side gave it. */
struct same_claim {
	struct baton_work_proof proof[SIDES];
	struct baton_batch_id ids[SAME_BATCHES];
	size_t count;
	char lane[4];
};

struct same_runner {
	struct baton_runner *handles[SIDES]; /* NULL: it is not registered */
};

struct same_lease {
	struct baton_lease lease[SIDES];
	bool given;
};

struct same {
	struct world w[SIDES];
	struct baton_owner self[SIDES]; /* who opened it first */
	struct baton_batch_id ids[SAME_IDS];
	size_t id_count;
	struct same_claim claims[SAME_CLAIMS];
	size_t claim_count;
	struct same_lease lanes[SAME_QUEUES][SAME_LANES];
	struct same_lease pulls[SAME_QUEUES];
	uint64_t fences[SIDES][SAME_QUEUES][SAME_LANES]; /* the last of each lane */
	struct same_runner runners[SAME_RUNNERS];
	uint64_t shard_fences[SIDES];
	unsigned looks;                        /* at all there is */
	uint64_t key_fences[SIDES][SAME_KEYS]; /* and of each key of the last queue */
	bool guests;                           /* there was one with a lane and a key */
	bool classed;                          /* queues have their keys in common */
	bool guestless; /* no job has a lane and a key, or several: so they give way to others */
	char said[SIDES][300]; /* the detail of the last error of each side */
	char did[400];         /* the operation, for people */
	char why[600];         /* they differ; "": they do not */
};

/* `classed`: all queues but the first have their keys in common. */
void same_open(struct same *s, bool classed);
void same_close(struct same *s);

/* Does it on both sides, and compares the answers. */
void same_apply(struct same *s, const struct op *op);

/* Compares all that can be seen. */
void same_compare_all(struct same *s);

/* A claim was just given: no more hold its key than its limit says. */
void same_check_key(struct same *s, int side, const struct baton_work_claim *c);

/* What runners do. */
void same_runner(struct same *s, const uint32_t *n);
void same_shard(struct same *s, const uint32_t *n);
void same_tick(struct same *s, const uint32_t *n);
void same_more(struct same *s, const uint32_t *n);
void same_settle(struct same *s, const uint32_t *n);
void same_take_over(struct same *s, const uint32_t *n);
void same_runners_leave(struct same *s);

/* One of the last claims; NULL: there was none. */
const struct same_claim *same_pick_claim(struct same *s, uint32_t n);

/* Compares what was given, and frees it. */
void same_claims(struct same *s, struct baton_work_claims *given[SIDES]);

/* Adds to what people are told of the operation. */
void same_did(struct same *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Whether the key is one of these; and whether all of them are the same. */
bool same_has_key(const struct baton_str *keys, size_t count, struct baton_str key);
void same_keys(struct same *s, const struct baton_str *a, size_t a_count, const struct baton_str *b,
               size_t b_count);

/* How many kinds of operations there are, and which one the lot falls on. */
uint32_t same_kind(uint64_t lot);

/* Says that they differ, unless something else was said before. */
void same_differ(struct same *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

void same_number(struct same *s, const char *what, long long a, long long b);
#define SAME(s, what, a, b) same_number((s), (what), (long long)(a), (long long)(b))

void same_text(struct same *s, const char *what, struct baton_str a, struct baton_str b);

#endif
