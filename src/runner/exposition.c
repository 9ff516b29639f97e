/* The metrics of runners in the text format of Prometheus. */
#include <baton/metrics.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

#define PIECE_MAX 512
#define NS_PER_S UINT64_C(1000000000)
#define NS_PER_MS 1000000
#define MS_PER_S 1000

struct writer {
	const struct baton_metrics_row *rows;
	size_t count;
	void (*write)(void *arg, const char *text, size_t len);
	void *arg;
};

__attribute__((format(printf, 2, 3))) static void say(const struct writer *w, const char *format,
                                                      ...)
{
	char text[PIECE_MAX];
	va_list args;
	va_start(args, format);
	int len = vsnprintf(text, sizeof text, format, args);
	va_end(args);
	if (len > 0)
		w->write(w->arg, text, (size_t)len < sizeof text ? (size_t)len : sizeof text - 1);
}

/* A label's value, with what would end it, or its line, escaped. What is no UTF-8 is not for those
 * who read this. */
static void say_value(const struct writer *w, const char *text)
{
	size_t len = strlen(text), step;
	for (size_t i = 0; i < len; i += step) {
		uint32_t ch;
		step = utf8_next(text + i, len - i, &ch);
		if (step == 0) {
			step = 1;
			w->write(w->arg, "?", 1);
		} else if (ch == '\\' || ch == '"') {
			say(w, "\\%c", (char)ch);
		} else if (ch == '\n') {
			w->write(w->arg, "\\n", 2);
		} else {
			w->write(w->arg, text + i, step);
		}
	}
}

/* A label besides that of the runner; without a name there is none. */
struct label {
	const char *name, *value;
};

/* Up to the value. */
static void say_sample(const struct writer *w, const char *name, const char *runner,
                       const struct label *labels, size_t count)
{
	say(w, "%s{runner=\"", name);
	say_value(w, runner);
	for (size_t i = 0; i < count; i++) {
		if (!labels[i].name)
			continue;
		say(w, "\",%s=\"", labels[i].name);
		say_value(w, labels[i].value);
	}
	say(w, "\"} ");
}

static void say_family(const struct writer *w, const char *name, const char *type, const char *help)
{
	say(w, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* Seconds, exactly. */
static void say_seconds(const struct writer *w, uint64_t ns)
{
	say(w, "%" PRIu64 ".%09" PRIu64 "\n", ns / NS_PER_S, ns % NS_PER_S);
}

static uint64_t number_at(const void *object, size_t offset)
{
	uint64_t number;
	memcpy(&number, (const char *)object + offset, sizeof number);
	return number;
}

/* One number of a runner or a queue, and the label that tells it from others of its family. */
struct sample {
	size_t offset;
	struct label label;
};

struct family {
	const char *name, *type, *help;
	const struct sample *samples;
	size_t count;
	bool seconds; /* the number is one of nanoseconds */
};

#define R(field) offsetof(struct baton_runner_metrics, field)
#define Q(field) offsetof(struct baton_queue_metrics, field)
#define SAMPLES(...)                          \
	(const struct sample[]){__VA_ARGS__}, \
		sizeof((const struct sample[]){__VA_ARGS__}) / sizeof(struct sample)

static const struct family runner_families[] = {
	{"baton_runner_detached", "gauge", "1 if the runner is detached, and so runs nothing.",
         SAMPLES({R(detached), {NULL, NULL}}), false},
	{"baton_detach_total", "counter", "Detachments, by their reason.",
         SAMPLES({R(detachments[BATON_DETACH_STORAGE]), {"reason", "storage error"}},
                 {R(detachments[BATON_DETACH_STREAK]), {"reason", "keep-alive failure streak"}},
                 {R(detachments[BATON_DETACH_EXPIRED]), {"reason", "lease expired"}},
                 {R(detachments[BATON_DETACH_MANUAL]), {"reason", "manual detachment"}},
                 {R(detachments[BATON_DETACH_GUARDIAN]), {"reason", "guardian lost"}}),
         false},
	{"baton_reattach_total", "counter", "Times that a detached runner was attached again.",
         SAMPLES({R(attachments), {NULL, NULL}}), false},
	{"baton_fenced_writes_total", "counter",
         "Writes that the store has refused, because a newer owner was there.",
         SAMPLES({R(fenced), {NULL, NULL}}), false},
	{"baton_takeovers_total", "counter", "Lost runners that this one has taken over.",
         SAMPLES({R(takeovers), {NULL, NULL}}), false},
	{"baton_ticks_total", "counter", "Transactions that claim work and record its ends.",
         SAMPLES({R(ticks), {NULL, NULL}}), false},
	{"baton_runner_slots", "gauge", "Handlers that may run at once.",
         SAMPLES({R(slots), {NULL, NULL}}), false},
	{"baton_runner_slots_used", "gauge", "Handlers that run.",
         SAMPLES({R(running), {NULL, NULL}}), false},
	{"baton_worker_starts_total", "counter", "Persistent workers that were started.",
         SAMPLES({R(worker_starts), {NULL, NULL}}), false},
	{"baton_worker_restarts_total", "counter",
         "Persistent workers that were started in the place of one that had ended.",
         SAMPLES({R(worker_restarts), {NULL, NULL}}), false},
	{"baton_runner_beat_age_seconds", "gauge",
         "Time since the last renewal that went well, when the runner told its metrics.",
         SAMPLES({R(beat_age_ns), {NULL, NULL}}), true},
};

static const struct family queue_families[] = {
	{"baton_runner_shards", "gauge", "Shards of the queue that the runner owns.",
         SAMPLES({Q(shards), {NULL, NULL}}), false},
	{"baton_claims_started_total", "counter", "Claims for which a handler was started.",
         SAMPLES({Q(started), {NULL, NULL}}), false},
	{"baton_claims_ended_total", "counter",
         "Claims that ended, by how; refused: too late, under an old fence.",
         SAMPLES({Q(completed), {"outcome", "completed"}}, {Q(failed), {"outcome", "failed"}},
                 {Q(rejected), {"outcome", "rejected"}}, {Q(returned), {"outcome", "returned"}},
                 {Q(refused), {"outcome", "refused"}}),
         false},
};

static void say_number(const struct writer *w, const struct family *f, uint64_t number)
{
	if (f->seconds)
		say_seconds(w, number);
	else
		say(w, "%" PRIu64 "\n", number);
}

static void say_runners(const struct writer *w, const struct family *f)
{
	say_family(w, f->name, f->type, f->help);
	for (size_t i = 0; i < w->count; i++) {
		const struct baton_metrics_row *row = &w->rows[i];
		for (size_t k = 0; k < f->count && row->metrics; k++) {
			say_sample(w, f->name, row->runner, &f->samples[k].label, 1);
			say_number(w, f, number_at(row->metrics, f->samples[k].offset));
		}
	}
}

static void say_queues_of(const struct writer *w, const struct family *f,
                          const struct baton_metrics_row *row)
{
	for (size_t n = 0; n < row->metrics->queue_count; n++) {
		const struct baton_queue_metrics *q = &row->metrics->queues[n];
		for (size_t k = 0; k < f->count; k++) {
			const struct label labels[] = {{"queue", q->queue}, f->samples[k].label};
			say_sample(w, f->name, row->runner, labels, 2);
			say_number(w, f, number_at(q, f->samples[k].offset));
		}
	}
}

static void say_queues(const struct writer *w, const struct family *f)
{
	say_family(w, f->name, f->type, f->help);
	for (size_t i = 0; i < w->count; i++) {
		if (w->rows[i].metrics)
			say_queues_of(w, f, &w->rows[i]);
	}
}

/* The end of a span, in seconds, whatever the locale. */
static const char *bound(size_t i, char text[32])
{
	int64_t ms = baton_metrics_span(i).ns / NS_PER_MS;
	if (i == BATON_METRICS_SPANS - 1)
		snprintf(text, 32, "+Inf");
	else if (ms % MS_PER_S == 0)
		snprintf(text, 32, "%" PRId64, ms / MS_PER_S);
	else
		snprintf(text, 32, "%" PRId64 ".%03" PRId64, ms / MS_PER_S, ms % MS_PER_S);
	return text;
}

#define HISTOGRAM "baton_handler_seconds"

static void say_histogram(const struct writer *w, const char *runner,
                          const struct baton_queue_metrics *q)
{
	uint64_t total = 0;
	const struct label queue = {"queue", q->queue};
	for (size_t i = 0; i < BATON_METRICS_SPANS; i++) {
		char text[32];
		const struct label labels[] = {queue, {"le", bound(i, text)}};
		total += q->took[i];
		say_sample(w, HISTOGRAM "_bucket", runner, labels, 2);
		say(w, "%" PRIu64 "\n", total);
	}
	say_sample(w, HISTOGRAM "_sum", runner, &queue, 1);
	say_seconds(w, q->took_ns);
	say_sample(w, HISTOGRAM "_count", runner, &queue, 1);
	say(w, "%" PRIu64 "\n", total);
}

static void say_histograms(const struct writer *w)
{
	say_family(w, HISTOGRAM, "histogram", "How long handlers took.");
	for (size_t i = 0; i < w->count; i++) {
		const struct baton_metrics_row *row = &w->rows[i];
		for (size_t n = 0; row->metrics && n < row->metrics->queue_count; n++)
			say_histogram(w, row->runner, &row->metrics->queues[n]);
	}
}

static void say_infos(const struct writer *w)
{
	say_family(w, "baton_runner_info", "gauge", "1 for each runner that is registered.");
	for (size_t i = 0; i < w->count; i++) {
		const struct label host = {"host", w->rows[i].host};
		say_sample(w, "baton_runner_info", w->rows[i].runner, &host, 1);
		say(w, "1\n");
	}
}

static void say_ages(const struct writer *w)
{
	say_family(w, "baton_runner_metrics_age_seconds", "gauge",
	           "Time since the runner told its metrics.");
	for (size_t i = 0; i < w->count; i++) {
		int64_t age = w->rows[i].age.ns;
		if (!w->rows[i].metrics)
			continue;
		say_sample(w, "baton_runner_metrics_age_seconds", w->rows[i].runner, NULL, 0);
		say_seconds(w, age > 0 ? (uint64_t)age : 0);
	}
}

void baton_metrics_write(const struct baton_metrics_row *rows, size_t count,
                         void (*write)(void *arg, const char *text, size_t len), void *arg)
{
	const struct writer w = {rows, count, write, arg};
	say_infos(&w);
	say_ages(&w);
	for (size_t i = 0; i < sizeof runner_families / sizeof runner_families[0]; i++)
		say_runners(&w, &runner_families[i]);
	for (size_t i = 0; i < sizeof queue_families / sizeof queue_families[0]; i++)
		say_queues(&w, &queue_families[i]);
	say_histograms(&w);
}
