/* A guardian and the commands under it, seen from the runner that they work for.
 *
 * The guardian is a process of its own, an installed helper. Each command has a process between
 * itself and the guardian, its nanny, that inherits whatever the command leaves behind. Whoever
 * dies, what a command has started is ended; and as long as anything of it lives, the lock of the
 * life file is held. */
#ifndef GUARDIAN_WARDS_H
#define GUARDIAN_WARDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <baton/alloc.h>
#include <baton/err.h>
#include <baton/str.h>
#include <baton/time.h>

/* How many commands there may be at a time, also those whose end was not heard of yet. */
#define WARDS_MAX 1024

/* The bytes of arguments and variables of a command, each with a NUL. */
#define WARDS_ARGS_MAX (1 << 20)

/* The bytes that a command finds on its standard input. */
#define WARDS_INPUT_MAX ((size_t)1 << 30)

/* The bytes of a line of standard error that are told at a time; what is longer comes in pieces. */
#define WARDS_LINE_MAX 4096

struct wards;

struct wards_ask {
	const char *life;   /* absolute path of the runner's life file, which is made */
	const char *helper; /* the guardian's executable; NULL: what BATON_GUARDIAN in the
	                     * environment says, or else the installed one */
	const char *lock;   /* a file of which the runner locks a byte that others need too: if it
	                     * is stopped with that, past its deadline, it is killed; NULL: none */
	int64_t lock_at;    /* the number of that byte */
	bool awake;         /* the deadline is on baton_clock_awake(), not on baton_clock_boot() */
	const struct baton_alloc *alloc; /* NULL: that of the C library; outlives the wards */
};

/* Locks the life file and starts the guardian. What it makes is ended by wards_close(). Commands
 * will have the folder and the environment that this process has now.
 *
 * BATON_YIELD: somebody lives who has the life file. BATON_BUSY: others looked at it all the time.
 * BATON_INVALID: the path is too long or not absolute. BATON_NO_MEMORY. BATON_SYSTEM: there is no
 * such helper, or it is of another version or does not answer, or there are no descriptors. */
enum baton_err wards_open(const struct wards_ask *ask, struct wards **ret);

/* Kills what lives, waits until the guardian has ended, and so everything with it, and removes the
 * life file. What cannot be killed is waited for only some seconds: then the file stays as long as
 * that does. NULL is fine. */
void wards_close(struct wards *w);

/* For AUTO(). */
void wards_closep(struct wards **w);

/* Readable when wards_next() is to be called, until that says false. Owned by the wards. */
int wards_fd(const struct wards *w);

/* The pid of the guardian. */
int32_t wards_pid(const struct wards *w);

/* Whether nobody lives any more of all whom the guardian had, which has died, nor that itself. */
bool wards_are_gone(const struct wards *w);

/* Sets the moment at which the guardian kills everything, whatever the runner does; until it is
 * moved to a later one, whatever is started then ends with ECANCELED. At the beginning it is
 * BATON_MONO_NEVER. What was killed stays dead: a later moment does not help who is past one.
 * Any thread, one call at a time. */
void wards_deadline(struct wards *w, struct baton_mono hard_stop);

struct ward_spec {
	uint64_t id;       /* the caller's; not that of another one whose end was not told */
	char *const *argv; /* found by PATH; NULL at its end */
	char *const *env;  /* NAME=value, to add to the environment; NULL at its end; or NULL */
	const struct baton_str *input; /* standard input, one after the other */
	size_t inputs;                 /* 0: standard input is empty */
	char separator;                /* follows each input; 0: none does */
	int channel;                   /* what the command gets as descriptor 3, borrowed; or -1 */
	struct baton_duration timeout; /* then it is stopped; 0 or less: never. Of time awake */
	struct baton_duration grace;   /* from SIGTERM to SIGKILL; 0 or less: no SIGTERM */
	size_t output_max;             /* the bytes of standard output that are kept */
	bool output_said;              /* none is: it is told by line, as standard error is */
};

/* Starts a command, in a process group of its own. All of the spec is borrowed for the call. Its
 * end will be told, unless:
 *
 * BATON_INVALID: no argument, or more bytes than the limits above. BATON_FULL: there are WARDS_MAX.
 * BATON_GONE: the guardian has died. BATON_NO_MEMORY. BATON_SYSTEM: no descriptor, or no memory
 * file. */
enum baton_err wards_start(struct wards *w, const struct ward_spec *spec);

/* Ends a command: SIGTERM to its process group, and SIGKILL to all that descends from it after its
 * grace; `now`: at once. Nothing happens when there is no such command. */
void wards_stop(struct wards *w, uint64_t id, bool now);
void wards_stop_all(struct wards *w, bool now);

enum ward_kind {
	WARD_BEGUN = 1,    /* it was executed: `pid` */
	WARD_SAID,         /* `text` is a line of its standard error, or a piece of one; with
	                    * output_said, or of its standard output */
	WARD_ENDED,        /* and nothing lives that descends from it: `how` and so on */
	WARD_GUARDIAN_LOST /* the guardian died, no `id`; the nannies end their commands, and
	                    * wards_next() those that have none; then WARD_ENDED is told for each */
};

enum ward_how {
	WARD_EXITED = 1, /* `code` is its status */
	WARD_SIGNALED,   /* `code` is the signal; SIGKILL too if nobody knows */
	WARD_UNSTARTED   /* `code` is an errno; ECANCELED: stopped, or after the deadline */
};

struct ward_news {
	enum ward_kind kind;
	uint64_t id;
	int32_t pid; /* of the command, when it has begun */
	enum ward_how how;
	int code;
	bool timed_out; /* it was stopped because of its timeout */
	struct baton_duration timeout;
	bool cut; /* there was more on standard output than was kept */
	struct baton_str
		text; /* standard output at the end, or a line; borrowed till the next call */
};

/* The next thing that happened; of one command in the order in which it did. Never waits, and does
 * a bounded part of the reading at a time. False: nothing now. */
bool wards_next(struct wards *w, struct ward_news *ret);

/* Whether anybody has the lock of a life file, for who wants to succeed its runner.
 *
 * BATON_OK: nobody has, or there is no such file, so nothing lives of that runner, its guardian and
 * its commands. BATON_YIELD: somebody has. BATON_SYSTEM: it cannot be told. Any thread. */
enum baton_err wards_lives(const char *life);

#endif
