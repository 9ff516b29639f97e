/* One command as the runner sees it. */
#include "guardian/ward.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fail.h"
#include "base/mem.h"

/* How much of standard output is read at a time. */
#define CHUNK 65536

static void ward_freep(struct ward **w)
{
	ward_free(*w);
}

static bool write_all(int fd, const void *bytes, size_t size)
{
	const char *at = bytes;
	while (size > 0) {
		ssize_t n = write(fd, at, size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at += n;
		size -= (size_t)n;
	}
	return true;
}

/* A file in memory that nobody can change any more is for who reads it as good as a pipe that
 * somebody fills, and nobody has to. */
static bool memory_seal(int fd)
{
	return lseek(fd, 0, SEEK_SET) == 0 &&
	       fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) ==
	               0;
}

static bool input_fill(int fd, const struct ward_spec *spec)
{
	for (size_t i = 0; i < spec->inputs; i++) {
		if (!write_all(fd, spec->input[i].ptr, spec->input[i].len) ||
		    (spec->separator && !write_all(fd, &spec->separator, 1)))
			return false;
	}
	return memory_seal(fd);
}

static enum baton_err input_make(struct ward *w, const struct ward_spec *spec)
{
	size_t size = 0;
	for (size_t i = 0; i < spec->inputs; i++) {
		if (spec->input[i].len >= WARDS_INPUT_MAX - size)
			return fail(BATON_INVALID, "the input of a command has more than %zu bytes",
			            WARDS_INPUT_MAX);
		size += spec->input[i].len + 1;
	}
	if (spec->inputs == 0)
		return BATON_OK;
	w->fds[ORDER_IN] = memfd_create("baton-input", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (w->fds[ORDER_IN] < 0 || !input_fill(w->fds[ORDER_IN], spec))
		return fail_errno(errno, "no file in memory for the input of a command");
	w->order.present |= ORDER_HAS_IN;
	return BATON_OK;
}

static enum baton_err args_make(struct ward *w, const struct ward_spec *spec)
{
	AUTO(buf_done) struct buf args;
	buf_init(&args, w->alloc, WARDS_ARGS_MAX);
	args_write(&args, spec->argv, spec->env);
	if (args.err == BATON_FULL)
		return fail(BATON_INVALID,
		            "the arguments and variables of a command have more than %d bytes",
		            WARDS_ARGS_MAX);
	if (args.err != BATON_OK)
		return args.err;
	int fd = memfd_create("baton-arguments", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	w->fds[ORDER_ARGS] = fd;
	if (fd < 0 || !write_all(fd, args.data, args.len) || !memory_seal(fd))
		return fail_errno(errno, "no file in memory for the arguments of a command");
	return BATON_OK;
}

/* Only our end does not wait: the command does not expect that of its own. */
static bool pipe_make(int *ours, int *theirs)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) != 0)
		return false;
	*ours = ends[0];
	*theirs = ends[1];
	return fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0;
}

static bool output_make(struct ward *w, const struct ward_spec *spec)
{
	if (!pipe_make(&w->err, &w->fds[ORDER_ERR]))
		return false;
	if (!spec->output_said)
		return pipe_make(&w->out, &w->fds[ORDER_OUT]);
	w->fds[ORDER_OUT] = fcntl(w->fds[ORDER_ERR], F_DUPFD_CLOEXEC, 3);
	return w->fds[ORDER_OUT] >= 0;
}

static enum baton_err fds_make(struct ward *w, const struct ward_spec *spec)
{
	if (!output_make(w, spec))
		return fail_errno(errno, "no pipe for what a command writes");
	if (spec->channel < 0)
		return BATON_OK;
	w->fds[ORDER_CHANNEL] = fcntl(spec->channel, F_DUPFD_CLOEXEC, 3);
	if (w->fds[ORDER_CHANNEL] < 0)
		return fail_errno(errno, "the channel of a command cannot be passed on");
	w->order.present |= ORDER_HAS_CHANNEL;
	return BATON_OK;
}

enum baton_err ward_new(const struct baton_alloc *alloc, const struct ward_spec *spec,
                        uint64_t serial, struct ward **ret)
{
	if (!spec->argv || !spec->argv[0])
		return fail(BATON_INVALID, "there is no command to run");
	AUTO(ward_freep) struct ward *w = mem_new(alloc, 1, sizeof *w);
	if (!w)
		return fail_memory(sizeof *w, "a command");
	*w = (struct ward){
		.alloc = alloc,
		.id = spec->id,
		.serial = serial,
		.queued = true,
		.order = {.magic = ERRAND_MAGIC,
	                  .kind = ERRAND_START,
	                  .serial = serial,
	                  .timeout_ns = spec->timeout.ns,
	                  .grace_ns = spec->grace.ns},
		.fds = {-1, -1, -1, -1, -1},
		.out = -1,
		.err = -1,
	};
	buf_init(&w->text, alloc, spec->output_max);
	enum baton_err e = args_make(w, spec);
	if (e == BATON_OK)
		e = input_make(w, spec);
	if (e == BATON_OK)
		e = fds_make(w, spec);
	if (e == BATON_OK)
		*ret = TAKE(w);
	return e;
}

static void keep_output(struct ward *w, const char *bytes, size_t size)
{
	size_t room = w->text.max - w->text.len;
	size_t kept = size < room ? size : room;
	if (kept > 0)
		buf_append(&w->text, bytes, kept);
	/* What there is no memory for is not kept either. */
	if (kept < size || w->text.err != BATON_OK)
		w->cut = true;
}

static void shut(int *fd)
{
	fd_closep(fd);
	*fd = -1;
}

/* Reads up to `size` bytes. 0: there will be no more, or this is not the moment. */
static size_t read_some(int *fd, void *into, size_t size)
{
	ssize_t n;
	do
		n = read(*fd, into, size);
	while (n < 0 && errno == EINTR);
	if (n == 0 || (n < 0 && errno != EAGAIN))
		shut(fd);
	return n > 0 ? (size_t)n : 0;
}

bool ward_read_out(struct ward *w)
{
	char bytes[CHUNK];
	if (w->out >= 0)
		keep_output(w, bytes, read_some(&w->out, bytes, sizeof bytes));
	return w->out >= 0;
}

/* Reads into the room behind the line. */
static size_t read_line(struct ward *w, size_t most)
{
	memmove(w->line, w->line + w->line_at, w->line_end - w->line_at);
	w->line_end -= w->line_at;
	w->line_at = 0;
	size_t room = sizeof w->line - w->line_end;
	size_t n = 0;
	if (w->err >= 0 && room > 0 && most > 0)
		n = read_some(&w->err, w->line + w->line_end, room < most ? room : most);
	w->line_end += n;
	return n;
}

bool ward_read_err(struct ward *w)
{
	read_line(w, SIZE_MAX);
	return w->err >= 0;
}

/* How much there is to read, now that nobody writes. Somebody who got the descriptor sent might:
 * that does not count. */
static size_t left_in(int fd)
{
	int bytes = 0;
	if (fd < 0 || ioctl(fd, FIONREAD, &bytes) != 0 || bytes < 0)
		return 0;
	return (size_t)bytes;
}

static void drain_out(struct ward *w)
{
	char bytes[CHUNK];
	for (size_t left = left_in(w->out); left > 0 && w->out >= 0;) {
		size_t n = read_some(&w->out, bytes, left < sizeof bytes ? left : sizeof bytes);
		if (n == 0)
			break;
		keep_output(w, bytes, n);
		left -= n;
	}
	shut(&w->out);
}

void ward_end(struct ward *w, const struct errand_report *end)
{
	if (w->over)
		return;
	w->over = true;
	w->end = *end;
	w->begun = w->begun || end->how != WARD_UNSTARTED;
	drain_out(w);
	w->err_left = left_in(w->err);
	if (w->err_left == 0)
		shut(&w->err);
}

/* The next line, if all of it is there, or no more fits. */
static bool line_take(struct ward *w, struct baton_str *ret)
{
	size_t size = w->line_end - w->line_at;
	const char *begin = w->line + w->line_at;
	const char *end = size > 0 ? memchr(begin, '\n', size) : NULL;
	if (end) {
		*ret = (struct baton_str){begin, (size_t)(end - begin)};
		w->line_at += ret->len + 1;
		return true;
	}
	if (size < sizeof w->line && !(w->over && w->err_left == 0 && size > 0))
		return false;
	*ret = (struct baton_str){begin, size};
	w->line_at = w->line_end;
	return true;
}

static bool said_next(struct ward *w, struct ward_news *ret)
{
	while (!line_take(w, &ret->text)) {
		if (!w->over || w->err_left == 0)
			return false;
		size_t n = read_line(w, w->err_left);
		w->err_left = n > 0 ? w->err_left - n : 0;
	}
	ret->kind = WARD_SAID;
	return true;
}

bool ward_next(struct ward *w, struct ward_news *ret)
{
	*ret = (struct ward_news){.id = w->id, .pid = w->end.pid};
	if (w->begun && !w->begun_told) {
		w->begun_told = true;
		ret->kind = WARD_BEGUN;
		return true;
	}
	if (said_next(w, ret))
		return true;
	if (!w->over)
		return false;
	ret->kind = WARD_ENDED;
	ret->how = (enum ward_how)w->end.how;
	ret->code = w->end.code;
	ret->timed_out = w->end.timed_out != 0;
	ret->timeout.ns = w->order.timeout_ns;
	ret->cut = w->cut;
	ret->text = buf_str(&w->text);
	return true;
}

void ward_free(struct ward *w)
{
	if (!w)
		return;
	order_close(w->fds);
	shut(&w->out);
	shut(&w->err);
	buf_done(&w->text);
	mem_free(w->alloc, w, 1, sizeof *w);
}
