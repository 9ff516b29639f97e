/* baton runner: shows the runners of a store, and asks them for something. */
#include <stdlib.h>
#include <sysexits.h>

#include "command.h"
#include "figures.h"
#include "name.h"
#include "reading.h"
#include "runners.h"
#include "store.h"
#include "verb.h"

#define OPERANDS_MAX 3

struct request {
	struct store store;
	struct out *out;
	const struct operands *operands; /* the first is the verb, the second the runner */
	struct baton_str name;
	bool metrics; /* as Prometheus reads them */
};

enum {
	OPTION_METRICS = STORE_NEXT
};

static const struct option options[] = {
	STORE_OPTIONS,
	{"metrics", no_argument, NULL, OPTION_METRICS},
	{0},
};

static bool take(void *arg, int option, const char *value)
{
	struct request *r = arg;
	if (option != OPTION_METRICS)
		return store_option(&r->store, option, value);
	r->metrics = true;
	return true;
}

/* For programs, with what the runners have done. */
static enum baton_err write_figures(struct request *r, const struct runners *runners)
{
	struct figures figures = {.all = NULL};
	enum baton_err e = figures_read(&figures, runners, r->store.handle);
	if (e == BATON_OK && r->metrics)
		e = figures_expose(&figures, runners, baton_store_now(r->store.handle), r->out);
	else if (e == BATON_OK)
		runners_json(runners, &figures, r->out);
	figures_done(&figures);
	return e;
}

static int runner_list(void *request)
{
	struct request *r = request;
	struct runners runners = {.count = 0};
	enum baton_err e = runners_read(&runners, r->store.handle);
	if (e == BATON_OK)
		e = r->metrics || r->store.json ? write_figures(r, &runners)
		                                : runners_print(&runners, r->out);
	runners_done(&runners);
	if (e == BATON_NO_MEMORY) {
		complain("no memory for the list of runners");
		return EX_OSERR;
	}
	return e == BATON_OK ? EX_OK : store_fail(&r->store, e);
}

static int wish(struct request *r, enum baton_runner_wish wish)
{
	char shown[SHOWN_MAX];
	enum baton_err e = baton_runner_wish(r->store.handle, r->name, wish);
	if (e != BATON_NOT_FOUND)
		return e == BATON_OK ? EX_OK : store_fail(&r->store, e);
	complain("there is no runner '%s'; 'baton runner' has those there are",
	         show(r->name.ptr, shown));
	return EXIT_FAILURE;
}

static int runner_detach(void *request)
{
	return wish(request, BATON_WISH_DETACH);
}

static int runner_attach(void *request)
{
	return wish(request, BATON_WISH_WORK);
}

static int runner_drain(void *request)
{
	return wish(request, BATON_WISH_DRAIN);
}

static const struct verb verbs[] = {
	{"list", STORE_EXISTING, 1, 1, "nothing else", runner_list},
	{"detach", STORE_EXISTING, 2, 2, "the name of a runner", runner_detach},
	{"attach", STORE_EXISTING, 2, 2, "the name of a runner", runner_attach},
	{"drain", STORE_EXISTING, 2, 2, "the name of a runner", runner_drain},
};

static int run(struct request *r)
{
	const struct verbs known = {"runner", verbs, sizeof verbs / sizeof verbs[0]};
	const struct verb *verb = verb_choose(&known, r->operands);
	const char *name = operand_at(r->operands, 1);
	if (!verb || (name && !name_other("runner's name", name, &r->name)))
		return EX_USAGE;
	if (r->metrics && (r->store.json || verb->run != runner_list)) {
		complain("--metrics is for 'list' alone, and not with --json");
		return EX_USAGE;
	}
	int status = store_open(&r->store, verb->need);
	if (status == EX_OK)
		status = verb->run(r);
	store_close(&r->store);
	return status;
}

int cmd_runner(struct out *out, int argc, char **argv)
{
	struct operands operands = {.max = OPERANDS_MAX};
	struct request request = {.out = out, .operands = &operands};
	const struct reading reading = {options, &operands, take, &request};
	int status;
	if (!reading_do(&reading, out, argc, argv, &status))
		return status;
	return run(&request);
}
