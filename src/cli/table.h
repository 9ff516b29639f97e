/* A table with aligned columns. Its rows are shown to it twice: to be measured, then to be written.
 * Nothing of them is kept, so it can have any number. */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "line.h"

#define TABLE_COLUMNS_MAX 12

struct table_column {
	const char *title;
	bool right; /* its cells stand at the right edge, as numbers do */
};

struct table {
	struct line line;
	const struct table_column *columns;
	size_t count;
	size_t widths[TABLE_COLUMNS_MAX];
};

/* Begins a table of `count` columns, which are borrowed, with its titles measured. */
void table_init(struct table *t, struct out *out, const struct table_column *columns, size_t count);

/* Makes every column wide enough for its cell of the row. */
void table_measure(struct table *t, const char *const *cells);

void table_titles(struct table *t);
void table_row(struct table *t, const char *const *cells);

#endif
