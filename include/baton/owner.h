/* Who asks for something, and how anyone can tell whether that one is dead. */
#ifndef BATON_OWNER_H
#define BATON_OWNER_H

#include <stdbool.h>
#include <stdint.h>

#include <baton/api.h>
#include <baton/err.h>
#include <baton/id.h>
#include <baton/str.h>

BATON_BEGIN

/* An owner is a local process, or opaque: somebody elsewhere, whose death cannot be proved. */
struct baton_owner {
	char id[BATON_NAME_MAX + 1]; /* stable across restarts, chosen by the user; terminated  */
	struct baton_id incarnation; /* new for each attachment                                 */
	struct baton_id boot;        /* the kernel's boot id                                    */
	uint64_t pid_ns;             /* inode of the pid namespace in which `pid` counts         */
	uint64_t start;              /* clock ticks from boot to the process's start; 0 unknown */
	int32_t pid;                 /* 0: opaque, and boot, pid_ns and start are zero too       */
};

/* How far the owners of a store can be apart. */
enum baton_reach {
	/* All on this host, as with SQLite: another boot id is that of an earlier boot. */
	BATON_REACH_HOST = 1,
	/* Anywhere: another boot id may be that of another machine. */
	BATON_REACH_HOSTS
};

/* Describes this process, with a new incarnation, under the name `id`: 1 to BATON_NAME_MAX bytes of
 * UTF-8 without control characters. `start` is 0 in a time namespace that shifts the times since
 * boot, because others read other times there.
 *
 * BATON_INVALID: a bad id. BATON_SYSTEM: /proc or the random source cannot be read.
 * *ret is untouched unless BATON_OK. Any thread; after fork() the child asks again. */
BATON_API enum baton_err baton_owner_self(struct baton_str id, struct baton_owner *ret);

/* An owner about whom nothing is known but the name, with a new incarnation. Errors as above. */
BATON_API enum baton_err baton_owner_opaque(struct baton_str id, struct baton_owner *ret);

/* Whether `other` is definitely dead, as far as `self` (this process) can prove: both are local
 * processes of the same boot and pid namespace, and other's pid is gone, or has ended (reaped or
 * not), or belongs to a process with another start time. A start time of 0 on either side, a time
 * namespace that shifts them or a /proc that does not show the process prove nothing. With
 * BATON_REACH_HOST another boot is death too.
 * False means "not known to be dead", never "alive". Any thread; leaves the error detail alone. */
BATON_API bool baton_owner_is_dead(const struct baton_owner *self, const struct baton_owner *other,
                                   enum baton_reach reach);

/* Room for what baton_owner_print() writes, with the terminator. */
#define BATON_OWNER_TEXT 384

/* Writes `incarnation:boot:namespace:pid:start:id`, the first two as 32 small hexadecimal digits,
 * the next three as decimal numbers. For an opaque owner the four in the middle are empty:
 * `incarnation:::::id`. The id comes last, so it needs no quoting and may hold colons. Returns
 * `text`. */
BATON_API char *baton_owner_print(const struct baton_owner *owner, char text[BATON_OWNER_TEXT]);

/* Reads what baton_owner_print() wrote, and nothing else, so that equal owners have equal texts.
 *
 * BATON_INVALID: anything else, and the detail says which part; *ret is untouched. Any thread. */
BATON_API enum baton_err baton_owner_parse(struct baton_str text, struct baton_owner *ret);

BATON_END

#endif
