/* Cron expressions as people write them. */
#include <string.h>

#include "queue/cron.h"
#include "support/harness.h"

#define ALL_60 ((UINT64_C(1) << 60) - 1)
#define ALL_HOURS 0xffffffu
#define ALL_DAYS 0xfffffffeu
#define ALL_MONTHS 0x1ffe
#define ALL_WEEK 0x7f
#define BIT(n) (UINT64_C(1) << (n))

struct sets_case {
	const char *text;
	struct cron cron;
};

static void assert_sets(const struct sets_case *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct cron c;
		const struct cron *w = &cases[i].cron;
		if (cron_parse(baton_str_z(cases[i].text), &c) != BATON_OK)
			fail_msg("%s", baton_err_detail());
		if (c.seconds != w->seconds || c.minutes != w->minutes || c.hours != w->hours ||
		    c.days != w->days || c.months != w->months || c.weekdays != w->weekdays ||
		    c.any_day_does != w->any_day_does)
			fail_msg("%s: %llx %llx %x %x %x %x %d", cases[i].text,
			         (unsigned long long)c.seconds, (unsigned long long)c.minutes,
			         c.hours, c.days, c.months, c.weekdays, c.any_day_does);
	}
}

static void every_form_of_a_field_is_read(void **state)
{
	(void)state;
	static const struct sets_case cases[] = {
		{"* * * * *", {1, ALL_60, ALL_HOURS, ALL_DAYS, ALL_MONTHS, ALL_WEEK, false}},
		{"* * * * * *", {ALL_60, ALL_60, ALL_HOURS, ALL_DAYS, ALL_MONTHS, ALL_WEEK, false}},
		{"30 5 4 * * *", {BIT(30), BIT(5), BIT(4), ALL_DAYS, ALL_MONTHS, ALL_WEEK, false}},
		{"  5\t4  * * *  ", {1, BIT(5), BIT(4), ALL_DAYS, ALL_MONTHS, ALL_WEEK, false}},
		{"05 004 * * *", {1, BIT(5), BIT(4), ALL_DAYS, ALL_MONTHS, ALL_WEEK, false}},
		{"0,59 0,23 1,31 1,12 *",
	         {1, BIT(0) | BIT(59), BIT(0) | BIT(23), BIT(1) | BIT(31), BIT(1) | BIT(12),
	          ALL_WEEK, false}},
		{"*/15 * * * *",
	         {1, BIT(0) | BIT(15) | BIT(30) | BIT(45), ALL_HOURS, ALL_DAYS, ALL_MONTHS,
	          ALL_WEEK, false}},
		{"10-20/5,59,12 */23 */31 */12 */7",
	         {1, BIT(10) | BIT(15) | BIT(20) | BIT(59) | BIT(12), BIT(0) | BIT(23), BIT(1),
	          BIT(1), BIT(0), false}},
		{"10-10 9-17 * * *", {1, BIT(10), 0x3fe00, ALL_DAYS, ALL_MONTHS, ALL_WEEK, false}},
	};
	assert_sets(cases, sizeof cases / sizeof *cases);
}

static void months_and_days_have_names(void **state)
{
	(void)state;
	static const struct sets_case cases[] = {
		{"0 0 * JAN,feb,Mar,aPr,MAY,JUN *", {1, 1, 1, ALL_DAYS, 0x7e, ALL_WEEK, false}},
		{"0 0 * JUL,AUG,SEP,OCT,NOV,DEC *", {1, 1, 1, ALL_DAYS, 0x1f80, ALL_WEEK, false}},
		{"0 0 * feb-8/3 *", {1, 1, 1, ALL_DAYS, BIT(2) | BIT(5) | BIT(8), ALL_WEEK, false}},
		{"0 0 * * SUN,tue,thu,sat", {1, 1, 1, ALL_DAYS, ALL_MONTHS, 0x55, false}},
		{"0 0 * * MON-FRI", {1, 1, 1, ALL_DAYS, ALL_MONTHS, 0x3e, false}},
		{"0 0 * * wed", {1, 1, 1, ALL_DAYS, ALL_MONTHS, BIT(3), false}},
	};
	assert_sets(cases, sizeof cases / sizeof *cases);
}

static void sunday_is_0_and_7_and_ends_a_week(void **state)
{
	(void)state;
	static const struct sets_case cases[] = {
		{"0 0 * * 0", {1, 1, 1, ALL_DAYS, ALL_MONTHS, 1, false}},
		{"0 0 * * 7", {1, 1, 1, ALL_DAYS, ALL_MONTHS, 1, false}},
		{"0 0 * * 5-7", {1, 1, 1, ALL_DAYS, ALL_MONTHS, 0x61, false}},
		{"0 0 * * 0-7", {1, 1, 1, ALL_DAYS, ALL_MONTHS, ALL_WEEK, false}},
		{"0 0 * * MON-SUN", {1, 1, 1, ALL_DAYS, ALL_MONTHS, ALL_WEEK, false}},
		{"0 0 * * 6-0", {1, 1, 1, ALL_DAYS, ALL_MONTHS, 0x41, false}},
		{"0 0 * * SUN-MON", {1, 1, 1, ALL_DAYS, ALL_MONTHS, 0x3, false}},
		{"0 0 * * SUN-SUN", {1, 1, 1, ALL_DAYS, ALL_MONTHS, 0x1, false}},
	};
	assert_sets(cases, sizeof cases / sizeof *cases);
}

static void either_day_does_if_neither_field_begins_with_a_star(void **state)
{
	(void)state;
	static const struct sets_case cases[] = {
		{"0 0 13 * FRI", {1, 1, 1, BIT(13), ALL_MONTHS, BIT(5), true}},
		{"0 0 1-31 * 1", {1, 1, 1, ALL_DAYS, ALL_MONTHS, BIT(1), true}},
		{"0 0 */30 * 1", {1, 1, 1, BIT(1) | BIT(31), ALL_MONTHS, BIT(1), false}},
		{"0 0 13 * *", {1, 1, 1, BIT(13), ALL_MONTHS, ALL_WEEK, false}},
		{"0 0 13 * */7", {1, 1, 1, BIT(13), ALL_MONTHS, BIT(0), false}},
	};
	assert_sets(cases, sizeof cases / sizeof *cases);
}

static void nicknames_stand_for_expressions(void **state)
{
	(void)state;
	static const struct sets_case cases[] = {
		{"@hourly", {1, 1, ALL_HOURS, ALL_DAYS, ALL_MONTHS, ALL_WEEK, false}},
		{"@daily", {1, 1, 1, ALL_DAYS, ALL_MONTHS, ALL_WEEK, false}},
		{"@midnight", {1, 1, 1, ALL_DAYS, ALL_MONTHS, ALL_WEEK, false}},
		{" @weekly ", {1, 1, 1, ALL_DAYS, ALL_MONTHS, BIT(0), false}},
		{"@monthly", {1, 1, 1, BIT(1), ALL_MONTHS, ALL_WEEK, false}},
		{"@yearly", {1, 1, 1, BIT(1), BIT(1), ALL_WEEK, false}},
		{"@annually", {1, 1, 1, BIT(1), BIT(1), ALL_WEEK, false}},
	};
	assert_sets(cases, sizeof cases / sizeof *cases);
}

struct refusal {
	const char *text;
	const char *why;
};

static void assert_refused(const struct refusal *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct cron c = {.hours = 77};
		assert_int_equal(cron_parse(baton_str_z(cases[i].text), &c), BATON_INVALID);
		assert_int_equal(c.hours, 77);
		if (strstr(baton_err_detail(), cases[i].why) == NULL)
			fail_msg("%s: %s", cases[i].text, baton_err_detail());
	}
}

static void a_refusal_names_the_field_the_value_and_the_limits(void **state)
{
	(void)state;
	static const struct refusal cases[] = {
		{"60 * * * * *",
	         "\"60 * * * * *\" is no schedule: in the field second (0 to 59) \"60\" is "
	         "not among its values; *, numbers, ranges such as 0-59"},
		{"60 * * * *", "in the field minute (0 to 59) \"60\" is not among its values"},
		{"* 24 * * *", "in the field hour (0 to 23) \"24\" is not"},
		{"* * 0 * *", "in the field day of month (1 to 31) \"0\" is not"},
		{"* * 32 * *", "in the field day of month (1 to 31) \"32\" is not"},
		{"* * * 13 *", "in the field month (1 to 12, JAN to DEC) \"13\" is not"},
		{"* * * 0 *", "in the field month (1 to 12, JAN to DEC) \"0\" is not"},
		{"* * * MON *", "in the field month (1 to 12, JAN to DEC) \"MON\" is not"},
		{"* * * * 8", "in the field day of week (0 to 7, SUN to SAT) \"8\" is not"},
		{"* * * * JAN", "\"JAN\" is not"},
		{"* * * * MONDAY", "\"MONDAY\" is not"},
		{"* * L * *", "\"L\" is not"},
		{"* * ? * *", "\"?\" is not"},
		{"* * 15W * *", "\"15W\" is not"},
		{"* * * * 5#2", "\"5#2\" is not"},
		{"-1 * * * *", "\"\" is not"},
		{"1- * * * *", "\"\" is not"},
		{"1-2-3 * * * *", "\"2-3\" is not"},
		{"+1 * * * *", "\"+1\" is not"},
		{"1, * * * *", "\"\" is not"},
		{",1 * * * *", "\"\" is not"},
		{"** * * * *", "\"**\" is not"},
		{"*-5 * * * *", "\"*\" is not"},
		{"99999999999999999999 * * * *", "\"99999999999999999999\" is not"},
		{"5-2 * * * *", "\"5-2\" ends before it begins"},
		{"* * * * FRI-MON", "\"FRI-MON\" ends before it begins"},
		{"5/10 * * * *", "\"5/10\" has a step without a range"},
		{"*/0 * * * *", "\"*/0\" has a step that is not 1 to 59"},
		{"*/60 * * * *", "\"*/60\" has a step that is not 1 to 59;"},
		{"*/ * * * *", "\"*/\" has a step that is not 1 to 59"},
		{"*/5/5 * * * *", "\"*/5/5\" has a step that is not 1 to 59"},
		{"*/JAN * * * *", "\"*/JAN\" has a step that is not 1 to 59"},
	};
	assert_refused(cases, sizeof cases / sizeof *cases);
}

static void what_has_another_form_is_refused(void **state)
{
	(void)state;
	static const struct refusal cases[] = {
		{"", "the cron expression is empty: 1 to 1024 bytes are allowed"},
		{"  ", "it has 0 fields, but 5"},
		{"* * * *", "it has 4 fields, but 5"},
		{"* * * * * * *", "it has 7 fields, but 5"},
		{"* * * *\n*", "it has 4 fields, but 5"},
		{"@reboot", "\"@reboot\" is no schedule: there are @hourly, @daily"},
		{"@", "\"@\" is no schedule: there are @hourly"},
		{"@Daily", "\"@Daily\" is no schedule: there are"},
		{"@daily *", "it has 2 fields, but 5"},
	};
	assert_refused(cases, sizeof cases / sizeof *cases);
	char text[CRON_TEXT_MAX + 1];
	memset(text, ' ', sizeof text);
	memcpy(text, "* * * * *", 9);
	struct cron c;
	assert_int_equal(cron_parse((struct baton_str){text, CRON_TEXT_MAX}, &c), BATON_OK);
	assert_int_equal(cron_parse((struct baton_str){text, sizeof text}, &c), BATON_INVALID);
}

static void a_schedule_that_never_happens_is_refused(void **state)
{
	(void)state;
	static const struct refusal cases[] = {
		{"0 0 30 2 *",
	         "it never happens, because the day of month \"30\" is in no month of "
	         "\"2\""},
		{"0 0 31 4,6,9,11 *", "it never happens"},
		{"0 0 30,31 FEB */2", "it never happens"},
	};
	assert_refused(cases, sizeof cases / sizeof *cases);
	static const struct sets_case happens[] = {
		{"0 0 29 2 *", {1, 1, 1, BIT(29), BIT(2), ALL_WEEK, false}},
		{"0 0 30 2 1", {1, 1, 1, BIT(30), BIT(2), BIT(1), true}},
		{"0 0 31 11,12 *", {1, 1, 1, BIT(31), BIT(11) | BIT(12), ALL_WEEK, false}},
	};
	assert_sets(happens, sizeof happens / sizeof *happens);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_form_of_a_field_is_read),
		cmocka_unit_test(months_and_days_have_names),
		cmocka_unit_test(sunday_is_0_and_7_and_ends_a_week),
		cmocka_unit_test(either_day_does_if_neither_field_begins_with_a_star),
		cmocka_unit_test(nicknames_stand_for_expressions),
		cmocka_unit_test(a_refusal_names_the_field_the_value_and_the_limits),
		cmocka_unit_test(what_has_another_form_is_refused),
		cmocka_unit_test(a_schedule_that_never_happens_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
