/* The policy of a queue as people type it, and as it is shown. */
#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "moment.h"
#include "number.h"
#include "out.h"
#include "policy.h"
#include "suggest.h"

#define DAY_MS INT64_C(86400000)
#define KEY_MAX 32
#define WORDS_MAX 5

enum kind {
	KIND_WORD = 1, /* one of `words`, which stand for 1, 2, ... */
	KIND_32,
	KIND_64,
	KIND_SPAN, /* the limits are milliseconds */
	KIND_RATE, /* so many in a span, or off; the limits are those of the number */
	KIND_NAME  /* may be empty */
};

struct key {
	const char *name;
	enum kind kind;
	size_t offset; /* in the policy */
	uint64_t min, max;
	const char *words[WORDS_MAX + 1];
};

#define AT(field) offsetof(struct baton_queue_policy, field)

/* In the order of enum baton_policy_field. */
static const struct key keys[] = {
	{"mode", KIND_WORD, AT(mode), 0, 0, {"open", "pull", "lane", "runner"}},
	{"shards", KIND_32, AT(shards), 1, BATON_QUEUE_SHARDS_MAX, {NULL}},
	{"payload-max", KIND_32, AT(payload_max), 1, BATON_QUEUE_PAYLOAD_LIMIT, {NULL}},
	{"waiting-max", KIND_64, AT(waiting_max), 0, BATON_QUEUE_WAITING_MAX, {NULL}},
	{"attempts", KIND_32, AT(retry.attempts), 1, BATON_QUEUE_ATTEMPTS_MAX, {NULL}},
	{"backoff", KIND_WORD, AT(retry.backoff), 0, 0, {"exponential", "fixed", "none"}},
	{"base", KIND_SPAN, AT(retry.base), 1, DAY_MS, {NULL}},
	{"cap", KIND_SPAN, AT(retry.cap), 1, DAY_MS, {NULL}},
	{"lane-attempts", KIND_32, AT(retry_lane.attempts), 1, BATON_QUEUE_ATTEMPTS_MAX, {NULL}},
	{"lane-backoff", KIND_WORD, AT(retry_lane.backoff), 0, 0, {"exponential", "fixed", "none"}},
	{"lane-base", KIND_SPAN, AT(retry_lane.base), 1, DAY_MS, {NULL}},
	{"lane-cap", KIND_SPAN, AT(retry_lane.cap), 1, DAY_MS, {NULL}},
	{"on-retry", KIND_WORD, AT(on_retry), 0, 0, {"block", "pass"}},
	{"on-dead", KIND_WORD, AT(on_dead), 0, 0, {"continue", "hold"}},
	{"dedupe", KIND_SPAN, AT(dedupe), 1, BATON_QUEUE_SPAN_MAX_MS, {NULL}},
	{"keep", KIND_SPAN, AT(keep), 0, BATON_QUEUE_SPAN_MAX_MS, {NULL}},
	{"key-limit", KIND_32, AT(key_limit), 1, BATON_QUEUE_KEY_LIMIT_MAX, {NULL}},
	{"hold-on-retry", KIND_WORD, AT(hold_on_retry), 0, 0, {"keep", "give-up"}},
	{"on-conflict",
         KIND_WORD,
         AT(on_conflict),
         0,
         0,
         {"wait", "skip", "latest", "first", "replace"}},
	{"key-waiting-max", KIND_32, AT(key_waiting_max), 0, BATON_QUEUE_KEY_WAITING_MAX, {NULL}},
	{"key-fair", KIND_WORD, AT(key_fair), 0, 0, {"off", "on"}},
	{"key-rate", KIND_RATE, AT(key_rate), 1, BATON_QUEUE_KEY_STARTS_MAX, {NULL}},
	{"key-ttl", KIND_SPAN, AT(key_ttl), 0, DAY_MS, {NULL}},
	{"key-scope", KIND_WORD, AT(key_scope), 0, 0, {"process", "host", "cluster"}},
	{"key-class", KIND_NAME, AT(key_class), 0, BATON_NAME_MAX, {NULL}},
};
#define KEYS (sizeof keys / sizeof keys[0])
static_assert(BATON_POLICY_KEY_CLASS == 1 << (KEYS - 1), "each key has its field");

/* A word's number goes into the policy as it is. */
static_assert(sizeof(enum baton_queue_mode) == sizeof(uint32_t) &&
                      sizeof(enum baton_backoff) == sizeof(uint32_t) &&
                      sizeof(enum baton_on_retry) == sizeof(uint32_t) &&
                      sizeof(enum baton_on_dead) == sizeof(uint32_t) &&
                      sizeof(enum baton_hold_on_retry) == sizeof(uint32_t) &&
                      sizeof(enum baton_on_conflict) == sizeof(uint32_t) &&
                      sizeof(enum baton_key_fair) == sizeof(uint32_t) &&
                      sizeof(enum baton_key_scope) == sizeof(uint32_t),
              "the kinds of a policy are as wide as a number of 32 bits");

static void *place(struct baton_queue_policy *policy, const struct key *key)
{
	return (char *)policy + key->offset;
}

static uint32_t number_32(const struct baton_queue_policy *policy, const struct key *key)
{
	uint32_t number;
	memcpy(&number, (const char *)policy + key->offset, sizeof number);
	return number;
}

static uint64_t number_64(const struct baton_queue_policy *policy, const struct key *key)
{
	uint64_t number;
	memcpy(&number, (const char *)policy + key->offset, sizeof number);
	return number;
}

static struct baton_duration span(const struct baton_queue_policy *policy, const struct key *key)
{
	struct baton_duration d;
	memcpy(&d, (const char *)policy + key->offset, sizeof d);
	return d;
}

static const char *word(const struct baton_queue_policy *policy, const struct key *key)
{
	return key->words[number_32(policy, key) - 1];
}

#define RATE_TEXT (BATON_DURATION_TEXT + 24)

static struct baton_key_rate rate_of(const struct baton_queue_policy *policy, const struct key *key)
{
	struct baton_key_rate rate;
	memcpy(&rate, (const char *)policy + key->offset, sizeof rate);
	return rate;
}

static const char *rate_print(const struct baton_queue_policy *policy, const struct key *key,
                              char text[RATE_TEXT])
{
	const struct baton_key_rate rate = rate_of(policy, key);
	char window[BATON_DURATION_TEXT];
	if (rate.starts == 0)
		return "off";
	snprintf(text, RATE_TEXT, "%" PRIu64 "/%s", rate.starts,
	         baton_duration_print(rate.window, window));
	return text;
}

/* What there is no rate for is null. */
static void rate_json(struct json *j, const char *name, const struct baton_queue_policy *policy,
                      const struct key *key)
{
	const struct baton_key_rate rate = rate_of(policy, key);
	if (rate.starts == 0) {
		json_null(j, name);
		return;
	}
	json_open(j, name);
	json_number(j, "starts", rate.starts);
	json_span(j, "window_ms", rate.window);
	json_close(j);
}

static const char *name_of(const struct baton_queue_policy *policy, const struct key *key)
{
	return (const char *)policy + key->offset;
}

const char *policy_mode_name(enum baton_queue_mode mode)
{
	return keys[0].words[mode - 1];
}

static bool assign_word(struct baton_queue_policy *policy, const struct key *key, const char *value)
{
	char known[128] = "";
	char shown[SHOWN_MAX];
	for (uint32_t i = 0; key->words[i]; i++) {
		const uint32_t number = i + 1;
		if (strcmp(key->words[i], value) == 0) {
			memcpy(place(policy, key), &number, sizeof number);
			return true;
		}
		size_t used = strlen(known);
		snprintf(known + used, sizeof known - used, "%s%s", i > 0 ? ", " : "",
		         key->words[i]);
	}
	complain("%s is '%s': %s are allowed", key->name, show(value, shown), known);
	return false;
}

static bool assign_number(struct baton_queue_policy *policy, const struct key *key,
                          const char *value)
{
	char shown[SHOWN_MAX];
	uint64_t number;
	if (!number_read(value, key->min, key->max, &number)) {
		complain("%s is '%s': %" PRIu64 " to %" PRIu64 " are allowed", key->name,
		         show(value, shown), key->min, key->max);
		return false;
	}
	const uint32_t narrow = (uint32_t)number;
	if (key->kind == KIND_32)
		memcpy(place(policy, key), &narrow, sizeof narrow);
	else
		memcpy(place(policy, key), &number, sizeof number);
	return true;
}

static bool assign_span(struct baton_queue_policy *policy, const struct key *key, const char *value)
{
	const struct span_limits limits = {baton_duration_ms((int64_t)key->min),
	                                   baton_duration_ms((int64_t)key->max)};
	struct baton_duration d;
	if (!span_parse(key->name, value, &limits, &d))
		return false;
	memcpy(place(policy, key), &d, sizeof d);
	return true;
}

static bool assign_rate(struct baton_queue_policy *policy, const struct key *key, const char *value)
{
	static const struct span_limits limits = {{1000000}, {BATON_QUEUE_SPAN_MAX_MS * 1000000}};
	struct baton_key_rate rate = {.starts = 0};
	char number[24] = "", shown[SHOWN_MAX];
	size_t len = strcspn(value, "/");
	bool off = strcmp(value, "off") == 0;
	if (!off && len < sizeof number)
		memcpy(number, value, len);
	if (!off &&
	    (value[len] == '\0' || !number_read(number, key->min, key->max, &rate.starts))) {
		complain("%s is '%s': off, or N/SPAN with N from %" PRIu64 " to %" PRIu64
		         ", such as 10/1min, are allowed",
		         key->name, show(value, shown), key->min, key->max);
		return false;
	}
	if (!off && !span_parse("the window of key-rate", value + len + 1, &limits, &rate.window))
		return false;
	memcpy(place(policy, key), &rate, sizeof rate);
	return true;
}

static bool assign_name(struct baton_queue_policy *policy, const struct key *key, const char *value)
{
	char *to = place(policy, key);
	char shown[SHOWN_MAX];
	const size_t len = strlen(value);
	if (len > key->max) {
		complain("%s is '%s': it has %zu bytes, and %" PRIu64 " are allowed", key->name,
		         show(value, shown), len, key->max);
		return false;
	}
	memset(to, 0, key->max + 1);
	memcpy(to, value, len);
	return true;
}

static const struct key *key_find(const char *name)
{
	char known[400] = "";
	char shown[SHOWN_MAX];
	struct suggestion meant = {.typed = name};
	for (size_t i = 0; i < KEYS; i++) {
		if (strcmp(keys[i].name, name) == 0)
			return &keys[i];
		suggestion_consider(&meant, keys[i].name);
		size_t used = strlen(known);
		snprintf(known + used, sizeof known - used, "%s%s", i > 0 ? ", " : "",
		         keys[i].name);
	}
	show(name, shown);
	if (meant.nearest)
		complain("unknown key '%s'; did you mean '%s'? The keys are %s", shown,
		         meant.nearest, known);
	else
		complain("unknown key '%s'; the keys are %s", shown, known);
	return NULL;
}

static bool key_assign(struct baton_queue_policy *policy, const struct key *key, const char *value)
{
	switch (key->kind) {
	case KIND_WORD:
		return assign_word(policy, key, value);
	case KIND_32:
	case KIND_64:
		return assign_number(policy, key, value);
	case KIND_SPAN:
		return assign_span(policy, key, value);
	case KIND_RATE:
		return assign_rate(policy, key, value);
	case KIND_NAME:
		return assign_name(policy, key, value);
	}
	return false;
}

bool policy_assign(struct policy_change *change, const char *assignment)
{
	char name[KEY_MAX];
	char shown[SHOWN_MAX];
	size_t len = strcspn(assignment, "=");
	if (assignment[len] == '\0' || len >= sizeof name) {
		complain("'%s' is no KEY=VALUE", show(assignment, shown));
		return false;
	}
	memcpy(name, assignment, len);
	name[len] = '\0';
	const struct key *key = key_find(name);
	if (!key || !key_assign(&change->policy, key, assignment + len + 1))
		return false;
	change->fields |= UINT32_C(1) << (key - keys);
	return true;
}

void policy_print(struct line *line, const struct baton_queue_policy *policy)
{
	char text[BATON_DURATION_TEXT], rate[RATE_TEXT];
	for (size_t i = 0; i < KEYS; i++) {
		line_print(line, "%s=", keys[i].name);
		switch (keys[i].kind) {
		case KIND_WORD:
			line_text(line, word(policy, &keys[i]));
			break;
		case KIND_32:
			line_print(line, "%" PRIu32, number_32(policy, &keys[i]));
			break;
		case KIND_64:
			line_print(line, "%" PRIu64, number_64(policy, &keys[i]));
			break;
		case KIND_SPAN:
			line_text(line, baton_duration_print(span(policy, &keys[i]), text));
			break;
		case KIND_RATE:
			line_text(line, rate_print(policy, &keys[i], rate));
			break;
		case KIND_NAME:
			line_text(line, name_of(policy, &keys[i]));
			break;
		}
		line_end(line);
	}
}

/* The name of a key as a field of JSON. */
static const char *field_name(const struct key *key, char name[KEY_MAX + 3])
{
	snprintf(name, KEY_MAX, "%s%s", key->name, key->kind == KIND_SPAN ? "_ms" : "");
	for (char *c = strchr(name, '-'); c; c = strchr(c, '-'))
		*c = '_';
	return name;
}

void policy_json(struct json *j, const struct baton_queue_policy *policy)
{
	char name[KEY_MAX + 3];
	for (size_t i = 0; i < KEYS; i++) {
		const struct key *key = &keys[i];
		field_name(key, name);
		switch (key->kind) {
		case KIND_WORD:
			json_text(j, name, word(policy, key));
			break;
		case KIND_32:
			json_number(j, name, number_32(policy, key));
			break;
		case KIND_64:
			json_number(j, name, number_64(policy, key));
			break;
		case KIND_SPAN:
			json_span(j, name, span(policy, key));
			break;
		case KIND_RATE:
			rate_json(j, name, policy, key);
			break;
		case KIND_NAME:
			json_text(j, name, name_of(policy, key));
			break;
		}
	}
}
