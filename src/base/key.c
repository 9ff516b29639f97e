/* The policy of a class of keys. */
#include <baton/key.h>

#include <inttypes.h>

#include "base/fail.h"

struct baton_key_policy baton_key_policy_default(void)
{
	return (struct baton_key_policy){
		.limit = 1,
		.scope = BATON_KEY_SCOPE_CLUSTER,
		.on_conflict = BATON_KEY_WAIT,
		.on_retry = BATON_KEY_RETRY_KEEP,
	};
}

static enum baton_err check_count(const char *field, uint32_t value, uint32_t min, uint32_t max)
{
	if (value >= min && value <= max)
		return BATON_OK;
	return fail(BATON_INVALID, "%s is %" PRIu32 ": %" PRIu32 " to %" PRIu32 " are allowed",
	            field, value, min, max);
}

static enum baton_err check_time(const char *field, struct baton_duration value)
{
	if (value.ns >= baton_duration_ms(BATON_KEY_TIME_MIN_MS).ns &&
	    value.ns <= baton_duration_ms(BATON_KEY_TIME_MAX_MS).ns)
		return BATON_OK;
	char is[BATON_DURATION_TEXT], min[BATON_DURATION_TEXT], max[BATON_DURATION_TEXT];
	return fail(BATON_INVALID, "%s is %s: %s to %s are allowed", field,
	            baton_duration_print(value, is),
	            baton_duration_print(baton_duration_ms(BATON_KEY_TIME_MIN_MS), min),
	            baton_duration_print(baton_duration_ms(BATON_KEY_TIME_MAX_MS), max));
}

static enum baton_err check_scope(enum baton_key_scope scope)
{
	switch (scope) {
	case BATON_KEY_SCOPE_PROCESS:
	case BATON_KEY_SCOPE_HOST:
	case BATON_KEY_SCOPE_CLUSTER:
		return BATON_OK;
	}
	return fail(BATON_INVALID,
	            "scope is %d: %d (process), %d (host) and %d (cluster) are allowed", (int)scope,
	            BATON_KEY_SCOPE_PROCESS, BATON_KEY_SCOPE_HOST, BATON_KEY_SCOPE_CLUSTER);
}

static enum baton_err check_conflict(enum baton_key_conflict conflict)
{
	switch (conflict) {
	case BATON_KEY_WAIT:
	case BATON_KEY_SKIP:
	case BATON_KEY_REPLACE:
	case BATON_KEY_LATEST:
	case BATON_KEY_FIRST:
		return BATON_OK;
	}
	return fail(BATON_INVALID,
	            "on_conflict is %d: %d (wait), %d (skip), %d (replace), %d (latest) and %d "
	            "(first) are allowed",
	            (int)conflict, BATON_KEY_WAIT, BATON_KEY_SKIP, BATON_KEY_REPLACE,
	            BATON_KEY_LATEST, BATON_KEY_FIRST);
}

static enum baton_err check_retry(enum baton_key_retry retry)
{
	switch (retry) {
	case BATON_KEY_RETRY_KEEP:
	case BATON_KEY_RETRY_GIVE_UP:
		return BATON_OK;
	}
	return fail(BATON_INVALID, "on_retry is %d: %d (keep) and %d (give up) are allowed",
	            (int)retry, BATON_KEY_RETRY_KEEP, BATON_KEY_RETRY_GIVE_UP);
}

static enum baton_err check_rate(const struct baton_key_policy *policy)
{
	enum baton_err e = check_count("rate", policy->rate, 0, BATON_KEY_RATE_MAX);
	if (e != BATON_OK)
		return e;
	if (policy->rate > 0)
		return check_time("window", policy->window);
	if (policy->window.ns == 0)
		return BATON_OK;
	char is[BATON_DURATION_TEXT];
	return fail(BATON_INVALID, "window is %s: only 0 is allowed without a rate",
	            baton_duration_print(policy->window, is));
}

enum baton_err baton_key_policy_check(const struct baton_key_policy *policy)
{
	enum baton_err e = check_count("limit", policy->limit, 1, BATON_KEY_LIMIT_MAX);
	if (e == BATON_OK)
		e = check_scope(policy->scope);
	if (e == BATON_OK)
		e = check_conflict(policy->on_conflict);
	if (e == BATON_OK)
		e = check_count("waiting_max", policy->waiting_max, 0, BATON_KEY_WAITING_MAX);
	if (e == BATON_OK)
		e = check_retry(policy->on_retry);
	if (e == BATON_OK)
		e = check_rate(policy);
	if (e == BATON_OK && policy->ttl.ns != 0)
		e = check_time("ttl", policy->ttl);
	return e;
}
