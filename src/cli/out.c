/* Where a command writes: standard output, with the first error kept, and complaints. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include <baton.h>

#include "out.h"
#include "text.h"

/* Room for a complaint, with a path of a fleet in it. */
#define COMPLAINT_MAX 8192

/* The variable's value; "" when it is not set. */
static const char *environment(const char *name)
{
	const char *value = getenv(name);
	return value ? value : "";
}

bool out_is_screen(int fd)
{
	const char *terminal = environment("TERM");
	return isatty(fd) && terminal[0] != '\0' && strcmp(terminal, "dumb") != 0;
}

static bool wants_colour(int fd)
{
	return out_is_screen(fd) && environment("NO_COLOR")[0] == '\0';
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

void out_bytes(struct out *out, const void *bytes, size_t len)
{
	bool written = len == 0 || fwrite(bytes, 1, len, out->file) == len;
	if ((!written || fflush(out->file) != 0) && out->errnum == 0)
		out->errnum = errno;
}

bool out_is_writable(struct out *out)
{
	int flags = fcntl(fileno(out->file), F_GETFL);
	if (flags >= 0 && (flags & O_ACCMODE) != O_RDONLY)
		return true;
	if (out->errnum == 0)
		out->errnum = EBADF;
	return false;
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
	if (fclose(out->file) != 0 && out->errnum == 0)
		out->errnum = errno;
	if (out->errnum == 0)
		return status;
	complain("cannot write to standard output: %s", strerror(out->errnum));
	return EX_IOERR;
}

void complain(const char *format, ...)
{
	char text[COMPLAINT_MAX];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	/* A path or a name in it must not make two lines of it, or command the terminal. */
	for (char *c = text; *c != '\0'; c++) {
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
	}
	fprintf(stderr, "baton: %s\n", text);
}

const char *show(const char *typed, char shown[SHOWN_MAX])
{
	static const char ellipsis[] = "...";
	size_t used = 0;
	size_t spare = 0; /* of it, what leaves room for the ellipsis too */
	while (*typed != '\0') {
		struct baton_str character =
			text_first((struct baton_str){typed, strnlen(typed, TEXT_CHARACTER)});
		typed += character.len;
		if (baton_str_name("character", character.ptr, character.len, TEXT_CHARACTER,
		                   &character) != BATON_OK)
			character = BATON_STR("?");
		if (used + character.len >= SHOWN_MAX) {
			memcpy(shown + spare, ellipsis, sizeof ellipsis);
			return shown;
		}
		memcpy(shown + used, character.ptr, character.len);
		used += character.len;
		if (used + sizeof ellipsis <= SHOWN_MAX)
			spare = used;
	}
	shown[used] = '\0';
	return shown;
}
