/* The thread that lets connections in. */
#include "runner/porter.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fail.h"

#define PAUSE_MS 100 /* when there is no memory, or no descriptor */

static void poke(const struct porter *p)
{
	static const uint64_t one = 1;
	/* It fails only if the thread has been woken often, and did not look yet. */
	if (write(p->wake, &one, sizeof one) < 0)
		return;
}

/* What the thread does next. */
enum porter_next {
	PORTER_ACCEPT = 1,
	PORTER_REST, /* the loop is to take what is there first */
	PORTER_QUIT
};

static enum porter_next next_step(struct porter *p)
{
	pthread_mutex_lock(&p->mu);
	enum porter_next next = p->quit                      ? PORTER_QUIT
	                        : p->count == PORTER_WAITING ? PORTER_REST
	                                                     : PORTER_ACCEPT;
	pthread_mutex_unlock(&p->mu);
	return next;
}

static void keep(struct porter *p, struct baton_connection *connection)
{
	pthread_mutex_lock(&p->mu);
	p->waiting[(p->first + p->count++) % PORTER_WAITING] = connection;
	pthread_mutex_unlock(&p->mu);
	inbox_wake(p->inbox);
}

/* Until there is something for the backend, unless it rests, or the thread is woken. */
static void rest(const struct porter *p, bool backend, int ms)
{
	struct pollfd fds[] = {
		{.fd = p->wake, .events = POLLIN},
		{.fd = backend ? baton_backend_fd(p->backend) : -1, .events = POLLIN},
	};
	uint64_t count;
	if (poll(fds, 2, ms) > 0 && fds[0].revents != 0 && read(p->wake, &count, sizeof count) < 0)
		return;
}

static void *work(void *arg)
{
	struct porter *p = arg;
	const struct baton_duration none = {0};
	enum porter_next next;
	while ((next = next_step(p)) != PORTER_QUIT) {
		struct baton_connection *connection;
		if (next == PORTER_REST) {
			rest(p, false, -1);
			continue;
		}
		/* BATON_STALE: another process speaks for a runner of this name. It is looked for
		 * a broker again and again, as if there were none. */
		enum baton_err e = baton_backend_accept(p->backend, none, &connection);
		if (e == BATON_OK)
			keep(p, connection);
		else if (e == BATON_TIMEOUT || e == BATON_STALE)
			rest(p, true, -1);
		else
			rest(p, false, PAUSE_MS);
	}
	return NULL;
}

enum baton_err porter_init(struct porter *p, const struct porter_options *options)
{
	const struct baton_backend_options backend = {
		.folder = options->folder,
		.service = BATON_STR(PORTER_SERVICE),
		.owner = options->owner,
		.patient = true,
		.welcomes_later = true,
		.log = options->log,
		.alloc = options->alloc,
	};
	*p = (struct porter){.inbox = options->inbox};
	pthread_mutex_init(&p->mu, NULL);
	p->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->wake < 0)
		return fail_errno(errno, "no descriptor to wake a thread");
	enum baton_err e = baton_backend_open(&backend, &p->backend);
	if (e != BATON_OK)
		return e;
	int errnum = pthread_create(&p->thread, NULL, work, p);
	if (errnum != 0)
		return fail_errno(errnum, "starting a thread for connections");
	p->runs = true;
	return BATON_OK;
}

void porter_done(struct porter *p)
{
	struct baton_connection *connection;
	if (!p->inbox)
		return;
	pthread_mutex_lock(&p->mu);
	p->quit = true;
	pthread_mutex_unlock(&p->mu);
	if (p->runs) {
		poke(p);
		pthread_join(p->thread, NULL);
	}
	while ((connection = porter_next(p)))
		baton_connection_free(connection);
	baton_backend_close(p->backend);
	fd_closep(&p->wake);
	pthread_mutex_destroy(&p->mu);
	*p = (struct porter){.wake = -1};
}

struct baton_str porter_endpoint(const struct porter *p)
{
	return baton_str_z(baton_backend_endpoint(p->backend));
}

struct baton_connection *porter_next(struct porter *p)
{
	struct baton_connection *connection = NULL;
	bool was_full = false;
	if (!p->inbox)
		return NULL;
	pthread_mutex_lock(&p->mu);
	if (p->count > 0) {
		was_full = p->count == PORTER_WAITING;
		connection = p->waiting[p->first];
		p->first = (p->first + 1) % PORTER_WAITING;
		p->count--;
	}
	pthread_mutex_unlock(&p->mu);
	if (was_full)
		poke(p);
	return connection;
}
