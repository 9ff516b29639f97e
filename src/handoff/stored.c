/* Descriptors that the broker keeps for the backends of a service, by name. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fail.h"
#include "base/mem.h"
#include "handoff/packet.h"
#include "handoff/state.h"

#define TTL_MAX_MS ((uint64_t)30 * 86400 * 1000)

static void stored_free(struct baton_broker *b, struct stored *s)
{
	links_remove(&s->links);
	fd_closep(&s->fd);
	s->service->stored--;
	b->stored_count--;
	mem_free(b->alloc, s, 1, sizeof *s);
}

/* Nobody needs it any more. */
static void stored_end(struct baton_broker *b, struct stored *s)
{
	safe_stored(b, s, false);
	stored_free(b, s);
}

static struct stored *stored_find(const struct baton_broker *b, const struct service *service,
                                  struct baton_str name)
{
	for (struct links *l = b->stored.next; l != &b->stored; l = l->next) {
		struct stored *s = LINKS_OF(l, struct stored, links);
		if (s->service == service && baton_str_equal(baton_str_z(s->name), name))
			return s;
	}
	return NULL;
}

/* The earliest end of what is kept; nothing that is being taken ends. */
static void next_find(struct baton_broker *b)
{
	b->stored_until = BATON_MONO_NEVER;
	for (struct links *l = b->stored.next; l != &b->stored; l = l->next) {
		const struct stored *s = LINKS_OF(l, const struct stored, links);
		if (!s->taker && s->until.ns < b->stored_until.ns)
			b->stored_until = s->until;
	}
}

static void answer(struct baton_broker *b, struct channel *c, const struct wire_kept *kept, int fd)
{
	const struct wire_handoff m = {.kind = WIRE_KEPT, .is.kept = *kept};
	/* Who does not read what it asked for is not there. */
	if (packet_send(c->source.fd, &m, fd) != PACKET_DONE)
		channels_end(b, c, FALLBACK_ACK_TIMEOUT);
}

static void say(struct baton_broker *b, struct channel *c, const struct wire_keep *ask,
                enum wire_kept_result result)
{
	const struct wire_kept kept = {
		.result = result,
		.detail = baton_str_z(result == WIRE_KEPT_DONE ? "" : baton_err_detail()),
		.correlation = ask->correlation,
	};
	answer(b, c, &kept, -1);
}

enum wire_kept_result stored_judge(const struct baton_broker *b, const struct service *service,
                                   struct baton_str name, int fd)
{
	struct stat st;
	fail_detail("a descriptor that is kept is a socket with a name of 1 to %d bytes",
	            WIRE_STORED_NAME_MAX);
	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISSOCK(st.st_mode) || name.len == 0 ||
	    name.len > WIRE_STORED_NAME_MAX)
		return WIRE_KEPT_WRONG;
	fail_detail("there is a descriptor of that name already");
	if (stored_find(b, service, name))
		return WIRE_KEPT_THERE;
	fail_detail("no more than %d descriptors are kept, of one service %d", WIRE_STORED_MAX,
	            WIRE_STORED_OF_SERVICE_MAX);
	if (b->stored_count == WIRE_STORED_MAX || service->stored == WIRE_STORED_OF_SERVICE_MAX)
		return WIRE_KEPT_FULL;
	return WIRE_KEPT_DONE;
}

/* Whether it may be put; else why not is the detail. */
static enum wire_kept_result put_judge(const struct baton_broker *b, const struct channel *c,
                                       const struct wire_keep *ask, int fd)
{
	enum wire_kept_result result = stored_judge(b, c->service, ask->name, fd);
	if (result != WIRE_KEPT_DONE)
		return result;
	fail_detail("a descriptor is kept for up to 30 days");
	if (ask->ttl_ms > TTL_MAX_MS)
		return WIRE_KEPT_WRONG;
	fail_detail("the broker has too few descriptors left");
	return b->pressure.level == PRESSURE_NONE ? WIRE_KEPT_DONE : WIRE_KEPT_FULL;
}

bool stored_new(struct baton_broker *b, const struct stored *from)
{
	struct stored *s = mem_new(b->alloc, 1, sizeof *s);
	if (!s)
		return false;
	*s = *from;
	links_init(&s->links);
	links_append(&b->stored, &s->links);
	s->service->stored++;
	b->stored_count++;
	next_find(b);
	safe_stored(b, s, true);
	return true;
}

static void put(struct baton_broker *b, struct channel *c, const struct wire_keep *ask, int *fd)
{
	enum wire_kept_result result = put_judge(b, c, ask, *fd);
	struct baton_duration ttl = baton_duration_ms((int64_t)ask->ttl_ms);
	if (result == WIRE_KEPT_DONE) {
		struct stored s = {.service = c->service, .fd = *fd, .until = BATON_MONO_NEVER};
		memcpy(s.name, ask->name.ptr, ask->name.len);
		if (ask->ttl_ms > 0)
			s.until = baton_mono_add(broker_now(b), ttl);
		if (stored_new(b, &s))
			*fd = -1;
		else
			result = WIRE_KEPT_FULL;
	}
	say(b, c, ask, result);
}

void stored_refuse(struct baton_broker *b, struct channel *channel, const struct wire_keep *ask)
{
	fail_detail("the broker has no descriptor left");
	say(b, channel, ask, WIRE_KEPT_FULL);
}

/* Its copy is kept until it has arrived. */
static void take(struct baton_broker *b, struct channel *c, const struct wire_keep *ask)
{
	struct stored *s = stored_find(b, c->service, ask->name);
	const struct wire_kept kept = {.result = WIRE_KEPT_DONE, .correlation = ask->correlation};
	if (!s) {
		fail_detail("nothing of that name is kept");
		say(b, c, ask, WIRE_KEPT_NONE);
	} else if (s->taker) {
		fail_detail("another backend takes it");
		say(b, c, ask, WIRE_KEPT_BUSY);
	} else {
		s->taker = c;
		next_find(b);
		answer(b, c, &kept, s->fd);
	}
}

static bool taken(struct baton_broker *b, const struct channel *c, const struct wire_keep *ask)
{
	struct stored *s = stored_find(b, c->service, ask->name);
	if (!s || s->taker != c)
		return false;
	stored_end(b, s);
	next_find(b);
	return true;
}

struct wire_stored stored_view(const struct baton_broker *b, const struct stored *s)
{
	int64_t left = baton_mono_sub(s->until, broker_now(b)).ns;
	uint64_t ms = left > 0 ? (uint64_t)(left - 1) / 1000000 + 1 : 1;
	return (struct wire_stored){
		.service = baton_str_z(s->service->name),
		.name = baton_str_z(s->name),
		.left_ms = s->until.ns == INT64_MAX ? 0 : ms,
	};
}

static void list(struct baton_broker *b, struct channel *c, const struct wire_keep *ask)
{
	struct wire_stored all[WIRE_STORED_OF_SERVICE_MAX];
	struct wire_kept kept = {.result = WIRE_KEPT_DONE, .correlation = ask->correlation};
	for (struct links *l = b->stored.next; l != &b->stored; l = l->next) {
		const struct stored *s = LINKS_OF(l, const struct stored, links);
		if (s->service == c->service && !s->taker &&
		    kept.stored_count < WIRE_STORED_OF_SERVICE_MAX)
			all[kept.stored_count++] = stored_view(b, s);
	}
	kept.stored = all;
	answer(b, c, &kept, -1);
}

bool stored_ask(struct baton_broker *b, struct channel *channel, const struct wire_keep *ask,
                int *fd)
{
	switch (ask->verb) {
	case WIRE_PUT:
		put(b, channel, ask, fd);
		return true;
	case WIRE_TAKE:
		take(b, channel, ask);
		return true;
	case WIRE_TAKEN:
		return taken(b, channel, ask);
	case WIRE_LIST:
		list(b, channel, ask);
		return true;
	}
	return false;
}

void stored_lost(struct baton_broker *b, const struct channel *channel)
{
	for (struct links *l = b->stored.next; l != &b->stored; l = l->next) {
		struct stored *s = LINKS_OF(l, struct stored, links);
		if (s->taker == channel)
			s->taker = NULL;
	}
	next_find(b);
}

void stored_expire(struct baton_broker *b, struct baton_mono now)
{
	if (baton_mono_live(b->stored_until, now))
		return;
	for (struct links *l = b->stored.next, *next; l != &b->stored; l = next) {
		struct stored *s = LINKS_OF(l, struct stored, links);
		next = l->next;
		if (s->taker || baton_mono_live(s->until, now))
			continue;
		b->counts[COUNT_STORED_ENDED]++;
		stored_end(b, s);
	}
	next_find(b);
}

void stored_done(struct baton_broker *b)
{
	while (!links_empty(&b->stored))
		stored_free(b, LINKS_OF(b->stored.next, struct stored, links));
}
