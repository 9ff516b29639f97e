/* How a run ended, copied so that it lasts until the store has been told. */
#include "runner/ends.h"

#include "base/arena.h"
#include "base/fail.h"
#include "base/mem.h"
#include "store/store.h"

struct copy {
	struct arena arena;
};

static void drop(void *hold)
{
	struct copy *copy = hold;
	const struct baton_alloc *alloc = copy->arena.alloc;
	arena_done(&copy->arena);
	mem_free(alloc, copy, 1, sizeof *copy);
}

static bool copy_payloads(struct arena *a, struct baton_batch *b)
{
	struct baton_str *payloads = arena_take(a, b->count, sizeof *payloads);
	bool ok = payloads;
	for (size_t i = 0; i < b->count && ok; i++)
		ok = arena_copy(a, b->payloads[i], &payloads[i]);
	b->payloads = payloads;
	return ok;
}

static bool copy_keys(struct arena *a, struct baton_batch *b)
{
	struct baton_str *keys = arena_take(a, b->key_count, sizeof *keys);
	bool ok = keys;
	for (size_t i = 0; i < b->key_count && ok; i++)
		ok = arena_copy(a, b->keys[i], &keys[i]);
	b->keys = keys;
	return ok;
}

static bool copy_batch(struct arena *a, struct baton_batch *b)
{
	return arena_copy(a, b->queue, &b->queue) && arena_copy(a, b->lane, &b->lane) &&
	       arena_copy(a, b->key, &b->key) && arena_copy(a, b->group, &b->group) &&
	       arena_copy(a, b->source, &b->source) && copy_keys(a, b) && copy_payloads(a, b);
}

static bool copy_emits(struct arena *a, struct core_end *end)
{
	struct baton_batch *emits = arena_take(a, end->emit_count, sizeof *emits);
	bool ok = emits;
	for (size_t i = 0; i < end->emit_count && ok; i++) {
		emits[i] = end->emits[i];
		ok = copy_batch(a, &emits[i]);
	}
	end->emits = emits;
	return ok;
}

static enum baton_err copy(const struct baton_alloc *alloc, struct core_end *end)
{
	struct copy *copy = mem_new(alloc, 1, sizeof *copy);
	if (!copy)
		return fail_memory(sizeof *copy, "the end of a run");
	arena_init(&copy->arena, alloc);
	if (end->error.len > BATON_ERROR_MAX)
		end->error.len = BATON_ERROR_MAX;
	if (arena_copy(&copy->arena, end->result, &end->result) &&
	    arena_copy(&copy->arena, end->error, &end->error) &&
	    (end->emit_count == 0 || copy_emits(&copy->arena, end))) {
		end->drop = drop;
		end->hold = copy;
		return BATON_OK;
	}
	drop(copy);
	return fail_memory(end->result.len, "the end of a run");
}

enum baton_err end_copy(const struct baton_alloc *alloc, const struct baton_work_end *end,
                        struct core_end *ret)
{
	*ret = (struct core_end){
		.how = end->how,
		.result = end->result,
		.error = end->error,
		.delay = end->delay,
		.emits = end->emits,
		.emit_count = end->emit_count,
	};
	enum baton_err e = store_check_ends(end, 1);
	if (e == BATON_OK)
		e = copy(alloc, ret);
	if (e != BATON_OK)
		*ret = (struct core_end){
			.how = BATON_FAIL,
			.error = e == BATON_INVALID
		                         ? BATON_STR("what it ended with is beyond a limit")
		                         : BATON_STR("there was no memory for what it ended with"),
		};
	return e;
}
