/* The thread by whose end the others know that a process has ended.
 *
 * It holds the member's life word in the way of a robust futex: whatever ends the process, or calls
 * exec() in it, ends this thread, and then the kernel takes its number out of the word and wakes
 * one of those who sleep on it. The list by which the kernel knows of the word is this thread's own
 * and lies in the memory of its process, so that nothing in the segment is ever followed as a
 * pointer. It also notices when the fleet's file is removed. */
#ifndef CONTEST_KEEPER_H
#define CONTEST_KEEPER_H

#include <linux/futex.h>
#include <pthread.h>

#include "contest/layout.h"

/* What a member's process knows of its membership, in a page that a forked child finds empty. */
enum here {
	HERE_CHILD = 0, /* nothing: it was forked from the process that joined */
	HERE_MEMBER,    /* it joined                                           */
	HERE_GONE       /* it joined, and the fleet's file is gone             */
};

struct keeper {
	struct view *view;              /* [const]                                             */
	_Atomic uint32_t *_Atomic life; /* NULL: it has none yet                    [atomic] */
	_Atomic uint32_t code;          /* of its member; 0: none yet                 [atomic] */
	_Atomic uint32_t tid;           /* 0: it has not begun                        [atomic] */
	_Atomic uint32_t *here;         /* an enum here                                [const] */
	int stop;                       /* an eventfd: it shall end                    [const] */
	int notify;                     /* an inotify descriptor, or -1                [const] */
	pthread_t thread;               /* [const]                                             */
	struct robust_list_head list;   /* read by the kernel when the thread ends             */
	struct robust_list entry;
};

/* Starts it, before anything is known of it to others. `keeper` and *here must stay where they are.
 *
 * BATON_SYSTEM: nothing was started. */
enum baton_err keeper_start(struct keeper *keeper, struct view *view, _Atomic uint32_t *here);

/* Gives it the life word of the member `code`: from then on its end is that member's. */
void keeper_hold(struct keeper *keeper, _Atomic uint32_t *life, uint32_t code);

/* Ends it, which is a death as all others see it. Fine for one that has not been started. */
void keeper_stop(struct keeper *keeper);

/* Closes what it has in a forked child, where it does not run. */
void keeper_forget(struct keeper *keeper);

/* Looks whether the fleet's file is still there, and remembers if it is not. */
bool keeper_look(struct keeper *keeper);

#endif
