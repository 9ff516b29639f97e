/* baton work: executes a command for each job of queues, or one that there is once. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "command.h"
#include "helper.h"
#include "manager.h"
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
	OPTION_BEAT,
	OPTION_MARGIN,
	OPTION_DRAIN,
	OPTION_HOOK,
	OPTION_SINGLETON,
	OPTION_CONN,
	OPTION_CONN_MAX,
	OPTION_BROKER
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
	const char *hook;                 /* a command for the shell; NULL: none */
	struct baton_singleton singleton; /* its name is empty: there is none */
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
	{"beat", required_argument, NULL, OPTION_BEAT},
	{"margin", required_argument, NULL, OPTION_MARGIN},
	{"drain", required_argument, NULL, OPTION_DRAIN},
	{"hook", required_argument, NULL, OPTION_HOOK},
	{"singleton", required_argument, NULL, OPTION_SINGLETON},
	{"conn", no_argument, NULL, OPTION_CONN},
	{"conn-max", required_argument, NULL, OPTION_CONN_MAX},
	{"broker", required_argument, NULL, OPTION_BROKER},
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
	case OPTION_BEAT:
		return span_parse("--beat", value, &any, &r->options.beat);
	case OPTION_MARGIN:
		return span_parse("--margin", value, &any, &r->options.margin);
	default:
		return span_parse("--drain", value, &drain, &r->drain);
	}
}

static void take_flag(struct request *r, int option)
{
	switch (option) {
	case OPTION_LINES:
		r->options.handler.json = true;
		break;
	case OPTION_STREAM:
		r->options.handler.stream = true;
		break;
	case OPTION_ONCE:
		r->once = true;
		break;
	case OPTION_UNTIL_EMPTY:
		r->options.until_empty = true;
		break;
	case OPTION_CONN:
		r->options.connections.wanted = true;
		break;
	default:
		r->options.ask.replace = true;
		break;
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
	case OPTION_BEAT:
	case OPTION_MARGIN:
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
	case OPTION_SINGLETON:
		return name_other("singleton's name", value, &r->singleton.name);
	case OPTION_LINES:
	case OPTION_STREAM:
	case OPTION_ONCE:
	case OPTION_UNTIL_EMPTY:
	case OPTION_REPLACE:
	case OPTION_CONN:
		take_flag(r, option);
		return true;
	case OPTION_HOOK:
		r->hook = value;
		return true;
	case OPTION_CONN_MAX:
		return number_parse("conn-max", value, BATON_RUNNER_SLOTS_MAX,
		                    &r->options.connections.max);
	case OPTION_BROKER:
		r->options.connections.folder = value;
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
static _Atomic unsigned told; /* signals that have come */

/* The first asks it to end what runs; the second waits no longer, also if it comes while the first
 * is at it, here or in another thread. */
static void stop(struct baton_engine *e)
{
	struct baton_duration grace = {atomic_load(&drain_ns)};
	if (atomic_load(&told) == 1)
		baton_engine_stop(e, grace);
	if (atomic_load(&told) > 1)
		baton_engine_stop(e, (struct baton_duration){0});
}

static void on_signal(int number)
{
	struct baton_engine *e = atomic_load(&engine);
	(void)number;
	atomic_fetch_add(&told, 1);
	if (e)
		stop(e);
}

/* Who started it with that signal ignored, such as nohup(1), does not want it heard. */
static void listen_unless_ignored(int number, const struct sigaction *action)
{
	struct sigaction before;
	if (sigaction(number, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
		sigaction(number, action, NULL);
}

static void listen_for_signals(const struct request *r)
{
	const struct sigaction action = {.sa_handler = on_signal};
	const struct sigaction ignored = {.sa_handler = SIG_IGN};
	atomic_store(&drain_ns, r->drain.ns);
	sigaction(SIGTERM, &action, NULL);
	listen_unless_ignored(SIGINT, &action);
	listen_unless_ignored(SIGHUP, &action);
	sigaction(SIGPIPE, &ignored, NULL);
}

/* Has the hook run beside the runner, which waits for nobody: a process in between takes care of
 * the one that runs it. */
static void on_change(void *arg, const struct baton_detach_info *info)
{
	const struct request *r = arg;
	bool detached = info->state == BATON_DETACHED;
	pid_t child = fork();
	if (child > 0) {
		waitpid(child, NULL, 0);
		return;
	}
	if (child < 0) {
		complain("the hook cannot be run: %s", strerror(errno));
		return;
	}
	if (fork() != 0)
		_exit(0);
	signal(SIGPIPE, SIG_DFL);
	setenv("BATON_RUNNER", r->options.ask.name.ptr, 1);
	setenv("BATON_STATE", detached ? "detached" : "attached", 1);
	setenv("BATON_REASON", detached ? info->text : "", 1);
	execl("/bin/sh", "sh", "-c", r->hook, (char *)NULL);
	_exit(EX_OSERR);
}

static int finish(const struct request *r, enum baton_err e)
{
	if (e == BATON_OK)
		return EX_OK;
	if (e == BATON_INVALID) {
		complain("%s", baton_err_detail());
		return EX_USAGE;
	}
	if (e == BATON_YIELD) {
		complain("%s: --replace takes its place, --name gives another name",
		         baton_err_detail());
		return EXIT_FAILURE;
	}
	if (e == BATON_NOT_HELD) {
		complain("%s", baton_err_detail());
		return EXIT_FAILURE;
	}
	if (e == BATON_TIMEOUT) {
		/* Nothing runs any more; the call that hangs is not waited for. */
		complain("%s", baton_err_detail());
		_exit(EX_IOERR);
	}
	if (e == BATON_BUSY) {
		/* What cannot be killed is not waited for: the guardian stays with it. */
		complain("%s", baton_err_detail());
		_exit(EX_TEMPFAIL);
	}
	return store_fail(&r->store, e);
}

/* Tells a service manager how it stands. It is ready when it is registered. */
static void tell_manager(struct manager *m, struct baton_engine *e)
{
	struct baton_runner_status status;
	if (!m->ready) {
		baton_engine_look(e, &status);
		if (status.number > 0)
			manager_ready(m);
	}
	if (atomic_load(&told) > 0)
		manager_stopping(m);
	manager_alive(m);
}

/* As baton_engine_run() does, for who has a service manager to tell. */
static enum baton_err drive(struct baton_engine *e)
{
	enum baton_err err;
	struct manager manager;
	struct pollfd p = {.fd = baton_engine_fd(e), .events = POLLIN};
	manager_init(&manager);
	while (baton_engine_step(e, &err)) {
		tell_manager(&manager, e);
		poll(&p, 1, manager_patience_ms(&manager));
	}
	return err;
}

static int run(struct request *r)
{
	struct baton_engine *e = NULL;
	listen_for_signals(r);
	int status = store_open(&r->store, STORE_MADE);
	if (status != EX_OK)
		return status;
	r->options.store = r->store.handle;
	if (r->options.serve_count > 0)
		bell_listen(&r->store.bell, r->store.handle, r->queues, r->options.serve_count);
	enum baton_err err = baton_engine_open(&r->options, &e);
	if (err != BATON_OK)
		return finish(r, err);
	atomic_store(&engine, e);
	stop(e);
	err = drive(e);
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

/* An option that says how jobs are handled; NULL: none was given. */
static const char *option_for_jobs(const struct request *r)
{
	const struct {
		const char *name;
		bool given;
	} all[] = {
		{"--jobs", r->options.slots > 0},
		{"--timeout", r->options.handler.timeout.ns > 0},
		{"--join", r->join > 0},
		{"--lines", r->options.handler.json},
		{"--stream", r->options.handler.stream},
		{"--in-flight", r->options.handler.in_flight > 0},
		{"--once", r->once},
		{"--until-empty", r->options.until_empty},
		{"--conn", r->options.connections.wanted},
	};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		if (all[i].given)
			return all[i].name;
	}
	return NULL;
}

/* Descriptors that a runner has besides those for handlers; for each of these while it runs; and
 * while it is about to be started. */
#define DESCRIPTORS 64
#define DESCRIPTORS_EACH 2
#define DESCRIPTORS_MOST 7

/* Sees to it that as many handlers can run as were asked for. */
static bool raise_limit(const struct request *r)
{
	const struct baton_runner_options *o = &r->options;
	const rlim_t handlers = (rlim_t)o->slots + (o->handler.stream ? 0 : o->connections.max);
	const rlim_t needed = DESCRIPTORS + DESCRIPTORS_EACH * handlers;
	const rlim_t wanted = DESCRIPTORS + DESCRIPTORS_MOST * handlers;
	struct rlimit limit;
	if (o->slots == 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
		return true;
	limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
	if (limit.rlim_cur >= needed && setrlimit(RLIMIT_NOFILE, &limit) == 0)
		return true;
	complain("-j %" PRIu32 " needs %ju open files, and %ju are allowed: give a lower one, or "
	         "allow more (ulimit -Hn)",
	         o->slots, (uintmax_t)needed, (uintmax_t)limit.rlim_max);
	return false;
}

/* A singleton has no jobs. */
static bool singleton_fits(const struct request *r, const struct operands *operands)
{
	const char *option = option_for_jobs(r);
	char shown[SHOWN_MAX];
	if (r->singleton.name.len == 0)
		return name_needed(operands, 1, "work", "the name of a queue");
	if (operands->count > 0)
		complain("--singleton has no queue, and got '%s'", show(operands->texts[0], shown));
	else if (option)
		complain("%s is for jobs, and --singleton has none", option);
	else
		return true;
	return false;
}

/* Connections last for as long as the runner does. */
static bool conn_fits(const struct request *r)
{
	const struct baton_runner_connections *c = &r->options.connections;
	const char *against = r->once ? "--once" : r->options.until_empty ? "--until-empty" : NULL;
	if (c->wanted && against)
		complain("--conn and %s cannot be together: connections come for as long as the "
		         "runner lives; leave one of them out",
		         against);
	else if (!c->wanted && (c->max > 0 || c->folder))
		complain("--%s needs --conn", c->max > 0 ? "conn-max" : "broker");
	else
		return true;
	return false;
}

static bool fits(const struct request *r, const char *const *command)
{
	if (!command[0])
		complain("work needs a command behind '--', such as: baton work mail -- ./send");
	else if (r->once && r->options.until_empty)
		complain("--once and --until-empty cannot be together");
	else if (r->options.handler.stream && r->options.handler.json)
		complain("--stream and --%s cannot be together: a worker gets lines of JSON anyway",
		         r->store.json ? "json" : "lines");
	else if (r->options.handler.in_flight > 0 && !r->options.handler.stream)
		complain("--in-flight needs --stream");
	else
		return conn_fits(r);
	return false;
}

/* Who ends by itself soon does not begin with what goes on for ever. */
static void offer(struct request *r)
{
	const struct baton_handler *handler = &r->options.handler;
	r->options.schedules = !r->once && !r->options.until_empty;
	if (r->singleton.name.len == 0)
		return;
	r->singleton.command = handler->command;
	r->singleton.guardian = handler->guardian;
	r->singleton.grace = handler->grace;
	r->options.singletons = &r->singleton;
	r->options.singleton_count = 1;
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
	char helper[PATH_MAX];
	char **command = at < argc ? argv + at + 1 : argv + argc;
	if (at < argc)
		argv[at] = NULL;
	if (!reading_do(&reading, out, at, argv, &status))
		return status;
	r.options.handler.json |= r.store.json;
	if (!singleton_fits(&r, &operands) || !take_queues(&r, &operands) ||
	    !fits(&r, (const char *const *)command))
		return EX_USAGE;
	if (!raise_limit(&r))
		return EX_OSERR;
	name_make(&r);
	r.options.handler.command = command;
	r.options.handler.guardian = helper_beside(helper);
	offer(&r);
	r.options.drain = r.drain.ns > 0 ? r.drain : baton_duration_ms(1);
	r.options.claims = r.once ? 1 : 0;
	r.options.slots = r.once ? 1 : r.options.slots;
	r.options.handler.in_flight = r.once ? 0 : r.options.handler.in_flight;
	r.options.log = &r.log;
	r.options.changed = r.hook ? on_change : NULL;
	r.options.arg = &r;
	status = run(&r);
	store_close(&r.store);
	return status;
}
