/* Bytes that somebody else has chosen, as they may be shown to people. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "text.h"

struct baton_str text_first(struct baton_str s)
{
	for (size_t n = 1; n <= s.len && n <= TEXT_CHARACTER; n++) {
		struct baton_str character = {s.ptr, n};
		if (baton_str_is_utf8(character))
			return character;
	}
	return (struct baton_str){s.ptr, 1};
}

/* The number of a character of valid UTF-8. */
static uint32_t number_of(struct baton_str character)
{
	static const uint8_t lead[TEXT_CHARACTER + 1] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	uint32_t number = (uint8_t)character.ptr[0] & lead[character.len];
	for (size_t i = 1; i < character.len; i++)
		number = number << 6 | ((uint8_t)character.ptr[i] & 0x3f);
	return number;
}

/* Control characters, and those that show nothing themselves but change how others look. */
static bool is_hidden(uint32_t number)
{
	static const struct {
		uint32_t first, last;
	} hidden[] = {
		{0x00, 0x1f},     {0x7f, 0x9f},       {0xad, 0xad},     {0x061c, 0x061c},
		{0x200b, 0x200f}, {0x2028, 0x202e},   {0x2060, 0x206f}, {0xfeff, 0xfeff},
		{0xfff9, 0xfffb}, {0xe0000, 0xe007f},
	};
	for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++) {
		if (number >= hidden[i].first && number <= hidden[i].last)
			return true;
	}
	return false;
}

static bool is_plain(struct baton_str character, const char *also)
{
	return baton_str_is_utf8(character) && !is_hidden(number_of(character)) &&
	       strchr(also, character.ptr[0]) == NULL;
}

const char *text_show(struct baton_str s, const char *also, char *shown)
{
	char *end = shown;
	while (s.len > 0) {
		struct baton_str character = text_first(s);
		if (is_plain(character, also)) {
			memcpy(end, character.ptr, character.len);
			end += character.len;
			if (character.ptr[0] == '\\')
				*end++ = '\\';
		} else {
			for (size_t i = 0; i < character.len; i++)
				end += sprintf(end, "\\x%02x", (uint8_t)character.ptr[i]);
		}
		s = (struct baton_str){s.ptr + character.len, s.len - character.len};
	}
	*end = '\0';
	return shown;
}

size_t text_width(const char *text)
{
	size_t width = 0;
	for (; *text != '\0'; text++)
		width += ((uint8_t)*text & 0xc0) != 0x80;
	return width;
}
