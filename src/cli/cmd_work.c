/* baton work: executes a command for each job of queues. */
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "command.h"
#include "moment.h"
#include "name.h"
#include "number.h"
#include "reading.h"
#include "store.h"

enum {
	OPTION_TIMEOUT = STORE_NEXT,
	OPTION_GRACE,
	OPTION_JOIN,
	OPTION_LINES,
	OPTION_STREAM,
	OPTION_IN_FLIGHT,
	OPTION_NAME,
	OPTION_WEIGHT,
	OPTION_ONCE,
	OPTION_UNTIL_EMPTY,
	OPTION_REPLACE,
	OPTION_TTL,
	OPTION_DRAIN
};

struct request {
	struct store store;
	struct baton_runner_options options;
	struct baton_serve serves[BATON_RUNNER_SERVES_MAX];
	struct baton_str queues[BATON_RUNNER_SERVES_MAX];
	struct baton_log log;
	struct baton_duration drain;
	uint32_t join;
	bool once;
	char name[BATON_NAME_MAX + 1];
};

static const struct option options[] = {
	STORE_OPTIONS,
	{"jobs", required_argument, NULL, 'j'},
	{"timeout", required_argument, NULL, OPTION_TIMEOUT},
	{"grace", required_argument, NULL, OPTION_GRACE},
	{"join", required_argument, NULL, OPTION_JOIN},
	{"lines", no_argument, NULL, OPTION_LINES},
	{"stream", no_argument, NULL, OPTION_STREAM},
	{"in-flight", required_argument, NULL, OPTION_IN_FLIGHT},
	{"name", required_argument, NULL, OPTION_NAME},
	{"weight", required_argument, NULL, OPTION_WEIGHT},
	{"once", no_argument, NULL, OPTION_ONCE},
	{"until-empty", no_argument, NULL, OPTION_UNTIL_EMPTY},
	{"replace", no_argument, NULL, OPTION_REPLACE},
	{"ttl", required_argument, NULL, OPTION_TTL},
	{"drain", required_argument, NULL, OPTION_DRAIN},
	{0},
};

static bool take_span(struct request *r, int option, const char *value)
{
	const struct span_limits any = {{1000000}, baton_duration_s(31536000)};
	const struct span_limits ttl = {baton_duration_ms(BATON_RUNNER_TTL_MIN_MS),
	                                baton_duration_ms(BATON_RUNNER_TTL_MAX_MS)};
	const struct span_limits drain = {{0}, baton_duration_s(31536000)};
	struct baton_handler *handler = &r->options.handler;
	switch (option) {
	case OPTION_TIMEOUT:
		return span_parse("--timeout", value, &any, &handler->timeout);
	case OPTION_GRACE:
		return span_parse("--grace", value, &any, &handler->grace);
	case OPTION_TTL:
		return span_parse("--ttl", value, &ttl, &r->options.ask.ttl);
	default:
		return span_parse("--drain", value, &drain, &r->drain);
	}
}

static bool take(void *arg, int option, const char *value)
{
	struct request *r = arg;
	switch (option) {
	case 'j':
		return number_parse("jobs", value, BATON_RUNNER_SLOTS_MAX, &r->options.slots);
	case OPTION_TIMEOUT:
	case OPTION_GRACE:
	case OPTION_TTL:
	case OPTION_DRAIN:
		return take_span(r, option, value);
	case OPTION_IN_FLIGHT:
		return number_parse("in-flight", value, BATON_RUNNER_SLOTS_MAX,
		                    &r->options.handler.in_flight);
	case OPTION_JOIN:
		return number_parse("join", value, BATON_JOIN_MAX, &r->join);
	case OPTION_NAME:
		return name_other("runner's name", value, &r->options.ask.name);
	case OPTION_WEIGHT:
		return number_between("weight", value, 0, BATON_RUNNER_WEIGHT_MAX,
		                      &r->options.ask.weight);
	case OPTION_LINES:
		r->options.handler.json = true;
		return true;
	case OPTION_STREAM:
		r->options.handler.stream = true;
		return true;
	case OPTION_ONCE:
		r->once = true;
		return true;
	case OPTION_UNTIL_EMPTY:
		r->options.until_empty = true;
		return true;
	case OPTION_REPLACE:
		r->options.ask.replace = true;
		return true;
	default:
		return store_option(&r->store, option, value);
	}
}

/* Those who share a host and a store need names of their own; the process has one. */
static void name_make(struct request *r)
{
	char host[65] = "";
	if (r->options.ask.name.len > 0)
		return;
	gethostname(host, sizeof host - 1);
	snprintf(r->name, sizeof r->name, "%s.%d", host[0] != '\0' ? host : "localhost",
	         (int)getpid());
	r->options.ask.name = baton_str_z(r->name);
}

/* Set while there is a runner that a signal may stop. */
static _Atomic(struct baton_engine *) engine;
static _Atomic int64_t drain_ns;

/* The first asks it to end what runs; the second waits no longer. */
static void on_signal(int number)
{
	struct baton_engine *e = atomic_load(&engine);
	int64_t grace = atomic_exchange(&drain_ns, 0);
	(void)number;
	if (e)
		baton_engine_stop(e, (struct baton_duration){grace});
}

static void listen_for_signals(const struct request *r)
{
	const struct sigaction action = {.sa_handler = on_signal};
	const struct sigaction ignored = {.sa_handler = SIG_IGN};
	atomic_store(&drain_ns, r->drain.ns);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	sigaction(SIGPIPE, &ignored, NULL);
}

static int finish(const struct request *r, enum baton_err e)
{
	if (e == BATON_OK)
		return EX_OK;
	if (e == BATON_YIELD) {
		complain("%s: --replace takes its place, --name gives another name",
		         baton_err_detail());
		return EXIT_FAILURE;
	}
	if (e == BATON_NOT_HELD) {
		complain("%s", baton_err_detail());
		return EXIT_FAILURE;
	}
	return store_fail(&r->store, e);
}

static int run(struct request *r)
{
	struct baton_engine *e = NULL;
	int status = store_open(&r->store, STORE_MADE);
	if (status != EX_OK)
		return status;
	r->options.store = r->store.handle;
	bell_listen(&r->store.bell, r->store.handle, r->queues, r->options.serve_count);
	enum baton_err err = baton_engine_open(&r->options, &e);
	if (err != BATON_OK)
		return finish(r, err);
	atomic_store(&engine, e);
	listen_for_signals(r);
	err = baton_engine_run(e);
	status = finish(r, err);
	atomic_store(&engine, NULL);
	baton_engine_close(e);
	return status;
}

static bool take_queues(struct request *r, const struct operands *operands)
{
	for (size_t i = 0; i < operands->count; i++) {
		if (!name_queue(operands->texts[i], &r->queues[i]))
			return false;
		r->serves[i] = (struct baton_serve){.queue = r->queues[i], .join = r->join};
	}
	r->options.serves = r->serves;
	r->options.serve_count = operands->count;
	return true;
}

/* Where the command begins, behind "--"; argc if there is none. */
static int command_at(int argc, char **argv)
{
	int i = 1;
	while (i < argc && strcmp(argv[i], "--") != 0)
		i++;
	return i;
}

static bool fits(const struct request *r, const char *const *command)
{
	if (!command[0])
		complain("work needs a command behind '--', such as: baton work mail -- ./send");
	else if (r->once && r->options.until_empty)
		complain("--once and --until-empty cannot be together");
	else if (r->options.handler.stream && r->options.handler.json)
		complain("--stream and --lines cannot be together");
	else if (r->options.handler.in_flight > 0 && !r->options.handler.stream)
		complain("--in-flight needs --stream");
	else
		return true;
	return false;
}

int cmd_work(struct out *out, int argc, char **argv)
{
	struct request r = {
		.options = {.ask = {.weight = 1}},
		.drain = baton_duration_ms(BATON_RUNNER_DRAIN_MS),
		.log = {.fd = STDERR_FILENO, .level = BATON_LOG_INFO, .format = BATON_LOG_LOGFMT},
	};
	struct operands operands = {.max = BATON_RUNNER_SERVES_MAX};
	const struct reading reading = {options, &operands, take, &r};
	int status, at = command_at(argc, argv);
	char **command = at < argc ? argv + at + 1 : argv + argc;
	if (at < argc)
		argv[at] = NULL;
	if (!reading_do(&reading, out, at, argv, &status))
		return status;
	if (!name_needed(&operands, 1, argv[0], "the name of a queue") ||
	    !take_queues(&r, &operands) || !fits(&r, (const char *const *)command))
		return EX_USAGE;
	name_make(&r);
	r.options.handler.command = command;
	r.options.drain = r.drain.ns > 0 ? r.drain : baton_duration_ms(1);
	r.options.claims = r.once ? 1 : 0;
	r.options.slots = r.once ? 1 : r.options.slots;
	r.options.handler.in_flight = r.once ? 0 : r.options.handler.in_flight;
	r.options.log = &r.log;
	status = run(&r);
	store_close(&r.store);
	return status;
}
