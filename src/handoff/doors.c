/* Who comes in, and what is done when descriptors run out. */
#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "handoff/state.h"

/* How many are accepted before others have their turn. */
#define TURN 64
#define PAUSE_MS 100

void doors_pause(struct baton_broker *b, bool pause)
{
	b->paused = pause;
	if (pause)
		b->paused_until = baton_mono_add(broker_now(b), baton_duration_ms(PAUSE_MS));
	source_change(b, &b->clients, pause ? 0 : EPOLLIN);
	source_change(b, &b->backends, pause ? 0 : EPOLLIN);
	listeners_pause(b, pause);
}

/* Whether there is a descriptor for the time when there are none: without it nobody is accepted, so
 * that it is the first to be there again. */
static bool reserve_have(struct baton_broker *b)
{
	if (b->reserve < 0)
		b->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return b->reserve >= 0;
}

/* Nobody can be accepted: one is told so through the descriptor that is kept for it. */
static void refuse_one(struct baton_broker *b, int listener)
{
	bool refused = false;
	if (b->reserve >= 0) {
		close(b->reserve);
		b->reserve = -1;
		int fd = site_accept(listener);
		if (fd >= 0 && listener == b->clients.fd)
			peers_turn_away(b, fd);
		if (fd >= 0)
			close(fd);
		refused = reserve_have(b) && fd >= 0;
	}
	pressure_failed(&b->pressure, refused);
	if (!refused)
		doors_pause(b, true);
}

static uint64_t fds_used(const struct baton_broker *b)
{
	/* A backend has a channel and a slate. */
	return (uint64_t)b->peers_count + 2 * (uint64_t)b->channels_count + b->passings_count +
	       b->stored_count;
}

void doors_event(struct baton_broker *b, struct source *source)
{
	int turn = source_turn(b, source, TURN);
	for (int i = 0; i < turn && !b->paused; i++) {
		if (i > 0)
			broker_tick(b);
		bool reserved = reserve_have(b);
		int fd = reserved ? site_accept(source->fd) : -1;
		if (!reserved || (fd < 0 && (errno == EMFILE || errno == ENFILE ||
		                             errno == ENOBUFS || errno == ENOMEM))) {
			refuse_one(b, source->fd);
			return;
		}
		if (fd < 0 && errno != ECONNABORTED && errno != EINTR)
			return;
		if (fd < 0)
			continue;
		pressure_accepted(&b->pressure, fds_used(b));
		if (source->kind == SOURCE_CLIENTS)
			peers_add(b, fd);
		else if (source->kind == SOURCE_LISTENER)
			peers_add_plain(b, fd, LINKS_OF(source, struct listener, source));
		else
			channels_add(b, fd);
	}
}
