/* A table of keys and their owners, as the gate's bench drives it: what acquire and release of
 * one key mean, on top of whatever the library at hand offers. */
#ifndef BENCH_TABLE_H
#define BENCH_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <baton/id.h>

#include "harness.h"

#define KEY_TEXT_MIN 8
#define KEY_TEXT_MAX 43

struct key {
	char text[KEY_TEXT_MAX + 1]; /* also ends with a NUL */
	uint32_t len;                /* KEY_TEXT_MIN to KEY_TEXT_MAX */
};

struct caller {
	struct baton_id owner;
	unsigned thread;
};

/* What most tables keep for a key: their own copy of it, and who has it. */
struct entry {
	struct baton_id owner;
	struct key key;
};

struct table_kind {
	const char *name;
	const char *about;
	enum role role;

	/* An empty table for about `keys` keys and exactly so many threads; if that is one,
	 * there is no lock that the library does not need. Ends the program when there is no
	 * memory. */
	void *(*make)(size_t keys, unsigned threads);

	/* Frees the table, also with keys in it. */
	void (*unmake)(void *table);

	/* Bracket what a thread does in a turn. NULL: nothing to do. */
	void (*enter)(void *table);
	void (*leave)(void *table);

	/* True: nobody owned the key, or the caller did; now the caller owns it. False: nothing
	 * has changed. */
	bool (*acquire)(void *table, const struct key *key, const struct caller *who);

	/* True: the caller owned the key; now nobody does. False: nothing has changed. */
	bool (*release)(void *table, const struct key *key, const struct caller *who);
};

extern const struct table_kind table_gate;
extern const struct table_kind table_uthash;
extern const struct table_kind table_ck;
extern const struct table_kind table_lfht;
extern const struct table_kind table_glib;
extern const struct table_kind table_judy;
extern const struct table_kind table_open;

static inline bool key_equal(const struct key *a, const struct key *b)
{
	return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

static inline void entry_set(struct entry *e, const struct key *key, const struct caller *who)
{
	e->owner = who->owner;
	e->key.len = key->len;
	memcpy(e->key.text, key->text, key->len + 1);
}

static inline bool entry_is_of(const struct entry *e, const struct caller *who)
{
	return baton_id_equal(&e->owner, &who->owner);
}

#endif
