/* Lanes whose first batch has a key: guests in the line of that key. */
#ifndef SQLITE_GUESTS_H
#define SQLITE_GUESTS_H

#include "store/sqlite/lanes.h"

/* A lane that asks for a key, or several. */
struct guest {
	int64_t seq; /* of its first batch; 0: there is none */
	int64_t lane;
	bool tried;
	struct key_lines keys;
};

/* The first that asks for the key of that line. */
enum baton_err guest_first(struct sqlite_store *s, int64_t key, struct guest *ret);

/* Whether the first that asks for the key of that line, which is open, is the first of its other
 * keys, too, and these are open. */
enum baton_err guest_is_first(struct sqlite_store *s, const struct queue_row *q, int64_t key,
                              const struct guest *guest, bool *ret);

/* Moves the head of the key, and of its other keys, to that guest; NULL: no guest has it. */
enum baton_err guest_move(struct sqlite_store *s, struct queue_row *q, int64_t key,
                          const struct lane_row *row, const struct guest *guest);

/* The lane asks for the keys of its first batch, or, if `b` is NULL, for none. If something was
 * otherwise before, *row says after that where its head is. */
enum baton_err guest_ask(struct sqlite_store *s, struct queue_row *q, int64_t lane,
                         struct lane_row *row, const struct batch_row *b, bool tried);

/* Around all that one call claims. A key whose head was a guest, or is to be one that was not, has
 * no head in between. Returns `e`, or what went wrong. */
void guests_wait(struct sqlite_store *s);
enum baton_err guests_go_on(struct sqlite_store *s, enum baton_err e);

/* Whether the key of that line has to wait for the end of that, if `guest` is to have its head;
 * NULL: no guest is. Then it has to be put off. */
bool guests_are_waiting(const struct sqlite_store *s, int64_t key, const struct lane_row *row,
                        const struct guest *guest);
enum baton_err guests_put_off(struct sqlite_store *s, int64_t queue, int64_t key);

/* Whether it was. */
bool guests_is_put_off(const struct sqlite_store *s, int64_t key);

/* Whether a lane whose first batch has no key gets no new head until then either: what a call makes
 * free itself, by ending claims whose keys it needs, is for the next one. */
bool guests_are_off(const struct sqlite_store *s, const struct queue_row *q);

/* The lines of the keys that the batch has beside its lane, as far as there are any. */
enum baton_err guest_lines(struct sqlite_store *s, const struct queue_row *q,
                           const struct batch_row *b, struct key_lines *ret);

/* A batch that waited for its next attempt keeps the keys that it has beside its lane no more, if
 * it did. *ret: their lines, which are settled by the caller. */
enum baton_err guest_let_go(struct sqlite_store *s, const struct queue_row *q,
                            const struct batch_row *b, struct key_lines *ret);

#endif
