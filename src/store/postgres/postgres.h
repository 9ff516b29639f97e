/* A store in a PostgreSQL database. */
#ifndef POSTGRES_POSTGRES_H
#define POSTGRES_POSTGRES_H

#include "store/group.h"
#include "store/postgres/desk.h"
#include "store/postgres/hints.h"
#include "store/postgres/listen.h"
#include "store/store.h"

/* Where transactions of one kind are done: a connection, and who is next. */
struct lineup {
	struct group group;
	struct conn conn; /* [by the group] */
	struct pg_store *store;
};

struct pg_store {
	struct baton_store base;
	char info[BATON_STORE_PATH_MAX + 16]; /* [const] what libpq is given; has secrets */
	bool pooled;              /* [const] a proxy gives each transaction another connection */
	struct baton_clock clock; /* [const] shows the server's time          */
	const struct baton_clock *host; /* [const] */
	bool own_clock;                 /* [const] the caller's clock is the store's */
	_Atomic int64_t
		ahead_ms; /* [atomic] by how much the server's clock is ahead of the host's */
	struct baton_store_time made; /* [const] above what fences are */
	struct lineup adds;           /* what puts and ends       */
	struct lineup takes;          /* what claims              */
	struct lineup keeps;          /* what renews, and leases  */
	pthread_mutex_t read_mu;
	struct conn read; /* [read_mu] */
	struct listener listener;
	struct hints hints;
	uint64_t listen_key;      /* [const] what the processes of a host know this database by */
	uint32_t commits;         /* [by the group of adds] */
	_Atomic uint32_t drawing; /* [atomic] so many transactions draw their numbers first */
	_Atomic int64_t beat_ms;  /* [atomic] how long what a runner asks, and a look, may take;
	                             0: nobody is registered */
};

/* A call: what it needs, and how it is done on a desk. */
struct call {
	struct request request; /* first */
	void (*want)(struct wants *w, const void *args);
	enum baton_err (*run)(struct baton_store *desk, void *args);
	void *args;
	bool alone;                /* in a transaction of its own */
	struct baton_duration ttl; /* of what it is about; 0: none */
	int64_t within_ms;         /* that a statement may take; 0: as long as the ttl says */

	/* NULL, or a second part: what it needs, and how it is done after the first was written. */
	void (*want_more)(struct wants *w, const void *args);
	enum baton_err (*run_more)(struct baton_store *desk, void *args);
};

enum baton_err pg_do(struct lineup *lineup, struct call *call);

/* A call that only looks. */
enum baton_err pg_look(struct pg_store *s, void (*want)(struct wants *w, const void *args),
                       enum baton_err (*run)(struct baton_store *desk, void *args), void *args);

/* The locks of both parts of some calls. */
void load_lock(struct conn *c, const struct wants *first, const struct wants *second,
               uint64_t classes);

/* Sees to what time has done to the queues of the classes of those that are wanted; *ret wants the
 * claims of keys there that are over. */
enum baton_err load_over(struct pg_store *s, struct conn *c, const struct wants *w,
                         struct wants *ret);

/* Who holds the keys of classes that were read, in other queues. For who looks. */
enum baton_err load_class(struct conn *c, struct desk *d);

/* Those who may have to give way, in other queues of a class, to what gets ready: who has the keys
 * that were read or are wanted, and who waits for them. */
enum baton_err load_rivals(struct conn *c, const struct wants *w, struct desk *d);

/* Which answers belong to what was sent. */
struct loading {
	int start, queues, sources, around, answers, leases, runners, schedules, numbers;
	int heads, heads_last, line, line_claims;
	int bound_queues, bound_batches, bound_claims, bound_leases, held_off;
	int chunks, members, member_claims, bulks, waiting, tend, look, due, heads_any, claim_look;
	int site_holders;
};

extern const struct loading load_nothing;

/* Whether what was read says that time has done something, which has to be seen to first. */
bool load_is_due(const struct conn *c, const struct loading *l);

/* Sends what is wanted, and puts the answers on a desk that is opened for that; `payload`: of the
 * batches that are named, too. */
void load_send(struct pg_store *s, struct conn *c, const struct wants *w, bool payload,
               struct loading *ret);
enum baton_err load_take(struct pg_store *s, struct conn *c, const struct loading *l,
                         struct desk *d);

/* Sends for the claims that stand with others in a row, alone. */
void load_chunks(struct conn *c, const struct wants *w, struct loading *ret);

/* For claims of a queue that is remembered: sends for the rest of what they need; whether the queue
 * is as it was, and nothing is due; the time; and puts what was read on the desk. */
void load_claim_look(struct pg_store *s, struct conn *c, const struct wants *w, uint32_t queue,
                     struct loading *ret);
bool load_is_as(const struct conn *c, const struct loading *l, const struct read_queue *is);
struct baton_store_time load_now(struct pg_store *s, const struct conn *c, const struct loading *l);
enum baton_err load_claim_look_take(const struct conn *c, const struct loading *l, struct desk *d);

/* Whether claims are named that were not found in rows with others; reading these. */
bool load_rest(struct wants *w, const struct desk *d);
/* Sends what others have of the keys of what is put; load_rest_take() has the answers. */
void load_lines(struct conn *c, const struct wants *w, struct loading *l);
void load_rest_send(struct conn *c, const struct wants *w, const struct desk *d,
                    struct loading *ret);
enum baton_err load_rest_take(const struct conn *c, const struct loading *l, struct desk *d);

/* The next page of what can be claimed. *ret_more: there may be more. */
struct page_end {
	bool full; /* there may be more */
	bool any;
	int64_t rank, place, seq;
};
void load_heads(struct conn *c, const struct wants *w, const struct page_end *after,
                struct loading *ret);

/* Sends for what is held of keys where the runner is. Returns which answer has it. */
int load_sites(struct conn *c, const struct wants *w);

/* What can be claimed of rows of several batches, and whether there is anything else. */
void load_bulks(struct conn *c, const struct wants *w, struct loading *ret);
bool load_has_heads(const struct conn *c, const struct loading *l);

enum baton_err load_heads_take(const struct conn *c, const struct loading *l, struct desk *d,
                               const struct wants *w, struct page_end *ret);

extern const struct store_ops postgres_ops;

#endif
