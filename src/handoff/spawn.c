/* Starts the command of a service. */
#include "handoff/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/fail.h"
#include "base/process.h"

#define PASSED_FD 3
#define OUT_OF_THE_WAY 10
#define OWN_VARIABLES 10 /* and the end of the list */
#define PID_TEXT 32

/* All that the child needs: between fork() and exec there may be no allocation. */
struct plan {
	const struct spawn_order *order;
	const char *path;
	char **environment;
	char listen_pid[PID_TEXT]; /* written by the child, which alone knows it */
};

static bool is_executable(const char *path)
{
	struct stat s;
	return stat(path, &s) == 0 && S_ISREG(s.st_mode) && access(path, X_OK) == 0;
}

/* Where the program is, as execvp(3) would find it. */
static enum baton_err program_find(const char *name, struct arena *arena, const char **ret)
{
	const char *rest = getenv("PATH");
	if (strchr(name, '/')) {
		*ret = name;
		return is_executable(name) ? BATON_OK
		                           : fail(BATON_NOT_FOUND, "'%.200s' cannot be run", name);
	}
	rest = rest ? rest : "/usr/local/bin:/bin:/usr/bin";
	while (*rest != '\0') {
		size_t len = strcspn(rest, ":");
		size_t room = len + strlen(name) + 2;
		char *path = arena_take(arena, room, 1);
		if (!path)
			return fail_memory(room, "a path");
		snprintf(path, room, "%.*s/%s", (int)len, rest, name);
		if (path[0] == '/' && is_executable(path)) {
			*ret = path;
			return BATON_OK;
		}
		rest += len + (rest[len] == ':' ? 1 : 0);
	}
	return fail(BATON_NOT_FOUND, "there is no program '%.200s' in PATH", name);
}

/* What says of the broker itself how it was started, and what is set for the command. */
static bool is_left_out(const char *variable)
{
	static const char *const names[] = {
		"LISTEN_FDS=",       "LISTEN_PID=",       "LISTEN_FDNAMES=",   "NOTIFY_SOCKET=",
		"WATCHDOG_USEC=",    "WATCHDOG_PID=",     "BATON_BROKER=",     "BATON_SERVICE=",
		"BATON_CONNECTION=", "BATON_CLIENT_PID=", "BATON_CLIENT_UID=", "TRACEPARENT=",
		"TRACESTATE=",
	};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strncmp(variable, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

/* "NAME=VALUE" */
__attribute__((format(printf, 3, 4))) static bool variable_add(char ***end, struct arena *arena,
                                                               const char *format, ...);

static bool variable_add(char ***end, struct arena *arena, const char *format, ...)
{
	char text[WIRE_TRACE_MAX + 64];
	struct baton_str copy;
	va_list values;
	va_start(values, format);
	vsnprintf(text, sizeof text, format, values);
	va_end(values);
	if (!arena_copy(arena, baton_str_z(text), &copy))
		return false;
	*(*end)++ = (char *)copy.ptr;
	return true;
}

static bool own_variables(const struct spawn_order *o, struct arena *arena, char ***end)
{
	bool good = variable_add(end, arena, "BATON_BROKER=%s", o->broker) &&
	            variable_add(end, arena, "BATON_SERVICE=%s", o->definition->name);
	if (good && o->fd >= 0)
		good = variable_add(end, arena, "BATON_CONNECTION=%" PRIu64, o->connection);
	/* Nobody knows who is at a connection of TCP. */
	if (good && o->fd >= 0 && o->who.uid != UINT32_MAX)
		good = variable_add(end, arena, "BATON_CLIENT_PID=%" PRId32, o->who.pid) &&
		       variable_add(end, arena, "BATON_CLIENT_UID=%" PRIu32, o->who.uid);
	if (good && o->trace.traceparent.len > 0)
		good = variable_add(end, arena, "TRACEPARENT=%.*s", (int)o->trace.traceparent.len,
		                    o->trace.traceparent.ptr);
	if (good && o->trace.tracestate.len > 0)
		good = variable_add(end, arena, "TRACESTATE=%.*s", (int)o->trace.tracestate.len,
		                    o->trace.tracestate.ptr);
	if (good && o->definition->takes == TAKES_FD3)
		good = variable_add(end, arena, "LISTEN_FDS=1");
	return good;
}

static enum baton_err environment_make(struct plan *p, struct arena *arena)
{
	const struct definition *d = p->order->definition;
	size_t count = 0;
	while (environ[count])
		count++;
	size_t room = count + d->environment_count + OWN_VARIABLES;
	char **end = arena_take(arena, room, sizeof *end);
	p->environment = end;
	if (!end)
		return fail_memory(room * sizeof *end, "variables");
	/* Of two with the same name most programs take the first. */
	for (size_t i = 0; i < d->environment_count; i++)
		*end++ = d->environment[i];
	if (!own_variables(p->order, arena, &end))
		return fail_memory(room, "variables");
	if (d->takes == TAKES_FD3)
		*end++ = p->listen_pid;
	for (size_t i = 0; i < count; i++)
		if (!is_left_out(environ[i]))
			*end++ = environ[i];
	CHECK((size_t)(end - p->environment) < room);
	return BATON_OK;
}

/* From here on in the child, where only what is safe in a handler of signals may be called. */

_Noreturn static void give_up(const char *what)
{
	static const char before[] = "baton: the command of a service was not run: ";
	if (write(STDERR_FILENO, before, sizeof before - 1) < 0 ||
	    write(STDERR_FILENO, what, strlen(what)) < 0 || write(STDERR_FILENO, "\n", 1) < 0)
		_exit(126);
	_exit(126);
}

/* "LISTEN_PID=" and the number of this process. */
static void pid_write(char text[PID_TEXT])
{
	char digits[PID_TEXT];
	size_t n = 0;
	char *end = stpcpy(text, "LISTEN_PID=");
	for (pid_t pid = getpid(); pid > 0; pid /= 10)
		digits[n++] = (char)('0' + pid % 10);
	while (n > 0)
		*end++ = digits[--n];
	*end = '\0';
}

static void signals_reset(void)
{
	sigset_t none;
	const struct sigaction usual = {.sa_handler = SIG_DFL};
	for (int i = 1; i < NSIG; i++)
		sigaction(i, &usual, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static void limit_set(int what, uint64_t value)
{
	const struct rlimit limit = {value, value};
	if (value > 0 && setrlimit((__rlimit_resource_t)what, &limit) != 0)
		give_up("a limit cannot be set");
}

static bool first_write(int fd, struct baton_str first)
{
	return first.len == 0 || send(fd, first.ptr, first.len, MSG_NOSIGNAL) == (ssize_t)first.len;
}

static void descriptors_place(const struct plan *p)
{
	const struct spawn_order *o = p->order;
	int null = open("/dev/null", O_RDWR);
	int fd = o->fd >= 0 ? fcntl(o->fd, F_DUPFD, OUT_OF_THE_WAY) : -1;
	bool stdio = o->definition->takes == TAKES_STDIO;
	if (null < 0 || (o->fd >= 0 && (fd < 0 || !first_write(fd, o->first))))
		give_up("no descriptors, or the client is gone");
	if (dup2(stdio ? fd : null, STDIN_FILENO) < 0 ||
	    dup2(stdio ? fd : STDERR_FILENO, STDOUT_FILENO) < 0)
		give_up("no descriptors");
	unsigned first_other = PASSED_FD;
	if (o->definition->takes == TAKES_FD3 && dup2(fd, (int)first_other++) < 0)
		give_up("no descriptors");
	close_range(first_other, ~0u, 0);
}

_Noreturn static void child_run(struct plan *p)
{
	const struct definition *d = p->order->definition;
	signals_reset();
	setsid();
	pid_write(p->listen_pid);
	descriptors_place(p);
	if (d->folder && chdir(d->folder) != 0)
		give_up("its folder cannot be entered");
	limit_set(RLIMIT_NOFILE, d->open_files);
	limit_set(RLIMIT_AS, d->memory);
	if (d->no_new_privileges && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		give_up("privileges cannot be kept from it");
	execve(p->path, d->command, p->environment);
	give_up("the system cannot execute it");
}

static pid_t child_fork(struct plan *p)
{
	sigset_t all;
	sigset_t before;
	sigfillset(&all);
	/* No handler of this process may run in the child. */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pid_t child = fork();
	if (child == 0)
		child_run(p);
	int why = errno;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = why;
	return child;
}

enum baton_err spawn(const struct spawn_order *order, struct arena *arena, int32_t *ret_pid,
                     int *ret_pidfd)
{
	struct plan p = {.order = order};
	enum baton_err e = program_find(order->definition->command[0], arena, &p.path);
	if (e == BATON_OK)
		e = environment_make(&p, arena);
	if (e != BATON_OK)
		return e;
	pid_t child = child_fork(&p);
	if (child < 0)
		return fail_errno(errno, "no process for the service '%s'",
		                  order->definition->name);
	if (!process_open(child, ret_pidfd)) {
		int why = errno;
		kill(child, SIGKILL);
		while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
			;
		return fail_errno(why, "no descriptor for a process");
	}
	*ret_pid = child;
	return BATON_OK;
}
