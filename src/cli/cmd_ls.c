/* baton ls: lists jobs. */
#include <inttypes.h>
#include <stdio.h>
#include <sysexits.h>

#include "command.h"
#include "errors.h"
#include "job.h"
#include "lookup.h"
#include "name.h"
#include "number.h"
#include "reading.h"
#include "store.h"
#include "table.h"
#include "text.h"
#include "wall.h"

#define LIMIT 100 /* unless --limit says something else */
#define LIMIT_MAX 100000000
#define AFTER_MAX ((UINT64_C(1) << 53) - 1)
#define ERROR_SHOWN 60 /* bytes of an error in the table */

enum {
	OPTION_STATE = STORE_NEXT,
	OPTION_LIMIT,
	OPTION_AFTER,
	OPTION_BY_ERROR
};

struct request {
	struct store store;
	struct baton_work_filter filter;
	uint32_t limit;
	bool by_error;
	bool titled; /* the titles of the table have been written */
};

static const struct option options[] = {
	STORE_OPTIONS,
	{"state", required_argument, NULL, OPTION_STATE},
	{"limit", required_argument, NULL, OPTION_LIMIT},
	{"after", required_argument, NULL, OPTION_AFTER},
	{"by-error", no_argument, NULL, OPTION_BY_ERROR},
	{0},
};

/* The cells of one row, and the room for their texts. */
struct row {
	char queue[TEXT_SHOWN(BATON_NAME_MAX)];
	char lane[TEXT_SHOWN(BATON_NAME_MAX)];
	char attempt[16];
	char put[WALL_TEXT];
	char due[WALL_TEXT];
	char note[TEXT_SHOWN(BATON_NAME_MAX) + 4];
	const char *cells[TABLE_COLUMNS_MAX];
};

static const struct table_column columns[] = {
	{"ID", true},      {"QUEUE", false}, {"LANE", false}, {"STATE", false},
	{"ATTEMPT", true}, {"PUT", false},   {"DUE", false},  {"NOTE", false},
};
#define COLUMNS (sizeof columns / sizeof columns[0])

/* Who has it, or why it failed. */
static void note_fill(struct row *r, const struct baton_work_info *info)
{
	struct baton_str error = info->error;
	bool long_error = error.len > ERROR_SHOWN;
	if (info->state == BATON_BATCH_CLAIMED) {
		text_show(baton_str_z(info->owner.id), "", r->note);
		return;
	}
	if (long_error) {
		error.len = ERROR_SHOWN;
		while (error.len > 0 && !baton_str_is_utf8(error))
			error.len--;
	}
	text_show(error, "", r->note);
	size_t used = strlen(r->note);
	if (long_error)
		snprintf(r->note + used, sizeof r->note - used, "...");
}

static void row_fill(struct row *r, const struct baton_work_info *info)
{
	struct baton_store_time due =
		info->state == BATON_BATCH_CLAIMED ? info->expires_at : info->due;
	snprintf(r->attempt, sizeof r->attempt, "%" PRIu32, info->batch.attempt);
	note_fill(r, info);
	const char *cells[COLUMNS] = {
		info->batch.id.text,
		text_show(info->queue, "", r->queue),
		info->lane.len > 0 ? text_show(info->lane, "", r->lane) : "-",
		job_state_name(info->state),
		r->attempt,
		wall_print(info->batch.put_at, r->put),
		due.ms > 0 ? wall_print(due, r->due) : "-",
		r->note,
	};
	for (size_t i = 0; i < COLUMNS; i++)
		r->cells[i] = cells[i];
}

static void print_table(struct out *out, struct request *r, const struct baton_work_page *page)
{
	struct table table;
	struct row row;
	if (page->count == 0)
		return;
	table_init(&table, out, columns, COLUMNS);
	for (size_t i = 0; i < page->count; i++) {
		row_fill(&row, &page->infos[i]);
		table_measure(&table, row.cells);
	}
	if (!r->titled)
		table_titles(&table);
	r->titled = true;
	for (size_t i = 0; i < page->count && out->errnum == 0; i++) {
		row_fill(&row, &page->infos[i]);
		table_row(&table, row.cells);
	}
}

static void print_json(struct out *out, const struct baton_work_page *page)
{
	struct json json = {.line = {.out = out}};
	for (size_t i = 0; i < page->count && out->errnum == 0; i++) {
		json_open(&json, NULL);
		job_json(&json, &page->infos[i]);
		json_close(&json);
		json_end(&json);
	}
}

/* A page. 0 as *ret_next: that was the last one. */
static int print_page(struct out *out, struct request *r, uint32_t *left, uint64_t *ret_next)
{
	struct baton_work_page *page = NULL;
	r->filter.max = *left < BATON_LIST_MAX ? *left : BATON_LIST_MAX;
	enum baton_err e = baton_work_list(r->store.handle, &r->filter, &page);
	if (e != BATON_OK)
		return store_fail(&r->store, e);
	if (r->store.json)
		print_json(out, page);
	else
		print_table(out, r, page);
	*left -= (uint32_t)page->count;
	*ret_next = page->next;
	baton_work_page_free(page);
	return EX_OK;
}

static int list(struct out *out, struct request *r)
{
	uint32_t left = r->limit;
	uint64_t next = 0;
	do {
		int status = print_page(out, r, &left, &next);
		if (status != EX_OK)
			return status;
		r->filter.after = next;
	} while (next > 0 && left > 0 && out->errnum == 0);
	if (next > 0 && !r->store.json)
		complain("there may be more: go on with --after %" PRIu64, next);
	return EX_OK;
}

static bool add_all(struct errors *errors, const struct baton_work_page *page)
{
	bool memory = true;
	for (size_t i = 0; i < page->count && memory; i++)
		memory = errors_add(errors, &page->infos[i]);
	return memory;
}

/* Counts all that are dead in a queue. */
static enum baton_err count_queue(struct request *r, struct errors *errors)
{
	do {
		struct baton_work_page *page = NULL;
		enum baton_err e = baton_work_list(r->store.handle, &r->filter, &page);
		if (e != BATON_OK)
			return e;
		bool memory = add_all(errors, page);
		r->filter.after = page->next;
		baton_work_page_free(page);
		if (!memory)
			return BATON_NO_MEMORY;
	} while (r->filter.after > 0);
	return BATON_OK;
}

/* Counts all that are dead, queue by queue: a store can go from one of a queue to the next. */
static enum baton_err count_errors(struct request *r, struct errors *errors)
{
	char after[BATON_NAME_MAX + 1] = "";
	struct baton_queue_info info;
	size_t count = 1;
	r->filter.state = BATON_BATCH_DEAD;
	r->filter.max = BATON_LIST_MAX;
	if (r->filter.queue.len > 0)
		return count_queue(r, errors);
	for (;;) {
		enum baton_err e =
			baton_queue_list(r->store.handle, baton_str_z(after), &info, 1, &count);
		if (e != BATON_OK || count == 0)
			return e;
		snprintf(after, sizeof after, "%s", info.name);
		r->filter.queue = baton_str_z(after);
		if (info.counts.dead > 0)
			e = count_queue(r, errors);
		r->filter.queue = (struct baton_str){NULL, 0};
		if (e != BATON_OK)
			return e;
	}
}

static int list_errors(struct out *out, struct request *r)
{
	struct errors errors = {.count = 0};
	enum baton_err e = count_errors(r, &errors);
	if (e == BATON_OK && r->store.json)
		errors_json(&errors, out);
	else if (e == BATON_OK)
		errors_print(&errors, out);
	if (e == BATON_OK && errors.others > 0)
		complain("%" PRIu64 " more jobs died of other errors than the first %d",
		         errors.others, ERRORS_MAX);
	errors_done(&errors);
	return e == BATON_OK ? EX_OK : store_fail(&r->store, e);
}

/* Whether there is such a queue, if one is named. */
static int find_queue(const struct request *r)
{
	struct baton_queue_info info;
	if (r->filter.queue.len == 0)
		return EX_OK;
	enum baton_err e = baton_queue_get(r->store.handle, r->filter.queue, &info);
	if (e == BATON_NOT_FOUND)
		return lookup_no_queue(r->filter.queue);
	return e == BATON_OK ? EX_OK : store_fail(&r->store, e);
}

static bool take(void *arg, int option, const char *value)
{
	struct request *r = arg;
	char shown[SHOWN_MAX];
	switch (option) {
	case OPTION_STATE:
		return job_state_parse(value, &r->filter.state);
	case OPTION_BY_ERROR:
		r->by_error = true;
		return true;
	case OPTION_LIMIT:
		return number_parse("limit", value, LIMIT_MAX, &r->limit);
	case OPTION_AFTER:
		if (number_read(value, 0, AFTER_MAX, &r->filter.after))
			return true;
		complain("'--after' takes the seq of a job, not '%s'", show(value, shown));
		return false;
	default:
		return store_option(&r->store, option, value);
	}
	return true;
}

int cmd_ls(struct out *out, int argc, char **argv)
{
	struct request request = {.limit = LIMIT};
	struct operands operands = {.max = 2};
	const struct reading reading = {options, &operands, take, &request};
	int status;
	if (!reading_do(&reading, out, argc, argv, &status))
		return status;
	if ((operands.count > 0 && !name_queue(operands.texts[0], &request.filter.queue)) ||
	    (operands.count > 1 &&
	     !name_other("lane's name", operands.texts[1], &request.filter.lane)))
		return EX_USAGE;
	if (request.by_error && (request.filter.state || request.filter.after > 0)) {
		complain("--by-error counts all dead jobs, without --state and --after");
		return EX_USAGE;
	}
	status = store_open(&request.store, STORE_EXISTING);
	if (status == EX_OK)
		status = find_queue(&request);
	if (status == EX_OK)
		status = request.by_error ? list_errors(out, &request) : list(out, &request);
	store_close(&request.store);
	return status;
}
