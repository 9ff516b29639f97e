/* How long to wait before work that failed is tried again. */
#include "queue/backoff.h"

#include "base/check.h"

/* base * 2^(attempt - 1), at most cap. Ends after 63 steps at the latest. */
static uint64_t longest_ns(const struct baton_retry *r, uint32_t attempt)
{
	uint64_t cap = (uint64_t)r->cap.ns;
	uint64_t ns = (uint64_t)r->base.ns;
	for (uint32_t i = 1; i < attempt && ns > 0 && ns < cap; i++)
		ns = ns > cap / 2 ? cap : ns * 2;
	return ns;
}

struct baton_duration backoff_delay(const struct baton_retry *r, uint32_t attempt, uint64_t random)
{
	CHECK(attempt >= 1);
	switch (r->backoff) {
	case BATON_BACKOFF_EXPONENTIAL: {
		/* The upper half of the product: as even as 64 bits allow, without a division. */
		unsigned __int128 among = (unsigned __int128)longest_ns(r, attempt) + 1;
		return (struct baton_duration){(int64_t)(random * among >> 64)};
	}
	case BATON_BACKOFF_FIXED:
		return r->base;
	case BATON_BACKOFF_NONE:
		break;
	}
	return (struct baton_duration){0};
}
