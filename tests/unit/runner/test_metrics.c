/* What a runner has done, in numbers: as text in the store, and as Prometheus reads it. */
#include "runner/metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "actor.h"
#include "base/cleanup.h"

static struct baton_runner_metrics *metrics_new(void)
{
	struct baton_runner_metrics *m = calloc(1, sizeof *m);
	assert_non_null(m);
	return m;
}

static void what_is_printed_is_read_back(void **state)
{
	(void)state;
	struct baton_runner_metrics *m = metrics_new(), *again = metrics_new();
	uint64_t next = 1;
	m->detached = 1;
	for (size_t i = 1; i <= BATON_DETACH_WHYS; i++)
		m->detachments[i] = next++;
	m->attachments = next++;
	m->fenced = next++;
	m->takeovers = next++;
	m->ticks = next++;
	m->slots = next++;
	m->running = next++;
	m->worker_starts = next++;
	m->worker_restarts = next++;
	m->beat_age_ns = UINT64_MAX;
	m->queue_count = BATON_RUNNER_SERVES_MAX;
	for (size_t i = 0; i < BATON_RUNNER_SERVES_MAX; i++) {
		struct baton_queue_metrics *q = &m->queues[i];
		memset(q->queue, 'q', BATON_NAME_MAX);
		q->shards = next++;
		q->started = next++;
		q->completed = next++;
		q->failed = next++;
		q->rejected = next++;
		q->returned = next++;
		q->refused = next++;
		for (size_t k = 0; k < BATON_METRICS_SPANS; k++)
			q->took[k] = UINT64_MAX - next++;
		q->took_ns = UINT64_MAX;
	}
	memset(m->queues[1].queue, 0, sizeof m->queues[1].queue);
	snprintf(m->queues[1].queue, sizeof m->queues[1].queue, "a name=b \"\\");
	AUTO(buf_done) struct buf text;
	buf_init(&text, baton_alloc_libc(), BATON_RUNNER_REPORT_MAX);
	assert_int_equal(metrics_print(m, &text), BATON_OK);
	assert_true(metrics_parse(buf_str(&text), again));
	assert_memory_equal(again, m, sizeof *m);
	free(again);
	free(m);
}

static void what_is_not_known_is_left_out_and_what_is_missing_is_zero(void **state)
{
	(void)state;
	struct baton_runner_metrics *m = metrics_new();
	assert_true(metrics_parse(BATON_STR("runner ticks=3 novel=5\nnovel x\nqueue started=2 "
	                                    "novel=1 name=mail\nqueue name=sent"),
	                          m));
	assert_int_equal(m->ticks, 3);
	assert_int_equal(m->slots, 0);
	assert_int_equal(m->queue_count, 2);
	assert_string_equal(m->queues[0].queue, "mail");
	assert_int_equal(m->queues[0].started, 2);
	assert_int_equal(m->queues[0].completed, 0);
	assert_string_equal(m->queues[1].queue, "sent");
	free(m);
}

static void what_no_runner_has_written_is_refused(void **state)
{
	(void)state;
	static const struct baton_str cases[] = {
		BATON_STR("runner ticks"),    BATON_STR("runner ticks=x"),
		BATON_STR("runner ticks=-1"), BATON_STR("runner ticks=18446744073709551616"),
		BATON_STR("runner  ticks=1"), BATON_STR("queue started=1"),
		BATON_STR("queue name="),     BATON_STR("queue name=a\x01"),
		BATON_STR("queue name=\xff"), BATON_STR("queue started name=a"),
	};
	struct baton_runner_metrics *m = metrics_new();
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		if (metrics_parse(cases[i], m))
			fail_msg("case %zu was read", i);
	}
	AUTO(buf_done) struct buf text;
	buf_init(&text, baton_alloc_libc(), BATON_RUNNER_REPORT_MAX);
	for (size_t i = 0; i <= BATON_RUNNER_SERVES_MAX; i++)
		buf_append_str(&text, BATON_STR("queue name=x\n"));
	assert_false(metrics_parse(buf_str(&text), m));
	free(m);
}

static void a_handler_counts_in_the_span_in_which_it_ended(void **state)
{
	(void)state;
	struct baton_queue_metrics m = {.queue = ""};
	metrics_took(&m, baton_duration_ms(5));
	metrics_took(&m, (struct baton_duration){5000001});
	metrics_took(&m, baton_duration_s(3600));
	metrics_took(&m, (struct baton_duration){INT64_C(3600000000001)});
	assert_int_equal(m.took[0], 1);
	assert_int_equal(m.took[1], 1);
	assert_int_equal(m.took[BATON_METRICS_SPANS - 2], 1);
	assert_int_equal(m.took[BATON_METRICS_SPANS - 1], 1);
	assert_int_equal(m.took_ns, UINT64_C(7200010000002));
}

static void append(void *arg, const char *text, size_t len)
{
	buf_append(arg, text, len);
}

static void assert_line(const struct buf *text, const char *line)
{
	char framed[400];
	snprintf(framed, sizeof framed, "\n%s\n", line);
	if (!strstr(text->data, framed))
		fail_msg("'%s' is not in:\n%s", line, text->data);
}

static void prometheus_gets_labels_that_end_where_they_should(void **state)
{
	(void)state;
	struct baton_runner_metrics *m = metrics_new();
	m->queue_count = 1;
	snprintf(m->queues[0].queue, sizeof m->queues[0].queue, "a\"b\\c\nd\xff");
	m->queues[0].took[0] = 2;
	m->queues[0].took[BATON_METRICS_SPANS - 1] = 1;
	m->queues[0].took_ns = UINT64_C(7200000000005);
	m->detachments[BATON_DETACH_STREAK] = 4;
	const struct baton_metrics_row rows[] = {
		{"one", "h", baton_duration_ms(1500), m},
		{"two", "h", {0}, NULL},
	};
	AUTO(buf_done) struct buf text;
	buf_init(&text, baton_alloc_libc(), 1 << 20);
	baton_metrics_write(rows, 2, append, &text);
	assert_line(&text, "baton_runner_info{runner=\"two\",host=\"h\"} 1");
	assert_line(&text, "baton_runner_metrics_age_seconds{runner=\"one\"} 1.500000000");
	assert_line(&text, "baton_runner_detached{runner=\"one\"} 0");
	assert_null(strstr(text.data, "baton_runner_detached{runner=\"two\"}"));
	assert_line(&text,
	            "baton_detach_total{runner=\"one\",reason=\"keep-alive failure streak\"} 4");
#define LABELS "{runner=\"one\",queue=\"a\\\"b\\\\c\\nd?\""
	assert_line(&text, "baton_handler_seconds_bucket" LABELS ",le=\"0.005\"} 2");
	assert_line(&text, "baton_handler_seconds_bucket" LABELS ",le=\"3600\"} 2");
	assert_line(&text, "baton_handler_seconds_bucket" LABELS ",le=\"+Inf\"} 3");
	assert_line(&text, "baton_handler_seconds_sum" LABELS "} 7200.000000005");
	assert_line(&text, "baton_handler_seconds_count" LABELS "} 3");
	free(m);
}

static struct baton_runner_metrics *metrics_of(struct world *w, const struct actor *a)
{
	struct baton_runner_metrics *m = metrics_new();
	core_metrics(a->core, world_now(w), m);
	return m;
}

static void everything_that_happens_is_counted(void **state)
{
	struct world *w = *state;
	struct actor a;
	actor_init(w, &a, "a", 4);
	world_put(w, "x", 1);
	world_put(w, "y", 1);
	world_put(w, "z", 1);
	actor_settle(w, &a);
	world_pass(w, 2000);
	actor_end(w, &a, 0, BATON_COMPLETE);
	actor_end(w, &a, 1, BATON_FAIL);
	actor_settle(w, &a);
	struct baton_runner_metrics *m = metrics_of(w, &a);
	assert_int_equal(m->slots, 4);
	assert_int_equal(m->running, 1);
	assert_int_equal(m->beat_age_ns, 2000000000);
	assert_int_equal(m->queue_count, 1);
	assert_string_equal(m->queues[0].queue, "q");
	assert_int_equal(m->queues[0].shards, SHARDS);
	assert_int_equal(m->queues[0].started, 3);
	assert_int_equal(m->queues[0].completed, 1);
	assert_int_equal(m->queues[0].failed, 1);
	assert_int_equal(m->queues[0].took_ns, UINT64_C(4000000000));
	assert_int_equal(m->detached, 0);
	free(m);
	/* Another one takes it over, and what it ends then is refused. */
	struct baton_runner_info info;
	size_t count;
	assert_int_equal(baton_runner_list(w->store, 0, &info, 1, &count), BATON_OK);
	assert_int_equal(baton_runner_take_over(w->store, &info), BATON_OK);
	actor_end(w, &a, 2, BATON_COMPLETE);
	actor_settle(w, &a);
	m = metrics_of(w, &a);
	assert_int_equal(m->detached, 1);
	assert_int_equal(m->detachments[BATON_DETACH_EXPIRED], 1);
	assert_true(m->fenced >= 1);
	assert_int_equal(m->queues[0].shards, 0);
	assert_int_equal(m->queues[0].completed, 1);
	assert_int_equal(m->queues[0].refused, 1);
	assert_int_equal(m->attachments, 0);
	free(m);
	for (int i = 0; i < 20 && baton_detach_state(&a.detach) != BATON_ATTACHED; i++) {
		world_pass(w, 100);
		actor_settle(w, &a);
	}
	m = metrics_of(w, &a);
	assert_int_equal(m->attachments, 1);
	assert_int_equal(m->detached, 0);
	free(m);
	for (unsigned i = 3; i < a.starts; i++)
		actor_end(w, &a, i, BATON_ABANDON);
	actor_settle(w, &a);
	actor_done(&a);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_printed_is_read_back),
		cmocka_unit_test(what_is_not_known_is_left_out_and_what_is_missing_is_zero),
		cmocka_unit_test(what_no_runner_has_written_is_refused),
		cmocka_unit_test(a_handler_counts_in_the_span_in_which_it_ended),
		cmocka_unit_test(prometheus_gets_labels_that_end_where_they_should),
		TEST(everything_that_happens_is_counted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
