/* A line of JSON that says what to put. */
#include <assert.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yajl/yajl_gen.h>
#include <yajl/yajl_parse.h>

#include "base64.h"
#include "jobline.h"
#include "number.h"
#include "out.h"
#include "suggest.h"

#define WORD_MAX 64 /* bytes of a number, or of a span */

/* What is known while a line is read. */
struct reader {
	struct jobline job;
	size_t used, room;         /* of job.text */
	const struct field *field; /* whose value comes next, or is being read */
	unsigned seen;             /* fields, a bit each */
	unsigned depth;            /* open objects and lists */
	yajl_gen copy;             /* of a payload that is no string; NULL: none is open */
	uint32_t attempts;         /* 0: not said */
	bool has_payload;
	bool in_keys; /* in a list of keys */
	char *error;
};

/* A field, and what it does with the kinds of values that it takes. */
struct field {
	const char *name;
	const char *takes;
	bool (*string)(struct reader *r, struct baton_str value);
	bool (*number)(struct reader *r, const char *value);
	bool (*boolean)(struct reader *r, bool value);
};

__attribute__((format(printf, 2, 3))) static bool wrong(struct reader *r, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(r->error, JOBLINE_ERROR, format, args);
	va_end(args);
	return false;
}

/* Keeps a value. Everything that is kept of a line is part of it, so there is room. */
static bool keep(struct reader *r, struct baton_str value, struct baton_str *ret)
{
	if (value.len > r->room - r->used)
		return wrong(r, "its values are longer than the line itself");
	if (value.len > 0)
		memcpy(r->job.text + r->used, value.ptr, value.len);
	*ret = (struct baton_str){r->job.text + r->used, value.len};
	r->used += value.len;
	return true;
}

/* The value as a C string. False: it is too long, or has a NUL. */
static bool word(struct baton_str value, char text[WORD_MAX])
{
	if (value.len >= WORD_MAX || (value.len > 0 && memchr(value.ptr, '\0', value.len)))
		return false;
	if (value.len > 0)
		memcpy(text, value.ptr, value.len);
	text[value.len] = '\0';
	return true;
}

/* `value` as the line has it, or what it is. */
static bool bad_value(struct reader *r, struct baton_str value)
{
	char text[SHOWN_MAX + 1] = "", shown[SHOWN_MAX];
	size_t len = value.len < sizeof text - 1 ? value.len : sizeof text - 1;
	if (len > 0)
		memcpy(text, value.ptr, len);
	return wrong(r, "'%s' takes %s, not %s", r->field->name, r->field->takes,
	             show(text, shown));
}

static bool bad_string(struct reader *r, struct baton_str value)
{
	char text[SHOWN_MAX + 3];
	int len = snprintf(text, sizeof text, "\"%.*s\"", (int)(value.len & INT_MAX), value.ptr);
	return bad_value(r, (struct baton_str){text, (size_t)len < sizeof text ? (size_t)len
	                                                                       : sizeof text - 1});
}

static bool on_payload(struct reader *r, struct baton_str value)
{
	if (r->has_payload)
		return wrong(r, "it has two payloads");
	r->has_payload = true;
	return keep(r, value, &r->job.payload);
}

static bool on_base64(struct reader *r, struct baton_str value)
{
	size_t before = r->used;
	if (!on_payload(r, value))
		return false;
	/* A payload is shown to nobody who did not ask for it. */
	return base64_decode(r->job.text + before, &r->job.payload.len) ||
	       wrong(r, "'%s' takes %s", r->field->name, r->field->takes);
}

static bool on_lane(struct reader *r, struct baton_str value)
{
	return keep(r, value, &r->job.batch.lane);
}

/* The only one, or one of a list. */
static bool on_concurrency_key(struct reader *r, struct baton_str value)
{
	struct baton_batch *batch = &r->job.batch;
	if (!r->job.has_keys)
		batch->key_count = 0;
	if (batch->key_count == BATON_KEYS_MAX)
		return wrong(r, "'%s' has more than %d keys", r->field->name, BATON_KEYS_MAX);
	r->job.has_keys = true;
	return keep(r, value, &r->job.keys[batch->key_count++]);
}

static bool on_key(struct reader *r, struct baton_str value)
{
	return keep(r, value, &r->job.batch.source);
}

static bool read_delay(struct reader *r, struct baton_str value)
{
	struct baton_duration delay;
	if (baton_duration_parse(value, &delay) != BATON_OK)
		return false;
	r->job.batch.delay = delay;
	r->job.batch.at = (struct baton_store_time){0};
	return true;
}

static bool on_delay_number(struct reader *r, const char *value)
{
	return read_delay(r, baton_str_z(value)) || bad_value(r, baton_str_z(value));
}

static bool on_delay(struct reader *r, struct baton_str value)
{
	return (value.len < WORD_MAX && read_delay(r, value)) || bad_string(r, value);
}

static bool read_at(struct reader *r, struct baton_str value)
{
	if (baton_store_time_parse(value, &r->job.batch.at) != BATON_OK)
		return false;
	r->job.batch.delay = (struct baton_duration){0};
	return true;
}

static bool on_at(struct reader *r, struct baton_str value)
{
	return read_at(r, value) || bad_string(r, value);
}

static bool on_at_number(struct reader *r, const char *value)
{
	char text[WORD_MAX + 1];
	snprintf(text, sizeof text, "@%s", value);
	return read_at(r, baton_str_z(text)) || bad_value(r, baton_str_z(value));
}

static bool on_priority(struct reader *r, const char *value)
{
	uint64_t number;
	if (!number_read(value, 0, BATON_PRIORITY_MAX, &number))
		return bad_value(r, baton_str_z(value));
	r->job.batch.priority = (uint32_t)number;
	return true;
}

static bool on_attempts(struct reader *r, const char *value)
{
	uint64_t number;
	if (!number_read(value, 1, BATON_QUEUE_ATTEMPTS_MAX, &number))
		return bad_value(r, baton_str_z(value));
	r->attempts = (uint32_t)number;
	return true;
}

static bool on_join_bool(struct reader *r, bool value)
{
	r->job.batch.slot = value ? BATON_JOIN : BATON_EXCLUSIVE;
	r->job.batch.group = (struct baton_str){NULL, 0};
	return true;
}

static bool on_join(struct reader *r, struct baton_str value)
{
	r->job.batch.slot = BATON_JOIN;
	return keep(r, value, &r->job.batch.group);
}

static bool on_command(struct reader *r, bool value)
{
	r->job.batch.cls = value ? BATON_COMMAND : BATON_WORK;
	return true;
}

static bool on_after_commit(struct reader *r, bool value)
{
	r->job.batch.delivery = value ? BATON_AFTER_COMMIT : BATON_EARLIEST;
	return true;
}

static const struct field fields[] = {
	{"payload", "any value", on_payload, NULL, NULL},
	{"payload_base64", "a string of base64 with its padding", on_base64, NULL, NULL},
	{"lane", "a string", on_lane, NULL, NULL},
	{"concurrency_key", "a string, or a list of strings", on_concurrency_key, NULL, NULL},
	{"delay", "seconds, or a string such as \"5min\"", on_delay, on_delay_number, NULL},
	{"at", "a string such as \"2026-02-28T09:05:00Z\", or seconds since 1970", on_at,
         on_at_number, NULL},
	{"priority", "a number from 0 to 9", NULL, on_priority, NULL},
	{"join", "true, false, or a string", on_join, NULL, on_join_bool},
	{"command", "true or false", NULL, NULL, on_command},
	{"after_commit", "true or false", NULL, NULL, on_after_commit},
	{"idempotency_key", "a string", on_key, NULL, NULL},
	{"attempts", "a number from 1 to 1000000", NULL, on_attempts, NULL},
};
#define FIELDS (sizeof fields / sizeof fields[0])
static_assert(BATON_PRIORITY_MAX == 9 && BATON_QUEUE_ATTEMPTS_MAX == 1000000,
              "the limits are those that the table of fields states");

/* Whether the value is that of the payload, which may be anything. */
static bool is_payload(const struct reader *r)
{
	return r->field == &fields[0];
}

/* Begins the copy of a payload that is no string. `value`: as it is shown if it is no payload. */
static bool copy_begin(struct reader *r, struct baton_str value)
{
	if (r->copy)
		return true;
	if (r->in_keys)
		return bad_value(r, value);
	if (r->depth != 1)
		return wrong(r, "it is no object such as {\"payload\": \"text\"}");
	if (!is_payload(r))
		return bad_value(r, value);
	r->copy = yajl_gen_alloc(NULL);
	return r->copy || wrong(r, "there is no memory for it");
}

static bool copied(struct reader *r, yajl_gen_status status)
{
	if (status == yajl_max_depth_exceeded)
		return wrong(r, "its payload is nested deeper than %d levels", YAJL_MAX_DEPTH);
	return status == yajl_gen_status_ok || wrong(r, "its payload cannot be written as JSON");
}

/* Ends the copy once its outermost value is complete. */
static bool copy_end(struct reader *r)
{
	const unsigned char *bytes;
	size_t len;
	if (r->depth > 1)
		return true;
	yajl_gen_get_buf(r->copy, &bytes, &len);
	bool kept = on_payload(r, (struct baton_str){(const char *)bytes, len});
	yajl_gen_free(r->copy);
	r->copy = NULL;
	return kept;
}

static int on_null(void *arg)
{
	struct reader *r = arg;
	/* A field that is null is one that is not there; but a payload may be just that. */
	if (r->depth == 1 && !is_payload(r))
		return true;
	return copy_begin(r, BATON_STR("null")) && copied(r, yajl_gen_null(r->copy)) && copy_end(r);
}

static int on_boolean(void *arg, int value)
{
	struct reader *r = arg;
	if (r->depth == 1 && r->field->boolean)
		return r->field->boolean(r, value != 0);
	return copy_begin(r, baton_str_z(value ? "true" : "false")) &&
	       copied(r, yajl_gen_bool(r->copy, value)) && copy_end(r);
}

static int on_number(void *arg, const char *value, size_t len)
{
	struct reader *r = arg;
	const struct baton_str number = {value, len};
	char text[WORD_MAX];
	if (r->depth == 1 && r->field->number)
		return word(number, text) ? r->field->number(r, text) : bad_value(r, number);
	return copy_begin(r, number) && copied(r, yajl_gen_number(r->copy, value, len)) &&
	       copy_end(r);
}

static int on_string(void *arg, const unsigned char *value, size_t len)
{
	struct reader *r = arg;
	const struct baton_str string = {(const char *)value, len};
	if ((r->depth == 1 || r->in_keys) && r->field->string)
		return r->field->string(r, string);
	if (r->depth == 1 && !is_payload(r))
		return bad_string(r, string);
	return copy_begin(r, string) && copied(r, yajl_gen_string(r->copy, value, len)) &&
	       copy_end(r);
}

/* The first one is the line itself. */
static int on_open_map(void *arg)
{
	struct reader *r = arg;
	bool good = r->depth == 0 || (copy_begin(r, BATON_STR("an object")) &&
	                              copied(r, yajl_gen_map_open(r->copy)));
	r->depth++;
	return good;
}

static int on_close_map(void *arg)
{
	struct reader *r = arg;
	r->depth--;
	return r->depth == 0 || (copied(r, yajl_gen_map_close(r->copy)) && copy_end(r));
}

static int on_open_list(void *arg)
{
	struct reader *r = arg;
	if (r->depth == 1 && r->field->string == on_concurrency_key) {
		r->job.has_keys = r->in_keys = true;
		r->job.batch.key_count = 0;
		r->depth++;
		return true;
	}
	bool good = copy_begin(r, BATON_STR("a list")) && copied(r, yajl_gen_array_open(r->copy));
	r->depth++;
	return good;
}

static int on_close_list(void *arg)
{
	struct reader *r = arg;
	r->depth--;
	if (r->in_keys) {
		r->in_keys = false;
		return true;
	}
	return copied(r, yajl_gen_array_close(r->copy)) && copy_end(r);
}

static bool unknown_field(struct reader *r, const char *name)
{
	char shown[SHOWN_MAX];
	struct suggestion meant = {.typed = name};
	for (size_t i = 0; i < FIELDS; i++)
		suggestion_consider(&meant, fields[i].name);
	show(name, shown);
	if (meant.nearest)
		return wrong(r, "unknown field '%s' (did you mean '%s'?)", shown, meant.nearest);
	return wrong(r, "unknown field '%s'", shown);
}

static int on_name(void *arg, const unsigned char *value, size_t len)
{
	struct reader *r = arg;
	char name[WORD_MAX];
	if (r->depth > 1)
		return copied(r, yajl_gen_string(r->copy, value, len));
	if (!word((struct baton_str){(const char *)value, len}, name))
		return wrong(r, "unknown field of %zu bytes", len);
	for (size_t i = 0; i < FIELDS; i++) {
		if (strcmp(fields[i].name, name) != 0)
			continue;
		if (r->seen & 1U << i)
			return wrong(r, "'%s' is there twice", name);
		r->seen |= 1U << i;
		r->field = &fields[i];
		return true;
	}
	return unknown_field(r, name);
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

static unsigned escape_value(const char *digits)
{
	char text[5] = {digits[0], digits[1], digits[2], digits[3], '\0'};
	return (unsigned)strtoul(text, NULL, 16);
}

/* Whether an escape stands for half a character: the parser would make a question mark of it. */
static bool has_half_character(struct baton_str line)
{
	const char *end = line.ptr + line.len;
	for (const char *c = line.ptr; c + 6 <= end; c++) {
		if (*c != '\\')
			continue;
		unsigned value = c[1] == 'u' ? escape_value(c + 2) : 0;
		c++;
		if (value < 0xd800 || value > 0xdfff)
			continue;
		bool pair = value < 0xdc00 && c + 11 <= end && c[5] == '\\' && c[6] == 'u' &&
		            (escape_value(c + 7) & 0xfc00) == 0xdc00;
		if (!pair)
			return true;
		c += 10;
	}
	return false;
}

/* What the parser says, without its full stop and line feed. */
static bool not_json(struct reader *r, yajl_handle parser)
{
	unsigned char *text = yajl_get_error(parser, 0, NULL, 0);
	const char *why = text ? (const char *)text : "";
	wrong(r, "it is no JSON: %.*s", (int)strcspn(why, ".\n"), why);
	if (text)
		yajl_free_error(parser, text);
	return false;
}

static bool read_line(struct reader *r, struct baton_str line)
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
	if (has_half_character(line))
		return wrong(r, "it has an escape that is half a character");
	return r->has_payload || wrong(r, "it has no 'payload' and no 'payload_base64'");
}

struct baton_retry jobline_retry(uint32_t attempts, bool lane)
{
	struct baton_queue_policy policy = baton_queue_policy_default();
	struct baton_retry retry = lane ? policy.retry_lane : policy.retry;
	retry.attempts = attempts;
	return retry;
}

bool jobline_parse(struct baton_str line, const struct baton_batch *template, struct jobline *ret,
                   char error[JOBLINE_ERROR])
{
	struct reader r = {
		.job = {.batch = *template, .text = malloc(line.len + 1)},
		.room = line.len,
		.attempts = template->retry.attempts,
		.error = error,
	};
	if (!r.job.text)
		return wrong(&r, "there is no memory for it");
	if (!read_line(&r, line)) {
		free(r.job.text);
		return false;
	}
	if (r.attempts > 0)
		r.job.batch.retry = jobline_retry(r.attempts, r.job.batch.lane.len > 0);
	*ret = r.job;
	return true;
}

void jobline_done(struct jobline *job)
{
	free(job->text);
	*job = (struct jobline){.text = NULL};
}
