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

/* Forks a child that is stopped just before body(arg). */
static pid_t start_traced(int (*body)(void *arg), void *arg, int *ret_status)
{
	fflush(NULL);
	pid_t pid = fork();
	need(pid >= 0, "fork");
	if (pid == 0)
		run_traced(body, arg);
	need(waitpid(pid, ret_status, 0) == pid, "waitpid");
	/* So that the kernel tells calls from other stops. */
	if (WIFSTOPPED(*ret_status))
		ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACESYSGOOD);
	return pid;
}

/* Goes on to where it next enters or leaves a system call, or to its end. */
static void go_on(pid_t pid, int *ret_status)
{
	need(ptrace(PTRACE_SYSCALL, pid, NULL, NULL) == 0, "ptrace");
	need(waitpid(pid, ret_status, 0) == pid, "waitpid");
}

int strike_kill(unsigned n, int (*body)(void *arg), void *arg)
{
	int status;
	pid_t pid = start_traced(body, arg, &status);
	for (unsigned i = 0; i < n && WIFSTOPPED(status); i++)
		go_on(pid, &status);
	if (WIFSTOPPED(status)) {
		kill(pid, SIGKILL);
		need(waitpid(pid, &status, 0) == pid, "waitpid");
	}
	return code_of(status);
}

size_t strike_trace(int (*body)(void *arg), void *arg, long *calls, size_t max)
{
	int status;
	size_t count = 0;
	pid_t pid = start_traced(body, arg, &status);
	while (WIFSTOPPED(status)) {
		struct __ptrace_syscall_info info;
		long size = ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info);
		if (size > 0 && info.op == PTRACE_SYSCALL_INFO_ENTRY && count < max)
			calls[count++] = (long)info.entry.nr;
		go_on(pid, &status);
	}
	return count;
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
