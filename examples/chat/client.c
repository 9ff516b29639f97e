/* Somebody in a room: says what comes on standard input, one line after the other, and prints what
 * is said there. When the connection ends it connects again, and goes on where it was.
 *
 *	example-chat-client ROOM NAME
 *
 * It ends with its standard input. */
#include <err.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <baton.h>

#define LINE 2048
#define TEXT 900

struct buffer {
	char bytes[LINE];
	size_t len;
};

struct client {
	const char *room, *name;
	int fd;          /* -1: to be connected */
	uint64_t seen;   /* the number of the last message */
	unsigned said;   /* lines so far */
	char mine[LINE]; /* the line that is not known to have been heard; "": none */
	struct buffer typed, heard;
};

/* Takes a line out; false: there is no whole one. */
static bool line_take(struct buffer *b, char line[LINE])
{
	char *end = memchr(b->bytes, '\n', b->len);
	if (!end)
		return false;
	*end = '\0';
	memcpy(line, b->bytes, (size_t)(end + 1 - b->bytes));
	b->len -= (size_t)(end + 1 - b->bytes);
	memmove(b->bytes, end + 1, b->len);
	return true;
}

/* False: it has ended. */
static bool fill(struct buffer *b, int fd)
{
	ssize_t n = read(fd, b->bytes + b->len, sizeof b->bytes - b->len);
	b->len += n > 0 ? (size_t)n : 0;
	return n > 0;
}

static void send_all(const struct client *c, const char *text)
{
	/* If it does not get there, the connection ends, and it is said again. */
	if (send(c->fd, text, strlen(text), MSG_NOSIGNAL) < 0)
		return;
}

/* To whoever owns the room now. */
static void arrive(struct client *c)
{
	const struct baton_client_ask ask = {
		.queue = BATON_STR("rooms"),
		.lane = baton_str_z(c->room),
		.wait = baton_duration_s(100),
	};
	char hello[64];
	if (baton_client_connect(&ask, &c->fd, NULL) != BATON_OK)
		errx(75, "%s", baton_err_detail());
	c->heard.len = 0;
	snprintf(hello, sizeof hello, "HELLO %" PRIu64 "\n", c->seen);
	send_all(c, hello);
	send_all(c, c->mine);
}

/* NUMBER ID TEXT */
static void hear(struct client *c, const char *line)
{
	const char *id = strchr(line, ' ');
	const char *mine = c->mine + strlen("SAY ");
	c->seen = strtoull(line, NULL, 10);
	printf("%s\n", line);
	fflush(stdout);
	if (id && c->mine[0] != '\0' && strncmp(id + 1, mine, strcspn(mine, "\n")) == 0)
		c->mine[0] = '\0';
}

static void say(struct client *c, const char *text)
{
	snprintf(c->mine, sizeof c->mine, "SAY %.64s-%u %.*s\n", c->name, ++c->said, TEXT, text);
	send_all(c, c->mine);
}

/* False: there is no more to be said. */
static bool turn(struct client *c)
{
	struct pollfd fds[] = {
		{.fd = c->mine[0] == '\0' ? STDIN_FILENO : -1, .events = POLLIN},
		{.fd = c->fd, .events = POLLIN},
	};
	char line[LINE];
	poll(fds, 2, -1);
	if (fds[1].revents != 0) {
		if (!fill(&c->heard, c->fd)) {
			close(c->fd);
			arrive(c);
		}
		while (line_take(&c->heard, line))
			hear(c, line);
	}
	if (fds[0].revents != 0 && !fill(&c->typed, STDIN_FILENO))
		return false;
	if (c->mine[0] == '\0' && line_take(&c->typed, line))
		say(c, line);
	return true;
}

int main(int argc, char **argv)
{
	struct client c = {.fd = -1};
	if (argc != 3)
		errx(64, "usage: example-chat-client ROOM NAME");
	c.room = argv[1];
	c.name = argv[2];
	arrive(&c);
	while (turn(&c))
		;
	close(c.fd);
	return 0;
}
