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
#include "handoff/definition.h"
#include "handoff/fallback.h"
#include "handoff/grant.h"
#include "handoff/links.h"
#include "handoff/locator.h"
#include "handoff/pressure.h"
#include "handoff/quota.h"
#include "handoff/site.h"
#include "handoff/slate.h"
#include "handoff/starts.h"
#include "handoff/tokens.h"
#include "wire/frame.h"
#include "wire/handoff.h"
#include "wire/hello.h"

#define SERVICES_MAX 1024
#define SERVICE_BUCKETS 256
#define CHANNELS_MAX 4096
#define CHANNEL_WRONG_MAX 3
#define CHANNEL_UNANSWERED_MAX 3 /* offers, of a service that is probed */
#define LATENCIES 1024
#define LEFTOVERS_MAX 64

/* What epoll tells about. */
enum source_kind {
	SOURCE_STOP = 1,
	SOURCE_CLIENTS,  /* the socket at which clients arrive  */
	SOURCE_BACKENDS, /* the socket at which backends arrive */
	SOURCE_LISTENER, /* a socket of TCP for clients that know nothing of Baton */
	SOURCE_LOCATOR,  /* where lanes are */
	SOURCE_PEER,
	SOURCE_CHANNEL,
	SOURCE_CHILD /* a process that was started; its descriptor is a pidfd */
};

struct source {
	enum source_kind kind;
	int fd;             /* -1: closed                                                  */
	bool lasting;       /* somebody else has opened it, and goes on with it            */
	bool watched;       /* by epoll                                                    */
	uint64_t round;     /* in which epoll has told about it last                       */
	struct links links; /* in one of the broker's lists, or in that of what is to be freed */
};

#define LISTENERS_MAX 64
#define LISTENER_NAMES_MAX 64

struct listener_name {
	const char *name;
	struct service *service;
};

/* Where clients come that know nothing of Baton. */
struct listener {
	struct source source;
	const char *address;
	struct service *others; /* of those without one of the names; NULL: they are turned away */
	struct listener_name names[LISTENER_NAMES_MAX];
	size_t names_count; /* 0: nobody is asked for a name */
};

/* A socket that was taken over, and which no listener has yet. */
struct inherited {
	const char *address;
	int fd;
};

/* A client that has not been answered. */
struct peer {
	struct source source;
	struct wire_reader reader;
	struct site_peer who;
	struct baton_mono until;
	uint64_t connection;
	const struct listener *listener; /* where it came; NULL: it speaks the protocol */
	struct service *service;         /* which it wants, once that is known          */
	bool counted;                    /* by the limits of how many may come          */
	struct wire_trace trace;         /* of its question, while that is looked at */
	struct buf out; /* what a question was answered, and how much of it is sent */
	size_t out_sent;
};

struct service {
	struct service *next; /* in its bucket */
	char name[BATON_SERVICE_MAX + 1];
	struct links channels;
	const struct definition *definition; /* NULL: its backends register by themselves */
	struct child *main;                  /* that registers, or will; NULL: none runs  */
	uint32_t commands;                   /* that run for a connection each            */
	struct starts starts;
	struct baton_mono used; /* when it was last wanted */
	uint32_t stored;        /* descriptors that are kept for it */
	struct quota_use use;   /* of the rate of its definition     */
};

/* A descriptor that is kept for the backends of a service. */
struct stored {
	struct links links;
	struct service *service;
	char name[WIRE_STORED_NAME_MAX + 1];
	int fd;
	struct baton_mono until;
	const struct channel *taker; /* it was sent there, and may have arrived; NULL: nowhere */
};

enum child_state {
	CHILD_STARTING = 1, /* it is to register until then              */
	CHILD_UP,           /* it has                                    */
	CHILD_STOPPING,     /* it is to end, and is killed by then       */
	CHILD_COMMAND       /* it has one connection                     */
};

/* A process that the broker has started for a service. */
struct child {
	struct source source;
	struct service *service;
	int32_t pid;
	enum child_state state;
	struct baton_mono until;
	struct baton_mono probe_at; /* when it is up: to be asked whether it lives */
	bool other; /* a child of the broker before this one: somebody else may have reaped it */
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
	struct slate slate;
	unsigned wrong; /* tokens */
	struct fallback_attempts attempts;
	uint64_t pending;
	uint64_t granted;
	uint64_t failed;
	bool leaving;                /* its process was told to end: it gets nothing else */
	uint64_t probe;              /* which it has not answered; 0: it has, or there was none */
	unsigned unanswered;         /* offers in a row, and nothing else was heard of it        */
	struct baton_mono silent_at; /* when the last of these was over; others of that time do not
	                                count */
};

/* A connection that is on its way to a backend. */
struct passing {
	enum passing_state state; /* 0: the place is free */
	int fd;
	uint64_t connection;
	struct channel *channel;
	struct token token;
	struct baton_mono since;
	uint32_t word;      /* of the channel's slate, by which it is taken; 0: by a Grant */
	struct links links; /* with others that have a word                                */
	bool seen;          /* it was taken when the broker looked last                    */
	uint32_t next_free;
};

enum count {
	COUNT_CLIENTS = 0,  /* accepted                                      */
	COUNT_PLAIN,        /* of these, those that know nothing of Baton    */
	COUNT_OFFERED,      /* connections that were offered                 */
	COUNT_GRANTED,      /* and are the backend's                         */
	COUNT_RECONNECTED,  /* clients that were told to reconnect at once   */
	COUNT_REFUSED,      /* clients that were refused                     */
	COUNT_SILENT,       /* clients that did not say what they want       */
	COUNT_NONSENSE,     /* clients that said something else              */
	COUNT_STRAY,        /* acknowledgements of what is not on its way    */
	COUNT_WRONG_TOKENS, /* acknowledgements with a wrong token           */
	COUNT_BROKEN,       /* backends that were cut off for what they said */
	COUNT_STARTS,       /* of services                                   */
	COUNT_FAILED,       /* starts after which nobody registered          */
	COUNT_STORED_ENDED, /* descriptors that were kept for too long       */
	COUNT_COMMANDS,     /* that were run for a connection each           */
	COUNT_HUNG,         /* services that were replaced                   */
	COUNT_LIMITED,      /* of those that were refused: came too often    */
	COUNT_TOO_LATE,     /* of these, too: their time was over            */
	COUNTS
};

struct baton_broker {
	const struct baton_alloc *alloc;
	const struct baton_log *log;
	const struct baton_clock *clock;
	struct baton_mono now; /* as broker_now() says */
	struct site site;
	uint32_t uid; /* whose broker it is */
	struct baton_duration hello;
	struct baton_duration park;
	void (*alive)(void *arg);
	void *arg;
	struct baton_duration alive_every;
	struct baton_mono alive_at; /* when that is called next */
	bool (*may_succeed)(void *arg, int32_t pid, bool given);
	void (*succeeded)(void *arg, int32_t pid);
	struct baton_str will;    /* for the next broker; in `kept` */
	struct baton_str bequest; /* of the one before; in `kept`   */

	void (*keep_safe)(void *arg, const char *name, int fd);
	const struct baton_broker_safe *safe; /* what was kept so, while it is opened */
	int *safe_fds;                        /* of these; -1: it was taken           */
	size_t safe_count;

	uint32_t clients_max;
	struct baton_broker_rate rate;
	struct quota_users users;
	int lock;
	int epoll;
	uint64_t rounds; /* of events */
	bool crowded;    /* epoll may have left some out */
	int reserve;     /* a descriptor for the time when there are none; -1: it is used up */
	struct source stop;
	struct source clients;
	struct source backends;
	struct source answers;
	struct locator *locator; /* NULL: there are no lanes here */
	bool stopping;
	bool paused;    /* nobody is accepted until then */
	bool strangers; /* some services are for other users too */
	bool lent;      /* all of it is another broker's too, which goes on: nothing is touched */
	struct baton_mono paused_until;
	struct pressure pressure;

	struct peer *fresh; /* one that is not watched by epoll yet, as its Hello is about to come;
	                          NULL: none                                                  */
	struct links waiting;  /* sources that have to say what they want, the oldest first */
	struct links parked;   /* peers whose service has no backend, the oldest first      */
	struct links asking;   /* peers that want a lane, the oldest first                  */
	struct links writing;  /* peers that have not read their answer, the oldest first   */
	struct links channels; /* that are registered */
	struct links mains;    /* processes that have a service, or are to have it          */
	struct links commands; /* processes that have a connection each                     */
	struct links again;    /* peers that were taken over, and are to be answered        */
	struct links dead;     /* freed once no event can lead to them */
	uint32_t peers_count;
	uint32_t channels_count;

	struct links stored; /* descriptors that are kept */
	uint32_t stored_count;
	uint32_t services_count;
	struct baton_mono stored_until; /* the earliest end of one */

	struct listener *listeners;
	size_t listeners_count;
	struct inherited inherited[LISTENERS_MAX];
	size_t inherited_count;

	struct arena kept; /* what lives as long as the broker */
	struct definition *definitions;
	size_t definitions_count;

	struct baton_id seed;
	struct service *services[SERVICE_BUCKETS];

	/* Endpoints of backends that are gone, to be removed; some more than that stay. */
	char leftovers[LEFTOVERS_MAX][SITE_PATH_MAX + 1];
	size_t leftovers_count;

	struct token_pool pool;
	struct tokens tokens;
	struct acks acks;
	struct passing *passings;
	uint32_t passings_max;
	uint32_t passings_free;
	uint32_t passings_count;
	struct links by_word;      /* those of them that have a word */
	struct baton_mono look_at; /* when these are looked at       */
	struct chains by_connection;
	uint64_t connections; /* the last id of a connection */
	uint64_t backend_ids;
	uint64_t probes; /* the last id of one */

	uint64_t counts[COUNTS];
	uint64_t reasons[FALLBACK_REASONS + 1];
	int64_t latencies[LATENCIES]; /* ns, a ring */
	uint64_t latencies_count;

	struct arena arena; /* for what is handled now */
	char room[WIRE_PACKET_MAX + 1];
};

/* When the broker took up what it does now. */
static inline struct baton_mono broker_now(const struct baton_broker *b)
{
	return b->now;
}

/* It takes up the next thing, or has waited: the clock is read once for each, as all that is done
 * about it takes microseconds. */
static inline void broker_tick(struct baton_broker *b)
{
	b->now = b->clock->now(b->clock);
}

/* broker.c: what all of it needs. */

/* Has epoll tell about a source from now on; about `events` only. False: it cannot. */
bool source_watch(struct baton_broker *b, struct source *source, uint32_t events);
bool source_change(struct baton_broker *b, struct source *source, uint32_t events);

/* Takes a source out of epoll; its descriptor stays open. */
void source_ignore(struct baton_broker *b, struct source *source);

/* Closes it, unless its descriptor was taken, and leaves the memory for the end of the round. */
void source_end(struct baton_broker *b, struct source *source);

/* How much is taken from a source that epoll tells about: all there is, up to `turn`, if there was
 * something in the round before too, or epoll had no room to tell about all in this one; else one,
 * as there is hardly more, and it would be told. */
int source_turn(struct baton_broker *b, struct source *source, int turn);

/* doors.c: who comes in. */
void doors_event(struct baton_broker *b, struct source *source);
void doors_pause(struct baton_broker *b, bool pause);

/* listeners.c: where clients come that know nothing of Baton. */
enum baton_err listeners_open(struct baton_broker *b, const struct baton_broker_listener *all,
                              size_t count);
void listeners_close(struct baton_broker *b);
void listeners_pause(struct baton_broker *b, bool pause);
struct listener *listeners_find(struct baton_broker *b, struct baton_str address);
/* The service of those who ask for that name, which may be NULL; NULL: there is none. */
struct service *listeners_service(const struct listener *l, const char *name);

/* peers.c: what clients want. */
void peers_add(struct baton_broker *b, int fd);
/* One that came to a listener. */
void peers_add_plain(struct baton_broker *b, int fd, const struct listener *listener);
void peers_event(struct baton_broker *b, struct peer *peer, uint32_t events);
void peers_refuse(struct baton_broker *b, struct peer *peer, enum wire_code code,
                  const char *reason, struct baton_duration retry_after);
/* Tells somebody for whom there is no room; the descriptor stays open. */
void peers_turn_away(struct baton_broker *b, int fd);
void peers_end(struct baton_broker *b, struct peer *peer);
/* Says where lanes are to those who asked. */
void peers_placed(struct baton_broker *b);
/* Answers those who wait for that service, as long as it can take them. */
void peers_unpark(struct baton_broker *b, const struct service *service);
/* Whether somebody waits for it, and telling all of them that it is in vain. */
bool peers_wait_for(const struct baton_broker *b, const struct service *service);
void peers_disappoint(struct baton_broker *b, const struct service *service, const char *reason,
                      struct baton_duration retry_after);
/* Whether it is another user's, who is served only where a definition says so. */
bool peers_is_stranger(const struct baton_broker *b, const struct peer *peer);

/* routes.c: what a client is answered. */
void routes_take(struct baton_broker *b, struct peer *peer, const struct wire_hello *hello);
/* For one that came to a listener, and whose service is known. */
void routes_plain(struct baton_broker *b, struct peer *peer);
void routes_place(struct baton_broker *b, struct peer *peer, const struct wire_hello *hello,
                  const struct locator_answer *answer);

/* What a client is told before its connection is another process's. Appended to `frame`. */
struct route_news {
	const char *endpoint; /* where to reconnect */
	bool plain;           /* who is there knows nothing of this protocol */
	bool handed;          /* it is on its way, or there */
	struct baton_str token;
};
enum baton_err routes_negotiated(struct baton_broker *b, const struct peer *peer,
                                 const struct route_news *news, struct buf *frame);

/* children.c: processes that the broker starts. */

/* Reads the definitions of that folder. */
enum baton_err children_define(struct baton_broker *b, const char *folder);
/* Does what it takes that the service has a backend some time. BATON_OK: somebody is on the way.
 * BATON_BUSY: not before *ret_retry_after, as the detail says. */
enum baton_err children_want(struct baton_broker *b, struct service *service,
                             struct baton_duration *ret_retry_after);
/* Whether a command may be run for one more connection. */
bool children_have_room(const struct service *service);
/* Runs a command for the connection, which is the command's then; the peer stays. `first` is
 * written to it before. Errors are those of spawn(). */
enum baton_err children_run(struct baton_broker *b, struct service *service,
                            const struct peer *peer, struct baton_str first);
void children_event(struct baton_broker *b, struct child *child);
/* That backend has registered. */
void children_registered(struct baton_broker *b, const struct channel *channel);
/* A backend of the service is gone: it has left, and may take its time to end; or it was cut off,
 * and has to come back in the time that it has to start. */
void children_lost(struct baton_broker *b, struct service *service, bool left);
/* It leaves offers unanswered. If the broker has started it, and probes it, another one is. */
void children_silent(struct baton_broker *b, const struct channel *channel);
void children_timers(struct baton_broker *b, struct baton_mono now);
struct baton_mono children_next(const struct baton_broker *b);
/* Tells all services that were started to end, and forgets them. */
void children_done(struct baton_broker *b);

/* channels.c: backends. */
void channels_add(struct baton_broker *b, int fd);
void channels_event(struct baton_broker *b, struct channel *channel);
/* Ends a backend; what is on its way to it is taken back for that reason. */
void channels_end(struct baton_broker *b, struct channel *channel, enum fallback_reason reason);

/* services.c: who has the connections of which service. */
struct service *services_find(struct baton_broker *b, struct baton_str name);
/* With too many of them one goes that nobody has, wants or has anything kept for. BATON_FULL: there
 * is none. BATON_NO_MEMORY. */
enum baton_err services_make(struct baton_broker *b, struct baton_str name, struct service **ret);
/* The backend with the highest generation; NULL: there is none. */
struct channel *services_current(const struct service *service);
/* The next one after that one; NULL. */
struct channel *services_older(const struct service *service, const struct channel *than);
/* The same of those that speak for that runner, or for none if it is empty. */
struct channel *services_newest(const struct service *service, struct baton_str owner);
/* The youngest backend that speaks for the runner, of that service unless it is empty; NULL. */
struct channel *services_owned(struct baton_broker *b, const char *owner, struct baton_str service);
void services_done(struct baton_broker *b);

/* passings.c: connections on their way. */
enum baton_err passings_init(struct baton_broker *b, uint32_t max, int64_t ack_ms);
void passings_done(struct baton_broker *b);
/* Offers the connection of a peer to a backend, after the token was told to the client. From here
 * on it is not the peer's any more. False: it is the peer's again, as it has come to a listener,
 * and the backend has certainly not got it. */
bool passings_offer(struct baton_broker *b, struct peer *peer, struct channel *channel,
                    const struct wire_hello *hello, const struct token *token);
void passings_ack(struct baton_broker *b, struct channel *channel, const struct wire_ack *ack);
/* Lets those go that were taken by their words, and of which nobody has told; and when. */
void passings_look(struct baton_broker *b, struct baton_mono now);
struct baton_mono passings_next(const struct baton_broker *b);
/* Takes back those that were not acknowledged in time. */
void passings_expire(struct baton_broker *b, struct baton_mono now);
/* The broker has stood still for that long: acknowledgements that lie there are not late. */
void passings_delay(struct baton_broker *b, struct baton_duration stood);
/* Takes back all that are on their way to the backend. */
void passings_drop(struct baton_broker *b, struct channel *channel, enum fallback_reason reason);

/* stored.c: descriptors that are kept for backends. */

/* Does what a backend asks; of a put *fd, which becomes -1 if it is kept. False: it makes no
 * sense. */
bool stored_ask(struct baton_broker *b, struct channel *channel, const struct wire_keep *ask,
                int *fd);
/* Answers a put whose descriptor did not get through. */
void stored_refuse(struct baton_broker *b, struct channel *channel, const struct wire_keep *ask);
/* Whether that may be kept; else why not is the detail. */
enum wire_kept_result stored_judge(const struct baton_broker *b, const struct service *service,
                                   struct baton_str name, int fd);
/* Keeps a copy of *s, and its descriptor. False: there is no memory. */
bool stored_new(struct baton_broker *b, const struct stored *s);
/* What was sent to that backend, and did not arrive, is there for others again. */
void stored_lost(struct baton_broker *b, const struct channel *channel);
void stored_expire(struct baton_broker *b, struct baton_mono now);
struct wire_stored stored_view(const struct baton_broker *b, const struct stored *s);
void stored_done(struct baton_broker *b);

/* safe.c: what somebody keeps in case that this process dies. */
enum baton_err safe_init(struct baton_broker *b, const struct baton_broker_options *o);
/* One that was kept for that address. False: there is none. */
bool safe_listener_take(struct baton_broker *b, const char *address, int *ret_fd);
/* Takes in what was kept for backends, and discards what is of no use. */
void safe_settle(struct baton_broker *b);
/* Closes what was not taken. */
void safe_done(struct baton_broker *b);
/* Has it kept, or not any more. */
void safe_listener(struct baton_broker *b, const struct listener *l);
void safe_stored(struct baton_broker *b, const struct stored *s, bool kept);

/* upgrade.c and inherit.c: another broker takes the place of this one, or this one of another. */

/* Hands everything to the broker that asks at that channel. Afterwards either `lent` is set, or the
 * channel has ended, and this broker goes on. */
void upgrade_give(struct baton_broker *b, struct channel *channel, const struct wire_move *ask);
/* Before it is closed, if it is lent: so that descriptors are closed, and nothing else is done. */
void upgrade_forget(struct baton_broker *b);
/* Takes over what a broker has that runs. *ret_done is false if none does. After an error `lent`
 * may be set, and the other one goes on. */
enum baton_err inherit(struct baton_broker *b, const struct baton_broker_options *o,
                       bool *ret_done);
/* Each takes one thing over, with its descriptor, which becomes -1 then. */
enum baton_err channels_adopt(struct baton_broker *b, const struct wire_item *item, int *fd);
enum baton_err passings_adopt(struct baton_broker *b, const struct wire_item *item,
                              struct channel *channel, int *fd);
enum baton_err children_adopt(struct baton_broker *b, const struct wire_item *item, int *fd);
enum baton_err peers_adopt(struct baton_broker *b, const struct wire_item *item, int *fd);
/* Answers those that waited for an answer, as if they had just asked. */
void peers_again(struct baton_broker *b);

/* report.c: what it tells about itself. */
const char *report_count_name(enum count count);
enum baton_err report_encode(struct baton_broker *b, struct buf *out);

#endif
