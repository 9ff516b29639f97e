/* Who hears that something was committed elsewhere. */
#include "store/postgres/listen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "store/postgres/look.h"
#include "store/postgres/postgres.h"

#define AGAIN_MS 1000 /* after a connection was lost, or could not be made */

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

/* False: the time is over before it can be read or written. */
static bool is_ready(int fd, short events)
{
	struct pollfd on = {.fd = fd, .events = events};
	return poll(&on, 1, 0) > 0;
}

/* False: there is no connection, the seat was taken away, or the thread is to end. */
static bool connect_all(struct listener *l, PGconn *pg)
{
	PostgresPollingStatusType status = PGRES_POLLING_WRITING;
	while (pg && status != PGRES_POLLING_OK && status != PGRES_POLLING_FAILED) {
		short events = status == PGRES_POLLING_READING ? POLLIN : POLLOUT;
		if (!await(l->end, PQsocket(pg), events, BOARD_BEAT_MS) ||
		    !board_keep(&l->board, false))
			return false;
		if (is_ready(PQsocket(pg), events))
			status = PQconnectPoll(pg);
	}
	return pg && status == PGRES_POLLING_OK;
}

/* Others have rung: their ring has used up the mark. Those here were woken at the commit. */
static void hear(struct pg_store *s, PGconn *pg)
{
	const struct baton_id *self = &s->base.owner.incarnation;
	bool others = false;
	for (PGnotify *n = PQnotifies(pg); n; n = PQnotifies(pg)) {
		struct baton_id who = {{0}};
		baton_id_parse(baton_str_z(n->extra), &who); /* a user has none */
		others = others || !baton_id_equal(&who, self);
		atomic_store(&s->listener.marked, false);
		board_ring(&s->listener.board, &who);
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

/* Who was slow, and has lost the seat, goes on until the other one hears. */
static bool goes_on(struct listener *l)
{
	uint32_t left;
	bool hears = atomic_load(&l->listens);
	return board_keep(&l->board, hears) ||
	       (hears && board_is_taken(&l->board, &left) && board_hearer(&l->board) == 0);
}

/* Until the connection is lost, the seat is, or the thread is to end. */
static void listen_on(struct pg_store *s, PGconn *pg)
{
	struct listener *l = &s->listener;
	bool ok = connect_all(l, pg) && PQsendQuery(pg, "LISTEN baton") == 1;
	while (ok && await(l->end, PQsocket(pg), POLLIN, BOARD_BEAT_MS)) {
		ok = PQconsumeInput(pg) == 1 && answer(s, pg);
		hear(s, pg);
		ok = ok && goes_on(l);
	}
	l->shy = l->board.seat != 0;
	atomic_store(&l->listens, false);
	atomic_store(&l->marked, false);
	board_rise(&l->board);
}

/* What the one that listens repeats. A mark that was made while another one did, or nobody, may
 * have been used up. */
static void follow(struct pg_store *s)
{
	struct listener *l = &s->listener;
	bool others;
	if (board_heard(&l->board, &s->base.owner.incarnation, &others))
		atomic_store(&l->marked, false);
	if (others)
		baton_store_poke(&s->base);
	uint32_t hearer = board_hearer(&l->board);
	if (hearer != l->hearer)
		atomic_store(&l->marked, false);
	l->hearer = hearer;
	atomic_store(&l->listens, hearer != 0);
}

static void *work(void *arg)
{
	struct pg_store *s = arg;
	struct listener *l = &s->listener;
	uint32_t left, bell = board_bell(&l->board);
	while (await(l->end, -1, 0, 0)) {
		follow(s);
		if (!l->shy && board_sit(&l->board)) {
			PGconn *pg = conn_start(s->info);
			listen_on(s, pg);
			PQfinish(pg);
		} else {
			left = board_is_taken(&l->board, &left) ? left + 1 : AGAIN_MS;
			board_wait(&l->board, bell, left < AGAIN_MS ? left : AGAIN_MS);
			l->shy = false;
		}
		bell = board_bell(&l->board);
	}
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
	if (!board_open(&l->board, s->listen_key)) {
		close(fd);
		return;
	}
	l->end = fd;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int failed = pthread_create(&l->thread, NULL, work, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (failed == 0)
		return;
	board_close(&l->board);
	close(fd);
	l->end = -1;
}

void listener_done(struct pg_store *s)
{
	struct listener *l = &s->listener;
	if (l->end >= 0 && s->base.pid == getpid()) {
		eventfd_write(l->end, 1);
		board_nudge(&l->board);
		pthread_join(l->thread, NULL);
	}
	if (l->end >= 0) {
		board_close(&l->board);
		close(l->end);
	}
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
