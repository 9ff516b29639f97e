/* A table of text, printed as aligned Markdown. */
#ifndef BENCH_GRID_H
#define BENCH_GRID_H

#include <stddef.h>
#include <stdio.h>

#define GRID_CELL 64
#define GRID_CELLS 512

/* Cells row by row, the first row being the heading. Zeros but for `columns`: an empty grid. */
struct grid {
	size_t columns;
	size_t count;
	char cells[GRID_CELLS][GRID_CELL];
};

/* Adds the next cell; what is too long is cut, what is one too many ends the program. ASCII. */
__attribute__((format(printf, 2, 3))) void grid_add(struct grid *g, const char *format, ...);

/* The first column is flush left, the others flush right. */
void grid_print(FILE *to, const struct grid *g);

#endif
