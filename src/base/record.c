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
	size_t cut;       /* texts that ended there                 */
	size_t unused;    /* what they could not fill of value_max  */
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

/* Whether the byte stands for itself in every format. */
static bool is_plain(char c)
{
	return c >= ' ' && c <= '~' && c != '"' && c != '\\';
}

/* How many bytes at the beginning of `s` are plain, at most `max`. */
static size_t plain_len(struct baton_str s, size_t max)
{
	size_t n = 0;
	while (n < s.len && n < max && is_plain(s.ptr[n]))
		n++;
	return n;
}

/* The beginning of `s` that takes at most line->value_max bytes. */
static void put_pieces(struct line *line, struct baton_str s,
                       struct quote_piece (*next)(struct baton_str))
{
	size_t used = 0;
	while (s.len > 0 && !line->lost) {
		size_t max = line->value_max - used;
		size_t too_much = line->room - line->len + 1;
		size_t plain = plain_len(s, max < too_much ? max : too_much);
		if (plain > 0) {
			put(line, s.ptr, plain);
			used += plain;
			s = (struct baton_str){s.ptr + plain, s.len - plain};
			continue;
		}
		struct quote_piece p = next(s);
		if (p.len > max) {
			line->cut++;
			line->unused += max;
			return;
		}
		put(line, p.text, p.len);
		used += p.len;
		s = (struct baton_str){s.ptr + p.taken, s.len - p.taken};
	}
}

static bool needs_quotes(struct baton_str s)
{
	/* Nobody sees more of it than that. */
	size_t len = s.len < BATON_LOG_RECORD_MAX ? s.len : BATON_LOG_RECORD_MAX;
	for (size_t at = 0; at < len;) {
		char c = s.ptr[at];
		if (is_plain(c) && c != ' ' && c != '=') {
			at++;
			continue;
		}
		uint32_t ch;
		size_t n = utf8_next(s.ptr + at, s.len - at, &ch);
		if (n < 2 || utf8_is_control(ch))
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

/* A text that is not cut to less than `kept` bytes. */
static void put_kept(struct line *line, const char *z, size_t kept)
{
	size_t max = line->value_max;
	line->value_max = max > kept ? max : kept;
	put_text(line, baton_str_z(z));
	line->value_max = max;
}

/* A text that is never cut: a number, a time, an id. */
static void put_whole(struct line *line, const char *z)
{
	put_kept(line, z, SIZE_MAX);
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

/* Whether a record has a field of that name by itself. */
static bool is_taken(const char *name)
{
	static const char *const taken[] = {"ts", "level", "msg", "truncated", "dropped"};
	for (size_t i = 0; name != NULL && i < sizeof taken / sizeof *taken; i++)
		if (strcmp(name, taken[i]) == 0)
			return true;
	return false;
}

static void put_field(struct line *line, const struct baton_field *field)
{
	char other[sizeof "_truncated"];
	const char *name = field->name;
	if (is_taken(name)) {
		snprintf(other, sizeof other, "_%s", name);
		name = other;
	}
	size_t before = line->len;
	put_name(line, name);
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

/* What is left of a message, and of a value when fields have to be left out, however little room
 * there is. */
#define MESSAGE_KEPT 1024
#define VALUE_KEPT 256

/* What came of an attempt to write a record. */
struct outcome {
	size_t len;
	size_t share; /* how much more each shortened text may take for certain */
	bool fits;    /* whether everything is there, shortened or not          */
};

static struct outcome attempt(const struct record *record, size_t value_max, char *bytes)
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
	put_kept(&line, record->message, MESSAGE_KEPT);
	for (size_t i = 0; i < record->count && !line.lost; i++)
		put_field(&line, &record->fields[i]);
	memcpy(bytes + line.len, end, end_len);

	size_t left = line.room - line.len;
	bool more = line.cut > 0 && left > line.unused;
	return (struct outcome){
		.len = line.len + end_len,
		.share = more ? (left - line.unused) / line.cut : 0,
		.fits = !line.lost,
	};
}

/* How often the room that is left is shared out. Each time some of the shorter texts become whole,
 * or hardly any room remains, so a few times are enough. */
#define ROUNDS_MAX 16

size_t record_write(const struct record *record, char bytes[BATON_LOG_RECORD_MAX])
{
	struct outcome o = attempt(record, SIZE_MAX, bytes);
	if (o.fits)
		return o.len;
	/* From nothing, every text that is still too long gets the same share of what is left. */
	size_t value_max = 0;
	o = attempt(record, value_max, bytes);
	if (!o.fits)
		return attempt(record, VALUE_KEPT, bytes).len;
	for (int i = 0; i < ROUNDS_MAX && o.fits && o.share > 0; i++) {
		value_max += o.share;
		o = attempt(record, value_max, bytes);
	}
	return o.len;
}
