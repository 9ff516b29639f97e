/* How long to wait before work that failed is tried again. */
#include "queue/backoff.h"

#include "base/check.h"
#include "base/fail.h"

static enum baton_err base_check(const struct backoff *b)
{
	char base[BATON_DURATION_TEXT];
	if (b->base.ns >= 0)
		return BATON_OK;
	return fail(BATON_INVALID, "a backoff has a base of %s: 0 or more is allowed",
	            baton_duration_print(b->base, base));
}

static enum baton_err growth_check(const struct backoff *b)
{
	char base[BATON_DURATION_TEXT], cap[BATON_DURATION_TEXT];
	if (b->factor < 1 || b->factor > BACKOFF_FACTOR_MAX)
		return fail(BATON_INVALID, "a backoff has a factor of %u: 1 to %d are allowed",
		            b->factor, BACKOFF_FACTOR_MAX);
	if (b->cap.ns < b->base.ns)
		return fail(BATON_INVALID,
		            "a backoff has a cap of %s: at least its base, %s, is needed",
		            baton_duration_print(b->cap, cap), baton_duration_print(b->base, base));
	return BATON_OK;
}

enum baton_err backoff_check(const struct backoff *b)
{
	enum baton_err e;
	switch (b->kind) {
	case BACKOFF_EXPONENTIAL:
		e = base_check(b);
		return e == BATON_OK ? growth_check(b) : e;
	case BACKOFF_FIXED:
		return base_check(b);
	case BACKOFF_NONE:
		return BATON_OK;
	}
	return fail(BATON_INVALID,
	            "a backoff has the kind %d: 1 (exponential), 2 (fixed) and 3 "
	            "(none) are allowed",
	            (int)b->kind);
}

/* base * factor^(attempt - 1), at most cap. Ends after 63 steps at the latest: from 1 on, each of
 * them at least doubles. */
static uint64_t longest_ns(const struct backoff *b, uint32_t attempt)
{
	uint64_t cap = (uint64_t)b->cap.ns;
	uint64_t ns = (uint64_t)b->base.ns;
	if (b->factor == 1 || ns == 0)
		return ns;
	for (uint32_t i = 1; i < attempt && ns < cap; i++)
		ns = ns > cap / b->factor ? cap : ns * b->factor;
	return ns;
}

struct baton_duration backoff_delay(const struct backoff *b, uint32_t attempt, uint64_t random)
{
	CHECK(attempt >= 1);
	switch (b->kind) {
	case BACKOFF_EXPONENTIAL: {
		/* The upper half of the product: as even as 64 bits allow, without a division. */
		unsigned __int128 among = (unsigned __int128)longest_ns(b, attempt) + 1;
		return (struct baton_duration){(int64_t)(random * among >> 64)};
	}
	case BACKOFF_FIXED:
		return b->base;
	case BACKOFF_NONE:
		break;
	}
	return (struct baton_duration){0};
}
