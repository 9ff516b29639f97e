/* What a runner has done, in numbers, and as text: a line for the runner, and one for each queue,
 * with words such as "started=5". The name of a queue is the last one: it may have blanks. */
#include "runner/metrics.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/mem.h"
#include "base/number.h"
#include "store/store.h"

#define WORD_MAX (sizeof "worker_restarts=" + 20)
#define RUNNER_LINE BATON_STR("runner")
#define QUEUE_LINE BATON_STR("queue")
#define NAME_WORD " name="

static const int64_t spans_ms[BATON_METRICS_SPANS - 1] = {
	5, 25, 100, 250, 1000, 2500, 10000, 30000, 120000, 600000, 3600000,
};

struct baton_duration baton_metrics_span(size_t i)
{
	return i < BATON_METRICS_SPANS - 1 ? baton_duration_ms(spans_ms[i])
	                                   : BATON_DURATION_FOREVER;
}

void metrics_took(struct baton_queue_metrics *m, struct baton_duration took)
{
	size_t i = 0;
	while (i < BATON_METRICS_SPANS - 1 && took.ns > baton_metrics_span(i).ns)
		i++;
	m->took[i]++;
	m->took_ns += took.ns > 0 ? (uint64_t)took.ns : 0;
}

/* A number, and the word for it. */
struct field {
	const char *name;
	size_t offset;
};

#define R(name, field)                                             \
	{                                                          \
		name, offsetof(struct baton_runner_metrics, field) \
	}
static const struct field runner_fields[] = {
	R("detached", detached),
	R("storage", detachments[BATON_DETACH_STORAGE]),
	R("streak", detachments[BATON_DETACH_STREAK]),
	R("expired", detachments[BATON_DETACH_EXPIRED]),
	R("manual", detachments[BATON_DETACH_MANUAL]),
	R("guardian", detachments[BATON_DETACH_GUARDIAN]),
	R("attachments", attachments),
	R("fenced", fenced),
	R("takeovers", takeovers),
	R("ticks", ticks),
	R("slots", slots),
	R("running", running),
	R("worker_starts", worker_starts),
	R("worker_restarts", worker_restarts),
	R("beat_age_ns", beat_age_ns),
};
#define RUNNER_FIELDS (sizeof runner_fields / sizeof runner_fields[0])

#define Q(name, field)                                            \
	{                                                         \
		name, offsetof(struct baton_queue_metrics, field) \
	}
static const struct field queue_fields[] = {
	Q("shards", shards),   Q("started", started),   Q("completed", completed),
	Q("failed", failed),   Q("rejected", rejected), Q("returned", returned),
	Q("refused", refused), Q("took0", took[0]),     Q("took1", took[1]),
	Q("took2", took[2]),   Q("took3", took[3]),     Q("took4", took[4]),
	Q("took5", took[5]),   Q("took6", took[6]),     Q("took7", took[7]),
	Q("took8", took[8]),   Q("took9", took[9]),     Q("took10", took[10]),
	Q("took11", took[11]), Q("took_ns", took_ns),
};
#define QUEUE_FIELDS (sizeof queue_fields / sizeof queue_fields[0])

static_assert(BATON_METRICS_SPANS == 12, "there is a word for each span");
static_assert(RUNNER_FIELDS * WORD_MAX + BATON_RUNNER_SERVES_MAX *
                                                 (QUEUE_FIELDS * WORD_MAX + BATON_NAME_MAX + 16) <
                      BATON_RUNNER_REPORT_MAX,
              "there is room for all of it");

static uint64_t *number_at(void *object, const struct field *field)
{
	return (uint64_t *)((char *)object + field->offset);
}

static void print_fields(const void *object, const struct field *fields, size_t count,
                         struct buf *buf)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t number;
		memcpy(&number, (const char *)object + fields[i].offset, sizeof number);
		buf_printf(buf, " %s=%" PRIu64, fields[i].name, number);
	}
}

enum baton_err metrics_print(const struct baton_runner_metrics *m, struct buf *buf)
{
	buf_append_str(buf, RUNNER_LINE);
	print_fields(m, runner_fields, RUNNER_FIELDS, buf);
	for (size_t i = 0; i < m->queue_count; i++) {
		buf_append_str(buf, BATON_STR("\n"));
		buf_append_str(buf, QUEUE_LINE);
		print_fields(&m->queues[i], queue_fields, QUEUE_FIELDS, buf);
		buf_append_str(buf, BATON_STR(NAME_WORD));
		buf_append_str(buf, baton_str_z(m->queues[i].queue));
	}
	return buf_append_str(buf, BATON_STR("\n"));
}

/* What stands before the next `end`, which is left out; all of it, if there is none. */
static struct baton_str take_until(struct baton_str *rest, char end)
{
	struct baton_str s = *rest;
	const char *at = s.len > 0 ? memchr(s.ptr, end, s.len) : NULL;
	if (at)
		s.len = (size_t)(at - s.ptr);
	size_t used = at ? s.len + 1 : s.len;
	rest->ptr += used;
	rest->len -= used;
	return s;
}

static bool parse_word(struct baton_str word, void *object, const struct field *fields,
                       size_t count)
{
	uint64_t number;
	struct baton_str name = take_until(&word, '=');
	if (!number_parse(word, UINT64_MAX, &number))
		return false;
	for (size_t i = 0; i < count; i++) {
		if (baton_str_equal(name, baton_str_z(fields[i].name)))
			*number_at(object, &fields[i]) = number;
	}
	return true;
}

static bool parse_words(struct baton_str words, void *object, const struct field *fields,
                        size_t count)
{
	bool good = true;
	while (words.len > 0 && good)
		good = parse_word(take_until(&words, ' '), object, fields, count);
	return good;
}

/* Takes the name off the end of the line. */
static bool take_name(struct baton_str *line, char name[BATON_NAME_MAX + 1])
{
	const char *at = memmem(line->ptr, line->len, NAME_WORD, sizeof NAME_WORD - 1);
	if (!at)
		return false;
	size_t before = (size_t)(at - line->ptr);
	const char *text = at + sizeof NAME_WORD - 1;
	size_t len = line->len - before - (sizeof NAME_WORD - 1);
	struct baton_str checked;
	if (baton_str_name("a queue", text, len, BATON_NAME_MAX, &checked) != BATON_OK)
		return false;
	memcpy(name, text, len);
	name[len] = '\0';
	line->len = before;
	return true;
}

static bool parse_queue(struct baton_str words, struct baton_runner_metrics *m)
{
	if (m->queue_count == BATON_RUNNER_SERVES_MAX)
		return false;
	struct baton_queue_metrics *q = &m->queues[m->queue_count++];
	if (!take_name(&words, q->queue))
		return false;
	take_until(&words, ' '); /* what is before the first blank is nothing */
	return parse_words(words, q, queue_fields, QUEUE_FIELDS);
}

static bool parse_line(struct baton_str line, struct baton_runner_metrics *m)
{
	struct baton_str kind;
	if (line.len > QUEUE_LINE.len && memcmp(line.ptr, "queue ", QUEUE_LINE.len + 1) == 0) {
		struct baton_str words = {line.ptr + QUEUE_LINE.len, line.len - QUEUE_LINE.len};
		return parse_queue(words, m);
	}
	kind = take_until(&line, ' ');
	return !baton_str_equal(kind, RUNNER_LINE) ||
	       parse_words(line, m, runner_fields, RUNNER_FIELDS);
}

bool metrics_parse(struct baton_str text, struct baton_runner_metrics *ret)
{
	bool good = true;
	memset(ret, 0, sizeof *ret);
	while (text.len > 0 && good)
		good = parse_line(take_until(&text, '\n'), ret);
	return good;
}

enum baton_err baton_runner_metrics(struct baton_store *store, uint64_t number,
                                    struct baton_runner_metrics *ret,
                                    struct baton_store_time *ret_at)
{
	struct baton_str report;
	char *text = mem_new(store->alloc, BATON_RUNNER_REPORT_MAX, 1);
	if (!text)
		return fail_memory(BATON_RUNNER_REPORT_MAX, "the report of a runner");
	enum baton_err e = baton_runner_reported(store, number, text, &report, ret_at);
	if (e == BATON_OK && !metrics_parse(report, ret))
		e = fail(BATON_STORAGE, "the report of runner %" PRIu64 " cannot be read", number);
	mem_free(store->alloc, text, BATON_RUNNER_REPORT_MAX, 1);
	return e;
}
