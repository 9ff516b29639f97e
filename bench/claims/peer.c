/* Another process of a bench. */
#include "claims/peer.h"

#include <err.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct peer peer_start(void (*body)(void *arg), void *arg)
{
	fflush(NULL);
	pid_t parent = getpid();
	pid_t pid = fork();
	if (pid < 0)
		err(1, "fork");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() == parent)
			body(arg);
		_exit(0);
	}
	char path[32];
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	struct peer p = {.pid = pid, .stat = open(path, O_RDONLY | O_CLOEXEC)};
	if (p.stat < 0)
		err(1, "%s", path);
	return p;
}

void peer_end(struct peer *p)
{
	kill(p->pid, SIGKILL);
	if (waitpid(p->pid, NULL, 0) != p->pid)
		err(1, "waitpid");
	close(p->stat);
}

void peer_check(const struct peer *p)
{
	siginfo_t info = {.si_pid = 0};
	if (waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0)
		err(1, "waitid");
	if (info.si_pid != 0)
		errx(1, "process %d of the bench ended early", (int)p->pid);
}

void peer_await_sleep(const struct peer *p)
{
	char text[256];
	for (;;) {
		ssize_t n = pread(p->stat, text, sizeof text - 1, 0);
		if (n <= 0)
			errx(1, "process %d of the bench ended early", (int)p->pid);
		text[n] = '\0';
		const char *name_end = strrchr(text, ')');
		if (name_end && name_end[1] == ' ' && name_end[2] == 'S')
			return;
		peer_check(p);
		sched_yield();
	}
}

void peer_stop(const struct peer *p)
{
	siginfo_t info;
	if (kill(p->pid, SIGSTOP) != 0)
		err(1, "kill");
	if (waitid(P_PID, (id_t)p->pid, &info, WSTOPPED) != 0)
		err(1, "waitid");
}

void peer_continue(const struct peer *p)
{
	if (kill(p->pid, SIGCONT) != 0)
		err(1, "kill");
}

void word_set(_Atomic uint32_t *word, uint32_t value)
{
	atomic_store(word, value);
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void word_await(_Atomic uint32_t *word, uint32_t value, const struct peer *p)
{
	for (uint32_t seen; (int32_t)((seen = atomic_load(word)) - value) < 0;) {
		struct timespec patience = {.tv_sec = 1};
		syscall(SYS_futex, word, FUTEX_WAIT, seen, &patience, NULL, 0);
		if (p)
			peer_check(p);
	}
}
