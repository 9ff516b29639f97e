/* When a connection is not handed over, and the client reconnects instead: the reasons, in order.
 * Pure. */
#ifndef HANDOFF_FALLBACK_H
#define HANDOFF_FALLBACK_H

#include <stdbool.h>
#include <stdint.h>

#include <baton/time.h>

#define FALLBACK_ATTEMPTS 8
#define FALLBACK_WINDOW_MS 30000

enum fallback_reason {
	FALLBACK_NONE = 0, /* it can be handed over */
	FALLBACK_CLIENT_UNSUPPORTED,
	FALLBACK_SERVICE_DISABLED,
	FALLBACK_FD_PRESSURE,
	FALLBACK_ADOPTED_BACKEND,
	FALLBACK_ATTEMPTS_LIMITED,
	FALLBACK_PERMISSION_DENIED,
	FALLBACK_INTEGRITY_MISMATCH,
	FALLBACK_ACK_TIMEOUT
};

#define FALLBACK_REASONS 8

/* "client unsupported" and so on, for people and as the name of its counter. */
const char *fallback_name(enum fallback_reason reason);

/* The last attempts with a backend that failed. Begins as zeros. */
struct fallback_attempts {
	struct baton_mono failed[FALLBACK_ATTEMPTS]; /* a ring */
	unsigned count;
	unsigned next;
};

void fallback_failed(struct fallback_attempts *a, struct baton_mono now);

/* One that succeeds clears it. */
void fallback_succeeded(struct fallback_attempts *a);

/* How long no other attempt is made: 0 unless FALLBACK_ATTEMPTS have failed in the window, of which
 * one that began it at exactly its end is no longer part. */
struct baton_duration fallback_wait(const struct fallback_attempts *a, struct baton_mono now);

/* What speaks against a handoff. */
struct fallback_facts {
	bool client_unsupported;
	bool service_disabled;
	bool fd_pressure;
	bool adopted_backend;
	bool permission_denied;
	bool integrity_mismatch;
	bool ack_timeout;
};

/* The first reason that holds. *ret_retry_after is how long it will, if that is known; else 0. */
enum fallback_reason fallback_decide(const struct fallback_facts *facts,
                                     const struct fallback_attempts *attempts,
                                     struct baton_mono now, struct baton_duration *ret_retry_after);

#endif
