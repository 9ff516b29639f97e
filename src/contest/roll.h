/* The highest fence of each subject, in the memory of this process. */
#ifndef CONTEST_ROLL_H
#define CONTEST_ROLL_H

#include <pthread.h>
#include <stdint.h>

#include <baton/alloc.h>
#include <baton/err.h>
#include <baton/id.h>
#include <baton/str.h>

struct roll_entry {
	struct baton_id subject; /* the hash of it  */
	uint64_t highest;        /* 0: free         */
};

struct roll {
	pthread_mutex_t mu;
	const struct baton_alloc *alloc; /* [const]                                         */
	struct baton_id seed;            /* [const] under which subjects are hashed         */
	uint32_t subjects;               /* [const] how many there can be                   */
	uint32_t count;                  /* [mu] how many there are                         */
	uint32_t size;                   /* [mu] of the table: 0, or a power of 2           */
	struct roll_entry *table;        /* [mu] at most half full                          */
};

/* Nothing has been admitted. BATON_SYSTEM: no random source; *r is as it was. Ended by roll_done().
 */
enum baton_err roll_init(struct roll *r, uint32_t subjects, const struct baton_alloc *alloc);
void roll_done(struct roll *r);

/* As baton_admit(), with arguments that were checked. *ret_highest is set for BATON_STALE only. */
enum baton_err roll_admit(struct roll *r, struct baton_str subject, uint64_t fence,
                          uint64_t *ret_highest);

#endif
