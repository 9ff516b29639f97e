/* baton check: whether everything in a store fits together. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "command.h"
#include "json.h"
#include "store.h"

struct request {
	struct store store;
	struct out *out;
};

static void tell(const struct request *r, struct baton_str sentence)
{
	struct json json = {.line = {.out = r->out}};
	if (!r->store.json) {
		line_shown(&json.line, sentence);
		line_end(&json.line);
		return;
	}
	json_open(&json, NULL);
	json_bytes(&json, "fault", sentence);
	json_close(&json);
	json_end(&json);
}

/* What the database itself complains about may be several lines. */
static void on_fault(void *arg, const char *sentence)
{
	while (*sentence != '\0') {
		size_t len = strcspn(sentence, "\n");
		if (len > 0)
			tell(arg, (struct baton_str){sentence, len});
		sentence += len + (sentence[len] == '\n');
	}
}

static int check(struct request *r)
{
	uint64_t faults = 0;
	int status = store_open(&r->store, STORE_EXISTING);
	if (status != EX_OK)
		return status;
	enum baton_err e = baton_store_check(r->store.handle, on_fault, r, &faults);
	if (e != BATON_OK)
		return store_fail(&r->store, e);
	if (faults > 0)
		complain("%" PRIu64 " faults in '%s'; a copy made by 'baton backup' can take its "
		         "place",
		         faults, baton_store_where(r->store.handle));
	else if (!r->store.json)
		out_print(r->out, "no faults\n");
	return faults > 0 ? EXIT_FAILURE : EX_OK;
}

int cmd_check(struct out *out, int argc, char **argv)
{
	struct request request = {.out = out};
	struct operands operands = {.max = 0};
	int status;
	if (!store_reading(&request.store, &operands, out, argc, argv, &status))
		return status;
	status = check(&request);
	store_close(&request.store);
	return status;
}
