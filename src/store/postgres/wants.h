/* What a transaction has to have before it, and so what it locks: gathered from all calls in it. */
#ifndef POSTGRES_WANTS_H
#define POSTGRES_WANTS_H

#include <baton/work.h>

#include "base/arena.h"
#include "queue/batch.h"
#include "store/store.h"

struct strs {
	struct baton_str *list;
	size_t count, cap;
};

struct nums {
	uint64_t *list;
	size_t count, cap;
};

/* Work to be claimed of a queue. */
struct want_heads {
	struct baton_str queue;
	uint32_t pool; /* 0, or one more than the shard */
	uint32_t few;  /* at most so many claims        */
	uint32_t max;  /* batches in each               */
};

struct wants {
	struct arena arena;
	bool memory; /* false: there was not enough */
	struct strs queues;
	struct strs classes; /* whose queues are needed, too, with those of the class of `queues` */
	uint64_t class_locks;           /* the bits of these */
	struct strs lane_queues, lanes; /* pairs */
	/* As these, the lines of keys of what is put: nobody else is presumed to have them. */
	struct strs key_queues, key_lines;
	/* And those of the keys of what is put into a lane, or has several. */
	struct strs guest_queues, guest_lines;
	struct strs subjects, keys, schedules;
	struct strs taken;         /* subjects that may get another owner              */
	bool all_may_be;           /* even those that are live: their holders may be dead */
	struct nums heads, fences; /* claims, by name */
	struct nums bases;       /* their heads in steps of 64, each once, if they come in order */
	struct nums lows, highs; /* the lowest and the highest of each step */
	/* The queues of all of them, by number, and their stripes, as far as this process
	 * remembers; none: they are asked for. */
	struct nums guessed, guessed_stripes;
	bool apart;                          /* and they have rows of their own, all of them */
	struct nums rest_heads, rest_fences; /* those of the claims that have rows of their own */
	struct nums melt;                    /* batches that cannot stay in a row with others */
	struct nums ids;
	struct nums stripes;
	struct want_heads *takes;
	size_t take_count, take_cap;
	const struct baton_lane_ask *lane_ask;
	struct strs full; /* keys that are passed over: the number of the queue, and the line */
	/* And those that have started too often where the names of starts begin so: in the process
	 * of who claims, and on its host. */
	struct strs sites;
	uint64_t runner;  /* 0, or whose claims and shards are needed */
	bool leaves;      /* it goes, and so all of its queues are locked */
	bool runners;     /* all of them                              */
	uint64_t only;    /* or this one alone                        */
	uint64_t numbers; /* of batches, at most so many              */
	bool timed;       /* something is put that is not ready at once */
	bool due;         /* what time has done is seen to before anything is read */
};

void pg_wants_init(struct wants *w, const struct baton_alloc *alloc);
void pg_wants_done(struct wants *w);

void want_queue(struct wants *w, struct baton_str name);
void want_guess(struct wants *w, uint32_t queue, uint32_t stripe);
void want_lane(struct wants *w, struct baton_str queue, struct baton_str lane);
void want_subject(struct wants *w, struct baton_str subject);
void want_take(struct wants *w, struct baton_str subject);
void want_pull(struct wants *w, struct baton_str queue);
void want_line(struct wants *w, const struct baton_lane_ask *ask);
void want_shard(struct wants *w, struct baton_str queue, uint32_t number);

/* `whole`: the claim is completed, and nothing else. */
void want_claim(struct wants *w, const struct baton_work_proof *proof, bool whole);
void want_rest(struct wants *w, const struct claim_name *name);
void want_batch(struct wants *w, const struct baton_batch_id *id);
void want_puts(struct wants *w, const struct baton_batch *batches, size_t count);
void want_ends(struct wants *w, const struct baton_work_end *ends, size_t count);
/* What others have of the keys is needed after all. */
void want_key_lines(struct wants *w);
void want_guest_lines(struct wants *w);
void want_schedule(struct wants *w, struct baton_str name);
void want_heads(struct wants *w, const struct want_heads *take);

/* Such a key: what is claimed is not to be of it. */
void want_pass(struct wants *w, int64_t queue, struct baton_str line);

/* And what has started too often where that owner is. */
void want_pass_rated(struct wants *w, const struct baton_owner *owner);

/* The runner of that number may not come or go meanwhile; 0: none may come. */
void want_runner(struct wants *w, uint64_t number);

/* How many batches a row can have: their numbers are the same but for the rest of the division. */
#define BULK_MAX 64

/* Which of the locks a queue, or another subject, is under; the same in SQL. */
#define STRIPES 1024
#define STRIPES_OF_RUNNERS 64 /* come first */
#define CLASSES 64            /* come last  */

/* All that is done to queues of a class is done under its lock, as well as under their own. The bit
 * that stands for it. */
uint64_t class_bit(struct baton_str name);
void want_class(struct wants *w, struct baton_str name);

uint32_t stripe_of(struct baton_str name);

#endif
