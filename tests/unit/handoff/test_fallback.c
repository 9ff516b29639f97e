/* Why a connection is not handed over. */
#include "handoff/fallback.h"

#include "support/harness.h"

#define MS(ms) ((struct baton_mono){(ms)*INT64_C(1000000)})

static void the_first_reason_in_order_counts(void **state)
{
	(void)state;
	struct fallback_attempts none = {.count = 0}, many = {.count = 0};
	struct baton_duration wait;
	for (int i = 0; i < FALLBACK_ATTEMPTS; i++)
		fallback_failed(&many, MS(1000));
	/* From the last to the first: each is stronger than all after it. */
	struct fallback_facts f = {.client_unsupported = false};
	assert_int_equal(fallback_decide(&f, &none, MS(0), &wait), FALLBACK_NONE);
	f.ack_timeout = true;
	assert_int_equal(fallback_decide(&f, &none, MS(0), &wait), FALLBACK_ACK_TIMEOUT);
	f.integrity_mismatch = true;
	assert_int_equal(fallback_decide(&f, &none, MS(0), &wait), FALLBACK_INTEGRITY_MISMATCH);
	f.permission_denied = true;
	assert_int_equal(fallback_decide(&f, &none, MS(0), &wait), FALLBACK_PERMISSION_DENIED);
	assert_int_equal(wait.ns, 0);
	assert_int_equal(fallback_decide(&f, &many, MS(1000), &wait), FALLBACK_ATTEMPTS_LIMITED);
	assert_int_equal(wait.ns, MS(30000).ns);
	f.adopted_backend = true;
	assert_int_equal(fallback_decide(&f, &many, MS(1000), &wait), FALLBACK_ADOPTED_BACKEND);
	assert_int_equal(wait.ns, 0);
	f.fd_pressure = true;
	assert_int_equal(fallback_decide(&f, &many, MS(1000), &wait), FALLBACK_FD_PRESSURE);
	f.service_disabled = true;
	assert_int_equal(fallback_decide(&f, &many, MS(1000), &wait), FALLBACK_SERVICE_DISABLED);
	f.client_unsupported = true;
	assert_int_equal(fallback_decide(&f, &many, MS(1000), &wait), FALLBACK_CLIENT_UNSUPPORTED);
}

static void eight_failures_in_the_window_are_a_limit(void **state)
{
	(void)state;
	struct fallback_attempts a = {.count = 0};
	for (int i = 0; i < 7; i++)
		fallback_failed(&a, MS(i * 1000));
	assert_int_equal(fallback_wait(&a, MS(7000)).ns, 0);
	fallback_failed(&a, MS(7000));
	assert_int_equal(fallback_wait(&a, MS(7000)).ns, MS(23000).ns);
	assert_int_equal(fallback_wait(&a, MS(29999)).ns, MS(1).ns);
	assert_int_equal(fallback_wait(&a, MS(30000)).ns, 0);
	/* One more: now the second one is the oldest. */
	fallback_failed(&a, MS(30000));
	assert_int_equal(fallback_wait(&a, MS(30000)).ns, MS(1000).ns);
}

static void a_success_clears_it(void **state)
{
	(void)state;
	struct fallback_attempts a = {.count = 0};
	for (int i = 0; i < 8; i++)
		fallback_failed(&a, MS(0));
	fallback_succeeded(&a);
	assert_int_equal(fallback_wait(&a, MS(0)).ns, 0);
	for (int i = 0; i < 7; i++)
		fallback_failed(&a, MS(1));
	assert_int_equal(fallback_wait(&a, MS(1)).ns, 0);
	fallback_failed(&a, MS(1));
	assert_int_equal(fallback_wait(&a, MS(1)).ns, MS(30000).ns);
}

static void every_reason_has_a_name(void **state)
{
	(void)state;
	static const char *const names[] = {
		"none",
		"client unsupported",
		"service policy disabled",
		"fd pressure",
		"adopted backend",
		"failed attempts limited",
		"permission denied",
		"integrity mismatch",
		"ack timeout",
	};
	for (int i = 0; i <= FALLBACK_REASONS; i++)
		assert_string_equal(fallback_name((enum fallback_reason)i), names[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_reason_in_order_counts),
		cmocka_unit_test(eight_failures_in_the_window_are_a_limit),
		cmocka_unit_test(a_success_clears_it),
		cmocka_unit_test(every_reason_has_a_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
