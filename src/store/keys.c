/* Several keys of a batch. */
#include "store/keys.h"

#include <string.h>

#include "base/fail.h"
#include "queue/line.h"

static enum baton_err no_memory(size_t bytes)
{
	return fail_memory(bytes, "keys");
}

static bool any_has_list(const struct baton_batch *batches, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (batches[i].key_count > 0)
			return true;
	}
	return false;
}

static enum baton_err join(struct arena *a, struct baton_batch *b)
{
	char text[LINE_KEYS_MAX];
	if (!arena_copy(a, keys_join(b, text), &b->key))
		return no_memory(LINE_KEYS_MAX);
	b->keys = NULL;
	b->key_count = 0;
	return BATON_OK;
}

enum baton_err keys_of_batches(struct arena *a, const struct baton_batch **batches, size_t count)
{
	if (!any_has_list(*batches, count))
		return BATON_OK;
	struct baton_batch *list = arena_take(a, count, sizeof *list);
	if (!list)
		return no_memory(count * sizeof *list);
	memcpy(list, *batches, count * sizeof *list);
	for (size_t i = 0; i < count; i++) {
		enum baton_err e = list[i].key_count > 0 ? join(a, &list[i]) : BATON_OK;
		if (e != BATON_OK)
			return e;
	}
	*batches = list;
	return BATON_OK;
}

static bool any_emits_lists(const struct baton_work_end *ends, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (any_has_list(ends[i].emits, ends[i].emit_count))
			return true;
	}
	return false;
}

enum baton_err keys_of_ends(struct arena *a, const struct baton_work_end **ends, size_t count)
{
	if (!any_emits_lists(*ends, count))
		return BATON_OK;
	struct baton_work_end *list = arena_take(a, count, sizeof *list);
	if (!list)
		return no_memory(count * sizeof *list);
	memcpy(list, *ends, count * sizeof *list);
	for (size_t i = 0; i < count; i++) {
		enum baton_err e = keys_of_batches(a, &list[i].emits, list[i].emit_count);
		if (e != BATON_OK)
			return e;
	}
	*ends = list;
	return BATON_OK;
}

enum baton_err keys_show(struct arena *a, struct baton_str text, const struct keys_shown *ret)
{
	size_t count = keys_count(text);
	*ret->key = (struct baton_str){"", 0};
	*ret->keys = NULL;
	*ret->count = 0;
	if (count == 0)
		return BATON_OK;
	struct baton_str rest, *list = arena_take(a, count, sizeof *list);
	if (!list || !arena_copy(a, text, &rest))
		return no_memory(text.len);
	for (size_t i = 0; i < count; i++)
		keys_next(&rest, &list[i]);
	*ret->key = list[0];
	*ret->keys = list;
	*ret->count = count;
	return BATON_OK;
}
