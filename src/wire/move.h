/* What a broker hands to the one that takes its place: items, each with a descriptor or none. */
#ifndef WIRE_MOVE_H
#define WIRE_MOVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <baton/str.h>

#include "wire/frame.h"

#define WIRE_MOVE_FORMAT 1
#define WIRE_MOVE_ITEMS_MAX 64 /* of one portion, and so of its descriptors */
#define WIRE_MOVE_NUMBERS_MAX 16

enum wire_item_kind {
	WIRE_ITEM_LOCK = 1, /* of the folder, with a descriptor                              */
	WIRE_ITEM_CLIENTS,  /* the socket of clients; `id` is 1 if somebody else has made it */
	WIRE_ITEM_BACKENDS, /* the socket of backends; the same                              */
	WIRE_ITEM_LISTENER, /* `name` is its address                                         */
	WIRE_ITEM_SERVICE,  /* no descriptor; `numbers`: when it was used, and its starts     */
	WIRE_ITEM_COUNTER,  /* no descriptor; `id` is the count                              */
	WIRE_ITEM_IDS,      /* no descriptor; `numbers`: the last of connections and backends */
	WIRE_ITEM_CHANNEL,  /* of a backend; `name` is its endpoint, `other` its owner       */
	WIRE_ITEM_STORED,   /* what is kept                                                  */
	WIRE_ITEM_PASSING,  /* a connection on its way to the backend `generation`;
	                       `capabilities` is its word of the slate, or 0 */
	WIRE_ITEM_CHILD,    /* a process; `id` is its pid, `capabilities` its state          */
	WIRE_ITEM_PEER,     /* a client; `bytes` is what was read, `name` its listener       */
	WIRE_ITEM_LEFTOVER, /* no descriptor; `name` is a path                               */
	WIRE_ITEM_WILL,     /* no descriptor; `bytes` for the program, `numbers`: how often it
	                       is told that the broker lives */
	WIRE_ITEM_SLATE     /* what is shared with the backend `id` */
};

struct wire_item {
	enum wire_item_kind kind;
	struct baton_str service;
	struct baton_str name;
	struct baton_str other;
	struct baton_str bytes;
	struct baton_str token;
	uint64_t id;
	uint64_t generation;
	uint64_t capabilities;
	uint64_t since; /* nanoseconds on the clock since boot */
	uint64_t until;
	const uint64_t *numbers;
	size_t numbers_count;
};

/* Whether an item of that kind comes with a descriptor. */
bool wire_item_has_fd(enum wire_item_kind kind);

enum wire_move_step {
	WIRE_MOVE_ASK = 1, /* the new one asks; `number` is the format        */
	WIRE_MOVE_PORTION, /* the old one sends items; `number` counts them   */
	WIRE_MOVE_HAVE,    /* the new one has that portion                    */
	WIRE_MOVE_END,     /* that was all                                    */
	WIRE_MOVE_READY,   /* the new one goes on from here, and the old ends */
	WIRE_MOVE_REFUSED  /* the old one does not, as `detail` says          */
};

struct wire_move {
	enum wire_move_step step;
	uint64_t number;
	struct baton_str detail;
	const struct wire_item *items;
	size_t items_count;
};

#endif
