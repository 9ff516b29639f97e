/* The policy of a queue. */
#include "queue/policy.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/fail.h"
#include "base/quote.h"

#define DAY_MS INT64_C(86400000)
#define SKIPPED_KEEP_S 3600

struct baton_queue_policy baton_queue_policy_default(void)
{
	return (struct baton_queue_policy){
		.mode = BATON_QUEUE_OPEN,
		.shards = BATON_QUEUE_SHARDS,
		.payload_max = BATON_QUEUE_PAYLOAD_MAX,
		.retry = {BATON_QUEUE_ATTEMPTS, BATON_BACKOFF_EXPONENTIAL, baton_duration_s(1),
	                  baton_duration_s(3600)},
		.retry_lane = {BATON_QUEUE_ATTEMPTS_LANE, BATON_BACKOFF_EXPONENTIAL,
	                       baton_duration_s(1), baton_duration_s(30)},
		.on_retry = BATON_ON_RETRY_BLOCK,
		.on_dead = BATON_ON_DEAD_CONTINUE,
		.dedupe = baton_duration_ms(DAY_MS),
		.key_limit = 1,
		.hold_on_retry = BATON_HOLD_KEEP,
		.on_conflict = BATON_CONFLICT_WAIT,
		.key_fair = BATON_KEY_FAIR_OFF,
		.key_scope = BATON_KEY_SCOPE_CLUSTER,
	};
}

/* One field with its limits. */
struct range {
	const char *field;
	uint64_t min, max;
};

static enum baton_err check_number(const struct range *r, uint64_t value)
{
	if (value >= r->min && value <= r->max)
		return BATON_OK;
	return fail(BATON_INVALID, "%s is %" PRIu64 ": %" PRIu64 " to %" PRIu64 " are allowed",
	            r->field, value, r->min, r->max);
}

static enum baton_err check_span(const struct range *r, struct baton_duration value)
{
	struct baton_duration low = baton_duration_ms((int64_t)r->min);
	struct baton_duration high = baton_duration_ms((int64_t)r->max);
	char is[BATON_DURATION_TEXT], min[BATON_DURATION_TEXT], max[BATON_DURATION_TEXT];
	if (value.ns >= low.ns && value.ns <= high.ns)
		return BATON_OK;
	return fail(BATON_INVALID, "%s is %s: %s to %s are allowed", r->field,
	            baton_duration_print(value, is), baton_duration_print(low, min),
	            baton_duration_print(high, max));
}

enum baton_err baton_retry_check(const struct baton_retry *retry)
{
	static const struct range attempts = {"attempts", 1, BATON_QUEUE_ATTEMPTS_MAX};
	static const struct range backoff = {"backoff", BATON_BACKOFF_EXPONENTIAL,
	                                     BATON_BACKOFF_NONE};
	static const struct range base = {"base", 1, (uint64_t)DAY_MS};
	const struct range cap = {"cap", (uint64_t)(retry->base.ns / 1000000), (uint64_t)DAY_MS};
	enum baton_err e = check_number(&attempts, retry->attempts);
	if (e == BATON_OK)
		e = check_number(&backoff, retry->backoff);
	if (e != BATON_OK || retry->backoff == BATON_BACKOFF_NONE)
		return e;
	e = check_span(&base, retry->base);
	return e == BATON_OK && retry->backoff == BATON_BACKOFF_EXPONENTIAL
	               ? check_span(&cap, retry->cap)
	               : e;
}

static enum baton_err check_rate(const struct baton_key_rate *rate)
{
	static const struct range starts = {"key_rate.starts", 0, BATON_QUEUE_KEY_STARTS_MAX};
	static const struct range window = {"key_rate.window", 1, BATON_QUEUE_SPAN_MAX_MS};
	enum baton_err e = check_number(&starts, rate->starts);
	return e == BATON_OK && rate->starts > 0 ? check_span(&window, rate->window) : e;
}

/* What cannot be in a queue whose keys count for each host, or each process; NULL: nothing. */
static const char *against_scope(const struct baton_queue_policy *p)
{
	if (p->mode == BATON_QUEUE_PULL || p->mode == BATON_QUEUE_LANE)
		return "the mode is runner, or open until a runner comes";
	if (p->hold_on_retry != BATON_HOLD_GIVE_UP)
		return "hold_on_retry is give-up";
	return p->on_conflict != BATON_CONFLICT_WAIT ? "on_conflict is wait" : NULL;
}

static enum baton_err check_scope(const struct baton_queue_policy *p)
{
	const char *against = policy_has_sites(p) ? against_scope(p) : NULL;
	if (!against)
		return BATON_OK;
	return fail(BATON_INVALID, "key_scope is %s: that is possible where %s",
	            p->key_scope == BATON_KEY_SCOPE_HOST ? "host" : "process", against);
}

/* A class that is not there has no name, and is not under any rule. */
static enum baton_err check_class(const struct baton_queue_policy *p)
{
	char shown[QUOTE_TEXT];
	const size_t len = strnlen(p->key_class, sizeof p->key_class);
	struct baton_str name = {p->key_class, len};
	if (len == 0)
		return BATON_OK;
	enum baton_err e = baton_str_name("key class's name", name.ptr, len, BATON_NAME_MAX, &name);
	const char *against = e == BATON_OK ? policy_against_class(p) : NULL;
	return against ? fail(BATON_INVALID,
	                      "key_class is %s, which cannot be where %s: set that back first, "
	                      "or use another queue",
	                      quote(name, shown), against)
	               : e;
}

enum baton_err baton_queue_policy_check(const struct baton_queue_policy *p)
{
	const struct {
		struct range range;
		uint64_t value;
	} numbers[] = {
		{{"mode", BATON_QUEUE_OPEN, BATON_QUEUE_RUNNER}, p->mode},
		{{"shards", 1, BATON_QUEUE_SHARDS_MAX}, p->shards},
		{{"payload_max", 1, BATON_QUEUE_PAYLOAD_LIMIT}, p->payload_max},
		{{"waiting_max", 0, BATON_QUEUE_WAITING_MAX}, p->waiting_max},
		{{"on_retry", BATON_ON_RETRY_BLOCK, BATON_ON_RETRY_PASS}, p->on_retry},
		{{"on_dead", BATON_ON_DEAD_CONTINUE, BATON_ON_DEAD_HOLD}, p->on_dead},
		{{"key_limit", 1, BATON_QUEUE_KEY_LIMIT_MAX}, p->key_limit},
		{{"hold_on_retry", BATON_HOLD_KEEP, BATON_HOLD_GIVE_UP}, p->hold_on_retry},
		{{"on_conflict", BATON_CONFLICT_WAIT, BATON_CONFLICT_REPLACE}, p->on_conflict},
		{{"key_waiting_max", 0, BATON_QUEUE_KEY_WAITING_MAX}, p->key_waiting_max},
		{{"key_fair", BATON_KEY_FAIR_OFF, BATON_KEY_FAIR_ON}, p->key_fair},
		{{"key_scope", BATON_KEY_SCOPE_PROCESS, BATON_KEY_SCOPE_CLUSTER}, p->key_scope},
	};
	static const struct range dedupe = {"dedupe", 1, BATON_QUEUE_SPAN_MAX_MS};
	static const struct range key_ttl = {"key_ttl", 1, (uint64_t)DAY_MS};
	static const struct range keep = {"keep", 0, BATON_QUEUE_SPAN_MAX_MS};
	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
		enum baton_err e = check_number(&numbers[i].range, numbers[i].value);
		if (e != BATON_OK)
			return e;
	}
	enum baton_err e = check_span(&dedupe, p->dedupe);
	if (e == BATON_OK)
		e = check_span(&keep, p->keep);
	if (e == BATON_OK)
		e = check_rate(&p->key_rate);
	if (e == BATON_OK && p->key_ttl.ns != 0)
		e = check_span(&key_ttl, p->key_ttl);
	/* First: a queue that joins a class has what is to be refused for a scope from there. */
	if (e == BATON_OK)
		e = check_class(p);
	if (e == BATON_OK)
		e = check_scope(p);
	if (e == BATON_OK)
		e = baton_retry_check(&p->retry);
	return e == BATON_OK ? baton_retry_check(&p->retry_lane) : e;
}

static_assert(sizeof(struct baton_key_rate) == sizeof(uint64_t) + sizeof(struct baton_duration),
              "a rate is compared byte by byte");

#define PART(field) \
	offsetof(struct baton_queue_policy, field), sizeof(((struct baton_queue_policy *)0)->field)

/* Where each field is, in the order of their bits. */
static const struct {
	size_t offset, size;
} parts[] = {
	{PART(mode)},
	{PART(shards)},
	{PART(payload_max)},
	{PART(waiting_max)},
	{PART(retry.attempts)},
	{PART(retry.backoff)},
	{PART(retry.base)},
	{PART(retry.cap)},
	{PART(retry_lane.attempts)},
	{PART(retry_lane.backoff)},
	{PART(retry_lane.base)},
	{PART(retry_lane.cap)},
	{PART(on_retry)},
	{PART(on_dead)},
	{PART(dedupe)},
	{PART(keep)},
	{PART(key_limit)},
	{PART(hold_on_retry)},
	{PART(on_conflict)},
	{PART(key_waiting_max)},
	{PART(key_fair)},
	{PART(key_rate)},
	{PART(key_ttl)},
	{PART(key_scope)},
	{PART(key_class)},
	{PART(paused)},
};
#define PARTS (sizeof parts / sizeof parts[0])
static_assert(BATON_POLICY_ALL == (1 << PARTS) - 1, "each field has its bit");

enum baton_err policy_change(struct baton_queue_policy *policy,
                             const struct baton_queue_policy *changes, uint32_t fields)
{
	struct baton_queue_policy changed = *policy;
	if ((fields & ~(uint32_t)BATON_POLICY_ALL) != 0)
		return fail(BATON_INVALID, "fields is %#" PRIx32 ": bits of %#x are allowed",
		            fields, (unsigned)BATON_POLICY_ALL);
	for (size_t i = 0; i < PARTS; i++) {
		if (fields & UINT32_C(1) << i)
			memcpy((char *)&changed + parts[i].offset,
			       (const char *)changes + parts[i].offset, parts[i].size);
	}
	/* What is behind the name of the class is compared with it. */
	size_t len = strnlen(changed.key_class, sizeof changed.key_class);
	memset(changed.key_class + len, 0, sizeof changed.key_class - len);
	enum baton_err e = baton_queue_policy_check(&changed);
	if (e == BATON_OK)
		*policy = changed;
	return e;
}

bool policy_has_class(const struct baton_queue_policy *policy)
{
	return policy->key_class[0] != '\0';
}

void policy_set_class(struct baton_queue_policy *policy, struct baton_str name)
{
	size_t len = name.len < BATON_NAME_MAX ? name.len : BATON_NAME_MAX;
	if (len > 0)
		memcpy(policy->key_class, name.ptr, len);
	policy->key_class[len] = '\0';
}

bool policy_same_class(const struct baton_queue_policy *a, const struct baton_queue_policy *b)
{
	return strcmp(a->key_class, b->key_class) == 0;
}

void policy_share(struct baton_queue_policy *to, const struct baton_queue_policy *from)
{
	to->key_limit = from->key_limit;
	to->hold_on_retry = from->hold_on_retry;
	to->key_ttl = from->key_ttl;
	to->on_conflict = from->on_conflict;
	to->key_rate = from->key_rate;
	to->key_waiting_max = from->key_waiting_max;
}

struct baton_duration policy_skipped_keep(const struct baton_queue_policy *policy)
{
	return policy->keep.ns > 0 ? policy->keep : baton_duration_s(SKIPPED_KEEP_S);
}

const char *policy_against_guests(const struct baton_queue_policy *policy)
{
	if (policy->mode == BATON_QUEUE_LANE)
		return "the mode is lane";
	if (policy->on_conflict != BATON_CONFLICT_WAIT)
		return "on_conflict is not wait";
	if (policy_has_sites(policy))
		return policy->key_scope == BATON_KEY_SCOPE_HOST ? "key_scope is host"
		                                                 : "key_scope is process";
	return policy->key_fair == BATON_KEY_FAIR_ON ? "key_fair is on" : NULL;
}

bool policy_has_sites(const struct baton_queue_policy *policy)
{
	return policy->key_scope == BATON_KEY_SCOPE_HOST ||
	       policy->key_scope == BATON_KEY_SCOPE_PROCESS;
}

const char *policy_against_class(const struct baton_queue_policy *policy)
{
	if (policy->mode == BATON_QUEUE_LANE)
		return "the mode is lane";
	return policy_has_sites(policy) ? "key_scope is not cluster" : NULL;
}

bool policy_equal(const struct baton_queue_policy *a, const struct baton_queue_policy *b)
{
	for (size_t i = 0; i < PARTS; i++) {
		if (memcmp((const char *)a + parts[i].offset, (const char *)b + parts[i].offset,
		           parts[i].size) != 0)
			return false;
	}
	return true;
}
