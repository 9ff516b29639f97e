/* What a persistent worker says about a claim. */
#include "runner/reply.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <baton/alloc.h>

#include "support/harness.h"

static struct arena arena;

static bool parse(const char *line, struct reply *ret, char error[REPLY_ERROR])
{
	arena_reset(&arena);
	return reply_parse(baton_str_z(line), &arena, ret, error);
}

static struct reply good(const char *line)
{
	struct reply reply;
	char error[REPLY_ERROR];
	if (!parse(line, &reply, error))
		fail_msg("%s: %s", line, error);
	return reply;
}

#define assert_str(s, text)                                           \
	do {                                                          \
		assert_int_equal((s).len, sizeof(text) - 1);          \
		assert_memory_equal((s).ptr, text, sizeof(text) - 1); \
	} while (0)

static void what_is_ok_is_complete_with_its_result(void **state)
{
	(void)state;
	struct reply r = good("{\"claim\":\"c1\",\"ok\":true,\"result\":\"a\\u00e9\\n\"}");
	assert_string_equal(r.claim, "c1");
	assert_false(r.is_progress);
	assert_int_equal(r.end.how, BATON_COMPLETE);
	assert_str(r.end.result, "a\xc3\xa9\n");
	r = good(" {\"result\": {\"a\": [1, null, {\"b\": false}], \"n\": 1.50e3}, \"ok\": true, "
	         "\"claim\": \"c\"} ");
	assert_str(r.end.result, "{\"a\":[1,null,{\"b\":false}],\"n\":1.50e3}");
	r = good("{\"claim\":\"c\",\"ok\":true,\"result\":null,\"emit\":[],\"error\":null}");
	assert_int_equal(r.end.result.len, 0);
	assert_int_equal(r.end.emit_count, 0);
}

static void what_is_not_ok_fails_or_is_rejected(void **state)
{
	(void)state;
	struct reply r = good("{\"claim\":\"c\",\"ok\":false}");
	assert_int_equal(r.end.how, BATON_FAIL);
	assert_int_equal(r.end.error.len, 0);
	r = good(
		"{\"claim\":\"c\",\"ok\":false,\"error\":\"no\",\"retry\":true,\"delay_ms\":1500}");
	assert_int_equal(r.end.how, BATON_FAIL);
	assert_str(r.end.error, "no");
	assert_int_equal(r.end.delay.ns, 1500000000);
	r = good("{\"claim\":\"c\",\"ok\":false,\"error\":\"no\",\"retry\":false}");
	assert_int_equal(r.end.how, BATON_REJECT);
}

static void progress_is_a_text_or_json(void **state)
{
	(void)state;
	struct reply r = good("{\"claim\":\"c\",\"progress\":\"half\"}");
	assert_true(r.is_progress);
	assert_str(r.progress, "half");
	r = good("{\"claim\":\"c\",\"progress\":null}");
	assert_true(r.is_progress);
	assert_str(r.progress, "null");
	r = good("{\"claim\":\"c\",\"progress\":[1]}");
	assert_str(r.progress, "[1]");
}

static void a_checkpoint_asks_for_so_many(void **state)
{
	(void)state;
	struct reply r = good("{\"claim\":\"c\",\"checkpoint\":true}");
	assert_int_equal(r.checkpoint, REPLY_CHECKPOINT);
	assert_false(r.is_progress);
	r = good("{\"checkpoint\":10000,\"claim\":\"c\"}");
	assert_int_equal(r.checkpoint, 10000);
	r = good("{\"claim\":\"c\",\"ok\":true,\"checkpoint\":null}");
	assert_int_equal(r.checkpoint, 0);
}

static void about_connections_it_says_how_many_it_takes_and_which_have_ended(void **state)
{
	(void)state;
	struct reply r = good("{\"visits\":0}");
	assert_int_equal(r.about, REPLY_VISITS);
	assert_int_equal(r.visits, 0);
	r = good("{\"visits\":65536}");
	assert_int_equal(r.visits, 65536);
	r = good("{\"done\":true,\"visit\":9007199254740993}");
	assert_int_equal(r.about, REPLY_VISIT);
	assert_int_equal(r.visit, INT64_C(9007199254740993));
	r = good("{\"claim\":\"c\",\"ok\":true,\"visit\":null,\"visits\":null}");
	assert_int_equal(r.about, REPLY_CLAIM);
}

static void emitted_jobs_have_all_that_a_job_can_have(void **state)
{
	(void)state;
	struct reply r = good(
		"{\"claim\":\"c\",\"ok\":true,\"emit\":[{\"queue\":\"q\",\"lane\":\"l\","
		"\"payload\":{\"queue\":[\"x\"]},\"priority\":9,\"delay\":\"5min\",\"join\":\"g\","
		"\"command\":true,\"after_commit\":true,\"idempotency_key\":\"k\",\"attempts\":3},"
		"{\"payload_base64\":\"/wA=\",\"queue\":\"p\",\"delay\":2,\"join\":false,"
		"\"lane\":null}],\"result\":1}");
	assert_str(r.end.result, "1");
	assert_int_equal(r.end.emit_count, 2);
	const struct baton_batch *b = &r.end.emits[0];
	assert_str(b->queue, "q");
	assert_str(b->lane, "l");
	assert_int_equal(b->count, 1);
	assert_str(b->payloads[0], "{\"queue\":[\"x\"]}");
	assert_int_equal(b->priority, 9);
	assert_int_equal(b->delay.ns, INT64_C(300000000000));
	assert_int_equal(b->slot, BATON_JOIN);
	assert_str(b->group, "g");
	assert_int_equal(b->cls, BATON_COMMAND);
	assert_int_equal(b->delivery, BATON_AFTER_COMMIT);
	assert_str(b->source, "k");
	assert_int_equal(b->retry.attempts, 3);
	assert_int_equal(baton_retry_check(&b->retry), BATON_OK);
	b = &r.end.emits[1];
	assert_str(b->queue, "p");
	assert_int_equal(b->lane.len, 0);
	assert_str(b->payloads[0], "\xff\0");
	assert_int_equal(b->delay.ns, 2000000000);
	assert_int_equal(b->slot, BATON_EXCLUSIVE);
	assert_int_equal(b->retry.attempts, 0);
}

static void emitted_jobs_may_have_a_key_or_several(void **state)
{
	(void)state;
	struct reply r =
		good("{\"claim\":\"c\",\"ok\":true,\"emit\":[{\"queue\":\"q\",\"payload\":[\"k\"],"
	             "\"concurrency_key\":[\"l\",\"k\"],\"lane\":\"a\"},{\"queue\":\"q\","
	             "\"concurrency_key\":\"m\",\"payload\":1},{\"queue\":\"q\",\"payload\":1,"
	             "\"concurrency_key\":[]},{\"queue\":\"q\",\"payload\":1,"
	             "\"concurrency_key\":null}],\"result\":[1]}");
	assert_int_equal(r.end.emit_count, 4);
	assert_int_equal(r.end.emits[0].key_count, 2);
	assert_str(r.end.emits[0].keys[0], "l");
	assert_str(r.end.emits[0].keys[1], "k");
	assert_str(r.end.emits[0].lane, "a");
	assert_str(r.end.emits[0].payloads[0], "[\"k\"]");
	assert_int_equal(r.end.emits[1].key_count, 1);
	assert_str(r.end.emits[1].keys[0], "m");
	assert_int_equal(r.end.emits[2].key_count, 0);
	assert_int_equal(r.end.emits[3].key_count, 0);
	assert_str(r.end.result, "[1]");
}

static void emitted_jobs_may_wait_for_a_span_or_until_a_moment(void **state)
{
	(void)state;
#define E "{\"claim\":\"c\",\"ok\":true,\"emit\":[{\"queue\":\"q\",\"payload\":1,"
	struct reply r = good(E "\"at\":\"2026-02-28T10:05:00.25+01:00\"}]}");
	assert_int_equal(r.end.emits[0].at.ms, INT64_C(1772269500250));
	assert_int_equal(r.end.emits[0].delay.ns, 0);
	r = good(E "\"at\":1772269500.5}]}");
	assert_int_equal(r.end.emits[0].at.ms, INT64_C(1772269500500));
	r = good(E "\"delay\":\"1s\",\"at\":1772269500}]}");
	assert_int_equal(r.end.emits[0].at.ms, INT64_C(1772269500000));
	assert_int_equal(r.end.emits[0].delay.ns, 0);
	r = good(E "\"at\":1772269500,\"delay\":\"1s\"}]}");
	assert_int_equal(r.end.emits[0].at.ms, 0);
	assert_int_equal(r.end.emits[0].delay.ns, 1000000000);
#undef E
}

#define C "{\"claim\":\"c\","

static void everything_else_is_wrong_and_said_so(void **state)
{
	(void)state;
	static const struct {
		const char *line, *error;
	} cases[] = {
		{"", "it is no JSON: "},
		{"x", "it is no JSON: "},
		{"{", "it is no JSON: "},
		{C "\"ok\":true} x", "it is no JSON: "},
		{C "\"ok\":true,\"result\":\"\xff\"}", "it is no JSON: "},
		{"[]", "it is no object"},
		{"1", "it is no object"},
		{"null", "it is no object"},
		{"\"c\"", "it is no object"},
		{"{}", "it has no 'claim'"},
		{"{\"ok\":true}", "it has no 'claim'"},
		{"{\"claim\":null,\"ok\":true}", "it has no 'claim'"},
		{"{\"claim\":\"\",\"ok\":true}", "'claim' takes the id of a claim"},
		{"{\"claim\":\"a\\u0000\",\"ok\":true}", "'claim' takes the id of a claim"},
		{"{\"claim\":\"123456789012345678901234567890123456789012345678\",\"ok\":true}",
	         "'claim' takes the id of a claim"},
		{"{\"claim\":1,\"ok\":true}", "'claim' takes the id of a claim"},
		{"{\"claim\":[],\"ok\":true}", "'claim' takes the id of a claim"},
		{"{\"claim\":\"c\"}", "it has to have either 'ok', 'progress' or 'checkpoint'"},
		{C "\"ok\":null}", "it has to have either 'ok', 'progress' or 'checkpoint'"},
		{C "\"ok\":true,\"progress\":1}",
	         "it has to have either 'ok', 'progress' or 'checkpoint'"},
		{C "\"checkpoint\":true,\"ok\":true}",
	         "it has to have either 'ok', 'progress' or 'checkpoint'"},
		{C "\"checkpoint\":false}", "'checkpoint' takes true, or a number from 1 to 10000"},
		{"{\"visits\":65537}", "'visits' takes a number from 0 to 65536"},
		{"{\"visits\":-1}", "'visits' takes a number"},
		{"{\"visits\":\"1\"}", "'visits' takes a number"},
		{"{\"visits\":1,\"visits\":1}", "'visits' is there twice"},
		{"{\"visits\":1,\"claim\":\"c\"}", "about connections it has either"},
		{"{\"visit\":1}", "about connections it has either"},
		{"{\"done\":true}", "about connections it has either"},
		{"{\"visit\":1,\"done\":false}", "'done' takes true"},
		{"{\"visit\":\"1\",\"done\":true}", "'visit' takes the number of a connection"},
		{"{\"visit\":1e3,\"done\":true}", "'visit' takes the number of a connection"},
		{"{\"visit\":1,\"done\":true,\"ok\":true}", "about connections it has either"},
		{C "\"checkpoint\":0}", "'checkpoint' takes true"},
		{C "\"checkpoint\":10001}", "'checkpoint' takes true"},
		{C "\"checkpoint\":\"yes\"}", "'checkpoint' takes true"},
		{C "\"checkpoint\":true,\"result\":1}", "only what is ok has a 'result'"},
		{C "\"ok\":1}", "'ok' takes true or false"},
		{C "\"ok\":true,\"ok\":true}", "'ok' is there twice"},
		{C "\"ok\":true,\"Result\":1}", "unknown field 'Result'"},
		{C "\"ok\":true,\"error\":\"e\"}", "only what is not ok has an 'error'"},
		{C "\"ok\":true,\"retry\":true}", "only what is not ok has an 'error'"},
		{C "\"ok\":false,\"result\":1}", "only what is ok has a 'result'"},
		{C "\"progress\":1,\"result\":1}", "only what is ok has a 'result'"},
		{C "\"progress\":1,\"error\":\"e\"}", "only what is not ok has an 'error'"},
		{C "\"ok\":false,\"emit\":[{\"queue\":\"q\",\"payload\":1}]}",
	         "only what is ok has a 'result'"},
		{C "\"ok\":false,\"error\":1}", "'error' takes a string"},
		{C "\"ok\":false,\"delay_ms\":-1}", "'delay_ms' takes milliseconds"},
		{C "\"ok\":false,\"delay_ms\":1.5}", "'delay_ms' takes milliseconds"},
		{C "\"ok\":false,\"delay_ms\":31536000001}", "'delay_ms' takes milliseconds"},
		{C "\"ok\":false,\"retry\":false,\"delay_ms\":1}",
	         "only what is tried again has a 'delay_ms'"},
		{C "\"ok\":true,\"emit\":{}}", "'emit' takes a list of objects"},
		{C "\"ok\":true,\"emit\":1}", "'emit' takes a list of objects"},
		{C "\"ok\":true,\"emit\":[1]}", "'emit' takes a list of objects"},
		{C "\"ok\":true,\"emit\":[[]]}", "'emit' takes a list of objects"},
		{C "\"ok\":true,\"emit\":[{}]}", "an emitted job has no 'queue'"},
		{C "\"ok\":true,\"emit\":[{\"queue\":\"q\",\"concurrency_key\":[1]}]}",
	         "'concurrency_key' takes a string, or a list of strings"},
		{C "\"ok\":true,\"emit\":[{\"queue\":\"q\",\"concurrency_key\":[[\"k\"]]}]}",
	         "'concurrency_key' takes a string, or a list of strings"},
		{C "\"ok\":true,\"emit\":[{\"queue\":\"q\",\"concurrency_key\":[{}]}]}",
	         "'concurrency_key' takes a string, or a list of strings"},
		{C "\"ok\":true,\"emit\":[{\"queue\":\"q\",\"concurrency_key\":[\"1\",\"2\","
	           "\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"9\"]}]}",
	         "'concurrency_key' has more than 8 keys"},
		{C "\"ok\":true,\"emit\":[{\"queue\":\"q\"}]}", "an emitted job has no 'payload'"},
		{C
	         "\"ok\":true,\"emit\":[{\"queue\":\"q\",\"payload\":1,\"payload_base64\":\"\"}]}",
	         "an emitted job has two payloads"},
		{C "\"ok\":true,\"emit\":[{\"queue\":\"q\",\"payload_base64\":\"Zg\"}]}",
	         "'payload_base64' takes a string of base64"},
		{C "\"ok\":true,\"emit\":[{\"queue\":\"q\",\"payload\":1,\"priority\":10}]}",
	         "'priority' takes a number from 0 to 9"},
		{C "\"ok\":true,\"emit\":[{\"queue\":\"q\",\"payload\":1,\"attempts\":0}]}",
	         "'attempts' takes a number from 1 to 1000000"},
		{C "\"ok\":true,\"emit\":[{\"queue\":\"q\",\"payload\":1,\"delay\":\"soon\"}]}",
	         "'delay' takes seconds"},
		{C "\"ok\":true,\"emit\":[{\"queue\":\"q\",\"payload\":1,\"ok\":true}]}",
	         "unknown field 'ok'"},
		{C "\"ok\":true,\"result\":\"\\ud800\"}",
	         "it has an escape that is half a character"},
		{C "\"ok\":true,\"result\":\"\\udc00\\ud800\"}",
	         "it has an escape that is half a character"},
		{C "\"ok\":true,\"result\":\"\\ud800\\u0041\"}",
	         "it has an escape that is half a character"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct reply r;
		char error[REPLY_ERROR] = "";
		if (parse(cases[i].line, &r, error))
			fail_msg("%s is taken", cases[i].line);
		if (strncmp(error, cases[i].error, strlen(cases[i].error)) != 0)
			fail_msg("%s: %s", cases[i].line, error);
	}
}

static void what_is_no_moment_is_wrong_as_one(void **state)
{
	(void)state;
	static const char *const moments[] = {
		"\"soon\"",
		"-1",
		"true",
		"10000000000000000000000000000000000000000",
	};
	for (size_t i = 0; i < sizeof moments / sizeof *moments; i++) {
		char line[200], error[REPLY_ERROR];
		struct reply r;
		snprintf(line, sizeof line,
		         C "\"ok\":true,\"emit\":[{\"queue\":\"q\",\"payload\":1,\"at\":%s}]}",
		         moments[i]);
		assert_false(parse(line, &r, error));
		assert_string_equal(error, "'at' takes a string such as \"2026-02-28T09:05:00Z\", "
		                           "or seconds since 1970");
	}
}

static void characters_of_two_escapes_and_escaped_escapes_are_whole(void **state)
{
	(void)state;
	struct reply r = good(C "\"ok\":true,\"result\":\"\\ud83d\\ude00\\\\ud800\"}");
	assert_str(r.end.result, "\xf0\x9f\x98\x80\\ud800");
}

/* {"claim":"c","ok":true,"result":[[...]]} */
static bool nested(size_t depth, struct reply *ret, char error[REPLY_ERROR])
{
	char line[1024];
	size_t len = (size_t)snprintf(line, sizeof line, C "\"ok\":true,\"result\":");
	memset(line + len, '[', depth);
	memset(line + len + depth, ']', depth);
	line[len + 2 * depth] = '}';
	line[len + 2 * depth + 1] = '\0';
	return parse(line, ret, error);
}

static void a_value_may_be_nested_so_far_and_no_further(void **state)
{
	(void)state;
	struct reply r;
	char error[REPLY_ERROR];
	assert_true(nested(100, &r, error));
	assert_int_equal(r.end.result.len, 200);
	assert_false(nested(400, &r, error));
	assert_string_equal(error, "a value is nested deeper than 128 levels");
}

static void more_emitted_jobs_than_a_put_may_have_are_refused(void **state)
{
	(void)state;
	static const char job[] = "{\"queue\":\"q\",\"payload\":1},";
	size_t max = (BATON_PUT_MAX + 1) * (sizeof job - 1) + 100;
	char *line = malloc(max);
	assert_non_null(line);
	for (size_t count = BATON_PUT_MAX; count <= BATON_PUT_MAX + 1; count++) {
		struct reply r;
		char error[REPLY_ERROR];
		size_t len = (size_t)snprintf(line, max, C "\"ok\":true,\"emit\":[");
		for (size_t i = 0; i < count; i++, len += sizeof job - 1)
			memcpy(line + len, job, sizeof job);
		snprintf(line + len - 1, max - len, "]}");
		assert_int_equal(parse(line, &r, error), count == BATON_PUT_MAX);
		if (count > BATON_PUT_MAX)
			assert_string_equal(error, "'emit' has more than 10000 jobs");
		else
			assert_int_equal(r.end.emit_count, count);
	}
	free(line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_ok_is_complete_with_its_result),
		cmocka_unit_test(what_is_not_ok_fails_or_is_rejected),
		cmocka_unit_test(progress_is_a_text_or_json),
		cmocka_unit_test(a_checkpoint_asks_for_so_many),
		cmocka_unit_test(about_connections_it_says_how_many_it_takes_and_which_have_ended),
		cmocka_unit_test(emitted_jobs_have_all_that_a_job_can_have),
		cmocka_unit_test(emitted_jobs_may_have_a_key_or_several),
		cmocka_unit_test(emitted_jobs_may_wait_for_a_span_or_until_a_moment),
		cmocka_unit_test(everything_else_is_wrong_and_said_so),
		cmocka_unit_test(what_is_no_moment_is_wrong_as_one),
		cmocka_unit_test(characters_of_two_escapes_and_escaped_escapes_are_whole),
		cmocka_unit_test(a_value_may_be_nested_so_far_and_no_further),
		cmocka_unit_test(more_emitted_jobs_than_a_put_may_have_are_refused),
	};
	arena_init(&arena, baton_alloc_libc());
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	arena_done(&arena);
	return failed;
}
