/* The processes of a host that share a memory segment, and so can claim things from each other.
 *
 * A fleet is a file. Whoever joins it is a member until he leaves or dies; a member that dies, by
 * whatever means, is known to be dead at once by all the others. */
#ifndef BATON_FLEET_H
#define BATON_FLEET_H

#include <stdbool.h>
#include <stdint.h>

#include <baton/api.h>
#include <baton/err.h>
#include <baton/id.h>
#include <baton/str.h>

BATON_BEGIN

struct baton_fleet;

#define BATON_FLEET_PATH_MAX 4000

/* The geometry of a new fleet: what it takes if nothing is said, and the most it can have. */
#define BATON_FLEET_MEMBERS 1024
#define BATON_FLEET_MEMBERS_MAX 65000
#define BATON_FLEET_SUBJECTS 65536
#define BATON_FLEET_SUBJECTS_MAX 4194304
#define BATON_FLEET_WAITERS 4096
#define BATON_FLEET_WAITERS_MAX 1048576
#define BATON_FLEET_EVENTS 256
#define BATON_FLEET_EVENTS_MAX 65536
#define BATON_FLEET_WAKEUPS 4096
#define BATON_FLEET_WAKEUPS_MAX 1048576

/* How many of what there can be at once. 0: as above. */
struct baton_fleet_limits {
	uint32_t members;  /* processes                                                     */
	uint32_t subjects; /* claimed at once                                               */
	uint32_t waiters;  /* threads that wait in line                                     */
	uint32_t events;   /* kept for each member until a watch reads them; a power of 2   */
	uint32_t wakeups;  /* kept for all who wait for them; a power of 2                  */
};

struct baton_fleet_options {
	/* Its file. NULL: that of baton_fleet_default(). */
	const char *path;

	/* The file in which the highest fence is kept, for the time after the fleet's own file: the
	 * same one for all members.
	 * NULL: beside it, with ".mark" appended; for the default fleet, one that survives
	 * a reboot. */
	const char *mark;

	/* What others are told about who holds: 1 to BATON_NAME_MAX bytes of UTF-8 without control
	 * characters. */
	struct baton_str owner;

	struct baton_fleet_limits limits; /* for a new one; one that is there keeps its own      */
	bool group;                       /* a new one is for the group of its folder (660)      */
	bool plain_futex;                 /* wait as on kernels before 5.16                      */
};

/* The path of this user's fleet: $BATON_FLEET; else /run/baton/fleet where this user may write;
 * else /dev/shm/baton-UID/fleet, whose folder is made if need be.
 *
 * BATON_INVALID: BATON_FLEET is no absolute path. BATON_SYSTEM: the folder cannot be made.
 * `path` is untouched unless BATON_OK. Any thread, as getenv(3) allows. */
BATON_API enum baton_err baton_fleet_default(char path[BATON_FLEET_PATH_MAX + 1]);

/* Joins the fleet, which is made if it is not there. A thread that serves this membership begins,
 * with all signals blocked, and lasts until baton_fleet_leave().
 *
 * BATON_OK:      *ret_fleet is the caller's, ended by baton_fleet_leave().
 * BATON_INVALID: a bad path, label or limit; or what is there is no fleet, of another version,
 *                owner or mode. It is left as it is.
 * BATON_FULL:    the fleet has as many members as it can have, or the file system no room.
 * BATON_BUSY:    a stopped process is in the way.
 * BATON_SYSTEM, BATON_NO_MEMORY.
 * *ret_fleet is untouched unless BATON_OK. Any thread. A process may join several times, and is
 * then several members. A forked child is none: it joins for itself. */
BATON_API enum baton_err baton_fleet_join(const struct baton_fleet_options *options,
                                          struct baton_fleet **ret_fleet);

/* Gives back all that is held and leaves. No other call on it may be under way. In a forked child
 * it only frees the memory. NULL is fine. */
BATON_API void baton_fleet_leave(struct baton_fleet *fleet);

/* Begins a fleet that is nobody else's: the same answers, in the memory of this process, without a
 * file and without a thread. `path`, `mark` and `group` of the options mean nothing.
 * Errors as above. */
BATON_API enum baton_err baton_fleet_twin(const struct baton_fleet_options *options,
                                          struct baton_fleet **ret_fleet);

/* Joins the fleet of `twin` as one more member under the name `owner`. Each leaves by itself; the
 * last one frees the memory. Errors as above. */
BATON_API enum baton_err baton_fleet_twin_join(struct baton_fleet *twin, struct baton_str owner,
                                               struct baton_fleet **ret_fleet);

/* Whether the fleet is still the one of its path, and this process the one that joined: false once
 * its file was removed or replaced, and in a forked child. All claims are lost then. One system
 * call. Any thread. */
BATON_API bool baton_fleet_is_current(const struct baton_fleet *fleet);

/* The member's incarnation: how it is told apart from any other that has the same label or pid. */
BATON_API struct baton_id baton_fleet_incarnation(const struct baton_fleet *fleet);

/* Removes the file of a fleet in which nobody lives. Fences go on growing in the next one.
 *
 * BATON_YIELD: members live in it; the detail says how many, and names one.
 * BATON_NOT_HELD: there is no such fleet. BATON_INVALID, BATON_BUSY, BATON_SYSTEM: as above.
 * It is as it was unless BATON_OK. Any thread. */
BATON_API enum baton_err baton_fleet_reset(const char *path);

BATON_END

#endif
