/* Time limits: strict edges on a clock that the test chooses. */
#include <baton/claim.h>

#include <stdio.h>
#include <string.h>

#include "world.h"

#define MS INT64_C(1000000)
#define BEGIN INT64_C(5000000000)

static enum baton_err try_at(struct baton_fleet *f, const char *label, int64_t ttl_ns, int64_t at,
                             struct baton_claim *claim, struct baton_claim_holder *holder)
{
	struct baton_subject subject = subject_of(label);
	struct baton_claim unused;
	struct baton_claim_ask ask = {.subject = &subject, .ttl = {ttl_ns}};
	return baton_claim_try_at(f, &ask, (struct baton_mono){at}, claim ? claim : &unused,
	                          holder);
}

static struct baton_claim hold_at(struct baton_fleet *f, const char *label, int64_t ttl_ns,
                                  int64_t at)
{
	struct baton_claim claim = {.fleet = NULL};
	assert_int_equal(try_at(f, label, ttl_ns, at, &claim, NULL), BATON_OK);
	return claim;
}

static enum baton_err check_at(const struct baton_claim *claim, int64_t at, int64_t *ret_left)
{
	struct baton_duration left = {-1};
	enum baton_err e = baton_claim_check_at(claim, (struct baton_mono){at}, &left);
	*ret_left = left.ns;
	return e;
}

static enum baton_err renew_at(const struct baton_claim *claim, int64_t ttl_ns, int64_t at)
{
	return baton_claim_renew_at(claim, (struct baton_duration){ttl_ns},
	                            (struct baton_mono){at});
}

static int64_t expires_of(struct baton_fleet *f, const char *label, int64_t at)
{
	struct baton_subject subject = subject_of(label);
	struct baton_claim_holder holder;
	if (baton_claim_holder(f, &subject, (struct baton_mono){at}, &holder) != BATON_OK)
		return -1;
	return holder.expires.ns;
}

static void it_lives_a_nanosecond_before_the_deadline_and_not_at_it(void **state)
{
	struct world *w = *state;
	struct baton_claim_holder holder;
	struct baton_subject x = subject_of("x");
	int64_t left, end = BEGIN + 100 * MS;
	struct baton_claim claim = hold_at(w->ada, "x", 100 * MS, BEGIN);
	assert_int_equal(check_at(&claim, end - 1, &left), BATON_OK);
	assert_int_equal(left, 1);
	assert_int_equal(check_at(&claim, end, &left), BATON_NOT_HELD);
	assert_int_equal(left, -1);
	assert_int_equal(expires_of(w->ben, "x", end - 1), end);
	assert_int_equal(expires_of(w->ben, "x", end), -1);
	assert_int_equal(try_at(w->ben, "x", 0, end - 1, NULL, &holder), BATON_YIELD);
	assert_int_equal(holder.expires.ns, end);
	assert_int_equal(holder.since.ns, BEGIN);
	assert_int_equal(renew_at(&claim, 100 * MS, end), BATON_NOT_HELD);
	struct baton_claim next = hold_at(w->ben, "x", 0, end);
	assert_true(next.fence.v > claim.fence.v);
	assert_int_equal(baton_claim_release(&claim), BATON_NOT_HELD);
	assert_int_equal(baton_claim_adopt(w->ben, &x, &claim), BATON_OK);
}

static void one_that_expired_under_nobodys_eyes_can_still_be_given_back(void **state)
{
	struct world *w = *state;
	int64_t left;
	struct baton_claim claim = hold_at(w->ada, "x", MS, BEGIN);
	assert_int_equal(check_at(&claim, BEGIN + 2 * MS, &left), BATON_NOT_HELD);
	/* Nobody else has it, so that giving it back takes it from nobody. */
	assert_int_equal(baton_claim_release(&claim), BATON_OK);
}

static void a_renewal_is_in_time_until_the_deadline(void **state)
{
	struct world *w = *state;
	int64_t left, end = BEGIN + 100 * MS;
	struct baton_claim claim = hold_at(w->ada, "x", 100 * MS, BEGIN);
	assert_int_equal(renew_at(&claim, 100 * MS, end - 1), BATON_OK);
	assert_int_equal(check_at(&claim, end, &left), BATON_OK);
	assert_int_equal(left, 100 * MS - 1);
	struct baton_claim_holder holder;
	assert_int_equal(try_at(w->ben, "x", 0, end, NULL, &holder), BATON_YIELD);
	assert_int_equal(holder.fence.v, claim.fence.v);
	assert_int_equal(holder.expires.ns, end - 1 + 100 * MS);
}

static void a_renewal_never_shortens(void **state)
{
	struct world *w = *state;
	int64_t left;
	struct baton_claim claim = hold_at(w->ada, "x", 100 * MS, BEGIN);
	assert_int_equal(renew_at(&claim, 10 * MS, BEGIN), BATON_OK);
	assert_int_equal(check_at(&claim, BEGIN, &left), BATON_OK);
	assert_int_equal(left, 100 * MS);
	struct baton_claim forever = hold_at(w->ada, "y", 0, BEGIN);
	assert_int_equal(renew_at(&forever, 10 * MS, BEGIN), BATON_OK);
	assert_int_equal(check_at(&forever, BEGIN + 20 * MS, &left), BATON_OK);
	assert_int_equal(left, INT64_MAX);
}

static void a_renewal_without_a_ttl_is_for_good(void **state)
{
	struct world *w = *state;
	static const int64_t none[] = {0, -1, INT64_MIN};
	for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
		int64_t left;
		struct baton_claim claim = hold_at(w->ada, "x", MS, BEGIN);
		assert_int_equal(renew_at(&claim, none[i], BEGIN), BATON_OK);
		assert_int_equal(check_at(&claim, BEGIN + 1000 * MS, &left), BATON_OK);
		assert_int_equal(left, INT64_MAX);
		baton_claim_release(&claim);
	}
}

static void a_ttl_is_what_was_asked_for_within_its_bounds(void **state)
{
	struct world *w = *state;
	static const struct {
		int64_t ttl, left;
	} cases[] = {
		{0, INT64_MAX},
		{-1, INT64_MAX},
		{INT64_MIN, INT64_MAX},
		{1, MS}, /* below a millisecond counts as one */
		{MS - 1, MS},
		{MS, MS},
		{MS + 1, MS + 1},
		{INT64_MAX - BEGIN - 1, INT64_MAX - BEGIN - 1},
		{INT64_MAX - BEGIN, INT64_MAX}, /* too long to count */
		{INT64_MAX, INT64_MAX},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		int64_t left;
		struct baton_claim claim = hold_at(w->ada, "x", cases[i].ttl, BEGIN);
		assert_int_equal(check_at(&claim, BEGIN, &left), BATON_OK);
		assert_int_equal(left, cases[i].left);
		assert_int_equal(baton_claim_release(&claim), BATON_OK);
		/* The same by renewal. */
		claim = hold_at(w->ada, "x", MS, BEGIN);
		assert_int_equal(renew_at(&claim, cases[i].ttl, BEGIN), BATON_OK);
		assert_int_equal(check_at(&claim, BEGIN, &left), BATON_OK);
		assert_int_equal(left, cases[i].left);
		assert_int_equal(baton_claim_release(&claim), BATON_OK);
	}
}

static void its_own_holder_gets_a_new_tenure_after_the_deadline(void **state)
{
	struct world *w = *state;
	int64_t left;
	struct baton_claim first = hold_at(w->ada, "x", MS, BEGIN);
	struct baton_claim second = hold_at(w->ada, "x", MS, BEGIN + MS);
	assert_true(second.fence.v > first.fence.v);
	assert_int_equal(check_at(&first, BEGIN, &left), BATON_NOT_HELD);
	assert_int_equal(check_at(&second, BEGIN + MS, &left), BATON_OK);
}

static void what_has_expired_by_the_real_clock_is_free_for_all_calls(void **state)
{
	struct world *w = *state;
	struct baton_subject x = subject_of("x");
	struct baton_claim_holder holder;
	/* Long before the machine was on. */
	struct baton_claim claim = hold_at(w->ada, "x", MS, 1);
	assert_int_equal(baton_claim_check(&claim, NULL), BATON_NOT_HELD);
	assert_int_equal(baton_claim_renew(&claim, baton_duration_s(1)), BATON_NOT_HELD);
	assert_int_equal(baton_claim_adopt(w->ada, &x, &claim), BATON_NOT_HELD);
	assert_int_equal(baton_claim_force(w->ben, &x, NULL), BATON_NOT_HELD);
	assert_int_equal(baton_claim_holder(w->ben, &x, now(), &holder), BATON_NOT_HELD);
	assert_int_equal(try_label(w->ben, "x", NULL), BATON_OK);
}

static void a_claim_counts_from_the_clock_since_boot(void **state)
{
	struct world *w = *state;
	struct baton_duration left;
	struct baton_mono before = now();
	struct baton_claim claim = hold_for(w->ada, "x", 100000);
	struct baton_mono after = now();
	int64_t expires = holder_of(w->ben, "x").expires.ns;
	assert_in_range(expires, before.ns + 100000 * MS, after.ns + 100000 * MS);
	assert_int_equal(baton_claim_renew(&claim, baton_duration_s(200)), BATON_OK);
	assert_true(holder_of(w->ben, "x").expires.ns >= after.ns + 200000 * MS);
	assert_int_equal(baton_claim_check(&claim, &left), BATON_OK);
	assert_in_range(left.ns, 1, 200000 * MS);
}

static void what_lives_at_that_moment_is_not_evicted_at_it(void **state)
{
	struct world *w = *state;
	struct baton_claim first = {.fleet = NULL};
	int64_t left;
	char label[32];
	for (unsigned i = 0; i < WORLD_SUBJECTS; i++) {
		snprintf(label, sizeof label, "full-%u", i);
		struct baton_claim claim = hold_at(w->ada, label, 1000 * MS, BEGIN);
		first = i == 0 ? claim : first;
	}
	/* By the real clock all of them have expired long ago. */
	assert_int_equal(try_at(w->ben, "one more", 0, BEGIN + 999 * MS, NULL, NULL), BATON_FULL);
	assert_int_equal(check_at(&first, BEGIN + 999 * MS, &left), BATON_OK);
	assert_int_equal(try_at(w->ben, "one more", 0, BEGIN + 1000 * MS, NULL, NULL), BATON_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(it_lives_a_nanosecond_before_the_deadline_and_not_at_it),
		WORLD_TEST(one_that_expired_under_nobodys_eyes_can_still_be_given_back),
		WORLD_TEST(a_renewal_is_in_time_until_the_deadline),
		WORLD_TEST(a_renewal_never_shortens),
		WORLD_TEST(a_renewal_without_a_ttl_is_for_good),
		WORLD_TEST(a_ttl_is_what_was_asked_for_within_its_bounds),
		WORLD_TEST(its_own_holder_gets_a_new_tenure_after_the_deadline),
		WORLD_TEST(what_has_expired_by_the_real_clock_is_free_for_all_calls),
		WORLD_TEST(a_claim_counts_from_the_clock_since_boot),
		WORLD_TEST(what_lives_at_that_moment_is_not_evicted_at_it),
	};
	return cmocka_run_group_tests_name("ttl", tests, NULL, NULL);
}
