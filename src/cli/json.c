/* Writes JSON: one object per line, in UTF-8 whatever the names are made of. */
#include <inttypes.h>

#include "base64.h"
#include "json.h"
#include "text.h"

/* The number of a control character (C0, DEL, C1); 0x100: it is none. */
static unsigned control_of(struct baton_str character)
{
	unsigned char first = (unsigned char)character.ptr[0];
	unsigned char last = (unsigned char)character.ptr[character.len - 1];
	if (first < 0x20 || first == 0x7f || (first == 0xc2 && last < 0xa0))
		return last;
	return 0x100;
}

/* The character, escaped where JSON asks for it or a terminal might obey it. */
static void put_character(struct line *line, struct baton_str character)
{
	char c = character.ptr[0];
	if (!baton_str_is_utf8(character)) {
		line_text(line, "\\ufffd");
		return;
	}
	if (control_of(character) < 0x100) {
		line_print(line, "\\u%04x", control_of(character));
		return;
	}
	if (c == '"' || c == '\\')
		line_char(line, '\\');
	for (size_t i = 0; i < character.len; i++)
		line_char(line, character.ptr[i]);
}

static void put_string(struct json *j, struct baton_str s)
{
	line_char(&j->line, '"');
	while (s.len > 0) {
		struct baton_str character = text_first(s);
		put_character(&j->line, character);
		s = (struct baton_str){s.ptr + character.len, s.len - character.len};
	}
	line_char(&j->line, '"');
}

/* Begins a value: a comma if it is not the first, and its key if it has one. */
static void begin(struct json *j, const char *key)
{
	if (j->follows)
		line_char(&j->line, ',');
	j->follows = true;
	if (key)
		line_print(&j->line, "\"%s\":", key);
}

static void open_with(struct json *j, const char *key, char bracket)
{
	begin(j, key);
	line_char(&j->line, bracket);
	j->follows = false;
}

static void close_with(struct json *j, char bracket)
{
	line_char(&j->line, bracket);
	j->follows = true;
}

void json_open(struct json *j, const char *key)
{
	open_with(j, key, '{');
}

void json_close(struct json *j)
{
	close_with(j, '}');
}

void json_open_list(struct json *j, const char *key)
{
	open_with(j, key, '[');
}

void json_close_list(struct json *j)
{
	close_with(j, ']');
}

void json_bytes(struct json *j, const char *key, struct baton_str bytes)
{
	begin(j, key);
	put_string(j, bytes);
	/* In a list there is no room for a name: only a damaged store has such bytes there. */
	if (!key || baton_str_is_utf8(bytes))
		return;
	line_print(&j->line, ",\"%s_hex\":\"", key);
	for (size_t i = 0; i < bytes.len; i++)
		line_print(&j->line, "%02x", (unsigned char)bytes.ptr[i]);
	line_char(&j->line, '"');
}

void json_base64(struct json *j, const char *key, struct baton_str bytes)
{
	begin(j, key);
	line_char(&j->line, '"');
	while (bytes.len > 0) {
		char digits[4];
		base64_digits(&bytes, digits);
		line_bytes(&j->line, (struct baton_str){digits, sizeof digits});
	}
	line_char(&j->line, '"');
}

void json_text(struct json *j, const char *key, const char *text)
{
	json_bytes(j, key, baton_str_z(text));
}

void json_number(struct json *j, const char *key, uint64_t number)
{
	begin(j, key);
	line_print(&j->line, "%" PRIu64, number);
}

void json_bool(struct json *j, const char *key, bool value)
{
	begin(j, key);
	line_text(&j->line, value ? "true" : "false");
}

void json_null(struct json *j, const char *key)
{
	begin(j, key);
	line_text(&j->line, "null");
}

void json_time(struct json *j, const char *key, struct baton_store_time t)
{
	char text[BATON_STORE_TIME_TEXT];
	if (t.ms == BATON_STORE_TIME_NEVER.ms)
		json_null(j, key);
	else
		json_text(j, key, baton_store_time_print(t, text));
}

void json_span(struct json *j, const char *key, struct baton_duration d)
{
	if (d.ns == BATON_DURATION_FOREVER.ns)
		json_null(j, key);
	else
		json_number(j, key, d.ns < 0 ? 0 : (uint64_t)d.ns / 1000000);
}

void json_end(struct json *j)
{
	line_end(&j->line);
	j->follows = false;
}
