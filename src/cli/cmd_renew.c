/* baton renew: makes a claim last longer. */
#include <sysexits.h>

#include "command.h"
#include "json.h"
#include "moment.h"
#include "proof.h"
#include "reading.h"
#include "store.h"

#define OPTION_TTL STORE_NEXT

struct request {
	struct store store;
	struct baton_work_proof proof;
	struct baton_duration ttl;
};

static void tell(struct out *out, const struct request *r, const struct baton_work_renewal *renewal)
{
	struct json json = {.line = {.out = out}};
	char text[BATON_STORE_TIME_TEXT];
	if (!r->store.json) {
		out_print(out, "%s%s\n", baton_store_time_print(renewal->expires_at, text),
		          renewal->cancel ? " cancel" : "");
		return;
	}
	json_open(&json, NULL);
	json_time(&json, "expires", renewal->expires_at);
	json_bool(&json, "cancel", renewal->cancel);
	json_close(&json);
	json_end(&json);
}

static int renew(struct out *out, struct request *r)
{
	struct baton_work_renewal renewal;
	int status = store_open(&r->store, STORE_EXISTING);
	if (status != EX_OK)
		return status;
	enum baton_err e = baton_work_renew(r->store.handle, &r->proof, 1, r->ttl, &renewal);
	if (e != BATON_OK)
		return store_fail(&r->store, e);
	if (renewal.err != BATON_OK)
		return proof_lost(&r->proof);
	tell(out, r, &renewal);
	return EX_OK;
}

static bool take(void *arg, int option, const char *value)
{
	const struct span_limits limits = span_limits_ttl();
	struct request *r = arg;
	if (option == OPTION_TTL)
		return span_parse("--ttl", value, &limits, &r->ttl);
	return store_option(&r->store, option, value);
}

int cmd_renew(struct out *out, int argc, char **argv)
{
	static const struct option options[] = {
		STORE_OPTIONS,
		{"ttl", required_argument, NULL, OPTION_TTL},
		{0},
	};
	struct request request = {.ttl = {0}};
	struct operands operands = {.max = 2};
	const struct reading reading = {options, &operands, take, &request};
	int status;
	if (!reading_do(&reading, out, argc, argv, &status))
		return status;
	if (!proof_parse(&operands, 0, &request.proof))
		return EX_USAGE;
	status = renew(out, &request);
	store_close(&request.store);
	return status;
}
