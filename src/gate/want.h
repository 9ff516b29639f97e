/* The keys of one request: checked, found, and given the room that they need. */
#ifndef GATE_WANT_H
#define GATE_WANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gate/state.h"

struct want {
	struct baton_str text;
	struct shard *shard;
	struct entry *entry; /* NULL: nobody holds the key or waits for it */
	uint32_t tag;
	uint16_t cls;
	uint8_t same; /* the index of the first want with the same key, mostly its own */
};

struct wants {
	const struct baton_gate_ask *ask;
	uint64_t mask; /* the set of their shards */
	struct want at[BATON_GATE_KEYS_MAX];
};

/* Checks the request and computes where its keys are. Takes no lock.
 * BATON_INVALID: the detail says which key, and what is wrong with it. */
enum baton_err wants_init(struct wants *w, struct baton_gate *gate,
                          const struct baton_gate_ask *ask);

/* Under the locks: finds the entries, after letting time pass over those that it can change. */
void wants_find(struct wants *w, struct baton_gate *gate, struct effects *fx);

/* Under the locks: whether all keys admit the run; if not, *ret_yield (may be NULL) says why not.
 *  */
bool wants_admitted(const struct wants *w, const struct baton_gate *gate,
                    struct baton_gate_yield *ret_yield);

/* Under the locks: makes the entries and the room that going on or, with `line`, waiting needs.
 * BATON_NO_MEMORY: nothing has changed. */
enum baton_err wants_reserve(struct wants *w, struct baton_gate *gate, bool line);

#endif
