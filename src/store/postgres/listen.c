/* Who hears that something was committed elsewhere. */
#include "store/postgres/listen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "store/postgres/look.h"
#include "store/postgres/postgres.h"

#define AGAIN_MS 1000 /* after a connection was lost, or could not be made */
#define FOREVER (-1)

void listener_init(struct listener *l)
{
	pthread_mutex_init(&l->mu, NULL);
	l->end = -1;
}

/* False: the thread is to end. */
static bool await(int end, int fd, short events, int timeout_ms)
{
	struct pollfd on[] = {{.fd = end, .events = POLLIN}, {.fd = fd, .events = events}};
	int ready;
	do
		ready = poll(on, fd >= 0 ? 2 : 1, timeout_ms);
	while (ready < 0 && errno == EINTR);
	return on[0].revents == 0;
}

/* False: there is no connection, or the thread is to end. */
static bool connect_all(int end, PGconn *pg)
{
	PostgresPollingStatusType status = PGRES_POLLING_WRITING;
	while (pg && status != PGRES_POLLING_OK && status != PGRES_POLLING_FAILED) {
		if (!await(end, PQsocket(pg), status == PGRES_POLLING_READING ? POLLIN : POLLOUT,
		           FOREVER))
			return false;
		status = PQconnectPoll(pg);
	}
	return pg && status == PGRES_POLLING_OK;
}

/* Others have rung: their ring has used up the mark. Those here were woken at the commit. */
static void hear(struct pg_store *s, PGconn *pg)
{
	char self[33];
	bool others = false;
	baton_id_print(&s->base.owner.incarnation, self);
	for (PGnotify *n = PQnotifies(pg); n; n = PQnotifies(pg)) {
		others = others || strcmp(n->extra, self) != 0;
		atomic_store(&s->listener.marked, false);
		PQfreemem(n);
	}
	if (others)
		baton_store_poke(&s->base);
}

/* The answer to LISTEN. False: it failed. */
static bool answer(struct pg_store *s, PGconn *pg)
{
	bool ok = true;
	while (ok && !atomic_load(&s->listener.listens) && !PQisBusy(pg)) {
		PGresult *r = PQgetResult(pg);
		if (!r)
			atomic_store(&s->listener.listens, true);
		ok = !r || PQresultStatus(r) == PGRES_COMMAND_OK;
		PQclear(r);
	}
	return ok;
}

/* Until the connection is lost, or the thread is to end. */
static void listen_on(struct pg_store *s, int end, PGconn *pg)
{
	bool ok = connect_all(end, pg) && PQsendQuery(pg, "LISTEN baton") == 1;
	while (ok && await(end, PQsocket(pg), POLLIN, FOREVER)) {
		ok = PQconsumeInput(pg) == 1 && answer(s, pg);
		hear(s, pg);
	}
	atomic_store(&s->listener.listens, false);
	atomic_store(&s->listener.marked, false);
}

static void *work(void *arg)
{
	struct pg_store *s = arg;
	int end = s->listener.end;
	do {
		PGconn *pg = conn_start(s->info);
		listen_on(s, end, pg);
		PQfinish(pg);
	} while (await(end, -1, 0, AGAIN_MS));
	return NULL;
}

/* It takes none of the signals that are others'. That it cannot be started is nobody's failure:
 * those who wait look now and then. */
static void start(struct pg_store *s)
{
	struct listener *l = &s->listener;
	sigset_t all, before;
	int fd = eventfd(0, EFD_CLOEXEC);
	if (fd < 0)
		return;
	l->end = fd;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int failed = pthread_create(&l->thread, NULL, work, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (failed == 0)
		return;
	close(fd);
	l->end = -1;
}

void listener_done(struct pg_store *s)
{
	struct listener *l = &s->listener;
	if (l->end >= 0 && s->base.pid == getpid()) {
		eventfd_write(l->end, 1);
		pthread_join(l->thread, NULL);
	}
	if (l->end >= 0)
		close(l->end);
	pthread_mutex_destroy(&l->mu);
}

/* The mark is set down as made before it is made: a ring that uses it up comes after that. */
bool pg_doze(struct baton_store *store)
{
	struct pg_store *s = (struct pg_store *)store;
	struct listener *l = &s->listener;
	if (s->pooled)
		return false; /* the proxy keeps what is said to those who listen */
	pthread_mutex_lock(&l->mu);
	if (l->end < 0)
		start(s);
	bool rung = atomic_load(&l->listens);
	if (rung && !atomic_exchange(&l->marked, true) && pg_mark(s) != BATON_OK) {
		atomic_store(&l->marked, false);
		rung = false;
	}
	pthread_mutex_unlock(&l->mu);
	return rung;
}
