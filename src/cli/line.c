/* Output that is put together piece by piece and written in one. */
#include <stdarg.h>

#include "line.h"
#include "text.h"

static void line_write(struct line *line)
{
	out_bytes(line->out, line->bytes, line->used);
	line->used = 0;
}

void line_char(struct line *line, char c)
{
	if (line->used == LINE_MAX_BYTES)
		line_write(line);
	line->bytes[line->used++] = c;
}

void line_text(struct line *line, const char *text)
{
	for (; *text != '\0'; text++)
		line_char(line, *text);
}

void line_shown(struct line *line, struct baton_str s)
{
	while (s.len > 0) {
		struct baton_str character = text_first(s);
		char shown[TEXT_SHOWN(TEXT_CHARACTER)];
		line_text(line, text_show(character, "", shown));
		s = (struct baton_str){s.ptr + character.len, s.len - character.len};
	}
}

void line_bytes(struct line *line, struct baton_str s)
{
	for (size_t i = 0; i < s.len; i++)
		line_char(line, s.ptr[i]);
}

void line_print(struct line *line, const char *format, ...)
{
	char text[128];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	line_text(line, text);
}

void line_end(struct line *line)
{
	line_char(line, '\n');
	line_write(line);
}
