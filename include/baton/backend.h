/* The backend's side of a handoff: a process that gets the connections of a service. */
#ifndef BATON_BACKEND_H
#define BATON_BACKEND_H

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

struct baton_backend;

/* A connection, and who is at its other end. */
struct baton_connection {
	int fd;      /* a blocking stream; baton_connection_take() */
	bool handed; /* by a handoff; else the client reconnected */
	uint64_t id; /* of the broker; 0 if the client did not say */
	struct baton_str service;
	struct baton_str auth_token; /* what the client sent as such; may be empty */
	struct baton_str queue;      /* and lane: what the client asked for; may be empty */
	struct baton_str lane;
	struct baton_str version;     /* of the client */
	struct baton_str traceparent; /* what the client sent as such, and its tracestate: printable
	                                 characters; may be empty */
	struct baton_str tracestate;
	struct baton_mono deadline; /* until when the client wants to be connected, if it said */
	int32_t pid;                /* as the kernel says; 0 and UINT32_MAX: it came by TCP */
	uint32_t uid;
	uint32_t gid;
};

/* All zeros but for the service is a backend as most want it. */
struct baton_backend_options {
	const char *folder;       /* of the broker; NULL: as <baton/broker.h> says */
	struct baton_str service; /* [a-z0-9-]{1,64} */
	uint64_t generation;      /* of several backends of a service the one with the highest gets
	                             its connections; 0: the time since boot, so the youngest */
	struct baton_str owner;   /* the runner that it speaks for; may be empty */
	bool repeatable;          /* the first request may be repeated: no Grant is waited for,
	                             where one is needed */
	bool patient;             /* no broker need be there yet, nor its folder: this one registers
	                             when there is one */
	bool welcomes_later;      /* baton_backend_accept() gives connections whose clients were not
	                             told yet that they have arrived: baton_connection_welcome() */
	bool reconnect_only;      /* no handoffs: clients connect to its endpoint */
	const char *endpoint;     /* NULL: a socket is made beside the broker's. Else it is that of
	                             a server which is there already and knows nothing of Baton: the
	                             path of a socket, or tcp:HOST:PORT. Then this backend only
	                             speaks for it, and gets no connections itself */

	/* Whether the connection is wanted. Nothing was read from it, and nothing may be. NULL: all
	 * are. Refused, a client reconnects, and is refused there too. It is called while the
	 * backend is at work, and may not use it. */
	bool (*wants)(const struct baton_connection *connection, void *arg);
	void *arg;

	const struct baton_log *log;     /* borrowed; NULL: none */
	const struct baton_alloc *alloc; /* NULL: that of the C library */
};

/* Registers with the broker.
 *
 * BATON_NOT_FOUND: no broker runs there. BATON_STALE: a newer backend of the service is there.
 * BATON_TIMEOUT: the broker does not answer. BATON_INVALID: an option, or the broker's folder.
 * BATON_FULL: the broker takes no more. BATON_SYSTEM, BATON_NO_MEMORY.
 * *ret is untouched unless BATON_OK. One thread at a time; not across fork(). */
BATON_API enum baton_err baton_backend_open(const struct baton_backend_options *options,
                                            struct baton_backend **ret);

/* The next connection: one that the broker has handed over, or a client that has reconnected. If
 * the broker goes, what would need its Grant is shut down unread, and the backend registers again
 * when there is a broker. The broker is told what was taken by the call after the one that
 * returned it, and finds out by itself soon after.
 *
 * BATON_OK:      *ret is the caller's, ended by baton_connection_free().
 * BATON_TIMEOUT: there was none for `wait`; of 0 it looks and does not wait.
 * BATON_STALE:   a newer backend of the service was there when this one registered again. Clients
 *                that reconnect are still taken by calling it again.
 * BATON_SYSTEM, BATON_NO_MEMORY. */
BATON_API enum baton_err baton_backend_accept(struct baton_backend *backend,
                                              struct baton_duration wait,
                                              struct baton_connection **ret);

/* A descriptor that can be read whenever baton_backend_accept() has something to do, for loops that
 * wait for other things too, and are told as long as that is so (not EPOLLET: BATON_TIMEOUT may
 * leave something for the next call). Lives as long as the backend. */
BATON_API int baton_backend_fd(const struct baton_backend *backend);

/* Where clients reconnect. Lives as long as the backend. */
BATON_API const char *baton_backend_endpoint(const struct baton_backend *backend);

/* The broker keeps sockets for the backends of a service, by name: listeners and idle connections
 * that shall outlive a restart. What one backend has put another of the same service takes, and
 * nobody else. If a backend dies while it takes one, it is there for the next. */

#define BATON_STORED_NAME_MAX 64
#define BATON_STORED_MAX 128 /* of one service */

struct baton_stored {
	char name[BATON_STORED_NAME_MAX + 1];
	struct baton_duration
		left; /* until it is closed; BATON_DURATION_FOREVER: when it is taken */
};

/* Has the broker keep a copy of the socket, which stays the caller's; for `ttl`, of up to 30 days,
 * or BATON_DURATION_FOREVER.
 *
 * BATON_CONFLICT: there is one of that name. BATON_FULL: there is no room. BATON_INVALID: no
 * socket, or a name of no or too many bytes, or no ttl. BATON_NOT_FOUND: there is no broker now.
 * BATON_TIMEOUT: it does not answer; then the backend registers again. BATON_SYSTEM. */
BATON_API enum baton_err baton_backend_put(struct baton_backend *backend, struct baton_str name,
                                           int fd, struct baton_duration ttl);

/* Takes one, which the broker then has no longer.
 *
 * BATON_OK: *ret_fd is the caller's. BATON_NOT_FOUND: there is none, or no broker now. BATON_BUSY:
 * another backend takes it. BATON_TIMEOUT: also if the broker cannot be told that it arrived; then
 * it is still kept. Others as above; *ret_fd is untouched unless BATON_OK. */
BATON_API enum baton_err baton_backend_take(struct baton_backend *backend, struct baton_str name,
                                            int *ret_fd);

/* Which there are; `all` has room for BATON_STORED_MAX. Errors as above. */
BATON_API enum baton_err baton_backend_list(struct baton_backend *backend, struct baton_stored *all,
                                            size_t *ret_count);

/* Leaves the broker. What was not granted is shut down; connections that were given out stay. NULL
 * is fine. */
BATON_API void baton_backend_close(struct baton_backend *backend);

/* With `welcomes_later`, before anything is written: tells the client that it has arrived. Who is
 * not told and sees the end of the connection asks the broker again, and nobody has read what it
 * sent. */
BATON_API void baton_connection_welcome(struct baton_connection *connection);

/* The descriptor, which is the caller's from now on. The broker may have a copy for another moment,
 * and close(2) alone would leave it in an epoll(7) as long: it is to be taken out first. */
BATON_API int baton_connection_take(struct baton_connection *connection);

/* Closes it, unless it was taken. NULL is fine. */
BATON_API void baton_connection_free(struct baton_connection *connection);

BATON_END

#endif
