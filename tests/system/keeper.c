/* A backend for tests: says who it is at the beginning of each connection and before what it
 * echoes, and can be struck at a named step.
 *
 *	keeper SERVICE [generation=N] [repeatable] [reconnect] [endpoint=E] [owner=RUNNER]
 *		[choosy] [offer=SIGNAL]
 *
 * choosy: wants no connection that is handed over. offer=SIGNAL: sends itself that signal when it
 * has an offer, before it answers. Writes "ready ENDPOINT", then a line for each connection. */
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <baton.h>

#define GUESTS 4096

struct keeper {
	bool choosy;
	int strike;
	struct pollfd fds[GUESTS + 1]; /* the first is the backend */
	nfds_t count;
};

static bool wants(const struct baton_connection *c, void *arg)
{
	const struct keeper *k = arg;
	if (c->handed && k->strike != 0)
		raise(k->strike);
	return !(k->choosy && c->handed);
}

static void option_take(struct keeper *k, struct baton_backend_options *o, const char *text)
{
	const char *value = strchr(text, '=');
	value = value ? value + 1 : "";
	if (strcmp(text, "repeatable") == 0)
		o->repeatable = true;
	else if (strcmp(text, "reconnect") == 0)
		o->reconnect_only = true;
	else if (strcmp(text, "choosy") == 0)
		k->choosy = true;
	else if (strncmp(text, "generation=", 11) == 0)
		o->generation = strtoull(value, NULL, 10);
	else if (strncmp(text, "endpoint=", 9) == 0)
		o->endpoint = value;
	else if (strncmp(text, "owner=", 6) == 0)
		o->owner = baton_str_z(value);
	else if (strncmp(text, "offer=", 6) == 0)
		k->strike = atoi(value);
	else
		exit(64);
}

static void take_all(struct keeper *k, struct baton_backend *b)
{
	struct baton_connection *c;
	enum baton_err e;
	while ((e = baton_backend_accept(b, (struct baton_duration){0}, &c)) == BATON_OK) {
		printf("%s %llu %d %.*s\n", c->handed ? "handed" : "reconnected",
		       (unsigned long long)c->id, c->pid, (int)c->auth_token.len,
		       c->auth_token.len > 0 ? c->auth_token.ptr : "");
		char hello[32];
		int len = snprintf(hello, sizeof hello, "%d\n", (int)getpid());
		int fd = baton_connection_take(c);
		baton_connection_free(c);
		if (k->count > GUESTS || send(fd, hello, (size_t)len, MSG_NOSIGNAL) != len)
			close(fd);
		else
			k->fds[k->count++] = (struct pollfd){.fd = fd, .events = POLLIN};
	}
	if (e != BATON_TIMEOUT) {
		printf("error %s\n", baton_err_detail());
		exit(1);
	}
}

static void echo_all(struct keeper *k)
{
	for (nfds_t i = 1; i < k->count; i++) {
		char room[4096];
		if (k->fds[i].revents == 0)
			continue;
		ssize_t n = recv(k->fds[i].fd, room, sizeof room, 0);
		if (n > 0 && send(k->fds[i].fd, room, (size_t)n, MSG_NOSIGNAL) == n)
			continue;
		close(k->fds[i].fd);
		k->fds[i--] = k->fds[--k->count];
	}
}

int main(int argc, char **argv)
{
	static struct keeper k = {.count = 1};
	struct baton_backend *b;
	if (argc < 2)
		return 64;
	struct baton_backend_options options = {.service = baton_str_z(argv[1]),
	                                        .wants = wants,
	                                        .arg = &k};
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 2; i < argc; i++)
		option_take(&k, &options, argv[i]);
	enum baton_err e = baton_backend_open(&options, &b);
	if (e != BATON_OK) {
		printf("error %s: %s\n", baton_err_name(e), baton_err_detail());
		return 1;
	}
	printf("ready %s\n", baton_backend_endpoint(b));
	k.fds[0] = (struct pollfd){.fd = baton_backend_fd(b), .events = POLLIN};
	while (poll(k.fds, k.count, -1) >= 0) {
		take_all(&k, b);
		echo_all(&k);
	}
	return 1;
}
