/* The process that holds a subject and parents the command that runs meanwhile.
 *
 * One loop, in one thread, that never waits for a store: it waits for the patron, for its children
 * and for the time, turns what it finds into events, and does what entering the next phase asks
 * for. */
#include "guardian/guardian.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <baton/clock.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "base/fail.h"
#include "guardian/brood.h"
#include "guardian/env.h"
#include "guardian/hold.h"
#include "guardian/inherited.h"
#include "guardian/latch.h"
#include "guardian/phase.h"
#include "guardian/post.h"

/* How often it tries the latch again, and kills what has been forked since: nobody tells. */
#define RETRY_MS 20

/* How often it looks, while it waits for the end, at a clock that goes on while the host sleeps. */
#define SLICE_MS 100

/* How long the subject is kept for a patron that does not say that the command may begin, because
 * it is stopped: others want it meanwhile. */
#define OFFER_MS 1000

/* "space/label", and the name of its variable. */
#define SUBJECT_TEXT (BATON_SPACE_MAX + 1 + BATON_LABEL_MAX + 1)

struct guardian {
	const struct guardian_birth *birth;
	enum phase phase;
	struct baton_mono deadline; /* of the phase */
	struct baton_mono until;    /* how long the patron wants to wait for the subject */
	struct hold hold;
	struct latch latch;
	struct brood brood;
	int signals;        /* where SIGCHLD and SIGTERM arrive */
	bool alone;         /* the patron has died, or knows all that it waited for */
	bool begun;         /* the command was started */
	bool ended;         /* and has ended */
	bool lost;          /* the subject is, or is about to be */
	bool stopped;       /* somebody asked for the end */
	bool told;          /* the patron was told how it ended */
	bool too_late;      /* the patron did not want to wait any longer */
	enum baton_err err; /* why nothing could be run */
	int errnum;         /* with it */
	char why[256];      /* the subject was lost, if there is more to say */

	struct baton_claim_holder holder; /* after BATON_YIELD and BATON_TIMEOUT */
};

static struct baton_mono now_boot(void)
{
	const struct baton_clock *clock = baton_clock_boot();
	return clock->now(clock);
}

static void say(struct guardian *g, struct post *post)
{
	if (!g->alone)
		post_send(g->birth->socket, post);
	g->told = post->kind == POST_END || post->kind == POST_REFUSED;
}

/* Says that nothing was run, and why. */
static void say_refused(struct guardian *g, enum baton_err e)
{
	struct post post = {.kind = POST_REFUSED, .last = true, .err = e, .errnum = g->errnum};
	if (!g->too_late)
		post.end.holder = g->holder;
	else
		post.end.leftovers_count =
			latch_keepers(&g->latch, post.end.leftovers, BATON_GUARDIAN_LEFTOVERS);
	snprintf(post.detail, sizeof post.detail, "%s", baton_err_detail());
	say(g, &post);
}

static void say_end(struct guardian *g, bool last)
{
	struct post post = {.kind = POST_END, .last = last};
	int status = g->brood.status;
	if (g->lost) {
		post.end.how = BATON_GUARDIAN_LOST;
		snprintf(post.detail, sizeof post.detail, "%s", g->why);
	} else if (g->brood.errnum != 0)
		post.end = (struct baton_guardian_end){.how = BATON_GUARDIAN_UNSTARTED,
		                                       .code = g->brood.errnum};
	else if (WIFSIGNALED(status))
		post.end = (struct baton_guardian_end){.how = BATON_GUARDIAN_SIGNALED,
		                                       .code = WTERMSIG(status)};
	else
		post.end = (struct baton_guardian_end){.how = BATON_GUARDIAN_EXITED,
		                                       .code = WEXITSTATUS(status)};
	say(g, &post);
}

/* Ends for the reason that `e` says, without having run anything. */
static void give_up(struct guardian *g, enum baton_err e)
{
	g->err = e;
	g->errnum = errno;
	g->phase = PHASE_DONE;
}

/* Forks the process that is to be the command. It has the patron's group, which has no number here
 * if it is of another pid namespace, from a guardian that is still in it: so whatever the terminal
 * sends to that group from the first offer on reaches the command. */
static enum baton_err fork_command(struct guardian *g)
{
	const struct guardian_birth *birth = g->birth;
	const struct baton_subject *subject = birth->ask->subject;
	char fence[BROOD_LATE] = "BATON_FENCE=", name[sizeof "BATON_SUBJECT=" + SUBJECT_TEXT];
	snprintf(name, sizeof name, "BATON_SUBJECT=%.*s/%.*s", (int)subject->space.len,
	         subject->space.ptr, (int)subject->label.len, subject->label.ptr);
	char *extra[] = {fence, name, NULL};
	AUTO(env_done) struct env env = {.all = NULL};
	enum baton_err e = env_make(baton_alloc_libc(), environ, extra, &env);
	if (e != BATON_OK)
		return e;
	struct brood_spec spec = {
		.argv = birth->ask->argv,
		.envp = env.all,
		.late = fence,
		.mask = birth->mask,
		.chld_ignored = birth->chld_ignored,
	};
	return brood_fork(&g->brood, &spec);
}

/* Becomes what a guardian is. */
static enum baton_err settle(struct guardian *g)
{
	sigset_t all, heard;
	struct inherited inherited = {.alloc = baton_alloc_libc()};
	sigfillset(&all);
	sigemptyset(&heard);
	sigaddset(&heard, SIGCHLD);
	sigaddset(&heard, SIGTERM);
	if (sigprocmask(SIG_SETMASK, &all, NULL) != 0)
		return fail_errno(errno, "the guardian cannot block signals");
	enum baton_err e = inherited_list(&inherited, g->birth->socket);
	if (e == BATON_OK)
		e = brood_prepare();
	if (e == BATON_OK)
		e = fork_command(g);
	if (e != BATON_OK)
		return e;
	/* Before anything is opened: whoever closes a file that a source has opened anew takes its
	 * locks of fcntl(2) away. */
	inherited_close(&inherited);
	prctl(PR_SET_NAME, "baton-guardian", 0, 0, 0);
	/* A group of its own: what the terminal or a shell does to the patron's group is for the
	 * command, and must not end the one who has to clean up after it. */
	if (setpgid(0, 0) != 0)
		return fail_errno(errno, "no process group for the guardian");
	g->signals = signalfd(-1, &heard, SFD_CLOEXEC | SFD_NONBLOCK);
	if (g->signals < 0)
		return fail_errno(errno, "no descriptor for the guardian's signals");
	return BATON_OK;
}

static struct baton_duration grace_of(const struct guardian *g)
{
	struct baton_duration grace = g->birth->ask->grace;
	return grace.ns > 0 ? grace : baton_duration_ms(BATON_GUARDIAN_GRACE_MS);
}

static enum baton_err claim(struct guardian *g)
{
	const struct baton_guardian_ask *ask = g->birth->ask;
	char fleet[BATON_FLEET_PATH_MAX + 1];
	struct hold_ask want = {
		.source = ask->source,
		.fleet = ask->fleet,
		.owner = ask->owner,
		.subject = ask->subject,
		.ttl = ask->ttl,
		.grace = grace_of(g),
		.until = g->until,
		.wait = ask->wait.ns > 0,
	};
	enum baton_err e = BATON_OK;
	if (!want.fleet && !want.source) {
		e = baton_fleet_default(fleet);
		want.fleet = fleet;
	}
	if (e == BATON_OK)
		e = hold_take(&g->hold, &want, &g->holder);
	if (e == BATON_OK)
		e = latch_name(&g->latch, g->hold.beside, ask->subject);
	return e;
}

/* Until when the subject is kept when nothing runs any more. Who was asked to end, or had nothing
 * to run, keeps nothing. */
static struct baton_mono kept_until(const struct guardian *g, struct baton_mono now)
{
	if (g->lost || g->stopped || g->brood.errnum != 0 || g->birth->ask->at_least.ns <= 0)
		return now;
	return baton_mono_add(g->hold.since, g->birth->ask->at_least);
}

static void enter_running(struct guardian *g)
{
	char fence[BROOD_LATE];
	snprintf(fence, sizeof fence, "BATON_FENCE=%" PRIu64, g->hold.fence.v);
	brood_start(&g->brood, g->latch.fd, fence);
	g->begun = true;
	say(g, &(struct post){.kind = POST_BEGUN});
}

static void enter_withdrawn(struct guardian *g)
{
	latch_drop(&g->latch);
	hold_release(&g->hold);
	say(g, &(struct post){.kind = POST_WITHDRAWN});
}

/* Does what the phase begins with, and says when it is over by itself. */
static void enter(struct guardian *g, struct baton_mono now)
{
	g->deadline = BATON_MONO_NEVER;
	switch (g->phase) {
	case PHASE_LATCHING:
		g->deadline = g->until;
		break;
	case PHASE_OFFERED:
		g->deadline = baton_mono_add(now, baton_duration_ms(OFFER_MS));
		say(g, &(struct post){.kind = POST_OFFER, .fence = g->hold.fence});
		break;
	case PHASE_WITHDRAWN:
		enter_withdrawn(g);
		break;
	case PHASE_RUNNING:
		enter_running(g);
		break;
	case PHASE_ENDING:
		g->deadline = baton_mono_add(now, grace_of(g));
		brood_signal_all(&g->brood, SIGTERM);
		brood_signal_all(&g->brood, SIGCONT);
		break;
	case PHASE_KILLING:
		brood_signal_all(&g->brood, SIGKILL);
		break;
	case PHASE_KEEPING:
		g->deadline = kept_until(g, now);
		break;
	case PHASE_TAKING:
	case PHASE_LEFT:
	case PHASE_DONE:
	case PHASES:
		break;
	}
}

static void happen(struct guardian *g, enum phase_event event, struct baton_mono now)
{
	if (g->phase == PHASE_DONE)
		return;
	enum phase next = phase_next(g->phase, event);
	CHECK(next != 0);
	if (next == g->phase)
		return;
	g->phase = next;
	enter(g, now);
}

/* Waits for the subject. Until it holds that, a guardian has nothing to look after, and simply dies
 * with its patron; afterwards the patron's end of the socket says so. */
static void take(struct guardian *g)
{
	enum baton_err e = BATON_OK;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0)
		e = fail_errno(errno, "the guardian cannot be tied to the life of its patron");
	if (getppid() != g->birth->patron)
		_exit(0);
	if (e == BATON_OK)
		e = claim(g);
	if (e == BATON_OK && prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0) != 0)
		e = fail_errno(errno, "the guardian cannot outlive its patron");
	if (e == BATON_OK)
		happen(g, EVENT_TAKEN, now_boot());
	else
		give_up(g, e);
}

static void obey(struct guardian *g, int32_t order, struct baton_mono now)
{
	switch (order) {
	case ORDER_GO:
		happen(g, EVENT_GO, now);
		break;
	case ORDER_BACK:
		happen(g, EVENT_BACK, now);
		break;
	case ORDER_HEARD:
		g->alone = true;
		break;
	default:
		brood_signal(&g->brood, order);
	}
}

static void hear_patron(struct guardian *g, struct baton_mono now)
{
	struct order order;
	while (!g->alone) {
		switch (order_receive(g->birth->socket, &order)) {
		case POST_GOT:
			obey(g, order.what, now);
			break;
		case POST_NOTHING:
			return;
		case POST_HUNG_UP:
			g->alone = true;
			happen(g, EVENT_PATRON_GONE, now);
			break;
		}
	}
}

static void hear_signals(struct guardian *g, struct baton_mono now)
{
	struct signalfd_siginfo info;
	while (read(g->signals, &info, sizeof info) == (ssize_t)sizeof info) {
		if (info.ssi_signo == SIGTERM) {
			g->stopped = true;
			happen(g, EVENT_STOP, now);
		}
	}
}

/* Looks after the children whenever something happens: a signal of theirs only wakes. */
static void reap(struct guardian *g, struct baton_mono now)
{
	if (!g->begun)
		return;
	struct brood_news news = brood_reap(&g->brood);
	if (news.ended) {
		g->ended = true;
		happen(g, EVENT_COMMAND_ENDED, now);
	}
	if (news.empty)
		happen(g, EVENT_EMPTY, now);
}

static void try_latch(struct guardian *g, struct baton_mono now)
{
	enum baton_err e = latch_take(&g->latch);
	if (e == BATON_OK) {
		happen(g, EVENT_LATCHED, now);
	} else if (e != BATON_YIELD) {
		give_up(g, e);
	}
}

/* When the phase is over by itself. Whoever was asked to end is killed sooner if the subject would
 * not last for that long; each renewal puts that off. */
static struct baton_mono deadline_of(const struct guardian *g)
{
	bool sooner = g->phase == PHASE_ENDING && g->hold.limit.ns < g->deadline.ns;
	return sooner ? g->hold.limit : g->deadline;
}

static void mind_the_time(struct guardian *g, struct baton_mono now)
{
	if (!g->lost && g->phase != PHASE_DONE && !baton_mono_live(g->hold.next, now) &&
	    hold_keep(&g->hold, now) != BATON_OK) {
		g->lost = true;
		snprintf(g->why, sizeof g->why, "%s", baton_err_detail());
		happen(g, EVENT_LOST, now);
	}
	if (g->phase == PHASE_LATCHING)
		try_latch(g, now);
	if (g->phase == PHASE_KILLING)
		brood_signal_all(&g->brood, SIGKILL);
	if (!baton_mono_live(deadline_of(g), now)) {
		g->too_late = g->phase == PHASE_LATCHING;
		happen(g, EVENT_TIME_UP, now);
	}
}

static void wait_for_something(const struct guardian *g)
{
	struct pollfd fds[2] = {
		{.fd = g->alone ? -1 : g->birth->socket, .events = POLLIN},
		{.fd = g->signals, .events = POLLIN},
	};
	struct baton_mono now = now_boot();
	struct baton_duration left = baton_mono_sub(deadline_of(g), now);
	if (!g->lost && baton_mono_sub(g->hold.next, now).ns < left.ns)
		left = baton_mono_sub(g->hold.next, now);
	bool retries = g->phase == PHASE_LATCHING || g->phase == PHASE_KILLING;
	if (retries && baton_duration_ms(RETRY_MS).ns < left.ns)
		left = baton_duration_ms(RETRY_MS);
	/* ppoll() does not count the time for which the host sleeps, but it is of the grace. */
	if (g->phase == PHASE_ENDING && baton_duration_ms(SLICE_MS).ns < left.ns)
		left = baton_duration_ms(SLICE_MS);
	if (left.ns < 0)
		left.ns = 0;
	struct timespec timeout = {.tv_sec = left.ns / 1000000000, .tv_nsec = left.ns % 1000000000};
	(void)ppoll(fds, 2, &timeout, NULL);
}

/* From the first moment to the one at which nothing runs any more. */
static void watch_over(struct guardian *g)
{
	g->phase = PHASE_TAKING;
	for (;;) {
		if (g->phase == PHASE_TAKING)
			take(g);
		else
			wait_for_something(g);
		struct baton_mono now = now_boot();
		hear_patron(g, now);
		hear_signals(g, now);
		reap(g, now);
		mind_the_time(g, now);
		if (g->phase == PHASE_DONE)
			return;
		if (g->ended && !g->told && !g->lost && g->phase != PHASE_KEEPING)
			say_end(g, false);
		if (g->phase == PHASE_KEEPING && baton_mono_live(g->deadline, now) && !g->told)
			say_end(g, false);
	}
}

/* Tells the patron last, so that the subject is free when it hears that all is over; unless a
 * source does not answer: then the subject is free when this process is gone, which such a source
 * may delay, or when its time is over, and the patron does not wait for that. */
static void take_leave(struct guardian *g)
{
	brood_done(&g->brood);
	latch_drop(&g->latch);
	bool free_again = hold_release(&g->hold);
	if (g->told)
		return;
	if (g->err != BATON_OK)
		say_refused(g, g->err);
	else if (g->too_late)
		say_refused(g, g->birth->ask->wait.ns > 0 ? BATON_TIMEOUT : BATON_YIELD);
	else if (!g->begun && !g->lost)
		say_refused(g, BATON_CANCELLED);
	else
		say_end(g, free_again);
}

void guardian_live(const struct guardian_birth *birth)
{
	struct guardian g = {
		.birth = birth,
		.hold = HOLD_NONE,
		.latch = LATCH_NONE,
		.brood = BROOD_NONE,
		.until = baton_mono_add(now_boot(), birth->ask->wait),
		.signals = -1,
	};
	enum baton_err e = settle(&g);
	if (e == BATON_OK)
		watch_over(&g);
	else
		give_up(&g, e);
	take_leave(&g);
	hold_done(&g.hold);
	_exit(0);
}
