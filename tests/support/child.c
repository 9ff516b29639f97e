/* A child process that runs a function of the test and talks with it in messages. */
#include "support/child.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void need(bool condition, const char *what)
{
	if (condition)
		return;
	perror(what);
	abort();
}

void child_start(struct child *c, int (*body)(int channel, void *arg), void *arg)
{
	int ends[2];
	/* Packets, so that a message is received as it was sent. */
	need(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0, "socketpair");
	fflush(NULL);
	pid_t parent = getpid();
	pid_t pid = fork();
	need(pid >= 0, "fork");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		close(ends[0]);
		_exit(body(ends[1], arg));
	}
	close(ends[1]);
	*c = (struct child){.pid = pid, .channel = ends[0]};
}

void channel_send(int channel, const char *message)
{
	ssize_t n = send(channel, message, strlen(message), MSG_NOSIGNAL);
	need(n == (ssize_t)strlen(message), "send");
}

bool channel_receive(int channel, char *message, size_t size)
{
	ssize_t n;
	do
		n = recv(channel, message, size - 1, 0);
	while (n < 0 && errno == EINTR);
	message[n > 0 ? n : 0] = '\0';
	return n > 0;
}

void child_hang_up(struct child *c)
{
	/* Not by close(): a child that was started later has a copy of the descriptor. */
	shutdown(c->channel, SHUT_RDWR);
}

void child_await_end(const struct child *c)
{
	siginfo_t info;
	need(waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOWAIT) == 0, "waitid");
}

int child_reap(struct child *c)
{
	int status;
	need(waitpid(c->pid, &status, 0) == c->pid, "waitpid");
	close(c->channel);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	bool written = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	close(fd);
	return written;
}

bool child_unshare(int flags)
{
	if (unshare(flags) == 0)
		return true;
	char uids[64], gids[64];
	snprintf(uids, sizeof uids, "0 %u 1", (unsigned)getuid());
	snprintf(gids, sizeof gids, "0 %u 1", (unsigned)getgid());
	return unshare(CLONE_NEWUSER | flags) == 0 && write_file("/proc/self/setgroups", "deny") &&
	       write_file("/proc/self/uid_map", uids) && write_file("/proc/self/gid_map", gids);
}
