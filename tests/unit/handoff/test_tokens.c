/* Tokens: issued once, accepted once, by the one for whom they are. */
#include "handoff/tokens.h"

#include <string.h>

#include "support/fault.h"
#include "support/harness.h"

#define MS(ms) ((struct baton_mono){(ms)*INT64_C(1000000)})

/* Draws what it is told to, byte by byte, and then numbers. */
struct script {
	const char *bytes;
	unsigned drawn;
	bool broken;
};

static enum baton_err script_draw(void *arg, struct token *ret)
{
	struct script *s = arg;
	if (s->broken)
		return BATON_SYSTEM;
	unsigned char byte = s->drawn < strlen(s->bytes) ? (unsigned char)s->bytes[s->drawn]
	                                                 : (unsigned char)s->drawn;
	s->drawn++;
	memset(ret->bytes, byte, sizeof ret->bytes);
	return BATON_OK;
}

struct world {
	struct fault fault;
	struct script script;
	struct tokens tokens;
};

static void begin(struct world *w, struct tokens_policy policy, const char *script)
{
	w->script = (struct script){.bytes = script};
	fault_init(&w->fault);
	assert_int_equal(tokens_init(&w->tokens, &w->fault.alloc, policy,
	                             (struct token_source){script_draw, &w->script}),
	                 BATON_OK);
}

static void end(struct world *w)
{
	tokens_done(&w->tokens);
	fault_done(&w->fault);
}

static const struct tokens_policy usual = {TOKENS_TTL_MS, TOKENS_MAX, TOKENS_TRIES};

static struct token_binding bound(const char *service, uint64_t generation, uint64_t connection)
{
	return (struct token_binding){baton_str_z(service), generation, connection};
}

static void a_token_is_accepted_once(void **state)
{
	(void)state;
	struct world w;
	struct token token;
	struct token_binding b = bound("chat", 1, 7);
	begin(&w, usual, "a");
	assert_int_equal(tokens_issue(&w.tokens, &b, MS(0), &token), BATON_OK);
	assert_int_equal(w.tokens.pending, 1);
	assert_int_equal(tokens_consume(&w.tokens, &b, &token, MS(29999)), TOKEN_ACCEPTED);
	assert_int_equal(tokens_consume(&w.tokens, &b, &token, MS(29999)), TOKEN_NOT_PENDING);
	assert_int_equal(w.tokens.pending, 0);
	end(&w);
}

static void at_its_expiry_it_is_gone_whatever_the_value(void **state)
{
	(void)state;
	struct world w;
	struct token token, wrong = {"x"};
	struct token_binding b = bound("chat", 1, 7);
	begin(&w, usual, "ab");
	assert_int_equal(tokens_issue(&w.tokens, &b, MS(0), &token), BATON_OK);
	assert_int_equal(tokens_consume(&w.tokens, &b, &wrong, MS(30000)), TOKEN_EXPIRED);
	assert_int_equal(tokens_consume(&w.tokens, &b, &token, MS(30000)), TOKEN_NOT_PENDING);
	assert_int_equal(tokens_issue(&w.tokens, &b, MS(0), &token), BATON_OK);
	assert_int_equal(tokens_consume(&w.tokens, &b, &token, MS(30001)), TOKEN_EXPIRED);
	end(&w);
}

static void a_wrong_token_uses_up_nothing(void **state)
{
	(void)state;
	struct world w;
	struct token token, wrong;
	struct token_binding b = bound("chat", 1, 7);
	begin(&w, usual, "a");
	assert_int_equal(tokens_issue(&w.tokens, &b, MS(0), &token), BATON_OK);
	wrong = token;
	wrong.bytes[15] ^= 1;
	assert_int_equal(tokens_consume(&w.tokens, &b, &wrong, MS(1)), TOKEN_MISMATCH);
	assert_int_equal(tokens_consume(&w.tokens, &b, &token, MS(1)), TOKEN_ACCEPTED);
	end(&w);
}

static void a_token_is_good_for_what_it_is_bound_to_alone(void **state)
{
	(void)state;
	struct world w;
	struct token token;
	struct token_binding b = bound("chat", 1, 7);
	const struct token_binding others[] = {bound("mail", 1, 7), bound("chat", 2, 7),
	                                       bound("chat", 1, 8), bound("cha", 1, 7)};
	begin(&w, usual, "a");
	assert_int_equal(tokens_issue(&w.tokens, &b, MS(0), &token), BATON_OK);
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		assert_int_equal(tokens_consume(&w.tokens, &others[i], &token, MS(1)),
		                 TOKEN_NOT_PENDING);
	assert_int_equal(tokens_consume(&w.tokens, &b, &token, MS(1)), TOKEN_ACCEPTED);
	end(&w);
}

static void a_connection_has_one_token(void **state)
{
	(void)state;
	struct world w;
	struct token first, second;
	struct token_binding b = bound("chat", 1, 7);
	begin(&w, usual, "ab");
	assert_int_equal(tokens_issue(&w.tokens, &b, MS(0), &first), BATON_OK);
	assert_int_equal(tokens_issue(&w.tokens, &b, MS(0), &second), BATON_OK);
	assert_int_equal(w.tokens.pending, 1);
	assert_int_equal(tokens_consume(&w.tokens, &b, &first, MS(1)), TOKEN_MISMATCH);
	assert_int_equal(tokens_consume(&w.tokens, &b, &second, MS(1)), TOKEN_ACCEPTED);
	end(&w);
}

static void only_so_many_are_pending_and_expired_ones_make_room(void **state)
{
	(void)state;
	struct world w;
	struct token token;
	begin(&w, (struct tokens_policy){100, 2, 16}, "");
	for (uint64_t i = 0; i < 2; i++) {
		struct token_binding b = bound("chat", 1, i);
		assert_int_equal(tokens_issue(&w.tokens, &b, MS((int64_t)i), &token), BATON_OK);
	}
	struct token_binding b = bound("chat", 1, 2);
	assert_int_equal(tokens_issue(&w.tokens, &b, MS(99), &token), BATON_FULL);
	assert_string_equal(baton_err_detail(), "2 connections are on their way; 2 are allowed");
	assert_int_equal(tokens_issue(&w.tokens, &b, MS(100), &token), BATON_OK);
	assert_int_equal(w.tokens.pending, 2);
	end(&w);
}

static void what_is_drawn_twice_is_drawn_again_up_to_a_bound(void **state)
{
	(void)state;
	struct world w;
	struct token token;
	begin(&w, (struct tokens_policy){100, 8, 3}, "aaabaaa");
	struct token_binding b = bound("chat", 1, 1);
	assert_int_equal(tokens_issue(&w.tokens, &b, MS(0), &token), BATON_OK);
	b.connection = 2;
	assert_int_equal(tokens_issue(&w.tokens, &b, MS(0), &token), BATON_OK);
	assert_int_equal(token.bytes[0], 'b');
	b.connection = 3;
	assert_int_equal(tokens_issue(&w.tokens, &b, MS(0), &token), BATON_FULL);
	assert_int_equal(w.script.drawn, 7);
	assert_int_equal(w.tokens.pending, 2);
	end(&w);
}

static void a_broker_draws_sixteen_times(void **state)
{
	(void)state;
	struct world w;
	struct token token;
	begin(&w, usual, "aaaaaaaaaaaaaaaabaaaaaaaaaaaaaaaac");
	for (uint64_t connection = 1; connection <= 2; connection++) {
		struct token_binding b = bound("chat", 1, connection);
		assert_int_equal(tokens_issue(&w.tokens, &b, MS(0), &token), BATON_OK);
	}
	/* The first, and fifteen others that are there already. */
	assert_int_equal(token.bytes[0], 'b');
	assert_int_equal(w.script.drawn, 17);
	struct token_binding b = bound("chat", 1, 3);
	assert_int_equal(tokens_issue(&w.tokens, &b, MS(0), &token), BATON_FULL);
	assert_string_equal(baton_err_detail(), "16 tokens were drawn that are there already");
	assert_int_equal(w.script.drawn, 33);
	end(&w);
}

static void settings_of_zero_are_raised_to_one(void **state)
{
	(void)state;
	struct world w;
	struct token token;
	struct token_binding b = bound("chat", 1, 1), c = bound("chat", 1, 2);
	begin(&w, (struct tokens_policy){0, 0, 0}, "aa");
	assert_int_equal(tokens_issue(&w.tokens, &b, MS(0), &token), BATON_OK);
	struct baton_mono just_before = {999999};
	assert_int_equal(tokens_issue(&w.tokens, &c, just_before, &token), BATON_FULL);
	assert_int_equal(tokens_consume(&w.tokens, &b, &token, just_before), TOKEN_ACCEPTED);
	assert_int_equal(tokens_issue(&w.tokens, &b, MS(0), &token), BATON_OK);
	assert_int_equal(tokens_consume(&w.tokens, &b, &token, MS(1)), TOKEN_EXPIRED);
	end(&w);
}

static void without_randomness_there_is_no_token(void **state)
{
	(void)state;
	struct world w;
	struct token token = {"unchanged"};
	struct token_binding b = bound("chat", 1, 1);
	begin(&w, usual, "a");
	w.script.broken = true;
	assert_int_equal(tokens_issue(&w.tokens, &b, MS(0), &token), BATON_SYSTEM);
	assert_int_equal(w.tokens.pending, 0);
	assert_string_equal((char *)token.bytes, "unchanged");
	end(&w);
}

static void a_revoked_token_leaves_nothing_behind(void **state)
{
	(void)state;
	struct world w;
	struct token token;
	struct token_binding b = bound("chat", 1, 1);
	begin(&w, (struct tokens_policy){1000, 1, 1}, "a");
	assert_int_equal(tokens_issue(&w.tokens, &b, MS(0), &token), BATON_OK);
	assert_true(tokens_revoke(&w.tokens, &token));
	assert_false(tokens_revoke(&w.tokens, &token));
	assert_int_equal(tokens_consume(&w.tokens, &b, &token, MS(1)), TOKEN_NOT_PENDING);
	static const struct token nothing;
	assert_memory_equal(&w.tokens.entries[0].token, &nothing, sizeof nothing);
	end(&w);
}

static void tokens_are_sixteen_bytes(void **state)
{
	(void)state;
	struct token token = {"unchanged"};
	assert_int_equal(token_parse(BATON_STR(""), &token), TOKEN_MISSING);
	assert_string_equal(baton_err_detail(), "a token is missing");
	assert_int_equal(token_parse(BATON_STR("123456789012345"), &token), TOKEN_INVALID_LENGTH);
	assert_string_equal(baton_err_detail(), "a token of 15 bytes; it has 16");
	assert_int_equal(token_parse(BATON_STR("12345678901234567"), &token), TOKEN_INVALID_LENGTH);
	assert_string_equal(baton_err_detail(), "a token of 17 bytes; it has 16");
	assert_string_equal((char *)token.bytes, "unchanged");
	assert_int_equal(token_parse(BATON_STR("1234567890123456"), &token), TOKEN_GOOD);
	assert_memory_equal(token.bytes, "1234567890123456", 16);
}

static void the_system_draws_different_tokens(void **state)
{
	(void)state;
	struct token_source s = token_source_system();
	struct token a, b;
	assert_int_equal(s.draw(s.arg, &a), BATON_OK);
	assert_int_equal(s.draw(s.arg, &b), BATON_OK);
	assert_false(token_equal(&a, &b));
}

static void without_memory_nothing_is_taken(void **state)
{
	(void)state;
	struct fault fault;
	struct tokens tokens;
	fault_init(&fault);
	for (unsigned n = 1;; n++) {
		fault_arm(&fault, n);
		enum baton_err e = tokens_init(&tokens, &fault.alloc, usual, token_source_system());
		if (!fault_fired(&fault)) {
			assert_int_equal(e, BATON_OK);
			break;
		}
		assert_int_equal(e, BATON_NO_MEMORY);
		assert_int_equal(fault_live_blocks(&fault), 0);
	}
	tokens_done(&tokens);
	fault_done(&fault);
}

static void a_pool_gives_each_token_once_and_keeps_no_copy(void **state)
{
	(void)state;
	static const struct token_pool nothing;
	struct token_pool pool = nothing;
	struct token_source source = token_source_pool(&pool);
	struct token drawn[2 * TOKEN_POOL + 1];
	for (size_t i = 0; i < sizeof drawn / sizeof *drawn; i++) {
		assert_int_equal(source.draw(source.arg, &drawn[i]), BATON_OK);
		for (size_t j = 0; j < i; j++)
			assert_false(token_equal(&drawn[i], &drawn[j]));
		for (size_t j = 0; j < TOKEN_POOL; j++)
			assert_false(token_equal(&drawn[i], &pool.tokens[j]));
	}
	assert_int_equal(pool.left, TOKEN_POOL - 1);
	token_pool_wipe(&pool);
	assert_memory_equal(&pool, &nothing, sizeof pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_token_is_accepted_once),
		cmocka_unit_test(at_its_expiry_it_is_gone_whatever_the_value),
		cmocka_unit_test(a_wrong_token_uses_up_nothing),
		cmocka_unit_test(a_token_is_good_for_what_it_is_bound_to_alone),
		cmocka_unit_test(a_connection_has_one_token),
		cmocka_unit_test(only_so_many_are_pending_and_expired_ones_make_room),
		cmocka_unit_test(what_is_drawn_twice_is_drawn_again_up_to_a_bound),
		cmocka_unit_test(a_broker_draws_sixteen_times),
		cmocka_unit_test(settings_of_zero_are_raised_to_one),
		cmocka_unit_test(without_randomness_there_is_no_token),
		cmocka_unit_test(a_revoked_token_leaves_nothing_behind),
		cmocka_unit_test(tokens_are_sixteen_bytes),
		cmocka_unit_test(the_system_draws_different_tokens),
		cmocka_unit_test(a_pool_gives_each_token_once_and_keeps_no_copy),
		cmocka_unit_test(without_memory_nothing_is_taken),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
