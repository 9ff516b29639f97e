/* Output that is put together piece by piece and written in one. */
#ifndef CLI_LINE_H
#define CLI_LINE_H

#include <stddef.h>

#include <baton.h>

#include "out.h"

#define LINE_MAX_BYTES 8192

/* Begins as {.out = ...}. What is longer than LINE_MAX_BYTES is written in several pieces. */
struct line {
	struct out *out;
	size_t used;
	char bytes[LINE_MAX_BYTES];
};

void line_char(struct line *line, char c);
void line_text(struct line *line, const char *text);

/* As text_show(), however long it is. */
void line_shown(struct line *line, struct baton_str s);

/* The bytes as they are. */
void line_bytes(struct line *line, struct baton_str s);

/* As printf(), for at most 127 bytes. */
__attribute__((format(printf, 2, 3))) void line_print(struct line *line, const char *format, ...);

/* Adds the line feed and writes all of it. */
void line_end(struct line *line);

#endif
