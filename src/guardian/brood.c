/* A command and all the processes that descend from it, as children of this one. */
#include "guardian/brood.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <baton/alloc.h>

#include "base/cleanup.h"
#include "base/fail.h"
#include "guardian/tree.h"

/* What a shell answers for a command that is not there. */
#define STATUS_UNSTARTED 127

enum baton_err brood_prepare(void)
{
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0)
		return fail_errno(errno, "this process cannot inherit orphaned processes");
	return BATON_OK;
}

/* What the command is told when it starts; its descriptor comes with it. */
struct start {
	int inherit; /* the least number that the descriptor may have; -1: there is none */
	char late[BROOD_LATE];
};

/* Room for one descriptor beside a message. */
union control {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(sizeof(int))];
};

/* The descriptor that came with the message; -1: none. */
static int descriptor_of(struct msghdr *message)
{
	int fd = -1;
	struct cmsghdr *header = CMSG_FIRSTHDR(message);
	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(header), sizeof fd);
	return fd;
}

/* Waits for the start. Returns 0, or why there is none: an errno. */
static int await_start(const struct brood_spec *spec, int socket)
{
	struct start start = {.inherit = -1};
	union control control;
	struct iovec bytes = {.iov_base = &start, .iov_len = sizeof start};
	struct msghdr message = {
		.msg_iov = &bytes,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof control,
	};
	ssize_t n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
	if (n != (ssize_t)sizeof start)
		return n < 0 ? errno : ECANCELED;
	if (spec->late)
		memcpy(spec->late, start.late, sizeof start.late);
	if (start.inherit < 0)
		return 0;
	int fd = descriptor_of(&message);
	if (fd < 0)
		return EMFILE;
	return fcntl(fd, F_DUPFD, start.inherit) >= 0 ? 0 : errno;
}

/* Gives the command its group and its descriptors. False: errno says why not. */
static bool arrange(const struct brood_spec *spec)
{
	if (spec->leads && setpgid(0, 0) != 0)
		return false;
	for (size_t i = 0; i < spec->places_count; i++) {
		if (spec->places[i] >= 0 && dup2(spec->places[i], (int)i) < 0)
			return false;
	}
	for (size_t i = 0; i < spec->keep_count; i++) {
		if (fcntl(spec->keep[i], F_SETFD, 0) != 0)
			return false;
	}
	return true;
}

/* Becomes the command. */
_Noreturn static void become(const struct brood_spec *spec, int32_t parent, int socket)
{
	/* Whoever was killed before the first of these lines has left us to somebody else. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 || getppid() != parent)
		_exit(STATUS_UNSTARTED);
	int errnum = spec->at_once ? 0 : await_start(spec, socket);
	if (errnum == 0 && !arrange(spec))
		errnum = errno;
	if (errnum == 0) {
		struct sigaction chld = {.sa_handler = spec->chld_ignored ? SIG_IGN : SIG_DFL};
		if (sigaction(SIGCHLD, &chld, NULL) == 0 &&
		    sigprocmask(SIG_SETMASK, spec->mask, NULL) == 0)
			execvpe(spec->argv[0], spec->argv, spec->envp);
		errnum = errno;
	}
	(void)!send(socket, &errnum, sizeof errnum, MSG_NOSIGNAL);
	_exit(STATUS_UNSTARTED);
}

enum baton_err brood_fork(struct brood *b, const struct brood_spec *spec)
{
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return fail_errno(errno, "no socket for the command");
	int32_t parent = getpid();
	pid_t pid = fork();
	if (pid == 0) {
		close(ends[0]);
		become(spec, parent, ends[1]);
	}
	int errnum = errno;
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		errno = errnum;
		return fail_errno(errnum, "no process for the command");
	}
	/* It does the same: whoever comes second changes nothing. */
	if (spec->leads)
		setpgid(pid, pid);
	*b = (struct brood){.command = pid, .started = spec->at_once, .socket = ends[0]};
	return BATON_OK;
}

bool brood_executed(const struct brood *b)
{
	int errnum;
	return recv(b->socket, &errnum, sizeof errnum, MSG_DONTWAIT | MSG_PEEK) == 0;
}

static void command_ended(struct brood *b, int status)
{
	b->command = 0;
	b->status = status;
	ssize_t n = recv(b->socket, &b->errnum, sizeof b->errnum, MSG_DONTWAIT);
	if (n != (ssize_t)sizeof b->errnum)
		b->errnum = 0;
	fd_closep(&b->socket);
	b->socket = -1;
}

struct brood_news brood_reap(struct brood *b)
{
	struct brood_news news = {.ended = false};
	for (;;) {
		int status;
		pid_t pid = waitpid(-1, &status, WNOHANG | __WALL);
		if (pid < 0 && errno == EINTR)
			continue;
		news.empty = pid < 0;
		if (pid <= 0)
			return news;
		if (pid == b->command) {
			command_ended(b, status);
			news.ended = true;
		}
	}
}

void brood_signal(const struct brood *b, int sig)
{
	if (b->command > 0)
		kill(b->command, sig);
}

void brood_signal_group(const struct brood *b, int sig)
{
	if (b->command > 0)
		kill(-b->command, sig);
}

void brood_start(struct brood *b, int inherit, const char *late)
{
	struct start start = {.inherit = inherit};
	union control control = {.header = {.cmsg_level = SOL_SOCKET,
	                                    .cmsg_type = SCM_RIGHTS,
	                                    .cmsg_len = CMSG_LEN(sizeof inherit)}};
	struct iovec bytes = {.iov_base = &start, .iov_len = sizeof start};
	struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};
	if (late)
		snprintf(start.late, sizeof start.late, "%s", late);
	if (inherit >= 0) {
		memcpy(CMSG_DATA(&control.header), &inherit, sizeof inherit);
		message.msg_control = &control;
		message.msg_controllen = sizeof control;
	}
	b->started = true;
	/* It may have been stopped with others that were continued one by one since. */
	brood_signal(b, SIGCONT);
	if (sendmsg(b->socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		brood_signal(b, SIGKILL);
}

void brood_signal_all(const struct brood *b, int sig)
{
	AUTO(tree_done) struct tree tree = {.alloc = baton_alloc_libc()};
	if (tree_look(&tree) == BATON_OK)
		tree_signal(&tree, sig);
	else
		brood_signal(b, sig);
}

void brood_done(struct brood *b)
{
	if (b->command > 0 && !b->started) {
		kill(b->command, SIGKILL);
		while (waitpid(b->command, NULL, 0) < 0 && errno == EINTR)
			;
		b->command = 0;
	}
	fd_closep(&b->socket);
	b->socket = -1;
}
