/* A cron expression, and the local times at which it fits. */
#include "queue/cron.h"

#include <stdio.h>

#include "base/check.h"
#include "base/civil.h"
#include "base/fail.h"
#include "base/number.h"
#include "base/quote.h"

#define FIELDS_MAX 6
#define MINUTE_S 60
#define HOUR_S 3600

/* A leap day has the same day of the week again after 28 years, or after 40 when a year such as
 * 2100 is between them; everything else comes sooner. */
#define YEARS_UNTIL_FIT 40

#define SUNDAY_AGAIN 7

struct field {
	const char *name;
	int min;
	int max;
	const char *form;  /* what a value may be                */
	const char *names; /* of three letters, the first is for */
	int first_name;    /* this value                         */
};

/* In the order of an expression with seconds. */
enum {
	SECOND,
	MINUTE,
	HOUR,
	DAY,
	MONTH,
	WEEKDAY
};
static const struct field fields[FIELDS_MAX] = {
	[SECOND] = {"second", 0, 59, "0 to 59", "", 0},
	[MINUTE] = {"minute", 0, 59, "0 to 59", "", 0},
	[HOUR] = {"hour", 0, 23, "0 to 23", "", 0},
	[DAY] = {"day of month", 1, 31, "1 to 31", "", 0},
	[MONTH] = {"month", 1, 12, "1 to 12, JAN to DEC", "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC",
                   1},
	[WEEKDAY] = {"day of week", 0, 7, "0 to 7, SUN to SAT", "SUNMONTUEWEDTHUFRISAT", 0},
};

/* A part of an expression, and where it stands. */
struct part {
	struct baton_str all;
	const struct field *field;
	struct baton_str text;
};

static struct part part_of(const struct part *p, struct baton_str text)
{
	return (struct part){p->all, p->field, text};
}

static enum baton_err refuse(const struct part *p, const char *why)
{
	char all[QUOTE_TEXT], text[QUOTE_TEXT];
	return fail(BATON_INVALID,
	            "%s is no schedule: in the field %s (%s) %s %s; *, numbers, ranges such as "
	            "%d-%d, steps such as */2, and lists of these are allowed",
	            quote(p->all, all), p->field->name, p->field->form, quote(p->text, text), why,
	            p->field->min, p->field->max);
}

/* Cuts what stands before the first `end` off *rest, and `end` too. False: there is none, and
 * all of it is taken. */
static bool split(struct baton_str *rest, char end, struct baton_str *ret)
{
	const char *at = rest->len > 0 ? memchr(rest->ptr, end, rest->len) : NULL;
	*ret = *rest;
	if (at == NULL) {
		*rest = (struct baton_str){NULL, 0};
		return false;
	}
	ret->len = (size_t)(at - rest->ptr);
	*rest = (struct baton_str){at + 1, rest->len - ret->len - 1};
	return true;
}

/* A number, which people begin with zeros. */
static bool read_number(struct baton_str text, int max, int *ret)
{
	uint64_t n;
	while (text.len > 1 && text.ptr[0] == '0')
		text = (struct baton_str){text.ptr + 1, text.len - 1};
	if (!number_parse(text, (uint64_t)max, &n))
		return false;
	*ret = (int)n;
	return true;
}

/* Whether three letters are those of the name, in capitals or not. */
static bool is_name(const char *text, const char *name)
{
	const int small = 'a' - 'A'; /* the bit in which they differ */
	return (text[0] | small) == (name[0] | small) && (text[1] | small) == (name[1] | small) &&
	       (text[2] | small) == (name[2] | small);
}

static bool read_name(const struct field *f, struct baton_str text, int *ret)
{
	if (text.len != 3)
		return false;
	int n = f->first_name;
	for (const char *name = f->names; *name != '\0'; name += 3, n++) {
		if (is_name(text.ptr, name)) {
			*ret = n;
			return true;
		}
	}
	return false;
}

static enum baton_err read_value(const struct part *p, int *ret)
{
	int n = 0;
	bool is_value = read_name(p->field, p->text, &n) || read_number(p->text, p->field->max, &n);
	if (!is_value || n < p->field->min)
		return refuse(p, "is not among its values");
	*ret = n;
	return BATON_OK;
}

/* A stretch of values, of which every `step`th counts. */
struct range {
	int low;
	int high;
	int step;
};

static enum baton_err read_ends(const struct part *p, struct range *r)
{
	struct baton_str rest = p->text;
	struct baton_str first;
	bool is_range = split(&rest, '-', &first);
	struct part low = part_of(p, first);
	struct part high = part_of(p, is_range ? rest : first);
	enum baton_err e = read_value(&low, &r->low);
	if (e == BATON_OK)
		e = read_value(&high, &r->high);
	if (e != BATON_OK)
		return e;
	if (p->field == &fields[WEEKDAY] && r->high == 0 && r->low > 0)
		r->high = SUNDAY_AGAIN;
	return r->low <= r->high ? BATON_OK : refuse(p, "ends before it begins");
}

static enum baton_err read_step(const struct part *p, struct baton_str text, int *ret)
{
	char why[64];
	int step = 0;
	if (!read_number(text, p->field->max, &step) || step == 0) {
		snprintf(why, sizeof why, "has a step that is not 1 to %d", p->field->max);
		return refuse(p, why);
	}
	*ret = step;
	return BATON_OK;
}

static enum baton_err read_item(const struct part *p, uint64_t *set)
{
	struct baton_str rest = p->text;
	struct baton_str values;
	bool has_step = split(&rest, '/', &values);
	struct range r = {p->field->min, p->field->max, 1};
	bool is_star = baton_str_equal(values, BATON_STR("*"));
	bool is_range = is_star || memchr(values.ptr, '-', values.len) != NULL;
	struct part ends = part_of(p, values);
	enum baton_err e = is_star ? BATON_OK : read_ends(&ends, &r);
	if (e == BATON_OK && has_step)
		e = is_range ? read_step(p, rest, &r.step)
		             : refuse(p, "has a step without a range");
	if (e != BATON_OK)
		return e;
	for (int n = r.low; n <= r.high; n += r.step)
		*set |= UINT64_C(1) << n;
	return BATON_OK;
}

static enum baton_err read_field(const struct part *p, uint64_t *ret)
{
	struct baton_str rest = p->text;
	struct baton_str text;
	uint64_t set = 0;
	bool more = true;
	while (more) {
		more = split(&rest, ',', &text);
		struct part item = part_of(p, text);
		enum baton_err e = read_item(&item, &set);
		if (e != BATON_OK)
			return e;
	}
	*ret = set;
	return BATON_OK;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* The words of the text; those beyond FIELDS_MAX are only counted. */
static size_t split_words(struct baton_str text, struct baton_str words[FIELDS_MAX])
{
	size_t count = 0;
	for (size_t i = 0; i < text.len;) {
		size_t begin = i;
		while (i < text.len && !is_blank(text.ptr[i]))
			i++;
		if (i > begin) {
			if (count < FIELDS_MAX)
				words[count] = (struct baton_str){text.ptr + begin, i - begin};
			count++;
		} else {
			i++;
		}
	}
	return count;
}

struct nickname {
	struct baton_str name;
	struct baton_str meaning;
};

static enum baton_err expand(struct baton_str name, struct baton_str *ret)
{
	static const struct nickname nicknames[] = {
		{{"@hourly", 7}, {"0 * * * *", 9}},   {{"@daily", 6}, {"0 0 * * *", 9}},
		{{"@midnight", 9}, {"0 0 * * *", 9}}, {{"@weekly", 7}, {"0 0 * * 0", 9}},
		{{"@monthly", 8}, {"0 0 1 * *", 9}},  {{"@yearly", 7}, {"0 0 1 1 *", 9}},
		{{"@annually", 9}, {"0 0 1 1 *", 9}},
	};
	for (size_t i = 0; i < sizeof nicknames / sizeof *nicknames; i++) {
		if (baton_str_equal(name, nicknames[i].name)) {
			*ret = nicknames[i].meaning;
			return BATON_OK;
		}
	}
	char shown[QUOTE_TEXT];
	return fail(BATON_INVALID,
	            "%s is no schedule: there are @hourly, @daily, @midnight, @weekly, @monthly, "
	            "@yearly and @annually",
	            quote(name, shown));
}

static bool has_star(struct baton_str field)
{
	return field.ptr[0] == '*';
}

static enum baton_err sets_read(struct baton_str all, const struct baton_str words[FIELDS_MAX],
                                uint64_t sets[FIELDS_MAX])
{
	for (size_t i = 0; i < FIELDS_MAX; i++) {
		struct part p = {all, &fields[i], words[i]};
		enum baton_err e = read_field(&p, &sets[i]);
		if (e != BATON_OK)
			return e;
	}
	return BATON_OK;
}

/* The least number of the set that is at least `from`, which is at most 63; -1: there is none. */
static int set_next(uint64_t set, int from)
{
	uint64_t rest = set >> from;
	return rest == 0 ? -1 : from + __builtin_ctzll(rest);
}

static int set_first(uint64_t set)
{
	return __builtin_ctzll(set);
}

/* Whether there is a day that fits. Every date falls on every weekday some time. */
static bool fits_ever(const struct cron *cron)
{
	const int leap_year = 2000;
	for (int month = 1; month <= 12; month++) {
		bool within = set_first(cron->days) <= civil_month_days(leap_year, month);
		if (within && (cron->months >> month & 1) != 0)
			return true;
	}
	return cron->any_day_does;
}

static enum baton_err words_read(struct baton_str all, const struct baton_str words[FIELDS_MAX],
                                 struct cron *ret)
{
	uint64_t sets[FIELDS_MAX];
	enum baton_err e = sets_read(all, words, sets);
	if (e != BATON_OK)
		return e;
	uint64_t weekdays = sets[WEEKDAY] | sets[WEEKDAY] >> SUNDAY_AGAIN;
	struct cron cron = {
		.seconds = sets[SECOND],
		.minutes = sets[MINUTE],
		.hours = (uint32_t)sets[HOUR],
		.days = (uint32_t)sets[DAY],
		.months = (uint16_t)sets[MONTH],
		.weekdays = (uint8_t)(weekdays & 0x7f),
		.any_day_does = !has_star(words[DAY]) && !has_star(words[WEEKDAY]),
	};
	char shown[QUOTE_TEXT], day[QUOTE_TEXT], month[QUOTE_TEXT];
	if (!fits_ever(&cron))
		return fail(
			BATON_INVALID,
			"%s is no schedule: it never happens, because the day of month %s is in "
			"no month of %s",
			quote(all, shown), quote(words[DAY], day), quote(words[MONTH], month));
	*ret = cron;
	return BATON_OK;
}

enum baton_err cron_parse(struct baton_str text, struct cron *ret)
{
	enum baton_err e =
		baton_str_make("cron expression", text.ptr, text.len, CRON_TEXT_MAX, &text);
	if (e != BATON_OK)
		return e;
	/* The seconds stand aside until it is known whether they are given. */
	struct baton_str words[1 + FIELDS_MAX] = {BATON_STR("0")};
	struct baton_str all = text;
	size_t count = split_words(text, words + 1);
	if (count == 1 && words[1].ptr[0] == '@') {
		e = expand(words[1], &text);
		if (e != BATON_OK)
			return e;
		count = split_words(text, words + 1);
	}
	char shown[QUOTE_TEXT];
	if (count != FIELDS_MAX && count != FIELDS_MAX - 1)
		return fail(BATON_INVALID,
		            "%s is no schedule: it has %zu fields, but 5 (minute, hour, day of "
		            "month, month, day of week) or 6 (second first) are needed",
		            quote(all, shown), count);
	return words_read(all, count == FIELDS_MAX ? words + 1 : words, ret);
}

/* The first time of a day at or after `time_s` that fits; -1: there is none. */
static int time_fit(const struct cron *cron, int time_s)
{
	int h = time_s / HOUR_S;
	int m = time_s / MINUTE_S % 60;
	int second = set_next(cron->seconds, time_s % MINUTE_S);
	int minute = set_next(cron->minutes, m + (second < 0));
	int hour = set_next(cron->hours, h + (minute < 0));
	if (hour < 0)
		return -1;
	if (hour > h)
		minute = set_first(cron->minutes);
	if (hour > h || minute > m)
		second = set_first(cron->seconds);
	return hour * HOUR_S + minute * MINUTE_S + second;
}

/* Which days of a month fit: bit n is set for day n. */
static uint64_t month_fit(const struct cron *cron, int64_t year, int month)
{
	int first = civil_weekday(civil_days(year, month, 1));
	uint64_t two_weeks = (uint64_t)cron->weekdays << 7 | cron->weekdays;
	uint64_t by_weekday = 0; /* the week that begins as the month does, five times */
	for (int i = 0; i < 5; i++)
		by_weekday |= (two_weeks >> first & 0x7f) << (1 + 7 * i);
	uint64_t there = (UINT64_C(2) << civil_month_days(year, month)) - 2;
	return there & (cron->any_day_does ? cron->days | by_weekday : cron->days & by_weekday);
}

/* The first day at or after `from` that fits. */
static int64_t day_fit(const struct cron *cron, int64_t from)
{
	struct civil date = civil_of(from);
	int day = date.day;
	int month = date.month;
	for (int64_t year = date.year;; year++) {
		CHECK(year <= date.year + YEARS_UNTIL_FIT);
		for (; (month = set_next(cron->months, month)) > 0; month++) {
			if (year != date.year || month != date.month)
				day = 1;
			day = set_next(month_fit(cron, year, month), day);
			if (day > 0)
				return civil_days(year, month, day);
		}
		month = 1;
	}
}

int64_t cron_fit(const struct cron *cron, int64_t local_s)
{
	int64_t from = civil_floor(local_s, CIVIL_DAY_S);
	int time_s = time_fit(cron, (int)(local_s - from * CIVIL_DAY_S));
	int64_t day = day_fit(cron, time_s < 0 ? from + 1 : from);
	if (day > from)
		time_s = time_fit(cron, 0);
	return day * CIVIL_DAY_S + time_s;
}
