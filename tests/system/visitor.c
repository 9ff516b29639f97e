/* A handler of connections that leaves traces for a witness: it looks whether anybody serves its
 * lane under another fence, greets its client, and echoes.
 *
 *	visitor FOLDER [stubborn]
 *
 * While it lives it has a lock on FOLDER/LANE.FENCE. A line in FOLDER/notes says what it found: B
 * lane fence pid, or X lane fence other for another fence in that lane that somebody has, or that
 * is higher. With "stubborn" it does not hear SIGTERM. */
#include <dirent.h>
#include <err.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define CONNECTION 3

static const char *value(const char *name)
{
	const char *text = getenv(name);
	if (!text)
		errx(1, "%s is not set", name);
	return text;
}

static int open_here(const char *name, int flags)
{
	int fd = open(name, flags | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		err(1, "%s", name);
	return fd;
}

static void note(const char *what, const char *fence, const char *last)
{
	char line[512];
	int len = snprintf(line, sizeof line, "%s %s %s %s\n", what, value("BATON_LANE"), fence,
	                   last);
	int notes = open_here("notes", O_WRONLY | O_APPEND);
	if (write(notes, line, (size_t)len) != len)
		err(1, "a note cannot be written");
	close(notes);
}

static bool is_held(const char *name)
{
	int fd = open_here(name, O_RDWR);
	bool held = flock(fd, LOCK_EX | LOCK_NB) != 0;
	close(fd);
	return held;
}

/* Looks at all who have ever served the lane. */
static void look_around(const char *lane, const char *fence)
{
	DIR *folder = opendir(".");
	size_t len = strlen(lane);
	struct dirent *entry;
	if (!folder)
		err(1, "the folder cannot be read");
	while ((entry = readdir(folder))) {
		const char *other = entry->d_name + len + 1;
		if (strncmp(entry->d_name, lane, len) != 0 || entry->d_name[len] != '.' ||
		    strcmp(other, fence) == 0 || strcmp(other, "mutex") == 0)
			continue;
		if (strtoull(other, NULL, 10) > strtoull(fence, NULL, 10) || is_held(entry->d_name))
			note("X", fence, other);
	}
	closedir(folder);
}

static void enter(const char *lane, const char *fence)
{
	char name[512], pid[24];
	snprintf(name, sizeof name, "%s.mutex", lane);
	int mutex = open_here(name, O_RDWR);
	flock(mutex, LOCK_EX);
	snprintf(name, sizeof name, "%s.%s", lane, fence);
	flock(open_here(name, O_RDWR), LOCK_SH); /* stays open */
	look_around(lane, fence);
	snprintf(pid, sizeof pid, "%d", (int)getpid());
	note("B", fence, pid);
	close(mutex);
}

int main(int argc, char **argv)
{
	char room[4096];
	ssize_t got;
	if (argc < 2 || chdir(argv[1]) != 0)
		errx(64, "usage: visitor FOLDER [stubborn]");
	if (argc > 2)
		signal(SIGTERM, SIG_IGN);
	enter(value("BATON_LANE"), value("BATON_FENCE"));
	dprintf(CONNECTION, "%s %s %d %s\n", value("BATON_LANE"), value("BATON_FENCE"),
	        (int)getpid(), value("BATON_CONNECTION"));
	while ((got = read(CONNECTION, room, sizeof room)) > 0)
		if (write(CONNECTION, room, (size_t)got) != got)
			break;
	return 0;
}
