/* Processes that the broker starts: services on demand, and commands for one connection each. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "base/fail.h"
#include "base/mem.h"
#include "handoff/definitions.h"
#include "handoff/packet.h"
#include "handoff/spawn.h"
#include "handoff/state.h"

enum baton_err children_define(struct baton_broker *b, const char *folder)
{
	enum baton_err e =
		definitions_read(folder, b->log, &b->kept, &b->definitions, &b->definitions_count);
	for (size_t i = 0; i < b->definitions_count && e == BATON_OK; i++) {
		struct service *service = NULL;
		const struct definition *d = &b->definitions[i];
		e = services_make(b, baton_str_z(d->name), &service);
		if (e != BATON_OK)
			return e;
		service->definition = d;
		b->strangers = b->strangers || d->allow_count > 0;
	}
	return e;
}

static struct baton_field name_of(const struct child *c)
{
	return baton_field_str("service", baton_str_z(c->service->name));
}

/* To the process itself, which is certainly the one that was started. False: it is gone. */
static bool tell(const struct child *c, int number)
{
	return syscall(SYS_pidfd_send_signal, c->source.fd, number, NULL, 0) == 0;
}

/* To all that the process has started and that did not go away by themselves. It has not been
 * reaped, so its number is nobody else's; of that of another broker only while it is there. */
static void kill_all(const struct child *c)
{
	if (!c->other || tell(c, 0))
		kill(-c->pid, SIGKILL);
	tell(c, SIGKILL);
}

/* Starts a process for the service, which is watched from then on. */
static enum baton_err child_start(struct baton_broker *b, const struct spawn_order *order,
                                  struct child **ret)
{
	struct arena arena;
	struct child *c = mem_new(b->alloc, 1, sizeof *c);
	if (!c)
		return fail_memory(sizeof *c, "a process");
	c->source = (struct source){.kind = SOURCE_CHILD, .fd = -1};
	links_init(&c->source.links);
	/* That of the broker may have what was read, and is not reset for all who come. */
	arena_init(&arena, b->alloc);
	enum baton_err e = spawn(order, &arena, &c->pid, &c->source.fd);
	arena_done(&arena);
	if (e != BATON_OK) {
		mem_free(b->alloc, c, 1, sizeof *c);
		return e;
	}
	if (!source_watch(b, &c->source, EPOLLIN)) {
		e = fail_errno(errno, "a process cannot be waited for");
		kill_all(c);
		waitid(P_PIDFD, (id_t)c->source.fd, NULL, WEXITED);
		source_end(b, &c->source);
		return e;
	}
	*ret = c;
	return BATON_OK;
}

/* Starts the service, if it may be. */
static enum baton_err main_start(struct baton_broker *b, struct service *service,
                                 struct baton_duration *ret_retry_after)
{
	const struct spawn_order order = {
		.definition = service->definition,
		.broker = b->site.folder,
		.fd = -1,
	};
	struct baton_mono now = broker_now(b);
	struct child *c;
	*ret_retry_after = starts_wait(&service->starts, now);
	if (ret_retry_after->ns > 0)
		return fail(BATON_BUSY,
		            "the service was started %d times in %d s, and did not stay",
		            STARTS_MAX, STARTS_WINDOW_MS / 1000);
	starts_add(&service->starts, now);
	b->counts[COUNT_STARTS]++;
	*ret_retry_after = baton_duration_ms(1000);
	enum baton_err e = child_start(b, &order, &c);
	if (e != BATON_OK) {
		b->counts[COUNT_FAILED]++;
		BATON_LOG(b->log, BATON_LOG_WARN, "service not started",
		          baton_field_str("service", baton_str_z(service->name)),
		          baton_field_str("why", baton_str_z(baton_err_detail())));
		return e;
	}
	c->service = service;
	c->state = CHILD_STARTING;
	c->probe_at = BATON_MONO_NEVER;
	c->until = baton_mono_add(now, service->definition->start);
	links_append(&b->mains, &c->source.links);
	service->main = c;
	BATON_LOG(b->log, BATON_LOG_INFO, "service started", name_of(c),
	          baton_field_int("pid", c->pid),
	          baton_field_uint("starts", service->starts.count));
	return BATON_OK;
}

enum baton_err children_want(struct baton_broker *b, struct service *service,
                             struct baton_duration *ret_retry_after)
{
	const struct definition *d = service->definition;
	if (!d || d->takes != TAKES_HANDOFF || service->main)
		return BATON_OK;
	return main_start(b, service, ret_retry_after);
}

enum baton_err children_adopt(struct baton_broker *b, const struct wire_item *item, int *fd)
{
	struct service *service = services_find(b, item->service);
	if (item->capabilities < CHILD_STARTING || item->capabilities > CHILD_COMMAND ||
	    item->id <= 1 || item->id > INT32_MAX)
		return fail(BATON_INVALID, "the broker sent a process that is none");
	/* Of a service that is no longer defined here it goes on by itself. */
	if (!service || !service->definition)
		return BATON_OK;
	struct child *c = mem_new(b->alloc, 1, sizeof *c);
	if (!c)
		return fail_memory(sizeof *c, "a process");
	*c = (struct child){
		.source = {.kind = SOURCE_CHILD, .fd = fd_take(fd)},
		.service = service,
		.pid = (int32_t)item->id,
		.state = (enum child_state)item->capabilities,
		.until = {(int64_t)item->until},
		.probe_at = baton_mono_add(broker_now(b), service->definition->probe),
		.other = true,
	};
	links_init(&c->source.links);
	bool command = c->state == CHILD_COMMAND;
	links_append(command ? &b->commands : &b->mains, &c->source.links);
	service->commands += command;
	if (c->state == CHILD_STARTING || c->state == CHILD_UP)
		service->main = c;
	return source_watch(b, &c->source, EPOLLIN)
	               ? BATON_OK
	               : fail_errno(errno, "a process cannot be waited for");
}

bool children_have_room(const struct service *service)
{
	const struct definition *d = service->definition;
	return d && d->takes != TAKES_HANDOFF && service->commands < d->max;
}

enum baton_err children_run(struct baton_broker *b, struct service *service,
                            const struct peer *peer, struct baton_str first)
{
	const struct spawn_order order = {
		.definition = service->definition,
		.broker = b->site.folder,
		.fd = peer->source.fd,
		.first = first,
		.connection = peer->connection,
		.who = peer->who,
		.trace = peer->trace,
	};
	struct child *c;
	enum baton_err e = child_start(b, &order, &c);
	if (e != BATON_OK) {
		BATON_LOG(b->log, BATON_LOG_WARN, "command not run",
		          baton_field_str("service", baton_str_z(service->name)),
		          baton_field_str("why", baton_str_z(baton_err_detail())));
		return e;
	}
	c->service = service;
	c->state = CHILD_COMMAND;
	c->until = BATON_MONO_NEVER;
	links_append(&b->commands, &c->source.links);
	service->commands++;
	b->counts[COUNT_COMMANDS]++;
	return BATON_OK;
}

/* Somebody waits for a service that is not there: it is started, or they are told why not. */
static void serve_waiting(struct baton_broker *b, struct service *service)
{
	struct baton_duration retry_after;
	char why[256];
	if (b->stopping || service->main || services_current(service) ||
	    !peers_wait_for(b, service))
		return;
	if (main_start(b, service, &retry_after) == BATON_OK)
		return;
	snprintf(why, sizeof why, "%s", baton_err_detail());
	BATON_LOG(b->log, BATON_LOG_WARN, "service given up for now",
	          baton_field_str("service", baton_str_z(service->name)),
	          baton_field_str("why", baton_str_z(why)),
	          baton_field_duration("retry_after", retry_after));
	peers_disappoint(b, service, why, retry_after);
}

/* How it ended, for the log. */
static const char *end_of(const siginfo_t *info, char text[64])
{
	if (info->si_code == CLD_EXITED)
		snprintf(text, 64, "exit status %d", info->si_status);
	else
		snprintf(text, 64, "signal %d", info->si_status);
	return text;
}

static void main_ended(struct baton_broker *b, struct child *c, const siginfo_t *info)
{
	struct service *service = c->service;
	char text[64];
	bool failed = c->state == CHILD_STARTING;
	BATON_LOG(b->log, failed ? BATON_LOG_WARN : BATON_LOG_INFO,
	          failed ? "service ended before it registered" : "service ended", name_of(c),
	          baton_field_int("pid", c->pid),
	          baton_field_str("how", baton_str_z(end_of(info, text))));
	if (failed)
		b->counts[COUNT_FAILED]++;
	if (failed && !c->other)
		kill_all(c);
	if (service->main == c)
		service->main = NULL;
}

void children_event(struct baton_broker *b, struct child *child)
{
	struct service *service = child->service;
	siginfo_t info = {.si_code = CLD_EXITED};
	bool command = child->state == CHILD_COMMAND;
	if (!command) {
		/* It is reaped after what it has started is dealt with. */
		waitid(P_PIDFD, (id_t)child->source.fd, &info, WEXITED | WNOHANG | WNOWAIT);
		main_ended(b, child, &info);
	}
	/* What was taken over from another broker is no child of this one. */
	waitid(P_PIDFD, (id_t)child->source.fd, &info, WEXITED | WNOHANG);
	source_end(b, &child->source);
	if (command) {
		service->commands--;
		peers_unpark(b, service);
	} else {
		serve_waiting(b, service);
	}
}

/* The process of the service that has just registered, if it had left before. */
static struct child *left_find(const struct baton_broker *b, const struct channel *channel)
{
	for (struct links *l = b->mains.next; l != &b->mains; l = l->next) {
		struct child *c = LINKS_OF(l, struct child, source.links);
		if (c->service == channel->service && c->pid == channel->who.pid)
			return c;
	}
	return NULL;
}

/* Whether the backend is the process, or was started by it. */
static bool is_of(const struct channel *channel, const struct child *c)
{
	return channel->who.pid == c->pid || getsid(channel->who.pid) == c->pid;
}

void children_registered(struct baton_broker *b, const struct channel *channel)
{
	struct service *service = channel->service;
	service->used = broker_now(b);
	if (!service->main)
		service->main = left_find(b, channel);
	/* Somebody else's backend says nothing about it. */
	if (!service->main || !is_of(channel, service->main))
		return;
	service->main->state = CHILD_UP;
	service->main->probe_at = baton_mono_add(broker_now(b), service->definition->probe);
}

void children_lost(struct baton_broker *b, struct service *service, bool left)
{
	struct child *c = service->main;
	if (!c || c->state != CHILD_UP || services_current(service))
		return;
	c->state = left ? CHILD_STOPPING : CHILD_STARTING;
	c->until =
		left ? BATON_MONO_NEVER : baton_mono_add(broker_now(b), service->definition->start);
	if (left)
		service->main = NULL;
}

/* When something is to be done about it. */
static struct baton_mono due(const struct child *c)
{
	struct baton_mono idle = baton_mono_add(c->service->used, c->service->definition->idle);
	struct baton_mono up = c->probe_at.ns < idle.ns ? c->probe_at : idle;
	return c->state == CHILD_UP ? up : c->until;
}

/* It is not wanted, or of no use. What it has it may keep until its time is over. */
static void main_stop(struct baton_broker *b, struct child *c, const char *why)
{
	struct service *service = c->service;
	for (struct links *l = service->channels.next; l != &service->channels; l = l->next) {
		struct channel *channel = LINKS_OF(l, struct channel, of_service);
		if (is_of(channel, c))
			channel->leaving = true;
	}
	c->state = CHILD_STOPPING;
	c->until = baton_mono_add(broker_now(b), service->definition->stop);
	service->main = NULL;
	BATON_LOG(b->log, BATON_LOG_INFO, why, name_of(c), baton_field_int("pid", c->pid));
	tell(c, SIGTERM);
}

/* A service that hangs gets nothing more, and another one is started for who wants it. */
static void main_hangs(struct baton_broker *b, struct child *c)
{
	struct service *service = c->service;
	b->counts[COUNT_HUNG]++;
	main_stop(b, c, "service hangs");
	serve_waiting(b, service);
}

void children_silent(struct baton_broker *b, const struct channel *channel)
{
	struct child *c = channel->service->main;
	if (c && c->state == CHILD_UP && c->probe_at.ns != INT64_MAX && is_of(channel, c))
		main_hangs(b, c);
}

/* Asks its backends whether they live; one that has not answered the last time does not. */
static void main_probe(struct baton_broker *b, struct child *c)
{
	const struct links *channels = &c->service->channels;
	bool hangs = false;
	for (struct links *l = channels->next; l != channels; l = l->next) {
		struct channel *channel = LINKS_OF(l, struct channel, of_service);
		if (!(channel->capabilities & WIRE_ANSWERS_PROBES) || !is_of(channel, c))
			continue;
		hangs = hangs || channel->probe != 0;
		channel->probe = ++b->probes;
		const struct wire_handoff m = {.kind = WIRE_PROBES, .is.probe = {channel->probe}};
		/* One that takes nothing any more does not answer, and one that is gone is told. */
		(void)packet_send(channel->source.fd, &m, -1);
	}
	c->probe_at = baton_mono_add(broker_now(b), c->service->definition->probe);
	if (hangs)
		main_hangs(b, c);
}

/* Whether connections are on their way to it. */
static bool is_pending(const struct service *service)
{
	for (struct links *l = service->channels.next; l != &service->channels; l = l->next)
		if (LINKS_OF(l, struct channel, of_service)->pending > 0)
			return true;
	return false;
}

static void main_due(struct baton_broker *b, struct child *c)
{
	if (c->state == CHILD_UP && !baton_mono_live(c->probe_at, broker_now(b))) {
		main_probe(b, c);
		return;
	}
	if (c->state == CHILD_UP && is_pending(c->service)) {
		c->service->used = broker_now(b);
		return;
	}
	if (c->state == CHILD_UP) {
		main_stop(b, c, "service idle");
		return;
	}
	BATON_LOG(b->log, BATON_LOG_WARN,
	          c->state == CHILD_STARTING ? "service did not register in time"
	                                     : "service did not end in time",
	          name_of(c), baton_field_int("pid", c->pid));
	/* Its end is an event of its own. */
	c->until = BATON_MONO_NEVER;
	kill_all(c);
}

void children_timers(struct baton_broker *b, struct baton_mono now)
{
	for (struct links *l = b->mains.next, *next; l != &b->mains; l = next) {
		struct child *c = LINKS_OF(l, struct child, source.links);
		next = l->next;
		if (!baton_mono_live(due(c), now))
			main_due(b, c);
	}
}

struct baton_mono children_next(const struct baton_broker *b)
{
	struct baton_mono first = BATON_MONO_NEVER;
	for (struct links *l = b->mains.next; l != &b->mains; l = l->next) {
		struct baton_mono at = due(LINKS_OF(l, struct child, source.links));
		first = at.ns < first.ns ? at : first;
	}
	return first;
}

void children_done(struct baton_broker *b)
{
	struct links *lists[] = {&b->mains, &b->commands};
	for (int i = 0; i < 2; i++)
		while (!links_empty(lists[i])) {
			struct child *c = LINKS_OF(lists[i]->next, struct child, source.links);
			if (c->state != CHILD_COMMAND && !b->lent)
				tell(c, SIGTERM);
			source_end(b, &c->source);
		}
}
