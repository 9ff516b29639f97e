/* The contract of acquire, release and holder. */
#include <stdio.h>
#include <string.h>

#include "world.h"

static void a_free_key_is_held_by_the_first_who_asks(void **state)
{
	struct world *w = *state;
	assert_int_equal(try_key(w, 1, "k"), BATON_OK);
	assert_holder(w, "k", 1);
}

static void another_run_yields_and_is_told_who_holds_the_key(void **state)
{
	struct world *w = *state;
	struct ask a;
	struct baton_gate_yield yield;
	struct baton_id first = run_id(1);
	baton_fence fence;
	assert_int_equal(baton_gate_acquire(w->gate, &ask_key(&a, w, 1, "k")->ask, &fence, NULL),
	                 BATON_OK);
	world_time(w, 1500);
	assert_int_equal(baton_gate_acquire(w->gate, &ask_key(&a, w, 2, "k")->ask, NULL, &yield),
	                 BATON_YIELD);
	assert_int_equal(yield.key, 0);
	assert_int_equal(yield.why, BATON_GATE_HELD);
	assert_memory_equal(&yield.holder.run, &first, sizeof first);
	assert_int_equal(yield.holder.fence.v, fence.v);
	assert_int_equal(yield.holder.since.ns, at_ms(1000).ns);
	assert_int_equal(yield.holder.expires.ns, BATON_MONO_NEVER.ns);
	assert_int_equal(yield.holders, 1);
	assert_int_equal(yield.limit, 1);
	assert_int_equal(yield.waiting, 0);
	assert_int_equal(yield.until.ns, BATON_MONO_NEVER.ns);
}

static void a_refused_acquire_writes_nothing(void **state)
{
	struct world *w = *state;
	struct ask a;
	baton_fence fence = {77};
	assert_int_equal(try_key(w, 1, "k"), BATON_OK);
	size_t blocks = fault_live_blocks(&w->fault);
	size_t count = fault_count(&w->fault);
	assert_int_equal(baton_gate_acquire(w->gate, &ask_key(&a, w, 2, "k")->ask, &fence, NULL),
	                 BATON_YIELD);
	assert_int_equal(fence.v, 77);
	assert_int_equal(fault_live_blocks(&w->fault), blocks);
	assert_int_equal(fault_count(&w->fault), count);
	assert_int_equal(drop_key(w, 2, "k"), BATON_NOT_HELD);
	assert_holder(w, "k", 1);
}

static void the_same_run_asking_again_gets_the_same_hold(void **state)
{
	struct world *w = *state;
	struct ask a;
	baton_fence first;
	baton_fence again;
	ask_key(&a, w, 1, "k");
	assert_int_equal(baton_gate_acquire(w->gate, &a.ask, &first, NULL), BATON_OK);
	assert_int_equal(baton_gate_acquire(w->gate, &a.ask, &again, NULL), BATON_OK);
	assert_int_equal(first.v, again.v);
	assert_int_equal(drop_key(w, 1, "k"), BATON_OK);
	assert_int_equal(drop_key(w, 1, "k"), BATON_NOT_HELD);
}

static void releasing_another_runs_hold_changes_nothing(void **state)
{
	struct world *w = *state;
	assert_int_equal(try_key(w, 1, "k"), BATON_OK);
	assert_int_equal(drop_key(w, 2, "k"), BATON_NOT_HELD);
	assert_holder(w, "k", 1);
	assert_int_equal(try_key(w, 2, "k"), BATON_YIELD);
}

static void releasing_a_free_key_says_not_held(void **state)
{
	struct world *w = *state;
	assert_int_equal(drop_key(w, 1, "k"), BATON_NOT_HELD);
}

static void a_released_key_has_no_holder(void **state)
{
	struct world *w = *state;
	struct baton_gate_key k = {BATON_STR("k"), BATON_GATE_CLASS_DEFAULT};
	assert_false(baton_gate_is_held(w->gate, &k, at_ms(1000)));
	assert_int_equal(try_key(w, 1, "k"), BATON_OK);
	assert_true(baton_gate_is_held(w->gate, &k, at_ms(1000)));
	assert_int_equal(drop_key(w, 1, "k"), BATON_OK);
	assert_false(baton_gate_is_held(w->gate, &k, at_ms(1000)));
	assert_int_equal(baton_gate_holder(w->gate, &k, at_ms(1000), NULL), BATON_NOT_HELD);
}

static void fences_of_a_key_grow_with_every_new_hold(void **state)
{
	struct world *w = *state;
	struct ask a;
	uint64_t last = 0;
	for (unsigned i = 0; i < 100; i++) {
		baton_fence fence;
		assert_int_equal(baton_gate_acquire(w->gate, &ask_key(&a, w, i, "k")->ask, &fence,
		                                    NULL),
		                 BATON_OK);
		assert_true(fence.v > last);
		last = fence.v;
		assert_int_equal(drop_key(w, i, "k"), BATON_OK);
	}
}

static void different_keys_do_not_influence_each_other(void **state)
{
	struct world *w = *state;
	char key[32];
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(key, sizeof key, "key-%u", i);
		assert_int_equal(try_key(w, i, key), BATON_OK);
	}
	for (unsigned i = 0; i < 1000; i += 2) {
		snprintf(key, sizeof key, "key-%u", i);
		assert_int_equal(drop_key(w, i, key), BATON_OK);
	}
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(key, sizeof key, "key-%u", i);
		assert_int_equal(try_key(w, 5000, key), i % 2 ? BATON_YIELD : BATON_OK);
	}
}

static void the_same_text_in_two_classes_is_two_keys(void **state)
{
	struct world *w = *state;
	baton_gate_class other = world_class(w, with_limit(1));
	assert_int_equal(try_key(w, 1, "k"), BATON_OK);
	assert_int_equal(try_in(w, other, 2, "k"), BATON_OK);
	assert_int_equal(try_in(w, other, 1, "k"), BATON_YIELD);
	assert_holder(w, "k", 1);
}

static void keys_are_compared_to_the_last_byte(void **state)
{
	struct world *w = *state;
	char key[BATON_KEY_MAX + 1];
	static const size_t lengths[] = {1, 54, 55, 56, 57, 254, 255};
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		memset(key, 'x', sizeof key);
		key[lengths[i]] = '\0';
		assert_int_equal(try_key(w, 1, key), BATON_OK);
		key[lengths[i] - 1] = 'y';
		assert_int_equal(try_key(w, 2, key), BATON_OK);
		assert_holder(w, key, 2);
		key[lengths[i] - 1] = 'x';
		assert_holder(w, key, 1);
	}
}

static void a_key_may_hold_any_bytes(void **state)
{
	struct world *w = *state;
	struct baton_gate_key zero = {{"a\0b", 3}, BATON_GATE_CLASS_DEFAULT};
	struct baton_gate_key high = {{"a\0\xff", 3}, BATON_GATE_CLASS_DEFAULT};
	struct baton_gate_ask ask = {&zero, 1, run_id(1), at_ms(1000)};
	assert_int_equal(baton_gate_acquire(w->gate, &ask, NULL, NULL), BATON_OK);
	assert_true(baton_gate_is_held(w->gate, &zero, at_ms(1000)));
	assert_false(baton_gate_is_held(w->gate, &high, at_ms(1000)));
}

static void an_empty_key_is_an_error_that_states_the_limit(void **state)
{
	struct world *w = *state;
	assert_int_equal(try_key(w, 1, ""), BATON_INVALID);
	assert_non_null(strstr(baton_err_detail(), "key"));
	assert_non_null(strstr(baton_err_detail(), "255"));
	assert_int_equal(drop_key(w, 1, ""), BATON_INVALID);
}

static void a_key_of_256_bytes_is_an_error_that_states_both_lengths(void **state)
{
	struct world *w = *state;
	char key[BATON_KEY_MAX + 2];
	memset(key, 'x', sizeof key);
	key[BATON_KEY_MAX + 1] = '\0';
	assert_int_equal(try_key(w, 1, key), BATON_INVALID);
	assert_non_null(strstr(baton_err_detail(), "256"));
	assert_non_null(strstr(baton_err_detail(), "255"));
	key[BATON_KEY_MAX] = '\0';
	assert_int_equal(try_key(w, 1, key), BATON_OK);
}

static void no_keys_or_too_many_is_an_error_that_states_the_limit(void **state)
{
	struct world *w = *state;
	struct baton_gate_key keys[BATON_GATE_KEYS_MAX + 1];
	char names[BATON_GATE_KEYS_MAX + 1][8];
	for (unsigned i = 0; i <= BATON_GATE_KEYS_MAX; i++) {
		snprintf(names[i], sizeof names[i], "k%u", i);
		keys[i] = (struct baton_gate_key){baton_str_z(names[i]), {0}};
	}
	struct baton_gate_ask ask = {keys, 0, run_id(1), at_ms(1000)};
	assert_int_equal(baton_gate_acquire(w->gate, &ask, NULL, NULL), BATON_INVALID);
	ask.count = BATON_GATE_KEYS_MAX + 1;
	assert_int_equal(baton_gate_acquire(w->gate, &ask, NULL, NULL), BATON_INVALID);
	assert_string_equal(baton_err_detail(), "17 keys are asked for; 1 to 16 are allowed");
	ask.count = BATON_GATE_KEYS_MAX;
	assert_int_equal(baton_gate_acquire(w->gate, &ask, NULL, NULL), BATON_OK);
	assert_int_equal(baton_gate_release(w->gate, &ask), BATON_OK);
}

static void an_unknown_class_is_an_error(void **state)
{
	struct world *w = *state;
	assert_int_equal(try_in(w, (baton_gate_class){7}, 1, "k"), BATON_INVALID);
	assert_string_equal(baton_err_detail(),
	                    "class 7 is not known; this gate has classes 0 to 0");
	struct baton_key_policy policy = with_limit(2);
	assert_int_equal(baton_gate_class_set(w->gate, (baton_gate_class){7}, &policy, at_ms(1000)),
	                 BATON_INVALID);
}

static void a_gate_refuses_policies_that_it_cannot_keep(void **state)
{
	struct world *w = *state;
	baton_gate_class cls = {9};
	struct baton_key_policy policy = with_limit(0);
	assert_int_equal(baton_gate_class_add(w->gate, &policy, &cls), BATON_INVALID);
	policy = with_limit(1);
	policy.scope = BATON_KEY_SCOPE_HOST;
	assert_int_equal(baton_gate_class_add(w->gate, &policy, &cls), BATON_INVALID);
	assert_non_null(strstr(baton_err_detail(), "scope"));
	policy = with_limit(1);
	policy.on_conflict = BATON_KEY_SKIP;
	assert_int_equal(baton_gate_class_add(w->gate, &policy, &cls), BATON_INVALID);
	assert_non_null(strstr(baton_err_detail(), "on_conflict"));
	policy = with_limit(1);
	policy.fair = true;
	assert_int_equal(baton_gate_class_add(w->gate, &policy, &cls), BATON_INVALID);
	assert_non_null(strstr(baton_err_detail(), "fair"));
	assert_int_equal(cls.v, 9);
}

static void the_257th_class_is_an_error_that_states_the_limit(void **state)
{
	struct world *w = *state;
	for (unsigned i = 1; i < BATON_GATE_CLASSES_MAX; i++)
		assert_int_equal(world_class(w, with_limit(i)).v, i);
	baton_gate_class cls;
	struct baton_key_policy policy = with_limit(1);
	assert_int_equal(baton_gate_class_add(w->gate, &policy, &cls), BATON_FULL);
	assert_non_null(strstr(baton_err_detail(), "256"));
}

static void a_limit_admits_exactly_that_many(void **state)
{
	struct world *w = *state;
	static const uint32_t limits[] = {1, 2, 3, 16, 17, 18, 40, 1000};
	for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
		baton_gate_class cls = world_class(w, with_limit(limits[i]));
		for (unsigned run = 0; run < limits[i]; run++)
			assert_int_equal(try_in(w, cls, run, "k"), BATON_OK);
		assert_int_equal(try_in(w, cls, limits[i], "k"), BATON_YIELD);
		/* Every holder is known by name, the last as well as the first. */
		for (unsigned run = 0; run < limits[i]; run++)
			assert_int_equal(try_in(w, cls, run, "k"), BATON_OK);
		for (unsigned run = 0; run < limits[i]; run += 2)
			assert_int_equal(drop_in(w, cls, run, "k"), BATON_OK);
		for (unsigned run = 0; run < limits[i]; run++)
			assert_int_equal(drop_in(w, cls, run, "k"),
			                 run % 2 ? BATON_OK : BATON_NOT_HELD);
	}
}

static void a_limit_may_be_raised_and_lowered_while_runs_hold_the_key(void **state)
{
	struct world *w = *state;
	baton_gate_class cls = world_class(w, with_limit(1));
	struct baton_key_policy policy = with_limit(3);
	assert_int_equal(try_in(w, cls, 1, "k"), BATON_OK);
	assert_int_equal(try_in(w, cls, 2, "k"), BATON_YIELD);
	assert_int_equal(baton_gate_class_set(w->gate, cls, &policy, at_ms(1000)), BATON_OK);
	assert_int_equal(try_in(w, cls, 2, "k"), BATON_OK);
	assert_int_equal(try_in(w, cls, 3, "k"), BATON_OK);
	policy.limit = 2;
	assert_int_equal(baton_gate_class_set(w->gate, cls, &policy, at_ms(1000)), BATON_OK);
	assert_int_equal(drop_in(w, cls, 1, "k"), BATON_OK);
	assert_int_equal(try_in(w, cls, 4, "k"), BATON_YIELD);
	assert_int_equal(drop_in(w, cls, 2, "k"), BATON_OK);
	assert_int_equal(try_in(w, cls, 4, "k"), BATON_OK);
}

static void several_keys_are_taken_all_or_none(void **state)
{
	struct world *w = *state;
	struct ask a;
	struct baton_gate_yield yield;
	assert_int_equal(try_key(w, 1, "b"), BATON_OK);
	ask_more(ask_more(ask_key(&a, w, 2, "a"), "b", (baton_gate_class){0}), "c",
	         (baton_gate_class){0});
	assert_int_equal(baton_gate_acquire(w->gate, &a.ask, NULL, &yield), BATON_YIELD);
	assert_int_equal(yield.key, 1);
	assert_int_equal(try_key(w, 3, "a"), BATON_OK);
	assert_int_equal(drop_key(w, 3, "a"), BATON_OK);
	assert_int_equal(drop_key(w, 1, "b"), BATON_OK);
	assert_int_equal(baton_gate_acquire(w->gate, &a.ask, NULL, &yield), BATON_OK);
	assert_holder(w, "a", 2);
	assert_holder(w, "b", 2);
	assert_holder(w, "c", 2);
	assert_int_equal(baton_gate_release(w->gate, &a.ask), BATON_OK);
	assert_int_equal(try_key(w, 3, "c"), BATON_OK);
}

static void a_key_named_twice_counts_once(void **state)
{
	struct world *w = *state;
	struct ask a;
	baton_fence fences[3];
	baton_gate_class two = world_class(w, with_limit(2));
	a.ask = (struct baton_gate_ask){a.keys, 0, run_id(1), at_ms(1000)};
	ask_more(ask_more(ask_more(&a, "k", two), "other", two), "k", two);
	assert_int_equal(baton_gate_acquire(w->gate, &a.ask, fences, NULL), BATON_OK);
	assert_int_equal(fences[0].v, fences[2].v);
	assert_int_equal(try_in(w, two, 2, "k"), BATON_OK);
	assert_int_equal(try_in(w, two, 3, "k"), BATON_YIELD);
	assert_int_equal(baton_gate_release(w->gate, &a.ask), BATON_OK);
	assert_int_equal(drop_in(w, two, 1, "k"), BATON_NOT_HELD);
}

static void a_release_of_several_gives_back_what_is_held_and_says_so(void **state)
{
	struct world *w = *state;
	struct ask a;
	assert_int_equal(try_key(w, 1, "mine"), BATON_OK);
	assert_int_equal(try_key(w, 2, "theirs"), BATON_OK);
	ask_more(ask_key(&a, w, 1, "theirs"), "mine", (baton_gate_class){0});
	assert_int_equal(baton_gate_release(w->gate, &a.ask), BATON_NOT_HELD);
	assert_int_equal(try_key(w, 3, "mine"), BATON_OK);
	assert_holder(w, "theirs", 2);
}

static void a_guard_releases_once(void **state)
{
	struct world *w = *state;
	struct ask a;
	struct baton_gate_guard nothing = {NULL, NULL};
	ask_key(&a, w, 1, "k");
	assert_int_equal(baton_gate_acquire(w->gate, &a.ask, NULL, NULL), BATON_OK);
	struct baton_gate_guard guard = {w->gate, &a.ask};
	baton_gate_guard_done(&guard);
	assert_int_equal(try_key(w, 2, "k"), BATON_OK);
	baton_gate_guard_done(&guard);
	baton_gate_guard_done(&nothing);
	assert_holder(w, "k", 2);
}

struct seen {
	struct world *w;
	unsigned count;
	unsigned stop_after;
	bool runs[400];
};

static bool see(const struct baton_gate_hold *hold, void *arg)
{
	struct seen *seen = arg;
	unsigned run;
	char key[16];
	memcpy(&run, hold->holder.run.bytes, sizeof run);
	snprintf(key, sizeof key, "key-%u", run / 3);
	assert_true(baton_str_equal(hold->key.text, baton_str_z(key)));
	assert_false(seen->runs[run]);
	seen->runs[run] = true;
	/* No lock is held: the visitor may use the gate. */
	assert_int_equal(drop_in(seen->w, hold->key.cls, run, key), BATON_OK);
	return ++seen->count != seen->stop_after;
}

static void every_hold_is_visited_once_without_a_lock(void **state)
{
	struct world *w = *state;
	struct seen seen = {.w = w};
	char key[16];
	baton_gate_class three = world_class(w, with_limit(3));
	for (unsigned run = 0; run < 300; run++) {
		snprintf(key, sizeof key, "key-%u", run / 3);
		assert_int_equal(try_in(w, three, run, key), BATON_OK);
	}
	assert_int_equal(baton_gate_each(w->gate, at_ms(1000), see, &seen), BATON_OK);
	assert_int_equal(seen.count, 300);
	seen = (struct seen){.w = w};
	assert_int_equal(baton_gate_each(w->gate, at_ms(1000), see, &seen), BATON_OK);
	assert_int_equal(seen.count, 0);
}

static void a_visitor_can_end_the_walk(void **state)
{
	struct world *w = *state;
	struct seen seen = {.w = w, .stop_after = 5};
	char key[16];
	for (unsigned run = 0; run < 300; run += 3) {
		snprintf(key, sizeof key, "key-%u", run / 3);
		assert_int_equal(try_key(w, run, key), BATON_OK);
	}
	assert_int_equal(baton_gate_each(w->gate, at_ms(1000), see, &seen), BATON_OK);
	assert_int_equal(seen.count, 5);
}

static void a_gate_without_options_works(void **state)
{
	struct baton_gate *gate;
	struct baton_gate_key key = {BATON_STR("k"), BATON_GATE_CLASS_DEFAULT};
	struct baton_gate_ask ask = {&key, 1, run_id(1), {0}};
	(void)state;
	assert_int_equal(baton_gate_new(NULL, &gate), BATON_OK);
	assert_int_equal(baton_gate_acquire(gate, &ask, NULL, NULL), BATON_OK);
	baton_gate_free(gate);
	baton_gate_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(a_free_key_is_held_by_the_first_who_asks),
		WORLD_TEST(another_run_yields_and_is_told_who_holds_the_key),
		WORLD_TEST(a_refused_acquire_writes_nothing),
		WORLD_TEST(the_same_run_asking_again_gets_the_same_hold),
		WORLD_TEST(releasing_another_runs_hold_changes_nothing),
		WORLD_TEST(releasing_a_free_key_says_not_held),
		WORLD_TEST(a_released_key_has_no_holder),
		WORLD_TEST(fences_of_a_key_grow_with_every_new_hold),
		WORLD_TEST(different_keys_do_not_influence_each_other),
		WORLD_TEST(the_same_text_in_two_classes_is_two_keys),
		WORLD_TEST(keys_are_compared_to_the_last_byte),
		WORLD_TEST(a_key_may_hold_any_bytes),
		WORLD_TEST(an_empty_key_is_an_error_that_states_the_limit),
		WORLD_TEST(a_key_of_256_bytes_is_an_error_that_states_both_lengths),
		WORLD_TEST(no_keys_or_too_many_is_an_error_that_states_the_limit),
		WORLD_TEST(an_unknown_class_is_an_error),
		WORLD_TEST(a_gate_refuses_policies_that_it_cannot_keep),
		WORLD_TEST(the_257th_class_is_an_error_that_states_the_limit),
		WORLD_TEST(a_limit_admits_exactly_that_many),
		WORLD_TEST(a_limit_may_be_raised_and_lowered_while_runs_hold_the_key),
		WORLD_TEST(several_keys_are_taken_all_or_none),
		WORLD_TEST(a_key_named_twice_counts_once),
		WORLD_TEST(a_release_of_several_gives_back_what_is_held_and_says_so),
		WORLD_TEST(a_guard_releases_once),
		WORLD_TEST(every_hold_is_visited_once_without_a_lock),
		WORLD_TEST(a_visitor_can_end_the_walk),
		cmocka_unit_test(a_gate_without_options_works),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
