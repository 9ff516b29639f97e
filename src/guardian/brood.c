/* A command and all the processes that descend from it, as children of this one. */
#include "guardian/brood.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
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

/* Becomes the command. Between fork(2) and execve(2) of a process with threads only what is safe
 * in a signal handler may be called; execvpe(3) of glibc is, in fact. */
_Noreturn static void become(const struct brood_spec *spec, int32_t parent, int errors)
{
	/* Whoever was killed before the first of these lines has left us to somebody else. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 && getppid() == parent) {
		struct sigaction chld = {.sa_handler = spec->chld_ignored ? SIG_IGN : SIG_DFL};
		if (setpgid(0, spec->group) == 0 &&
		    (spec->inherit < 0 || fcntl(spec->inherit, F_SETFD, 0) == 0) &&
		    sigaction(SIGCHLD, &chld, NULL) == 0 &&
		    sigprocmask(SIG_SETMASK, spec->mask, NULL) == 0)
			execvpe(spec->argv[0], spec->argv, spec->envp);
		int errnum = errno;
		(void)!write(errors, &errnum, sizeof errnum);
	}
	_exit(STATUS_UNSTARTED);
}

enum baton_err brood_start(struct brood *b, const struct brood_spec *spec)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
		return fail_errno(errno, "no pipe for the command");
	int32_t parent = getpid();
	pid_t pid = fork();
	if (pid == 0)
		become(spec, parent, ends[1]);
	int errnum = errno;
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		errno = errnum;
		return fail_errno(errnum, "no process for the command");
	}
	*b = (struct brood){.command = pid, .errors = ends[0]};
	return BATON_OK;
}

static void command_ended(struct brood *b, int status)
{
	b->command = 0;
	b->status = status;
	if (read(b->errors, &b->errnum, sizeof b->errnum) != (ssize_t)sizeof b->errnum)
		b->errnum = 0;
	brood_done(b);
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
	fd_closep(&b->errors);
	b->errors = -1;
}
