/* What a persistent worker says about a claim, or a connection. */
#include "runner/reply.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yajl/yajl_gen.h>
#include <yajl/yajl_parse.h>

#include <baton/policy.h>
#include <baton/runner.h>

#include "base/base64.h"
#include "base/check.h"
#include "base/number.h"
#include "base/utf8.h"

#define AT_NUMBER_MAX 32 /* digits of a moment */

/* Where in a line something is. */
enum at {
	AT_START = 1,
	AT_LINE,  /* in its object */
	AT_EMITS, /* in the list of emitted jobs */
	AT_EMIT,  /* in one of them */
	AT_KEYS   /* in the list of its keys */
};

/* Follow-up work, while the line is read. */
struct emit {
	struct emit *next;
	struct baton_batch batch;
	struct baton_str payload;
	struct baton_str keys[BATON_KEYS_MAX]; /* the batch's */
	bool has_payload;
	uint32_t attempts; /* 0: not said */
	unsigned seen;     /* fields, a bit each */
};

struct reader {
	struct reply *reply;
	struct arena *arena;
	const struct field *field; /* whose value comes next, or is being read */
	enum at at;
	unsigned seen; /* fields of the line, a bit each */
	bool ok;
	bool retry;
	struct emit *first, *last; /* the last one is being read */
	size_t emits;
	yajl_gen copy;  /* of a value that may be anything and is no string; NULL: none is open */
	unsigned depth; /* objects and lists that are open in it */
	char *error;
};

/* A field, and what it does with the kinds of values that it takes. */
struct field {
	const char *name;
	const char *takes;
	bool (*string)(struct reader *r, struct baton_str value);
	bool (*number)(struct reader *r, struct baton_str value);
	bool (*boolean)(struct reader *r, bool value);
	bool any; /* other values are given to string() as JSON */
};

__attribute__((format(printf, 2, 3))) static bool wrong(struct reader *r, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(r->error, REPLY_ERROR, format, args);
	va_end(args);
	return false;
}

static bool bad_value(struct reader *r)
{
	return wrong(r, "'%s' takes %s", r->field->name, r->field->takes);
}

static bool keep(struct reader *r, struct baton_str value, struct baton_str *ret)
{
	return arena_copy(r->arena, value, ret) || wrong(r, "there is no memory for it");
}

/* The fields of a line. */

static bool on_claim(struct reader *r, struct baton_str value)
{
	if (value.len == 0 || value.len >= sizeof r->reply->claim ||
	    memchr(value.ptr, '\0', value.len))
		return bad_value(r);
	memcpy(r->reply->claim, value.ptr, value.len);
	return true;
}

static bool on_ok(struct reader *r, bool value)
{
	r->ok = value;
	return true;
}

static bool on_result(struct reader *r, struct baton_str value)
{
	return keep(r, value, &r->reply->end.result);
}

static bool on_error(struct reader *r, struct baton_str value)
{
	return keep(r, value, &r->reply->end.error);
}

static bool on_retry(struct reader *r, bool value)
{
	r->retry = value;
	return true;
}

static bool on_delay_ms(struct reader *r, struct baton_str value)
{
	uint64_t ms;
	if (!number_parse(value, (uint64_t)BATON_QUEUE_SPAN_MAX_MS, &ms))
		return bad_value(r);
	r->reply->end.delay = baton_duration_ms((int64_t)ms);
	return true;
}

static bool on_progress(struct reader *r, struct baton_str value)
{
	r->reply->is_progress = true;
	r->reply->is_text = !r->copy;
	return keep(r, value, &r->reply->progress);
}

static bool on_checkpoint(struct reader *r, bool value)
{
	r->reply->checkpoint = REPLY_CHECKPOINT;
	return value || bad_value(r);
}

static bool on_checkpoint_number(struct reader *r, struct baton_str value)
{
	uint64_t number;
	if (!number_parse(value, BATON_JOIN_MAX, &number) || number == 0)
		return bad_value(r);
	r->reply->checkpoint = (uint32_t)number;
	return true;
}

static bool on_visits(struct reader *r, struct baton_str value)
{
	uint64_t number;
	if (!number_parse(value, BATON_RUNNER_CONNECTIONS_MAX, &number))
		return bad_value(r);
	r->reply->visits = (uint32_t)number;
	return true;
}

static bool on_visit(struct reader *r, struct baton_str value)
{
	return number_parse(value, INT64_MAX, &r->reply->visit) || bad_value(r);
}

static bool on_done(struct reader *r, bool value)
{
	return value || bad_value(r);
}

enum {
	CLAIM,
	OK,
	RESULT,
	EMITS,
	ERROR,
	RETRY,
	DELAY,
	PROGRESS,
	CHECKPOINT,
	VISITS,
	VISIT,
	DONE
};

static const struct field fields[] = {
	[CLAIM] = {.name = "claim", .takes = "the id of a claim", .string = on_claim},
	[OK] = {.name = "ok", .takes = "true or false", .boolean = on_ok},
	[RESULT] = {.name = "result", .takes = "any value", .string = on_result, .any = true},
	[EMITS] = {.name = "emit", .takes = "a list of objects"},
	[ERROR] = {.name = "error", .takes = "a string", .string = on_error},
	[RETRY] = {.name = "retry", .takes = "true or false", .boolean = on_retry},
	[DELAY] = {.name = "delay_ms",
                   .takes = "milliseconds, at most a year",
                   .number = on_delay_ms},
	[PROGRESS] = {.name = "progress", .takes = "any value", .string = on_progress, .any = true},
	[CHECKPOINT] = {.name = "checkpoint",
                        .takes = "true, or a number from 1 to 10000",
                        .number = on_checkpoint_number,
                        .boolean = on_checkpoint},
	[VISITS] = {.name = "visits", .takes = "a number from 0 to 65536", .number = on_visits},
	[VISIT] = {.name = "visit", .takes = "the number of a connection", .number = on_visit},
	[DONE] = {.name = "done", .takes = "true", .boolean = on_done},
};
#define FIELDS (sizeof fields / sizeof fields[0])

/* The fields of an emitted job. */

static bool on_queue(struct reader *r, struct baton_str value)
{
	return keep(r, value, &r->last->batch.queue);
}

static bool on_lane(struct reader *r, struct baton_str value)
{
	return keep(r, value, &r->last->batch.lane);
}

/* The only one, or one of a list. */
static bool on_concurrency_key(struct reader *r, struct baton_str value)
{
	struct emit *emit = r->last;
	if (emit->batch.key_count == BATON_KEYS_MAX)
		return wrong(r, "'%s' has more than %d keys", r->field->name, BATON_KEYS_MAX);
	emit->batch.keys = emit->keys;
	return keep(r, value, &emit->keys[emit->batch.key_count++]);
}

static bool on_key(struct reader *r, struct baton_str value)
{
	return keep(r, value, &r->last->batch.source);
}

static bool on_payload(struct reader *r, struct baton_str value)
{
	if (r->last->has_payload)
		return wrong(r, "an emitted job has two payloads");
	r->last->has_payload = true;
	return keep(r, value, &r->last->payload);
}

static bool on_base64(struct reader *r, struct baton_str value)
{
	char *bytes = arena_take(r->arena, BASE64_ROOM(value.len), 1);
	size_t len;
	if (!bytes)
		return wrong(r, "there is no memory for it");
	if (r->last->has_payload)
		return wrong(r, "an emitted job has two payloads");
	if (!base64_decode(value, bytes, &len))
		return bad_value(r);
	r->last->has_payload = true;
	r->last->payload = (struct baton_str){bytes, len};
	return true;
}

/* Of a delay and a moment the later one in the line goes. */
static bool on_delay(struct reader *r, struct baton_str value)
{
	r->last->batch.at = (struct baton_store_time){0};
	return baton_duration_parse(value, &r->last->batch.delay) == BATON_OK || bad_value(r);
}

static bool on_at(struct reader *r, struct baton_str value)
{
	r->last->batch.delay = (struct baton_duration){0};
	return baton_store_time_parse(value, &r->last->batch.at) == BATON_OK || bad_value(r);
}

/* Without the "@" before it. */
static bool on_at_number(struct reader *r, struct baton_str value)
{
	char text[AT_NUMBER_MAX + 1] = "@";
	if (value.len >= AT_NUMBER_MAX)
		return bad_value(r);
	memcpy(text + 1, value.ptr, value.len);
	return on_at(r, (struct baton_str){text, value.len + 1});
}

static bool on_priority(struct reader *r, struct baton_str value)
{
	uint64_t number;
	if (!number_parse(value, BATON_PRIORITY_MAX, &number))
		return bad_value(r);
	r->last->batch.priority = (uint32_t)number;
	return true;
}

static bool on_attempts(struct reader *r, struct baton_str value)
{
	uint64_t number;
	if (!number_parse(value, BATON_QUEUE_ATTEMPTS_MAX, &number) || number == 0)
		return bad_value(r);
	r->last->attempts = (uint32_t)number;
	return true;
}

static bool on_join(struct reader *r, struct baton_str value)
{
	r->last->batch.slot = BATON_JOIN;
	return keep(r, value, &r->last->batch.group);
}

static bool on_join_bool(struct reader *r, bool value)
{
	r->last->batch.slot = value ? BATON_JOIN : BATON_EXCLUSIVE;
	return true;
}

static bool on_command(struct reader *r, bool value)
{
	r->last->batch.cls = value ? BATON_COMMAND : BATON_WORK;
	return true;
}

static bool on_after_commit(struct reader *r, bool value)
{
	r->last->batch.delivery = value ? BATON_AFTER_COMMIT : BATON_EARLIEST;
	return true;
}

static const struct field emit_fields[] = {
	{.name = "queue", .takes = "a string", .string = on_queue},
	{.name = "payload", .takes = "any value", .string = on_payload, .any = true},
	{.name = "payload_base64",
         .takes = "a string of base64 with its padding",
         .string = on_base64},
	{.name = "lane", .takes = "a string", .string = on_lane},
	{.name = "concurrency_key",
         .takes = "a string, or a list of strings",
         .string = on_concurrency_key},
	{.name = "delay",
         .takes = "seconds, or a string such as \"5min\"",
         .string = on_delay,
         .number = on_delay},
	{.name = "at",
         .takes = "a string such as \"2026-02-28T09:05:00Z\", or seconds since 1970",
         .string = on_at,
         .number = on_at_number},
	{.name = "priority", .takes = "a number from 0 to 9", .number = on_priority},
	{.name = "join",
         .takes = "true, false, or a string",
         .string = on_join,
         .boolean = on_join_bool},
	{.name = "command", .takes = "true or false", .boolean = on_command},
	{.name = "after_commit", .takes = "true or false", .boolean = on_after_commit},
	{.name = "idempotency_key", .takes = "a string", .string = on_key},
	{.name = "attempts", .takes = "a number from 1 to 1000000", .number = on_attempts},
};
#define EMIT_FIELDS (sizeof emit_fields / sizeof emit_fields[0])
_Static_assert(BATON_RUNNER_CONNECTIONS_MAX == 65536,
               "the limit is the one that the table of fields states");
_Static_assert(BATON_JOIN_MAX == 10000, "the limit is the one that the table of fields states");
_Static_assert(BATON_PRIORITY_MAX == 9 && BATON_QUEUE_ATTEMPTS_MAX == 1000000,
               "the limits are those that the table of fields states");

/* The values, as the parser finds them. */

static bool no_object(struct reader *r)
{
	return wrong(r, r->at == AT_EMITS ? "'emit' takes a list of objects" : "it is no object");
}

static bool copied(struct reader *r, yajl_gen_status status)
{
	if (status == yajl_max_depth_exceeded)
		return wrong(r, "a value is nested deeper than %d levels", YAJL_MAX_DEPTH);
	return status == yajl_gen_status_ok || wrong(r, "a value cannot be written as JSON");
}

/* Ends the copy once its outermost value is complete. */
static bool copy_end(struct reader *r)
{
	const unsigned char *bytes;
	size_t len;
	if (r->depth > 0)
		return true;
	CHECK(r->field->string); /* where any value is taken, there is one */
	yajl_gen_get_buf(r->copy, &bytes, &len);
	bool kept = r->field->string(r, (struct baton_str){(const char *)bytes, len});
	yajl_gen_free(r->copy);
	r->copy = NULL;
	return kept;
}

/* A value that is not of the kinds which its field takes begins, or a part of one. */
static bool copy_begin(struct reader *r)
{
	if (r->copy)
		return true;
	if (r->at == AT_KEYS)
		return bad_value(r);
	if (r->at != AT_LINE && r->at != AT_EMIT)
		return no_object(r);
	if (!r->field->any)
		return bad_value(r);
	r->copy = yajl_gen_alloc(NULL);
	return r->copy || wrong(r, "there is no memory for it");
}

static bool is_value(const struct reader *r)
{
	return !r->copy && (r->at == AT_LINE || r->at == AT_EMIT);
}

/* What is null is not there; but a payload, or progress, may be just that. */
static int on_null(void *arg)
{
	struct reader *r = arg;
	if (is_value(r) && (!r->field->any || r->field == &fields[RESULT])) {
		if (r->at == AT_LINE)
			r->seen &= ~(1U << (r->field - fields));
		return true;
	}
	return copy_begin(r) && copied(r, yajl_gen_null(r->copy)) && copy_end(r);
}

static int on_boolean(void *arg, int value)
{
	struct reader *r = arg;
	if (is_value(r) && r->field->boolean)
		return r->field->boolean(r, value != 0);
	return copy_begin(r) && copied(r, yajl_gen_bool(r->copy, value)) && copy_end(r);
}

static int on_number(void *arg, const char *value, size_t len)
{
	struct reader *r = arg;
	if (is_value(r) && r->field->number)
		return r->field->number(r, (struct baton_str){value, len});
	return copy_begin(r) && copied(r, yajl_gen_number(r->copy, value, len)) && copy_end(r);
}

static int on_string(void *arg, const unsigned char *value, size_t len)
{
	struct reader *r = arg;
	if ((is_value(r) || r->at == AT_KEYS) && r->field->string)
		return r->field->string(r, (struct baton_str){(const char *)value, len});
	return copy_begin(r) && copied(r, yajl_gen_string(r->copy, value, len)) && copy_end(r);
}

static bool emit_begin(struct reader *r)
{
	if (r->emits == BATON_PUT_MAX)
		return wrong(r, "'emit' has more than %d jobs", BATON_PUT_MAX);
	struct emit *emit = arena_take(r->arena, 1, sizeof *emit);
	if (!emit)
		return wrong(r, "there is no memory for it");
	if (r->last)
		r->last->next = emit;
	else
		r->first = emit;
	r->last = emit;
	r->emits++;
	r->at = AT_EMIT;
	return true;
}

static bool emit_end(struct reader *r)
{
	struct emit *emit = r->last;
	r->at = AT_EMITS;
	if (emit->batch.queue.len == 0)
		return wrong(r, "an emitted job has no 'queue'");
	if (!emit->has_payload)
		return wrong(r, "an emitted job has no 'payload' and no 'payload_base64'");
	if (emit->attempts > 0) {
		struct baton_queue_policy policy = baton_queue_policy_default();
		emit->batch.retry = emit->batch.lane.len > 0 ? policy.retry_lane : policy.retry;
		emit->batch.retry.attempts = emit->attempts;
	}
	return true;
}

static int on_open_map(void *arg)
{
	struct reader *r = arg;
	if (!r->copy && r->at == AT_START) {
		r->at = AT_LINE;
		return true;
	}
	if (!r->copy && r->at == AT_EMITS)
		return emit_begin(r);
	bool good = copy_begin(r) && copied(r, yajl_gen_map_open(r->copy));
	r->depth++;
	return good;
}

static int on_close_map(void *arg)
{
	struct reader *r = arg;
	if (!r->copy)
		return r->at == AT_EMIT ? emit_end(r) : true;
	r->depth--;
	return copied(r, yajl_gen_map_close(r->copy)) && copy_end(r);
}

static int on_open_list(void *arg)
{
	struct reader *r = arg;
	if (!r->copy && r->at == AT_LINE && r->field == &fields[EMITS]) {
		r->at = AT_EMITS;
		return true;
	}
	if (is_value(r) && r->field->string == on_concurrency_key) {
		r->at = AT_KEYS;
		return true;
	}
	bool good = copy_begin(r) && copied(r, yajl_gen_array_open(r->copy));
	r->depth++;
	return good;
}

static int on_close_list(void *arg)
{
	struct reader *r = arg;
	if (!r->copy) {
		r->at = r->at == AT_KEYS ? AT_EMIT : AT_LINE;
		return true;
	}
	r->depth--;
	return copied(r, yajl_gen_array_close(r->copy)) && copy_end(r);
}

static int on_name(void *arg, const unsigned char *value, size_t len)
{
	struct reader *r = arg;
	bool emit = r->at == AT_EMIT;
	const struct field *table = emit ? emit_fields : fields;
	size_t count = emit ? EMIT_FIELDS : FIELDS;
	unsigned *seen = emit ? &r->last->seen : &r->seen;
	if (r->copy)
		return copied(r, yajl_gen_string(r->copy, value, len));
	for (size_t i = 0; i < count; i++) {
		if (strlen(table[i].name) != len || memcmp(table[i].name, value, len) != 0)
			continue;
		if (*seen & 1U << i)
			return wrong(r, "'%s' is there twice", table[i].name);
		*seen |= 1U << i;
		r->field = &table[i];
		return true;
	}
	return wrong(r, "unknown field '%.*s'",
	             (int)utf8_cut((const char *)value, len < 40 ? len : 40), (const char *)value);
}

static const yajl_callbacks callbacks = {
	.yajl_null = on_null,
	.yajl_boolean = on_boolean,
	.yajl_number = on_number,
	.yajl_string = on_string,
	.yajl_start_map = on_open_map,
	.yajl_map_key = on_name,
	.yajl_end_map = on_close_map,
	.yajl_start_array = on_open_list,
	.yajl_end_array = on_close_list,
};

/* The value of an escape \uXXXX; 0: there is none. */
static unsigned escape_at(const char *at, const char *end)
{
	char digits[5] = "";
	if (end - at < 6 || at[0] != '\\' || at[1] != 'u')
		return 0;
	memcpy(digits, at + 2, 4);
	return (unsigned)strtoul(digits, NULL, 16);
}

/* Whether an escape stands for one half of a character without the other: the parser would make a
 * question mark of it. The line is JSON. */
static bool has_half_character(struct baton_str line)
{
	const char *end = line.ptr + line.len;
	const char *at = line.ptr;
	while ((at = memchr(at, '\\', (size_t)(end - at)))) {
		unsigned value = escape_at(at, end);
		bool high = value >= 0xd800 && value < 0xdc00;
		bool low = value >= 0xdc00 && value < 0xe000;
		unsigned next = high ? escape_at(at + 6, end) : 0;
		if (low || (high && (next < 0xdc00 || next >= 0xe000)))
			return true;
		at += high ? 12 : 2;
	}
	return false;
}

/* What the parser says, without its line feed. */
static bool not_json(struct reader *r, yajl_handle parser)
{
	unsigned char *text = yajl_get_error(parser, 0, NULL, 0);
	const char *why = text ? (const char *)text : "";
	wrong(r, "it is no JSON: %.*s", (int)strcspn(why, "\n"), why);
	if (text)
		yajl_free_error(parser, text);
	return false;
}

static bool parse(struct reader *r, struct baton_str line)
{
	yajl_handle parser = yajl_alloc(&callbacks, NULL, r);
	if (!parser)
		return wrong(r, "there is no memory for it");
	yajl_status status = yajl_parse(parser, (const unsigned char *)line.ptr, line.len);
	if (status == yajl_status_ok)
		status = yajl_complete_parse(parser);
	if (status == yajl_status_error)
		not_json(r, parser);
	yajl_free(parser);
	if (r->copy)
		yajl_gen_free(r->copy);
	if (status != yajl_status_ok)
		return false;
	return !has_half_character(line) || wrong(r, "it has an escape that is half a character");
}

static bool has(const struct reader *r, unsigned field)
{
	return (r->seen & 1U << field) != 0;
}

/* Whether what is there belongs together, about connections. */
static bool is_whole_visit(struct reader *r)
{
	r->reply->about = has(r, VISITS) ? REPLY_VISITS : REPLY_VISIT;
	if (r->seen == 1U << VISITS || r->seen == (1U << VISIT | 1U << DONE))
		return true;
	return wrong(r, "about connections it has either 'visits', or 'visit' and 'done'");
}

/* Whether what is there belongs together. */
static bool is_whole(struct reader *r)
{
	if (has(r, VISITS) || has(r, VISIT) || has(r, DONE))
		return is_whole_visit(r);
	r->reply->about = REPLY_CLAIM;
	if (r->reply->claim[0] == '\0')
		return wrong(r, "it has no 'claim'");
	if (has(r, OK) + r->reply->is_progress + has(r, CHECKPOINT) != 1)
		return wrong(r, "it has to have either 'ok', 'progress' or 'checkpoint'");
	if (!(has(r, OK) && r->ok) && (has(r, RESULT) || r->emits > 0))
		return wrong(r, "only what is ok has a 'result' or an 'emit'");
	if (!(has(r, OK) && !r->ok) && (has(r, ERROR) || has(r, RETRY) || has(r, DELAY)))
		return wrong(r, "only what is not ok has an 'error', a 'retry' or a 'delay_ms'");
	return r->retry || r->reply->end.delay.ns == 0 ||
	       wrong(r, "only what is tried again has a 'delay_ms'");
}

static bool set_emits(struct reader *r)
{
	struct baton_batch *emits = arena_take(r->arena, r->emits, sizeof *emits);
	size_t count = 0;
	if (!emits)
		return wrong(r, "there is no memory for it");
	for (struct emit *emit = r->first; emit; emit = emit->next) {
		emit->batch.payloads = &emit->payload;
		emit->batch.count = 1;
		emits[count++] = emit->batch;
	}
	r->reply->end.emits = emits;
	r->reply->end.emit_count = count;
	return true;
}

bool reply_parse(struct baton_str line, struct arena *arena, struct reply *ret,
                 char error[REPLY_ERROR])
{
	struct reader r = {
		.reply = ret,
		.arena = arena,
		.at = AT_START,
		.retry = true,
		.error = error,
	};
	*ret = (struct reply){.is_progress = false};
	if (!parse(&r, line) || !is_whole(&r))
		return false;
	ret->end.how = r.ok ? BATON_COMPLETE : r.retry ? BATON_FAIL : BATON_REJECT;
	return r.emits == 0 || set_emits(&r);
}
