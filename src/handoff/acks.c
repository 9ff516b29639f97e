/* The acknowledgements that are waited for: an index by token, and a heap by deadline. */
#include "handoff/acks.h"

#include <string.h>

#include "base/fail.h"
#include "base/mem.h"

static uint64_t hash_of(const struct token *token)
{
	uint64_t hash;
	memcpy(&hash, token->bytes, sizeof hash);
	return hash;
}

enum baton_err acks_init(struct acks *a, const struct baton_alloc *alloc, struct tokens *tokens,
                         int64_t timeout_ms, uint32_t max)
{
	*a = (struct acks){.alloc = alloc, .tokens = tokens};
	a->timeout_ms = timeout_ms > 0 ? timeout_ms : 1;
	a->max = max > 0 ? max : 1;
	a->entries = mem_new(alloc, a->max, sizeof *a->entries);
	a->heap = mem_new(alloc, a->max, sizeof *a->heap);
	enum baton_err e = a->entries && a->heap
	                           ? chains_init(&a->by_token, alloc, a->max)
	                           : fail_memory(a->max * sizeof *a->entries, "acknowledgements");
	if (e != BATON_OK) {
		acks_done(a);
		return e;
	}
	for (uint32_t i = 0; i < a->max; i++)
		a->entries[i].in_heap = i + 1;
	return BATON_OK;
}

void acks_done(struct acks *a)
{
	if (a->entries) {
		explicit_bzero(a->entries, a->max * sizeof *a->entries);
		mem_free(a->alloc, a->entries, a->max, sizeof *a->entries);
	}
	if (a->heap)
		mem_free(a->alloc, a->heap, a->max, sizeof *a->heap);
	chains_done(&a->by_token);
	*a = (struct acks){.alloc = a->alloc};
}

static bool is_before(const struct acks *a, uint32_t x, uint32_t y)
{
	const struct ack_entry *p = &a->entries[x];
	const struct ack_entry *q = &a->entries[y];
	if (p->deadline.ns != q->deadline.ns)
		return p->deadline.ns < q->deadline.ns;
	return p->order < q->order;
}

static void heap_set(struct acks *a, uint32_t at, uint32_t place)
{
	a->heap[at] = place;
	a->entries[place].in_heap = at;
}

/* Moves what is at `at` up to where it belongs, or down. */
static void heap_settle(struct acks *a, uint32_t at)
{
	uint32_t place = a->heap[at];
	while (at > 0 && is_before(a, place, a->heap[(at - 1) / 2])) {
		heap_set(a, at, a->heap[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	for (uint32_t child = 2 * at + 1; child < a->count; child = 2 * at + 1) {
		if (child + 1 < a->count && is_before(a, a->heap[child + 1], a->heap[child]))
			child++;
		if (!is_before(a, a->heap[child], place))
			break;
		heap_set(a, at, a->heap[child]);
		at = child;
	}
	heap_set(a, at, place);
}

static uint32_t find(const struct acks *a, const struct token *token)
{
	uint32_t place = chains_first(&a->by_token, hash_of(token));
	while (place != CHAINS_END && !token_equal(&a->entries[place].token, token))
		place = chains_next(&a->by_token, place);
	return place;
}

static void entry_remove(struct acks *a, uint32_t place)
{
	struct ack_entry *entry = &a->entries[place];
	uint32_t at = entry->in_heap;
	chains_remove(&a->by_token, hash_of(&entry->token), place);
	a->count--;
	if (at < a->count) {
		heap_set(a, at, a->heap[a->count]);
		heap_settle(a, at);
	}
	explicit_bzero(entry, sizeof *entry);
	entry->in_heap = a->free;
	a->free = place;
}

static uint32_t entry_add(struct acks *a, const struct token *token)
{
	uint32_t place = a->free;
	a->free = a->entries[place].in_heap;
	a->entries[place].token = *token;
	chains_add(&a->by_token, hash_of(token), place);
	heap_set(a, a->count, place);
	a->count++;
	return place;
}

/* When it is over: at once, if that moment cannot be told. */
static struct baton_mono deadline_of(const struct acks *a, struct baton_mono now)
{
	struct baton_mono deadline = baton_mono_add(now, baton_duration_ms(a->timeout_ms));
	return deadline.ns == INT64_MAX ? now : deadline;
}

enum baton_err acks_register(struct acks *a, const struct token *token, uint64_t backend,
                             uint64_t tag, struct baton_mono now)
{
	uint32_t place = find(a, token);
	if (place == CHAINS_END && a->count == a->max)
		return fail(BATON_FULL, "%u acknowledgements are waited for; %u are allowed",
		            (unsigned)a->count, (unsigned)a->max);
	if (place == CHAINS_END)
		place = entry_add(a, token);
	struct ack_entry *entry = &a->entries[place];
	entry->backend = backend;
	entry->tag = tag;
	entry->since = now;
	entry->deadline = deadline_of(a, now);
	entry->order = a->orders++;
	heap_settle(a, entry->in_heap);
	return BATON_OK;
}

enum ack_verdict acks_acknowledge(struct acks *a, const struct token *token, uint64_t backend,
                                  struct baton_mono now, struct baton_duration *ret_took)
{
	uint32_t place = find(a, token);
	if (place == CHAINS_END || a->entries[place].backend != backend)
		return ACK_NOT_PENDING;
	bool live = baton_mono_live(a->entries[place].deadline, now);
	struct baton_duration took = baton_mono_sub(now, a->entries[place].since);
	entry_remove(a, place);
	tokens_revoke(a->tokens, token);
	if (live && ret_took)
		ret_took->ns = took.ns > 0 ? took.ns : 0;
	return live ? ACK_IN_TIME : ACK_TOO_LATE;
}

bool acks_abandon(struct acks *a, const struct token *token, uint64_t *ret_backend)
{
	uint32_t place = find(a, token);
	tokens_revoke(a->tokens, token);
	if (place == CHAINS_END)
		return false;
	if (ret_backend)
		*ret_backend = a->entries[place].backend;
	entry_remove(a, place);
	return true;
}

bool acks_expire(struct acks *a, struct baton_mono now, struct ack_expired *ret)
{
	if (a->count == 0)
		return false;
	uint32_t place = a->heap[0];
	const struct ack_entry *entry = &a->entries[place];
	if (baton_mono_live(entry->deadline, now))
		return false;
	*ret = (struct ack_expired){entry->token, entry->backend, entry->tag};
	entry_remove(a, place);
	tokens_revoke(a->tokens, &ret->token);
	return true;
}

struct baton_mono acks_next(const struct acks *a)
{
	return a->count > 0 ? a->entries[a->heap[0]].deadline : BATON_MONO_NEVER;
}
