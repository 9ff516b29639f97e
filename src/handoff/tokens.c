/* The tokens of connections that are on their way. */
#include "handoff/tokens.h"

#include <string.h>

#include "base/check.h"
#include "base/fail.h"
#include "base/mem.h"

#define NOBODY CHAINS_END

static uint64_t hash_of(const struct token *token)
{
	uint64_t hash;
	memcpy(&hash, token->bytes, sizeof hash);
	return hash;
}

enum baton_err tokens_init(struct tokens *t, const struct baton_alloc *alloc,
                           struct tokens_policy policy, struct token_source source)
{
	*t = (struct tokens){.alloc = alloc, .source = source, .oldest = NOBODY, .newest = NOBODY};
	t->policy.ttl_ms = policy.ttl_ms > 0 ? policy.ttl_ms : 1;
	t->policy.max = policy.max > 0 ? policy.max : 1;
	t->policy.tries = policy.tries > 0 ? policy.tries : 1;
	t->entries = mem_new(alloc, t->policy.max, sizeof *t->entries);
	enum baton_err e =
		t->entries ? BATON_OK : fail_memory(t->policy.max * sizeof *t->entries, "tokens");
	if (e == BATON_OK)
		e = chains_init(&t->by_token, alloc, t->policy.max);
	if (e == BATON_OK)
		e = chains_init(&t->by_connection, alloc, t->policy.max);
	if (e != BATON_OK) {
		tokens_done(t);
		return e;
	}
	for (uint32_t i = 0; i < t->policy.max; i++)
		t->entries[i].newer = i + 1 < t->policy.max ? i + 1 : NOBODY;
	return BATON_OK;
}

void tokens_done(struct tokens *t)
{
	if (t->entries) {
		explicit_bzero(t->entries, t->policy.max * sizeof *t->entries);
		mem_free(t->alloc, t->entries, t->policy.max, sizeof *t->entries);
	}
	chains_done(&t->by_token);
	chains_done(&t->by_connection);
	*t = (struct tokens){.alloc = t->alloc};
}

/* Where the link to a place is that stands in the age list: forwards and back. */
static uint32_t *link_to(struct tokens *t, uint32_t older)
{
	return older == NOBODY ? &t->oldest : &t->entries[older].newer;
}

static uint32_t *link_back(struct tokens *t, uint32_t newer)
{
	return newer == NOBODY ? &t->newest : &t->entries[newer].older;
}

static void entry_remove(struct tokens *t, uint32_t place)
{
	struct token_entry *entry = &t->entries[place];
	chains_remove(&t->by_token, hash_of(&entry->token), place);
	chains_remove(&t->by_connection, entry->connection, place);
	*link_to(t, entry->older) = entry->newer;
	*link_back(t, entry->newer) = entry->older;
	explicit_bzero(entry, sizeof *entry);
	entry->newer = t->free;
	t->free = place;
	t->pending--;
}

static uint32_t find_token(const struct tokens *t, const struct token *token)
{
	uint32_t place = chains_first(&t->by_token, hash_of(token));
	while (place != CHAINS_END && !token_equal(&t->entries[place].token, token))
		place = chains_next(&t->by_token, place);
	return place;
}

static uint32_t find_connection(const struct tokens *t, uint64_t connection)
{
	uint32_t place = chains_first(&t->by_connection, connection);
	while (place != CHAINS_END && t->entries[place].connection != connection)
		place = chains_next(&t->by_connection, place);
	return place;
}

/* Draws one that is not there. */
static enum baton_err draw(struct tokens *t, struct token *ret)
{
	for (uint32_t i = 0; i < t->policy.tries; i++) {
		enum baton_err e = t->source.draw(t->source.arg, ret);
		if (e != BATON_OK)
			return e;
		if (find_token(t, ret) == CHAINS_END)
			return BATON_OK;
	}
	return fail(BATON_FULL, "%u tokens were drawn that are there already",
	            (unsigned)t->policy.tries);
}

static void entry_add(struct tokens *t, const struct token_binding *binding,
                      struct baton_mono expires, const struct token *token)
{
	uint32_t place = t->free;
	struct token_entry *entry = &t->entries[place];
	t->free = entry->newer;
	*entry = (struct token_entry){
		.token = *token,
		.service_len = binding->service.len,
		.generation = binding->generation,
		.connection = binding->connection,
		.expires = expires,
		.older = t->newest,
		.newer = NOBODY,
	};
	memcpy(entry->service, binding->service.ptr, binding->service.len);
	*link_to(t, t->newest) = place;
	t->newest = place;
	chains_add(&t->by_token, hash_of(token), place);
	chains_add(&t->by_connection, binding->connection, place);
	t->pending++;
}

enum baton_err tokens_issue(struct tokens *t, const struct token_binding *binding,
                            struct baton_mono now, struct token *ret)
{
	struct token token;
	CHECK(binding->service.len <= TOKENS_SERVICE);
	tokens_sweep(t, now);
	uint32_t old = find_connection(t, binding->connection);
	if (old != CHAINS_END)
		entry_remove(t, old);
	if (t->pending == t->policy.max)
		return fail(BATON_FULL, "%zu connections are on their way; %u are allowed",
		            t->pending, (unsigned)t->policy.max);
	enum baton_err e = draw(t, &token);
	if (e == BATON_OK) {
		entry_add(t, binding, baton_mono_add(now, baton_duration_ms(t->policy.ttl_ms)),
		          &token);
		*ret = token;
	}
	token_wipe(&token);
	return e;
}

enum baton_err tokens_adopt(struct tokens *t, const struct token_binding *binding,
                            struct baton_mono expires, const struct token *token)
{
	CHECK(binding->service.len <= TOKENS_SERVICE);
	if (t->pending == t->policy.max)
		return fail(BATON_FULL, "%zu connections are on their way; %u are allowed",
		            t->pending, (unsigned)t->policy.max);
	if (find_connection(t, binding->connection) != CHAINS_END ||
	    find_token(t, token) != CHAINS_END)
		return fail(BATON_CONFLICT, "a connection is on its way twice");
	entry_add(t, binding, expires, token);
	return BATON_OK;
}

static bool is_bound(const struct token_entry *entry, const struct token_binding *binding)
{
	struct baton_str service = {entry->service, entry->service_len};
	return entry->generation == binding->generation &&
	       baton_str_equal(service, binding->service);
}

enum token_verdict tokens_consume(struct tokens *t, const struct token_binding *binding,
                                  const struct token *presented, struct baton_mono now)
{
	uint32_t place = find_connection(t, binding->connection);
	if (place == CHAINS_END || !is_bound(&t->entries[place], binding))
		return TOKEN_NOT_PENDING;
	const struct token_entry *entry = &t->entries[place];
	bool live = baton_mono_live(entry->expires, now);
	if (live && !token_equal(&entry->token, presented))
		return TOKEN_MISMATCH;
	entry_remove(t, place);
	return live ? TOKEN_ACCEPTED : TOKEN_EXPIRED;
}

bool tokens_revoke(struct tokens *t, const struct token *token)
{
	uint32_t place = find_token(t, token);
	if (place == CHAINS_END)
		return false;
	entry_remove(t, place);
	return true;
}

size_t tokens_sweep(struct tokens *t, struct baton_mono now)
{
	size_t swept = 0;
	for (; t->oldest != NOBODY && !baton_mono_live(t->entries[t->oldest].expires, now); swept++)
		entry_remove(t, t->oldest);
	return swept;
}
