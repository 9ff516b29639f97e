/* baton claim: takes work from a queue. */
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "command.h"
#include "grant.h"
#include "moment.h"
#include "name.h"
#include "number.h"
#include "reading.h"
#include "store.h"

enum {
	OPTION_MAX = STORE_NEXT,
	OPTION_TTL,
	OPTION_OWNER,
	OPTION_WAIT,
	OPTION_SHELL
};

struct request {
	struct store store;
	struct baton_work_ask ask;
	struct baton_owner owner;
	struct baton_str name;      /* of the owner; empty: this user's */
	struct baton_duration wait; /* 0: not at all */
	bool shell;
};

static const struct option options[] = {
	STORE_OPTIONS,
	{"claims", required_argument, NULL, 'n'},
	{"max", required_argument, NULL, OPTION_MAX},
	{"ttl", required_argument, NULL, OPTION_TTL},
	{"owner", required_argument, NULL, OPTION_OWNER},
	{"wait", required_argument, NULL, OPTION_WAIT},
	{"shell", no_argument, NULL, OPTION_SHELL},
	{0},
};

static bool take(void *arg, int option, const char *value)
{
	struct request *r = arg;
	const struct span_limits ttl = span_limits_ttl();
	const struct span_limits wait = {{0}, BATON_DURATION_FOREVER};
	switch (option) {
	case 'n':
		return number_parse("claims", value, BATON_CLAIMS_MAX, &r->ask.claims);
	case OPTION_MAX:
		return number_parse("max", value, BATON_JOIN_MAX, &r->ask.max);
	case OPTION_TTL:
		return span_parse("--ttl", value, &ttl, &r->ask.ttl);
	case OPTION_OWNER:
		return name_other("owner's name", value, &r->name);
	case OPTION_WAIT:
		return span_parse("--wait", value, &wait, &r->wait);
	case OPTION_SHELL:
		r->shell = true;
		break;
	default:
		return store_option(&r->store, option, value);
	}
	return true;
}

static bool fits(const struct request *r)
{
	if (r->shell && r->store.json)
		complain("--shell and --json cannot be together");
	else if (r->shell && (r->ask.claims > 1 || r->ask.max > 1))
		complain("--shell is for one claim of one job: -n and --max cannot be with it");
	else
		return true;
	return false;
}

/* The claim outlives this process, so nothing may be concluded from its end: the owner is somebody
 * of whom only the name is known. */
static enum baton_err owner_make(struct request *r)
{
	char name[BATON_NAME_MAX + 1];
	char host[65] = "";
	struct baton_str shown = r->name;
	if (shown.len == 0) {
		const char *user = getenv("LOGNAME");
		gethostname(host, sizeof host - 1);
		snprintf(name, sizeof name, "%.180s@%s",
		         user && user[0] != '\0' ? user : "somebody",
		         host[0] != '\0' ? host : "localhost");
		shown = baton_str_z(name);
	}
	enum baton_err e = baton_owner_opaque(shown, &r->owner);
	r->ask.owner = &r->owner;
	return e;
}

/* Asks until something is given, or the time is over. A queue that is not there yet may come. */
static enum baton_err claim(struct request *r, struct baton_work_claims **ret)
{
	const struct baton_clock *clock = baton_clock_awake();
	struct baton_store_time told = {0};
	const struct baton_store_wait wait = {
		.queue = r->ask.queue,
		.until = baton_mono_add(clock->now(clock), r->wait),
		.told = &told,
	};
	uint64_t seen = 0;
	for (;;) {
		enum baton_err waited = r->wait.ns > 0
		                                ? baton_store_wait(r->store.handle, &wait, &seen)
		                                : BATON_TIMEOUT;
		if (waited != BATON_OK && waited != BATON_TIMEOUT)
			return waited;
		enum baton_err e = baton_work_claim(r->store.handle, &r->ask, ret);
		bool nothing = (e == BATON_OK && !*ret) || (e == BATON_NOT_FOUND && r->wait.ns > 0);
		if (!nothing || waited == BATON_TIMEOUT)
			return e;
	}
}

/* Gives back what nobody has been told of. */
static void give_back(const struct request *r, const struct baton_work_claims *claims)
{
	for (size_t i = 0; i < claims->count; i++) {
		const struct baton_work_end end = {
			.proof = claims->claims[i].proof,
			.how = BATON_ABANDON,
		};
		struct baton_work_ended answer;
		baton_work_end(r->store.handle, &end, 1, &answer);
	}
}

static void tell(struct out *out, const struct request *r, const struct baton_work_claims *claims)
{
	if (r->shell)
		grant_shell(out, &claims->claims[0]);
	else if (r->store.json)
		grant_json(out, claims);
	else
		grant_lines(out, claims);
}

static int ask(struct out *out, struct request *r)
{
	struct baton_work_claims *claims = NULL;
	char shown[SHOWN_MAX];
	enum baton_err e = claim(r, &claims);
	if (e == BATON_NOT_FOUND) {
		complain("there is no queue '%s': the first put makes it",
		         show(r->ask.queue.ptr, shown));
		return EXIT_FAILURE;
	}
	if (e != BATON_OK)
		return store_fail(&r->store, e);
	if (!claims) {
		if (r->store.verbose)
			complain("there is nothing to claim");
		return EX_TEMPFAIL;
	}
	tell(out, r, claims);
	if (out->errnum != 0)
		give_back(r, claims);
	baton_work_claims_free(claims);
	return EX_OK;
}

static int run(struct out *out, struct request *r)
{
	/* What cannot be told is better not claimed. */
	if (!out_is_writable(out))
		return EX_IOERR;
	enum baton_err e = owner_make(r);
	if (e != BATON_OK)
		return store_fail(&r->store, e);
	int status = store_open(&r->store, r->wait.ns > 0 ? STORE_MADE : STORE_EXISTING);
	if (status != EX_OK)
		return status;
	if (r->wait.ns > 0)
		bell_listen(&r->store.bell, r->store.handle, &r->ask.queue, 1);
	return ask(out, r);
}

static int parse_and_run(struct request *r, struct out *out, int argc, char **argv)
{
	struct operands operands = {.max = 1};
	const struct reading reading = {options, &operands, take, r};
	int status;
	if (!reading_do(&reading, out, argc, argv, &status))
		return status;
	if (!name_needed(&operands, 1, argv[0], "the name of a queue") ||
	    !name_queue(operands.texts[0], &r->ask.queue) || !fits(r))
		return EX_USAGE;
	status = run(out, r);
	store_close(&r->store);
	return status;
}

/* A script that evaluates what is written must not go on with an earlier claim, whatever it is that
 * went wrong: also if that stands before --shell, which has not been read then. */
int cmd_claim(struct out *out, int argc, char **argv)
{
	struct request request = {.ask = {.claims = 1, .max = 1}};
	bool shell = false;
	for (int i = 1; i < argc; i++)
		shell = shell || strcmp(argv[i], "--shell") == 0;
	int status = parse_and_run(&request, out, argc, argv);
	if (status != EX_OK && (shell || request.shell))
		grant_shell_none(out, status);
	return status;
}
