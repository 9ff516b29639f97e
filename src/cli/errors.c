/* Dead jobs, counted by their error. */
#include "errors.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "table.h"
#include "text.h"
#include "wall.h"

#define PLACES 32768   /* more than twice the rows, and a power of two */
#define ERROR_SHOWN 60 /* bytes of an error in the table */

static uint64_t hash(uint64_t h, struct baton_str s)
{
	for (size_t i = 0; i < s.len; i++)
		h = (h ^ (unsigned char)s.ptr[i]) * UINT64_C(1099511628211);
	return (h ^ s.len) * UINT64_C(1099511628211);
}

/* Where the row of that queue and error is, or would be. */
static uint32_t *place_of(const struct errors *e, struct baton_str queue, struct baton_str error)
{
	uint64_t at = hash(hash(UINT64_C(14695981039346656037), queue), error);
	for (;; at++) {
		uint32_t *place = &e->places[at % PLACES];
		const struct error_row *row = *place > 0 ? &e->rows[*place - 1] : NULL;
		if (!row || (baton_str_equal(baton_str_z(row->queue), queue) &&
		             baton_str_equal(row->error, error)))
			return place;
	}
}

/* The names of a row, in one block. */
static bool name(struct error_row *row, struct baton_str queue, struct baton_str error)
{
	row->queue = malloc(queue.len + 1 + error.len + 1);
	if (!row->queue)
		return false;
	memcpy(row->queue, queue.ptr, queue.len);
	row->queue[queue.len] = '\0';
	char *text = row->queue + queue.len + 1;
	if (error.len > 0)
		memcpy(text, error.ptr, error.len);
	text[error.len] = '\0';
	row->error = (struct baton_str){text, error.len};
	return true;
}

static bool grow(struct errors *e)
{
	if (!e->places)
		e->places = calloc(PLACES, sizeof *e->places);
	if (e->count < e->cap)
		return e->places;
	size_t cap = e->cap > 0 ? e->cap * 2 : 64;
	struct error_row *rows = reallocarray(e->rows, cap, sizeof *rows);
	if (!rows)
		return false;
	e->rows = rows;
	e->cap = cap;
	return e->places;
}

bool errors_add(struct errors *e, const struct baton_work_info *info)
{
	if (!grow(e))
		return false;
	uint32_t *place = place_of(e, info->queue, info->error);
	if (*place == 0 && e->count == ERRORS_MAX) {
		e->others++;
		return true;
	}
	if (*place == 0) {
		struct error_row *row = &e->rows[e->count];
		*row = (struct error_row){.count = 0};
		if (!name(row, info->queue, info->error))
			return false;
		*place = (uint32_t)++e->count;
	}
	struct error_row *row = &e->rows[*place - 1];
	row->count++;
	if (info->ended_at.ms >= row->last.ms) {
		row->last = info->ended_at;
		row->example = info->batch.id;
	}
	return true;
}

static int by_count(const void *a, const void *b)
{
	const struct error_row *x = a, *y = b;
	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	if (x->last.ms != y->last.ms)
		return x->last.ms > y->last.ms ? -1 : 1;
	int queue = strcmp(x->queue, y->queue);
	return queue != 0 ? queue : strcmp(x->error.ptr, y->error.ptr);
}

/* From now on nothing is added. */
static void sort(struct errors *e)
{
	if (e->count > 1)
		qsort(e->rows, e->count, sizeof *e->rows, by_count);
}

/* The cells of one row, and the room for their texts. */
struct cells {
	char count[24];
	char queue[TEXT_SHOWN(BATON_NAME_MAX)];
	char error[TEXT_SHOWN(ERROR_SHOWN) + 4];
	char last[WALL_TEXT];
	const char *list[TABLE_COLUMNS_MAX];
};

static const struct table_column columns[] = {
	{"COUNT", true}, {"QUEUE", false}, {"LAST", false}, {"EXAMPLE", true}, {"ERROR", false},
};
#define COLUMNS (sizeof columns / sizeof columns[0])

static void cells_fill(struct cells *c, const struct error_row *row)
{
	struct baton_str error = row->error;
	bool cut = error.len > ERROR_SHOWN;
	if (cut)
		error.len = ERROR_SHOWN;
	while (cut && error.len > 0 && !baton_str_is_utf8(error))
		error.len--;
	text_show(error, "", c->error);
	size_t used = strlen(c->error);
	if (cut)
		snprintf(c->error + used, sizeof c->error - used, "...");
	snprintf(c->count, sizeof c->count, "%" PRIu64, row->count);
	const char *list[COLUMNS] = {
		c->count,
		text_show(baton_str_z(row->queue), "", c->queue),
		wall_print(row->last, c->last),
		row->example.text,
		c->error[0] ? c->error : "-",
	};
	for (size_t i = 0; i < COLUMNS; i++)
		c->list[i] = list[i];
}

void errors_print(struct errors *e, struct out *out)
{
	struct table table;
	struct cells cells;
	sort(e);
	if (e->count == 0)
		return;
	table_init(&table, out, columns, COLUMNS);
	for (size_t i = 0; i < e->count; i++) {
		cells_fill(&cells, &e->rows[i]);
		table_measure(&table, cells.list);
	}
	table_titles(&table);
	for (size_t i = 0; i < e->count && out->errnum == 0; i++) {
		cells_fill(&cells, &e->rows[i]);
		table_row(&table, cells.list);
	}
}

void errors_json(struct errors *e, struct out *out)
{
	struct json json = {.line = {.out = out}};
	sort(e);
	for (size_t i = 0; i < e->count && out->errnum == 0; i++) {
		const struct error_row *row = &e->rows[i];
		json_open(&json, NULL);
		json_text(&json, "queue", row->queue);
		json_bytes(&json, "error", row->error);
		json_number(&json, "count", row->count);
		json_time(&json, "last", row->last);
		json_text(&json, "example", row->example.text);
		json_close(&json);
		json_end(&json);
	}
}

void errors_done(struct errors *e)
{
	for (size_t i = 0; i < e->count; i++)
		free(e->rows[i].queue);
	free(e->rows);
	free(e->places);
	*e = (struct errors){.count = 0};
}
