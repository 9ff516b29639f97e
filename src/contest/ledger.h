/* The highest fence of each subject, in a file that processes share. */
#ifndef CONTEST_LEDGER_H
#define CONTEST_LEDGER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <baton/err.h>
#include <baton/id.h>
#include <baton/str.h>

#include "contest/keep.h"

struct ledger {
	/* To the lock of the file the threads of a process are one, so they take turns here. */
	pthread_mutex_t mu;
	pthread_cond_t left; /* [mu] it is nobody's turn   */
	bool taken;          /* [mu] it is somebody's turn */

	struct keep keep;     /* [const]                                       */
	struct baton_id seed; /* [const] under which subjects are hashed       */
	uint32_t subjects;    /* [const] how many there can be                 */
	uint32_t slots;       /* [const] a power of 2, at least twice as many  */
};

/* Opens the file at `path`, which must outlive the ledger, and makes it for `subjects` if it is not
 * there; one that is there keeps its own number.
 *
 * BATON_INVALID, BATON_FULL, BATON_SYSTEM: as baton_admit_open(). *l is as it was unless BATON_OK,
 * and then ended by ledger_done(), or by ledger_drop() in a forked child, where threads that
 * are not there may seem to use it. */
enum baton_err ledger_init(struct ledger *l, const char *path, uint32_t subjects);
void ledger_done(struct ledger *l);
void ledger_drop(struct ledger *l);

/* As baton_admit(), with arguments that were checked. *ret_highest is set for BATON_STALE only. */
enum baton_err ledger_admit(struct ledger *l, struct baton_str subject, uint64_t fence,
                            uint64_t *ret_highest);

#endif
