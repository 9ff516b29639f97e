/* Who gets a lease, and who keeps one. */
#include "queue/lease.h"
#include "support/harness.h"

#define NOW 1000

static const struct baton_id me = {{1}}, you = {{2}}, token = {{3}}, nonce = {{4}}, none;

static struct lease_row row_of(struct baton_id holder, int64_t expires)
{
	return (struct lease_row){
		.held = true,
		.owner.incarnation = holder,
		.token = token,
		.nonce = nonce,
		.fence = 7,
		.expires_at = {expires},
	};
}

static void a_lease_goes_to_whom_it_should(void **state)
{
	(void)state;
	static const struct {
		bool held, mine, dead, reentrant;
		int64_t expires;
		uint8_t nonce;
		enum lease_verdict verdict;
	} cases[] = {
		{false, false, false, false, NOW + 1, 0, LEASE_TAKE},
		{true, false, false, false, NOW, 0, LEASE_TAKE},
		{true, false, false, false, NOW - 1, 0, LEASE_TAKE},
		{true, true, false, true, NOW, 4, LEASE_TAKE},
		{true, false, false, false, NOW + 1, 0, LEASE_YIELD},
		{true, false, false, true, NOW + 1, 4, LEASE_YIELD},
		{true, false, true, false, NOW + 1, 0, LEASE_TAKE},
		{true, true, false, false, NOW + 1, 0, LEASE_YIELD_OWN},
		{true, true, true, false, NOW + 1, 0, LEASE_YIELD_OWN},
		{true, true, false, false, NOW + 1, 5, LEASE_YIELD_OWN},
		{true, true, false, false, NOW + 1, 4, LEASE_EXTEND},
		{true, true, false, true, NOW + 1, 0, LEASE_EXTEND},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct lease_row row = row_of(cases[i].mine ? me : you, cases[i].expires);
		row.held = cases[i].held;
		const struct lease_request request = {
			.incarnation = me,
			.nonce = {{cases[i].nonce}},
			.reentrant = cases[i].reentrant,
			.holder_is_dead = cases[i].dead,
			.now = {NOW},
		};
		if (lease_judge(&row, &request) != cases[i].verdict)
			fail_msg("case %zu: %d", i, (int)lease_judge(&row, &request));
	}
}

static void what_nobody_knows_is_free(void **state)
{
	(void)state;
	const struct lease_request request = {.incarnation = me, .now = {NOW}};
	assert_int_equal(lease_judge(NULL, &request), LEASE_TAKE);
}

static void two_that_say_no_nonce_are_not_the_same_request(void **state)
{
	(void)state;
	struct lease_row row = row_of(me, NOW + 1);
	const struct lease_request request = {.incarnation = me, .now = {NOW}};
	row.nonce = none;
	assert_int_equal(lease_judge(&row, &request), LEASE_YIELD_OWN);
}

static void every_part_of_a_proof_counts(void **state)
{
	(void)state;
	struct lease_row row = row_of(me, NOW);
	const struct lease_claimed good = {me, token, 7};
	const struct lease_claimed wrong[] = {{you, token, 7},
	                                      {me, nonce, 7},
	                                      {me, token, 8},
	                                      {me, token, 6}};
	assert_true(lease_is_proved(&row, &good));
	for (int i = 0; i < 4; i++)
		assert_false(lease_is_proved(&row, &wrong[i]));
	row.held = false;
	assert_false(lease_is_proved(&row, &good));
}

static void a_lease_lives_until_exactly_its_end(void **state)
{
	(void)state;
	struct lease_row row = row_of(me, NOW);
	assert_true(lease_is_live(&row, (struct baton_store_time){NOW - 1}));
	assert_false(lease_is_live(&row, (struct baton_store_time){NOW}));
	row.held = false;
	assert_false(lease_is_live(&row, (struct baton_store_time){NOW - 1}));
}

static void an_end_comes_nearer_only_when_asked_for(void **state)
{
	(void)state;
	static const struct {
		int64_t expires, ttl;
		bool shorten;
		int64_t end;
	} cases[] = {
		{1500, 100, false, 1500}, {1500, 100, true, 1100}, {1500, 600, false, 1600},
		{1500, 600, true, 1600},  {500, 100, false, 1100}, {1500, 500, false, 1500},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_int_equal(lease_extended((struct baton_store_time){cases[i].expires},
		                                (struct baton_store_time){NOW},
		                                baton_duration_ms(cases[i].ttl), cases[i].shorten)
		                         .ms,
		                 cases[i].end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lease_goes_to_whom_it_should),
		cmocka_unit_test(what_nobody_knows_is_free),
		cmocka_unit_test(two_that_say_no_nonce_are_not_the_same_request),
		cmocka_unit_test(every_part_of_a_proof_counts),
		cmocka_unit_test(a_lease_lives_until_exactly_its_end),
		cmocka_unit_test(an_end_comes_nearer_only_when_asked_for),
	};
	return cmocka_run_group_tests_name("lease", tests, NULL, NULL);
}
