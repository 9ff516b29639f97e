/* beanstalkd with a log that is synced after every write, and a connection for every caller. */
#include <err.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "claims/arena.h"
#include "jobs/jobs.h"

#define THREADS_MAX 64

struct server {
	char folder[PATH_MAX];
	struct sockaddr_un address;
	pid_t pid;
	int connections[THREADS_MAX];
};

static int server_connect(const struct server *s)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		err(1, "socket");
	/* It takes a moment until it listens. */
	for (int i = 0; connect(fd, (const struct sockaddr *)&s->address, sizeof s->address) != 0;
	     i++) {
		if (i > 2000 || kill(s->pid, 0) != 0)
			errx(1, "beanstalkd does not answer");
		usleep(1000);
	}
	return fd;
}

static bool can_be_found(void)
{
	return system("command -v beanstalkd >/dev/null 2>&1") == 0;
}

static void server_exec(const struct server *s)
{
	char where[PATH_MAX + 16];
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(where, sizeof where, "unix:%s", s->address.sun_path);
	execlp("beanstalkd", "beanstalkd", "-b", s->folder, "-f0", "-l", where, (char *)NULL);
	_exit(127);
}

static void *server_open(void)
{
	if (!can_be_found()) {
		warnx("beanstalkd is left out: it is not installed");
		return NULL;
	}
	struct server *s = arena_new(sizeof *s);
	jobs_folder(s->folder);
	s->address.sun_family = AF_UNIX;
	snprintf(s->address.sun_path, sizeof s->address.sun_path, "%.90s/s", s->folder);
	s->pid = fork();
	if (s->pid < 0)
		err(1, "fork");
	if (s->pid == 0)
		server_exec(s);
	for (int i = 0; i < THREADS_MAX; i++)
		s->connections[i] = server_connect(s);
	return s;
}

static void say(int fd, const char *bytes, size_t len)
{
	if (send(fd, bytes, len, MSG_NOSIGNAL) != (ssize_t)len)
		err(1, "beanstalkd does not listen");
}

/* Reads until `len` bytes or, if that is 0, a line's end. */
static size_t hear(int fd, char *text, size_t size, size_t len)
{
	size_t got = 0;
	while (got < size - 1) {
		ssize_t n = recv(fd, text + got, size - 1 - got, 0);
		if (n <= 0)
			errx(1, "beanstalkd does not answer");
		got += (size_t)n;
		text[got] = '\0';
		if (len > 0 ? got >= len : strchr(text, '\n') != NULL)
			break;
	}
	return got;
}

static bool one_life(int fd)
{
	static const char put[] = "put 0 0 120 150\r\n";
	char text[512], job[sizeof put - 1 + JOB_BYTES + 2];
	unsigned long long id;
	unsigned bytes;
	memcpy(job, put, sizeof put - 1);
	memset(job + sizeof put - 1, 'x', JOB_BYTES);
	memcpy(job + sizeof job - 2, "\r\n", 2);
	say(fd, job, sizeof job);
	hear(fd, text, sizeof text, 0);
	say(fd, "reserve\r\n", 9);
	size_t got = hear(fd, text, sizeof text, 0);
	if (sscanf(text, "RESERVED %llu %u", &id, &bytes) != 2)
		return false;
	size_t all = (size_t)(strchr(text, '\n') + 1 - text) + bytes + 2;
	if (got < all)
		hear(fd, text + got, sizeof text - got, all - got);
	int len = snprintf(text, sizeof text, "delete %llu\r\n", id);
	say(fd, text, (size_t)len);
	hear(fd, text, sizeof text, 0);
	return strncmp(text, "DELETED", 7) == 0;
}

static uint64_t server_lives(void *queue, unsigned thread, const struct lives *lives)
{
	struct server *s = queue;
	uint64_t done = 0;
	for (uint64_t i = 0; i < lives->count; i++)
		done += one_life(s->connections[thread % THREADS_MAX]);
	return done;
}

static void server_close(void *queue)
{
	struct server *s = queue;
	for (int i = 0; i < THREADS_MAX; i++)
		close(s->connections[i]);
	kill(s->pid, SIGTERM);
	waitpid(s->pid, NULL, 0);
	jobs_folder_remove(s->folder);
	free(s);
}

const struct queue_kind jobs_beanstalkd = {server_open, server_lives, server_close, false};
