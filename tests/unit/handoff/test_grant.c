/* Whose a connection is, after each thing that can happen. */
#include "handoff/grant.h"

#include "support/harness.h"

static void the_broker_lets_go_or_takes_back_once(void **state)
{
	(void)state;
	static const enum passing_state after[PASSING_BROKEN + 1] = {
		[PASSING_ACCEPTED] = PASSING_GRANTED,
		[PASSING_REFUSED] = PASSING_REVOKED,
		[PASSING_TIMEOUT] = PASSING_REVOKED,
		[PASSING_BROKEN] = PASSING_REVOKED,
	};
	for (int first = PASSING_ACCEPTED; first <= PASSING_BROKEN; first++) {
		enum passing_state s = PASSING_OFFERED;
		assert_true(passing_next(&s, (enum passing_event)first));
		assert_int_equal(s, after[first]);
		for (int second = PASSING_ACCEPTED; second <= PASSING_BROKEN; second++) {
			assert_false(passing_next(&s, (enum passing_event)second));
			assert_int_equal(s, after[first]);
		}
	}
}

static void the_backend_owns_it_only_after_accepting_and_the_grant(void **state)
{
	(void)state;
	static const struct {
		enum held_event events[2];
		enum held_state end;
	} cases[] = {
		{{HELD_ACCEPT, HELD_GRANT}, HELD_OWNED},  {{HELD_ACCEPT_LAST, 0}, HELD_OWNED},
		{{HELD_ACCEPT, 0}, HELD_ACCEPTED},        {{HELD_ACCEPT, HELD_DEADLINE}, HELD_LOST},
		{{HELD_ACCEPT, HELD_CHANNEL}, HELD_LOST}, {{HELD_REFUSE, 0}, HELD_LOST},
		{{HELD_DEADLINE, 0}, HELD_LOST},          {{HELD_CHANNEL, 0}, HELD_LOST},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		enum held_state s = HELD_OFFERED;
		for (int k = 0; k < 2 && cases[i].events[k] != 0; k++)
			assert_true(held_next(&s, cases[i].events[k]));
		assert_int_equal(s, cases[i].end);
	}
}

static void what_is_lost_or_owned_stays_so(void **state)
{
	(void)state;
	static const enum held_state ends[] = {HELD_LOST, HELD_OWNED};
	for (int i = 0; i < 2; i++) {
		for (int e = HELD_ACCEPT; e <= HELD_CHANNEL; e++) {
			enum held_state s = ends[i];
			assert_false(held_next(&s, (enum held_event)e));
			assert_int_equal(s, ends[i]);
		}
	}
}

static void a_grant_that_was_not_asked_for_changes_nothing(void **state)
{
	(void)state;
	enum held_state s = HELD_OFFERED;
	assert_false(held_next(&s, HELD_GRANT));
	assert_int_equal(s, HELD_OFFERED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_broker_lets_go_or_takes_back_once),
		cmocka_unit_test(the_backend_owns_it_only_after_accepting_and_the_grant),
		cmocka_unit_test(what_is_lost_or_owned_stays_so),
		cmocka_unit_test(a_grant_that_was_not_asked_for_changes_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
