/* A connection on its way into a backend: one that is offered, or a client that has reconnected and
 * has not said yet what it wants. */
#ifndef HANDOFF_GUEST_H
#define HANDOFF_GUEST_H

#include <baton/backend.h>
#include <baton/err.h>
#include <baton/time.h>

#include "base/arena.h"
#include "handoff/grant.h"
#include "handoff/links.h"
#include "handoff/site.h"
#include "handoff/token.h"
#include "wire/frame.h"
#include "wire/hello.h"

struct guest {
	struct baton_connection connection; /* the first, so that one leads to the other */
	const struct baton_alloc *alloc;
	struct arena arena;
	struct links links;
	enum held_state state; /* of one that is offered */
	struct token token;
	uint64_t correlation;
	struct baton_mono until; /* the Grant, or the Hello */
	bool wants_welcome;
	struct wire_reader reader; /* of one that has reconnected */
};

/* BATON_NO_MEMORY: the descriptor is still the caller's. */
enum baton_err guest_new(const struct baton_alloc *alloc, int fd, struct guest **ret);

/* Closes and frees. It is in no list any more. */
void guest_free(struct guest *guest);

/* Shuts the connection down unread, and frees. */
void guest_turn_away(struct guest *guest);

/* Keeps what the client said. BATON_NO_MEMORY. */
struct guest_news {
	const struct wire_hello *hello;
	struct baton_str service;
	struct site_peer who;
	const struct wire_trace *trace;
};
enum baton_err guest_know(struct guest *guest, const struct guest_news *news);

/* Reads what there is of the client's Hello, and never a byte more.
 *
 * BATON_OK: it is known. BATON_TIMEOUT: not yet all of it. Anything else: there will be none. */
enum baton_err guest_read(struct guest *guest, struct arena *arena);

/* Tells the client that it is here, if it wants to be told. */
void guest_welcome(const struct guest *guest);

#endif
