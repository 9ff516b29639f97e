/* What a broker knows. One thread has all of it; only `stop` is written by others. */
#ifndef HANDOFF_STATE_H
#define HANDOFF_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <baton/broker.h>
#include <baton/clock.h>
#include <baton/id.h>

#include "base/arena.h"
#include "base/buf.h"
#include "handoff/acks.h"
#include "handoff/chains.h"
#include "handoff/fallback.h"
#include "handoff/grant.h"
#include "handoff/links.h"
#include "handoff/locator.h"
#include "handoff/pressure.h"
#include "handoff/site.h"
#include "handoff/tokens.h"
#include "wire/frame.h"
#include "wire/handoff.h"
#include "wire/hello.h"

#define SERVICES_MAX 1024
#define SERVICE_BUCKETS 256
#define CHANNELS_MAX 4096
#define CHANNEL_WRONG_MAX 3
#define LATENCIES 1024
#define LEFTOVERS_MAX 64

/* What epoll tells about. */
enum source_kind {
	SOURCE_STOP = 1,
	SOURCE_CLIENTS,  /* the socket at which clients arrive  */
	SOURCE_BACKENDS, /* the socket at which backends arrive */
	SOURCE_LOCATOR,  /* where lanes are */
	SOURCE_PEER,
	SOURCE_CHANNEL
};

struct source {
	enum source_kind kind;
	int fd;             /* -1: closed                                                  */
	bool lasting;       /* somebody else has opened it, and goes on with it            */
	struct links links; /* in one of the broker's lists, or in that of what is to be freed */
};

/* A client that has not been answered. */
struct peer {
	struct source source;
	struct wire_reader reader;
	struct site_peer who;
	struct baton_mono until;
	uint64_t connection;
	struct buf out; /* what a question was answered, and how much of it is sent */
	size_t out_sent;
};

struct service {
	struct service *next; /* in its bucket */
	char name[BATON_SERVICE_MAX + 1];
	struct links channels;
};

/* A backend. */
struct channel {
	struct source source;
	struct links of_service; /* in none before it is registered */
	struct service *service; /* NULL: not registered            */
	struct site_peer who;
	struct baton_mono until; /* to register */
	uint64_t id;
	uint64_t generation;
	char endpoint[WIRE_ENDPOINT_MAX + 1];
	char owner[BATON_NAME_MAX + 1];
	uint64_t capabilities;
	unsigned wrong; /* tokens */
	struct fallback_attempts attempts;
	uint64_t pending;
	uint64_t granted;
	uint64_t failed;
};

/* A connection that is on its way to a backend. */
struct passing {
	enum passing_state state; /* 0: the place is free */
	int fd;
	uint64_t connection;
	struct channel *channel;
	struct token token;
	struct baton_mono since;
	uint32_t next_free;
};

enum count {
	COUNT_CLIENTS = 0,  /* accepted                                      */
	COUNT_OFFERED,      /* connections that were offered                 */
	COUNT_GRANTED,      /* and are the backend's                         */
	COUNT_RECONNECTED,  /* clients that were told to reconnect at once   */
	COUNT_REFUSED,      /* clients that were refused                     */
	COUNT_SILENT,       /* clients that did not say what they want       */
	COUNT_NONSENSE,     /* clients that said something else              */
	COUNT_STRAY,        /* acknowledgements of what is not on its way    */
	COUNT_WRONG_TOKENS, /* acknowledgements with a wrong token           */
	COUNT_BROKEN,       /* backends that were cut off for what they said */
	COUNTS
};

struct baton_broker {
	const struct baton_alloc *alloc;
	const struct baton_log *log;
	const struct baton_clock *clock;
	struct site site;
	struct baton_duration hello;
	struct baton_duration park;
	uint32_t clients_max;
	void (*alive)(void *arg);
	void *arg;
	struct baton_duration alive_every;
	struct baton_mono alive_at; /* when that is called next */

	int lock;
	int epoll;
	int reserve; /* a descriptor for the time when there are none; -1: it is used up */
	struct source stop;
	struct source clients;
	struct source backends;
	struct source answers;
	struct locator *locator; /* NULL: there are no lanes here */
	bool stopping;
	bool paused; /* nobody is accepted until then */
	struct baton_mono paused_until;
	struct pressure pressure;

	struct links waiting;  /* sources that have to say what they want, the oldest first */
	struct links parked;   /* peers whose service has no backend, the oldest first      */
	struct links asking;   /* peers that want a lane, the oldest first                  */
	struct links writing;  /* peers that have not read their answer, the oldest first   */
	struct links channels; /* that are registered */
	struct links dead;     /* freed once no event can lead to them */
	uint32_t peers_count;
	uint32_t channels_count;

	struct baton_id seed;
	struct service *services[SERVICE_BUCKETS];
	uint32_t services_count;

	/* Endpoints of backends that are gone, to be removed; some more than that stay. */
	char leftovers[LEFTOVERS_MAX][SITE_PATH_MAX + 1];
	size_t leftovers_count;

	struct tokens tokens;
	struct acks acks;
	struct passing *passings;
	uint32_t passings_max;
	uint32_t passings_free;
	uint32_t passings_count;
	struct chains by_connection;
	uint64_t connections; /* the last id of a connection */
	uint64_t backend_ids;

	uint64_t counts[COUNTS];
	uint64_t reasons[FALLBACK_REASONS + 1];
	int64_t latencies[LATENCIES]; /* ns, a ring */
	uint64_t latencies_count;

	struct arena arena; /* for what is handled now */
	char room[WIRE_PACKET_MAX + 1];
};

static inline struct baton_mono broker_now(const struct baton_broker *b)
{
	return b->clock->now(b->clock);
}

/* broker.c: what all of it needs. */

/* Has epoll tell about a source from now on; about `events` only. False: it cannot. */
bool source_watch(struct baton_broker *b, struct source *source, uint32_t events);
bool source_change(struct baton_broker *b, struct source *source, uint32_t events);

/* Takes a source out of epoll; its descriptor stays open. */
void source_ignore(struct baton_broker *b, struct source *source);

/* Closes it, unless its descriptor was taken, and leaves the memory for the end of the round. */
void source_end(struct baton_broker *b, struct source *source);

/* doors.c: who comes in. */
void doors_event(struct baton_broker *b, struct source *source);
void doors_pause(struct baton_broker *b, bool pause);

/* peers.c: what clients want. */
void peers_add(struct baton_broker *b, int fd);
void peers_event(struct baton_broker *b, struct peer *peer, uint32_t events);
void peers_refuse(struct baton_broker *b, struct peer *peer, enum wire_code code,
                  const char *reason, struct baton_duration retry_after);
/* Tells somebody for whom there is no room; the descriptor stays open. */
void peers_turn_away(struct baton_broker *b, int fd);
void peers_end(struct baton_broker *b, struct peer *peer);
/* Says where lanes are to those who asked. */
void peers_placed(struct baton_broker *b);
/* Answers those who wait for that service. */
void peers_unpark(struct baton_broker *b, const struct service *service);

/* routes.c: what a client is answered. */
void routes_take(struct baton_broker *b, struct peer *peer, const struct wire_hello *hello);
void routes_place(struct baton_broker *b, struct peer *peer, const struct wire_hello *hello,
                  const struct locator_answer *answer);

/* channels.c: backends. */
void channels_add(struct baton_broker *b, int fd);
void channels_event(struct baton_broker *b, struct channel *channel);
/* Ends a backend; what is on its way to it is taken back for that reason. */
void channels_end(struct baton_broker *b, struct channel *channel, enum fallback_reason reason);

/* services.c: who has the connections of which service. */
struct service *services_find(struct baton_broker *b, struct baton_str name);
/* BATON_FULL, BATON_NO_MEMORY. */
enum baton_err services_make(struct baton_broker *b, struct baton_str name, struct service **ret);
/* The backend with the highest generation; NULL: there is none. */
struct channel *services_current(const struct service *service);
/* The same of those that speak for that runner, or for none if it is empty. */
struct channel *services_newest(const struct service *service, struct baton_str owner);
/* The youngest backend that speaks for the runner, of that service unless it is empty; NULL. */
struct channel *services_owned(struct baton_broker *b, const char *owner, struct baton_str service);
void services_done(struct baton_broker *b);

/* passings.c: connections on their way. */
enum baton_err passings_init(struct baton_broker *b, uint32_t max, int64_t ack_ms);
void passings_done(struct baton_broker *b);
/* Offers the connection of a peer to a backend, after the token was told to the client. From here
 * on it is not the peer's any more. */
void passings_offer(struct baton_broker *b, struct peer *peer, struct channel *channel,
                    const struct wire_hello *hello, const struct token *token);
void passings_ack(struct baton_broker *b, struct channel *channel, const struct wire_ack *ack);
/* Takes back those that were not acknowledged in time. */
void passings_expire(struct baton_broker *b, struct baton_mono now);
/* Takes back all that are on their way to the backend. */
void passings_drop(struct baton_broker *b, struct channel *channel, enum fallback_reason reason);

/* report.c: what it tells about itself. */
enum baton_err report_encode(struct baton_broker *b, struct buf *out);

#endif
