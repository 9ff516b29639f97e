/* baton connect: a connection to whoever owns a service, for pipes and people. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sysexits.h>
#include <unistd.h>

#include "broker.h"
#include "command.h"
#include "moment.h"
#include "name.h"
#include "reading.h"

enum {
	OPTION_WAIT = BROKER_NEXT,
	OPTION_NO_HANDOFF,
	OPTION_QUEUE,
	OPTION_LANE,
	OPTION_WANT
};

#define ROOM 65536

static const struct option options[] = {
	BROKER_OPTIONS,
	{"wait", required_argument, NULL, OPTION_WAIT},
	{"no-handoff", no_argument, NULL, OPTION_NO_HANDOFF},
	{"queue", required_argument, NULL, OPTION_QUEUE},
	{"lane", required_argument, NULL, OPTION_LANE},
	{"want", required_argument, NULL, OPTION_WANT},
	{"verbose", no_argument, NULL, 'v'},
	{0},
};

struct request {
	struct baton_client_ask ask;
	bool verbose;
};

static bool take(void *arg, int option, const char *value)
{
	const struct span_limits any = {{1000000}, baton_duration_s(86400)};
	struct request *r = arg;
	switch (option) {
	case OPTION_BROKER:
		r->ask.folder = value;
		return true;
	case OPTION_WAIT:
		return span_parse("--wait", value, &any, &r->ask.wait);
	case OPTION_QUEUE:
		return name_queue(value, &r->ask.queue);
	case OPTION_LANE:
		return name_other("lane", value, &r->ask.lane);
	case OPTION_WANT:
		return name_other("version", value, &r->ask.version);
	case OPTION_NO_HANDOFF:
		r->ask.no_handoff = true;
		return true;
	default:
		r->verbose = true;
		return true;
	}
}

static bool write_all(int fd, const char *bytes, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, bytes, len);
		if (n < 0 && errno != EINTR)
			return false;
		if (n > 0) {
			bytes += n;
			len -= (size_t)n;
		}
	}
	return true;
}

/* One direction, as far as there is something. False: it is over. */
static bool carry(int from, int to)
{
	char room[ROOM];
	ssize_t n = read(from, room, sizeof room);
	if (n < 0)
		return errno == EINTR || errno == EAGAIN;
	return n > 0 && write_all(to, room, (size_t)n);
}

/* Carries bytes in both directions until the other side has ended. */
static int carry_both(int fd)
{
	struct pollfd fds[] = {{.fd = fd, .events = POLLIN},
	                       {.fd = STDIN_FILENO, .events = POLLIN}};
	for (;;) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR) {
			complain("cannot wait: %s", strerror(errno));
			return EX_OSERR;
		}
		if (fds[0].revents != 0 && !carry(fd, STDOUT_FILENO))
			return EX_OK;
		if (fds[1].revents != 0 && !carry(STDIN_FILENO, fd)) {
			shutdown(fd, SHUT_WR);
			fds[1].fd = -1;
		}
	}
}

/* What is no trace is none: it is not worth a connection. */
static struct baton_str trace_of(const char *name)
{
	const char *value = getenv(name);
	size_t len = value ? strlen(value) : 0;
	for (size_t i = 0; i < len; i++)
		if (value[i] < ' ' || value[i] > '~')
			len = 0;
	return (struct baton_str){value, len <= BATON_TRACE_MAX ? len : 0};
}

static int run(struct request *r)
{
	struct baton_client_way way;
	int fd;
	signal(SIGPIPE, SIG_IGN);
	r->ask.traceparent = trace_of("TRACEPARENT");
	r->ask.tracestate = trace_of("TRACESTATE");
	enum baton_err e = baton_client_connect(&r->ask, &fd, &way);
	if (e != BATON_OK)
		return broker_fail(e);
	if (r->verbose)
		complain("connected by %s, connection %" PRIu64,
		         way.handed ? "handoff" : "reconnecting", way.connection);
	int status = carry_both(fd);
	close(fd);
	return status;
}

int cmd_connect(struct out *out, int argc, char **argv)
{
	struct request r = {.verbose = false};
	struct operands operands = {.max = 1};
	const struct reading reading = {options, &operands, take, &r};
	int status;
	if (!reading_do(&reading, out, argc, argv, &status))
		return status;
	if (r.ask.lane.len == 0 && !name_needed(&operands, 1, argv[0], "the name of a service"))
		return EX_USAGE;
	r.ask.service = baton_str_z(operand_at(&operands, 0));
	return run(&r);
}
