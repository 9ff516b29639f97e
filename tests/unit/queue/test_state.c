/* What can happen to a batch: every cell of the table, literally. */
#include "queue/state.h"
#include "support/harness.h"

enum {
	R = BATON_BATCH_READY,
	D = BATON_BATCH_DELAYED,
	T = BATON_BATCH_RETRY,
	C = BATON_BATCH_CLAIMED,
	X = BATON_BATCH_DEAD,
	K = BATON_BATCH_DONE,
	G = BATON_BATCH_GONE
};

/* Rows: the state before. Columns: put, put later, due, claim, complete, keep, fail, die, abandon,
 * snooze, cancel, abandon what was cancelled, revive, forget, skip. 0: it cannot happen. */
static const int table[][15] = {
	/* ready   */ {0, 0, 0, C, 0, 0, 0, 0, 0, 0, G, 0, 0, 0, K},
	/* delayed */ {0, 0, R, 0, 0, 0, 0, 0, 0, 0, G, 0, R, 0, 0},
	/* retry   */ {0, 0, R, 0, 0, 0, 0, 0, 0, 0, G, 0, R, 0, K},
	/* claimed */ {0, 0, 0, C, G, K, T, X, R, D, C, G, 0, 0, K},
	/* dead    */ {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, G, 0, R, 0, 0},
	/* done    */ {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, G, 0},
	/* gone    */ {R, D, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
};

static void every_event_leads_where_it_should(void **state)
{
	(void)state;
	for (int s = BATON_BATCH_READY; s <= BATON_BATCH_GONE; s++) {
		for (int e = EVENT_PUT; e < EVENT_END; e++) {
			int is = (int)batch_next((enum baton_batch_state)s, (enum batch_event)e);
			if (is != table[s - 1][e - 1])
				fail_msg("state %d, event %d: %d", s, e, is);
		}
	}
}

static void the_table_has_all_states_and_events(void **state)
{
	(void)state;
	assert_int_equal(sizeof table / sizeof table[0], BATON_BATCH_GONE);
	assert_int_equal(sizeof table[0] / sizeof table[0][0], EVENT_END - 1);
}

static void what_gave_way_is_shown_as_skipped(void **state)
{
	(void)state;
	assert_int_equal(batch_shown(BATON_BATCH_DONE, 0), BATON_BATCH_DONE);
	assert_int_equal(batch_shown(BATON_BATCH_DONE, 7), BATON_BATCH_SKIPPED);
	assert_int_equal(batch_shown(BATON_BATCH_READY, 7), BATON_BATCH_READY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_gave_way_is_shown_as_skipped),
		cmocka_unit_test(every_event_leads_where_it_should),
		cmocka_unit_test(the_table_has_all_states_and_events),
	};
	return cmocka_run_group_tests_name("state", tests, NULL, NULL);
}
