/* One line of a log, as bytes. */
#include "base/record.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/quote.h"
#include "base/utf8.h"

/* A record under construction. */
struct line {
	enum baton_log_format format;
	char *bytes;
	size_t len;
	size_t room;      /* what the end of the line leaves        */
	size_t value_max; /* what a text may take, once encoded     */
	bool lost;        /* something did not fit                  */
};

static void put(struct line *line, const char *bytes, size_t len)
{
	if (line->lost || len > line->room - line->len) {
		line->lost = true;
		return;
	}
	memcpy(line->bytes + line->len, bytes, len);
	line->len += len;
}

static void put_z(struct line *line, const char *z)
{
	put(line, z, strlen(z));
}

static struct quote_piece json_next(struct baton_str s)
{
	uint32_t ch;
	size_t n = utf8_next(s.ptr, s.len, &ch);
	struct quote_piece p = {.len = 0, .taken = n == 0 ? 1 : n};
	if (n == 0) {
		static const char replacement[] = "\ufffd";
		p.len = sizeof replacement - 1;
		memcpy(p.text, replacement, p.len);
	} else if (utf8_is_control(ch)) {
		p.len = (size_t)snprintf(p.text, sizeof p.text, "\\u%04x", (unsigned)ch);
	} else {
		p = quote_next(s);
	}
	return p;
}

/* The beginning of `s` that takes at most line->value_max bytes. */
static void put_pieces(struct line *line, struct baton_str s,
                       struct quote_piece (*next)(struct baton_str))
{
	for (size_t used = 0; s.len > 0 && !line->lost;) {
		struct quote_piece p = next(s);
		used += p.len;
		if (used > line->value_max)
			return;
		put(line, p.text, p.len);
		s = (struct baton_str){s.ptr + p.taken, s.len - p.taken};
	}
}

static bool needs_quotes(struct baton_str s)
{
	/* Nobody sees more of it than that. */
	size_t len = s.len < BATON_LOG_RECORD_MAX ? s.len : BATON_LOG_RECORD_MAX;
	for (size_t at = 0; at < len;) {
		uint32_t ch;
		size_t n = utf8_next(s.ptr + at, s.len - at, &ch);
		if (n == 0 || utf8_is_control(ch) || ch == ' ' || ch == '=' || ch == '"' ||
		    ch == '\\')
			return true;
		at += n;
	}
	return len == 0;
}

static void put_text(struct line *line, struct baton_str s)
{
	bool json = line->format == BATON_LOG_JSON;
	const char *mark = json || needs_quotes(s) || line->value_max == 0 ? "\"" : "";
	put_z(line, mark);
	put_pieces(line, s, json ? json_next : quote_next);
	put_z(line, mark);
}

/* A text that is never cut: a number, a time, an id. */
static void put_whole(struct line *line, const char *z)
{
	size_t max = line->value_max;
	line->value_max = SIZE_MAX;
	put_text(line, baton_str_z(z));
	line->value_max = max;
}

static void put_value(struct line *line, const struct baton_field *field)
{
	char number[24], duration[BATON_DURATION_TEXT], id[BATON_ID_TEXT];
	switch (field->kind) {
	case BATON_FIELD_STR:
		put_text(line, field->value.str);
		return;
	case BATON_FIELD_INT:
		snprintf(number, sizeof number, "%" PRId64, field->value.i);
		put_z(line, number);
		return;
	case BATON_FIELD_UINT:
		snprintf(number, sizeof number, "%" PRIu64, field->value.u);
		put_z(line, number);
		return;
	case BATON_FIELD_BOOL:
		put_z(line, field->value.b ? "true" : "false");
		return;
	case BATON_FIELD_DURATION:
		put_whole(line, baton_duration_print(field->value.duration, duration));
		return;
	case BATON_FIELD_ID:
		put_whole(line, field->value.id != NULL ? baton_id_print(field->value.id, id) : "");
		return;
	case BATON_FIELD_SECRET:
		put_whole(line, "[secret]");
		return;
	}
	put_whole(line, "");
}

/* The separator and the name. What a name must not hold would break the line, so it is replaced. */
static void put_name(struct line *line, const char *name)
{
	bool json = line->format == BATON_LOG_JSON;
	put_z(line, line->len == 0 ? (json ? "{\"" : "") : (json ? ",\"" : " "));
	if (name == NULL || name[0] == '\0')
		name = "_";
	for (; *name != '\0' && !line->lost; name++) {
		bool ok = (*name >= 'a' && *name <= 'z') || (*name >= '0' && *name <= '9');
		put(line, ok ? name : "_", 1);
	}
	put_z(line, json ? "\":" : "=");
}

static void put_field(struct line *line, const struct baton_field *field)
{
	size_t before = line->len;
	put_name(line, field->name);
	put_value(line, field);
	if (line->lost)
		line->len = before;
}

static const char *level_name(enum baton_log_level level)
{
	switch (level) {
	case BATON_LOG_DEBUG:
		return "debug";
	case BATON_LOG_INFO:
		return "info";
	case BATON_LOG_WARN:
		return "warn";
	case BATON_LOG_ERROR:
		return "error";
	}
	return "unknown";
}

/* Room for the longest end of a line: both fields in JSON. */
#define END_MAX 64

static size_t end_of(const struct record *record, bool truncated, char end[END_MAX])
{
	bool json = record->format == BATON_LOG_JSON;
	int len = snprintf(end, END_MAX, "%s", "");
	if (truncated)
		len += snprintf(end + len, END_MAX - (size_t)len, "%s",
		                json ? ",\"truncated\":true" : " truncated=true");
	if (record->dropped > 0)
		len += snprintf(end + len, END_MAX - (size_t)len, "%s%" PRIu64,
		                json ? ",\"dropped\":" : " dropped=", record->dropped);
	len += snprintf(end + len, END_MAX - (size_t)len, "%s", json ? "}\n" : "\n");
	return (size_t)len;
}

/* Writes what fits and returns the length; *ret_fits tells whether that was all. */
static size_t attempt(const struct record *record, size_t value_max, char *bytes, bool *ret_fits)
{
	char time[BATON_STORE_TIME_TEXT], end[END_MAX];
	size_t end_len = end_of(record, value_max < SIZE_MAX, end);
	struct line line = {
		.format = record->format,
		.bytes = bytes,
		.room = BATON_LOG_RECORD_MAX - end_len,
		.value_max = value_max,
	};
	put_name(&line, "ts");
	put_whole(&line, baton_store_time_print(record->time, time));
	put_name(&line, "level");
	put_whole(&line, level_name(record->level));
	put_name(&line, "msg");
	put_text(&line, baton_str_z(record->message));
	for (size_t i = 0; i < record->count && !line.lost; i++)
		put_field(&line, &record->fields[i]);
	memcpy(bytes + line.len, end, end_len);
	*ret_fits = !line.lost;
	return line.len + end_len;
}

size_t record_write(const struct record *record, char bytes[BATON_LOG_RECORD_MAX])
{
	bool fits;
	size_t len = attempt(record, SIZE_MAX, bytes, &fits);
	if (fits)
		return len;
	/* The longest that all values may be: 0 fits, or nothing does, and `high` does not. */
	size_t low = 0;
	size_t high = BATON_LOG_RECORD_MAX;
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;
		attempt(record, middle, bytes, &fits);
		if (fits)
			low = middle;
		else
			high = middle;
	}
	return attempt(record, low, bytes, &fits);
}
