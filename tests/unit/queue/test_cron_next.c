/* The next tick of a schedule, in zones that change their clocks. */

#include "queue/cron.h"
#include "support/harness.h"
#include "zones.h"

#define TICKS 8

/* Moments are in UTC; the zone is that of the schedule. */
struct next_case {
	const char *zone;
	const char *text;
	const char *after;
	const char *ticks[TICKS]; /* those that follow each other, up to a NULL */
};

static struct cron cron_of(const char *text)
{
	struct cron cron;
	if (cron_parse(baton_str_z(text), &cron) != BATON_OK)
		fail_msg("%s", baton_err_detail());
	return cron;
}

static struct baton_store_time moment(const char *text)
{
	return (struct baton_store_time){seconds_of(text) * 1000};
}

static void assert_ticks(const struct next_case *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct next_case *c = &cases[i];
		struct zone_data data;
		zone_data_init(&data, c->zone);
		struct cron cron = cron_of(c->text);
		struct baton_store_time t = moment(c->after);
		for (size_t n = 0; n < TICKS && c->ticks[n] != NULL; n++) {
			t = cron_next(&cron, &data.zone, t);
			char shown[BATON_STORE_TIME_TEXT];
			if (t.ms != moment(c->ticks[n]).ms)
				fail_msg("%s %s, tick %zu: %s instead of %s", c->zone, c->text, n,
				         baton_store_time_print(t, shown), c->ticks[n]);
		}
		zone_data_done(&data);
	}
}

static void ticks_follow_the_fields(void **state)
{
	(void)state;
	static const struct next_case cases[] = {
		{"UTC", "* * * * *", "2026-01-01 00:00", {"2026-01-01 00:01", "2026-01-01 00:02"}},
		{"UTC",
	         "* * * * * *",
	         "2025-12-31 23:59:58",
	         {"2025-12-31 23:59:59", "2026-01-01 00:00:00", "2026-01-01 00:00:01"}},
		{"UTC",
	         "10,20 59 23 31 12 *",
	         "2026-12-31 23:59:10",
	         {"2026-12-31 23:59:20", "2027-12-31 23:59:10"}},
		{"UTC",
	         "30 */12 * * *",
	         "2026-01-01 12:30",
	         {"2026-01-02 00:30", "2026-01-02 12:30"}},
		{"UTC",
	         "0 9 * * MON-FRI",
	         "2026-01-02 09:00",
	         {"2026-01-05 09:00", "2026-01-06 09:00"}},
		{"UTC",
	         "0 0 31 * *",
	         "2026-01-31 00:00",
	         {"2026-03-31 00:00", "2026-05-31 00:00", "2026-07-31 00:00", "2026-08-31 00:00"}},
		{"UTC",
	         "0 0 13 * FRI",
	         "2026-02-07 00:00",
	         {"2026-02-13 00:00", "2026-02-20 00:00", "2026-02-27 00:00", "2026-03-06 00:00",
	          "2026-03-13 00:00"}},
		{"UTC",
	         "0 0 */2 * FRI",
	         "2026-02-01 00:00",
	         {"2026-02-13 00:00", "2026-02-27 00:00", "2026-03-13 00:00"}},
		{"UTC", "@weekly", "2026-01-01 00:00", {"2026-01-04 00:00", "2026-01-11 00:00"}},
		{"UTC", "@yearly", "2026-01-01 00:00", {"2027-01-01 00:00", "2028-01-01 00:00"}},
		{"Asia/Kolkata",
	         "@daily",
	         "2026-01-01 00:00",
	         {"2026-01-01 18:30", "2026-01-02 18:30"}},
		{"UTC", "* * * * *", "1969-12-31 23:58", {"1969-12-31 23:59", "1970-01-01 00:00"}},
	};
	assert_ticks(cases, sizeof cases / sizeof *cases);
}

static void rare_days_are_found_across_2100(void **state)
{
	(void)state;
	static const struct next_case cases[] = {
		{"UTC", "0 0 29 2 *", "2024-02-29 00:00", {"2028-02-29 00:00", "2032-02-29 00:00"}},
		{"UTC", "0 0 29 2 *", "2096-02-29 00:00", {"2104-02-29 00:00"}},
		{"Europe/Berlin", "* * 29 2 *", "2096-02-29 22:59", {"2104-02-28 23:00"}},
		/* Sundays. */
		{"UTC",
	         "0 0 29 2 */7",
	         "2026-01-01 00:00",
	         {"2032-02-29 00:00", "2060-02-29 00:00"}},
		{"UTC", "0 0 29 2 */7", "2088-02-29 00:00", {"2128-02-29 00:00"}},
	};
	assert_ticks(cases, sizeof cases / sizeof *cases);
}

static void a_fixed_time_in_a_gap_is_once_at_its_end(void **state)
{
	(void)state;
	static const struct next_case cases[] = {
		{"Europe/Berlin",
	         "30 2 * * *",
	         "2026-03-28 00:00",
	         {"2026-03-28 01:30", "2026-03-29 01:00", "2026-03-30 00:30"}},
		{"Europe/Berlin",
	         "0 3 * * *",
	         "2026-03-29 00:00",
	         {"2026-03-29 01:00", "2026-03-30 01:00"}},
		/* All of the gap, and what comes right after it, is one tick. */
		{"Europe/Berlin",
	         "*/20 1-3 * * *",
	         "2026-03-29 00:30",
	         {"2026-03-29 00:40", "2026-03-29 01:00", "2026-03-29 01:20", "2026-03-29 01:40",
	          "2026-03-29 23:00"}},
		{"America/New_York",
	         "30 2 8 3 *",
	         "2026-01-01 00:00",
	         {"2026-03-08 07:00", "2027-03-08 07:30"}},
		{"Australia/Lord_Howe",
	         "15 2 * * *",
	         "2026-10-03 00:00",
	         {"2026-10-03 15:30", "2026-10-04 15:15"}},
		/* The whole of December 30, 2011. */
		{"Pacific/Apia",
	         "0 12 * * *",
	         "2011-12-29 22:00",
	         {"2011-12-30 10:00", "2011-12-30 22:00", "2011-12-31 22:00"}},
		{"Pacific/Apia",
	         "*/5 8-17 30 12 *",
	         "2011-12-29 00:00",
	         {"2011-12-30 10:00", "2012-12-29 18:00"}},
		{"Africa/Casablanca",
	         "30 2 * * *",
	         "2025-04-05 12:00",
	         {"2025-04-06 02:00", "2025-04-07 01:30"}},
		{"America/Havana",
	         "0 0 * * *",
	         "2026-03-08 00:00",
	         {"2026-03-08 05:00", "2026-03-09 04:00"}},
	};
	assert_ticks(cases, sizeof cases / sizeof *cases);
}

static void a_fixed_time_that_is_repeated_is_once_at_the_first(void **state)
{
	(void)state;
	static const struct next_case cases[] = {
		{"Europe/Berlin",
	         "30 2 * * *",
	         "2026-10-24 12:00",
	         {"2026-10-25 00:30", "2026-10-26 01:30"}},
		/* Also when it is asked between the two. */
		{"Europe/Berlin", "30 2 * * *", "2026-10-25 01:00", {"2026-10-26 01:30"}},
		{"Europe/Berlin",
	         "*/30 1-3 * * *",
	         "2026-10-24 23:00",
	         {"2026-10-24 23:30", "2026-10-25 00:00", "2026-10-25 00:30", "2026-10-25 02:00",
	          "2026-10-25 02:30"}},
		{"Europe/Berlin", "0 3 * * *", "2026-10-25 00:59:59", {"2026-10-25 02:00"}},
		{"Australia/Lord_Howe",
	         "45 1 * * *",
	         "2026-04-04 12:00",
	         {"2026-04-04 14:45", "2026-04-05 15:15"}},
		{"America/St_Johns",
	         "0 0 * * *",
	         "2006-10-28 12:00",
	         {"2006-10-29 02:30", "2006-10-30 03:30"}},
		{"Africa/Casablanca",
	         "30 2 * * *",
	         "2025-02-22 12:00",
	         {"2025-02-23 01:30", "2025-02-24 02:30"}},
	};
	assert_ticks(cases, sizeof cases / sizeof *cases);
}

static void all_hours_follow_the_clock_on_the_wall(void **state)
{
	(void)state;
	static const struct next_case cases[] = {
		{"Europe/Berlin",
	         "*/30 * * * *",
	         "2026-03-29 00:00",
	         {"2026-03-29 00:30", "2026-03-29 01:00", "2026-03-29 01:30", "2026-03-29 02:00"}},
		{"Europe/Berlin",
	         "*/30 * * * *",
	         "2026-10-25 00:00",
	         {"2026-10-25 00:30", "2026-10-25 01:00", "2026-10-25 01:30", "2026-10-25 02:00"}},
		{"Europe/Berlin",
	         "30 0-23 * * *",
	         "2026-10-25 00:00",
	         {"2026-10-25 00:30", "2026-10-25 01:30", "2026-10-25 02:30"}},
		{"Australia/Lord_Howe",
	         "15 * * * *",
	         "2026-10-03 14:00",
	         {"2026-10-03 14:45", "2026-10-03 16:15"}},
		{"Australia/Lord_Howe",
	         "45 * * * *",
	         "2026-04-04 14:00",
	         {"2026-04-04 14:45", "2026-04-04 15:15", "2026-04-04 16:15"}},
		/* The first minute of a day, which was left again for the day before. */
		{"America/St_Johns",
	         "0,30 * 28,29 10 *",
	         "2006-10-29 02:00",
	         {"2006-10-29 02:30", "2006-10-29 03:00", "2006-10-29 03:30"}},
		{"Pacific/Apia", "0 * 30 12 *", "2011-12-29 00:00", {"2012-12-29 10:00"}},
	};
	assert_ticks(cases, sizeof cases / sizeof *cases);
}

static void a_tick_is_strictly_after(void **state)
{
	(void)state;
	struct zone utc = ZONE_UTC;
	struct cron cron = cron_of("0 0 * * *");
	int64_t day = INT64_C(86400000);
	assert_int_equal(cron_next(&cron, &utc, (struct baton_store_time){-1}).ms, 0);
	assert_int_equal(cron_next(&cron, &utc, (struct baton_store_time){0}).ms, day);
	assert_int_equal(cron_next(&cron, &utc, (struct baton_store_time){1}).ms, day);
	assert_int_equal(cron_next(&cron, &utc, (struct baton_store_time){999}).ms, day);
	assert_int_equal(cron_next(&cron, &utc, (struct baton_store_time){day - 1}).ms, day);
	assert_int_equal(cron_next(&cron, &utc, (struct baton_store_time){day}).ms, 2 * day);
	assert_int_equal(cron_next(&cron, &utc, (struct baton_store_time){-1001}).ms, 0);
}

static void beyond_the_year_9999_there_is_none(void **state)
{
	(void)state;
	struct zone utc = ZONE_UTC;
	static const char *const texts[] = {"0 0 * * *", "0 * * * *", "0 0 29 2 *"};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct cron cron = cron_of(texts[i]);
		struct baton_store_time last = moment("9999-12-31 23:00");
		struct baton_store_time never = BATON_STORE_TIME_NEVER;
		assert_int_equal(cron_next(&cron, &utc, last).ms, INT64_MAX);
		assert_int_equal(cron_next(&cron, &utc, never).ms, INT64_MAX);
		never.ms--;
		assert_int_equal(cron_next(&cron, &utc, never).ms, INT64_MAX);
		struct baton_store_time first = {INT64_MIN};
		int64_t ms = cron_next(&cron, &utc, first).ms;
		assert_in_range(ms - moment("0000-01-01 00:00").ms, 1, INT64_C(59) * 86400000);
	}
	struct cron cron = cron_of("59 59 23 31 12 *");
	assert_int_equal(cron_next(&cron, &utc, moment("9999-01-01 00:00")).ms,
	                 moment("9999-12-31 23:59:59").ms);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ticks_follow_the_fields),
		cmocka_unit_test(rare_days_are_found_across_2100),
		cmocka_unit_test(a_fixed_time_in_a_gap_is_once_at_its_end),
		cmocka_unit_test(a_fixed_time_that_is_repeated_is_once_at_the_first),
		cmocka_unit_test(all_hours_follow_the_clock_on_the_wall),
		cmocka_unit_test(a_tick_is_strictly_after),
		cmocka_unit_test(beyond_the_year_9999_there_is_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
