/* Queues of an SQLite file that have their keys in common: those of one class. What is asked about
 * one without a class costs nothing. */
#ifndef SQLITE_CLASS_H
#define SQLITE_CLASS_H

#include "store/sqlite/claims.h"
#include "store/sqlite/sqlite.h"

/* The line of a key in another queue of its class. */
struct class_line {
	int64_t queue, lane;
};

struct class_lines {
	struct class_line list[BATON_QUEUE_CLASS_MAX];
	size_t count;
};

/* Where else there is the line of that key. */
enum baton_err class_lines(struct sqlite_store *s, const struct queue_row *q, int64_t lane,
                           struct class_lines *ret);

/* How often the key of that line is held in other queues. */
enum baton_err class_holds(struct db *db, const struct baton_queue_policy *policy, int64_t lane,
                           int64_t *ret);

/* The other queues of a class, by number. */
struct class_queues {
	int64_t list[BATON_QUEUE_CLASS_MAX];
	size_t count;
};

enum baton_err class_queues(struct db *db, const struct baton_queue_policy *policy, int64_t but,
                            struct class_queues *ret);

/* The highest fence that a claim of the class had so far, or *fence. */
enum baton_err class_fence(struct sqlite_store *s, const struct queue_row *q, uint64_t *fence);

/* A claim has taken the keys of these lines: none of them has a head, in any queue, until all is
 * claimed. */
enum baton_err class_taken(struct sqlite_store *s, const struct queue_row *q,
                           const struct key_lines *keys);

/* The policy before it is changed: what a class that is joined has in common. BATON_FULL: the
 * class has as many queues as it may. */
enum baton_err class_join(struct sqlite_store *s, const struct baton_queue_policy *changes,
                          uint32_t fields, struct baton_queue_policy *policy);

/* Whether the others of the class that `next` names may have what it has in common with them. */
enum baton_err class_refuse(struct sqlite_store *s, const struct baton_queue_policy *next,
                            int64_t but);

/* The queue leaves its class for what `next` names: the others' fences go on above its own. */
enum baton_err class_leave(struct sqlite_store *s, const struct queue_row *q,
                           const struct baton_queue_policy *next);

/* Gives the others of its class what it has in common with them. */
enum baton_err class_share(struct sqlite_store *s, const struct queue_row *q);

#endif
