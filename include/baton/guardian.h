/* A command that runs while a subject is held, and ends when it no longer is.
 *
 * Beside the caller a second process begins, the guardian. It holds the subject and is the parent
 * of the command, which waits as a third process, in the caller's group, until it may begin.
 * Whoever is killed at whatever moment: as long as a process of the command lives, no other command
 * under the same subject starts.
 *
 *	the command ends           the caller goes on; what it left running keeps the subject
 *	the caller dies            the guardian ends the command and all that descend from it, and
 *	                           only then gives the subject back; also if the command has ended
 *	                           and the caller does not know it yet
 *	the caller is stopped      a command that runs goes on; one that could start does not: after
 *	                           a second the subject goes to the next in line, and is asked for
 *	                           anew when the caller goes on
 *	the guardian dies          the command is killed; what descends from it keeps the next
 *	                           command from starting for as long as it lives
 *	the subject is lost        the guardian ends the command and all that descend from it
 *
 * The subject is a claim in a fleet, or what a source gives, such as a lease in a store that
 * several hosts share. What comes from a source always has a time limit, and may be out of reach at
 * any moment: unless it can be renewed, the command and all that descend from it are ended before
 * it expires.
 */
#ifndef BATON_GUARDIAN_H
#define BATON_GUARDIAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <baton/api.h>
#include <baton/claim.h>
#include <baton/err.h>
#include <baton/id.h>
#include <baton/str.h>
#include <baton/time.h>

BATON_BEGIN

#define BATON_GUARDIAN_GRACE_MS 5000
#define BATON_GUARDIAN_LEFTOVERS 4

/* What a source has given. */
struct baton_guardian_tenure {
	baton_fence fence;

	/* On baton_clock_boot(): a moment before it was asked for. It lasts at least for the ttl
	 * from then on, and no longer unless it is renewed. */
	struct baton_mono sent;

	/* The absolute path of a file that is there, and that those who ask for the subject on this
	 * host share. Their latches lie in a folder beside it, with ".locks" behind its name, which
	 * is made for whoever may use the file. Borrowed until the next call. */
	const char *beside;
};

/* Where a subject comes from that is not claimed in a fleet.
 *
 * All are called in the guardian, a process forked from the caller, one at a time: take(), then
 * renew() and look() any number of times, then release(); and all that anew if the subject was
 * given back before the command began. `arg` is the guardian's copy of what it is in the caller.
 *
 * Of the caller's descriptors none is open there, 0, 1 and 2 lead nowhere, the folder is "/", and
 * all signals are blocked. So what is needed is opened by take() and closed by release(), by its
 * absolute path; and if that is a store, the caller does not have it open, as baton_store_open()
 * says. While take() waits the guardian may be killed at any moment, and after release(), or
 * without it, it ends by _exit(2): nothing may depend on a process being told of its end. */
struct baton_guardian_source {
	/* Takes it for the ttl of the ask; waits for it if `until`, on baton_clock_boot(), is later
	 * than now, but makes one attempt in any case.
	 *
	 * BATON_OK: *ret_tenure. BATON_YIELD: somebody else has it, and `until` was over when it
	 * was called; BATON_TIMEOUT: `until` is over now. *ret_holder says who, with `why`.
	 * Anything else is what baton_guardian_run() answers, with errno and what
	 * baton_err_detail() says after it. Unless BATON_OK nothing is held or open, and release()
	 * is not called. */
	enum baton_err (*take)(void *arg, struct baton_mono until,
	                       struct baton_guardian_tenure *ret_tenure,
	                       struct baton_claim_holder *ret_holder);

	/* Makes it last for the ttl from now. Called by another thread than take(), at each third
	 * of the ttl; it may take as long as it wants, the guardian acts in time all the same.
	 *
	 * BATON_NOT_HELD: it is lost. Anything else but BATON_OK: it is not known; it is called
	 * again soon, and if it is never BATON_OK in time, baton_err_detail() after the last call
	 * is told as the reason. */
	enum baton_err (*renew)(void *arg);

	/* Looks whether it is still held, and changes nothing; now and then between two renewals,
	 * by the same thread. Answers as renew(). May be NULL. */
	enum baton_err (*look)(void *arg);

	/* Gives it back, if it is held, and closes what take() has opened. Called once after each
	 * take() that gave it, in general by the thread of renew(); not while a call of that does
	 * not return, nor if the guardian is killed. After a loss for which there is no time left,
	 * the guardian ends without waiting for it. */
	void (*release)(void *arg);

	void *arg;
};

struct baton_guardian_ask {
	const char *fleet;             /* its file; NULL: that of baton_fleet_default() */
	struct baton_str owner;        /* what others are told about who holds */
	struct baton_subject *subject; /* without NUL bytes: the command is told */
	struct baton_duration ttl;     /* renewed at each third of it; 0 or less: none, which is not
	                                   possible with a source */
	struct baton_duration wait;    /* for the subject; 0 or less: not at all */
	struct baton_duration at_least; /* the subject is kept for that long from when it is held */
	struct baton_duration grace;    /* from SIGTERM to SIGKILL; 0: BATON_GUARDIAN_GRACE_MS. At
	                                   most a quarter of the ttl is left for it if a source
	                                   does not renew */

	/* The command and its arguments, with NULL at the end. It is found as a shell finds it, and
	 * gets the environment of the caller with BATON_FENCE and BATON_SUBJECT ("space/label"). */
	char *const *argv;

	/* Called when the subject is held, before the command starts. If the caller takes more than
	 * a second from then until this has returned, because it is stopped or this is slow, the
	 * subject may have gone to others: then it is called again, with another fence, when the
	 * subject is held again. May be NULL. */
	void (*held)(baton_fence fence, void *arg);
	void *arg;

	/* NULL: the subject is claimed in the fleet. Else it comes from here, `fleet` is not used,
	 * and `owner` neither. */
	const struct baton_guardian_source *source;
};

/* How it came to its end, and what `code` is then. */
enum baton_guardian_how {
	BATON_GUARDIAN_EXITED = 1,  /* the command ended with this status */
	BATON_GUARDIAN_SIGNALED,    /* this signal ended the command */
	BATON_GUARDIAN_UNSTARTED,   /* the command cannot be executed, for this errno */
	BATON_GUARDIAN_INTERRUPTED, /* this signal came to the caller before the command started */
	BATON_GUARDIAN_LOST,        /* the subject was lost, and nothing of the command lives; 0. If
	                               a source could not renew it, the error detail says why */
	BATON_GUARDIAN_KILLED       /* this signal ended the guardian; 0: it went wrong */
};

struct baton_guardian_end {
	enum baton_guardian_how how; /* after BATON_OK */
	int code;                    /* after BATON_OK */
	bool started;                /* after BATON_GUARDIAN_KILLED: the command may have run */

	/* After BATON_OK: the guardian, a child of the caller, if it still keeps the subject; it
	 * ends by itself. 0: it has ended and the subject is free, or was lost. */
	int32_t guardian;

	/* After BATON_YIELD and BATON_TIMEOUT: who comes first. `why` is 0 if nobody does but
	 * processes of a former holder, whose guardian was killed, still run: the first few of
	 * those that this user can see. */
	struct baton_claim_holder holder;
	int32_t leftovers[BATON_GUARDIAN_LEFTOVERS];
	size_t leftovers_count;
};

/* Holds the subject and runs the command; returns when that has ended.
 *
 * Meanwhile the signals HUP, INT, QUIT, USR1, USR2, ALRM, TERM and CONT, unless they are ignored,
 * are passed on to the command. Not those that the terminal sends: they reach the command, which is
 * in the caller's process group, by themselves. Before the command has started they end the wait:
 * whenever one comes, it either ends the wait or reaches the command.
 *
 * BATON_OK:      *ret_end says how it ended.
 * BATON_YIELD, BATON_TIMEOUT: it did not run; *ret_end says who comes first.
 * BATON_INVALID: no command, a NUL in the subject, or a source without a ttl; or as
 *                baton_fleet_join() and baton_claim_try() say.
 * BATON_BUSY:    a stopped process was in the way for 2 seconds.
 * BATON_CANCELLED: somebody sent SIGTERM to the guardian before the command started.
 * BATON_FULL, BATON_GONE, BATON_NO_MEMORY: as these say. With a source: what its take() says.
 * BATON_SYSTEM:  errno says why.
 * *ret_end is untouched except as said, and the command did not run unless BATON_OK.
 *
 * The caller is the only thread of its process, because it forks; it waits for no child of its own
 * and changes no signal meanwhile. */
BATON_API enum baton_err baton_guardian_run(const struct baton_guardian_ask *ask,
                                            struct baton_guardian_end *ret_end);

BATON_END

#endif
