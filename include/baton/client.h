/* The client's side of a handoff: a connection to whoever owns a service. */
#ifndef BATON_CLIENT_H
#define BATON_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include <baton/api.h>
#include <baton/err.h>
#include <baton/str.h>
#include <baton/time.h>

BATON_BEGIN

#define BATON_CLIENT_WAIT_MS 15000
#define BATON_CLIENT_FIRST_MAX 65536
#define BATON_TRACE_MAX 512

struct baton_client_ask {
	const char *folder;       /* of the broker; NULL: as <baton/broker.h> says */
	struct baton_str service; /* [a-z0-9-]{1,64}; may be empty with a lane */
	struct baton_str queue;   /* with `lane`: whoever owns that lane of the queue, of several
	                                services the one that is named */
	struct baton_str lane;
	struct baton_str auth_token; /* for the backend, which may look at it; may be empty */
	struct baton_str first;      /* up to BATON_CLIENT_FIRST_MAX bytes for the backend, sent at
	                                once and not only when it is connected; may be empty */
	bool answered;               /* the backend answers `first` at once: its answer, and no
	                                message before it, tells that the connection is there */
	struct baton_duration wait;  /* for all of it; 0: BATON_CLIENT_WAIT_MS. A broker gives a
	                                backend less than that */
	bool no_handoff;             /* always reconnect to the backend's own endpoint */
	/* For the backend, as W3C Trace Context has them: up to BATON_TRACE_MAX printable
	 * characters each; may be empty. */
	struct baton_str traceparent;
	struct baton_str tracestate;
	struct baton_str version; /* that the service has to be of, if its file at the broker says
	                             one; may be empty */
};

/* How a client came to its connection, for those who want to know. */
struct baton_client_way {
	bool handed;         /* by a handoff; else by reconnecting     */
	uint64_t connection; /* its id at the broker                   */
	uint32_t rounds;     /* how often the broker was asked         */
};

/* Connects to the backend of a service. The broker is asked, and either hands the connection over
 * or says where to reconnect; whatever goes wrong on the way, as long as there is time it is tried
 * again. Nothing of `first` was served by anybody else when it succeeds; with `answered`, somebody
 * may have read it who has ended without a byte of an answer.
 *
 * BATON_OK:        *ret_fd is a connected stream, blocking, the caller's; *ret_way (may be NULL).
 *                  The next byte from it is the backend's first.
 * BATON_NOT_FOUND: no broker runs there, or it knows no such service or queue.
 * BATON_TIMEOUT:   there was no time for another try; the detail says how the last one ended.
 * BATON_INVALID:   the service's name, `first`, a trace or the version, or the broker's folder, or
 *                  the broker speaks another protocol or serves another user, or the service is of
 *                  another version.
 * BATON_SYSTEM, BATON_NO_MEMORY. Unless BATON_OK nothing is open. Any thread. */
BATON_API enum baton_err baton_client_connect(const struct baton_client_ask *ask, int *ret_fd,
                                              struct baton_client_way *ret_way);

BATON_END

#endif
