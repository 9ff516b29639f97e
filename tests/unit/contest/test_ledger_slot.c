/* Whatever a power failure leaves of a slot, the highest mark that was admitted is in it, and none
 * that nobody asked for. */
#include "contest/ledger_slot.h"

#include <string.h>

#include "support/harness.h"
#include "support/rng.h"
#include "support/soak.h"

#define WORDS (sizeof(struct ledger_slot) / sizeof(uint64_t))
#define ACTORS 3

static const struct baton_id seed = {{1, 2, 3}};
static const struct baton_id subject = {{4, 5, 6}};
static const struct slot_place place = {.seed = &seed, .index = 9};

static struct ledger_slot slot_of(uint64_t first, bool first_settles, uint64_t second,
                                  bool second_settles)
{
	struct ledger_slot s = {.subject = subject};
	if (first > 0)
		s.copies[0] = slot_copy_make(place, &subject, first, first_settles);
	if (second > 0)
		s.copies[1] = slot_copy_make(place, &subject, second, second_settles);
	return s;
}

static void zeros_are_free(void **state)
{
	(void)state;
	struct ledger_slot s = {.subject = {{0}}};
	assert_int_equal(slot_look(place, &s).kind, SLOT_FREE);
}

static void every_pair_of_copies_has_one_meaning(void **state)
{
	(void)state;
	static const struct {
		uint64_t first;
		uint64_t second;
		uint64_t highest;
		unsigned next;
		bool first_settles;
		bool second_settles;
		bool settled;
	} cases[] = {
		{5, 0, 5, 0, false, false, false}, /* just added                             */
		{5, 5, 5, 1, false, true, true},   /* and settled                            */
		{5, 6, 6, 1, false, false, false}, /* raised                                 */
		{6, 6, 6, 0, true, false, true},   /* and settled                            */
		{7, 6, 7, 0, false, false, false}, /* raised again                           */
		{0, 6, 6, 1, false, false, false}, /* the first torn                         */
		{7, 6, 7, 0, false, true, false},  /* raised over what was torn              */
		{0, 6, 6, 0, false, true, false},  /* damaged                                */
		{6, 5, 6, 1, true, false, false},  /* damaged                                */
		{6, 6, 6, 0, true, true, true},    /* damaged                                */
		{6, 6, 6, 0, false, false, false}, /* damaged                                */
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct ledger_slot s = slot_of(cases[i].first, cases[i].first_settles,
		                               cases[i].second, cases[i].second_settles);
		struct slot_view v = slot_look(place, &s);
		assert_int_equal(v.kind, SLOT_USED);
		assert_int_equal(v.highest, cases[i].highest);
		assert_int_equal(v.settled, cases[i].settled);
		assert_int_equal(v.next, cases[i].next);
		assert_int_equal(slot_can_settle(&v, v.highest), !v.settled);
		assert_false(slot_can_settle(&v, v.highest - 1));
		assert_false(slot_can_settle(&v, v.highest + 1));
	}
}

static void every_bit_counts(void **state)
{
	(void)state;
	for (unsigned bit = 0; bit < 32 * 8; bit++) {
		struct ledger_slot s = slot_of(5, false, 0, false);
		((unsigned char *)&s)[bit / 8] ^= (unsigned char)(1u << bit % 8);
		assert_int_equal(slot_look(place, &s).kind, SLOT_DAMAGED);
	}
}

static void a_slot_in_another_place_or_ledger_is_damaged(void **state)
{
	(void)state;
	static const struct baton_id other = {{1, 2, 4}};
	struct ledger_slot s = slot_of(5, false, 5, true);
	struct slot_place there = {.seed = &seed, .index = 10};
	assert_int_equal(slot_look(there, &s).kind, SLOT_DAMAGED);
	there = (struct slot_place){.seed = &other, .index = 9};
	assert_int_equal(slot_look(there, &s).kind, SLOT_DAMAGED);
}

static void what_is_no_fence_is_damaged(void **state)
{
	(void)state;
	struct ledger_slot s = slot_of(SLOT_FENCE_MAX, false, 0, false);
	assert_int_equal(slot_look(place, &s).highest, SLOT_FENCE_MAX);
	s = slot_of(SLOT_FENCE_MAX + 1, false, 0, false);
	assert_int_equal(slot_look(place, &s).kind, SLOT_DAMAGED);
	s = slot_of(0, false, 0, false);
	s.copies[0] = slot_copy_make(place, &subject, 0, true);
	assert_int_equal(slot_look(place, &s).kind, SLOT_DAMAGED);
}

/* A slot as the kernel has it in memory, and for each word of it what the disk may have: the word
 * at the last sync, or any that was written since. */
struct world {
	struct rng rng;
	uint64_t cache[WORDS];
	uint64_t maybe[WORDS][64];
	unsigned maybe_count[WORDS];
	uint64_t admitted; /* the highest that was told to be */
	uint64_t asked;    /* the highest that was asked for  */
	struct actor {
		enum {
			IDLE = 1,
			WRITTEN,
			SYNCED
		} at;
		uint64_t fence;
		uint64_t written;
	} actors[ACTORS];
};

static void slot_write(struct world *w, size_t offset, const void *bytes, size_t len)
{
	memcpy((char *)w->cache + offset, bytes, len);
	for (size_t i = offset / 8; i < (offset + len) / 8; i++) {
		assert_true(w->maybe_count[i] < 64);
		w->maybe[i][w->maybe_count[i]++] = w->cache[i];
	}
}

static void slot_sync(struct world *w)
{
	for (size_t i = 0; i < WORDS; i++) {
		w->maybe[i][0] = w->cache[i];
		w->maybe_count[i] = 1;
	}
}

static struct slot_view world_look(const struct world *w)
{
	struct ledger_slot s;
	memcpy(&s, w->cache, sizeof s);
	return slot_look(place, &s);
}

static void copy_write(struct world *w, unsigned which, uint64_t fence, bool settles)
{
	struct slot_copy copy = slot_copy_make(place, &subject, fence, settles);
	slot_write(w, offsetof(struct ledger_slot, copies) + which * sizeof copy, &copy,
	           sizeof copy);
}

/* The first step of the actor, as the ledger does it. Whoever is stale or done begins anew. */
static void actor_write(struct world *w, struct actor *a)
{
	struct slot_view v = world_look(w);
	if (a->fence == 0) {
		a->fence = v.highest + rng_below(&w->rng, 3);
		a->fence += a->fence == 0;
		w->asked = a->fence > w->asked ? a->fence : w->asked;
	}
	if (a->fence < v.highest) {
		a->fence = 0;
		return;
	}
	if (v.settled && a->fence == v.highest) {
		w->admitted = a->fence > w->admitted ? a->fence : w->admitted;
		a->fence = 0;
		return;
	}
	a->written = v.kind == SLOT_FREE || v.settled ? a->fence : v.highest;
	if (v.kind == SLOT_FREE) {
		struct ledger_slot s = slot_of(a->fence, false, 0, false);
		slot_write(w, 0, &s, sizeof s);
	} else {
		copy_write(w, v.next, a->written, false);
	}
	a->at = WRITTEN;
}

static void actor_step(struct world *w, struct actor *a)
{
	struct slot_view v;
	switch (a->at) {
	case IDLE:
		actor_write(w, a);
		break;
	case WRITTEN:
		slot_sync(w);
		a->at = SYNCED;
		break;
	case SYNCED:
		v = world_look(w);
		if (slot_can_settle(&v, a->written))
			copy_write(w, 1 - v.next, a->written, true);
		a->at = IDLE;
		break;
	}
}

/* What the disk has is what there is now; everybody is dead and begins anew. */
static void power_failure(struct world *w)
{
	for (size_t i = 0; i < WORDS; i++)
		w->cache[i] = w->maybe[i][rng_below(&w->rng, w->maybe_count[i])];
	slot_sync(w);
	for (unsigned i = 0; i < ACTORS; i++)
		w->actors[i] = (struct actor){.at = IDLE};
}

static void a_power_failure_takes_no_mark_that_was_admitted(void **state)
{
	(void)state;
	struct rng rng = rng_seed_from_env();
	unsigned failures = 0;
	for (unsigned round = 0; round < soak_scale(3000, 300000); round++) {
		struct world w = {.rng = rng_seed(rng_next(&rng))};
		slot_sync(&w);
		for (unsigned i = 0; i < ACTORS; i++)
			w.actors[i].at = IDLE;
		for (unsigned step = 0; step < 60; step++) {
			if (rng_below(&w.rng, 8) > 0) {
				actor_step(&w, &w.actors[rng_below(&w.rng, ACTORS)]);
				continue;
			}
			power_failure(&w);
			failures++;
			struct slot_view v = world_look(&w);
			assert_true(v.highest >= w.admitted);
			assert_true(v.highest <= w.asked);
			if (v.kind == SLOT_DAMAGED)
				break;
		}
	}
	assert_true(failures > 3000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(zeros_are_free),
		cmocka_unit_test(every_pair_of_copies_has_one_meaning),
		cmocka_unit_test(every_bit_counts),
		cmocka_unit_test(a_slot_in_another_place_or_ledger_is_damaged),
		cmocka_unit_test(what_is_no_fence_is_damaged),
		cmocka_unit_test(a_power_failure_takes_no_mark_that_was_admitted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
