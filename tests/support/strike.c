/* A process that is struck at a system call. */
#include "support/strike.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/child.h"

static void need(bool condition, const char *what)
{
	if (condition)
		return;
	perror(what);
	abort();
}

static _Noreturn void run_traced(int (*body)(void *arg), void *arg)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
		_exit(CHILD_SKIP);
	raise(SIGSTOP);
	_exit(body(arg));
}

static int code_of(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int strike_kill(unsigned n, int (*body)(void *arg), void *arg)
{
	int status;
	fflush(NULL);
	pid_t pid = fork();
	need(pid >= 0, "fork");
	if (pid == 0)
		run_traced(body, arg);
	need(waitpid(pid, &status, 0) == pid, "waitpid");
	for (unsigned i = 0; WIFSTOPPED(status); i++) {
		if (i == n)
			kill(pid, SIGKILL);
		else
			need(ptrace(PTRACE_SYSCALL, pid, NULL, NULL) == 0, "ptrace");
		need(waitpid(pid, &status, 0) == pid, "waitpid");
	}
	return code_of(status);
}

bool strike_deny(int number, int errnum)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)errnum),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}
