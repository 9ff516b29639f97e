/* What a runner, its guardian and the nannies tell each other. */
#include "guardian/errand.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fail.h"
#include "base/mem.h"
#include "guardian/wards.h"

/* Room for all descriptors of an order. */
union control {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(ORDER_FDS * sizeof(int))];
};

static enum errand_got sent(ssize_t n)
{
	if (n >= 0)
		return ERRAND_DONE;
	/* Too many descriptors on their way are like too many bytes. */
	bool later =
		errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM || errno == ETOOMANYREFS;
	return later ? ERRAND_NOT_NOW : ERRAND_HUNG_UP;
}

enum errand_got order_pass(int socket, const struct errand_order *order, const int *fds)
{
	union control control = {.header = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
	struct iovec bytes = {.iov_base = (void *)order, .iov_len = sizeof *order};
	struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};
	int given[ORDER_FDS];
	size_t count = 0;
	for (int i = 0; order->kind == ERRAND_START && i < ORDER_FDS; i++) {
		if (fds[i] >= 0)
			given[count++] = fds[i];
	}
	if (count > 0) {
		control.header.cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(&control.header), given, count * sizeof(int));
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(count * sizeof(int));
	}
	ssize_t n;
	do
		n = sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return sent(n);
}

/* Receives a packet of exactly this size. */
static enum errand_got receive(int socket, struct msghdr *message, size_t size)
{
	ssize_t n;
	/* A side that goes with something unread says so before what it sent can be read. */
	do
		n = recvmsg(socket, message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	if (n < 0)
		return errno == EAGAIN ? ERRAND_NOT_NOW : ERRAND_HUNG_UP;
	if (n == 0)
		return ERRAND_HUNG_UP;
	bool whole = n == (ssize_t)size && !(message->msg_flags & MSG_TRUNC);
	return whole ? ERRAND_DONE : ERRAND_STRANGE;
}

/* The descriptors that came with a message, the caller's. Returns how many. */
static size_t descriptors_of(struct msghdr *message, int *fds)
{
	const struct cmsghdr *header = CMSG_FIRSTHDR(message);
	if (!header || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
		return 0;
	size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	memcpy(fds, CMSG_DATA(header), count * sizeof(int));
	return count;
}

/* Puts what came to the places that the order says. False: it is not what it says. */
static bool sort_fds(const struct errand_order *order, const int *came, size_t count, int *fds)
{
	bool starts = order->kind == ERRAND_START;
	size_t at = 0;
	for (int i = 0; i < ORDER_FDS; i++) {
		bool wanted = i < ORDER_IN || (i == ORDER_IN && order->present & ORDER_HAS_IN) ||
		              (i == ORDER_CHANNEL && order->present & ORDER_HAS_CHANNEL);
		fds[i] = starts && wanted && at < count ? came[at++] : -1;
		if (starts && wanted && fds[i] < 0)
			return false;
	}
	return at == count;
}

static bool order_is_known(const struct errand_order *order)
{
	return order->magic == ERRAND_MAGIC && order->kind >= ERRAND_START &&
	       order->kind <= ERRAND_KILL;
}

enum errand_got order_get(int socket, struct errand_order *ret, int *fds)
{
	union control control;
	int came[ORDER_FDS];
	struct iovec bytes = {.iov_base = ret, .iov_len = sizeof *ret};
	struct msghdr message = {
		.msg_iov = &bytes,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof control,
	};
	for (int i = 0; i < ORDER_FDS; i++)
		fds[i] = -1;
	enum errand_got got = receive(socket, &message, sizeof *ret);
	if (got == ERRAND_NOT_NOW || got == ERRAND_HUNG_UP)
		return got;
	size_t count = descriptors_of(&message, came);
	bool known = got == ERRAND_DONE && order_is_known(ret);
	if (known && sort_fds(ret, came, count, fds))
		return ERRAND_DONE;
	for (size_t i = 0; i < count; i++)
		close(came[i]);
	for (int i = 0; i < ORDER_FDS; i++)
		fds[i] = -1;
	if (!known)
		ret->kind = 0;
	return ERRAND_STRANGE;
}

void order_close(int *fds)
{
	for (int i = 0; i < ORDER_FDS; i++) {
		fd_closep(&fds[i]);
		fds[i] = -1;
	}
}

enum errand_got report_pass(int socket, const struct errand_report *report, bool at_once)
{
	ssize_t n;
	do
		n = send(socket, report, sizeof *report,
		         MSG_NOSIGNAL | (at_once ? MSG_DONTWAIT : 0));
	while (n < 0 && errno == EINTR);
	return sent(n);
}

enum errand_got report_get(int socket, struct errand_report *ret)
{
	struct iovec bytes = {.iov_base = ret, .iov_len = sizeof *ret};
	struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};
	enum errand_got got = receive(socket, &message, sizeof *ret);
	if (got == ERRAND_DONE && ret->magic != ERRAND_MAGIC)
		return ERRAND_STRANGE;
	return got;
}

/* How many arguments there are, all of these and then the variables, each with a NUL. */
void args_write(struct buf *to, char *const *argv, char *const *env)
{
	uint32_t count = 0;
	while (argv[count])
		count++;
	buf_append(to, &count, sizeof count);
	for (; *argv; argv++)
		buf_append(to, *argv, strlen(*argv) + 1);
	for (; env && *env; env++)
		buf_append(to, *env, strlen(*env) + 1);
}

static enum baton_err read_all(struct args *a, int fd)
{
	size_t done = 0;
	while (done < a->size) {
		ssize_t n = pread(fd, a->bytes + done, a->size - done, (off_t)done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return fail_errno(n < 0 ? errno : EIO, "the arguments cannot be read");
		done += (size_t)n;
	}
	return BATON_OK;
}

/* Finds the texts. There is a NUL at the end of all. */
static enum baton_err list_texts(struct args *a, uint32_t argc)
{
	size_t texts = 0;
	const char *end = a->bytes + a->size;
	for (const char *at = a->bytes + sizeof argc; at < end; at += strlen(at) + 1)
		texts++;
	if (argc == 0 || argc > texts)
		return fail(BATON_INVALID, "%u arguments, and %zu texts", argc, texts);
	a->texts = mem_new(a->alloc, texts + 2, sizeof *a->texts);
	if (!a->texts)
		return fail_memory((texts + 2) * sizeof *a->texts, "arguments");
	a->count = texts + 2;
	char *at = a->bytes + sizeof argc;
	for (size_t i = 0; i < texts; i++, at += strlen(at) + 1)
		a->texts[i < argc ? i : i + 1] = at;
	a->argv = a->texts;
	a->env = a->texts + argc + 1;
	return BATON_OK;
}

enum baton_err args_read(struct args *a, int fd)
{
	struct stat st;
	uint32_t argc;
	if (fstat(fd, &st) != 0)
		return fail_errno(errno, "the arguments cannot be looked at");
	if (st.st_size <= (off_t)sizeof argc || st.st_size > (off_t)(WARDS_ARGS_MAX + sizeof argc))
		return fail(BATON_INVALID, "arguments of %lld bytes", (long long)st.st_size);
	a->bytes = mem_new(a->alloc, (size_t)st.st_size, 1);
	if (!a->bytes)
		return fail_memory(st.st_size, "arguments");
	a->size = (size_t)st.st_size;
	enum baton_err e = read_all(a, fd);
	if (e != BATON_OK)
		return e;
	memcpy(&argc, a->bytes, sizeof argc);
	if (a->bytes[a->size - 1] != '\0')
		return fail(BATON_INVALID, "the last argument has no end");
	return list_texts(a, argc);
}

void errand_args_done(struct args *a)
{
	mem_free(a->alloc, a->texts, a->count, sizeof *a->texts);
	mem_free(a->alloc, a->bytes, a->size, 1);
	*a = (struct args){.alloc = a->alloc};
}
