/* The jobs that a command is about. */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "command.h"
#include "job.h"
#include "json.h"
#include "lookup.h"
#include "name.h"
#include "reading.h"
#include "several.h"

#define SELECTED_MAX ((size_t)10000000)

enum {
	OPTION_QUEUE = STORE_NEXT,
	OPTION_LANE,
	OPTION_STATE,
	OPTION_ERROR
};

static const struct option options[] = {
	STORE_OPTIONS,
	{"queue", required_argument, NULL, OPTION_QUEUE},
	{"lane", required_argument, NULL, OPTION_LANE},
	{"state", required_argument, NULL, OPTION_STATE},
	{"error", required_argument, NULL, OPTION_ERROR},
	{0},
};

static bool take(void *arg, int option, const char *value)
{
	struct several *s = arg;
	switch (option) {
	case OPTION_QUEUE:
		return name_queue(value, &s->filter.queue);
	case OPTION_LANE:
		return name_other("lane's name", value, &s->filter.lane);
	case OPTION_STATE:
		return job_state_parse(value, &s->filter.state);
	case OPTION_ERROR:
		s->error = value;
		return true;
	default:
		return store_option(&s->store, option, value);
	}
}

static int read_ids(struct several *s, const struct operands *operands)
{
	s->ids = calloc(operands->count, sizeof *s->ids);
	if (!s->ids) {
		complain("no memory for %zu ids", operands->count);
		return EX_OSERR;
	}
	for (s->count = 0; s->count < operands->count; s->count++) {
		if (!name_job(operands->texts[s->count], &s->ids[s->count]))
			return EX_USAGE;
	}
	return EX_OK;
}

/* Room for one more. */
static bool grow(struct several *s)
{
	if ((s->count & (s->count - 1)) != 0)
		return true;
	size_t room = s->count > 0 ? 2 * s->count : 1;
	struct baton_batch_id *ids =
		s->count < SELECTED_MAX ? realloc(s->ids, room * sizeof *ids) : NULL;
	if (!ids)
		complain("%zu jobs are too many at once: --lane and --error take fewer", s->count);
	else
		s->ids = ids;
	return ids != NULL;
}

static bool fits(const struct several *s, const struct baton_work_info *info)
{
	char text[BATON_ERROR_MAX + 1];
	size_t len = info->error.len < sizeof text - 1 ? info->error.len : sizeof text - 1;
	if (!s->error)
		return true;
	if (len > 0)
		memcpy(text, info->error.ptr, len);
	text[len] = '\0';
	return len > 0 && fnmatch(s->error, text, 0) == 0;
}

static int select_page(struct several *s)
{
	struct baton_work_page *page = NULL;
	enum baton_err e = baton_work_list(s->store.handle, &s->filter, &page);
	if (e != BATON_OK)
		return store_fail(&s->store, e);
	bool room = true;
	for (size_t i = 0; i < page->count && room; i++) {
		if (!fits(s, &page->infos[i]))
			continue;
		room = grow(s);
		if (room)
			s->ids[s->count++] = page->infos[i].batch.id;
	}
	s->filter.after = page->next;
	baton_work_page_free(page);
	return room ? EX_OK : EX_OSERR;
}

/* All are looked for before any is changed: what is changed may come again. */
static int select_all(struct several *s)
{
	struct baton_queue_info info;
	enum baton_err e = baton_queue_get(s->store.handle, s->filter.queue, &info);
	if (e != BATON_OK)
		return e == BATON_NOT_FOUND ? lookup_no_queue(s->filter.queue)
		                            : store_fail(&s->store, e);
	s->filter.max = BATON_LIST_MAX;
	int status = grow(s) ? EX_OK : EX_OSERR;
	do {
		if (status == EX_OK)
			status = select_page(s);
	} while (status == EX_OK && s->filter.after > 0);
	return status;
}

static bool is_clear(const struct several *s, const struct operands *operands)
{
	bool chosen = s->filter.queue.len > 0;
	char shown[SHOWN_MAX];
	if (chosen && operands->count > 0)
		complain("--queue takes no id, and got '%s'", show(operands->texts[0], shown));
	else if (!chosen && (s->filter.lane.len > 0 || s->filter.state || s->error))
		complain("--lane, --state and --error need --queue");
	else
		return true;
	return false;
}

int several_parse(struct several *s, enum baton_batch_state usual, struct out *out, int argc,
                  char **argv)
{
	struct operands operands = {.max = BATON_PUT_MAX};
	const struct reading reading = {options, &operands, take, s};
	*s = (struct several){.ids = NULL};
	int status;
	if (!reading_do(&reading, out, argc, argv, &status))
		return status;
	bool chosen = s->filter.queue.len > 0;
	if (!is_clear(s, &operands) ||
	    (!chosen && !name_needed(&operands, 1, argv[0], "the id of a job")))
		return EX_USAGE;
	if (s->filter.state == 0)
		s->filter.state = usual;
	status = chosen ? EX_OK : read_ids(s, &operands);
	if (status == EX_OK)
		status = store_open(&s->store, STORE_EXISTING);
	if (status == EX_OK && chosen)
		status = select_all(s);
	if (status != EX_OK)
		several_done(s);
	return status;
}

void several_done(struct several *s)
{
	store_close(&s->store);
	free(s->ids);
	s->ids = NULL;
}

void several_tell(const struct several *s, struct out *out, size_t index, const char *what)
{
	struct json json = {.line = {.out = out}};
	if (!s->store.json) {
		out_print(out, "%s %s\n", s->ids[index].text, what);
		return;
	}
	json_open(&json, NULL);
	json_text(&json, "id", s->ids[index].text);
	json_text(&json, "answer", what);
	json_close(&json);
	json_end(&json);
}
