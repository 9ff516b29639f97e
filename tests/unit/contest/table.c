/* Looks at every part of a fleet's table in which nobody changes anything. */
#include "table.h"

#include <string.h>

#include "contest/index.h"
#include "contest/subjects.h"
#include "support/harness.h"

static bool name_of(const struct view *v, uint32_t n, struct name_text *text,
                    struct baton_subject *ret)
{
	return subjects_name(v, n, atomic_load(&v->slots[n].hash), text, ret);
}

static unsigned entries_to(const struct view *v, uint32_t n)
{
	unsigned count = 0;
	for (uint32_t i = 0; i < v->shard_count * v->shard_places; i++)
		count += (uint32_t)atomic_load(&v->index[i]) == n + 1;
	return count;
}

static bool walk_finds(const struct view *v, uint32_t n)
{
	struct index_walk walk = index_begin(v, atomic_load(&v->slots[n].hash));
	uint32_t found;
	while (index_next(v, &walk, &found)) {
		if (found == n)
			return true;
	}
	return false;
}

static void listed_check(const struct view *v, uint32_t n)
{
	struct name_text text;
	struct baton_subject name;
	if (!name_of(v, n, &text, &name))
		fail_msg("place %u is listed and has no name", n);
	if (key_make(v, &name).hash != atomic_load(&v->slots[n].hash))
		fail_msg("place %u has another name than its hash says", n);
	if (entries_to(v, n) != 1 || !walk_finds(v, n))
		fail_msg("place %u is listed, has %u entries, and is %sfound", n, entries_to(v, n),
		         walk_finds(v, n) ? "" : "not ");
	if (word_code(slot_load(&v->slots[n])) == WORD_VACANT)
		fail_msg("place %u is listed and vacant", n);
}

static void unlisted_check(const struct view *v, uint32_t n)
{
	uint32_t code = word_code(slot_load(&v->slots[n]));
	if (entries_to(v, n) != 0)
		fail_msg("place %u is not listed and has an entry", n);
	if (code != WORD_VACANT)
		fail_msg("place %u is not listed and was taken by member %u", n, code);
}

static void entries_check(const struct view *v)
{
	for (uint32_t i = 0; i < v->shard_count * v->shard_places; i++) {
		uint64_t entry = atomic_load(&v->index[i]);
		uint32_t n = (uint32_t)entry - 1;
		if (entry == 0)
			continue;
		if (n >= v->params[PARAM_SUBJECTS] || atomic_load(&v->slots[n].listed) != 1)
			fail_msg("entry %u leads to place %u, which is none", i, n);
		if (entry >> 32 != atomic_load(&v->slots[n].hash) >> 32)
			fail_msg("entry %u leads to place %u by another hash", i, n);
	}
}

/* How often the waiter stands in the line of place `n`. */
static unsigned times_in_line(const struct view *v, uint32_t n, uint32_t waiter)
{
	unsigned times = 0, steps = 0;
	uint32_t at = atomic_load(&v->slots[n].line);
	while (at != 0) {
		if (at > v->params[PARAM_WAITERS] || steps++ > v->params[PARAM_WAITERS])
			fail_msg("the line of place %u has no end", n);
		const struct waiter *w = &v->waiters[at - 1];
		if (atomic_load(&w->slot) != n + 1 || atomic_load(&w->owner) == 0)
			fail_msg("waiter %u stands in the line of place %u, and does not say so",
			         at - 1, n);
		times += at == waiter + 1;
		at = atomic_load(&w->next);
	}
	return times;
}

static void lines_check(const struct view *v)
{
	for (uint32_t i = 0; i < v->params[PARAM_WAITERS]; i++) {
		uint32_t place = atomic_load(&v->waiters[i].slot);
		bool taken = atomic_load(&v->waiters[i].owner) != 0;
		for (uint32_t n = 0; n < v->params[PARAM_SUBJECTS]; n++) {
			unsigned wanted = taken && place == n + 1 ? 1 : 0;
			if (atomic_load(&v->slots[n].listed) == 1 &&
			    times_in_line(v, n, i) != wanted)
				fail_msg("waiter %u stands %u times in the line of place %u", i,
				         times_in_line(v, n, i), n);
		}
	}
}

void table_check(const struct view *v)
{
	for (uint32_t i = 0; i < v->shard_count; i++)
		assert_int_equal(atomic_load(&v->shards[i].version) & 1, 0);
	for (uint32_t n = 0; n < v->params[PARAM_SUBJECTS]; n++) {
		struct word w = slot_load(&v->slots[n]);
		if (word_tenure(w) > atomic_load(&v->control->mark))
			fail_msg("place %u has a fence above the mark", n);
		if (atomic_load(&v->slots[n].listed) != 0)
			listed_check(v, n);
		else
			unlisted_check(v, n);
	}
	entries_check(v);
	lines_check(v);
}

unsigned table_members(const struct view *v)
{
	unsigned count = 0;
	for (uint32_t i = 0; i < v->params[PARAM_MEMBERS]; i++)
		count += atomic_load(&v->members[i].joined) != 0;
	return count;
}

unsigned table_waiters(const struct view *v)
{
	unsigned count = 0;
	for (uint32_t i = 0; i < v->params[PARAM_WAITERS]; i++)
		count += atomic_load(&v->waiters[i].owner) != 0;
	return count;
}

struct word table_word(const struct view *v, const char *label)
{
	struct name_text text;
	struct baton_subject name;
	for (uint32_t n = 0; n < v->params[PARAM_SUBJECTS]; n++) {
		if (name_of(v, n, &text, &name) && strcmp(text.space, "t") == 0 &&
		    strcmp(text.label, label) == 0)
			return slot_load(&v->slots[n]);
	}
	return (struct word){0, 0};
}
