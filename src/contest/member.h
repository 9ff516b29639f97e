/* A process's membership in a fleet: what every call begins with. */
#ifndef CONTEST_MEMBER_H
#define CONTEST_MEMBER_H

#include <baton/fleet.h>

#include "contest/event.h"
#include "contest/home.h"
#include "contest/keeper.h"
#include "contest/layout.h"

/* A fleet without a file, and how many of its members are left. */
struct twin {
	struct view view;
	_Atomic uint32_t members;
};

struct baton_fleet {
	struct view *view;       /* [const] own.view, or the twin's                           */
	_Atomic uint32_t *here;  /* [const] an enum here                                      */
	struct voice voice;      /* [const]                                                   */
	uint64_t tag;            /* [const] not 0: tells what this membership remembers       */
	struct twin *twin;       /* [const] NULL: there is a file                             */
	uint32_t code;           /* [const]                                                   */
	bool plain;              /* [const] waits on one word only                            */
	uint32_t label_max;      /* [const] bytes of a subject's label, beside the own one    */
	_Atomic int64_t asleep;  /* how long the machine has slept since boot, as last seen   */
	struct baton_owner self; /* [const]                                                   */
	struct view own;         /* [const]                                                   */
	char mark[HOME_MARK_MAX + 1]; /* [const] where the mark is kept                      */
	struct keeper keeper;
};

/* Whether this is the process that joined, and the fleet is still there as far as is known: the
 * keeper finds out within microseconds when it is not. */
static inline bool member_is_here(const struct baton_fleet *f)
{
	return atomic_load_explicit(f->here, memory_order_relaxed) == HERE_MEMBER;
}

/* The same, and looks at the file itself. */
bool member_is_current(struct baton_fleet *f);

/* Why it is not. */
enum baton_err member_gone(const struct baton_fleet *f);

#endif
