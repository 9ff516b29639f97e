/* A handler that leaves traces for a witness: it notes when it enters and leaves a lane, under
 * which fence, and whether anybody else is in that lane. A process that dies is out of its lane.
 *
 *	effect FOLDER MS [daemon]
 *
 * Notes are lines of FOLDER/notes: E lane seq fence attempt, L lane seq fence, or X lane seq for
 * two in one lane. A byte in the pipe FOLDER/pipe wakes who counts them. It stays for MS. With
 * "daemon" it leaves a process behind that has left its session, and is in the lane while it
 * lives. Its result is its fence. */
#include <err.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *value(const char *name)
{
	const char *text = getenv(name);
	if (!text)
		errx(1, "%s is not set", name);
	return text;
}

static int open_in(const char *folder, const char *name, int flags)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	int fd = open(path, flags | O_CLOEXEC, 0600);
	if (fd < 0)
		err(1, "%s", path);
	return fd;
}

static void note(int notes, const char *what)
{
	char line[1024];
	int length = snprintf(line, sizeof line, "%s %s %s %s %s\n", what, value("BATON_LANE"),
	                      value("BATON_SEQ"), value("BATON_FENCE"), value("BATON_ATTEMPT"));
	if (write(notes, line, (size_t)length) != length)
		err(1, "a note cannot be written");
}

static void leave_daemon(void)
{
	pid_t child = fork();
	if (child == 0) {
		setsid();
		if (fork() == 0)
			pause();
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
	char name[512];
	if (argc < 3)
		errx(64, "usage: effect FOLDER MS [daemon]");
	int notes = open_in(argv[1], "notes", O_WRONLY | O_APPEND);
	int pipe = open_in(argv[1], "pipe", O_WRONLY | O_NONBLOCK);
	snprintf(name, sizeof name, "lane-%s", value("BATON_LANE"));
	int lane = open_in(argv[1], name, O_RDWR | O_CREAT);
	if (flock(lane, LOCK_EX | LOCK_NB) != 0)
		note(notes, "X");
	note(notes, "E");
	if (argc > 3)
		leave_daemon();
	poll(NULL, 0, atoi(argv[2]));
	note(notes, "L");
	puts(value("BATON_FENCE"));
	/* A pipe that is full wakes as well. */
	if (write(pipe, "x", 1) < 0)
		return 0;
	return 0;
}
