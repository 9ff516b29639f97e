/* A small fleet in a fresh folder, with members of this process and of others. */
#include "world.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "contest/lock.h"

#define A_MINUTE_MS 60000

/* Children of these tests begin threads, which ThreadSanitizer has to be told about. */
const char *__tsan_default_options(void);
__attribute__((visibility("default"))) const char *__tsan_default_options(void)
{
	return "die_after_fork=0";
}

static bool folder_make(struct world *w)
{
	const char *tmp = getenv("TMPDIR");
	snprintf(w->folder, sizeof w->folder, "/dev/shm/baton-contest-XXXXXX");
	if (mkdtemp(w->folder) != NULL)
		return true;
	snprintf(w->folder, sizeof w->folder, "%.40s/baton-XXXXXX", tmp != NULL ? tmp : "/tmp");
	return mkdtemp(w->folder) != NULL;
}

int world_setup_empty(void **state)
{
	struct world *w = calloc(1, sizeof *w);
	if (w == NULL || !folder_make(w))
		return -1;
	snprintf(w->path, sizeof w->path, "%s/fleet", w->folder);
	snprintf(w->mark, sizeof w->mark, "%s.mark", w->path);
	w->options = (struct baton_fleet_options){
		.path = w->path,
		.owner = BATON_STR("ada"),
		.limits = {.members = WORLD_MEMBERS,
	                   .subjects = WORLD_SUBJECTS,
	                   .waiters = WORLD_WAITERS,
	                   .events = WORLD_EVENTS,
	                   .wakeups = WORLD_WAKEUPS},
	};
	*state = w;
	return 0;
}

static int setup_joined(void **state, bool plain)
{
	if (world_setup_empty(state) != 0)
		return -1;
	struct world *w = *state;
	w->options.plain_futex = plain;
	w->ada = world_join(w, "ada");
	w->ben = world_join(w, "ben");
	return 0;
}

int world_setup(void **state)
{
	return setup_joined(state, false);
}

int world_setup_plain(void **state)
{
	return setup_joined(state, true);
}

int world_setup_twin(void **state)
{
	if (world_setup_empty(state) != 0)
		return -1;
	struct world *w = *state;
	assert_int_equal(baton_fleet_twin(&w->options, &w->ada), BATON_OK);
	assert_int_equal(baton_fleet_twin_join(w->ada, BATON_STR("ben"), &w->ben), BATON_OK);
	return 0;
}

int world_teardown(void **state)
{
	struct world *w = *state;
	baton_fleet_leave(w->ada);
	baton_fleet_leave(w->ben);
	unlink(w->path);
	unlink(w->mark);
	int left = rmdir(w->folder);
	free(w);
	return left;
}

enum baton_err world_join_error(struct world *w, const char *owner, struct baton_fleet **ret)
{
	struct baton_fleet_options options = w->options;
	options.owner = baton_str_z(owner);
	return baton_fleet_join(&options, ret);
}

struct baton_fleet *world_join(struct world *w, const char *owner)
{
	struct baton_fleet *f = NULL;
	if (world_join_error(w, owner, &f) != BATON_OK)
		fail_msg("%s cannot join: %s", owner, baton_err_detail());
	return f;
}

struct baton_mono now(void)
{
	const struct baton_clock *clock = baton_clock_boot();
	return clock->now(clock);
}

struct baton_mono in_ms(int64_t ms)
{
	return baton_mono_add(now(), baton_duration_ms(ms));
}

struct baton_mono some_day(void)
{
	return in_ms(A_MINUTE_MS);
}

struct baton_subject subject_of(const char *label)
{
	return (struct baton_subject){BATON_STR("test"), baton_str_z(label), {0, 0}};
}

enum baton_err try_for(struct baton_fleet *f, const char *label, int64_t ttl_ms,
                       struct baton_claim *claim, struct baton_claim_holder *holder)
{
	struct baton_subject subject = subject_of(label);
	struct baton_claim unused;
	struct baton_claim_ask ask = {.subject = &subject, .ttl = baton_duration_ms(ttl_ms)};
	return baton_claim_try(f, &ask, claim != NULL ? claim : &unused, holder);
}

enum baton_err try_label(struct baton_fleet *f, const char *label, struct baton_claim *claim)
{
	return try_for(f, label, 0, claim, NULL);
}

struct baton_claim hold_for(struct baton_fleet *f, const char *label, int64_t ttl_ms)
{
	struct baton_claim claim = {.fleet = NULL};
	enum baton_err e = try_for(f, label, ttl_ms, &claim, NULL);
	if (e != BATON_OK)
		fail_msg("'%s' cannot be held: %s", label, baton_err_name(e));
	return claim;
}

struct baton_claim hold(struct baton_fleet *f, const char *label)
{
	return hold_for(f, label, 0);
}

struct baton_claim_holder holder_of(struct baton_fleet *f, const char *label)
{
	struct baton_subject subject = subject_of(label);
	struct baton_claim_holder holder = {.pid = 0};
	enum baton_err e = baton_claim_holder(f, &subject, now(), &holder);
	assert_true(e == BATON_OK || e == BATON_NOT_HELD);
	return holder;
}

struct baton_fleet_usage usage_of(struct baton_fleet *f)
{
	struct baton_watch *watch;
	struct baton_fleet_usage usage;
	assert_int_equal(baton_watch_fleet(f, &watch), BATON_OK);
	baton_watch_usage(watch, now(), &usage);
	baton_watch_close(watch);
	return usage;
}

/* Those that the lines lead to: a waiter knows its line a moment before it is in it. */
static uint32_t in_line(const struct view *v)
{
	uint32_t count = 0, max = v->params[PARAM_WAITERS];
	for (uint32_t i = 0; i < v->params[PARAM_SUBJECTS]; i++) {
		uint32_t at = atomic_load(&v->slots[i].line);
		for (; at != 0 && count < max; count++)
			at = atomic_load(&v->waiters[at - 1].next);
	}
	return count;
}

void await_in_line(struct baton_fleet *f, uint32_t count)
{
	struct baton_mono late = some_day();
	while (in_line(f->view) != count) {
		if (!baton_mono_live(late, now()))
			fail_msg("%u stand in line instead of %u", in_line(f->view), count);
		sched_yield();
	}
}

void await_waiting(struct baton_fleet *f, uint32_t count)
{
	struct baton_mono late = some_day();
	while (usage_of(f).waiters != count) {
		if (!baton_mono_live(late, now()))
			fail_msg("%u wait instead of %u", usage_of(f).waiters, count);
		sched_yield();
	}
}

static void *queued_run(void *arg)
{
	struct queued *q = arg;
	struct baton_subject subject = subject_of(q->label);
	struct baton_claim_ask ask = {.subject = &subject,
	                              .ttl = q->ttl,
	                              .until = q->until,
	                              .cancel = &q->cancel};
	q->answer = baton_claim_wait(q->fleet, &ask, &q->claim, &q->holder);
	return NULL;
}

void queued_start_for(struct queued *q, struct baton_fleet *f, const char *label,
                      struct baton_mono until, struct baton_duration ttl)
{
	*q = (struct queued){.fleet = f, .until = until, .ttl = ttl};
	snprintf(q->label, sizeof q->label, "%s", label);
	assert_int_equal(pthread_create(&q->thread, NULL, queued_run, q), 0);
}

void queued_start(struct queued *q, struct baton_fleet *f, const char *label,
                  struct baton_mono until)
{
	queued_start_for(q, f, label, until, (struct baton_duration){0});
}

enum baton_err queued_end(struct queued *q)
{
	pthread_join(q->thread, NULL);
	return q->answer;
}

/* What a kid has. */
struct puppet {
	struct baton_fleet *fleet;
	struct baton_claim claim;
	struct lock *locked;
	int channel;
};

static void puppet_say(struct puppet *p, enum baton_err e)
{
	char said[128];
	snprintf(said, sizeof said, "%s %llu", baton_err_name(e),
	         e == BATON_OK ? (unsigned long long)p->claim.fence.v : 0);
	channel_send(p->channel, said);
}

static enum baton_err puppet_wait(struct puppet *p, const char *label, int64_t ms)
{
	struct baton_subject subject = subject_of(label);
	struct baton_claim_ask ask = {.subject = &subject, .until = in_ms(ms)};
	return baton_claim_wait(p->fleet, &ask, &p->claim, NULL);
}

static enum baton_err puppet_lock(struct puppet *p, const char *which)
{
	const struct view *v = p->fleet->view;
	bool orphaned;
	p->locked = strcmp(which, "roster") == 0 ? &v->control->roster : &v->shards[0].lock;
	return lock_take(v, p->locked, &orphaned);
}

/* As somebody does who dies between two stores. */
static enum baton_err puppet_tear(struct puppet *p)
{
	const struct view *v = p->fleet->view;
	enum baton_err e = puppet_lock(p, "shard");
	atomic_fetch_or(&v->shards[0].version, 1);
	for (uint32_t i = 0; i < v->shard_places; i++)
		atomic_store(&v->index[i], 0);
	return e;
}

static void *puppet_claim(void *arg)
{
	struct queued *q = arg;
	q->answer = try_label(q->fleet, q->label, &q->claim);
	return NULL;
}

static enum baton_err puppet_thread(struct puppet *p, const char *label)
{
	struct queued q = {.fleet = p->fleet};
	snprintf(q.label, sizeof q.label, "%s", label);
	if (pthread_create(&q.thread, NULL, puppet_claim, &q) != 0)
		return BATON_SYSTEM;
	pthread_join(q.thread, NULL);
	p->claim = q.claim;
	return q.answer;
}

/* The child lives until the test hangs up. */
static enum baton_err puppet_fork(const struct puppet *p)
{
	pid_t pid = fork();
	if (pid != 0)
		return pid > 0 ? BATON_OK : BATON_SYSTEM;
	prctl(PR_SET_PDEATHSIG, 0);
	/* Not by looking at messages, which would take the wake-up from the one they are for. */
	struct pollfd end = {.fd = p->channel, .events = POLLRDHUP};
	poll(&end, 1, -1);
	_exit(0);
}

static enum baton_err puppet_do(struct puppet *p, const char *verb, const char *word, int64_t ms)
{
	if (strcmp(verb, "try") == 0)
		return try_for(p->fleet, word, ms, &p->claim, NULL);
	if (strcmp(verb, "wait") == 0)
		return puppet_wait(p, word, ms);
	if (strcmp(verb, "release") == 0)
		return baton_claim_release(&p->claim);
	if (strcmp(verb, "renew") == 0)
		return baton_claim_renew(&p->claim, baton_duration_ms(strtoll(word, NULL, 10)));
	if (strcmp(verb, "check") == 0)
		return baton_claim_check(&p->claim, NULL);
	if (strcmp(verb, "lock") == 0)
		return puppet_lock(p, word);
	if (strcmp(verb, "tear") == 0)
		return puppet_tear(p);
	if (strcmp(verb, "thread") == 0)
		return puppet_thread(p, word);
	if (strcmp(verb, "fork") == 0)
		return puppet_fork(p);
	if (strcmp(verb, "unlock") == 0) {
		lock_give(p->locked);
		return BATON_OK;
	}
	return BATON_INVALID;
}

static int puppet_run(int channel, void *arg)
{
	struct world *w = arg;
	struct puppet p = {.channel = channel};
	char command[128];
	struct baton_fleet_options options = w->options;
	options.owner = BATON_STR("kid");
	enum baton_err e = baton_fleet_join(&options, &p.fleet);
	puppet_say(&p, e);
	while (e == BATON_OK && channel_receive(channel, command, sizeof command)) {
		char verb[16] = "", word[64] = "";
		long long ms = 0;
		sscanf(command, "%15s %63s %lld", verb, word, &ms);
		if (strcmp(verb, "exit") == 0)
			return 0;
		if (strcmp(verb, "exec") == 0)
			execl("/bin/sleep", "sleep", "600", (char *)NULL);
		if (strcmp(verb, "leave") == 0) {
			baton_fleet_leave(p.fleet);
			return 0;
		}
		puppet_say(&p, puppet_do(&p, verb, word, ms));
	}
	return 1;
}

void kid_start(struct kid *k, struct world *w)
{
	child_start(&k->child, puppet_run, w);
	assert_string_equal(kid_hear(k), "BATON_OK 0");
}

void kid_tell(struct kid *k, const char *command)
{
	channel_send(k->child.channel, command);
}

const char *kid_hear(struct kid *k)
{
	channel_receive(k->child.channel, k->said, sizeof k->said);
	return k->said;
}

const char *kid_ask(struct kid *k, const char *command)
{
	kid_tell(k, command);
	return kid_hear(k);
}

uint64_t kid_fence(const struct kid *k)
{
	unsigned long long fence = 0;
	if (sscanf(k->said, "BATON_OK %llu", &fence) != 1)
		fail_msg("it said '%s'", k->said);
	return fence;
}

void kid_stop(struct kid *k)
{
	int status;
	assert_int_equal(kill(k->child.pid, SIGSTOP), 0);
	assert_int_equal(waitpid(k->child.pid, &status, WUNTRACED), k->child.pid);
	assert_true(WIFSTOPPED(status));
}

void kid_continue(struct kid *k)
{
	assert_int_equal(kill(k->child.pid, SIGCONT), 0);
}

void kid_kill(struct kid *k)
{
	assert_int_equal(kill(k->child.pid, SIGKILL), 0);
	assert_int_equal(child_reap(&k->child), 128 + SIGKILL);
}

void kid_end(struct kid *k)
{
	kid_tell(k, "leave");
	assert_int_equal(child_reap(&k->child), 0);
}
