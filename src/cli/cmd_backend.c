/* baton backend: has a command for each connection of a service, or speaks for a server. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "broker.h"
#include "command.h"
#include "name.h"
#include "number.h"
#include "reading.h"

enum {
	OPTION_ENDPOINT = BROKER_NEXT,
	OPTION_FD3,
	OPTION_MAX
};

#define COMMANDS_MAX 65536
#define COMMANDS_USUAL 128
#define PASSED_FD 3

static const struct option options[] = {
	BROKER_OPTIONS,
	{"endpoint", required_argument, NULL, OPTION_ENDPOINT},
	{"fd3", no_argument, NULL, OPTION_FD3},
	{"max", required_argument, NULL, OPTION_MAX},
	{0},
};

struct request {
	struct baton_backend_options options;
	struct baton_log log;
	char **command;
	bool fd3;
	uint32_t max;

	struct baton_backend *backend;
	int signals;
	uint32_t running;
	bool stopping;
};

static bool take(void *arg, int option, const char *value)
{
	struct request *r = arg;
	switch (option) {
	case OPTION_BROKER:
		r->options.folder = value;
		return true;
	case OPTION_ENDPOINT:
		r->options.endpoint = value;
		return true;
	case OPTION_MAX:
		return number_parse("max", value, COMMANDS_MAX, &r->max);
	default:
		r->fd3 = true;
		return true;
	}
}

static void variable_set(const char *name, uint64_t value)
{
	char text[24];
	snprintf(text, sizeof text, "%" PRIu64, value);
	setenv(name, text, 1);
}

/* What the client sent, or nothing: that of this process is another one's. */
static void trace_set(const char *name, struct baton_str text)
{
	char value[BATON_TRACE_MAX + 1];
	snprintf(value, sizeof value, "%.*s", (int)text.len, text.ptr);
	if (text.len > 0)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

/* Puts the connection where the command looks for it. */
static bool connection_place(const struct request *r, int fd)
{
	if (!r->fd3)
		return dup2(fd, STDIN_FILENO) >= 0 && dup2(fd, STDOUT_FILENO) >= 0;
	variable_set("LISTEN_FDS", 1);
	variable_set("LISTEN_PID", (uint64_t)getpid());
	/* A descriptor that is there already would stay one that exec closes. */
	if (fd == PASSED_FD)
		return fcntl(fd, F_SETFD, 0) == 0;
	return dup2(fd, PASSED_FD) >= 0;
}

/* In the child. */
_Noreturn static void command_exec(const struct request *r, const struct baton_connection *c)
{
	sigset_t none;
	sigemptyset(&none);
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setenv("BATON_SERVICE", r->options.service.ptr, 1);
	variable_set("BATON_CONNECTION", c->id);
	variable_set("BATON_CLIENT_PID", (uint64_t)c->pid);
	variable_set("BATON_CLIENT_UID", c->uid);
	trace_set("TRACEPARENT", c->traceparent);
	trace_set("TRACESTATE", c->tracestate);
	if (connection_place(r, c->fd))
		execvp(r->command[0], r->command);
	complain("'%s' cannot be run: %s", r->command[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

static void command_start(struct request *r, const struct baton_connection *c)
{
	pid_t child = fork();
	if (child == 0)
		command_exec(r, c);
	if (child > 0)
		r->running++;
	else
		complain("no process for a connection: %s", strerror(errno));
}

static void signals_read(struct request *r)
{
	struct signalfd_siginfo info;
	while (read(r->signals, &info, sizeof info) == (ssize_t)sizeof info)
		if (info.ssi_signo != SIGCHLD)
			r->stopping = true;
	while (r->running > 0 && waitpid(-1, NULL, WNOHANG) > 0)
		r->running--;
}

/* Takes what there is, as long as there may be another command. */
static enum baton_err connections_take(struct request *r)
{
	struct baton_connection *c;
	enum baton_err e = BATON_OK;
	while (e == BATON_OK && r->running < r->max) {
		e = baton_backend_accept(r->backend, (struct baton_duration){0}, &c);
		if (e == BATON_OK) {
			command_start(r, c);
			baton_connection_free(c);
		}
	}
	return e == BATON_TIMEOUT ? BATON_OK : e;
}

/* Until it is told to stop. Those who come while there are too many commands wait. */
static enum baton_err work(struct request *r)
{
	while (!r->stopping) {
		bool full = r->running >= r->max;
		struct pollfd fds[] = {{.fd = r->signals, .events = POLLIN},
		                       {.fd = full ? -1 : baton_backend_fd(r->backend),
		                        .events = POLLIN}};
		poll(fds, 2, -1);
		signals_read(r);
		enum baton_err e = connections_take(r);
		if (e != BATON_OK)
			return e;
	}
	return BATON_OK;
}

/* What runs is waited for, unless there is another signal. */
static void drain(struct request *r)
{
	struct pollfd p = {.fd = r->signals, .events = POLLIN};
	r->stopping = false;
	while (r->running > 0 && !r->stopping) {
		poll(&p, 1, -1);
		signals_read(r);
	}
}

static bool signals_open(struct request *r)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	signal(SIGPIPE, SIG_IGN);
	sigprocmask(SIG_BLOCK, &set, NULL);
	r->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return r->signals >= 0;
}

static int run(struct request *r)
{
	if (!signals_open(r)) {
		complain("no descriptor for signals: %s", strerror(errno));
		return EX_OSERR;
	}
	r->options.log = &r->log;
	enum baton_err e = baton_backend_open(&r->options, &r->backend);
	if (e != BATON_OK)
		return broker_fail(e);
	BATON_LOG(&r->log, BATON_LOG_INFO, "backend",
	          baton_field_str("service", r->options.service),
	          baton_field_str("endpoint", baton_str_z(baton_backend_endpoint(r->backend))));
	e = work(r);
	int status = e == BATON_OK ? EX_OK : broker_fail(e);
	baton_backend_close(r->backend);
	drain(r);
	close(r->signals);
	return status;
}

/* Where the command begins, behind "--"; argc if there is none. */
static int command_at(int argc, char **argv)
{
	int i = 1;
	while (i < argc && strcmp(argv[i], "--") != 0)
		i++;
	return i;
}

int cmd_backend(struct out *out, int argc, char **argv)
{
	struct request r = {
		.max = COMMANDS_USUAL,
		.log = {.fd = STDERR_FILENO, .level = BATON_LOG_INFO, .format = BATON_LOG_LOGFMT},
	};
	struct operands operands = {.max = 1};
	const struct reading reading = {options, &operands, take, &r};
	int status;
	int at = command_at(argc, argv);
	r.command = at < argc ? argv + at + 1 : argv + argc;
	if (at < argc)
		argv[at] = NULL;
	if (!reading_do(&reading, out, at, argv, &status))
		return status;
	if (!name_needed(&operands, 1, argv[0], "the name of a service"))
		return EX_USAGE;
	if ((r.command[0] == NULL) == (r.options.endpoint == NULL)) {
		complain("backend needs either a command behind '--' or --endpoint");
		return EX_USAGE;
	}
	r.options.service = baton_str_z(operand_at(&operands, 0));
	return run(&r);
}
