/* The fleet of the walk: subjects, places, members and processes, and who acts in it.
 *
 * Every number is below 16. What src/contest/word.h decides is decided by calling it. What is said
 * to be the walk's alone is for the judge: no actor reads it. docs/contest-model.md says what the
 * model leaves out. */
#ifndef CONTEST_WALK_WORLD_H
#define CONTEST_WALK_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "contest/word.h"
#include "walk.h"

#define PLACES 2
#define SUBJECTS 2
#define CODES 2
#define PROCESSES 3
#define ACTORS 6
#define CHOICES 4
#define NONE 15

/* What can be wrong. */
#define WRONG_TWO "two hold one subject at once"
#define WRONG_FENCE "a fence is not above all that the subject had before"
#define WRONG_KEY "somebody holds the place of a subject that he did not ask for"
#define WRONG_CODE "a claim stands under a code that is not its holder's"
#define WRONG_TOUCH "a call changed a claim that was not its own"
#define WRONG_LATE "an expired claim was renewed"
#define WRONG_LEFT "a release left the claim held"
#define WRONG_STUCK "somebody who is alone cannot have what he wants"
#define WRONG_WORD "a word is none that can be"

/* One way each in which the protocol could be wrong; all false: as it is. */
struct rules {
	bool reuse_without_proof; /* a code is given away once its life has ended                 */
	bool reuse_without_sweep; /* a code is given away with claims under it                    */
	bool sweep_without_lock;  /* two may sweep at once, and somebody may join meanwhile       */
	bool take_compares_who;   /* a take does not compare the deadline                         */
	bool take_keeps_tenure;   /* a take does not raise the tenure                             */
	bool lives_at_deadline;   /* a holder takes the very deadline for his                     */
	bool verdict_is_kept;     /* who was seen dead once is so for the next look at the word   */
	bool key_read_first;      /* the key is compared before the word is seen, not after       */
	bool key_written_last;    /* the key is written after the word, not before                */
	bool remove_keeps_word;   /* a place is given away without a mark in its word             */
	bool insert_skips_floor;  /* a new subject's tenure is only above that of its place       */
	bool floor_raised_last;   /* after the place is off the list, not before                  */
	bool repair_is_skipped;   /* what a dead owner of the lock left is left so                */
	bool release_tries_once;  /* a release gives up when the word has changed                 */
	bool release_skips_fence; /* a release compares the member only                           */
};

/* Who is there, and how long each of them goes on. */
struct cast {
	uint8_t processes; /* that claim; */
	uint8_t present;   /* so many of them from the beginning */
	uint8_t mortal;    /* so many of them can be killed      */
	uint8_t threads;   /* of each process */
	uint8_t codes;
	uint8_t subjects;
	uint8_t places;
	bool settled;      /* the subjects have their places from the beginning */
	uint8_t operators; /* who force */
	uint8_t sweepers;
	uint8_t removers;
	uint8_t calls;        /* of each thread of the first process */
	uint8_t rival_calls;  /* of each thread of the others        */
	uint8_t helper_calls; /* of each operator, sweeper and remover */
	uint8_t ttl;          /* 0: never expires */
	uint8_t renewal;      /* the ttl of a renewal */
	uint8_t time;         /* the last moment; the first is 1 */
	bool safety_only;     /* whether anybody can get on is not judged */
};

/* struct word in small numbers; its code is NONE where that of the word is WORD_VACANT. */
struct small {
	uint8_t tenure;
	uint8_t code;
	uint8_t expires;
};

struct place {
	struct small word;
	uint8_t key;    /* the subject's; NONE: never written  */
	uint8_t holder; /* the process that took it; NONE: it is not held. The walk's alone */
};

enum life {
	LIFE_FREE = 1, /* the code is nobody's                      */
	LIFE_ALIVE,    /* the keeper's mutex has an owner           */
	LIFE_DEAD      /* the owner has died; the code is not free  */
};

struct member {
	uint8_t life;
	uint8_t process; /* whose pid it names; NONE: free */
};

enum fate {
	FATE_ABSENT = 1, /* has not joined yet                                     */
	FATE_ALIVE,
	FATE_DYING, /* its keeper is dead, its threads may still go on        */
	FATE_GONE   /* the whole process, for anybody to see                  */
};

/* `fence` and what follows is the claim that its threads share; fence 0: none. */
struct process {
	uint8_t fate;
	uint8_t code;
	uint8_t fence;
	uint8_t subject;
	uint8_t place;
	uint8_t deadline; /* until when it was told that it holds; 0: for good */
	uint8_t believes; /* 0: it was forced. The walk's alone: it is not told   */
};

enum program {
	PROGRAM_IDLE = 1,
	PROGRAM_ACQUIRE,
	PROGRAM_INSERT,
	PROGRAM_RENEW,
	PROGRAM_RELEASE,
	PROGRAM_FORCE,
	PROGRAM_SWEEP,
	PROGRAM_REMOVE,
	PROGRAM_COUNT
};

/* A thread of a process, or a helper: a process of its own that holds nothing. What it remembers
 * between two steps; nothing while it is idle. */
struct actor {
	uint8_t program;
	uint8_t step;
	uint8_t left; /* calls that it may still begin */
	uint8_t subject;
	uint8_t place;
	uint8_t fence; /* of the claim to renew or release */
	struct small seen;
	uint8_t now;  /* as it read the clock                               */
	uint8_t dead; /* the code that it saw dead; a sweeper's, to sweep   */
};

struct world {
	uint8_t now;
	uint8_t lock;            /* the actor that has the shard's lock, or NONE */
	uint8_t torn;            /* the last one that had it died with it        */
	uint8_t roster;          /* the actor that has the members' lock, or NONE */
	uint8_t at[SUBJECTS];    /* the index: the place of each subject, or NONE */
	uint8_t floor[SUBJECTS]; /* of the shard of each: they are in different ones */
	uint8_t last[SUBJECTS];  /* the highest fence so far. The walk's alone */
	struct place places[PLACES];
	struct member members[CODES + 1]; /* by code; 0 is none */
	struct process processes[PROCESSES];
	struct actor actors[ACTORS];
};

/* One step being made. */
struct scene {
	const struct cast *cast;
	const struct rules *rules;
	struct world *w;
	struct actor *me;
	uint8_t self;   /* its number                            */
	uint8_t choice; /* below CHOICES, where there is one     */
	const char *wrong;
};

/* A step is atomic: it looks at, or changes, at most one thing that others can change. false: it is
 * not possible now. */
typedef bool step_fn(struct scene *s);

/* A walk's subject as walk_run() wants it. */
struct play {
	struct cast cast;
	struct rules rules;
};
struct walk_model walk_world(const struct play *play);

/* How the world begins, and everything that happens to it without an actor's doing. */
void world_init(const struct cast *cast, struct world *w);
bool world_tick(struct scene *s);
bool process_is_killed(struct world *w, uint8_t process);
bool process_goes(const struct cast *cast, struct world *w, uint8_t process);
bool process_joins(const struct play *play, struct world *w, uint8_t process);
bool helper_dies(struct world *w, uint8_t actor);

/* What is wrong with a state. */
const char *world_judge(const struct play *play, const struct world *w);

/* The steps of a program, up to NULL. */
step_fn *const *program_of(const struct rules *rules, enum program program);

/* Makes the next step of s->me; the steps themselves say what comes after them. */
bool actor_acts(struct scene *s);
void go(struct scene *s, enum program program, step_fn *step);
void next(struct scene *s);
void rest(struct scene *s);

/* The steps, by the file that they are in. */
step_fn find_place, observe, compare_key, look_at_life, decide_take, take;
step_fn take_up, decide_renew, renew, decide_release, release, decide_force, force;
step_fn lock, look_again, choose_place, write_key, read_clock, settle, list, unlock;
step_fn decide_remove, vacate, raise_floor, unlist;
step_fn find_dead, look_for_claim, free_claim, free_code;

/* What several of them need. */
unsigned threads_of(const struct cast *cast);
unsigned helpers_of(const struct cast *cast);
uint8_t process_of(const struct cast *cast, uint8_t actor);
struct process *own_process(const struct scene *s);
struct word word_of(struct small small);
bool is_same(struct small a, struct small b);
bool swap(struct scene *s, struct word to);
void hold(struct scene *s, uint8_t ttl);
uint8_t after(const struct scene *s, uint8_t ttl);

static inline uint8_t u8(unsigned n)
{
	return (uint8_t)n;
}

#endif
