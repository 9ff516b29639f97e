/* Acknowledgements: in time, from the right one, once. */
#include "handoff/acks.h"

#include <string.h>

#include "support/fault.h"
#include "support/harness.h"

#define MS(ms) ((struct baton_mono){(ms)*INT64_C(1000000)})

struct world {
	struct fault fault;
	struct tokens tokens;
	struct acks acks;
	struct token token; /* of the connection 1, bound to a backend of generation 1 */
};

static const struct token_binding binding = {{"chat", 4}, 1, 1};

static int setup(void **state)
{
	static struct world w;
	const struct tokens_policy policy = {TOKENS_TTL_MS, 8, TOKENS_TRIES};
	fault_init(&w.fault);
	assert_int_equal(tokens_init(&w.tokens, &w.fault.alloc, policy, token_source_system()),
	                 BATON_OK);
	assert_int_equal(acks_init(&w.acks, &w.fault.alloc, &w.tokens, ACKS_TIMEOUT_MS, 8),
	                 BATON_OK);
	assert_int_equal(tokens_issue(&w.tokens, &binding, MS(0), &w.token), BATON_OK);
	assert_int_equal(acks_register(&w.acks, &w.token, 5, 77, MS(0)), BATON_OK);
	*state = &w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	acks_done(&w->acks);
	tokens_done(&w->tokens);
	fault_done(&w->fault);
	return 0;
}

static void an_ack_in_time_says_how_long_it_took_and_revokes_the_token(void **state)
{
	struct world *w = *state;
	struct baton_duration took = {-1};
	assert_int_equal(acks_acknowledge(&w->acks, &w->token, 5, MS(4999), &took), ACK_IN_TIME);
	assert_int_equal(took.ns, 4999 * INT64_C(1000000));
	assert_int_equal(w->tokens.pending, 0);
	assert_int_equal(acks_acknowledge(&w->acks, &w->token, 5, MS(4999), &took),
	                 ACK_NOT_PENDING);
}

static void a_late_ack_is_refused_and_its_token_revoked(void **state)
{
	struct world *w = *state;
	struct baton_duration took = {-1};
	struct ack_expired expired;
	assert_int_equal(acks_acknowledge(&w->acks, &w->token, 5, MS(5000), &took), ACK_TOO_LATE);
	assert_int_equal(took.ns, -1);
	assert_int_equal(w->tokens.pending, 0);
	assert_false(acks_expire(&w->acks, MS(9999), &expired));
	assert_int_equal(acks_acknowledge(&w->acks, &w->token, 5, MS(5000), &took),
	                 ACK_NOT_PENDING);
}

static void a_clock_that_went_back_gives_no_negative_time(void **state)
{
	struct world *w = *state;
	struct baton_duration took = {-1};
	assert_int_equal(acks_acknowledge(&w->acks, &w->token, 5, MS(-3), &took), ACK_IN_TIME);
	assert_int_equal(took.ns, 0);
}

static void only_the_backend_that_was_offered_may_acknowledge(void **state)
{
	struct world *w = *state;
	assert_int_equal(acks_acknowledge(&w->acks, &w->token, 6, MS(1), NULL), ACK_NOT_PENDING);
	assert_int_equal(w->tokens.pending, 1);
	assert_int_equal(acks_acknowledge(&w->acks, &w->token, 5, MS(1), NULL), ACK_IN_TIME);
}

static void an_unknown_token_is_not_pending(void **state)
{
	struct world *w = *state;
	struct token other = w->token;
	other.bytes[15] ^= 1;
	assert_int_equal(acks_acknowledge(&w->acks, &other, 5, MS(1), NULL), ACK_NOT_PENDING);
	assert_int_equal(w->tokens.pending, 1);
}

static void the_same_token_again_replaces_the_entry(void **state)
{
	struct world *w = *state;
	assert_int_equal(acks_register(&w->acks, &w->token, 6, 78, MS(1000)), BATON_OK);
	assert_int_equal(w->acks.count, 1);
	assert_int_equal(acks_next(&w->acks).ns, MS(6000).ns);
	assert_int_equal(acks_acknowledge(&w->acks, &w->token, 5, MS(5500), NULL), ACK_NOT_PENDING);
	assert_int_equal(acks_acknowledge(&w->acks, &w->token, 6, MS(5500), NULL), ACK_IN_TIME);
}

static void abandoning_always_revokes(void **state)
{
	struct world *w = *state;
	uint64_t backend = 0;
	assert_true(acks_abandon(&w->acks, &w->token, &backend));
	assert_int_equal(backend, 5);
	assert_int_equal(w->tokens.pending, 0);
	assert_int_equal(acks_acknowledge(&w->acks, &w->token, 5, MS(1), NULL), ACK_NOT_PENDING);

	assert_int_equal(tokens_issue(&w->tokens, &binding, MS(0), &w->token), BATON_OK);
	assert_false(acks_abandon(&w->acks, &w->token, &backend));
	assert_int_equal(w->tokens.pending, 0);
}

static void those_that_are_over_leave_earliest_first_and_once(void **state)
{
	struct world *w = *state;
	struct ack_expired got;
	static const int64_t begins[] = {30, 10, 20, 10};
	for (size_t i = 0; i < 4; i++) {
		struct token_binding b = {{"chat", 4}, 1, 2 + i};
		struct token token;
		assert_int_equal(tokens_issue(&w->tokens, &b, MS(0), &token), BATON_OK);
		assert_int_equal(acks_register(&w->acks, &token, i, i, MS(begins[i])), BATON_OK);
	}
	assert_false(acks_expire(&w->acks, MS(4999), &got));
	static const uint64_t tags[] = {77, 1, 3, 2};
	for (size_t i = 0; i < 4; i++) {
		assert_true(acks_expire(&w->acks, MS(5020), &got));
		assert_int_equal(got.tag, tags[i]);
		assert_false(tokens_revoke(&w->tokens, &got.token));
	}
	assert_false(acks_expire(&w->acks, MS(5020), &got));
	assert_int_equal(w->tokens.pending, 1);
	assert_int_equal(acks_next(&w->acks).ns, MS(5030).ns);
	assert_true(acks_expire(&w->acks, MS(5030), &got));
	assert_int_equal(acks_next(&w->acks).ns, INT64_MAX);
}

static void a_deadline_that_cannot_be_told_is_now(void **state)
{
	struct world *w = *state;
	struct baton_mono late = {INT64_MAX - 10};
	assert_int_equal(acks_register(&w->acks, &w->token, 5, 77, late), BATON_OK);
	assert_int_equal(acks_next(&w->acks).ns, late.ns);
	assert_int_equal(acks_acknowledge(&w->acks, &w->token, 5, late, NULL), ACK_TOO_LATE);
}

static void a_timeout_of_zero_is_a_millisecond(void **state)
{
	struct world *w = *state;
	struct acks acks;
	assert_int_equal(acks_init(&acks, &w->fault.alloc, &w->tokens, 0, 0), BATON_OK);
	assert_int_equal(acks_register(&acks, &w->token, 5, 0, MS(3)), BATON_OK);
	assert_int_equal(acks_next(&acks).ns, MS(4).ns);
	struct token other = {"other"};
	assert_int_equal(acks_register(&acks, &other, 5, 0, MS(3)), BATON_FULL);
	assert_string_equal(baton_err_detail(), "1 acknowledgements are waited for; 1 are allowed");
	acks_done(&acks);
}

static void without_memory_nothing_is_taken(void **state)
{
	struct world *w = *state;
	struct acks acks;
	size_t before = fault_live_blocks(&w->fault);
	for (unsigned n = 1;; n++) {
		fault_arm(&w->fault, n);
		enum baton_err e = acks_init(&acks, &w->fault.alloc, &w->tokens, 1, 100);
		if (!fault_fired(&w->fault)) {
			assert_int_equal(e, BATON_OK);
			break;
		}
		assert_int_equal(e, BATON_NO_MEMORY);
		assert_int_equal(fault_live_blocks(&w->fault), before);
	}
	acks_done(&acks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(an_ack_in_time_says_how_long_it_took_and_revokes_the_token),
		TEST(a_late_ack_is_refused_and_its_token_revoked),
		TEST(a_clock_that_went_back_gives_no_negative_time),
		TEST(only_the_backend_that_was_offered_may_acknowledge),
		TEST(an_unknown_token_is_not_pending),
		TEST(the_same_token_again_replaces_the_entry),
		TEST(abandoning_always_revokes),
		TEST(those_that_are_over_leave_earliest_first_and_once),
		TEST(a_deadline_that_cannot_be_told_is_now),
		TEST(a_timeout_of_zero_is_a_millisecond),
		TEST(without_memory_nothing_is_taken),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
