/* Starts the command of a service. */
#ifndef HANDOFF_SPAWN_H
#define HANDOFF_SPAWN_H

#include <stdint.h>

#include <baton/err.h>
#include <baton/str.h>

#include "base/arena.h"
#include "handoff/definition.h"
#include "handoff/site.h"
#include "wire/envelope.h"

struct spawn_order {
	const struct definition *definition;
	const char *broker;     /* the folder of its sockets */
	int fd;                 /* the connection that it gets; -1: none, it is to register */
	struct baton_str first; /* is written to the connection before */
	uint64_t connection;
	struct site_peer who; /* at the connection */
	struct wire_trace trace;
};

/* Starts it in a session of its own, with the broker's standard error, and nothing else of the
 * broker's. The arena is for the time of the call.
 *
 * BATON_OK: *ret_pid is a child of this process, *ret_pidfd the caller's. BATON_NOT_FOUND: there is
 * no such program, or it cannot be executed. BATON_SYSTEM: no process, no descriptor.
 * BATON_NO_MEMORY. */
enum baton_err spawn(const struct spawn_order *order, struct arena *arena, int32_t *ret_pid,
                     int *ret_pidfd);

#endif
