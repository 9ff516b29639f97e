/* What a command reads: all of a file, or line by line, within a bound. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "input.h"

#define ROOM_FIRST 4096

/* Makes room for one byte more than `used`. */
static bool has_room(char **bytes, size_t *room, size_t used)
{
	if (used < *room)
		return true;
	size_t more = *room > 0 ? 2 * *room : ROOM_FIRST;
	char *grown = realloc(*bytes, more);
	if (!grown)
		return false;
	*bytes = grown;
	*room = more;
	return true;
}

static int no_memory(const char *what)
{
	complain("no memory for %s", what);
	return EX_OSERR;
}

static int cannot_read(const char *name)
{
	complain("cannot read %s: %s", name, strerror(errno));
	return EX_NOINPUT;
}

/* All that `file` has. */
static int read_all(FILE *file, const char *what, size_t max, struct input *in)
{
	size_t used = 0;
	for (;;) {
		if (!has_room(&in->bytes, &in->room, used))
			return no_memory(what);
		errno = 0;
		used += fread(in->bytes + used, 1, in->room - used, file);
		if (ferror(file))
			return cannot_read("standard input");
		if (used > max) {
			complain("%s on standard input has more than %zu bytes, which is the most "
			         "that is allowed",
			         what, max);
			return EX_DATAERR;
		}
		if (feof(file))
			break;
	}
	in->read = used;
	return EX_OK;
}

int input_all(const char *what, size_t max, char **ret_bytes, size_t *ret_len)
{
	struct input in = {.bytes = NULL};
	int status = read_all(stdin, what, max, &in);
	if (status != EX_OK) {
		free(in.bytes);
		return status;
	}
	*ret_bytes = in.bytes;
	*ret_len = in.read;
	return EX_OK;
}

int input_open(struct input *in, const char *path)
{
	char shown[SHOWN_MAX];
	struct stat st;
	*in = (struct input){.name = "standard input", .file = stdin};
	if (strcmp(path, "-") != 0) {
		snprintf(in->name, sizeof in->name, "'%s'", show(path, shown));
		in->file = fopen(path, "re");
	}
	if (!in->file)
		return cannot_read(in->name);
	bool known = fstat(fileno(in->file), &st) == 0;
	if (known && S_ISDIR(st.st_mode)) {
		errno = EISDIR;
		return cannot_read(in->name);
	}
	if (known && S_ISREG(st.st_mode))
		in->size = (uint64_t)st.st_size;
	return EX_OK;
}

void input_close(struct input *in)
{
	if (in->file && in->file != stdin)
		fclose(in->file);
	free(in->bytes);
	*in = (struct input){.name = ""};
}

static int cannot_keep(const struct input *in, const char *folder)
{
	char shown[SHOWN_MAX];
	complain("cannot keep %s in %s to read it twice: %s; TMPDIR says where there is room",
	         in->name, show(folder, shown), strerror(errno));
	return EX_IOERR;
}

/* All of `from`, in a file that nobody else finds. */
static int copy_keep(struct input *in, FILE *to, const char *folder)
{
	char bytes[1 << 16];
	size_t n;
	while ((n = fread(bytes, 1, sizeof bytes, in->file)) > 0) {
		if (fwrite(bytes, 1, n, to) != n)
			return cannot_keep(in, folder);
	}
	if (ferror(in->file))
		return cannot_read(in->name);
	return fflush(to) == 0 ? EX_OK : cannot_keep(in, folder);
}

int input_keep(struct input *in)
{
	const char *folder = getenv("TMPDIR");
	if (in->size > 0 || fseeko(in->file, 0, SEEK_CUR) == 0)
		return EX_OK;
	if (!folder || folder[0] == '\0')
		folder = "/tmp";
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	FILE *to = fd >= 0 ? fdopen(fd, "w+e") : NULL;
	if (!to) {
		int status = cannot_keep(in, folder);
		if (fd >= 0)
			close(fd);
		return status;
	}
	int status = copy_keep(in, to, folder);
	if (in->file != stdin)
		fclose(in->file);
	in->file = to;
	return status == EX_OK ? input_again(in) : status;
}

int input_again(struct input *in)
{
	in->line = in->read = 0;
	clearerr(in->file);
	return fseeko(in->file, 0, SEEK_SET) == 0 ? EX_OK : cannot_read(in->name);
}

static int line_fails(const struct input *in, int status, char error[INPUT_ERROR])
{
	if (status == EX_OSERR)
		snprintf(error, INPUT_ERROR, "no memory for line %ju of %s", (uintmax_t)in->line,
		         in->name);
	else
		snprintf(error, INPUT_ERROR, "cannot read line %ju of %s: %s", (uintmax_t)in->line,
		         in->name, strerror(errno));
	return status;
}

int input_line(struct input *in, size_t max, struct baton_str *ret, char error[INPUT_ERROR])
{
	size_t used = 0;
	int c;
	errno = 0;
	in->line++;
	while ((c = getc_unlocked(in->file)) != EOF && c != '\n') {
		if (used == max) {
			snprintf(error, INPUT_ERROR,
			         "line %ju of %s has more than %zu bytes, which is the most that "
			         "is allowed",
			         (uintmax_t)in->line, in->name, max);
			return EX_DATAERR;
		}
		if (!has_room(&in->bytes, &in->room, used))
			return line_fails(in, EX_OSERR, error);
		in->bytes[used++] = (char)c;
	}
	if (ferror(in->file))
		return line_fails(in, EX_NOINPUT, error);
	in->read += used + (c == '\n');
	bool over = c == EOF && used == 0;
	in->line -= over;
	if (!over && !has_room(&in->bytes, &in->room, 0))
		return line_fails(in, EX_OSERR, error);
	*ret = (struct baton_str){over ? NULL : in->bytes, used};
	return EX_OK;
}
