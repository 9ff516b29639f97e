/* A table of text, printed as aligned Markdown. */
#include "grid.h"

#include <err.h>
#include <stdarg.h>
#include <string.h>

void grid_add(struct grid *g, const char *format, ...)
{
	if (g->count == GRID_CELLS)
		errx(1, "a table of more than %d cells", GRID_CELLS);
	va_list args;
	va_start(args, format);
	vsnprintf(g->cells[g->count++], GRID_CELL, format, args);
	va_end(args);
}

static int column_width(const struct grid *g, size_t column)
{
	size_t width = 3;
	for (size_t i = column; i < g->count; i += g->columns) {
		size_t len = strlen(g->cells[i]);
		width = len > width ? len : width;
	}
	return (int)width;
}

static void print_rule(FILE *to, const struct grid *g)
{
	for (size_t i = 0; i < g->columns; i++) {
		fputs(i == 0 ? "|:" : "|-", to);
		for (int k = column_width(g, i); k > 0; k--)
			fputc('-', to);
		fputs(i == 0 ? "-" : ":", to);
	}
	fputs("|\n", to);
}

static void print_row(FILE *to, const struct grid *g, const char (*cells)[GRID_CELL])
{
	for (size_t i = 0; i < g->columns; i++) {
		int width = column_width(g, i);
		fprintf(to, "| %*s ", i == 0 ? -width : width, cells[i]);
	}
	fputs("|\n", to);
}

void grid_print(FILE *to, const struct grid *g)
{
	for (size_t i = 0; i + g->columns <= g->count; i += g->columns) {
		print_row(to, g, &g->cells[i]);
		if (i == 0)
			print_rule(to, g);
	}
}
