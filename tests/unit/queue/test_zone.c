/* Time zones: the files, and the local times that they make. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/zone_file.h"
#include "queue/zone.h"
#include "support/harness.h"
#include "support/rng.h"
#include "support/soak.h"
#include "zones.h"

#define H 3600

static const char *const names[] = {
	"Africa/Casablanca",    "Africa/Cairo",     "America/Havana",
	"America/New_York",     "America/Nuuk",     "America/Sao_Paulo",
	"America/St_Johns",     "Antarctica/Troll", "Asia/Gaza",
	"Asia/Kolkata",         "Asia/Kathmandu",   "Australia/Lord_Howe",
	"Europe/Berlin",        "Europe/Dublin",    "Pacific/Apia",
	"Pacific/Kwajalein",    "Pacific/Chatham",  "UTC",
	"America/Scoresbysund", "Etc/GMT+12",
};
#define NAMES (sizeof names / sizeof *names)

struct local_case {
	const char *zone;
	const char *local;
	const char *utc;
	enum zone_shown shown;
};

static void local_times_are_found_in_gaps_and_repeats(void **state)
{
	(void)state;
	static const struct local_case cases[] = {
		{"Europe/Berlin", "2026-01-15 12:00", "2026-01-15 11:00", ZONE_ONCE},
		{"Europe/Berlin", "2026-03-29 01:59:59", "2026-03-29 00:59:59", ZONE_ONCE},
		{"Europe/Berlin", "2026-03-29 02:00", "2026-03-29 01:00", ZONE_SKIPPED},
		{"Europe/Berlin", "2026-03-29 02:59:59", "2026-03-29 01:00", ZONE_SKIPPED},
		{"Europe/Berlin", "2026-03-29 03:00", "2026-03-29 01:00", ZONE_ONCE},
		{"Europe/Berlin", "2026-10-25 01:59:59", "2026-10-24 23:59:59", ZONE_ONCE},
		{"Europe/Berlin", "2026-10-25 02:00", "2026-10-25 00:00", ZONE_REPEATED},
		{"Europe/Berlin", "2026-10-25 02:59:59", "2026-10-25 00:59:59", ZONE_REPEATED},
		{"Europe/Berlin", "2026-10-25 03:00", "2026-10-25 02:00", ZONE_ONCE},
		{"Europe/Berlin", "2126-10-27 02:30", "2126-10-27 00:30", ZONE_REPEATED},
		{"America/New_York", "2026-03-08 02:30", "2026-03-08 07:00", ZONE_SKIPPED},
		{"America/New_York", "2026-11-01 01:30", "2026-11-01 05:30", ZONE_REPEATED},
		{"Australia/Lord_Howe", "2026-10-04 02:15", "2026-10-03 15:30", ZONE_SKIPPED},
		{"Australia/Lord_Howe", "2026-10-04 02:30", "2026-10-03 15:30", ZONE_ONCE},
		{"Australia/Lord_Howe", "2026-04-05 01:29", "2026-04-04 14:29", ZONE_ONCE},
		{"Australia/Lord_Howe", "2026-04-05 01:30", "2026-04-04 14:30", ZONE_REPEATED},
		{"Pacific/Apia", "2011-12-29 23:59", "2011-12-30 09:59", ZONE_ONCE},
		{"Pacific/Apia", "2011-12-30 00:00", "2011-12-30 10:00", ZONE_SKIPPED},
		{"Pacific/Apia", "2011-12-30 23:59", "2011-12-30 10:00", ZONE_SKIPPED},
		{"Pacific/Apia", "2011-12-31 00:00", "2011-12-30 10:00", ZONE_ONCE},
		{"Africa/Casablanca", "2025-02-23 02:30", "2025-02-23 01:30", ZONE_REPEATED},
		{"Africa/Casablanca", "2025-04-06 02:30", "2025-04-06 02:00", ZONE_SKIPPED},
		{"Asia/Kolkata", "2026-05-01 00:00", "2026-04-30 18:30", ZONE_ONCE},
		{"America/St_Johns", "2006-10-29 00:00", "2006-10-29 02:30", ZONE_REPEATED},
		{"America/St_Johns", "2006-10-28 23:01", "2006-10-29 01:31", ZONE_REPEATED},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct local_case *c = &cases[i];
		struct zone_data data;
		zone_data_init(&data, c->zone);
		struct zone_local found = zone_find(&data.zone, seconds_of(c->local));
		char text[32];
		if (found.utc_s != seconds_of(c->utc) || found.shown != c->shown)
			fail_msg("%s %s: %s, %d", c->zone, c->local,
			         seconds_print(found.utc_s, text), (int)found.shown);
		zone_data_done(&data);
	}
}

static int64_t offset_of_libc(int64_t utc_s)
{
	struct tm tm;
	time_t t = utc_s;
	assert_non_null(localtime_r(&t, &tm));
	return tm.tm_gmtoff;
}

static void offsets_are_those_of_the_c_library(void **state)
{
	(void)state;
	struct rng rng = rng_seed_from_env();
	int64_t first = seconds_of("1925-01-01 00:00");
	int64_t last = seconds_of("2425-01-01 00:00");
	for (size_t i = 0; i < NAMES; i++) {
		struct zone_data data;
		zone_data_init(&data, names[i]);
		for (unsigned n = soak_scale(2000, 200000); n > 0; n--) {
			int64_t t = first + (int64_t)rng_below(&rng, (uint64_t)(last - first));
			struct zone_span span = zone_at(&data.zone, t);
			int64_t edge = span.end_s < last ? span.end_s : t;
			if (span.offset_s != offset_of_libc(t) ||
			    offset_of_libc(edge - (edge > t)) != span.offset_s ||
			    zone_at(&data.zone, edge).offset_s != offset_of_libc(edge))
				fail_msg("%s at %lld", names[i], (long long)t);
			assert_true(span.begin_s <= t && t < span.end_s);
		}
		zone_data_done(&data);
	}
}

/* From the definition: second by second, from long before the change on. */
static void assert_reached(const struct zone *zone, int64_t change_s)
{
	int64_t begin_s = change_s - 60 * H;
	int64_t close_s = change_s - 2 * H;
	int64_t highest = begin_s + offset_of_libc(begin_s);
	for (int64_t t = begin_s; t < change_s + 2 * H; t += t < close_s ? 60 : 1) {
		int64_t local = t + offset_of_libc(t);
		for (int64_t next = highest + 1; t > close_s && next <= local; next += 7)
			assert_int_equal(zone_find(zone, next).utc_s, t);
		highest = local > highest ? local : highest;
		assert_int_equal(zone_reached(zone, t), highest);
	}
}

static void a_local_time_is_found_when_it_is_reached_first(void **state)
{
	(void)state;
	for (size_t i = 0; i < NAMES; i++) {
		struct zone_data data;
		zone_data_init(&data, names[i]);
		int64_t change_s = seconds_of("2006-01-01 00:00");
		for (int changes = 0; changes < 4; changes++) {
			int64_t end_s = zone_at(&data.zone, change_s).end_s;
			change_s = end_s < INT64_MAX ? end_s : change_s + 1000 * H;
			assert_reached(&data.zone, change_s);
		}
		zone_data_done(&data);
	}
}

/* A file made by hand. */
struct file {
	char bytes[4096];
	size_t len;
};

static void add(struct file *f, const void *bytes, size_t len)
{
	assert_true(f->len + len <= sizeof f->bytes);
	memcpy(f->bytes + f->len, bytes, len);
	f->len += len;
}

static void add_number(struct file *f, int64_t n, size_t width)
{
	for (size_t i = width; i-- > 0;) {
		char byte = (char)((uint64_t)n >> (8 * i) & 0xff);
		add(f, &byte, 1);
	}
}

struct counts {
	char version;
	uint32_t utc, standard, leaps, changes, types, names;
};

static void add_header(struct file *f, struct counts c)
{
	add(f, "TZif", 4);
	add(f, &c.version, 1);
	add(f, (char[15]){0}, 15);
	const uint32_t in_order[] = {c.utc, c.standard, c.leaps, c.changes, c.types, c.names};
	for (size_t i = 0; i < 6; i++)
		add_number(f, in_order[i], 4);
}

/* Two types, and changes to the second at 1000 and back at 2000. */
static struct file file_of(char version, const char *rule, int first_s, int second_s)
{
	struct file f = {.len = 0};
	size_t width = version == '\0' ? 4 : 8;
	struct counts c = {version, .changes = 2, .types = 2, .names = 4};
	if (version != '\0')
		add_header(&f, (struct counts){version, .types = 0});
	add_header(&f, c);
	add_number(&f, 1000, width);
	add_number(&f, 2000, width);
	add(&f, "\1\0", 2);
	add_number(&f, first_s, 4);
	add(&f, "\0\0", 2);
	add_number(&f, second_s, 4);
	add(&f, "\1\0", 2);
	add(&f, "ABC", 4);
	if (version != '\0')
		add(&f, rule, strlen(rule));
	return f;
}

static struct file small_file(char version, const char *rule)
{
	return file_of(version, rule, H, 2 * H);
}

static struct baton_str file_str(const struct file *f)
{
	return (struct baton_str){f->bytes, f->len};
}

static void assert_span(const struct zone *zone, int64_t at, struct zone_span wanted)
{
	struct zone_span span = zone_at(zone, at);
	if (span.begin_s != wanted.begin_s || span.end_s != wanted.end_s ||
	    span.offset_s != wanted.offset_s)
		fail_msg("at %lld: %lld to %lld with %d", (long long)at, (long long)span.begin_s,
		         (long long)span.end_s, span.offset_s);
}

static void a_file_of_every_version_is_read(void **state)
{
	(void)state;
	static const char versions[] = {'\0', '2', '3', '4'};
	for (size_t i = 0; i < sizeof versions; i++) {
		struct file f = small_file(versions[i], "\n\n");
		struct zone zone;
		if (zone_parse(file_str(&f), &zone) != BATON_OK)
			fail_msg("%s", baton_err_detail());
		assert_span(&zone, 999, (struct zone_span){INT64_MIN, 1000, H});
		assert_span(&zone, 1000, (struct zone_span){1000, 2000, 2 * H});
		assert_span(&zone, 1999, (struct zone_span){1000, 2000, 2 * H});
		assert_span(&zone, 2000, (struct zone_span){2000, INT64_MAX, H});
	}
}

static void the_rule_is_valid_from_the_last_change_on(void **state)
{
	(void)state;
	struct file f = small_file('2', "\nABC-3\n");
	struct zone zone;
	assert_int_equal(zone_parse(file_str(&f), &zone), BATON_OK);
	assert_span(&zone, 1999, (struct zone_span){1000, 2000, 2 * H});
	assert_span(&zone, 2000, (struct zone_span){2000, INT64_MAX, 3 * H});
}

/* The clock is put back at 1000 by an hour, and forward again at 2000. */
static void a_time_after_a_short_repeat_is_shown_once(void **state)
{
	(void)state;
	struct file f = file_of('2', "\n\n", 2 * H, H);
	struct zone zone;
	assert_int_equal(zone_parse(file_str(&f), &zone), BATON_OK);
	assert_int_equal(zone_find(&zone, 999 + 2 * H).shown, ZONE_ONCE);
	assert_int_equal(zone_find(&zone, 2000 + H).shown, ZONE_ONCE);
	assert_int_equal(zone_find(&zone, 1999 + H).shown, ZONE_REPEATED);
	assert_int_equal(zone_find(&zone, 1000 + H).shown, ZONE_REPEATED);
	assert_int_equal(zone_find(&zone, 999 + H).shown, ZONE_ONCE);
	assert_int_equal(zone_find(&zone, 1000 + 2 * H).shown, ZONE_SKIPPED);
	assert_int_equal(zone_find(&zone, 1000 + 2 * H).utc_s, 2000);
	assert_int_equal(zone_reached(&zone, 1999), 999 + 2 * H);
	assert_int_equal(zone_reached(&zone, 2000), 2000 + 2 * H);
}

static void utc_needs_no_file(void **state)
{
	(void)state;
	struct zone zone = ZONE_UTC;
	assert_span(&zone, 0, (struct zone_span){INT64_MIN, INT64_MAX, 0});
	assert_span(&zone, INT64_C(1) << 59, (struct zone_span){INT64_MIN, INT64_MAX, 0});
	assert_span(&zone, -(INT64_C(1) << 59), (struct zone_span){INT64_MIN, INT64_MAX, 0});
	assert_int_equal(zone_reached(&zone, 77), 77);
	struct zone_local found = zone_find(&zone, 77);
	assert_int_equal(found.utc_s, 77);
	assert_int_equal(found.shown, ZONE_ONCE);
}

static void assert_refused(struct baton_str bytes, const char *why)
{
	struct zone zone = {.width = 77};
	assert_int_equal(zone_parse(bytes, &zone), BATON_INVALID);
	assert_int_equal(zone.width, 77);
	if (strstr(baton_err_detail(), why) == NULL)
		fail_msg("%s", baton_err_detail());
}

static void a_file_that_is_cut_off_anywhere_is_refused(void **state)
{
	(void)state;
	static const char versions[] = {'\0', '3'};
	for (size_t i = 0; i < sizeof versions; i++) {
		struct file f = small_file(versions[i], "\nABC-3\n");
		for (size_t len = 0; len < f.len; len++) {
			char *exact = malloc(len > 0 ? len : 1); /* a sanitizer sees its end */
			assert_non_null(exact);
			memcpy(exact, f.bytes, len);
			assert_refused((struct baton_str){exact, len}, "time zone file");
			free(exact);
		}
	}
}

/* One byte of a small file changed. */
struct damage {
	size_t at;
	char byte;
	const char *why;
};

static void what_an_enemy_could_have_written_is_refused(void **state)
{
	(void)state;
	enum {
		SECOND = 44,
		BLOCK = 88
	};
	static const struct damage cases[] = {
		{0, 'X', "it has to begin with TZif"},
		{32, 1, "cut off"}, /* 16 million changes in the first block */
		{SECOND, 'X', "it has to begin with TZif"},
		{SECOND + 23, 1, "marks of its 2 types: none or one for each"},
		{SECOND + 27, 3, "marks of its 2 types: none or one for each"},
		{SECOND + 31, 1, "has 1 leap seconds"},
		{SECOND + 32, (char)0xff, "cut off"},
		{SECOND + 39, 0, "has 0 types of time: 1 to 256"},
		{SECOND + 38, 1, "has 258 types of time: 1 to 256"},
		{SECOND + 40, (char)0xff, "cut off"},
		{SECOND + 43, 0, "0 or 1, and less than 0 are allowed"},
		{BLOCK, 0x08, "a change 0 at"},
		{BLOCK + 8, (char)0x80, "a change 1 at"},
		{BLOCK + 14, 3, "a change 1 at 976 seconds: it has to be after"},
		{BLOCK + 16, 2, "changes to the type 2: it has 0 to 1"},
		{BLOCK + 17, (char)0xff, "changes to the type 255: it has 0 to 1"},
		{BLOCK + 18, (char)0x80, "seconds to UTC: -89999 to 93599 are allowed"},
		{BLOCK + 19, 2, "adds 134672 seconds to UTC: -89999 to 93599"},
		{BLOCK + 22, 2, "a type 0 with the mark 2"},
		{BLOCK + 29, 4, "a type 1 with the mark 1 and the name at 4"},
		{BLOCK + 34, ' ', "a rule between two newlines"},
		{BLOCK + 40, ' ', "a rule between two newlines"},
		{BLOCK + 35, '!', "is no rule of a time zone"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct file f = small_file('2', "\nABC-3\n");
		struct zone zone;
		assert_int_equal(zone_parse(file_str(&f), &zone), BATON_OK);
		f.bytes[cases[i].at] = cases[i].byte;
		assert_refused(file_str(&f), cases[i].why);
	}
}

static void two_changes_at_one_moment_are_refused(void **state)
{
	(void)state;
	struct file f = small_file('2', "\n\n");
	memcpy(f.bytes + 96, f.bytes + 88, 8);
	assert_refused(file_str(&f), "a change 1 at 1000 seconds: it has to be after");
}

static void leap_seconds_are_refused_in_the_systems_files_too(void **state)
{
	(void)state;
	struct buf bytes;
	buf_init(&bytes, baton_alloc_libc(), ZONE_FILE_MAX);
	assert_int_equal(zone_file_read(ZONE_FILE_FOLDER, BATON_STR("right/UTC"), &bytes),
	                 BATON_OK);
	assert_refused(buf_str(&bytes), "leap seconds, which the store's clock does not count");
	buf_done(&bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(local_times_are_found_in_gaps_and_repeats),
		cmocka_unit_test(offsets_are_those_of_the_c_library),
		cmocka_unit_test(a_local_time_is_found_when_it_is_reached_first),
		cmocka_unit_test(a_file_of_every_version_is_read),
		cmocka_unit_test(the_rule_is_valid_from_the_last_change_on),
		cmocka_unit_test(a_time_after_a_short_repeat_is_shown_once),
		cmocka_unit_test(utc_needs_no_file),
		cmocka_unit_test(a_file_that_is_cut_off_anywhere_is_refused),
		cmocka_unit_test(what_an_enemy_could_have_written_is_refused),
		cmocka_unit_test(two_changes_at_one_moment_are_refused),
		cmocka_unit_test(leap_seconds_are_refused_in_the_systems_files_too),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
