/* baton schedule: shows, makes, pauses and removes what puts jobs again and again, and puts what is
 * due. */
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "command.h"
#include "input.h"
#include "json.h"
#include "name.h"
#include "number.h"
#include "reading.h"
#include "schedule.h"
#include "store.h"
#include "verb.h"

#define PAGE 100
#define OPERANDS_MAX 1000

/* The operands of set: the verb, the name, the expression and the payload. */
#define SET_MAX 4

enum {
	OPTION_QUEUE = STORE_NEXT,
	OPTION_ZONE,
	OPTION_LANE,
	OPTION_PRIORITY,
	OPTION_MISSED
};

struct request {
	struct store store;
	struct out *out;
	const struct operands *operands; /* the first is the verb, the second the schedule */
	struct baton_schedule schedule;  /* as it is to be set; the name is for all verbs */
	const char *option;              /* one that is only for set; NULL: none was given */
	uint32_t count;                  /* of moments; 0: not said */
};

static const struct option options[] = {
	STORE_OPTIONS,
	{"queue", required_argument, NULL, OPTION_QUEUE},
	{"zone", required_argument, NULL, OPTION_ZONE},
	{"lane", required_argument, NULL, OPTION_LANE},
	{"priority", required_argument, NULL, OPTION_PRIORITY},
	{"missed", required_argument, NULL, OPTION_MISSED},
	{"count", required_argument, NULL, 'n'},
	{0},
};

/* False: the value is wrong, as has been said. */
static bool take(void *arg, int option, const char *value)
{
	struct request *r = arg;
	struct baton_schedule *s = &r->schedule;
	switch (option) {
	case OPTION_QUEUE:
		r->option = "--queue";
		return name_queue(value, &s->queue);
	case OPTION_ZONE:
		r->option = "--zone";
		return name_other("zone's name", value, &s->zone);
	case OPTION_LANE:
		r->option = "--lane";
		return name_other("lane's name", value, &s->lane);
	case OPTION_PRIORITY:
		r->option = "--priority";
		return number_between("priority", value, 0, BATON_PRIORITY_MAX, &s->priority);
	case OPTION_MISSED:
		r->option = "--missed";
		return schedule_missed_parse(value, &s->missed);
	case 'n':
		return number_between("count", value, 1, SCHEDULE_NEXT_MAX, &r->count);
	default:
		return store_option(&r->store, option, value);
	}
}

static void print_page(struct request *r, const struct baton_schedules *page, bool first)
{
	for (size_t i = 0; r->store.json && i < page->count; i++)
		schedule_json(r->out, &page->schedules[i], NULL, 0);
	if (!r->store.json && page->count > 0)
		schedule_table(r->out, page, baton_store_now(r->store.handle), first);
}

static int schedule_list(void *request)
{
	struct request *r = request;
	char after[BATON_NAME_MAX + 1] = "";
	size_t count = PAGE;
	while (count == PAGE && r->out->errnum == 0) {
		struct baton_schedules *page = NULL;
		enum baton_err e =
			baton_schedule_list(r->store.handle, baton_str_z(after), PAGE, &page);
		if (e != BATON_OK)
			return store_fail(&r->store, e);
		print_page(r, page, after[0] == '\0');
		count = page->count;
		if (count > 0)
			snprintf(after, sizeof after, "%.*s",
			         (int)page->schedules[count - 1].name.len,
			         page->schedules[count - 1].name.ptr);
		baton_schedules_free(page);
	}
	return EX_OK;
}

static int no_schedule(const struct request *r)
{
	char shown[SHOWN_MAX];
	complain("there is no schedule '%s'; 'baton schedule list' has those there are",
	         show(r->schedule.name.ptr, shown));
	return EXIT_FAILURE;
}

static int print_one(struct request *r, const struct baton_schedule *s)
{
	struct baton_store_time ticks[SCHEDULE_TICKS];
	struct baton_store_time now = baton_store_now(r->store.handle);
	size_t count;
	enum baton_err e =
		baton_schedule_ticks(s->cron, s->zone, now, ticks, SCHEDULE_TICKS, &count);
	if (e != BATON_OK)
		return store_fail(&r->store, e);
	if (r->store.json)
		schedule_json(r->out, s, ticks, count);
	else
		schedule_print(r->out, s, ticks, count);
	return EX_OK;
}

static int schedule_show(void *request)
{
	struct request *r = request;
	struct baton_schedules *found = NULL;
	enum baton_err e = baton_schedule_get(r->store.handle, r->schedule.name, &found);
	if (e == BATON_NOT_FOUND)
		return no_schedule(r);
	if (e != BATON_OK)
		return store_fail(&r->store, e);
	int status = print_one(r, &found->schedules[0]);
	baton_schedules_free(found);
	return status;
}

static int schedule_set(void *request)
{
	struct request *r = request;
	enum baton_err e = baton_schedule_set(r->store.handle, &r->schedule);
	return e == BATON_OK ? EX_OK : store_fail(&r->store, e);
}

static int schedule_remove(void *request)
{
	struct request *r = request;
	enum baton_err e = baton_schedule_remove(r->store.handle, r->schedule.name);
	if (e == BATON_NOT_FOUND)
		return no_schedule(r);
	return e == BATON_OK ? EX_OK : store_fail(&r->store, e);
}

static int change(struct request *r, bool paused)
{
	enum baton_err e = baton_schedule_pause(r->store.handle, r->schedule.name, paused);
	if (e == BATON_NOT_FOUND)
		return no_schedule(r);
	return e == BATON_OK ? EX_OK : store_fail(&r->store, e);
}

static int schedule_pause(void *request)
{
	return change(request, true);
}

static int schedule_resume(void *request)
{
	return change(request, false);
}

static int schedule_run(void *request)
{
	struct request *r = request;
	struct json json = {.line = {.out = r->out}};
	struct baton_put put;
	enum baton_err e = baton_schedule_run(r->store.handle, r->schedule.name, &put);
	if (e == BATON_NOT_FOUND)
		return no_schedule(r);
	if (e != BATON_OK)
		return store_fail(&r->store, e);
	if (r->store.json) {
		json_open(&json, NULL);
		json_text(&json, "id", put.id.text);
		json_close(&json);
		json_end(&json);
	} else {
		out_print(r->out, "%s\n", put.id.text);
	}
	if (r->out->errnum != 0)
		complain("job %s is stored, though that cannot be told", put.id.text);
	return EX_OK;
}

static int print_next(struct request *r, const struct baton_schedule *s)
{
	struct baton_store_time ticks[SCHEDULE_NEXT_MAX];
	struct baton_store_time now = baton_store_now(r->store.handle);
	size_t count, max = r->count > 0 ? r->count : SCHEDULE_TICKS;
	enum baton_err e = baton_schedule_ticks(s->cron, s->zone, now, ticks, max, &count);
	if (e != BATON_OK)
		return store_fail(&r->store, e);
	schedule_next_print(r->out, s, ticks, count, r->store.json);
	return EX_OK;
}

static int schedule_next(void *request)
{
	struct request *r = request;
	struct baton_schedules *found = NULL;
	enum baton_err e = baton_schedule_get(r->store.handle, r->schedule.name, &found);
	if (e == BATON_NOT_FOUND)
		return no_schedule(r);
	if (e != BATON_OK)
		return store_fail(&r->store, e);
	int status = print_next(r, &found->schedules[0]);
	baton_schedules_free(found);
	return status;
}

static void print_ticked(const struct request *r, size_t count, struct baton_store_time next)
{
	struct json json = {.line = {.out = r->out}};
	if (!r->store.json) {
		out_print(r->out, "%zu\n", count);
		return;
	}
	json_open(&json, NULL);
	json_number(&json, "put", count);
	json_time(&json, "next", next);
	json_close(&json);
	json_end(&json);
}

/* Whatever is wrong with one schedule keeps the others from nothing, so what was put is told. */
static int schedule_tick(void *request)
{
	struct request *r = request;
	struct baton_store_time next = BATON_STORE_TIME_NEVER;
	size_t count = 0;
	enum baton_err e = baton_schedule_tick(r->store.handle, &count, &next);
	if (e == BATON_OK || count > 0)
		print_ticked(r, count, next);
	return e == BATON_OK ? EX_OK : store_fail(&r->store, e);
}

static const struct verb verbs[] = {
	{"list", STORE_EXISTING, 1, 1, "nothing else", schedule_list},
	{"show", STORE_EXISTING, 2, 2, "the name of a schedule", schedule_show},
	{"set", STORE_MADE, 3, OPERANDS_MAX, "the name of a schedule, and when it ticks",
         schedule_set},
	{"remove", STORE_EXISTING, 2, 2, "the name of a schedule", schedule_remove},
	{"pause", STORE_EXISTING, 2, 2, "the name of a schedule", schedule_pause},
	{"resume", STORE_EXISTING, 2, 2, "the name of a schedule", schedule_resume},
	{"run", STORE_EXISTING, 2, 2, "the name of a schedule", schedule_run},
	{"next", STORE_EXISTING, 2, 2, "the name of a schedule", schedule_next},
	{"tick", STORE_EXISTING, 1, 1, "nothing else", schedule_tick},
};

/* The expression is asked for its first tick, so that one that is wrong makes no store. */
static bool set_fits(struct request *r)
{
	char shown[SHOWN_MAX];
	struct baton_store_time tick, now = {0};
	size_t count;
	if (r->operands->count > SET_MAX) {
		complain("'schedule set' got '%s' too; an expression such as '*/5 * * * *' is one "
		         "word, in quotes",
		         show(r->operands->texts[SET_MAX], shown));
		return false;
	}
	r->schedule.cron = baton_str_z(r->operands->texts[2]);
	if (baton_schedule_ticks(r->schedule.cron, r->schedule.zone, now, &tick, 1, &count) !=
	    BATON_OK) {
		complain("%s", baton_err_detail());
		return false;
	}
	if (r->schedule.queue.len > 0)
		return true;
	complain("'schedule set' needs --queue, where its jobs go");
	return false;
}

/* What is given is checked before the store is made. */
static bool fits(struct request *r, const struct verb *verb)
{
	bool sets = verb->run == schedule_set;
	const char *name = operand_at(r->operands, 1);
	if (name && baton_str_name("schedule's name", name, strlen(name), BATON_SCHEDULE_NAME_MAX,
	                           &r->schedule.name) != BATON_OK) {
		complain("%s", baton_err_detail());
		return false;
	}
	if (!sets && r->option)
		complain("%s is for 'schedule set'", r->option);
	else if (r->count > 0 && verb->run != schedule_next)
		complain("--count is for 'schedule next'");
	else
		return !sets || set_fits(r);
	return false;
}

/* *ret_read is freed by the caller. */
static int read_payload(struct request *r, char **ret_read)
{
	const char *payload = operand_at(r->operands, SET_MAX - 1);
	if (!payload)
		payload = "";
	r->schedule.payload = baton_str_z(payload);
	if (strcmp(payload, "-") != 0)
		return EX_OK;
	int status = input_all("the payload", BATON_QUEUE_PAYLOAD_LIMIT, ret_read,
	                       &r->schedule.payload.len);
	r->schedule.payload.ptr = *ret_read;
	return status;
}

static int run(struct request *r)
{
	const struct verbs known = {"schedule", verbs, sizeof verbs / sizeof verbs[0]};
	const struct verb *verb = verb_choose(&known, r->operands);
	if (!verb || !fits(r, verb))
		return EX_USAGE;
	bool puts = verb->run == schedule_tick || verb->run == schedule_run;
	if (puts && !out_is_writable(r->out))
		return EX_IOERR;
	char *read = NULL;
	int status = read_payload(r, &read);
	if (status == EX_OK)
		status = store_open(&r->store, verb->need);
	if (status == EX_OK)
		status = verb->run(r);
	store_close(&r->store);
	free(read);
	return status;
}

int cmd_schedule(struct out *out, int argc, char **argv)
{
	struct operands operands = {.max = OPERANDS_MAX};
	struct request request = {.out = out, .operands = &operands};
	const struct reading reading = {options, &operands, take, &request};
	int status;
	if (!reading_do(&reading, out, argc, argv, &status))
		return status;
	return run(&request);
}
