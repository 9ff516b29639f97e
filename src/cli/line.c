/* Output that is put together piece by piece and written in one. */
#include <stdarg.h>

#include "line.h"

static void line_write(struct line *line)
{
	out_print(line->out, "%.*s", (int)line->used, line->bytes);
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
