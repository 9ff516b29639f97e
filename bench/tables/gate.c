/* Baton's gate: one key of the default class per call. */
#include <baton/gate.h>
#include <baton/version.h>
#include <err.h>

#include "table.h"

static void *make(size_t keys, unsigned threads)
{
	(void)keys;
	(void)threads;
	struct baton_gate *gate;
	enum baton_err e = baton_gate_new(NULL, &gate);
	if (e != BATON_OK)
		errx(1, "baton_gate_new: %s", baton_strerror(e));
	return gate;
}

static void unmake(void *table)
{
	baton_gate_free(table);
}

static bool acquire(void *table, const struct key *key, const struct caller *who)
{
	struct baton_gate_key name = {{key->text, key->len}, BATON_GATE_CLASS_DEFAULT};
	struct baton_gate_ask ask = {&name, 1, who->owner, {1}};
	return baton_gate_acquire(table, &ask, NULL, NULL) == BATON_OK;
}

static bool release(void *table, const struct key *key, const struct caller *who)
{
	struct baton_gate_key name = {{key->text, key->len}, BATON_GATE_CLASS_DEFAULT};
	struct baton_gate_ask ask = {&name, 1, who->owner, {1}};
	return baton_gate_release(table, &ask) == BATON_OK;
}

const struct table_kind table_gate = {
	.name = "gate",
	.about = "Baton " BATON_VERSION ", default class (limit 1), one key per call; always locks",
	.role = ROLE_SUBJECT,
	.make = make,
	.unmake = unmake,
	.acquire = acquire,
	.release = release,
};
