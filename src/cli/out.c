/* Where a command writes: standard output, with the first error kept, and complaints. */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "out.h"

static bool is_set(const char *name)
{
	const char *value = getenv(name);
	return value && value[0] != '\0';
}

static bool wants_colour(int fd)
{
	const char *terminal = getenv("TERM");
	return isatty(fd) && !is_set("NO_COLOR") && terminal && strcmp(terminal, "dumb") != 0;
}

struct out out_stdout(void)
{
	return (struct out){.file = stdout, .colour = wants_colour(STDOUT_FILENO)};
}

void out_print(struct out *out, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int written = vfprintf(out->file, format, args);
	va_end(args);
	if ((written < 0 || fflush(out->file) != 0) && out->errnum == 0)
		out->errnum = errno;
}

const char *out_look(const struct out *out, enum look look)
{
	if (!out->colour)
		return "";
	switch (look) {
	case LOOK_PLAIN:
		return "\033[0m";
	case LOOK_BOLD:
		return "\033[1m";
	case LOOK_FAINT:
		return "\033[2m";
	case LOOK_GOOD:
		return "\033[32m";
	case LOOK_WAITING:
		return "\033[33m";
	case LOOK_BAD:
		return "\033[31m";
	}
	return "";
}

int out_finish(struct out *out, int status)
{
	/* EBADF here: it was closed from the start, which matters only to those who wrote to it. */
	if (fclose(out->file) != 0 && out->errnum == 0 && errno != EBADF)
		out->errnum = errno;
	if (out->errnum == 0)
		return status;
	complain("cannot write to standard output: %s", strerror(out->errnum));
	return EX_IOERR;
}

void complain(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	flockfile(stderr);
	fputs("baton: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	funlockfile(stderr);
	va_end(args);
}

const char *show(const char *typed, char shown[SHOWN_MAX])
{
	size_t length = strlen(typed);
	snprintf(shown, SHOWN_MAX, "%s", typed);
	if (length >= SHOWN_MAX)
		memcpy(shown + SHOWN_MAX - sizeof "...", "...", sizeof "...");
	for (char *c = shown; *c != '\0'; c++) {
		if (iscntrl((unsigned char)*c))
			*c = '?';
	}
	return shown;
}
