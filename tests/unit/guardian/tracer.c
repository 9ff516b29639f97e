/* Runs a process and all that it forks call by call, and kills one of them, or does something else,
 * at a chosen call. */
#include "tracer.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRACEES_MAX 64
#define OPTIONS                                                                                   \
	(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | \
	 PTRACE_O_EXITKILL)
#define SYSCALL_STOP (SIGTRAP | 0x80)

struct tracee {
	pid_t pid;
	pid_t process;  /* that it is a thread of */
	enum role role; /* 0: it stopped before we heard that it was forked */
	unsigned calls;
};

struct tracer {
	const struct tracer_plan *plan;
	struct tracee tracees[TRACEES_MAX];
	size_t count;
	pid_t victim; /* who is to be killed; 0: nobody yet, or it has died */
	bool killed;
	bool settled;
	bool outlived;
	int status; /* of ROLE_PATRON */
};

static void need(bool condition, const char *what)
{
	if (condition)
		return;
	perror(what);
	abort();
}

static struct tracee *find(struct tracer *t, pid_t pid)
{
	for (size_t i = 0; i < t->count; i++) {
		if (t->tracees[i].pid == pid)
			return &t->tracees[i];
	}
	return NULL;
}

static struct tracee *add(struct tracer *t, pid_t pid)
{
	need(t->count < TRACEES_MAX, "too many processes");
	t->tracees[t->count] = (struct tracee){.pid = pid, .process = pid};
	return &t->tracees[t->count++];
}

/* What is gone meanwhile cannot be resumed, and its end is reported next. */
static void resume(const struct tracer *t, pid_t pid, int sig)
{
	ptrace(t->killed ? PTRACE_CONT : PTRACE_SYSCALL, pid, NULL, (uintptr_t)sig);
}

static enum role role_of_child(const struct tracer *t, enum role parent, bool thread)
{
	switch (parent) {
	case ROLE_PATRON:
		return ROLE_GUARDIAN;
	case ROLE_GUARDIAN:
	case ROLE_KEEPER:
		if (thread)
			return ROLE_KEEPER;
		return t->plan->nannies ? ROLE_NANNY : ROLE_COMMAND;
	case ROLE_NANNY:
		return ROLE_COMMAND;
	case ROLE_COMMAND:
	case ROLE_OTHERS:
	case ROLES:
		break;
	}
	return ROLE_OTHERS;
}

static void forked(struct tracer *t, pid_t parent, bool thread)
{
	unsigned long pid;
	if (ptrace(PTRACE_GETEVENTMSG, parent, NULL, &pid) != 0)
		return;
	struct tracee *child = find(t, (pid_t)pid);
	bool early = child && child->role == 0;
	if (child && !early)
		return;
	if (!child)
		child = add(t, (pid_t)pid);
	const struct tracee *from = find(t, parent);
	child->role = role_of_child(t, from->role, thread);
	child->process = thread ? from->process : child->pid;
	if (early)
		resume(t, child->pid, 0);
}

/* Once somebody was killed, whoever dies with him may not have told us of a child. */
static void release_early(struct tracer *t)
{
	for (size_t i = 0; i < t->count; i++) {
		if (t->tracees[i].role == 0) {
			t->tracees[i].role = ROLE_OTHERS;
			resume(t, t->tracees[i].pid, 0);
		}
	}
}

static void kill_process(struct tracer *t, pid_t process)
{
	t->killed = true;
	t->victim = process;
	kill(process, SIGKILL);
	release_early(t);
}

static void settled(struct tracer *t)
{
	for (size_t i = 0; i < t->count; i++) {
		if (t->plan->call == CALL_SETTLED && t->tracees[i].role == t->plan->role) {
			kill_process(t, t->tracees[i].process);
			return;
		}
	}
	t->settled = true;
	t->plan->settled(t->plan->arg);
}

static void strike(struct tracer *t)
{
	t->killed = true;
	release_early(t);
	t->plan->strike(t->plan->arg);
}

/* Before a system call of `who`. */
static void called(struct tracer *t, struct tracee *who, const struct __ptrace_syscall_info *info)
{
	who->calls++;
	if (t->killed)
		return;
	bool his_turn = who->role == t->plan->role && who->calls == t->plan->call;
	if (his_turn && t->plan->strike)
		strike(t);
	else if (his_turn)
		kill_process(t, who->process);
	else if (!t->settled && who->role == ROLE_OTHERS && info->entry.nr == SYS_flock &&
	         info->entry.args[1] == LOCK_SH)
		settled(t);
}

static void stopped(struct tracer *t, pid_t pid, int status)
{
	struct tracee *who = find(t, pid);
	int sig = WSTOPSIG(status);
	int event = status >> 16;
	if (!who) {
		add(t, pid);
		if (t->killed)
			release_early(t);
		return;
	}
	if (who->role == 0)
		return;
	if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK)
		forked(t, pid, false);
	else if (event == PTRACE_EVENT_CLONE)
		forked(t, pid, true);
	if (sig == SYSCALL_STOP) {
		struct __ptrace_syscall_info info;
		if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info) > 0 &&
		    info.op == PTRACE_SYSCALL_INFO_ENTRY)
			called(t, who, &info);
	}
	resume(t, pid, event != 0 || sig == SYSCALL_STOP ? 0 : sig);
}

static void ended(struct tracer *t, pid_t pid, int status)
{
	struct tracee *who = find(t, pid);
	if (!who)
		return;
	if (t->killed && !t->settled && who->role == ROLE_COMMAND && WIFEXITED(status) &&
	    WEXITSTATUS(status) == 0)
		t->outlived = true;
	if (who->role == ROLE_PATRON)
		t->status = status;
	*who = t->tracees[--t->count];
	if (pid == t->victim) {
		t->victim = 0;
		t->plan->killed(t->plan->arg);
	}
}

static pid_t start(const struct tracer_plan *plan)
{
	int go[2];
	char byte = 0;
	need(pipe(go) == 0, "pipe");
	pid_t pid = fork();
	need(pid >= 0, "fork");
	if (pid == 0) {
		close(go[1]);
		if (read(go[0], &byte, 1) == 1) {
			close(go[0]);
			plan->body(plan->arg);
		}
		_exit(1);
	}
	close(go[0]);
	need(ptrace(PTRACE_SEIZE, pid, NULL, OPTIONS) == 0, "ptrace");
	need(ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) == 0, "ptrace");
	int status;
	need(waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status), "waitpid");
	need(write(go[1], &byte, 1) == 1, "write");
	close(go[1]);
	return pid;
}

struct tracer_end tracer_run(const struct tracer_plan *plan)
{
	struct tracer t = {.plan = plan};
	struct tracee *first = add(&t, start(plan));
	first->role = ROLE_PATRON;
	resume(&t, first->pid, 0);
	for (;;) {
		int status;
		pid_t pid = waitpid(-1, &status, __WALL);
		if (pid < 0 && errno == EINTR)
			continue;
		if (pid < 0)
			return (struct tracer_end){.killed = t.killed,
			                           .outlived = t.outlived,
			                           .status = t.status};
		if (WIFSTOPPED(status))
			stopped(&t, pid, status);
		else
			ended(&t, pid, status);
	}
}

bool tracer_works(void)
{
	pid_t pid = fork();
	need(pid >= 0, "fork");
	if (pid == 0) {
		pause();
		_exit(0);
	}
	bool works = ptrace(PTRACE_SEIZE, pid, NULL, OPTIONS) == 0;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, __WALL);
	return works;
}
