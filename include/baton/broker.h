/* A broker: hands the connections of clients over to the processes that own them.
 *
 * A client connects to the broker's socket and names a service. The broker passes the open
 * connection to the backend of that service and leaves the data path; when that does not work, the
 * client reconnects to the backend's own endpoint. <baton/client.h> and <baton/backend.h> are the
 * other two sides.
 *
 * The sockets lie in a folder of this user alone, and nobody else is talked to. */
#ifndef BATON_BROKER_H
#define BATON_BROKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <baton/alloc.h>
#include <baton/api.h>
#include <baton/err.h>
#include <baton/log.h>
#include <baton/str.h>
#include <baton/time.h>

BATON_BEGIN

struct baton_broker;

/* The longest name of a service, which is of [a-z0-9-]. */
#define BATON_SERVICE_MAX 64

#define BATON_BROKER_ACK_MS 5000
#define BATON_BROKER_HELLO_MS 30000
#define BATON_BROKER_PARK_MS 5000
#define BATON_BROKER_PENDING_MAX 1024
#define BATON_BROKER_CLIENTS_MAX 65536

/* Where a lane is. */
struct baton_broker_place {
	char owner[BATON_NAME_MAX + 1];    /* the runner that has its shard; "": nobody does */
	char endpoint[BATON_NAME_MAX + 1]; /* of that one, where clients find it if none of its
	                                      backends is registered here; may be "" */
};

/* Where clients come that know nothing of Baton, as any client of TCP. */
struct baton_broker_listener {
	const char *address;      /* ADDRESS:PORT, [ADDRESS]:PORT; of port 0 any. Several with the
	                             same one share it */
	struct baton_str service; /* which they get */
	const char *name;         /* those who ask for it: by the server name of TLS, or the Host of
	                             HTTP; NULL: all others */
};

/* Descriptors that somebody keeps safe in case that the broker dies have names of up to
 * BATON_SAFE_NAME_MAX printable characters of ASCII without a colon, with this prefix. */
#define BATON_SAFE_NAME_MAX 254
#define BATON_SAFE_PREFIX "baton/"

struct baton_broker_safe {
	const char *name;
	int fd;
};

#define BATON_BROKER_WILL_MAX 4096

/* How many clients are answered in a time: so many may come at once, and there is room for others
 * one by one, evenly over the window. Beyond that they are refused, and told when to come again. */
#define BATON_BROKER_RATE_MAX 1000000
struct baton_broker_rate {
	uint32_t count;               /* up to BATON_BROKER_RATE_MAX; 0: there is no limit */
	struct baton_duration window; /* 1 ms to a day */
};

/* All zeros is a broker as most want it. */
struct baton_broker_options {
	const char *folder;          /* where its sockets are; NULL: that of $BATON_BROKER, else the
	                               folder baton in $XDG_RUNTIME_DIR, else one of this user's */
	struct baton_duration ack;   /* for a backend to acknowledge; 0: BATON_BROKER_ACK_MS */
	struct baton_duration hello; /* for a client to say what it wants, and for a backend to
	                                register; 0: BATON_BROKER_HELLO_MS */
	struct baton_duration park; /* how long clients wait for a service whose backend is gone; 0:
	                               BATON_BROKER_PARK_MS */
	const char *services;       /* a folder with a file NAME.conf for each service that the
	                               broker starts itself, as baton-serve(1) says; NULL: none */
	bool upgrade; /* take the place of the broker that runs in the folder, if one does, with all
	                 that it has; the sockets of above are not used then */
	const struct baton_broker_listener *listeners;
	size_t listeners_count;        /* 0: there are none */
	uint32_t pending_max;          /* connections on their way at once; beyond that clients
	                               reconnect; 0: BATON_BROKER_PENDING_MAX */
	uint32_t clients_max;          /* clients that have not been answered; beyond that they are
	                               refused; 0: BATON_BROKER_CLIENTS_MAX */
	struct baton_broker_rate rate; /* of the clients of each user, which those of `listeners`
	                                  are not */

	/* Says where a lane is, for clients that ask for one instead of a service. Called by a
	 * thread of the broker's own, one at a time; it may take as long as it wants, but clients
	 * wait no longer than `park`, and baton_broker_close() waits for it.
	 *
	 * BATON_OK: *ret, which is zeros before. BATON_NOT_FOUND: there is no such queue. Anything
	 * else: it is not known now. NULL: there are no lanes here. */
	enum baton_err (*where)(void *arg, struct baton_str queue, struct baton_str lane,
	                        struct baton_broker_place *ret);
	void *arg;

	/* Called with `arg` by baton_broker_run() itself, at the latest that long after the last
	 * time, and when it begins to end: who is told so that the broker lives learns when it
	 * hangs. NULL: never. */
	void (*alive)(void *arg);
	struct baton_duration alive_every; /* 0: only when it begins to end */

	/* Sockets that listen already, in its folder, such as those of a service manager: "broker"
	 * of type stream for clients, "backends" of type seqpacket. They are the broker's from the
	 * call on, and their files stay when it ends, for the next one. 0: it makes them. */
	int clients_fd;
	int backends_fd;

	/* Keeps a copy of a descriptor safe in case that this process dies, as service managers do,
	 * under that name, in the place of what it had under it; -1: it is not needed any more.
	 * These are the sockets at which it listens for `listeners`, and what it keeps for backends
	 * (<baton/backend.h>). Called with `arg` by baton_broker_open() and baton_broker_run(), and
	 * not when the broker ends in order: whoever keeps them decides then. NULL: nobody does. */
	void (*keep_safe)(void *arg, const char *name, int fd);
	/* What was kept so. The descriptors are the broker's from the call on; what is of no use
	 * any more is closed, and said so as above. Borrowed until baton_broker_open() returns. */
	const struct baton_broker_safe *safe;
	size_t safe_count;

	/* Called with `arg` by baton_broker_run(), when another broker wants to take its place, by
	 * `upgrade`: whether the process of that number may, where `given` says whether one of the
	 * sockets is somebody else's, who may need to know of it; and once it has. NULL: it may,
	 * unless one is. */
	bool (*may_succeed)(void *arg, int32_t pid, bool given);
	void (*succeeded)(void *arg, int32_t pid);
	/* What that other one finds as baton_broker_will(), up to BATON_BROKER_WILL_MAX bytes;
	 * empty: what this one has found. It also gets `alive_every`, if it has none of its own. */
	struct baton_str will;

	const struct baton_log *log;     /* borrowed; NULL: none */
	const struct baton_alloc *alloc; /* NULL: that of the C library */
};

/* Opens a broker: from here on clients and backends can connect.
 *
 * BATON_BUSY:    another broker runs in that folder, or somebody else listens there, or at an
 *                address.
 * BATON_INVALID: the folder is no absolute path, belongs to somebody else, or is open to others; or
 *                something that is no socket is in the way; or a socket that was given, an
 *                address, or a file of `services` is wrong.
 * BATON_SYSTEM, BATON_NO_MEMORY. *ret is untouched unless BATON_OK.
 * One thread at a time; not across fork(). */
BATON_API enum baton_err baton_broker_open(const struct baton_broker_options *options,
                                           struct baton_broker **ret);

/* Works until baton_broker_stop() is called. Then it accepts nobody else, ends what is on its way,
 * which takes no longer than a backend has to acknowledge, and returns.
 *
 * It also returns when another broker has taken its place, by `upgrade`; then baton_broker_close()
 * touches nothing that the other one has.
 *
 * BATON_OK. BATON_SYSTEM: it cannot wait for events; errno says why. */
BATON_API enum baton_err baton_broker_run(struct baton_broker *broker);

/* Makes baton_broker_run() return; if it is called before, at once. From any thread, and from a
 * signal handler. */
BATON_API void baton_broker_stop(struct baton_broker *broker);

/* Closes everything and removes the sockets. NULL is fine. */
BATON_API void baton_broker_close(struct baton_broker *broker);

/* The folder of its sockets. Lives as long as the broker. */
BATON_API const char *baton_broker_folder(const struct baton_broker *broker);

/* What the broker left whose place this one has taken; empty: nothing, or there was none. Lives as
 * long as the broker. */
BATON_API struct baton_str baton_broker_will(const struct baton_broker *broker);

/* What has become of a service that the broker starts itself. */
enum baton_broker_service_state {
	BATON_SERVICE_NOT_STARTED = 0, /* the broker starts no such service */
	BATON_SERVICE_DOWN,            /* nobody has wanted it yet, or it was idle */
	BATON_SERVICE_STARTING,        /* it has not registered yet */
	BATON_SERVICE_UP,
	BATON_SERVICE_GIVEN_UP /* it did not stay; not started again before `retry_after` */
};

/* One backend as the broker sees it, or a service that has none now. */
struct baton_broker_backend {
	struct baton_str service;
	struct baton_str endpoint; /* empty: clients cannot reconnect */
	struct baton_str owner;    /* the runner that it speaks for; empty: none */
	uint64_t generation;
	int32_t pid;
	bool current;     /* it gets the connections of its service */
	bool takes;       /* connections are handed over to it */
	bool repeatable;  /* without waiting for a Grant */
	bool adopted;     /* somebody else speaks for it */
	uint64_t pending; /* on their way to it */
	uint64_t granted;
	uint64_t failed;
	struct baton_duration retry_after; /* until it is offered connections again; 0: it is */
	bool command; /* a command is run for each connection; it is no backend */
	bool fd3;     /* which has the connection as its descriptor 3 */
	enum baton_broker_service_state state;
	uint64_t starts;   /* how often the broker has started the service */
	uint64_t commands; /* that run now */
};

struct baton_broker_counter {
	struct baton_str name;
	uint64_t value;
};

/* A descriptor that it keeps for the backends of a service, as <baton/backend.h> says. */
struct baton_broker_stored {
	struct baton_str service;
	struct baton_str name;
	struct baton_duration
		left; /* until it is closed; BATON_DURATION_FOREVER: when it is taken */
};

/* What a broker tells about itself. */
struct baton_broker_status {
	struct baton_str version;
	int32_t pid;
	const struct baton_broker_backend *backends; /* by service, the current ones first */
	size_t backends_count;
	const struct baton_broker_counter *counters;
	size_t counters_count;
	const struct baton_broker_stored *stored;
	size_t stored_count;
	struct baton_duration latency_p50; /* from the offer to the grant, of the last ones */
	struct baton_duration latency_p99;
};

/* Asks the broker of that folder (NULL: as above) about itself, for at most `wait`.
 *
 * BATON_OK: *ret is the caller's, ended by baton_broker_status_free().
 * BATON_NOT_FOUND: none runs there. BATON_TIMEOUT. BATON_BUSY: it answers no more clients now.
 * BATON_INVALID: the folder, or who listens there, is not this user's, or it does not answer this
 * user, or what it says makes no sense. BATON_SYSTEM, BATON_NO_MEMORY.
 * *ret is untouched unless BATON_OK. Any thread. */
BATON_API enum baton_err baton_broker_look(const char *folder, struct baton_duration wait,
                                           struct baton_broker_status **ret);

/* NULL is fine. */
BATON_API void baton_broker_status_free(struct baton_broker_status *status);

BATON_END

#endif
