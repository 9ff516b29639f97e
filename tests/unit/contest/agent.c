/* A process that does to a fleet what it is told, and can be stopped at any step of it. */
#include "agent.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <baton/clock.h>
#include <baton/watch.h>

#include "contest/member.h"
#include "contest/subjects.h"
#include "support/harness.h"

/* Long enough for any machine; whoever needs longer hangs. */
#define ANSWER_MS 60000

#define HOUR_NS (INT64_C(3600) * 1000 * NS_PER_MS)

/* What the threads of an agent share. */
struct desk {
	const char *path;
	struct baton_fleet *fleet;
	pthread_mutex_t mu;
	struct baton_claim claims[LABELS]; /* [mu] */
	char labels[LABELS][LABEL_BYTES];  /* as the fleet, known to who had [mu] after joining */
};

struct worker {
	struct desk *desk;
	int channel;
	enum step trap;
	unsigned nth; /* 0: there is none */
	unsigned visits[STEP_COUNT];
	bool told; /* that it is in line */
	bool in_line;
	struct baton_subject subjects[LABELS];
};

static _Thread_local struct worker *me;

static const char *const step_names[STEP_COUNT] = {
#define STEP_ENTRY(name) [STEP_##name] = #name,
	STEP_TABLE(STEP_ENTRY)
#undef STEP_ENTRY
};

const char *step_name(enum step step)
{
	return step_names[step];
}

void contest_step(enum step step)
{
	char go[16];
	if (me == NULL)
		return;
	unsigned visit = ++me->visits[step];
	if (me->nth == visit && me->trap == step) {
		channel_send(me->channel, "@");
		if (!channel_receive(me->channel, go, sizeof go))
			_exit(1);
	}
	if (step == STEP_LINE_WAITING && me->in_line && !me->told) {
		me->told = true;
		channel_send(me->channel, "~");
	}
}

void labels_find(const struct view *v, char labels[LABELS][LABEL_BYTES])
{
	uint32_t home = 0;
	unsigned found = 0;
	for (unsigned i = 0; found < LABELS; i++) {
		struct baton_subject s = {BATON_STR("t"), {labels[found], 0}, {0, 0}};
		s.label.len = (size_t)snprintf(labels[found], LABEL_BYTES, "s%u", i);
		uint32_t at = (uint32_t)key_make(v, &s).hash & (v->shard_places - 1);
		if (found == 0)
			home = at;
		found += at == home;
	}
}

static struct baton_mono soon(int64_t ns)
{
	return (struct baton_mono){baton_clock_boot()->now(baton_clock_boot()).ns + ns};
}

static enum baton_err join(const char *path, struct baton_fleet **ret)
{
	const struct baton_fleet_options options = {
		.path = path,
		.owner = BATON_STR("agent"),
		.limits = {MEMBERS, SUBJECTS, WAITERS, 8, 8},
	};
	return baton_fleet_join(&options, ret);
}

static enum baton_err do_join(struct worker *w)
{
	struct desk *d = w->desk;
	enum baton_err e = join(d->path, &d->fleet);
	pthread_mutex_lock(&d->mu);
	if (e == BATON_OK)
		labels_find(d->fleet->view, d->labels);
	pthread_mutex_unlock(&d->mu);
	return e;
}

static enum baton_err do_join2(struct worker *w)
{
	struct baton_fleet *fleet = NULL;
	enum baton_err e = join(w->desk->path, &fleet);
	if (e == BATON_OK)
		baton_fleet_leave(fleet);
	return e;
}

/* BATON_INVALID: not exactly `n` can join. */
static enum baton_err do_crowd(struct worker *w, unsigned n)
{
	struct baton_fleet *fleets[MEMBERS + 1] = {NULL};
	enum baton_err e = BATON_OK;
	unsigned count = 0;
	while (e == BATON_OK && count <= MEMBERS) {
		e = join(w->desk->path, &fleets[count]);
		count += e == BATON_OK;
	}
	for (unsigned i = 0; i < count; i++)
		baton_fleet_leave(fleets[i]);
	return e == BATON_FULL && count == n ? BATON_OK : BATON_INVALID;
}

/* BATON_INVALID: not exactly `n` new subjects can be held. */
static enum baton_err do_fill(struct worker *w, unsigned n)
{
	struct baton_claim claims[SUBJECTS + 1];
	char label[LABEL_BYTES];
	enum baton_err e = BATON_OK;
	unsigned count = 0;
	while (e == BATON_OK && count <= SUBJECTS) {
		struct baton_subject s = {BATON_STR("fill"), {label, 0}, {0, 0}};
		s.label.len = (size_t)snprintf(label, sizeof label, "f%u", count);
		const struct baton_claim_ask ask = {.subject = &s};
		e = baton_claim_try(w->desk->fleet, &ask, &claims[count], NULL);
		count += e == BATON_OK;
	}
	for (unsigned i = 0; i < count; i++)
		if (baton_claim_release(&claims[i]) != BATON_OK)
			return BATON_INVALID;
	return e == BATON_FULL && count == n ? BATON_OK : BATON_INVALID;
}

static bool count_subject(const struct baton_subject *s, const struct baton_claim_holder *h,
                          void *arg)
{
	(void)s;
	(void)h;
	++*(unsigned *)arg;
	return true;
}

static bool count_member(const struct baton_member *m, void *arg)
{
	(void)m;
	++*(unsigned *)arg;
	return true;
}

/* BATON_INVALID: a watch does not see `n` held subjects. */
static enum baton_err do_look(struct worker *w, unsigned n)
{
	struct baton_watch *watch = NULL;
	struct baton_event event;
	struct baton_fleet_usage usage;
	uint64_t lost;
	unsigned held = 0, members = 0;
	enum baton_err e = baton_watch_open(w->desk->path, &watch);
	if (e != BATON_OK)
		return e;
	baton_watch_each(watch, soon(0), count_subject, &held);
	baton_watch_members(watch, soon(0), count_member, &members);
	baton_watch_usage(watch, soon(0), &usage);
	e = baton_watch_next(watch, soon(0), NULL, &event, &lost);
	baton_watch_close(watch);
	return e == BATON_TIMEOUT && held == n && usage.subjects == n && usage.members == members
	               ? BATON_OK
	               : BATON_INVALID;
}

static struct baton_claim claim_get(struct desk *d, unsigned i)
{
	pthread_mutex_lock(&d->mu);
	struct baton_claim claim = d->claims[i];
	pthread_mutex_unlock(&d->mu);
	return claim;
}

static void claim_set(struct desk *d, unsigned i, struct baton_claim claim)
{
	pthread_mutex_lock(&d->mu);
	d->claims[i] = claim;
	pthread_mutex_unlock(&d->mu);
}

static enum baton_err do_claim(struct worker *w, const char *verb, unsigned i, unsigned ms,
                               struct baton_claim_holder *holder)
{
	struct desk *d = w->desk;
	w->subjects[i] = (struct baton_subject){BATON_STR("t"),
	                                        {d->labels[i], strlen(d->labels[i])},
	                                        {w->subjects[i].seen[0], w->subjects[i].seen[1]}};
	struct baton_claim_ask ask = {
		.subject = &w->subjects[i],
		.ttl = {ms * NS_PER_MS},
		.until = soon(ms * NS_PER_MS),
	};
	struct baton_claim claim = {.fleet = NULL};
	enum baton_err e;
	if (strcmp(verb, "force") == 0)
		return baton_claim_force(d->fleet, ask.subject, holder);
	if (strcmp(verb, "try") == 0) {
		e = baton_claim_try(d->fleet, &ask, &claim, holder);
	} else if (strcmp(verb, "steal") == 0) {
		e = baton_claim_try_at(d->fleet, &ask, soon(2 * HOUR_NS), &claim, holder);
	} else {
		ask.ttl.ns = 0;
		w->in_line = true;
		w->told = false;
		e = baton_claim_wait(d->fleet, &ask, &claim, holder);
		w->in_line = false;
	}
	if (e == BATON_OK)
		claim_set(d, i, claim);
	return e;
}

static enum baton_err do_claimed(struct desk *d, const char *verb, unsigned i)
{
	const struct baton_claim held = claim_get(d, i);
	const struct baton_claim *claim = &held;
	if (strcmp(verb, "release") == 0)
		return baton_claim_release(claim);
	if (strcmp(verb, "renew") == 0)
		return baton_claim_renew(claim, (struct baton_duration){HOUR_NS});
	return baton_claim_check(claim, NULL);
}

static bool is_one_of(const char *verb, const char *const *verbs)
{
	while (*verbs != NULL && strcmp(verb, *verbs) != 0)
		verbs++;
	return *verbs != NULL;
}

static enum baton_err obey(struct worker *w, const char *verb, unsigned x, unsigned y,
                           struct baton_claim_holder *holder)
{
	static const char *const asks[] = {"try", "steal", "force", "wait", NULL};
	static const char *const claimed[] = {"release", "renew", "check", NULL};
	struct desk *d = w->desk;
	pthread_mutex_lock(&d->mu);
	pthread_mutex_unlock(&d->mu);
	if (is_one_of(verb, asks))
		return do_claim(w, verb, x, y, holder);
	if (is_one_of(verb, claimed))
		return do_claimed(d, verb, x);
	if (strcmp(verb, "join") == 0)
		return do_join(w);
	if (strcmp(verb, "join2") == 0)
		return do_join2(w);
	if (strcmp(verb, "crowd") == 0)
		return do_crowd(w, x);
	if (strcmp(verb, "fill") == 0)
		return do_fill(w, x);
	if (strcmp(verb, "look") == 0)
		return do_look(w, x);
	if (strcmp(verb, "leave") == 0) {
		baton_fleet_leave(d->fleet);
		d->fleet = NULL;
		for (unsigned i = 0; i < LABELS; i++)
			claim_set(d, i, (struct baton_claim){.fleet = NULL});
		return BATON_OK;
	}
	abort();
}

static void visits_print(const struct worker *w, char *text, size_t size)
{
	size_t used = 0;
	for (unsigned i = 0; i < STEP_COUNT; i++)
		used += (size_t)snprintf(text + used, size - used, "%u ", w->visits[i]);
}

static void trap_set(struct worker *w, unsigned step, unsigned nth)
{
	memset(w->visits, 0, sizeof w->visits);
	w->trap = (enum step)step;
	w->nth = nth;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	char command[64], verb[16], text[400], line[512];
	me = w;
	while (channel_receive(w->channel, command, sizeof command)) {
		struct baton_claim_holder holder = {.pid = 0};
		unsigned x = 0, y = 0;
		enum baton_err e = BATON_OK;
		sscanf(command, "%15s %u %u", verb, &x, &y);
		text[0] = '\0';
		if (strcmp(verb, "trap") == 0)
			trap_set(w, x, y);
		else if (strcmp(verb, "visits") == 0)
			visits_print(w, text, sizeof text);
		else
			e = obey(w, verb, x, y, &holder);
		uint64_t fence = e == BATON_OK && x < LABELS ? claim_get(w->desk, x).fence.v : 0;
		if (text[0] == '\0' && e != BATON_OK)
			snprintf(text, sizeof text, "%.300s", baton_err_detail());
		snprintf(line, sizeof line, "%d %" PRIu64 " %d %s", (int)e, fence, (int)holder.pid,
		         text);
		channel_send(w->channel, line);
	}
	return NULL;
}

struct plan {
	const char *path;
	int second;
};

static int agent_body(int channel, void *arg)
{
	const struct plan *plan = arg;
	static struct desk desk = {.mu = PTHREAD_MUTEX_INITIALIZER};
	static struct worker workers[AGENT_THREADS];
	pthread_t thread;
	signal(SIGPIPE, SIG_IGN);
	desk.path = plan->path;
	workers[0] = (struct worker){.desk = &desk, .channel = channel};
	workers[1] = (struct worker){.desk = &desk, .channel = plan->second};
	if (pthread_create(&thread, NULL, work, &workers[1]) != 0)
		return 1;
	work(&workers[0]);
	return 0;
}

void agent_start(struct agent *a, char name, const char *path)
{
	int ends[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	struct plan plan = {.path = path, .second = ends[1]};
	*a = (struct agent){.name = name, .lives = true};
	child_start(&a->child, agent_body, &plan);
	close(ends[1]);
	a->channels[0] = a->child.channel;
	a->channels[1] = ends[0];
}

void agent_tell(const struct agent *a, int thread, const char *command)
{
	channel_send(a->channels[thread], command);
}

enum heard agent_hear(const struct agent *a, int thread, struct answer *ret)
{
	struct pollfd poll_fd = {.fd = a->channels[thread], .events = POLLIN};
	int ready;
	do
		ready = poll(&poll_fd, 1, ANSWER_MS);
	while (ready < 0 && errno == EINTR);
	if (ready != 1)
		fail_msg("agent %c does not answer", a->name);
	char line[512];
	if (!channel_receive(a->channels[thread], line, sizeof line))
		fail_msg("agent %c has died by itself", a->name);
	*ret = (struct answer){.err = BATON_OK};
	if (line[0] == '@')
		return HEARD_STOPPED;
	if (line[0] == '~')
		return HEARD_IN_LINE;
	int err = 0, at = 0;
	sscanf(line, "%d %" SCNu64 " %d %n", &err, &ret->fence, &ret->pid, &at);
	ret->err = (enum baton_err)err;
	snprintf(ret->text, sizeof ret->text, "%s", line + at);
	return HEARD_ANSWER;
}

void agent_go_on(const struct agent *a, int thread)
{
	channel_send(a->channels[thread], "go");
}

void agent_kill(struct agent *a)
{
	if (!a->lives)
		return;
	a->lives = false;
	kill(a->child.pid, SIGKILL);
	child_await_end(&a->child);
}

void agent_end(struct agent *a)
{
	if (a->name == '\0')
		return;
	agent_kill(a);
	child_reap(&a->child);
	close(a->channels[1]);
	*a = (struct agent){.lives = false};
}
