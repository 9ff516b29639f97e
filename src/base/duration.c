/* A span of time as people write it. */
#include <baton/time.h>

#include <inttypes.h>
#include <stdio.h>

#include "base/fail.h"
#include "base/quote.h"

#define US INT64_C(1000)
#define MS (1000 * US)
#define SEC (1000 * MS)
#define MIN (60 * SEC)
#define HOUR (60 * MIN)
#define DAY (24 * HOUR)
#define WEEK (7 * DAY)
#define MONTH (2629800 * SEC) /* a twelfth of a year */
#define YEAR (31557600 * SEC) /* 365.25 days         */

#define LONGEST_NS ((uint64_t)INT64_MAX - 1)

struct unit {
	const char *name;
	int64_t ns;
};

/* Those of systemd.time(7), where capital M is a month and small m a minute. */
static const struct unit units[] = {
	{"ns", 1},       {"nsec", 1},      {"us", US},        {"usec", US},
	{"\u00b5s", US}, /* the micro sign       */
	{"\u03bcs", US}, /* the Greek letter     */
	{"ms", MS},      {"msec", MS},     {"s", SEC},        {"sec", SEC},
	{"second", SEC}, {"seconds", SEC}, {"m", MIN},        {"min", MIN},
	{"minute", MIN}, {"minutes", MIN}, {"h", HOUR},       {"hr", HOUR},
	{"hour", HOUR},  {"hours", HOUR},  {"d", DAY},        {"day", DAY},
	{"days", DAY},   {"w", WEEK},      {"week", WEEK},    {"weeks", WEEK},
	{"M", MONTH},    {"month", MONTH}, {"months", MONTH}, {"y", YEAR},
	{"year", YEAR},  {"years", YEAR},
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* A text that is read from the left. */
struct scan {
	struct baton_str all;
	struct baton_str rest;
};

/* A number as it was written, such as "1", "1.5" or ".5". */
struct decimal {
	struct baton_str text;
	struct baton_str whole;
	struct baton_str fraction;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t';
}

static bool is_word(char c)
{
	return !is_digit(c) && !is_space(c) && c != '.';
}

/* The longest beginning of the rest whose bytes are all `of` one kind. */
static struct baton_str take_while(struct scan *scan, bool (*of)(char c))
{
	size_t n = 0;
	while (n < scan->rest.len && of(scan->rest.ptr[n]))
		n++;
	struct baton_str taken = {scan->rest.ptr, n};
	if (n > 0) /* an empty text may be NULL, to which nothing can be added */
		scan->rest = (struct baton_str){scan->rest.ptr + n, scan->rest.len - n};
	return taken;
}

static enum baton_err take_decimal(struct scan *scan, struct decimal *ret)
{
	struct baton_str from = scan->rest;
	struct decimal d = {.whole = take_while(scan, is_digit)};
	bool point = scan->rest.len > 0 && scan->rest.ptr[0] == '.';
	if (point) {
		scan->rest = (struct baton_str){scan->rest.ptr + 1, scan->rest.len - 1};
		d.fraction = take_while(scan, is_digit);
	}
	if (point ? d.fraction.len == 0 : d.whole.len == 0) {
		char all[QUOTE_TEXT], here[QUOTE_TEXT];
		return fail(BATON_INVALID,
		            "%s is no time span: at %s a number is needed, such as 90 or 1.5, "
		            "without a sign",
		            quote(scan->all, all), quote(from, here));
	}
	d.text = (struct baton_str){from.ptr, from.len - scan->rest.len};
	*ret = d;
	return BATON_OK;
}

static enum baton_err unit_find(const struct scan *scan, struct baton_str name, int64_t *ret_ns)
{
	for (size_t i = 0; i < COUNT(units); i++) {
		if (baton_str_equal(name, baton_str_z(units[i].name))) {
			*ret_ns = units[i].ns;
			return BATON_OK;
		}
	}
	char all[QUOTE_TEXT], word[QUOTE_TEXT];
	return fail(BATON_INVALID,
	            "%s is no time span: %s is no unit; there are ns, us, ms, s, min, h, d, w, M "
	            "(month) and y",
	            quote(scan->all, all), quote(name, word));
}

/* 0.<digits> of a unit. From the last digit to the first: floor((d1 + floor(rest / 10)) / 10) loses
 * nothing against one division at the end, and nothing here can overflow. What is finer than a
 * nanosecond is rounded up, so that no span shrinks, least of all to 0. */
static int64_t fraction_of(struct baton_str digits, int64_t unit_ns)
{
	int64_t ns = 0;
	bool inexact = false;
	for (size_t i = digits.len; i-- > 0;) {
		ns += (digits.ptr[i] - '0') * unit_ns;
		inexact = inexact || ns % 10 != 0;
		ns /= 10;
	}
	return ns + inexact;
}

/* Adds d units to *ns. False: beyond what a span can be. */
static bool add_span(uint64_t *ns, const struct decimal *d, int64_t unit_ns)
{
	uint64_t span = 0;
	for (size_t i = 0; i < d->whole.len; i++) {
		uint64_t digit = (uint64_t)(d->whole.ptr[i] - '0');
		if (__builtin_mul_overflow(span, 10, &span) ||
		    __builtin_add_overflow(span, digit, &span))
			return false;
	}
	uint64_t fraction = (uint64_t)fraction_of(d->fraction, unit_ns);
	return !__builtin_mul_overflow(span, (uint64_t)unit_ns, &span) &&
	       !__builtin_add_overflow(span, fraction, &span) &&
	       !__builtin_add_overflow(*ns, span, ns) && *ns <= LONGEST_NS;
}

static enum baton_err too_long(const struct scan *scan)
{
	char all[QUOTE_TEXT], longest[BATON_DURATION_TEXT];
	baton_duration_print((struct baton_duration){(int64_t)LONGEST_NS}, longest);
	return fail(BATON_INVALID, "%s is too long: at most %s are allowed, or infinity",
	            quote(scan->all, all), longest);
}

/* One number with its unit, and the spaces after it. */
static enum baton_err take_span(struct scan *scan, bool only, uint64_t *ns)
{
	struct decimal d;
	enum baton_err e = take_decimal(scan, &d);
	if (e != BATON_OK)
		return e;
	take_while(scan, is_space);
	struct baton_str name = take_while(scan, is_word);
	take_while(scan, is_space);

	int64_t unit_ns = SEC;
	if (name.len > 0) {
		e = unit_find(scan, name, &unit_ns);
		if (e != BATON_OK)
			return e;
	} else if (!only || scan->rest.len > 0) {
		char all[QUOTE_TEXT], number[QUOTE_TEXT];
		return fail(BATON_INVALID,
		            "%s is no time span: %s needs a unit; only a number on its own is in "
		            "seconds",
		            quote(scan->all, all), quote(d.text, number));
	}
	return add_span(ns, &d, unit_ns) ? BATON_OK : too_long(scan);
}

/* Whether the text is the word infinity, with or without spaces around it. */
static bool is_infinity(struct scan scan)
{
	struct baton_str word = take_while(&scan, is_word);
	take_while(&scan, is_space);
	return scan.rest.len == 0 && baton_str_equal(word, BATON_STR("infinity"));
}

enum baton_err baton_duration_parse(struct baton_str text, struct baton_duration *ret)
{
	struct scan scan = {.all = text, .rest = text};
	take_while(&scan, is_space);
	if (scan.rest.len == 0)
		return fail(BATON_INVALID, "a time span is empty: write a number and a unit, such "
		                           "as 90s or 1h 30min, or infinity");
	if (is_infinity(scan)) {
		*ret = BATON_DURATION_FOREVER;
		return BATON_OK;
	}
	uint64_t ns = 0;
	for (bool only = true; scan.rest.len > 0; only = false) {
		enum baton_err e = take_span(&scan, only, &ns);
		if (e != BATON_OK)
			return e;
	}
	*ret = (struct baton_duration){(int64_t)ns};
	return BATON_OK;
}

char *baton_duration_print(struct baton_duration d, char text[BATON_DURATION_TEXT])
{
	/* Days are the longest unit that people add up in their heads: 365d is no whole number of
	 * years, months or weeks. */
	static const struct unit shown[] = {
		{"d", DAY}, {"h", HOUR}, {"min", MIN}, {"s", SEC},
		{"ms", MS}, {"us", US},  {"ns", 1},
	};
	if (d.ns == BATON_DURATION_FOREVER.ns) {
		snprintf(text, BATON_DURATION_TEXT, "infinity");
		return text;
	}
	uint64_t left = d.ns < 0 ? -(uint64_t)d.ns : (uint64_t)d.ns;
	const char *gap = d.ns < 0 ? "-" : "";
	size_t len = (size_t)snprintf(text, BATON_DURATION_TEXT, "%s", left == 0 ? "0" : "");
	for (size_t i = 0; i < COUNT(shown); i++) {
		uint64_t n = left / (uint64_t)shown[i].ns;
		left %= (uint64_t)shown[i].ns;
		if (n == 0)
			continue;
		len += (size_t)snprintf(text + len, BATON_DURATION_TEXT - len, "%s%" PRIu64 "%s",
		                        gap, n, shown[i].name);
		gap = " ";
	}
	return text;
}
