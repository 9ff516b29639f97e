/* Queues of a store in memory that have their keys in common: those of one class. */
#ifndef STORE_MEMORY_CLASS_H
#define STORE_MEMORY_CLASS_H

#include "store/memory/tx.h"

/* The other queues of the class of `of`, one after the other, the first being that after NULL;
 * NULL: no more, or it has none. */
struct queue *memory_class_next(const struct queue *of, const struct queue *after);

/* The line of that name in another queue, or NULL. */
struct lane *memory_class_line(const struct queue *queue, struct baton_str name);

/* Whether the claim holds keys of a class. */
bool memory_class_has(const struct claim *claim);

/* A claim has taken keys of a class: what else wants them waits for the next call. On a desk, which
 * does not have all who hold them, for the next one. */
void memory_class_take(const struct tx *tx, const struct claim *claim);

/* Whether one of the keys of the batch was so taken. */
bool memory_class_is_taken(const struct tx *tx, const struct batch *b);

/* The highest fence that a claim of the class had so far, or `last`. */
uint64_t memory_class_fence(const struct queue *queue, uint64_t last);

/* The policy of the queue before it is changed: what a class that it joins has in common. NULL: it
 * is made. BATON_FULL: the class has as many queues as it may. */
enum baton_err memory_class_join(const struct memory *m, const struct queue *queue,
                                 const struct baton_queue_policy *changes, uint32_t fields,
                                 struct baton_queue_policy *policy);

/* Whether the others of the class that `next` names may have what it has in common with them. The
 * queue, which may be NULL, is none of these. */
enum baton_err memory_class_refuse(const struct memory *m, const struct queue *queue,
                                   const struct baton_queue_policy *next);

/* The queue leaves its class for what `next` names: the others' fences go on above its own. */
enum baton_err memory_class_leave(struct tx *tx, const struct queue *queue,
                                  const struct baton_queue_policy *next);

/* Whether the others of its class have a lower limit than it has, or another rate, which are going
 * to be theirs. */
bool memory_class_is_raised(const struct queue *queue);

/* Gives the others of its class what it has in common with them. */
enum baton_err memory_class_share(struct tx *tx, const struct queue *queue);

#endif
