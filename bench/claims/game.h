/* What the contest and its rivals do in the cases of the bench. */
#ifndef BENCH_CLAIMS_GAME_H
#define BENCH_CLAIMS_GAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crew.h"

/* Who can take part. */
enum player {
	PLAYER_CONTEST = 1,
	PLAYER_ALONE, /* the contest, where nothing is held and nobody watches */
	PLAYER_FLOCK,
	PLAYER_OFD,
	PLAYER_MUTEX,
	PLAYER_CAS,
	PLAYER_FUTEX,
	PLAYER_END
};

struct load;

/* As in struct contestant (harness.h), for one player; run() or sample(). */
struct game {
	void *(*setup)(enum player who, const struct load *load); /* NULL: has no part in it */
	crew_work *run;
	double (*sample)(void *state);
	void (*teardown)(void *state);
};

/* What a case asks for. Fields that a game does not know are 0. */
struct load {
	const struct game *game;
	bool cold;        /* pair: the subject is looked up each time                       */
	bool fixed_now;   /* pair: the clock is not read                                    */
	uint64_t ttl_ms;  /* pair: 0: none                                                  */
	bool rivals;      /* pair: everybody else takes part; else the contest alone        */
	uint32_t held;    /* pair: so many other subjects are held meanwhile                */
	unsigned watches; /* pair: so many are open, in another process                     */
	bool reading;     /* pair: each of them has a thread that waits for events          */
	size_t resident;  /* takeover: bytes of memory that the victim has                  */
};

extern const struct game game_pair;
extern const struct game game_pass;        /* hand over, the next one being awake   */
extern const struct game game_pass_asleep; /* the same, it being asleep             */
extern const struct game game_takeover;
extern const struct game game_stopped_line;
extern const struct game game_stopped_lock;
extern const struct game game_wakeup;

#endif
