/* A page that a broker shares with one backend: a word for each connection that is offered. Who
 * changes it first, the backend that takes the connection or the broker that takes it back, has
 * the connection; the other one finds that out, and no message is waited for.
 *
 * The words are those of the broker's process and of the backend's: only the state of a word that
 * is known from its connection is believed, and a backend that writes nonsense harms itself. */
#ifndef HANDOFF_SLATE_H
#define HANDOFF_SLATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <baton/err.h>
#include <baton/time.h>

#define SLATE_BYTES 4096
#define SLATE_WORDS (SLATE_BYTES / 8) /* the first is its head, so 0 is the number of none */

struct slate {
	int fd;                             /* -1: it is not needed any more            */
	_Atomic uint64_t *words;            /* NULL: there is none                      */
	uint64_t used[SLATE_WORDS / 64];    /* the broker's: those of offers, as bits */
};

#define SLATE_NONE ((struct slate){.fd = -1})

/* A new one, sealed so that nobody can make it shorter. BATON_SYSTEM: there is none. */
enum baton_err slate_new(struct slate *ret);

/* The one that somebody else has made, of which the descriptor is taken. BATON_INVALID: it is none,
 * and the descriptor is the caller's. BATON_SYSTEM likewise. */
enum baton_err slate_map(int *fd, struct slate *ret);

/* Fine for zeros, and for SLATE_NONE. */
void slate_done(struct slate *slate);

/* The broker's side. */

/* A word for a connection that is about to be offered, which says so from now on; 0: all are used,
 * or there is no slate. */
uint32_t slate_offer(struct slate *slate, uint64_t connection);

/* Takes the word of an offer that another broker has made. False: it cannot be. */
bool slate_adopt(struct slate *slate, uint32_t word);

/* True: the backend has it, since *ret_when, as it says. */
bool slate_is_taken(const struct slate *slate, uint32_t word, struct baton_mono *ret_when);

/* Takes the connection back. False: the backend has taken it before, or did so at *ret_when. */
bool slate_revoke(struct slate *slate, uint32_t word, uint64_t connection,
                  struct baton_mono *ret_when);

/* The word can be that of another connection. */
void slate_clear(struct slate *slate, uint32_t word);

/* The backend's side. */

/* Takes a connection that was offered with that word. False: the broker has taken it back, or never
 * offered it. */
bool slate_take(const struct slate *slate, uint32_t word, uint64_t connection,
                struct baton_mono now);

/* Whether the broker has not seen yet that it was taken at that moment. */
bool slate_is_unseen(const struct slate *slate, uint32_t word, struct baton_mono when);

#endif
