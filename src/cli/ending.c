/* Ending a claim. */
#include <sysexits.h>

#include "ending.h"
#include "job.h"
#include "proof.h"

static void tell_json(struct out *out, const struct baton_work_ended *ended)
{
	struct json json = {.line = {.out = out}};
	json_open(&json, NULL);
	json_text(&json, "state", job_state_name(ended->state));
	json_time(&json, "due", ended->due.ms > 0 ? ended->due : BATON_STORE_TIME_NEVER);
	json_close(&json);
	json_end(&json);
}

/* What is completed or given back has no more to be said about it. */
static void tell(struct out *out, const struct ending *e, const struct baton_work_ended *ended)
{
	char due[BATON_STORE_TIME_TEXT];
	if (e->store.json)
		tell_json(out, ended);
	else if (e->end.how == BATON_COMPLETE || e->end.how == BATON_ABANDON)
		return;
	else if (ended->due.ms > 0)
		out_print(out, "%s %s\n", job_state_name(ended->state),
		          baton_store_time_print(ended->due, due));
	else
		out_print(out, "%s\n", job_state_name(ended->state));
}

static int end(struct out *out, struct ending *e)
{
	struct baton_work_ended ended;
	enum baton_err err = baton_work_end(e->store.handle, &e->end, 1, &ended);
	if (err != BATON_OK)
		return store_fail(&e->store, err);
	if (ended.err == BATON_NOT_HELD)
		return proof_lost(&e->end.proof);
	if (ended.err != BATON_OK)
		return store_fail(&e->store, ended.err);
	tell(out, e, &ended);
	return EX_OK;
}

int ending_run(struct out *out, struct ending *e, const struct operands *operands, size_t first)
{
	if (!proof_parse(operands, first, &e->end.proof))
		return EX_USAGE;
	int status = store_open(&e->store, STORE_EXISTING);
	if (status == EX_OK)
		status = end(out, e);
	store_close(&e->store);
	return status;
}
