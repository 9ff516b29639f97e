/* What somebody else keeps safe for the next broker, in case that this one dies: sockets of TCP,
 * and what is kept for backends. The name that it is kept under says all that is to be known. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "handoff/state.h"

#define LISTENER_PREFIX BATON_SAFE_PREFIX "tcp/"
#define STORED_PREFIX BATON_SAFE_PREFIX "kept/"

static const char hex[] = "0123456789abcdef";

_Static_assert(sizeof STORED_PREFIX + BATON_SERVICE_MAX + 1 + 20 + 1 + 2UL * WIRE_STORED_NAME_MAX <=
                       BATON_SAFE_NAME_MAX,
               "the longest name fits");

/* The address, without the colons that a name may not have. False: it has no such name. */
static bool listener_name(const char *address, char ret[BATON_SAFE_NAME_MAX + 1])
{
	int len = snprintf(ret, BATON_SAFE_NAME_MAX + 1, "%s%s", LISTENER_PREFIX, address);
	if (len > BATON_SAFE_NAME_MAX || strchr(address, '/'))
		return false;
	for (char *at = ret; (at = strchr(at, ':'));)
		*at = '/';
	return true;
}

/* Service, end, and the name in hexadecimal, which may be any bytes. */
static void stored_name(const struct stored *s, char ret[BATON_SAFE_NAME_MAX + 1])
{
	int len = snprintf(ret, BATON_SAFE_NAME_MAX + 1, "%s%s/%" PRId64 "/", STORED_PREFIX,
	                   s->service->name, s->until.ns);
	char *at = ret + len;
	for (const char *c = s->name; *c != '\0'; c++) {
		*at++ = hex[(unsigned char)*c >> 4];
		*at++ = hex[(unsigned char)*c & 15];
	}
	*at = '\0';
}

void safe_listener(struct baton_broker *b, const struct listener *l)
{
	char name[BATON_SAFE_NAME_MAX + 1];
	if (b->keep_safe && listener_name(l->address, name))
		b->keep_safe(b->arg, name, l->source.fd);
}

void safe_stored(struct baton_broker *b, const struct stored *s, bool kept)
{
	char name[BATON_SAFE_NAME_MAX + 1];
	if (!b->keep_safe)
		return;
	stored_name(s, name);
	b->keep_safe(b->arg, name, kept ? s->fd : -1);
}

static void discard(struct baton_broker *b, const struct baton_broker_safe *safe)
{
	BATON_LOG(b->log, BATON_LOG_INFO, "a descriptor that was kept safe is of no use",
	          baton_field_str("name", baton_str_z(safe->name)));
	if (b->keep_safe)
		b->keep_safe(b->arg, safe->name, -1);
}

bool safe_listener_take(struct baton_broker *b, const char *address, int *ret_fd)
{
	char name[BATON_SAFE_NAME_MAX + 1];
	int listens = 0;
	socklen_t len = sizeof listens;
	if (!listener_name(address, name))
		return false;
	for (size_t i = 0; i < b->safe_count; i++) {
		int fd = b->safe_fds[i];
		if (fd < 0 || strcmp(b->safe[i].name, name) != 0)
			continue;
		if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) != 0 ||
		    listens != 1) {
			/* Before there is another one of that name. */
			discard(b, &b->safe[i]);
			fd_closep(&b->safe_fds[i]);
			b->safe_fds[i] = -1;
			continue;
		}
		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
		*ret_fd = fd_take(&b->safe_fds[i]);
		return true;
	}
	return false;
}

/* One digit, or 16. */
static unsigned digit(char c)
{
	const char *at = c != '\0' ? strchr(hex, c) : NULL;
	return at ? (unsigned)(at - hex) : 16;
}

static bool unhex(const char *text, char ret[WIRE_STORED_NAME_MAX + 1])
{
	size_t len = strlen(text);
	if (len == 0 || len % 2 != 0 || len / 2 > WIRE_STORED_NAME_MAX)
		return false;
	for (size_t i = 0; i < len / 2; i++) {
		unsigned high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
		if (high > 15 || low > 15 || (high == 0 && low == 0))
			return false;
		ret[i] = (char)(high << 4 | low);
	}
	ret[len / 2] = '\0';
	return true;
}

/* Reads a name as stored_name() makes it. */
static bool stored_parse(const char *name, struct baton_str *ret_service, struct stored *ret)
{
	uint64_t until;
	if (strncmp(name, STORED_PREFIX, strlen(STORED_PREFIX)) != 0)
		return false;
	const char *service = name + strlen(STORED_PREFIX);
	const char *time = strchr(service, '/');
	const char *rest = time ? strchr(time + 1, '/') : NULL;
	if (!rest)
		return false;
	*ret_service = (struct baton_str){service, (size_t)(time - service)};
	struct baton_str number = {time + 1, (size_t)(rest - time - 1)};
	if (!wire_is_service(*ret_service) || !number_parse(number, INT64_MAX, &until) ||
	    !unhex(rest + 1, ret->name))
		return false;
	ret->until = (struct baton_mono){(int64_t)until};
	return true;
}

static bool stored_take(struct baton_broker *b, size_t i)
{
	struct baton_str name;
	struct stored found = {.fd = -1};
	if (!stored_parse(b->safe[i].name, &name, &found) ||
	    !baton_mono_live(found.until, broker_now(b)) ||
	    services_make(b, name, &found.service) != BATON_OK ||
	    stored_judge(b, found.service, baton_str_z(found.name), b->safe_fds[i]) !=
	            WIRE_KEPT_DONE)
		return false;
	found.fd = b->safe_fds[i];
	if (!stored_new(b, &found))
		return false;
	b->safe_fds[i] = -1;
	return true;
}

enum baton_err safe_init(struct baton_broker *b, const struct baton_broker_options *o)
{
	b->safe = o->safe;
	b->safe_fds = arena_take(&b->kept, o->safe_count, sizeof *b->safe_fds);
	if (!b->safe_fds)
		return BATON_NO_MEMORY;
	b->safe_count = o->safe_count;
	for (size_t i = 0; i < o->safe_count; i++)
		b->safe_fds[i] = o->safe[i].fd;
	return BATON_OK;
}

void safe_settle(struct baton_broker *b)
{
	for (size_t i = 0; i < b->safe_count; i++)
		if (b->safe_fds[i] >= 0 && !stored_take(b, i))
			discard(b, &b->safe[i]);
	safe_done(b);
}

void safe_done(struct baton_broker *b)
{
	for (size_t i = 0; i < b->safe_count; i++)
		fd_closep(&b->safe_fds[i]);
	b->safe_count = 0;
	b->safe = NULL;
}
