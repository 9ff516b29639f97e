/* What a guardian is at, and what comes next. */
#include "guardian/phase.h"

#include "support/harness.h"

/* Follows the events from `phase`; 0 at the end: one of them cannot happen there. */
static enum phase after(enum phase phase, const enum phase_event *events, size_t count)
{
	for (size_t i = 0; i < count && phase != 0; i++)
		phase = phase_next(phase, events[i]);
	return phase;
}

#define AFTER(phase, ...)                                     \
	after(phase, (const enum phase_event[]){__VA_ARGS__}, \
	      sizeof((const enum phase_event[]){__VA_ARGS__}) / sizeof(enum phase_event))

static void a_command_that_ends_with_all_of_its_own_frees_the_subject(void **state)
{
	(void)state;
	assert_int_equal(AFTER(PHASE_TAKING, EVENT_TAKEN, EVENT_LATCHED, EVENT_GO), PHASE_RUNNING);
	assert_int_equal(AFTER(PHASE_RUNNING, EVENT_COMMAND_ENDED, EVENT_EMPTY, EVENT_TIME_UP),
	                 PHASE_DONE);
}

static void what_a_command_leaves_behind_keeps_the_subject(void **state)
{
	(void)state;
	assert_int_equal(AFTER(PHASE_RUNNING, EVENT_COMMAND_ENDED), PHASE_LEFT);
	assert_int_equal(AFTER(PHASE_LEFT, EVENT_EMPTY, EVENT_PATRON_GONE), PHASE_KEEPING);
}

static void an_offer_that_is_not_taken_in_time_is_made_anew_from_the_start(void **state)
{
	(void)state;
	assert_int_equal(AFTER(PHASE_OFFERED, EVENT_TIME_UP), PHASE_WITHDRAWN);
	assert_int_equal(AFTER(PHASE_WITHDRAWN, EVENT_GO, EVENT_BACK), PHASE_TAKING);
}

static void nothing_that_runs_is_left_before_all_of_it_has_ended(void **state)
{
	(void)state;
	for (enum phase p = PHASE_RUNNING; p <= PHASE_KILLING; p++) {
		for (enum phase_event e = EVENT_TAKEN; e < EVENTS; e++) {
			enum phase next = phase_next(p, e);
			bool still = next >= PHASE_RUNNING && next <= PHASE_KILLING;
			assert_true(next == 0 || still || e == EVENT_EMPTY);
		}
	}
}

static void a_dead_patron_a_loss_and_a_request_end_what_runs(void **state)
{
	(void)state;
	static const enum phase_event reasons[] = {EVENT_PATRON_GONE, EVENT_LOST, EVENT_STOP};
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(phase_next(PHASE_LATCHING, reasons[i]), PHASE_DONE);
		assert_int_equal(phase_next(PHASE_OFFERED, reasons[i]), PHASE_DONE);
		assert_int_equal(phase_next(PHASE_RUNNING, reasons[i]), PHASE_ENDING);
		assert_int_equal(phase_next(PHASE_LEFT, reasons[i]), PHASE_ENDING);
	}
}

static void who_does_not_end_when_asked_is_killed(void **state)
{
	(void)state;
	assert_int_equal(AFTER(PHASE_ENDING, EVENT_COMMAND_ENDED, EVENT_TIME_UP), PHASE_KILLING);
	assert_int_equal(AFTER(PHASE_KILLING, EVENT_COMMAND_ENDED, EVENT_EMPTY), PHASE_KEEPING);
	assert_int_equal(AFTER(PHASE_KILLING, EVENT_EMPTY, EVENT_EMPTY), PHASE_KEEPING);
}

static void a_command_begins_only_once_and_only_when_offered(void **state)
{
	(void)state;
	for (enum phase p = PHASE_TAKING; p < PHASES; p++) {
		for (enum phase_event e = EVENT_TAKEN; e < EVENTS; e++) {
			bool begins = phase_next(p, e) == PHASE_RUNNING;
			assert_int_equal(begins, p == PHASE_OFFERED && e == EVENT_GO);
		}
	}
}

static void whatever_can_happen_at_any_time_is_provided_for(void **state)
{
	(void)state;
	for (enum phase p = PHASE_TAKING; p < PHASE_DONE; p++) {
		bool holds = p != PHASE_TAKING && p != PHASE_WITHDRAWN;
		assert_int_not_equal(phase_next(p, EVENT_PATRON_GONE), 0);
		assert_int_not_equal(phase_next(p, EVENT_STOP), 0);
		assert_int_equal(phase_next(p, EVENT_LOST) != 0, holds);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_command_that_ends_with_all_of_its_own_frees_the_subject),
		cmocka_unit_test(what_a_command_leaves_behind_keeps_the_subject),
		cmocka_unit_test(an_offer_that_is_not_taken_in_time_is_made_anew_from_the_start),
		cmocka_unit_test(nothing_that_runs_is_left_before_all_of_it_has_ended),
		cmocka_unit_test(a_dead_patron_a_loss_and_a_request_end_what_runs),
		cmocka_unit_test(who_does_not_end_when_asked_is_killed),
		cmocka_unit_test(a_command_begins_only_once_and_only_when_offered),
		cmocka_unit_test(whatever_can_happen_at_any_time_is_provided_for),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
