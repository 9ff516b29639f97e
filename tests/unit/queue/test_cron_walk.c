/* Ticks of random schedules against a walk over every minute, or second, on the C library's clock.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "queue/cron.h"
#include "support/harness.h"
#include "support/rng.h"
#include "support/soak.h"
#include "zones.h"

#define HOUR_S 3600
#define DAY_S 86400

/* Longer than a clock is ever put forward or back. */
#define BEFORE_S (3 * DAY_S)

/* In the order of an expression. */
enum {
	SECOND,
	MINUTE,
	HOUR,
	DAY,
	MONTH,
	WEEKDAY,
	FIELDS
};
static const int least[FIELDS] = {0, 0, 0, 1, 1, 0};
static const int most[FIELDS] = {59, 59, 23, 31, 12, 7};

/* An expression that was made up together with what it means. */
struct schedule {
	char text[512];
	size_t len;
	bool has[FIELDS][60];
	bool star[FIELDS];
	bool all_hours;
	bool by_second;
};

__attribute__((format(printf, 2, 3))) static void say(struct schedule *s, const char *format, ...)
{
	size_t room = sizeof s->text - s->len;
	va_list args;
	va_start(args, format);
	int len = vsnprintf(s->text + s->len, room, format, args);
	va_end(args);
	assert_true(len > 0 && (size_t)len < room);
	s->len += (size_t)len;
}

static void mean(struct schedule *s, int field, int low, int high, int step)
{
	for (int n = low; n <= high; n += step)
		s->has[field][field == WEEKDAY ? n % 7 : n] = true;
}

static void make_item(struct schedule *s, struct rng *rng, int field)
{
	int values = most[field] - least[field] + 1;
	int low = least[field] + (int)rng_below(rng, (uint64_t)values);
	uint64_t above = (uint64_t)(most[field] - low);
	int high = low + (int)rng_below(rng, above + 1);
	int step = 1 + (int)rng_below(rng, (uint64_t)most[field]);
	switch (rng_below(rng, 4)) {
	case 0:
		say(s, "*/%d", step);
		mean(s, field, least[field], most[field], step);
		break;
	case 1:
		say(s, "%d-%d", low, high);
		mean(s, field, low, high, 1);
		break;
	case 2:
		say(s, "%d-%d/%d", low, high, step);
		mean(s, field, low, high, step);
		break;
	default:
		say(s, "%d", low);
		mean(s, field, low, low, 1);
	}
}

static void make_field(struct schedule *s, struct rng *rng, int field)
{
	size_t begin = s->len;
	/* Days and months mostly do not matter, so that the walk ends soon. */
	if (rng_below(rng, field >= DAY ? 4 : 2) != 0) {
		say(s, "*");
		mean(s, field, least[field], most[field], 1);
	} else {
		make_item(s, rng, field);
		for (uint64_t more = rng_below(rng, 3); more > 0; more--) {
			say(s, ",");
			make_item(s, rng, field);
		}
	}
	s->star[field] = s->text[begin] == '*';
	say(s, " ");
}

static struct schedule make_schedule(struct rng *rng)
{
	struct schedule s = {.by_second = rng_below(rng, 4) == 0, .all_hours = true};
	s.has[SECOND][0] = !s.by_second;
	for (int field = s.by_second ? SECOND : MINUTE; field < FIELDS; field++)
		make_field(&s, rng, field);
	for (int hour = 0; hour < 24; hour++)
		s.all_hours = s.all_hours && s.has[HOUR][hour];
	return s;
}

static bool fits(const struct schedule *s, int64_t local_s)
{
	struct tm tm;
	time_t t = local_s;
	assert_non_null(gmtime_r(&t, &tm));
	bool day = s->has[DAY][tm.tm_mday];
	bool weekday = s->has[WEEKDAY][tm.tm_wday];
	bool either = !s->star[DAY] && !s->star[WEEKDAY];
	return s->has[SECOND][tm.tm_sec] && s->has[MINUTE][tm.tm_min] && s->has[HOUR][tm.tm_hour] &&
	       s->has[MONTH][tm.tm_mon + 1] && (either ? day || weekday : day && weekday);
}

static int64_t local_of(int64_t utc_s)
{
	struct tm tm;
	time_t t = utc_s;
	assert_non_null(localtime_r(&t, &tm));
	return utc_s + tm.tm_gmtoff;
}

/* The highest local time that was shown before `until_s`, which is a whole minute. Within a minute
 * no clock is changed. */
static int64_t highest_before(int64_t until_s, int64_t step)
{
	int64_t highest = INT64_MIN;
	for (int64_t t = until_s - BEFORE_S; t < until_s; t += 60) {
		int64_t local = local_of(t + 60 - step);
		highest = local > highest ? local : highest;
	}
	return highest;
}

/* The first tick after `after_s` and before `end_s`; `end_s` if there is none. */
static int64_t walk(const struct schedule *s, int64_t after_s, int64_t end_s)
{
	int64_t step = s->by_second ? 1 : 60;
	int64_t begin_s = after_s / 60 * 60;
	int64_t highest = highest_before(begin_s, step);
	for (int64_t t = begin_s; t < end_s; t += step) {
		int64_t local = local_of(t);
		bool tick = s->all_hours && t > after_s && fits(s, local);
		for (; highest < local; highest += step)
			tick = tick || (!s->all_hours && t > after_s && fits(s, highest + step));
		if (tick)
			return t;
	}
	return end_s;
}

static void compare(const struct schedule *s, const struct zone *zone, int64_t after_s)
{
	struct cron cron;
	char after[32], found[32], wanted[32];
	if (cron_parse(baton_str_z(s->text), &cron) != BATON_OK) {
		if (strstr(baton_err_detail(), "it never happens") == NULL)
			fail_msg("%s", baton_err_detail());
		return;
	}
	int64_t end_s = after_s / 60 * 60 + (s->by_second ? 4 * HOUR_S : 10 * DAY_S);
	int64_t tick_s = walk(s, after_s, end_s);
	struct baton_store_time next =
		cron_next(&cron, zone, (struct baton_store_time){after_s * 1000});
	if (tick_s < end_s ? next.ms != tick_s * 1000 : next.ms < end_s * 1000)
		fail_msg("%s after %s: %s instead of %s", s->text, seconds_print(after_s, after),
		         seconds_print(next.ms / 1000, found), seconds_print(tick_s, wanted));
}

/* Mostly shortly before or after the clocks change. */
static int64_t some_moment(struct rng *rng, const struct zone *zone)
{
	int64_t first = seconds_of("1995-01-01 00:00");
	int64_t t = first + (int64_t)rng_below(rng, 60 * 365 * (uint64_t)DAY_S);
	int64_t change_s = zone_at(zone, t).end_s;
	if (change_s == INT64_MAX || rng_below(rng, 4) == 0)
		return t;
	return change_s - 2 * HOUR_S + (int64_t)rng_below(rng, 4 * HOUR_S);
}

static void ticks_are_those_of_a_walk_over_every_minute(void **state)
{
	(void)state;
	static const char *const names[] = {
		"Africa/Casablanca", "America/Havana",      "America/New_York", "America/St_Johns",
		"Asia/Kolkata",      "Australia/Lord_Howe", "Europe/Berlin",    "Pacific/Apia",
		"Antarctica/Troll",  "America/Sao_Paulo",   "Europe/Dublin",    "UTC",
	};
	struct rng rng = rng_seed_from_env();
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct zone_data data;
		zone_data_init(&data, names[i]);
		print_message("# %s\n", names[i]);
		for (unsigned n = soak_scale(40, 2000); n > 0; n--) {
			struct schedule s = make_schedule(&rng);
			compare(&s, &data.zone, some_moment(&rng, &data.zone));
		}
		zone_data_done(&data);
	}
}

/* The days around the one that Apia skipped, all of them. */
static void ticks_across_a_skipped_day_are_those_of_a_walk(void **state)
{
	(void)state;
	struct rng rng = rng_seed_from_env();
	struct zone_data data;
	zone_data_init(&data, "Pacific/Apia");
	int64_t first = seconds_of("2011-12-29 00:00");
	for (unsigned n = soak_scale(50, 5000); n > 0; n--) {
		struct schedule s = make_schedule(&rng);
		compare(&s, &data.zone, first + (int64_t)rng_below(&rng, 2 * DAY_S));
	}
	zone_data_done(&data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ticks_are_those_of_a_walk_over_every_minute),
		cmocka_unit_test(ticks_across_a_skipped_day_are_those_of_a_walk),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
