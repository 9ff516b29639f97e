/* A time zone: how many seconds are added to UTC at which moments. */
#include "queue/zone.h"

#include <endian.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/check.h"
#include "base/fail.h"

#define HEADER_SIZE 44
#define TYPE_SIZE 6
#define TYPES_MAX 256
#define MOMENT_MAX (INT64_C(1) << 59)

/* What is asked about lies somewhat around the moments that callers ask about. */
#define ASKED_MAX (2 * MOMENT_MAX)

/* Longer than any two clocks of a zone can differ. */
#define SPREAD_S (ZONE_OFFSET_MAX_S - ZONE_OFFSET_MIN_S)

/* The counts of a block, in the order of the file. */
struct header {
	char version;
	uint32_t utc_marks;
	uint32_t standard_marks;
	uint32_t leaps;
	uint32_t changes;
	uint32_t types;
	uint32_t name_bytes;
};

static uint32_t read_32(const char *at)
{
	uint32_t n;
	memcpy(&n, at, sizeof n);
	return be32toh(n);
}

static int64_t read_moment(const char *at, size_t width)
{
	if (width == 4)
		return (int32_t)read_32(at);
	uint64_t n;
	memcpy(&n, at, sizeof n);
	return (int64_t)be64toh(n);
}

/* Cuts `len` bytes off the front of *rest. */
static bool take(struct baton_str *rest, uint64_t len, struct baton_str *ret)
{
	if (len > rest->len)
		return false;
	*ret = (struct baton_str){rest->ptr, (size_t)len};
	if (len > 0) /* an empty text may be NULL, to which nothing can be added */
		*rest = (struct baton_str){rest->ptr + len, rest->len - (size_t)len};
	return true;
}

static enum baton_err cut_off(const struct baton_str *rest)
{
	return fail(BATON_INVALID,
	            "a time zone file is cut off: %zu bytes are left where more are "
	            "needed; it has to be installed again",
	            rest->len);
}

static enum baton_err take_header(struct baton_str *rest, struct header *ret)
{
	struct baton_str h;
	if (rest->len < 4 || memcmp(rest->ptr, "TZif", 4) != 0)
		return fail(BATON_INVALID, "this is no time zone file: it has to begin with TZif");
	if (!take(rest, HEADER_SIZE, &h))
		return cut_off(rest);
	*ret = (struct header){
		.version = h.ptr[4],
		.utc_marks = read_32(h.ptr + 20),
		.standard_marks = read_32(h.ptr + 24),
		.leaps = read_32(h.ptr + 28),
		.changes = read_32(h.ptr + 32),
		.types = read_32(h.ptr + 36),
		.name_bytes = read_32(h.ptr + 40),
	};
	return BATON_OK;
}

/* A block without its header. The fields are 32 bits wide, so their sums and products fit. */
static uint64_t block_size(const struct header *h, size_t width)
{
	return (uint64_t)h->changes * (width + 1) + (uint64_t)h->types * TYPE_SIZE + h->name_bytes +
	       (uint64_t)h->leaps * (width + 4) + h->standard_marks + h->utc_marks;
}

static enum baton_err counts_check(const struct header *h)
{
	if (h->types < 1 || h->types > TYPES_MAX)
		return fail(BATON_INVALID,
		            "a time zone file has %" PRIu32 " types of time: 1 to %d are allowed",
		            h->types, TYPES_MAX);
	if (h->leaps > 0)
		return fail(BATON_INVALID,
		            "a time zone file has %" PRIu32
		            " leap seconds, which the store's clock "
		            "does not count: the zone of the same name without right/ is needed",
		            h->leaps);
	if ((h->utc_marks != 0 && h->utc_marks != h->types) ||
	    (h->standard_marks != 0 && h->standard_marks != h->types))
		return fail(BATON_INVALID,
		            "a time zone file has %" PRIu32 " and %" PRIu32 " marks of its %" PRIu32
		            " types: none or one for each are allowed",
		            h->utc_marks, h->standard_marks, h->types);
	return BATON_OK;
}

static size_t changes_of(const struct zone *zone)
{
	return zone->kinds.len;
}

static int64_t change_at(const struct zone *zone, size_t i)
{
	return read_moment(zone->changes.ptr + i * zone->width, zone->width);
}

static int32_t type_offset(const struct zone *zone, size_t type)
{
	return (int32_t)read_32(zone->types.ptr + type * TYPE_SIZE);
}

static int32_t offset_after(const struct zone *zone, size_t i)
{
	return type_offset(zone, (unsigned char)zone->kinds.ptr[i]);
}

static enum baton_err types_check(const struct zone *zone, const struct header *h)
{
	for (size_t i = 0; i < h->types; i++) {
		int32_t offset_s = type_offset(zone, i);
		const unsigned char *more =
			(const unsigned char *)zone->types.ptr + i * TYPE_SIZE + 4;
		if (offset_s < ZONE_OFFSET_MIN_S || offset_s > ZONE_OFFSET_MAX_S)
			return fail(BATON_INVALID,
			            "a time zone file adds %" PRId32
			            " seconds to UTC: %d to %d are "
			            "allowed",
			            offset_s, ZONE_OFFSET_MIN_S, ZONE_OFFSET_MAX_S);
		if (more[0] > 1 || more[1] >= h->name_bytes)
			return fail(BATON_INVALID,
			            "a time zone file has a type %zu with the mark %d and the name "
			            "at %d: 0 or 1, and less than %" PRIu32 " are allowed",
			            i, more[0], more[1], h->name_bytes);
	}
	return BATON_OK;
}

static enum baton_err changes_check(const struct zone *zone, const struct header *h)
{
	for (size_t i = 0; i < changes_of(zone); i++) {
		int64_t at_s = change_at(zone, i);
		if (at_s < -MOMENT_MAX || at_s > MOMENT_MAX ||
		    (i > 0 && at_s <= change_at(zone, i - 1)))
			return fail(BATON_INVALID,
			            "a time zone file has a change %zu at %" PRId64
			            " seconds: it has to be after the one before it, and within "
			            "2^59 of 1970",
			            i, at_s);
		int kind = (unsigned char)zone->kinds.ptr[i];
		if (kind >= (int)h->types)
			return fail(BATON_INVALID,
			            "a time zone file changes to the type %d: it has 0 to %" PRIu32,
			            kind, h->types - 1);
	}
	return BATON_OK;
}

static enum baton_err take_block(struct baton_str *rest, const struct header *h, struct zone *ret)
{
	struct baton_str names;
	struct baton_str marks;
	enum baton_err e = counts_check(h);
	if (e != BATON_OK)
		return e;
	if (!take(rest, (uint64_t)h->changes * ret->width, &ret->changes) ||
	    !take(rest, h->changes, &ret->kinds) ||
	    !take(rest, (uint64_t)h->types * TYPE_SIZE, &ret->types) ||
	    !take(rest, h->name_bytes, &names) ||
	    !take(rest, (uint64_t)h->standard_marks + h->utc_marks, &marks))
		return cut_off(rest);
	e = types_check(ret, h);
	if (e == BATON_OK)
		e = changes_check(ret, h);
	return e;
}

/* The rule between two newlines at the end; an empty one is none. */
static enum baton_err take_rule(struct baton_str rest, struct zone *ret)
{
	const char *end = rest.len > 0 ? memchr(rest.ptr + 1, '\n', rest.len - 1) : NULL;
	if (end == NULL || rest.ptr[0] != '\n')
		return fail(BATON_INVALID, "a time zone file has to end with a rule between two "
		                           "newlines, which is not there");
	struct baton_str text = {rest.ptr + 1, (size_t)(end - rest.ptr - 1)};
	ret->has_rule = text.len > 0;
	return text.len > 0 ? zone_rule_parse(text, &ret->rule) : BATON_OK;
}

enum baton_err zone_parse(struct baton_str tzif, struct zone *ret)
{
	struct zone zone = {.width = 4};
	struct baton_str rest = tzif;
	struct baton_str old;
	struct header h;
	enum baton_err e = take_header(&rest, &h);
	bool wide = e == BATON_OK && h.version != '\0';
	if (wide) { /* the same once more follows, with 64-bit moments */
		zone.width = 8;
		if (!take(&rest, block_size(&h, 4), &old))
			return cut_off(&rest);
		e = take_header(&rest, &h);
	}
	if (e == BATON_OK)
		e = take_block(&rest, &h, &zone);
	if (e == BATON_OK && wide)
		e = take_rule(rest, &zone);
	if (e == BATON_OK)
		*ret = zone;
	return e;
}

/* How many of the changes are at or before the moment. */
static size_t changes_until(const struct zone *zone, int64_t utc_s)
{
	size_t low = 0;
	size_t high = changes_of(zone);
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (change_at(zone, middle) <= utc_s)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct zone_span zone_at(const struct zone *zone, int64_t utc_s)
{
	CHECK(utc_s >= -ASKED_MAX && utc_s <= ASKED_MAX);
	size_t count = changes_of(zone);
	size_t n = changes_until(zone, utc_s);
	struct zone_span span = {
		.begin_s = n > 0 ? change_at(zone, n - 1) : INT64_MIN,
		.end_s = n < count ? change_at(zone, n) : INT64_MAX,
	};
	if (n == count && zone->has_rule) {
		struct zone_span by_rule = zone_rule_at(&zone->rule, utc_s);
		if (by_rule.begin_s > span.begin_s)
			span.begin_s = by_rule.begin_s;
		span.end_s = by_rule.end_s;
		span.offset_s = by_rule.offset_s;
	} else {
		span.offset_s = n > 0 ? offset_after(zone, n - 1) : type_offset(zone, 0);
	}
	return span;
}

/* Whether the local time is shown in a span that begins at or after `from_s`. */
static bool is_shown_again(const struct zone *zone, int64_t from_s, int64_t local_s)
{
	while (from_s <= local_s - ZONE_OFFSET_MIN_S) {
		struct zone_span span = zone_at(zone, from_s);
		int64_t at_s = local_s - span.offset_s;
		if (at_s >= from_s && at_s < span.end_s)
			return true;
		from_s = span.end_s;
	}
	return false;
}

struct zone_local zone_find(const struct zone *zone, int64_t local_s)
{
	int64_t from_s = local_s - ZONE_OFFSET_MAX_S;
	struct zone_span span = zone_at(zone, from_s);
	while (local_s - span.offset_s >= span.end_s) {
		from_s = span.end_s;
		span = zone_at(zone, from_s);
	}
	int64_t at_s = local_s - span.offset_s;
	if (at_s < from_s)
		return (struct zone_local){from_s, ZONE_SKIPPED};
	bool again = is_shown_again(zone, span.end_s, local_s);
	return (struct zone_local){at_s, again ? ZONE_REPEATED : ZONE_ONCE};
}

int64_t zone_reached(const struct zone *zone, int64_t utc_s)
{
	struct zone_span span = zone_at(zone, utc_s);
	int64_t reached_s = utc_s + span.offset_s;
	while (span.begin_s > utc_s - SPREAD_S) {
		span = zone_at(zone, span.begin_s - 1);
		int64_t last_s = span.end_s - 1 + span.offset_s;
		if (last_s > reached_s)
			reached_s = last_s;
	}
	return reached_s;
}
