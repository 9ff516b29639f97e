/* A table with aligned columns. */
#include "table.h"
#include "text.h"

#define GAP 2

void table_init(struct table *t, struct out *out, const struct table_column *columns, size_t count)
{
	*t = (struct table){.line = {.out = out}, .columns = columns, .count = count};
	for (size_t i = 0; i < count; i++)
		t->widths[i] = text_width(columns[i].title);
}

void table_measure(struct table *t, const char *const *cells)
{
	for (size_t i = 0; i < t->count; i++) {
		size_t width = text_width(cells[i]);
		if (width > t->widths[i])
			t->widths[i] = width;
	}
}

void table_row(struct table *t, const char *const *cells)
{
	size_t due = 0; /* blanks, but none at the end of the line */
	for (size_t i = 0; i < t->count; i++) {
		size_t width = text_width(cells[i]);
		size_t rest = width < t->widths[i] ? t->widths[i] - width : 0;
		if (cells[i][0] == '\0') {
			due += rest + GAP;
			continue;
		}
		bool right = t->columns[i].right;
		for (due += right ? rest : 0; due > 0; due--)
			line_char(&t->line, ' ');
		line_text(&t->line, cells[i]);
		due = GAP + (right ? 0 : rest);
	}
	line_end(&t->line);
}

void table_titles(struct table *t)
{
	const char *titles[TABLE_COLUMNS_MAX];
	for (size_t i = 0; i < TABLE_COLUMNS_MAX; i++)
		titles[i] = i < t->count ? t->columns[i].title : "";
	table_row(t, titles);
}
