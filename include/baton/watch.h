/* Looking at a fleet without being a member: who is in it, who holds what, and what happens.
 *
 * A watch maps the fleet's table read-only and can change nothing there. What it tells as it
 * happens is advisory: a watch that does not keep up is told exactly how much it missed, and looks
 * at the table again, which is the truth. */
#ifndef BATON_WATCH_H
#define BATON_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include <baton/api.h>
#include <baton/claim.h>
#include <baton/err.h>
#include <baton/fleet.h>
#include <baton/id.h>
#include <baton/str.h>
#include <baton/time.h>

BATON_BEGIN

struct baton_watch;

/* Opens a watch on the fleet at `path`, or at baton_fleet_default() if that is NULL. What happens
 * from now on is told.
 *
 * BATON_NOT_HELD: there is no such fleet in its folder. BATON_INVALID: what is there is none, or of
 * another version, owner or mode. BATON_SYSTEM, BATON_NO_MEMORY. *ret_watch is untouched unless
 * BATON_OK.
 * It is ended by baton_watch_close(). One thread at a time uses a watch. */
BATON_API enum baton_err baton_watch_open(const char *path, struct baton_watch **ret_watch);

/* A watch on the fleet of a member, which may be a twin. `fleet` must outlive it. */
BATON_API enum baton_err baton_watch_fleet(struct baton_fleet *fleet,
                                           struct baton_watch **ret_watch);

/* NULL is fine. */
BATON_API void baton_watch_close(struct baton_watch *watch);

enum baton_event_kind {
	BATON_EVENT_CLAIMED = 1, /* the member holds it now                                    */
	BATON_EVENT_RELEASED,    /* the member gave it back                                    */
	BATON_EVENT_EXPIRED,     /* the member's time had run out when somebody else took it   */
	BATON_EVENT_DIED,        /* the member was found dead while it held it                 */
	BATON_EVENT_FORCED       /* an operator took it from the member                        */
};

/* "claimed", "released", "expired", "died", "forced". Static text. */
BATON_API const char *baton_event_name(enum baton_event_kind kind);

/* What happened to a subject. Its fence tells the order of a subject's events; two of one fence are
 * its beginning and its end. What is heard at once is told in that order, but a member may say
 * something later than another who came after it. */
struct baton_event {
	enum baton_event_kind kind;
	struct baton_str space; /* both hold until the next call with the watch          */
	struct baton_str label;
	baton_fence fence;
	int32_t pid;                    /* of the member; 0: it has left, and nobody knows       */
	char owner[BATON_NAME_MAX + 1]; /* of the member                                        */
};

/* Waits for the next event until `until` on baton_clock_boot(), a moment that has passed meaning
 * not at all.
 *
 * BATON_OK:      *ret_event is the next one.
 * BATON_FULL:    *ret_lost events were lost to this watch since it last said so: look at
 *                baton_watch_each(). The next call goes on with what is left.
 * BATON_TIMEOUT, BATON_CANCELLED: nothing happened.
 * BATON_GONE:    the fleet's file was removed or replaced.
 * Out-parameters are untouched except as said. `cancel` may be NULL. */
BATON_API enum baton_err baton_watch_next(struct baton_watch *watch, struct baton_mono until,
                                          struct baton_cancel *cancel,
                                          struct baton_event *ret_event, uint64_t *ret_lost);

/* An eventfd for poll(2) that is readable when baton_watch_next() may have something. It is the
 * watch's, and so is the thread that feeds it. Read it, then call baton_watch_next() until that
 * says BATON_TIMEOUT. BATON_SYSTEM: *ret_fd is untouched. */
BATON_API enum baton_err baton_watch_fd(struct baton_watch *watch, int *ret_fd);

/* Calls visit() for every subject that is held at `now`, until it returns false. One that is held
 * from beginning to end is shown exactly once. The order means nothing. */
BATON_API void baton_watch_each(struct baton_watch *watch, struct baton_mono now,
                                bool (*visit)(const struct baton_subject *subject,
                                              const struct baton_claim_holder *holder, void *arg),
                                void *arg);

/* One member of a fleet. */
struct baton_member {
	char owner[BATON_NAME_MAX + 1];
	int32_t pid;
	struct baton_id incarnation;
	struct baton_mono since;
	uint32_t held;    /* how many subjects          */
	uint32_t waiting; /* how many of its threads    */
};

/* Calls visit() for every member that lives, until it returns false. */
BATON_API void baton_watch_members(struct baton_watch *watch, struct baton_mono now,
                                   bool (*visit)(const struct baton_member *member, void *arg),
                                   void *arg);

/* How full a fleet is. */
struct baton_fleet_usage {
	struct baton_fleet_limits limits;
	uint32_t members;  /* that live                                                       */
	uint32_t departed; /* that are dead, and whose place has not been needed yet          */
	uint32_t subjects; /* that are held                                                   */
	uint32_t known;    /* that are or were held; their room is reused when it is needed   */
	uint32_t waiters;
	uint64_t bytes;     /* of the file                                                     */
	baton_fence mark;   /* no fence so far is higher                                       */
	struct baton_id id; /* of this fleet: another one of the same path has another         */
};

BATON_API void baton_watch_usage(struct baton_watch *watch, struct baton_mono now,
                                 struct baton_fleet_usage *ret_usage);

/* The path of the fleet; "" for a twin. It is the watch's. */
BATON_API const char *baton_watch_path(const struct baton_watch *watch);

BATON_END

#endif
