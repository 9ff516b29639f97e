/* What a guardian and its patron tell each other. */
#include "guardian/post.h"

#include <errno.h>
#include <sys/socket.h>

static void send_all(int socket, const void *bytes, size_t size, int flags)
{
	while (send(socket, bytes, size, MSG_NOSIGNAL | flags) < 0 && errno == EINTR)
		;
}

static enum post_got receive_all(int socket, void *bytes, size_t size)
{
	ssize_t n;
	/* A side that goes with something unread says so before what it sent can be read. */
	do
		n = recv(socket, bytes, size, MSG_DONTWAIT);
	while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	if (n == (ssize_t)size)
		return POST_GOT;
	return n < 0 && errno == EAGAIN ? POST_NOTHING : POST_HUNG_UP;
}

void post_send(int socket, const struct post *post)
{
	send_all(socket, post, sizeof *post, MSG_DONTWAIT);
}

void order_send(int socket, int32_t what)
{
	struct order order = {.what = what};
	send_all(socket, &order, sizeof order, 0);
}

enum post_got post_receive(int socket, struct post *ret)
{
	return receive_all(socket, ret, sizeof *ret);
}

enum post_got order_receive(int socket, struct order *ret)
{
	return receive_all(socket, ret, sizeof *ret);
}
