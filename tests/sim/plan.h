/* What is to happen in a run: how many runners, and what people and faults do when. Made from a
 * seed, and made smaller to find out what matters. */
#ifndef SIM_PLAN_H
#define SIM_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLAN_SEATS_MAX 5
#define PLAN_ACTIONS_MAX 256
#define PLAN_QUEUES 3

/* Ways in which the product could be wrong; each is made in the simulator, around the real code. */
enum variant {
	VARIANT_NONE = 0,
	VARIANT_UNFENCED,     /* the store accepts what comes under an old fence */
	VARIANT_RECEIVED,     /* deadlines count from the receipt of the answer */
	VARIANT_UNDETACHED,   /* a detachment that comes while it reattaches is lost */
	VARIANT_UNRECOVERED,  /* what a dead runner had claimed is not given back */
	VARIANT_KEYLESS,      /* nobody counts who holds a key */
	VARIANT_GUESTLESS,    /* what has a lane is not counted among those who hold a key */
	VARIANT_PARTIAL,      /* what has several keys holds one of them */
	VARIANT_CLASSLESS,    /* each queue of a class counts by itself who holds a key */
	VARIANT_APART,        /* each counts by itself how often a key has started */
	VARIANT_UNFAIR,       /* the key whose job came first goes on and on */
	VARIANT_UNRATED,      /* nobody counts how often a key has started */
	VARIANT_UNBOUNDED,    /* nobody counts how many wait for a key */
	VARIANT_SITELESS,     /* nobody counts who holds a key where it counts */
	VARIANT_SITE_UNRATED, /* nobody counts how often a key has started where it counts */
	VARIANT_HOSTLESS      /* runners of one host are taken for those of several */
};

enum action_kind {
	ACT_PUT = 1,
	ACT_CANCEL,
	ACT_PAUSE,
	ACT_RESUME,
	ACT_WISH, /* of the operator, through the store */
	ACT_DETACH,
	ACT_ATTACH,
	ACT_JOIN,
	ACT_STOP,    /* as by SIGTERM; it is started again */
	ACT_RETIRE,  /* the same, and it is not */
	ACT_REPLACE, /* a second one of the same name, which replaces the first */
	ACT_CRASH,
	ACT_FREEZE,
	ACT_ORPHAN, /* the guardian is killed */
	ACT_STEP,   /* of the store's wall clock */
	ACT_HOLD,   /* a long transaction of a user's own, which keeps rows of a shard */
	/* On the way between a runner and the store, for some time. */
	ACT_LOSE,
	ACT_DEAFEN,
	ACT_REPEAT,
	ACT_HOLE,
	ACT_SLOW,
	ACT_BUSY,
	ACT_ERROR,
	ACT_END
};

struct action {
	enum action_kind kind;
	uint32_t seat;    /* PLAN_SEATS_MAX: all */
	int64_t at, span; /* ns */
	uint64_t arg;
};

struct plan {
	uint64_t seed;
	enum variant variant;
	bool whys; /* what is said of waiting work is judged */
	bool near; /* one host; beats are in memory, and the dead are known */
	uint32_t hosts;
	uint32_t seats;
	int64_t ttl, margin; /* ns */
	int64_t end;         /* of the faults */
	size_t count;
	struct action actions[PLAN_ACTIONS_MAX];
};

void plan_make(struct plan *plan, uint64_t seed, enum variant variant);

/* Of those that last, the one that is under way for that seat; NULL: none. */
const struct action *plan_window(const struct plan *plan, enum action_kind kind, uint32_t seat,
                                 int64_t now);

const char *action_name(enum action_kind kind);

#endif
