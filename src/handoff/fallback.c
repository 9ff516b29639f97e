/* When a connection is not handed over. */
#include "handoff/fallback.h"

const char *fallback_name(enum fallback_reason reason)
{
	switch (reason) {
	case FALLBACK_NONE:
		break;
	case FALLBACK_CLIENT_UNSUPPORTED:
		return "client unsupported";
	case FALLBACK_SERVICE_DISABLED:
		return "service policy disabled";
	case FALLBACK_FD_PRESSURE:
		return "fd pressure";
	case FALLBACK_ADOPTED_BACKEND:
		return "adopted backend";
	case FALLBACK_ATTEMPTS_LIMITED:
		return "failed attempts limited";
	case FALLBACK_PERMISSION_DENIED:
		return "permission denied";
	case FALLBACK_INTEGRITY_MISMATCH:
		return "integrity mismatch";
	case FALLBACK_ACK_TIMEOUT:
		return "ack timeout";
	}
	return "none";
}

void fallback_failed(struct fallback_attempts *a, struct baton_mono now)
{
	a->failed[a->next] = now;
	a->next = (a->next + 1) % FALLBACK_ATTEMPTS;
	if (a->count < FALLBACK_ATTEMPTS)
		a->count++;
}

void fallback_succeeded(struct fallback_attempts *a)
{
	a->count = 0;
}

struct baton_duration fallback_wait(const struct fallback_attempts *a, struct baton_mono now)
{
	if (a->count < FALLBACK_ATTEMPTS)
		return (struct baton_duration){0};
	/* In a full ring the next place has the oldest. */
	struct baton_mono end =
		baton_mono_add(a->failed[a->next], baton_duration_ms(FALLBACK_WINDOW_MS));
	return baton_mono_live(end, now) ? baton_mono_sub(end, now) : (struct baton_duration){0};
}

enum fallback_reason fallback_decide(const struct fallback_facts *facts,
                                     const struct fallback_attempts *attempts,
                                     struct baton_mono now, struct baton_duration *ret_retry_after)
{
	struct baton_duration wait = fallback_wait(attempts, now);
	const struct {
		bool holds;
		enum fallback_reason reason;
	} order[] = {
		{facts->client_unsupported, FALLBACK_CLIENT_UNSUPPORTED},
		{facts->service_disabled, FALLBACK_SERVICE_DISABLED},
		{facts->fd_pressure, FALLBACK_FD_PRESSURE},
		{facts->adopted_backend, FALLBACK_ADOPTED_BACKEND},
		{wait.ns > 0, FALLBACK_ATTEMPTS_LIMITED},
		{facts->permission_denied, FALLBACK_PERMISSION_DENIED},
		{facts->integrity_mismatch, FALLBACK_INTEGRITY_MISMATCH},
		{facts->ack_timeout, FALLBACK_ACK_TIMEOUT},
	};
	*ret_retry_after = (struct baton_duration){0};
	for (unsigned i = 0; i < sizeof order / sizeof *order; i++) {
		if (!order[i].holds)
			continue;
		if (order[i].reason == FALLBACK_ATTEMPTS_LIMITED)
			*ret_retry_after = wait;
		return order[i].reason;
	}
	return FALLBACK_NONE;
}
