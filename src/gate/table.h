/* The entries of one shard: found by key, kept at a fixed address, forgotten when idle. */
#ifndef GATE_TABLE_H
#define GATE_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include <baton/alloc.h>

#include "gate/entry.h"

struct chunk;

struct slot {
	struct entry *entry; /* NULL: empty */
	uint32_t tag;
};

/* Open addressing with linear probing and no tombstones over slots that point to the entries, which
 * lie in chunks and never move. Memory follows the number of entries down as well as up. Not
 * thread-safe. */
struct table {
	const struct baton_alloc *alloc; /* [const] */
	struct slot *slots;
	uint32_t cap; /* a power of two, or 0 */
	uint32_t used;
	struct entry *free; /* list of free entries, the last one freed first                */
	uint32_t free_count;
	uint32_t trim_below;  /* with that few used ones it is time to look for empty chunks  */
	struct chunk *chunks; /* by number                                                   */
	uint32_t chunk_cap;
	uint32_t chunk_top;  /* no chunk has this number or a higher one                     */
	uint32_t chunk_hint; /* no number below this one is free                             */
};

void table_init(struct table *t, const struct baton_alloc *alloc);

/* Frees all memory. The entries' crowds must be gone. */
void table_done(struct table *t);

/* The entry of that key, or NULL. */
struct entry *table_find(const struct table *t, uint32_t tag, uint16_t cls, struct baton_str text);

/* Adds an entry for a key that has none; all but its name is zero. NULL: no memory, nothing
 * changed. */
struct entry *table_add(struct table *t, uint32_t tag, uint16_t cls, struct baton_str text);

/* Removes the entry, whose crowd must be gone. */
void table_remove(struct table *t, struct entry *e);

/* The entries in turn: start with *cursor 0; NULL at the end. The table must not change meanwhile.
 *  */
struct entry *table_next(const struct table *t, uint32_t *cursor);

#endif
