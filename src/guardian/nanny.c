/* The process between a guardian and one command. */
#include "guardian/nanny.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <baton/clock.h>

#include "base/cleanup.h"
#include "guardian/brood.h"
#include "guardian/env.h"
#include "guardian/wards.h"

/* How often it kills what has been forked since: nobody tells. */
#define RETRY_MS 20

/* How long somebody can stop this process. */
#define STOPPED_MAX_S 1

#define NS_PER_S INT64_C(1000000000)

enum stage {
	STAGE_RUNNING = 1,
	STAGE_STOPPING, /* it was asked to end */
	STAGE_KILLING   /* all that lives is being killed */
};

struct nanny {
	const struct nanny_birth *birth;
	struct brood brood;
	enum stage stage;
	struct baton_mono until; /* the stage lasts at most */
	bool begun;              /* the command was executed, or will never be */
	bool timed_out;
};

static struct baton_mono now_awake(void)
{
	const struct baton_clock *clock = baton_clock_awake();
	return clock->now(clock);
}

static struct errand_report report_of(const struct nanny *n, enum report_kind kind)
{
	return (struct errand_report){
		.magic = ERRAND_MAGIC,
		.kind = kind,
		.serial = n->birth->order->serial,
		.timed_out = n->timed_out,
	};
}

static void tell_begun(const struct nanny *n)
{
	struct errand_report report = report_of(n, ERRAND_BEGUN);
	report.pid = n->brood.command;
	/* A runner that does not listen learns it from the end. */
	(void)report_pass(n->birth->socket, &report, true);
}

static void tell_unstarted(const struct nanny *n, int errnum)
{
	struct errand_report report = report_of(n, ERRAND_ENDED);
	report.how = WARD_UNSTARTED;
	report.code = errnum;
	(void)report_pass(n->birth->socket, &report, false);
}

static void tell_ended(const struct nanny *n)
{
	struct errand_report report = report_of(n, ERRAND_ENDED);
	int status = n->brood.status;
	if (n->brood.errnum != 0) {
		tell_unstarted(n, n->brood.errnum);
		return;
	}
	report.how = WIFSIGNALED(status) ? WARD_SIGNALED : WARD_EXITED;
	report.code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
	(void)report_pass(n->birth->socket, &report, false);
}

/* Begins to: the loop goes on with it. */
static void kill_all(struct nanny *n)
{
	if (n->stage == STAGE_KILLING)
		return;
	n->stage = STAGE_KILLING;
	brood_signal_group(&n->brood, SIGKILL);
}

static void stop(struct nanny *n, struct baton_mono now)
{
	struct baton_duration grace = {n->birth->order->grace_ns};
	if (n->stage != STAGE_RUNNING)
		return;
	if (grace.ns <= 0) {
		kill_all(n);
		return;
	}
	n->stage = STAGE_STOPPING;
	n->until = baton_mono_add(now, grace);
	brood_signal_group(&n->brood, SIGTERM);
	brood_signal_group(&n->brood, SIGCONT);
}

static void hear_signals(struct nanny *n, struct baton_mono now)
{
	struct signalfd_siginfo info;
	while (read(n->birth->signals, &info, sizeof info) == (ssize_t)sizeof info) {
		if (info.ssi_signo == NANNY_STOP)
			stop(n, now);
		else if (info.ssi_signo == NANNY_KILL)
			kill_all(n);
	}
}

static void mind_the_time(struct nanny *n, struct baton_mono now)
{
	if (baton_mono_live(n->until, now))
		return;
	if (n->stage == STAGE_STOPPING) {
		kill_all(n);
	} else if (n->stage == STAGE_RUNNING) {
		n->timed_out = true;
		stop(n, now);
	}
}

static bool is_alone(const struct nanny *n)
{
	return getppid() != n->birth->guardian;
}

/* Returns whether all has to die: the runner has gone, or is past its deadline. The guardian kills
 * at the same moments; but somebody may keep it from doing so. */
static bool wait_for_something(struct nanny *n)
{
	bool killing = n->stage == STAGE_KILLING;
	struct pollfd fds[4] = {
		{.fd = n->birth->signals, .events = POLLIN},
		{.fd = killing ? -1 : n->birth->socket, .events = POLLRDHUP},
		{.fd = n->begun ? -1 : n->brood.socket, .events = POLLIN},
		{.fd = killing ? -1 : n->birth->timer, .events = POLLIN},
	};
	struct baton_duration left = baton_duration_ms(RETRY_MS);
	if (!killing)
		left = baton_mono_sub(n->until, now_awake());
	if (left.ns < 0)
		left.ns = 0;
	struct timespec timeout = {.tv_sec = left.ns / NS_PER_S, .tv_nsec = left.ns % NS_PER_S};
	bool never = !killing && n->until.ns == INT64_MAX;
	(void)ppoll(fds, 4, never ? NULL : &timeout, NULL);
	if (fds[2].revents) {
		n->begun = true;
		if (brood_executed(&n->brood))
			tell_begun(n);
	}
	return fds[1].revents != 0 || fds[3].revents != 0;
}

/* Until nothing lives that descends from this process. */
static void watch_over(struct nanny *n)
{
	for (;;) {
		if (n->stage == STAGE_KILLING)
			brood_signal_all(&n->brood, SIGKILL);
		bool over = wait_for_something(n);
		struct baton_mono now = now_awake();
		hear_signals(n, now);
		struct brood_news news = brood_reap(&n->brood);
		if (news.empty)
			return;
		mind_the_time(n, now);
		if (news.ended || over || is_alone(n))
			kill_all(n);
	}
}

/* Forks the command. Returns 0, or why there is none: an errno. */
static int begin(struct nanny *n)
{
	const struct nanny_birth *birth = n->birth;
	const int places[] = {birth->fds[ORDER_IN], birth->fds[ORDER_OUT], birth->fds[ORDER_ERR],
	                      birth->fds[ORDER_CHANNEL]};
	AUTO(errand_args_done) struct args args = {.alloc = baton_alloc_libc()};
	AUTO(env_done) struct env env = {.all = NULL};
	sigset_t none;
	sigemptyset(&none);
	enum baton_err e = args_read(&args, birth->fds[ORDER_ARGS]);
	if (e == BATON_OK)
		e = env_make(baton_alloc_libc(), environ, args.env, &env);
	if (e != BATON_OK)
		return e == BATON_NO_MEMORY ? ENOMEM : EBADMSG;
	struct brood_spec spec = {
		.argv = args.argv,
		.envp = env.all,
		.mask = &none,
		.places = places,
		.places_count = sizeof places / sizeof *places,
		.keep = birth->keep,
		.keep_count = birth->keep_count,
		.leads = true,
		.at_once = true,
	};
	if (brood_prepare() != BATON_OK || brood_fork(&n->brood, &spec) != BATON_OK)
		return errno != 0 ? errno : EAGAIN;
	order_close(birth->fds);
	return 0;
}

/* Whoever stops this process when its guardian has just died, and the runner too, has left nobody
 * to wake it: so the kernel does, again and again. The next one is sent only when this one has been
 * read, so who is not stopped wakes for it, too. Without a timer, of which there may be too many,
 * all else is as it was. */
static void set_alarm(void)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGCONT};
	const struct itimerspec always = {.it_value.tv_sec = STOPPED_MAX_S,
	                                  .it_interval.tv_sec = STOPPED_MAX_S};
	timer_t timer;
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) == 0)
		(void)timer_settime(timer, 0, &always, NULL);
}

void nanny_live(const struct nanny_birth *birth)
{
	struct nanny n = {
		.birth = birth,
		.brood = BROOD_NONE,
		.stage = STAGE_RUNNING,
		.until = BATON_MONO_NEVER,
	};
	/* Whoever was killed before that line has left us to somebody else. */
	if (prctl(PR_SET_PDEATHSIG, NANNY_ALONE, 0, 0, 0) != 0 || is_alone(&n))
		_exit(1);
	prctl(PR_SET_NAME, "baton-nanny", 0, 0, 0);
	set_alarm();
	if (birth->order->timeout_ns > 0)
		n.until = baton_mono_add(now_awake(),
		                         (struct baton_duration){birth->order->timeout_ns});
	int errnum = begin(&n);
	if (errnum != 0) {
		tell_unstarted(&n, errnum);
		_exit(0);
	}
	watch_over(&n);
	tell_ended(&n);
	_exit(0);
}
