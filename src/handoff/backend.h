/* What a backend knows, for the files that it is made of. One thread has all of it. */
#ifndef HANDOFF_BACKEND_H
#define HANDOFF_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <baton/backend.h>
#include <baton/clock.h>

#include "base/arena.h"
#include "handoff/guest.h"
#include "handoff/links.h"
#include "handoff/packet.h"
#include "handoff/site.h"
#include "handoff/slate.h"

#define BACKEND_GUESTS_MAX 4096
#define BACKEND_ANSWER_MS 5000
#define BACKEND_AGAIN_MIN_MS 20
#define BACKEND_EVENTS 64
#define BACKEND_UNTOLD_MAX 64

/* A connection that was taken by its word, of which the broker was not told: that takes time, in
 * which the connection can be served. */
struct untold {
	struct token token;
	uint64_t correlation;
	uint32_t word;
	struct baton_mono when;
};

struct baton_backend {
	const struct baton_alloc *alloc;
	const struct baton_log *log;
	const struct baton_clock *clock;
	struct baton_backend_options options; /* its texts are below */
	struct site site;
	char service[WIRE_SERVICE_MAX + 1];
	char owner[BATON_NAME_MAX + 1];
	char endpoint[WIRE_ENDPOINT_MAX + 1];
	int epoll;
	int timer;
	int64_t armed; /* when it goes off; INT64_MAX: never */
	int channel;   /* -1: there is no broker */
	bool drained;  /* nothing is expected at the channel, in this call or the one before */
	bool busy;     /* there was something at the channel when it was last looked at      */
	int listener;  /* -1: somebody else is at the endpoint */
	struct baton_mono rested; /* until when nobody is accepted there; NEVER: they are */
	bool refused;             /* the broker did not want it again; to be told */
	struct baton_mono again;  /* when a broker is looked for */
	int again_ms;
	struct links offered; /* and not granted yet */
	struct links callers; /* clients that have reconnected, and say what they want */
	struct links ready;
	size_t guests;
	uint64_t questions; /* that were asked about what the broker keeps */
	struct slate slate; /* of the channel */
	struct untold untold[BACKEND_UNTOLD_MAX];
	size_t untold_count;
	struct arena arena;
	char room[WIRE_PACKET_MAX + 1];
};

/* backend.c: what all of it needs. */
struct baton_mono backend_now(const struct baton_backend *b);

/* Adds a guest to a list, which is in the order in which their time is over. */
void backend_queue(struct links *list, struct guest *guest);

/* What epoll tells about: the address of one of the descriptors, or a guest. */
bool backend_watch(struct baton_backend *b, int fd, void *what);
void backend_unwatch(const struct baton_backend *b, int fd);

void backend_turn_away(struct baton_backend *b, struct guest *guest);
bool backend_wants(const struct baton_backend *b, const struct guest *guest);

/* The guest is to be returned by the next call. */
void backend_have(struct baton_backend *b, struct guest *guest);

/* Has the descriptor of this backend become readable at that moment, or when something is due. */
void backend_timer_at(struct baton_backend *b, int64_t ns);
void backend_timer_set(struct baton_backend *b);

/* offers.c: what comes from the broker. */

/* The broker is gone, or cannot be trusted. */
void offers_lose(struct baton_backend *b);

/* What came from the broker; its descriptor is taken. */
void offers_take(struct baton_backend *b, const struct packet *packet);

/* What did not come whole. */
void offers_refuse(struct baton_backend *b, enum packet_got got, const struct packet *packet);

/* Reads the channel. False: there was nothing. */
bool offers_read(struct baton_backend *b);

/* Tells the broker what was taken since this was last called. */
void offers_tell(struct baton_backend *b);

/* enlist.c: registers with the broker. */
enum baton_err enlist(struct baton_backend *b);

/* Looks for a broker again, if it is time. */
void enlist_again(struct baton_backend *b);

#endif
