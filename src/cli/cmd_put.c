/* baton put: adds work to a queue. */
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "command.h"
#include "input.h"
#include "job.h"
#include "jobline.h"
#include "load.h"
#include "moment.h"
#include "name.h"
#include "number.h"
#include "reading.h"
#include "store.h"

enum {
	OPTION_LANE = STORE_NEXT,
	OPTION_DELAY,
	OPTION_AT,
	OPTION_PRIORITY,
	OPTION_JOIN,
	OPTION_COMMAND,
	OPTION_AFTER_COMMIT,
	OPTION_CONCURRENCY_KEY,
	OPTION_KEY,
	OPTION_ATTEMPTS,
	OPTION_FILE,
	OPTION_ATOMIC,
	OPTION_CHECK_FIRST
};

struct request {
	struct store store;
	struct baton_batch batch;
	struct baton_str keys[BATON_KEYS_MAX]; /* the batch's */
	uint32_t attempts;                     /* 0: as the queue has it */
	const char *payload;
	const char *file;
	bool delayed, dated; /* --delay, --at */
	bool atomic, check_first;
};

static const struct option options[] = {
	STORE_OPTIONS,
	{"lane", required_argument, NULL, OPTION_LANE},
	{"concurrency-key", required_argument, NULL, OPTION_CONCURRENCY_KEY},
	{"delay", required_argument, NULL, OPTION_DELAY},
	{"at", required_argument, NULL, OPTION_AT},
	{"priority", required_argument, NULL, OPTION_PRIORITY},
	{"join", optional_argument, NULL, OPTION_JOIN},
	{"command", no_argument, NULL, OPTION_COMMAND},
	{"after-commit", no_argument, NULL, OPTION_AFTER_COMMIT},
	{"idempotency-key", required_argument, NULL, OPTION_KEY},
	{"attempts", required_argument, NULL, OPTION_ATTEMPTS},
	{"file", required_argument, NULL, OPTION_FILE},
	{"atomic", no_argument, NULL, OPTION_ATOMIC},
	{"check-first", no_argument, NULL, OPTION_CHECK_FIRST},
	{0},
};

static bool take_join(struct baton_batch *batch, const char *group)
{
	batch->slot = BATON_JOIN;
	return !group || name_other("group's name", group, &batch->group);
}

static bool take_key(struct request *r, const char *value)
{
	struct baton_batch *batch = &r->batch;
	if (batch->key_count == BATON_KEYS_MAX) {
		complain("--concurrency-key is given more than %d times", BATON_KEYS_MAX);
		return false;
	}
	batch->keys = r->keys;
	return name_other("concurrency key", value, &r->keys[batch->key_count++]);
}

/* False: the value is wrong, as has been said. */
static bool take(void *arg, int option, const char *value)
{
	struct request *r = arg;
	const struct span_limits limits = span_limits_delay();
	switch (option) {
	case OPTION_LANE:
		return name_other("lane's name", value, &r->batch.lane);
	case OPTION_CONCURRENCY_KEY:
		return take_key(r, value);
	case OPTION_DELAY:
		r->delayed = true;
		return span_parse("--delay", value, &limits, &r->batch.delay);
	case OPTION_AT:
		r->dated = true;
		return moment_parse("at", value, &r->batch.at);
	case OPTION_PRIORITY:
		return number_between("priority", value, 0, BATON_PRIORITY_MAX, &r->batch.priority);
	case OPTION_JOIN:
		return take_join(&r->batch, value);
	case OPTION_COMMAND:
		r->batch.cls = BATON_COMMAND;
		break;
	case OPTION_AFTER_COMMIT:
		r->batch.delivery = BATON_AFTER_COMMIT;
		break;
	case OPTION_KEY:
		return name_other("idempotency key", value, &r->batch.source);
	case OPTION_ATTEMPTS:
		return number_parse("attempts", value, BATON_QUEUE_ATTEMPTS_MAX, &r->attempts);
	case OPTION_FILE:
		r->file = value;
		break;
	case OPTION_ATOMIC:
		r->atomic = true;
		break;
	case OPTION_CHECK_FIRST:
		r->check_first = true;
		break;
	default:
		return store_option(&r->store, option, value);
	}
	return true;
}

/* What cannot be together. */
static bool fits(const struct request *r)
{
	if (r->delayed && r->dated)
		complain("--delay and --at cannot be together");
	else if (r->batch.slot == BATON_JOIN && r->batch.cls == BATON_COMMAND)
		complain("--join and --command cannot be together: a command is claimed alone");
	else if (r->file && r->payload)
		complain("a payload and --file cannot be together");
	else if (!r->file && !r->payload)
		complain("'put' needs a payload: a text, '-' for standard input, or --file FILE");
	else if (r->file && r->batch.source.len > 0)
		complain("--idempotency-key is for one job: in a file each line has its own");
	else if (r->atomic && !r->file)
		complain("--atomic is for --file: one job is always stored wholly or not at all");
	else if (r->check_first && !r->file)
		complain("--check-first is for --file: one job is always checked first");
	else if (r->check_first && r->atomic)
		complain("--check-first and --atomic cannot be together: what is stored in one "
		         "transaction is checked with it");
	else
		return true;
	return false;
}

static void tell(struct out *out, const struct request *r, const struct baton_put *put)
{
	struct json json = {.line = {.out = out}};
	if (!r->store.json) {
		out_print(out, "%s\n", put->id.text);
		return;
	}
	json_open(&json, NULL);
	json_text(&json, "id", put->id.text);
	json_text(&json, "state", job_state_name(put->state));
	json_bool(&json, "existing", put->existing);
	json_close(&json);
	json_end(&json);
}

static int put_one(struct out *out, struct request *r, struct baton_str payload)
{
	struct baton_put put;
	r->batch.payloads = &payload;
	r->batch.count = 1;
	int status = store_open(&r->store, STORE_MADE);
	if (status != EX_OK)
		return status;
	enum baton_err e = baton_work_put(r->store.handle, &r->batch, 1, &put);
	if (e != BATON_OK)
		return store_fail(&r->store, e);
	tell(out, r, &put);
	if (out->errnum != 0)
		complain("job %s is stored, though that cannot be told", put.id.text);
	return EX_OK;
}

/* What is read is read before the store is made. */
static int put_payload(struct out *out, struct request *r)
{
	struct baton_str payload = baton_str_z(r->payload);
	char *read = NULL;
	if (strcmp(r->payload, "-") == 0) {
		int status =
			input_all("the payload", BATON_QUEUE_PAYLOAD_LIMIT, &read, &payload.len);
		if (status != EX_OK)
			return status;
		payload.ptr = read;
	}
	int status = put_one(out, r, payload);
	free(read);
	return status;
}

static int put_file(struct out *out, struct request *r)
{
	const struct load load = {
		.store = &r->store,
		.out = out,
		.template = r->batch,
		.json = r->store.json,
		.atomic = r->atomic,
		.check_first = r->check_first,
	};
	return load_file(&load, r->file);
}

int cmd_put(struct out *out, int argc, char **argv)
{
	struct request request = {.file = NULL};
	struct operands operands = {.max = 2};
	const struct reading reading = {options, &operands, take, &request};
	int status;
	if (!reading_do(&reading, out, argc, argv, &status))
		return status;
	request.payload = operand_at(&operands, 1);
	if (!name_needed(&operands, 1, argv[0], "the name of a queue") ||
	    !name_queue(operands.texts[0], &request.batch.queue) || !fits(&request))
		return EX_USAGE;
	if (request.attempts > 0)
		request.batch.retry = jobline_retry(request.attempts, request.batch.lane.len > 0);
	if (!out_is_writable(out))
		return EX_IOERR;
	status = request.file ? put_file(out, &request) : put_payload(out, &request);
	store_close(&request.store);
	return status;
}
