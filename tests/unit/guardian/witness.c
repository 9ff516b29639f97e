/* A command that notices when it does not run alone.
 *
 *	witness FILE alone         locks FILE; fails, and says so in FILE.log, if another has it
 *	witness FILE family GATE   the same, and leaves a daemon that ignores SIGTERM; both stay
 *	                           until GATE is unlocked
 *	witness FILE typed GATE    the same as the first, and has a child that waits for GATE; both
 *	                           go on until an interrupt ends them
 *
 * The lock of FILE descends to the daemon, so it lasts as long as anything of this command does. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define STATUS_OVERLAP 99

/* How many seconds a signal takes at most that is not lost. */
#define BOUND 60

static void note(const char *file, const char *what)
{
	char path[4096], line[256];
	snprintf(path, sizeof path, "%s.log", file);
	const char *fence = getenv("BATON_FENCE");
	int length = snprintf(line, sizeof line, "%s %s\n", what, fence ? fence : "none");
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, line, (size_t)length) != length)
		_exit(1);
	close(fd);
}

static void wait_at(const char *gate)
{
	int fd = open(gate, O_RDWR | O_CLOEXEC);
	while (fd >= 0 && flock(fd, LOCK_SH) != 0 && errno == EINTR)
		;
}

static void leave_a_daemon(const char *gate)
{
	pid_t child = fork();
	if (child < 0)
		_exit(1);
	if (child > 0)
		return;
	setsid();
	signal(SIGTERM, SIG_IGN);
	if (fork() == 0)
		wait_at(gate);
	_exit(0);
}

_Noreturn static void wait_for_interrupt(const char *gate)
{
	pid_t child = fork();
	alarm(BOUND);
	if (child == 0)
		wait_at(gate);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 64;
	int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
	if (fd < 0)
		return 1;
	if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		note(argv[1], "overlap");
		return STATUS_OVERLAP;
	}
	note(argv[1], "enter");
	if (strcmp(argv[2], "typed") == 0 && argc == 4)
		wait_for_interrupt(argv[3]);
	if (strcmp(argv[2], "family") == 0 && argc == 4) {
		leave_a_daemon(argv[3]);
		wait_at(argv[3]);
	}
	return 0;
}
