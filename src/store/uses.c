/* How often keys are held where a tick comes from. */
#include "store/uses.h"

#include "base/fail.h"
#include "queue/line.h"

#define FIRST 16

static struct key_use *find(const struct key_uses *u, const void *queue, struct baton_str line)
{
	for (size_t i = 0; i < u->count; i++) {
		struct key_use *use = &u->list[i];
		if (use->queue == queue && baton_str_equal(use->line, line))
			return use;
	}
	return NULL;
}

static enum baton_err make_room(struct key_uses *u)
{
	size_t cap = u->cap > 0 ? u->cap * 2 : FIRST;
	if (u->count < u->cap)
		return BATON_OK;
	struct key_use *list = arena_take(u->arena, cap, sizeof *list);
	if (!list)
		return fail_memory(cap * sizeof *list, "keys that are held");
	for (size_t i = 0; i < u->count; i++)
		list[i] = u->list[i];
	u->list = list;
	u->cap = cap;
	return BATON_OK;
}

enum baton_err uses_add(struct key_uses *u, const void *queue, struct baton_str line,
                        uint64_t count)
{
	struct baton_str counted = line_counted(line);
	struct key_use *use = find(u, queue, counted);
	if (use) {
		use->count += count;
		return BATON_OK;
	}
	enum baton_err e = make_room(u);
	struct key_use new = {.queue = queue, .count = count};
	if (e == BATON_OK && !arena_copy(u->arena, counted, &new.line))
		e = fail_memory(counted.len, "the name of a key");
	if (e == BATON_OK)
		u->list[u->count++] = new;
	return e;
}

bool uses_are_full(const struct key_uses *u, const void *queue,
                   const struct baton_queue_policy *policy, struct baton_str line)
{
	if (!line_is_sited(line, NULL))
		return false;
	const struct key_use *use = find(u, queue, line_counted(line));
	return use && use->count >= policy->key_limit;
}

size_t uses_full_count(const struct key_uses *u, const void *queue,
                       const struct baton_queue_policy *policy)
{
	size_t full = 0;
	for (size_t i = 0; i < u->count; i++)
		full += u->list[i].queue == queue && u->list[i].count >= policy->key_limit;
	return full;
}
