/* baton queue: shows and changes the queues of a store. */
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "command.h"
#include "line.h"
#include "lookup.h"
#include "name.h"
#include "policy.h"
#include "queues.h"
#include "store.h"
#include "verb.h"

#define PAGE 100
#define OPERANDS_MAX 1000

struct request {
	struct store store;
	struct out *out;
	const struct operands *operands; /* the first is the verb, the second the queue */
	struct baton_str queue;
	struct policy_change change;
};

static int list_into(struct request *r, struct baton_queue_info *infos)
{
	char after[BATON_NAME_MAX + 1] = "";
	size_t count;
	do {
		enum baton_err e =
			baton_queue_list(r->store.handle, baton_str_z(after), infos, PAGE, &count);
		if (e != BATON_OK)
			return store_fail(&r->store, e);
		for (size_t i = 0; r->store.json && i < count; i++)
			queue_json(r->out, &infos[i]);
		if (!r->store.json && count > 0)
			queues_print(r->out, infos, count, after[0] == '\0');
		if (count > 0)
			memcpy(after, infos[count - 1].name, sizeof after);
	} while (count == PAGE && r->out->errnum == 0);
	return EX_OK;
}

static int queue_list(void *request)
{
	struct request *r = request;
	struct baton_queue_info *infos = calloc(PAGE, sizeof *infos);
	if (!infos) {
		complain("no memory for the list of queues");
		return EX_OSERR;
	}
	int status = list_into(r, infos);
	free(infos);
	return status;
}

static int queue_show(void *request)
{
	struct request *r = request;
	struct line line = {.out = r->out};
	struct baton_queue_info info;
	enum baton_err e = baton_queue_get(r->store.handle, r->queue, &info);
	if (e == BATON_NOT_FOUND)
		return lookup_no_queue(r->queue);
	if (e != BATON_OK)
		return store_fail(&r->store, e);
	if (r->store.json) {
		queue_json(r->out, &info);
		return EX_OK;
	}
	queues_print(r->out, &info, 1, true);
	line_end(&line);
	policy_print(&line, &info.policy);
	return EX_OK;
}

static int queue_set(void *request)
{
	struct request *r = request;
	enum baton_err e =
		baton_queue_change(r->store.handle, r->queue, &r->change.policy, r->change.fields);
	return e == BATON_OK ? EX_OK : store_fail(&r->store, e);
}

static int pause_or_resume(struct request *r, bool paused)
{
	enum baton_err e = baton_queue_pause(r->store.handle, r->queue, paused);
	if (e == BATON_NOT_FOUND)
		return lookup_no_queue(r->queue);
	return e == BATON_OK ? EX_OK : store_fail(&r->store, e);
}

static int queue_pause(void *request)
{
	return pause_or_resume(request, true);
}

static int queue_resume(void *request)
{
	return pause_or_resume(request, false);
}

static const struct verb verbs[] = {
	{"list", STORE_EXISTING, 1, 1, "nothing else", queue_list},
	{"show", STORE_EXISTING, 2, 2, "the name of a queue", queue_show},
	{"set", STORE_MADE, 3, OPERANDS_MAX, "the name of a queue, and KEY=VALUE", queue_set},
	{"pause", STORE_EXISTING, 2, 2, "the name of a queue", queue_pause},
	{"resume", STORE_EXISTING, 2, 2, "the name of a queue", queue_resume},
};

/* What is given is checked before the store is made. */
static bool fits(struct request *r)
{
	if (r->operands->count > 1 && !name_queue(r->operands->texts[1], &r->queue))
		return false;
	for (size_t i = 2; i < r->operands->count; i++) {
		if (!policy_assign(&r->change, r->operands->texts[i]))
			return false;
	}
	return true;
}

static int run(struct request *r)
{
	const struct verbs known = {"queue", verbs, sizeof verbs / sizeof verbs[0]};
	const struct verb *verb = verb_choose(&known, r->operands);
	if (!verb || !fits(r))
		return EX_USAGE;
	int status = store_open(&r->store, verb->need);
	if (status == EX_OK)
		status = verb->run(r);
	store_close(&r->store);
	return status;
}

int cmd_queue(struct out *out, int argc, char **argv)
{
	struct operands operands = {.max = OPERANDS_MAX};
	struct request request = {.out = out, .operands = &operands};
	int status;
	if (!store_reading(&request.store, &operands, out, argc, argv, &status))
		return status;
	return run(&request);
}
