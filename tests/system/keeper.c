/* A backend for tests: says who it is at the beginning of each connection and before what it
 * echoes, and can be struck at a named step.
 *
 *	keeper SERVICE [generation=N] [repeatable] [reconnect] [endpoint=E] [owner=RUNNER]
 *		[choosy] [offer=SIGNAL] [acked=SIGNAL] [first=SIGNAL] [put=NAME[,MS]] [take=NAME]
 *		[list] [drop] [single]
 *
 * choosy: wants no connection that is handed over. offer=SIGNAL: sends itself that signal when it
 * has an offer, before it answers; acked=SIGNAL: when it has answered one, and has no Grant;
 * first=SIGNAL: when it has its first connection. Writes "ready ENDPOINT", then a line for each
 * connection.
 *
 * put: makes a listener and has the broker keep it. take: takes it again. Both write the name, its
 * port and what came of it, list the names. drop: ends after these, without it.
 *
 * single: takes one connection each time that its descriptor can be read. */
#include <netinet/in.h>
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
	bool drop;
	bool single;
	int strike;
	int strike_acked;
	bool answered; /* an offer, since it was last struck */
	int strike_first;
	const char *asks[64]; /* about what the broker keeps */
	size_t asks_count;
	struct pollfd fds[GUESTS + 1]; /* the first is the backend */
	nfds_t count;
};

static bool wants(const struct baton_connection *c, void *arg)
{
	struct keeper *k = arg;
	if (c->handed && k->strike != 0)
		raise(k->strike);
	k->answered |= c->handed;
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
	else if (strncmp(text, "acked=", 6) == 0)
		k->strike_acked = atoi(value);
	else if (strncmp(text, "first=", 6) == 0)
		k->strike_first = atoi(value);
	else if (strcmp(text, "drop") == 0)
		k->drop = true;
	else if (strcmp(text, "single") == 0)
		k->single = true;
	else if (k->asks_count < 64 &&
	         (strncmp(text, "put=", 4) == 0 || strncmp(text, "take=", 5) == 0 ||
	          strcmp(text, "list") == 0))
		k->asks[k->asks_count++] = text;
	else
		exit(64);
}

static int port_of(int fd)
{
	struct sockaddr_in address = {0};
	socklen_t len = sizeof address;
	return getsockname(fd, (struct sockaddr *)&address, &len) == 0 ? ntohs(address.sin_port)
	                                                               : 0;
}

static void put_one(struct baton_backend *b, const char *text)
{
	const char *comma = strchr(text, ',');
	struct baton_str name = {text, comma ? (size_t)(comma - text) : strlen(text)};
	struct baton_duration ttl =
		comma ? baton_duration_ms(atoi(comma + 1)) : BATON_DURATION_FOREVER;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || listen(fd, 16) != 0)
		exit(70);
	printf("put %.*s %d %s\n", (int)name.len, name.ptr, port_of(fd),
	       baton_err_name(baton_backend_put(b, name, fd, ttl)));
	close(fd);
}

static void ask_one(struct baton_backend *b, const char *text)
{
	struct baton_stored all[BATON_STORED_MAX];
	size_t count = 0;
	int fd = -1;
	if (strncmp(text, "put=", 4) == 0) {
		put_one(b, text + 4);
	} else if (strncmp(text, "take=", 5) == 0) {
		enum baton_err e = baton_backend_take(b, baton_str_z(text + 5), &fd);
		printf("took %s %d %s\n", text + 5, port_of(fd), baton_err_name(e));
	} else {
		enum baton_err e = baton_backend_list(b, all, &count);
		printf("list %s", baton_err_name(e));
		for (size_t i = 0; i < count; i++)
			printf(" %s%s", all[i].name, all[i].left.ns == INT64_MAX ? "" : "!");
		printf("\n");
	}
}

static void take_all(struct keeper *k, struct baton_backend *b)
{
	struct baton_connection *c;
	enum baton_err e;
	while ((e = baton_backend_accept(b, (struct baton_duration){0}, &c)) == BATON_OK) {
		printf("%s %llu %d %.*s\n", c->handed ? "handed" : "reconnected",
		       (unsigned long long)c->id, c->pid, (int)c->auth_token.len,
		       c->auth_token.len > 0 ? c->auth_token.ptr : "");
		if (k->strike_first != 0)
			raise(k->strike_first);
		k->strike_first = 0;
		char hello[32];
		int len = snprintf(hello, sizeof hello, "%d\n", (int)getpid());
		int fd = baton_connection_take(c);
		baton_connection_free(c);
		if (k->count > GUESTS || send(fd, hello, (size_t)len, MSG_NOSIGNAL) != len)
			close(fd);
		else
			k->fds[k->count++] = (struct pollfd){.fd = fd, .events = POLLIN};
		if (k->single)
			return;
	}
	if (e != BATON_TIMEOUT) {
		printf("error %s\n", baton_err_detail());
		exit(1);
	}
	if (k->answered && k->strike_acked != 0)
		raise(k->strike_acked);
	k->answered = false;
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
	for (size_t i = 0; i < k.asks_count; i++)
		ask_one(b, k.asks[i]);
	if (k.drop)
		return 0;
	k.fds[0] = (struct pollfd){.fd = baton_backend_fd(b), .events = POLLIN};
	while (poll(k.fds, k.count, -1) >= 0) {
		if (!k.single || k.fds[0].revents != 0)
			take_all(&k, b);
		echo_all(&k);
	}
	return 1;
}
