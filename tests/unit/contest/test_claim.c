/* One attempt, who is told what, and everything that can be done with a claim. */
#include <baton/claim.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "world.h"

static const struct baton_claim untouched = {.fence = {77}, .slot = 7};

static void assert_untouched(const struct baton_claim *claim)
{
	assert_memory_equal(claim, &untouched, sizeof untouched);
}

static void what_is_free_is_held_with_a_fence(void **state)
{
	struct world *w = *state;
	struct baton_claim claim = hold(w->ada, "x");
	assert_ptr_equal(claim.fleet, w->ada);
	assert_true(claim.fence.v > 0);
	assert_int_equal(baton_claim_check(&claim, NULL), BATON_OK);
}

static void who_yields_is_told_who_holds(void **state)
{
	struct world *w = *state;
	struct baton_claim_holder holder;
	struct baton_mono before = now();
	struct baton_claim held = hold_for(w->ada, "x", 50000);
	struct baton_claim claim = untouched;
	struct baton_id ada = baton_fleet_incarnation(w->ada);
	assert_int_equal(try_for(w->ben, "x", 0, &claim, &holder), BATON_YIELD);
	assert_untouched(&claim);
	assert_int_equal(holder.why, BATON_CLAIM_HELD);
	assert_false(holder.own);
	assert_int_equal(holder.pid, getpid());
	assert_string_equal(holder.owner, "ada");
	assert_true(baton_id_equal(&holder.incarnation, &ada));
	assert_int_equal(holder.fence.v, held.fence.v);
	/* The cheap clock is behind, by how much is the machine's business. */
	assert_true(holder.since.ns >= before.ns - INT64_C(10000000000));
	assert_true(holder.since.ns <= now().ns);
	assert_true(holder.expires.ns >= before.ns + INT64_C(50000000000));
	assert_true(holder.expires.ns <= now().ns + INT64_C(50000000000));
}

static void a_claim_without_a_ttl_never_expires(void **state)
{
	struct world *w = *state;
	struct baton_duration left;
	struct baton_claim claim = hold(w->ada, "x");
	assert_int_equal(holder_of(w->ben, "x").expires.ns, INT64_MAX);
	assert_int_equal(baton_claim_check(&claim, &left), BATON_OK);
	assert_int_equal(left.ns, INT64_MAX);
	assert_int_equal(try_label(w->ben, "x", NULL), BATON_YIELD);
}

static void a_yield_needs_no_room_for_the_holder(void **state)
{
	struct world *w = *state;
	hold(w->ada, "x");
	assert_int_equal(try_for(w->ben, "x", 0, NULL, NULL), BATON_YIELD);
}

static void asking_again_is_a_yield_to_oneself(void **state)
{
	struct world *w = *state;
	struct baton_claim_holder holder;
	struct baton_claim held = hold(w->ada, "x");
	assert_int_equal(try_for(w->ada, "x", 0, NULL, &holder), BATON_YIELD);
	assert_true(holder.own);
	assert_int_equal(holder.fence.v, held.fence.v);
	assert_int_equal(baton_claim_check(&held, NULL), BATON_OK);
}

static void adopting_gives_the_same_fence_and_no_second_tenure(void **state)
{
	struct world *w = *state;
	struct baton_subject x = subject_of("x");
	struct baton_claim held = hold(w->ada, "x");
	struct baton_claim adopted;
	assert_int_equal(baton_claim_adopt(w->ada, &x, &adopted), BATON_OK);
	assert_int_equal(adopted.fence.v, held.fence.v);
	assert_int_equal(baton_claim_release(&adopted), BATON_OK);
	assert_int_equal(baton_claim_check(&held, NULL), BATON_NOT_HELD);
	assert_int_equal(baton_claim_release(&held), BATON_NOT_HELD);
}

static void what_is_not_held_cannot_be_adopted(void **state)
{
	struct world *w = *state;
	struct baton_subject x = subject_of("x"), y = subject_of("y"), z = subject_of("z");
	struct baton_claim claim = untouched;
	struct baton_claim mine = hold(w->ada, "y");
	hold(w->ben, "x");
	baton_claim_release(&mine);
	assert_int_equal(baton_claim_adopt(w->ada, &x, &claim), BATON_NOT_HELD);
	assert_int_equal(baton_claim_adopt(w->ada, &y, &claim), BATON_NOT_HELD);
	assert_int_equal(baton_claim_adopt(w->ada, &z, &claim), BATON_NOT_HELD);
	assert_untouched(&claim);
}

static void what_was_released_can_be_had_with_a_higher_fence(void **state)
{
	struct world *w = *state;
	struct baton_claim first = hold(w->ada, "x");
	assert_int_equal(baton_claim_release(&first), BATON_OK);
	assert_int_equal(holder_of(w->ben, "x").fence.v, 0);
	struct baton_claim second = hold(w->ben, "x");
	assert_true(second.fence.v > first.fence.v);
}

static void a_second_release_is_a_reported_no_op(void **state)
{
	struct world *w = *state;
	struct baton_claim claim = hold(w->ada, "x");
	assert_int_equal(baton_claim_release(&claim), BATON_OK);
	assert_int_equal(baton_claim_release(&claim), BATON_NOT_HELD);
	struct baton_claim next = hold(w->ada, "x");
	assert_int_equal(baton_claim_release(&claim), BATON_NOT_HELD);
	assert_int_equal(baton_claim_check(&next, NULL), BATON_OK);
}

static void a_stale_claim_never_touches_its_successor(void **state)
{
	struct world *w = *state;
	struct baton_duration left = {5};
	struct baton_claim stale = hold(w->ada, "x");
	baton_claim_release(&stale);
	struct baton_claim theirs = hold_for(w->ben, "x", 50000);
	struct baton_mono expires = holder_of(w->ben, "x").expires;
	assert_int_equal(baton_claim_release(&stale), BATON_NOT_HELD);
	assert_int_equal(baton_claim_renew(&stale, baton_duration_s(1000)), BATON_NOT_HELD);
	assert_int_equal(baton_claim_check(&stale, &left), BATON_NOT_HELD);
	assert_int_equal(left.ns, 5);
	assert_int_equal(holder_of(w->ben, "x").expires.ns, expires.ns);
	assert_int_equal(baton_claim_check(&theirs, NULL), BATON_OK);
	/* Nor one of its own member's. */
	baton_claim_release(&theirs);
	struct baton_claim mine = hold(w->ada, "x");
	assert_int_equal(baton_claim_release(&stale), BATON_NOT_HELD);
	assert_int_equal(baton_claim_check(&mine, NULL), BATON_OK);
}

static void a_claim_of_zeros_is_nothing(void **state)
{
	(void)state;
	struct baton_claim zeros = {.fleet = NULL};
	assert_int_equal(baton_claim_release(&zeros), BATON_NOT_HELD);
	assert_int_equal(baton_claim_check(&zeros, NULL), BATON_NOT_HELD);
	assert_int_equal(baton_claim_renew(&zeros, baton_duration_s(1)), BATON_NOT_HELD);
	baton_claim_done(&zeros);
}

static void a_claim_that_goes_out_of_scope_is_released(void **state)
{
	struct world *w = *state;
	{
		struct baton_claim claim __attribute__((cleanup(baton_claim_done))) =
			hold(w->ada, "x");
		assert_int_equal(try_label(w->ben, "x", NULL), BATON_YIELD);
		assert_int_equal(baton_claim_check(&claim, NULL), BATON_OK);
	}
	assert_int_equal(try_label(w->ben, "x", NULL), BATON_OK);
}

static void a_claim_that_is_done_has_become_zeros(void **state)
{
	struct world *w = *state;
	const struct baton_claim zeros = {.fleet = NULL};
	struct baton_claim claim = hold(w->ada, "x");
	baton_claim_done(&claim);
	assert_memory_equal(&claim, &zeros, sizeof zeros);
}

static void force_takes_it_away_and_says_from_whom(void **state)
{
	struct world *w = *state;
	struct baton_subject x = subject_of("x");
	struct baton_claim_holder holder;
	struct baton_claim claim = hold(w->ada, "x");
	assert_int_equal(baton_claim_force(w->ben, &x, &holder), BATON_OK);
	assert_string_equal(holder.owner, "ada");
	assert_int_equal(holder.fence.v, claim.fence.v);
	assert_int_equal(baton_claim_check(&claim, NULL), BATON_NOT_HELD);
	assert_int_equal(baton_claim_renew(&claim, baton_duration_s(1)), BATON_NOT_HELD);
	assert_int_equal(baton_claim_release(&claim), BATON_NOT_HELD);
	assert_int_equal(baton_claim_force(w->ben, &x, NULL), BATON_NOT_HELD);
	assert_true(hold(w->ben, "x").fence.v > claim.fence.v);
}

static void nobody_can_be_forced_out_of_what_nobody_holds(void **state)
{
	struct world *w = *state;
	struct baton_subject x = subject_of("x"), y = subject_of("y");
	struct baton_claim_holder holder = {.pid = 5};
	hold_for(w->ada, "y", 1);
	assert_int_equal(baton_claim_force(w->ben, &x, &holder), BATON_NOT_HELD);
	assert_int_equal(baton_claim_holder(w->ben, &y, in_ms(10), &holder), BATON_NOT_HELD);
	assert_int_equal(holder.pid, 5);
}

static void the_holder_can_be_asked_for(void **state)
{
	struct world *w = *state;
	struct baton_subject x = subject_of("x");
	struct baton_claim_holder holder = {.pid = 5};
	assert_int_equal(baton_claim_holder(w->ben, &x, now(), &holder), BATON_NOT_HELD);
	assert_int_equal(holder.pid, 5);
	struct baton_claim claim = hold(w->ada, "x");
	assert_int_equal(baton_claim_holder(w->ben, &x, now(), &holder), BATON_OK);
	assert_false(holder.own);
	assert_int_equal(holder.fence.v, claim.fence.v);
	assert_int_equal(baton_claim_holder(w->ada, &x, now(), &holder), BATON_OK);
	assert_true(holder.own);
}

/* Word by word, because the keepers live. */
static void segment_copy(const struct segment *s, uint64_t *words)
{
	const uint64_t *from = s->base;
	for (size_t i = 0; i < s->size / sizeof *from; i++)
		words[i] = __atomic_load_n(&from[i], __ATOMIC_SEQ_CST);
}

static void losers_write_nothing(void **state)
{
	struct world *w = *state;
	hold(w->ada, "x");
	const struct segment *s = &w->ada->view->segment;
	uint64_t *before = calloc(1, s->size), *after = calloc(1, s->size);
	if (before == NULL || after == NULL)
		abort();
	segment_copy(s, before);
	struct baton_subject x = subject_of("x"), y = subject_of("y");
	struct baton_claim claim = untouched;
	assert_int_equal(try_label(w->ben, "x", &claim), BATON_YIELD);
	assert_int_equal(try_label(w->ada, "x", &claim), BATON_YIELD);
	assert_int_equal(baton_claim_adopt(w->ben, &x, &claim), BATON_NOT_HELD);
	assert_int_equal(baton_claim_force(w->ben, &y, NULL), BATON_NOT_HELD);
	segment_copy(s, after);
	assert_memory_equal(before, after, s->size);
	free(before);
	free(after);
}

static void threads_of_a_member_share_what_it_holds(void **state)
{
	struct world *w = *state;
	struct queued q;
	struct baton_claim held = hold(w->ada, "x");
	queued_start(&q, w->ada, "x", some_day());
	assert_int_equal(queued_end(&q), BATON_YIELD);
	assert_true(q.holder.own);
	assert_int_equal(baton_claim_release(&held), BATON_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(what_is_free_is_held_with_a_fence),
		WORLD_TEST(who_yields_is_told_who_holds),
		WORLD_TEST(a_claim_without_a_ttl_never_expires),
		WORLD_TEST(a_yield_needs_no_room_for_the_holder),
		WORLD_TEST(asking_again_is_a_yield_to_oneself),
		WORLD_TEST(adopting_gives_the_same_fence_and_no_second_tenure),
		WORLD_TEST(what_is_not_held_cannot_be_adopted),
		WORLD_TEST(what_was_released_can_be_had_with_a_higher_fence),
		WORLD_TEST(a_second_release_is_a_reported_no_op),
		WORLD_TEST(a_stale_claim_never_touches_its_successor),
		WORLD_TEST(a_claim_of_zeros_is_nothing),
		WORLD_TEST(a_claim_that_goes_out_of_scope_is_released),
		WORLD_TEST(a_claim_that_is_done_has_become_zeros),
		WORLD_TEST(force_takes_it_away_and_says_from_whom),
		WORLD_TEST(nobody_can_be_forced_out_of_what_nobody_holds),
		WORLD_TEST(the_holder_can_be_asked_for),
		WORLD_TEST(losers_write_nothing),
		WORLD_TEST(threads_of_a_member_share_what_it_holds),
	};
	return cmocka_run_group_tests_name("claim", tests, NULL, NULL);
}
