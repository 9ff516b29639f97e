/* Asks where lanes are, on a thread of its own: whoever knows may take as long as he wants. */
#ifndef HANDOFF_LOCATOR_H
#define HANDOFF_LOCATOR_H

#include <stdbool.h>
#include <stdint.h>

#include <baton/alloc.h>
#include <baton/broker.h>
#include <baton/err.h>
#include <baton/str.h>

#define LOCATOR_MAX 256

struct locator;

struct locator_answer {
	uint64_t connection;
	enum baton_err err;
	struct baton_broker_place place; /* after BATON_OK */
};

typedef enum baton_err locator_where(void *arg, struct baton_str queue, struct baton_str lane,
                                     struct baton_broker_place *ret);

/* BATON_NO_MEMORY, BATON_SYSTEM. */
enum baton_err locator_open(const struct baton_alloc *alloc, locator_where *where, void *arg,
                            struct locator **ret);

/* Waits for a call that is under way. NULL is fine. */
void locator_close(struct locator *l);

/* Can be read when there is an answer. */
int locator_fd(const struct locator *l);

/* Asks on behalf of a connection; names are of at most BATON_NAME_MAX bytes. False: LOCATOR_MAX
 * questions are open already. */
bool locator_ask(struct locator *l, uint64_t connection, struct baton_str queue,
                 struct baton_str lane);

/* The next answer; false: there is none now. */
bool locator_next(struct locator *l, struct locator_answer *ret);

#endif
