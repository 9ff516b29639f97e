/* Which of a lane's ready batches one claim takes. */
#ifndef QUEUE_SELECT_H
#define QUEUE_SELECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <baton/batch.h>

/* What the choice depends on. */
struct candidate {
	uint64_t seq;
	enum baton_batch_class cls;
	enum baton_batch_delivery delivery;
	enum baton_batch_slot slot;
	struct baton_str group;
	struct baton_str key; /* of a guest: see line.h */
};

/* How many of the leading candidates, which are all of the lane's ready batches in the order of
 * their numbers or its first ones, one claim takes; 0: none.
 *
 * The head decides: at a checkpoint only one of delivery `earliest` is given; a command, or an
 * exclusive batch, is taken alone; a join takes those directly behind it that are work, join, of
 * the same delivery, group and key. No more than `max`. */
size_t select_prefix(const struct candidate *c, size_t count, enum baton_boundary at, size_t max);

/* The same for a run that is under way and asks for more at a checkpoint: only a head that is work
 * which joins, and has no key, is given; what is to be alone, or to hold a key, waits for a run of
 * its own. */
size_t select_more(const struct candidate *c, size_t count, size_t max);

/* Whether `b` may be in the claim that `a` is the head of. */
bool select_joins(const struct candidate *a, const struct candidate *b);

/* Whether a claim of exactly the batches `seqs`, in the order of their numbers, is one that
 * select_prefix() could have made: of the head, or with `pass` of those that remain when earlier
 * ones are left out, none of which is a command or would itself have to be in it. */
bool select_exact(const struct candidate *c, size_t count, const uint64_t *seqs, size_t wanted,
                  enum baton_boundary at, bool pass);

#endif
