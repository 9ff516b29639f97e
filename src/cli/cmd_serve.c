/* baton serve: runs the broker. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "broker.h"
#include "command.h"
#include "listen.h"
#include "manager.h"
#include "moment.h"
#include "number.h"
#include "reading.h"
#include "store.h"

enum {
	OPTION_ACK = BROKER_NEXT,
	OPTION_CLIENTS,
	OPTION_DETACH,
	OPTION_HELLO,
	OPTION_LISTEN,
	OPTION_PARK,
	OPTION_PENDING,
	OPTION_RATE,
	OPTION_SERVICES,
	OPTION_STORE,
	OPTION_UPGRADE
};

#define CLIENTS_MAX (1u << 20)
#define PENDING_MAX (1u << 20)

static const struct option options[] = {
	BROKER_OPTIONS,
	{"ack-timeout", required_argument, NULL, OPTION_ACK},
	{"clients", required_argument, NULL, OPTION_CLIENTS},
	{"detach", no_argument, NULL, OPTION_DETACH},
	{"hello-timeout", required_argument, NULL, OPTION_HELLO},
	{"listen", required_argument, NULL, OPTION_LISTEN},
	{"park", required_argument, NULL, OPTION_PARK},
	{"pending", required_argument, NULL, OPTION_PENDING},
	{"rate", required_argument, NULL, OPTION_RATE},
	{"services", required_argument, NULL, OPTION_SERVICES},
	{"store", required_argument, NULL, OPTION_STORE},
	{"upgrade", no_argument, NULL, OPTION_UPGRADE},
	{"verbose", no_argument, NULL, 'v'},
	{0},
};

struct request {
	struct baton_broker_options options;
	struct baton_log log;
	struct store store;
	struct listen listen;
	bool lanes; /* of that store */
	struct manager manager;
	struct manager_sockets sockets;
	char will[MANAGER_WILL];
	bool detach;
	int ready; /* with that: who waits until it is ready reads from the other end; or -1 */
};

/* NUMBER/DURATION */
static bool rate_parse(const char *text, struct baton_broker_rate *ret)
{
	const struct span_limits any = {{1000000}, baton_duration_s(86400)};
	const char *slash = strchr(text, '/');
	char count[24];
	if (!slash || slash - text >= (ptrdiff_t)sizeof count) {
		complain("--rate is NUMBER/DURATION, such as 100/1s, not '%s'", text);
		return false;
	}
	snprintf(count, sizeof count, "%.*s", (int)(slash - text), text);
	return number_parse("rate", count, BATON_BROKER_RATE_MAX, &ret->count) &&
	       span_parse("--rate", slash + 1, &any, &ret->window);
}

static bool take(void *arg, int option, const char *value)
{
	const struct span_limits any = {{1000000}, baton_duration_s(3600)};
	struct request *r = arg;
	switch (option) {
	case OPTION_BROKER:
		r->options.folder = value;
		return true;
	case OPTION_ACK:
		return span_parse("--ack-timeout", value, &any, &r->options.ack);
	case OPTION_CLIENTS:
		return number_parse("clients", value, CLIENTS_MAX, &r->options.clients_max);
	case OPTION_DETACH:
		r->detach = true;
		return true;
	case OPTION_HELLO:
		return span_parse("--hello-timeout", value, &any, &r->options.hello);
	case OPTION_LISTEN:
		return listen_add(&r->listen, value);
	case OPTION_PARK:
		return span_parse("--park", value, &any, &r->options.park);
	case OPTION_PENDING:
		return number_parse("pending", value, PENDING_MAX, &r->options.pending_max);
	case OPTION_RATE:
		return rate_parse(value, &r->options.rate);
	case OPTION_SERVICES:
		r->options.services = value;
		return true;
	case OPTION_STORE:
		r->store.given = value;
		r->lanes = true;
		return true;
	case OPTION_UPGRADE:
		r->options.upgrade = true;
		return true;
	default:
		r->log.level = BATON_LOG_DEBUG;
		return true;
	}
}

/* Set while there is a broker that a signal may stop. */
static _Atomic(struct baton_broker *) broker;
static _Atomic bool told; /* a signal has come */

/* The first ends it in order, the second at once: a store may hang for ever. */
static void on_signal(int number)
{
	struct baton_broker *b = atomic_load(&broker);
	(void)number;
	if (atomic_exchange(&told, true))
		_exit(EX_TEMPFAIL);
	if (b)
		baton_broker_stop(b);
}

static void listen_for_signals(void)
{
	const struct sigaction action = {.sa_handler = on_signal};
	const struct sigaction ignored = {.sa_handler = SIG_IGN};
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGHUP, &ignored, NULL);
	sigaction(SIGPIPE, &ignored, NULL);
}

/* As many descriptors as the system allows: every client needs one. */
static void raise_limit(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/* The path of a socket leads nowhere on another host. */
static bool is_reachable(const struct baton_runner_info *runner)
{
	char host[BATON_NAME_MAX + 1] = "";
	gethostname(host, sizeof host - 1);
	return runner->endpoint[0] != '/' || strcmp(runner->host, host) == 0;
}

/* Called by the broker's thread for lanes. */
static enum baton_err where(void *arg, struct baton_str queue, struct baton_str lane,
                            struct baton_broker_place *ret)
{
	const struct request *r = arg;
	struct baton_where found;
	enum baton_err e = baton_lane_where(r->store.handle, queue, lane, &found);
	if (e == BATON_OK && found.owned) {
		memcpy(ret->owner, found.runner.name, sizeof ret->owner);
		if (is_reachable(&found.runner))
			memcpy(ret->endpoint, found.runner.endpoint, sizeof ret->endpoint);
	}
	return e;
}

/* Called by the broker's loop. */
static void alive(void *arg)
{
	struct request *r = arg;
	if (atomic_load(&told))
		manager_stopping(&r->manager);
	manager_alive(&r->manager);
}

/* Called by the broker, too. */
static void keep_safe(void *arg, const char *name, int fd)
{
	(void)arg;
	manager_keep(name, fd);
}

static bool may_succeed(void *arg, int32_t pid, bool given)
{
	(void)arg;
	return manager_is_there() ? manager_knows(pid) : !given;
}

static void succeeded(void *arg, int32_t pid)
{
	(void)arg;
	manager_succeeded(pid);
}

/* What a service manager wants, and what it has opened. */
static bool managed(struct request *r)
{
	manager_init(&r->manager);
	if (!manager_sockets(&r->sockets))
		return false;
	r->options.clients_fd = r->sockets.clients;
	r->options.backends_fd = r->sockets.backends;
	r->options.safe = r->sockets.safe;
	r->options.safe_count = r->sockets.safe_count;
	r->options.alive = alive;
	r->options.alive_every = r->manager.every;
	/* Who takes the place of a broker is told later whether it has one. */
	r->options.keep_safe = keep_safe;
	r->options.may_succeed = may_succeed;
	r->options.succeeded = succeeded;
	r->options.will = manager_will(r->will);
	return true;
}

/* Who has waited for it need wait no longer. */
static void say_ready(struct request *r)
{
	manager_ready(&r->manager);
	if (r->ready >= 0 && write(r->ready, "r", 1) == 1)
		close(r->ready);
	r->ready = -1;
}

static int run(struct request *r)
{
	struct baton_broker *b = NULL;
	if (!managed(r))
		return EX_USAGE;
	listen_for_signals();
	raise_limit();
	r->options.arg = r;
	if (r->lanes) {
		int status = store_open(&r->store, STORE_EXISTING);
		if (status != EX_OK)
			return status;
		r->options.where = where;
	}
	r->options.log = &r->log;
	r->options.listeners = r->listen.all;
	r->options.listeners_count = r->listen.count;
	enum baton_err e = baton_broker_open(&r->options, &b);
	if (e != BATON_OK)
		return broker_fail(e);
	BATON_LOG(&r->log, BATON_LOG_INFO, "serving",
	          baton_field_str("broker", baton_str_z(baton_broker_folder(b))),
	          baton_field_int("pid", getpid()));
	atomic_store(&broker, b);
	if (atomic_load(&told))
		baton_broker_stop(b);
	manager_succeed(&r->manager, baton_broker_will(b));
	say_ready(r);
	e = baton_broker_run(b);
	int status = e == BATON_OK ? EX_OK : broker_fail(e);
	atomic_store(&broker, NULL);
	baton_broker_close(b);
	return status;
}

/* In a process of its own, whose end is waited for unless it gets ready. */
static int run_detached(struct request *r)
{
	int ends[2], status;
	char byte;
	if (pipe2(ends, O_CLOEXEC) != 0) {
		complain("no descriptors for a process: %s", strerror(errno));
		return EX_OSERR;
	}
	pid_t child = fork();
	if (child < 0) {
		complain("no process: %s", strerror(errno));
		return EX_OSERR;
	}
	if (child == 0) {
		close(ends[0]);
		setsid();
		r->ready = ends[1];
		return run(r);
	}
	close(ends[1]);
	ssize_t n;
	do
		n = read(ends[0], &byte, 1);
	while (n < 0 && errno == EINTR);
	if (n == 1)
		return EX_OK;
	return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status)
	                                                                : EX_SOFTWARE;
}

int cmd_serve(struct out *out, int argc, char **argv)
{
	struct request r = {
		.log = {.fd = STDERR_FILENO, .level = BATON_LOG_INFO, .format = BATON_LOG_LOGFMT},
		.ready = -1,
	};
	struct operands none = {.max = 0};
	const struct reading reading = {options, &none, take, &r};
	int status;
	if (!reading_do(&reading, out, argc, argv, &status))
		return status;
	if (r.detach && !r.options.upgrade) {
		complain("--detach needs --upgrade");
		return EX_USAGE;
	}
	status = r.detach ? run_detached(&r) : run(&r);
	manager_sockets_done(&r.sockets);
	store_close(&r.store);
	return status;
}
