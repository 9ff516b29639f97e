/* One line of a log. */
#include "base/record.h"

#include <stdio.h>
#include <string.h>

#include "support/harness.h"
#include "support/json.h"
#include "support/rng.h"
#include "support/soak.h"

#define TS_MS INT64_C(1772269500250)
#define LOGFMT "ts=2026-02-28T09:05:00.250Z level=info msg="
#define JSON "{\"ts\":\"2026-02-28T09:05:00.250Z\",\"level\":\"info\",\"msg\":"

static const struct baton_id sample_id = {{0xab, 1}};

/* A written record with a terminator. */
struct line {
	char text[BATON_LOG_RECORD_MAX + 1];
	size_t len;
};

static struct line write_record(const struct record *record)
{
	struct line line;
	line.len = record_write(record, line.text);
	assert_in_range(line.len, 1, BATON_LOG_RECORD_MAX);
	line.text[line.len] = '\0';

	struct baton_str whole = {line.text, line.len - 1};
	assert_int_equal(line.text[line.len - 1], '\n');
	assert_null(memchr(whole.ptr, '\n', whole.len));
	assert_true(baton_str_is_utf8(whole));
	if (record->format == BATON_LOG_JSON)
		assert_true(json_is_object(whole));
	return line;
}

static struct record record_of(enum baton_log_format format, const char *message,
                               const struct baton_field *fields, size_t count)
{
	return (struct record){
		.format = format,
		.time = {TS_MS},
		.level = BATON_LOG_INFO,
		.message = message,
		.fields = fields,
		.count = count,
	};
}

static struct line write_fields(enum baton_log_format format, const struct baton_field *fields,
                                size_t count)
{
	struct record record = record_of(format, "m", fields, count);
	return write_record(&record);
}

static void a_record_begins_with_time_level_and_message(void **state)
{
	(void)state;
	static const struct {
		enum baton_log_level level;
		const char *name;
	} levels[] = {
		{BATON_LOG_DEBUG, "debug"},
		{BATON_LOG_INFO, "info"},
		{BATON_LOG_WARN, "warn"},
		{BATON_LOG_ERROR, "error"},
		{(enum baton_log_level)9, "unknown"},
	};
	for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
		char expected[200];
		struct record record = record_of(BATON_LOG_LOGFMT, "lease lost", NULL, 0);
		record.level = levels[i].level;
		snprintf(expected, sizeof expected,
		         "ts=2026-02-28T09:05:00.250Z level=%s msg=\"lease lost\"\n",
		         levels[i].name);
		assert_string_equal(write_record(&record).text, expected);
		record.format = BATON_LOG_JSON;
		snprintf(expected, sizeof expected,
		         "{\"ts\":\"2026-02-28T09:05:00.250Z\",\"level\":\"%s\",\"msg\":\"lease "
		         "lost\"}\n",
		         levels[i].name);
		assert_string_equal(write_record(&record).text, expected);
	}
}

static void every_kind_of_field_has_its_form(void **state)
{
	(void)state;
	const struct {
		struct baton_field field;
		const char *logfmt;
		const char *json;
	} cases[] = {
		{baton_field_str("f", BATON_STR("foo")), "foo", "\"foo\""},
		{baton_field_int("f", INT64_MIN), "-9223372036854775808", "-9223372036854775808"},
		{baton_field_uint("f", UINT64_MAX), "18446744073709551615", "18446744073709551615"},
		{baton_field_bool("f", true), "true", "true"},
		{baton_field_bool("f", false), "false", "false"},
		{baton_field_duration("f", baton_duration_ms(1500)), "\"1s 500ms\"",
	         "\"1s 500ms\""},
		{baton_field_duration("f", BATON_DURATION_FOREVER), "infinity", "\"infinity\""},
		{baton_field_id("f", &sample_id), "ab010000000000000000000000000000",
	         "\"ab010000000000000000000000000000\""},
		{baton_field_id("f", NULL), "\"\"", "\"\""},
		{baton_field_secret("f", BATON_STR("hunter2")), "[secret]", "\"[secret]\""},
		{{"f", (enum baton_field_kind)99, {.u = 1}}, "\"\"", "\"\""},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char expected[300];
		snprintf(expected, sizeof expected, LOGFMT "m f=%s\n", cases[i].logfmt);
		assert_string_equal(write_fields(BATON_LOG_LOGFMT, &cases[i].field, 1).text,
		                    expected);
		snprintf(expected, sizeof expected, JSON "\"m\",\"f\":%s}\n", cases[i].json);
		assert_string_equal(write_fields(BATON_LOG_JSON, &cases[i].field, 1).text,
		                    expected);
	}
}

static void a_secret_is_not_kept(void **state)
{
	(void)state;
	struct baton_field field = baton_field_secret("password", BATON_STR("hunter2"));
	assert_int_equal(field.value.u, 0);
}

static void texts_are_quoted_only_when_needed_and_escaped(void **state)
{
	(void)state;
	static const struct {
		struct baton_str text;
		const char *logfmt;
		const char *json;
	} cases[] = {
		{BATON_STR(""), "\"\"", "\"\""},
		{BATON_STR("a/b:c,d{e}"), "a/b:c,d{e}", "\"a/b:c,d{e}\""},
		{BATON_STR("a b"), "\"a b\"", "\"a b\""},
		{BATON_STR("a=b"), "\"a=b\"", "\"a=b\""},
		{BATON_STR("a\"b"), "\"a\\\"b\"", "\"a\\\"b\""},
		{BATON_STR("a\\b"), "\"a\\\\b\"", "\"a\\\\b\""},
		{BATON_STR("a\nb\tc"), "\"a\\x0ab\\x09c\"", "\"a\\u000ab\\u0009c\""},
		{BATON_STR("nul\0"), "\"nul\\x00\"", "\"nul\\u0000\""},
		{BATON_STR("\x1b[0m"), "\"\\x1b[0m\"", "\"\\u001b[0m\""},
		{BATON_STR("\x7f"), "\"\\x7f\"", "\"\\u007f\""},
		{BATON_STR("\xc2\x85"), "\"\\xc2\\x85\"", "\"\\u0085\""},
		{BATON_STR("\u00e9\u20ac\U0001f600"), "\u00e9\u20ac\U0001f600",
	         "\"\u00e9\u20ac\U0001f600\""},
		{BATON_STR("a\xff"
	                   "b"),
	         "\"a\\xffb\"", "\"a\ufffdb\""},
		{BATON_STR("\xe2\x82"), "\"\\xe2\\x82\"", "\"\ufffd\ufffd\""},
		{BATON_STR("\xed\xa0\x80"), "\"\\xed\\xa0\\x80\"", "\"\ufffd\ufffd\ufffd\""},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char expected[300];
		struct baton_field field = baton_field_str("f", cases[i].text);
		snprintf(expected, sizeof expected, LOGFMT "m f=%s\n", cases[i].logfmt);
		assert_string_equal(write_fields(BATON_LOG_LOGFMT, &field, 1).text, expected);
		snprintf(expected, sizeof expected, JSON "\"m\",\"f\":%s}\n", cases[i].json);
		assert_string_equal(write_fields(BATON_LOG_JSON, &field, 1).text, expected);
	}
}

static void fields_keep_their_order(void **state)
{
	(void)state;
	const struct baton_field fields[] = {
		baton_field_str("subject", BATON_STR("foo")),
		baton_field_uint("fence", 7),
		baton_field_bool("own", true),
	};
	assert_string_equal(write_fields(BATON_LOG_LOGFMT, fields, 3).text,
	                    LOGFMT "m subject=foo fence=7 own=true\n");
	assert_string_equal(write_fields(BATON_LOG_JSON, fields, 3).text,
	                    JSON "\"m\",\"subject\":\"foo\",\"fence\":7,\"own\":true}\n");
}

static void what_a_name_must_not_hold_is_replaced(void **state)
{
	(void)state;
	const struct baton_field fields[] = {
		baton_field_int("a_9", 1),
		baton_field_int("A b\"\n=\xff", 2),
		baton_field_int("", 3),
		baton_field_int(NULL, 4),
	};
	assert_string_equal(write_fields(BATON_LOG_LOGFMT, fields, 4).text,
	                    LOGFMT "m a_9=1 __b____=2 _=3 _=4\n");
	assert_string_equal(write_fields(BATON_LOG_JSON, fields, 4).text,
	                    JSON "\"m\",\"a_9\":1,\"__b____\":2,\"_\":3,\"_\":4}\n");
}

static void a_missing_message_is_empty(void **state)
{
	(void)state;
	struct record record = record_of(BATON_LOG_LOGFMT, NULL, NULL, 0);
	assert_string_equal(write_record(&record).text, LOGFMT "\"\"\n");
}

static void missing_records_are_counted_at_the_end(void **state)
{
	(void)state;
	struct record record = record_of(BATON_LOG_LOGFMT, "m", NULL, 0);
	record.dropped = UINT64_MAX;
	assert_string_equal(write_record(&record).text, LOGFMT "m dropped=18446744073709551615\n");
	record.format = BATON_LOG_JSON;
	assert_string_equal(write_record(&record).text,
	                    JSON "\"m\",\"dropped\":18446744073709551615}\n");
}

/* A record of exactly `len` bytes with one field of that many x. */
static size_t filler_for(enum baton_log_format format, size_t len)
{
	struct baton_field empty = baton_field_str("f", BATON_STR("x"));
	return len - write_fields(format, &empty, 1).len + 1;
}

static void the_longest_record_is_whole_and_one_byte_more_is_cut(void **state)
{
	(void)state;
	static const enum baton_log_format formats[] = {BATON_LOG_LOGFMT, BATON_LOG_JSON};
	static const char *const marks[] = {" truncated=true\n", ",\"truncated\":true}\n"};
	char text[BATON_LOG_RECORD_MAX + 1];
	memset(text, 'x', sizeof text);
	for (size_t i = 0; i < 2; i++) {
		size_t fits = filler_for(formats[i], BATON_LOG_RECORD_MAX);
		struct baton_field field = baton_field_str("f", (struct baton_str){text, fits});
		struct line line = write_fields(formats[i], &field, 1);
		assert_int_equal(line.len, BATON_LOG_RECORD_MAX);
		assert_null(strstr(line.text, "truncated"));

		field = baton_field_str("f", (struct baton_str){text, fits + 1});
		line = write_fields(formats[i], &field, 1);
		assert_int_equal(line.len, BATON_LOG_RECORD_MAX);
		const char *mark =
			strstr(line.text, "truncated") - 1 - (formats[i] == BATON_LOG_JSON);
		assert_string_equal(mark, marks[i]);
	}
}

static size_t count_of(const char *text, char c)
{
	size_t n = 0;
	for (; *text != '\0'; text++)
		n += *text == c;
	return n;
}

static void the_longest_values_are_shortened_to_one_length_and_the_others_kept(void **state)
{
	(void)state;
	char p[5000], q[3000];
	memset(p, 'P', sizeof p);
	memset(q, 'Q', sizeof q);
	const struct baton_field fields[] = {
		baton_field_str("a", (struct baton_str){p, sizeof p}),
		baton_field_str("b", BATON_STR("short")),
		baton_field_str("c", (struct baton_str){q, sizeof q}),
		baton_field_id("d", &sample_id),
		baton_field_duration("e", baton_duration_ms(1500)),
		baton_field_uint("f", UINT64_MAX),
	};
	static const enum baton_log_format formats[] = {BATON_LOG_LOGFMT, BATON_LOG_JSON};
	for (size_t i = 0; i < 2; i++) {
		struct line line = write_fields(formats[i], fields, 6);
		/* Two values share the room to the byte. */
		assert_in_range(line.len, BATON_LOG_RECORD_MAX - 1, BATON_LOG_RECORD_MAX);
		assert_int_equal(count_of(line.text, 'P'), count_of(line.text, 'Q'));
		assert_non_null(strstr(line.text, "short"));
		assert_non_null(strstr(line.text, "ab010000000000000000000000000000"));
		assert_non_null(strstr(line.text, "\"1s 500ms\""));
		assert_non_null(strstr(line.text, "18446744073709551615"));
		assert_non_null(strstr(line.text, "truncated"));
	}
}

static void a_cut_spares_characters_and_escapes(void **state)
{
	(void)state;
	static const char *const pieces[] = {"\u00e9", "\u20ac", "\U0001f600", "\n",
	                                     "\xff",   "\"",     "\xc2\x85"};
	static const enum baton_log_format formats[] = {BATON_LOG_LOGFMT, BATON_LOG_JSON};
	for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
		for (size_t shift = 0; shift < 9; shift++) {
			char text[6000] = "aaaaaaaaa";
			text[shift] = '\0';
			while (strlen(text) < sizeof text - 10)
				strcat(text, pieces[i]);
			struct baton_field field = baton_field_str("f", baton_str_z(text));
			for (size_t k = 0; k < 2; k++) {
				/* write_record() checks UTF-8 and JSON. */
				struct line line = write_fields(formats[k], &field, 1);
				assert_true(line.len > BATON_LOG_RECORD_MAX - 8);
				assert_non_null(strstr(line.text, "truncated"));
				const char *last = strstr(line.text, "truncated") - 2;
				while (*last == '"' || *last == ',')
					last--;
				if (formats[k] == BATON_LOG_LOGFMT && pieces[i][0] == '\n')
					assert_memory_equal(last - 3, "\\x0a", 4);
			}
		}
	}
}

static void a_message_gives_way_as_the_values_do(void **state)
{
	(void)state;
	char message[6001];
	memset(message, 'M', sizeof message - 1);
	message[sizeof message - 1] = '\0';
	struct baton_field field = baton_field_str("f", BATON_STR("kept"));
	struct record record = record_of(BATON_LOG_JSON, message, &field, 1);
	struct line line = write_record(&record);
	assert_int_equal(line.len, BATON_LOG_RECORD_MAX);
	assert_non_null(strstr(line.text, "M\",\"f\":\"kept\",\"truncated\":true}\n"));
}

static void fields_that_do_not_fit_at_all_are_left_out_from_the_end(void **state)
{
	(void)state;
	struct baton_field fields[1000];
	static const enum baton_log_format formats[] = {BATON_LOG_LOGFMT, BATON_LOG_JSON};
	for (size_t i = 0; i < 1000; i++)
		fields[i] = baton_field_uint("number", UINT64_MAX);
	fields[0] = baton_field_str("first", BATON_STR("kept"));
	static const char *const begins[] = {
		"msg=hello first=kept number=1844",
		"\"msg\":\"hello\",\"first\":\"kept\",\"number\":1844",
	};
	for (size_t k = 0; k < 2; k++) {
		struct record record = record_of(formats[k], "hello", fields, 1000);
		record.dropped = 3;
		struct line line = write_record(&record);
		assert_true(line.len > BATON_LOG_RECORD_MAX - 40);
		assert_non_null(strstr(line.text, begins[k]));
		assert_non_null(strstr(line.text, "truncated"));
		assert_non_null(strstr(line.text, "dropped"));
	}
}

static void a_long_message_and_long_values_keep_their_share_when_fields_are_left_out(void **state)
{
	(void)state;
	char message[6001], value[5000];
	memset(message, 'M', sizeof message - 1);
	message[sizeof message - 1] = '\0';
	memset(value, 'V', sizeof value);
	struct baton_field fields[1000];
	for (size_t i = 0; i < 1000; i++)
		fields[i] = baton_field_uint("number", UINT64_MAX);
	fields[0] = baton_field_str("first", (struct baton_str){value, sizeof value});
	struct record record = record_of(BATON_LOG_JSON, message, fields, 1000);
	struct line line = write_record(&record);
	assert_int_equal(count_of(line.text, 'M'), 1024);
	assert_int_equal(count_of(line.text, 'V'), 256);
	assert_true(line.len > BATON_LOG_RECORD_MAX - 40);
	assert_non_null(strstr(line.text, "\"truncated\":true}\n"));
}

static void names_of_the_records_own_fields_get_an_underscore(void **state)
{
	(void)state;
	const struct baton_field fields[] = {
		baton_field_int("ts", 1),      baton_field_int("level", 2),
		baton_field_int("msg", 3),     baton_field_int("truncated", 4),
		baton_field_int("dropped", 5), baton_field_int("msgs", 6),
	};
	assert_string_equal(write_fields(BATON_LOG_LOGFMT, fields, 6).text,
	                    LOGFMT "m _ts=1 _level=2 _msg=3 _truncated=4 _dropped=5 msgs=6\n");
	assert_string_equal(write_fields(BATON_LOG_JSON, fields, 6).text,
	                    JSON "\"m\",\"_ts\":1,\"_level\":2,\"_msg\":3,\"_truncated\":4,"
	                         "\"_dropped\":5,\"msgs\":6}\n");
}

static void a_name_longer_than_a_record_is_left_out(void **state)
{
	(void)state;
	char name[5001];
	memset(name, 'n', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	struct baton_field field = baton_field_uint(name, 1);
	assert_string_equal(write_fields(BATON_LOG_JSON, &field, 1).text,
	                    JSON "\"m\",\"truncated\":true}\n");
}

static void random_bytes_always_make_one_valid_line(void **state)
{
	(void)state;
	struct rng rng = rng_seed_from_env();
	for (unsigned i = 0; i < soak_scale(500, 100000); i++) {
		char bytes[3][5000];
		struct baton_field fields[3];
		for (size_t k = 0; k < 3; k++) {
			size_t len = rng_below(&rng, rng_below(&rng, 4) == 0 ? 5000 : 50);
			for (size_t j = 0; j < len; j++)
				bytes[k][j] = (char)rng_next(&rng);
			fields[k] = baton_field_str("f", (struct baton_str){bytes[k], len});
		}
		/* write_record() checks what it gets. */
		write_fields(BATON_LOG_LOGFMT, fields, 3);
		write_fields(BATON_LOG_JSON, fields, 3);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_record_begins_with_time_level_and_message),
		cmocka_unit_test(every_kind_of_field_has_its_form),
		cmocka_unit_test(a_secret_is_not_kept),
		cmocka_unit_test(texts_are_quoted_only_when_needed_and_escaped),
		cmocka_unit_test(fields_keep_their_order),
		cmocka_unit_test(what_a_name_must_not_hold_is_replaced),
		cmocka_unit_test(a_missing_message_is_empty),
		cmocka_unit_test(missing_records_are_counted_at_the_end),
		cmocka_unit_test(the_longest_record_is_whole_and_one_byte_more_is_cut),
		cmocka_unit_test(
			the_longest_values_are_shortened_to_one_length_and_the_others_kept),
		cmocka_unit_test(a_cut_spares_characters_and_escapes),
		cmocka_unit_test(a_message_gives_way_as_the_values_do),
		cmocka_unit_test(fields_that_do_not_fit_at_all_are_left_out_from_the_end),
		cmocka_unit_test(
			a_long_message_and_long_values_keep_their_share_when_fields_are_left_out),
		cmocka_unit_test(names_of_the_records_own_fields_get_an_underscore),
		cmocka_unit_test(a_name_longer_than_a_record_is_left_out),
		cmocka_unit_test(random_bytes_always_make_one_valid_line),
	};
	return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}
