/* One transaction of some calls.
 *
 * It has two parts, of which each reads what the calls depend on, does them on a desk, and writes
 * what they have changed: first what puts, ends and renews, and then what claims. */
#ifndef POSTGRES_DEAL_H
#define POSTGRES_DEAL_H

#include "store/postgres/postgres.h"

struct deal {
	struct pg_store *s;
	struct conn *c;
	struct call *calls; /* linked by their requests */
	struct wants first, second;
	struct desk desk;
	bool open; /* the desk is */
	struct written written;
	bool split;    /* a call failed after a part of it was written */
	bool certain;  /* a guess was wrong: there are no more */
	bool taken;    /* others have keys that they were presumed not to have */
	bool apart;    /* what has a key gets a row of its own */
	bool recalled; /* the queue is that of `recall` */
	struct recall recall;
	uint64_t classes; /* whose locks are held */
	uint64_t lacking; /* those that turned out to be needed */
	bool sleepers;    /* elsewhere, when it was committed */
	int64_t xid;
	struct baton_store_news *news;
	size_t news_count;
};

static inline struct call *call_next(const struct call *call)
{
	return (struct call *)call->request.next;
}

/* Forgets what became of the calls, which are done once more. */
void deal_clear(struct deal *t);

/* Begins, with the locks of what the calls are about. */
void deal_begin(struct deal *t);

/* Their first and second parts. After the first the desk may be open. */
enum baton_err deal_first(struct deal *t);
enum baton_err deal_second(struct deal *t);

/* Does one part of all calls on the desk; `more`: the second. */
void deal_run(struct deal *t, bool more);
bool deal_has_first(const struct deal *t);

/* Whether one of the calls came to something. */
bool deal_has_success(const struct deal *t);

/* News outlive the desk that they were made on. */
enum baton_err deal_keep_news(struct deal *t);
void deal_desk_close(struct deal *t);

/* Which class a queue is of is known when it was read. If the lock of one is not held, everything
 * begins anew. */
enum baton_err deal_check_classes(struct deal *t);

/* What is taken for granted: whose claims are completed, whether all is about one queue that is
 * remembered, and who else has the keys of what is put. */
void deal_guess(struct deal *t);
void deal_recall(struct deal *t);
void deal_presume(struct deal *t);

/* Opens the desk with nothing but the queue that is remembered. */
enum baton_err deal_open_recalled(struct deal *t, struct baton_store_time now);

/* Whether heads were found not long ago in one of the pools that are claimed from. */
bool deal_expects_heads(struct deal *t);

/* Whether it is about claims of one queue alone, of which this process knows what it is. */
bool deal_recalls_claims(struct deal *t);

/* Remember for those who come next. */
void deal_remember_heads(struct deal *t, bool any);
void deal_remember_claims(struct deal *t);
void deal_remember_apart(struct deal *t);
void deal_remember_queues(struct deal *t);

/* What a group does with a list of calls: transactions until all are done. */
void deal_commit(void *lineup, struct request *list);

#endif
