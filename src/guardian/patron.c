/* The caller's side: it starts the guardian, passes signals on, and waits for how it ended. */
#include <baton/guardian.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fail.h"
#include "guardian/guardian.h"
#include "guardian/post.h"

/* What is passed on to the command. */
static const int passed[] = {SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGTERM, SIGCONT};

/* How far it has come with the guardian. */
enum stage {
	STAGE_WAITING = 1, /* the command has not started */
	STAGE_ANSWERED,    /* it may have: the guardian decides between an offer's end and ours */
	STAGE_STARTED
};

struct patron {
	const struct baton_guardian_ask *ask;
	sigset_t mask;         /* as it was before */
	struct sigaction chld; /* as it was before */
	int signals;           /* where those that are passed on arrive */
	int socket;            /* to the guardian */
	pid_t guardian;        /* 0: it has been reaped */
	enum stage stage;
	bool offered; /* the subject, with `fence`, and it has not been answered */
	baton_fence fence;
};

/* Lets the signals arrive at a descriptor, except those that the caller ignores, as under nohup. */
static enum baton_err signals_take(struct patron *p)
{
	sigset_t heard;
	sigemptyset(&heard);
	for (size_t i = 0; i < sizeof passed / sizeof *passed; i++) {
		struct sigaction action;
		if (sigaction(passed[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
			sigaddset(&heard, passed[i]);
	}
	p->signals = signalfd(-1, &heard, SFD_CLOEXEC | SFD_NONBLOCK);
	if (p->signals < 0)
		return fail_errno(errno, "no descriptor for signals");
	/* A child of whoever ignores this one cannot be waited for. */
	struct sigaction chld = {.sa_handler = SIG_DFL};
	sigaction(SIGCHLD, &chld, &p->chld);
	sigprocmask(SIG_BLOCK, &heard, &p->mask);
	return BATON_OK;
}

static void signals_give_back(const struct patron *p)
{
	sigaction(SIGCHLD, &p->chld, NULL);
	sigprocmask(SIG_SETMASK, &p->mask, NULL);
}

/* In the guardian: lets nothing of its own have the number of a standard descriptor that the caller
 * had closed. For the command such a one is closed again. */
static void standard_keep(int *socket)
{
	if (*socket <= STDERR_FILENO) {
		int up = fcntl(*socket, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
		close(*socket);
		*socket = up;
	}
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR | O_CLOEXEC) != fd)
			_exit(1);
	}
}

static enum baton_err guardian_start(struct patron *p)
{
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return fail_errno(errno, "no socket for the guardian");
	struct guardian_birth birth = {
		.ask = p->ask,
		.socket = ends[1],
		.patron = getpid(),
		.mask = &p->mask,
		.chld_ignored = p->chld.sa_handler == SIG_IGN,
	};
	p->guardian = fork();
	if (p->guardian == 0) {
		close(ends[0]);
		close(p->signals);
		standard_keep(&birth.socket);
		guardian_live(&birth);
	}
	int errnum = errno;
	close(ends[1]);
	p->socket = ends[0];
	if (p->guardian < 0) {
		p->guardian = 0;
		errno = errnum;
		return fail_errno(errnum, "no process for the guardian");
	}
	return BATON_OK;
}

/* Waits for the end of the guardian. Returns the signal that ended it, or 0. */
static int guardian_reap(struct patron *p)
{
	int status = 0;
	while (waitpid(p->guardian, &status, 0) < 0 && errno == EINTR)
		;
	p->guardian = 0;
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* Whether the command has the signal already, because the terminal sent it to the whole group. A
 * hang-up reaches the leader of a session alone, and what a timer sends only its process. */
static bool is_everybodys(const struct signalfd_siginfo *info)
{
	if (info->ssi_code != SI_KERNEL)
		return false;
	if (info->ssi_signo == SIGINT || info->ssi_signo == SIGQUIT)
		return true;
	return (info->ssi_signo == SIGHUP || info->ssi_signo == SIGCONT) && getsid(0) != getpid();
}

/* True: it is over, because a signal came before the command could start. */
static bool hear_signals(struct patron *p, struct baton_guardian_end *end)
{
	struct signalfd_siginfo info;
	while (read(p->signals, &info, sizeof info) == (ssize_t)sizeof info) {
		int sig = (int)info.ssi_signo;
		if (p->stage == STAGE_WAITING && sig != SIGCONT) {
			kill(p->guardian, SIGKILL);
			guardian_reap(p);
			*end = (struct baton_guardian_end){.how = BATON_GUARDIAN_INTERRUPTED,
			                                   .code = sig};
			return true;
		}
		if (p->stage == STAGE_STARTED && !is_everybodys(&info))
			order_send(p->socket, sig);
	}
	return false;
}

/* Takes over what the guardian says of a failure. */
static enum baton_err refused(const struct post *post, struct baton_guardian_end *end)
{
	if (post->err == BATON_YIELD || post->err == BATON_TIMEOUT)
		*end = post->end;
	else if (post->err != BATON_CANCELLED)
		fail_detail("%s", post->detail);
	errno = post->errnum;
	return post->err;
}

/* Answers an offer. What comes to us after the last look at the signals, and was sent to the whole
 * group, has come to the process that is to be the command too: it was there before the offer.
 * True: it is over, because a signal came before that look. */
static bool accept_offer(struct patron *p, struct baton_guardian_end *end)
{
	p->offered = false;
	if (p->ask->held)
		p->ask->held(p->fence, p->ask->arg);
	if (hear_signals(p, end))
		return true;
	p->stage = STAGE_ANSWERED;
	order_send(p->socket, ORDER_GO);
	return false;
}

/* Takes over how it ended. */
static void ended(struct patron *p, const struct post *post, struct baton_guardian_end *end)
{
	*end = post->end;
	if (end->how == BATON_GUARDIAN_LOST)
		fail_detail("%s", post->detail);
	if (post->last) {
		guardian_reap(p);
		return;
	}
	end->guardian = p->guardian;
	order_send(p->socket, ORDER_HEARD);
}

/* True: it is over, and *ret_err is the answer. */
static bool hear_post(struct patron *p, const struct post *post, struct baton_guardian_end *end,
                      enum baton_err *ret_err)
{
	switch (post->kind) {
	case POST_OFFER:
		p->offered = true;
		p->fence = post->fence;
		return false;
	case POST_WITHDRAWN:
		p->offered = false;
		p->stage = STAGE_WAITING;
		order_send(p->socket, ORDER_BACK);
		return false;
	case POST_BEGUN:
		p->stage = STAGE_STARTED;
		return false;
	case POST_END:
		ended(p, post, end);
		return true;
	case POST_REFUSED:
		guardian_reap(p);
		*ret_err = refused(post, end);
		return true;
	}
	return false;
}

/* True: it is over, and *ret_err is the answer. */
static bool hear_guardian(struct patron *p, struct baton_guardian_end *end, enum baton_err *ret_err)
{
	struct post post;
	for (;;) {
		switch (post_receive(p->socket, &post)) {
		case POST_NOTHING:
			return p->offered && accept_offer(p, end);
		case POST_HUNG_UP:
			*end = (struct baton_guardian_end){.how = BATON_GUARDIAN_KILLED,
			                                   .code = guardian_reap(p),
			                                   .started = p->stage != STAGE_WAITING};
			return true;
		case POST_GOT:
			if (hear_post(p, &post, end, ret_err))
				return true;
		}
	}
}

static enum baton_err wait_for_end(struct patron *p, struct baton_guardian_end *end)
{
	enum baton_err e = BATON_OK;
	for (;;) {
		/* Whether a signal is for us or for the command shows in the guardian's answer. */
		bool hears = p->stage != STAGE_ANSWERED;
		struct pollfd fds[2] = {
			{.fd = hears ? p->signals : -1, .events = POLLIN},
			{.fd = p->socket, .events = POLLIN},
		};
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return fail_errno(errno, "the guardian cannot be waited for");
		if ((hears && hear_signals(p, end)) || hear_guardian(p, end, &e))
			return e;
	}
}

static enum baton_err ask_check(const struct baton_guardian_ask *ask)
{
	if (!ask->argv || !ask->argv[0])
		return fail(BATON_INVALID, "there is no command to run");
	if (ask->source && ask->ttl.ns <= 0)
		return fail(BATON_INVALID, "what comes from a source has a ttl, and none is given");
	const struct baton_subject *s = ask->subject;
	if (memchr(s->space.ptr ? s->space.ptr : "", '\0', s->space.len) ||
	    memchr(s->label.ptr ? s->label.ptr : "", '\0', s->label.len))
		return fail(BATON_INVALID, "a subject with a NUL byte cannot be told to a command");
	if (s->space.len > BATON_SPACE_MAX || s->label.len > BATON_LABEL_MAX)
		return fail(BATON_INVALID,
		            "a namespace of %zu and a label of %zu bytes; at most %d and %d are "
		            "allowed",
		            s->space.len, s->label.len, BATON_SPACE_MAX, BATON_LABEL_MAX);
	return BATON_OK;
}

enum baton_err baton_guardian_run(const struct baton_guardian_ask *ask,
                                  struct baton_guardian_end *ret_end)
{
	enum baton_err e = ask_check(ask);
	if (e != BATON_OK)
		return e;
	struct patron p = {.ask = ask, .stage = STAGE_WAITING, .signals = -1, .socket = -1};
	struct baton_guardian_end end = {.code = 0};
	e = signals_take(&p);
	if (e != BATON_OK)
		return e;
	e = guardian_start(&p);
	if (e == BATON_OK)
		e = wait_for_end(&p, &end);
	int errnum = errno;
	fd_closep(&p.signals);
	fd_closep(&p.socket);
	signals_give_back(&p);
	if (e == BATON_OK || e == BATON_YIELD || e == BATON_TIMEOUT)
		*ret_end = end;
	errno = errnum;
	return e;
}
