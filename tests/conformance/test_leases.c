/* Leases. */
#include <pthread.h>
#include <stdlib.h>

#include "world.h"

static struct baton_lease_answer ask(struct world *w, const char *subject,
                                     const struct baton_owner *owner)
{
	const struct baton_lease_ask a = {.subject = baton_str_z(subject),
	                                  .owner = owner,
	                                  .ttl = baton_duration_ms(1000)};
	struct baton_lease_answer answer;
	assert_int_equal(baton_lease_claim(w->store, &a, 1, &answer), BATON_OK);
	return answer;
}

static struct baton_lease hold(struct world *w, const char *subject,
                               const struct baton_owner *owner)
{
	struct baton_lease_answer answer = ask(w, subject, owner);
	assert_int_equal(answer.err, BATON_OK);
	return answer.lease;
}

static enum baton_err renew_lease(struct world *w, const char *subject, struct baton_lease *lease,
                                  int64_t ttl_ms, bool shorten)
{
	const struct baton_lease_proof proof = {baton_str_z(subject), lease};
	enum baton_err answer;
	assert_int_equal(baton_lease_renew(w->store, &proof, 1, baton_duration_ms(ttl_ms), shorten,
	                                   &answer),
	                 BATON_OK);
	return answer;
}

static enum baton_err release(struct world *w, const char *subject, struct baton_lease *lease)
{
	const struct baton_lease_proof proof = {baton_str_z(subject), lease};
	enum baton_err answer;
	assert_int_equal(baton_lease_release(w->store, &proof, 1, &answer), BATON_OK);
	return answer;
}

static bool is_held(struct world *w, const char *subject)
{
	struct baton_lease_holder holder;
	enum baton_err e = baton_lease_inspect(w->store, baton_str_z(subject), &holder);
	assert_true(e == BATON_OK || e == BATON_NOT_HELD);
	return e == BATON_OK;
}

static void a_free_subject_is_held_for_its_ttl(void **state)
{
	struct world *w = *state;
	struct baton_lease lease = hold(w, "s", NULL);
	assert_true(lease.fence.v > 0);
	assert_true(lease.fence.v < UINT64_C(1) << 53);
	assert_int_equal(lease.claimed_at.ms, START_MS);
	assert_int_equal(lease.expires_at.ms, START_MS + 1000);
	assert_true(baton_id_equal(&lease.incarnation, &baton_store_owner(w->store)->incarnation));
}

static void no_ttl_means_thirty_seconds_and_finer_ones_are_rounded_up(void **state)
{
	struct world *w = *state;
	struct baton_lease_ask asks[] = {{.subject = BATON_STR("a")},
	                                 {.subject = BATON_STR("b"), .ttl = {1}},
	                                 {.subject = BATON_STR("c"), .ttl = {1000001}}};
	struct baton_lease_answer answers[3];
	assert_int_equal(baton_lease_claim(w->store, asks, 3, answers), BATON_OK);
	assert_int_equal(answers[0].lease.expires_at.ms, START_MS + 30000);
	assert_int_equal(answers[1].lease.expires_at.ms, START_MS + 1);
	assert_int_equal(answers[2].lease.expires_at.ms, START_MS + 2);
}

static void somebody_else_yields_and_is_told_who_holds_it(void **state)
{
	struct world *w = *state;
	struct baton_lease lease = hold(w, "s", NULL);
	struct baton_lease_answer answer = ask(w, "s", &w->other);
	assert_int_equal(answer.err, BATON_YIELD);
	assert_string_equal(answer.holder.owner.id, "tester");
	assert_false(answer.holder.own);
	assert_int_equal(answer.holder.fence.v, lease.fence.v);
	assert_int_equal(answer.holder.expires_at.ms, START_MS + 1000);
}

static void who_holds_it_already_yields_to_himself_and_can_adopt_it(void **state)
{
	struct world *w = *state;
	struct baton_lease lease = hold(w, "s", NULL), adopted;
	struct baton_lease_answer answer = ask(w, "s", NULL);
	assert_int_equal(answer.err, BATON_YIELD);
	assert_true(answer.holder.own);
	assert_int_equal(baton_lease_adopt(w->store, BATON_STR("s"), NULL, &adopted), BATON_OK);
	assert_int_equal(adopted.fence.v, lease.fence.v);
	assert_true(baton_id_equal(&adopted.token, &lease.token));
	assert_int_equal(baton_lease_adopt(w->store, BATON_STR("s"), &w->other, &adopted),
	                 BATON_NOT_HELD);
	assert_int_equal(baton_lease_adopt(w->store, BATON_STR("t"), NULL, &adopted),
	                 BATON_NOT_HELD);
	advance(w, 1000);
	assert_int_equal(baton_lease_adopt(w->store, BATON_STR("s"), NULL, &adopted),
	                 BATON_NOT_HELD);
}

static void the_same_nonce_gets_the_same_lease_again(void **state)
{
	struct world *w = *state;
	struct baton_lease_ask a = {.subject = BATON_STR("s"),
	                            .ttl = baton_duration_ms(1000),
	                            .nonce = {{7}}};
	struct baton_lease_answer first, again;
	assert_int_equal(baton_lease_claim(w->store, &a, 1, &first), BATON_OK);
	advance(w, 500);
	assert_int_equal(baton_lease_claim(w->store, &a, 1, &again), BATON_OK);
	assert_int_equal(again.err, BATON_OK);
	assert_int_equal(again.lease.fence.v, first.lease.fence.v);
	assert_true(baton_id_equal(&again.lease.token, &first.lease.token));
	assert_int_equal(again.lease.expires_at.ms, START_MS + 1500);
	a.ttl = baton_duration_ms(1);
	assert_int_equal(baton_lease_claim(w->store, &a, 1, &again), BATON_OK);
	assert_int_equal(again.lease.expires_at.ms, START_MS + 1500);
	a.nonce.bytes[0] = 8;
	assert_int_equal(baton_lease_claim(w->store, &a, 1, &again), BATON_OK);
	assert_int_equal(again.err, BATON_YIELD);
	a.reentrant = true;
	assert_int_equal(baton_lease_claim(w->store, &a, 1, &again), BATON_OK);
	assert_int_equal(again.err, BATON_OK);
	a.owner = &w->other;
	assert_int_equal(baton_lease_claim(w->store, &a, 1, &again), BATON_OK);
	assert_int_equal(again.err, BATON_YIELD);
}

static void at_exactly_its_expiry_it_is_free_and_the_next_fence_is_higher(void **state)
{
	struct world *w = *state;
	struct baton_lease first = hold(w, "s", NULL);
	advance(w, 999);
	assert_int_equal(ask(w, "s", &w->other).err, BATON_YIELD);
	assert_true(is_held(w, "s"));
	advance(w, 1);
	assert_false(is_held(w, "s"));
	struct baton_lease second = hold(w, "s", &w->other);
	assert_true(second.fence.v > first.fence.v);
	assert_int_equal(renew_lease(w, "s", &first, 1000, false), BATON_NOT_HELD);
	assert_int_equal(release(w, "s", &first), BATON_NOT_HELD);
	assert_true(is_held(w, "s"));
}

static void a_dead_holder_is_replaced_at_once(void **state)
{
	struct world *w = *state;
	struct baton_lease first = hold(w, "s", &w->dead);
	struct baton_lease second = hold(w, "s", NULL);
	assert_true(second.fence.v > first.fence.v);
	assert_int_equal(ask(w, "s", &w->other).err, BATON_YIELD);
}

static void of_two_that_ask_in_one_call_the_first_has_it(void **state)
{
	struct world *w = *state;
	const struct baton_lease_ask asks[] = {{.subject = BATON_STR("s"), .owner = &w->other},
	                                       {.subject = BATON_STR("s")},
	                                       {.subject = BATON_STR("t")}};
	struct baton_lease_answer answers[3];
	assert_int_equal(baton_lease_claim(w->store, asks, 3, answers), BATON_OK);
	assert_int_equal(answers[0].err, BATON_OK);
	assert_int_equal(answers[1].err, BATON_YIELD);
	assert_int_equal(answers[2].err, BATON_OK);
}

static void a_renewal_extends_and_shortens_only_when_asked_to(void **state)
{
	struct world *w = *state;
	struct baton_lease lease = hold(w, "s", NULL);
	advance(w, 100);
	assert_int_equal(renew_lease(w, "s", &lease, 1000, false), BATON_OK);
	assert_int_equal(lease.expires_at.ms, START_MS + 1100);
	assert_int_equal(renew_lease(w, "s", &lease, 10, false), BATON_OK);
	assert_int_equal(lease.expires_at.ms, START_MS + 1100);
	assert_int_equal(renew_lease(w, "s", &lease, 10, true), BATON_OK);
	assert_int_equal(lease.expires_at.ms, START_MS + 110);
	advance(w, 10);
	assert_int_equal(renew_lease(w, "s", &lease, 1000, false), BATON_NOT_HELD);
}

static void every_part_of_the_proof_has_to_match(void **state)
{
	struct world *w = *state;
	const struct baton_lease lease = hold(w, "s", NULL);
	hold(w, "t", NULL);
	struct baton_lease wrong[] = {lease, lease, lease};
	wrong[0].fence.v++;
	wrong[1].token.bytes[15] ^= 1;
	wrong[2].incarnation.bytes[0] ^= 1;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(renew_lease(w, "s", &wrong[i], 1000, false), BATON_NOT_HELD);
		assert_int_equal(release(w, "s", &wrong[i]), BATON_NOT_HELD);
	}
	struct baton_lease right = lease;
	assert_int_equal(release(w, "t", &right), BATON_NOT_HELD);
	assert_int_equal(release(w, "unknown", &right), BATON_NOT_HELD);
	assert_true(is_held(w, "s"));
	assert_true(is_held(w, "t"));
}

static void what_is_released_is_free_and_its_fence_stays(void **state)
{
	struct world *w = *state;
	struct baton_lease first = hold(w, "s", NULL);
	assert_int_equal(release(w, "s", &first), BATON_OK);
	assert_int_equal(release(w, "s", &first), BATON_NOT_HELD);
	assert_false(is_held(w, "s"));
	assert_true(hold(w, "s", NULL).fence.v > first.fence.v);
}

static void an_expired_lease_can_be_given_back(void **state)
{
	struct world *w = *state;
	struct baton_lease lease = hold(w, "s", NULL);
	advance(w, 5000);
	assert_int_equal(release(w, "s", &lease), BATON_OK);
}

static void force_takes_it_away_and_says_from_whom(void **state)
{
	struct world *w = *state;
	const struct baton_str subjects[] = {BATON_STR("s"), BATON_STR("free")};
	struct baton_lease_answer answers[2];
	struct baton_lease lease = hold(w, "s", &w->other);
	assert_int_equal(baton_lease_force(w->store, subjects, 2, answers), BATON_OK);
	assert_int_equal(answers[0].err, BATON_OK);
	assert_string_equal(answers[0].holder.owner.id, "other");
	assert_int_equal(answers[1].err, BATON_NOT_HELD);
	assert_int_equal(renew_lease(w, "s", &lease, 1000, false), BATON_NOT_HELD);
	assert_true(hold(w, "s", NULL).fence.v > lease.fence.v);
	advance(w, 1000);
	assert_int_equal(baton_lease_force(w->store, subjects, 1, answers), BATON_OK);
	assert_int_equal(answers[0].err, BATON_NOT_HELD);
}

static void those_that_are_held_are_listed_in_order(void **state)
{
	struct world *w = *state;
	static struct baton_lease_entry entries[4];
	const struct baton_str none = {NULL, 0};
	size_t count;
	hold(w, "b/2", &w->other);
	hold(w, "a", NULL);
	hold(w, "b/1", NULL);
	struct baton_lease gone = hold(w, "b/0", NULL);
	release(w, "b/0", &gone);
	hold(w, "c", NULL);
	assert_int_equal(baton_lease_list(w->store, none, none, entries, 4, &count), BATON_OK);
	assert_int_equal(count, 4);
	assert_string_equal(entries[0].subject, "a");
	assert_int_equal(entries[1].len, 3);
	assert_true(entries[0].holder.own);
	assert_int_equal(baton_lease_list(w->store, BATON_STR("b/"), none, entries, 4, &count),
	                 BATON_OK);
	assert_int_equal(count, 2);
	assert_string_equal(entries[0].subject, "b/1");
	assert_string_equal(entries[1].subject, "b/2");
	assert_false(entries[1].holder.own);
	assert_int_equal(baton_lease_list(w->store, BATON_STR("b/"), BATON_STR("b/1"), entries, 4,
	                                  &count),
	                 BATON_OK);
	assert_int_equal(count, 1);
	assert_int_equal(baton_lease_list(w->store, none, none, entries, 1, &count), BATON_OK);
	assert_int_equal(count, 1);
	advance(w, 1000);
	assert_int_equal(baton_lease_list(w->store, none, none, entries, 4, &count), BATON_OK);
	assert_int_equal(count, 0);
}

static void fences_of_lanes_leave_room_for_their_claims(void **state)
{
	struct world *w = *state;
	assert_true(hold(w, "lane/q/x", NULL).fence.v < UINT64_C(1) << 33);
	assert_true(hold(w, "pull/q", NULL).fence.v < UINT64_C(1) << 33);
	assert_true(hold(w, "lane/q/x/y", NULL).fence.v > (uint64_t)START_MS / 1000);
	assert_true(hold(w, "other", NULL).fence.v > (uint64_t)START_MS << 10);
}

static void fences_grow_when_the_clock_goes_back(void **state)
{
	struct world *w = *state;
	uint64_t last = hold(w, "s", NULL).fence.v;
	const struct baton_str subject = BATON_STR("s");
	for (int i = 0; i < 3; i++) {
		struct baton_lease_answer answer;
		assert_int_equal(baton_lease_force(w->store, &subject, 1, &answer), BATON_OK);
		step_clock(w, -86400000);
		uint64_t fence = hold(w, "s", NULL).fence.v;
		assert_true(fence > last);
		last = fence;
	}
}

static void a_lease_that_is_given_back_is_told_to_those_who_wait_for_its_work(void **state)
{
	struct world *w = *state;
	put(w, "q", "x");
	struct baton_lease lane = hold(w, "lane/q/x", NULL), pull = hold(w, "pull/q", NULL);
	struct baton_lease other = hold(w, "other", NULL);
	uint64_t queue = w->news.queue, hash = w->news.lane;
	unsigned rings = w->rings;
	release(w, "lane/q/x", &lane);
	assert_int_equal(w->rings, rings + 1);
	assert_int_equal(w->news.queue, queue);
	assert_int_equal(w->news.lane, hash);
	release(w, "pull/q", &pull);
	assert_int_equal(w->rings, rings + 2);
	assert_int_equal(w->news.queue, queue);
	release(w, "other", &other);
	assert_int_equal(w->rings, rings + 2);
}

static void who_holds_many_is_told_in_one_call(void **state)
{
	struct world *w = *state;
	const struct baton_str subjects[] = {BATON_STR("a"), BATON_STR("never"), BATON_STR("b"),
	                                     BATON_STR("c"), BATON_STR("a")};
	struct baton_lease_answer answers[5];
	struct baton_lease a = hold(w, "a", NULL), c = hold(w, "c", NULL);
	hold(w, "b", &w->other);
	release(w, "c", &c);
	assert_int_equal(baton_lease_inspect_many(w->store, subjects, 5, answers), BATON_OK);
	static const enum baton_err held[] = {BATON_OK, BATON_NOT_HELD, BATON_OK, BATON_NOT_HELD,
	                                      BATON_OK};
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(answers[i].err, held[i]);
	assert_true(answers[0].holder.own && answers[4].holder.own && !answers[2].holder.own);
	assert_int_equal(answers[0].holder.fence.v, a.fence.v);
	assert_string_equal(answers[2].holder.owner.id, "other");
	advance(w, 30000);
	assert_int_equal(baton_lease_inspect_many(w->store, subjects, 5, answers), BATON_OK);
	assert_int_equal(answers[0].err, BATON_NOT_HELD);
	assert_int_equal(baton_lease_inspect_many(w->store, subjects, 0, answers), BATON_OK);
	const struct baton_str bad[] = {BATON_STR("a"), BATON_STR("")};
	assert_int_equal(baton_lease_inspect_many(w->store, bad, 2, answers), BATON_INVALID);
	assert_detail("the subject");
}

/* A thread that waits for leases. */
struct waiter {
	struct baton_store *store;
	struct baton_mono until;
	uint32_t cancel;
	enum baton_err err;
	size_t which;
	pthread_t thread;
};

static const struct baton_str wanted[] = {BATON_STR("a"), BATON_STR("b")};

static void *wait_for_leases(void *arg)
{
	struct waiter *x = arg;
	x->err = baton_lease_wait(x->store, wanted, 2, x->until, &x->cancel, &x->which);
	return NULL;
}

/* Both are held by others, and somebody waits for one of them, through that handle. */
static void lie_in_wait(struct world *w, struct baton_store *store, struct waiter *x)
{
	*x = (struct waiter){.store = store,
	                     .until = baton_mono_add(w->clock.clock.now(&w->clock.clock),
	                                             baton_duration_ms(900)),
	                     .which = 9};
	assert_int_equal(pthread_create(&x->thread, NULL, wait_for_leases, x), 0);
	fake_clock_wait_blocked(&w->clock, 1);
}

static void assert_woken(struct waiter *x, enum baton_err err, size_t which)
{
	assert_int_equal(pthread_join(x->thread, NULL), 0);
	assert_int_equal(x->err, err);
	assert_int_equal(x->which, which);
}

static void a_wait_for_leases_ends_when_one_is_given_back_or_taken_away(void **state)
{
	struct world *w = *state;
	struct waiter x;
	struct baton_lease_answer forced;
	hold(w, "a", &w->other);
	struct baton_lease b = hold(w, "b", NULL);
	lie_in_wait(w, w->store, &x);
	release(w, "b", &b);
	assert_woken(&x, BATON_OK, 1);
	hold(w, "b", &w->other);
	lie_in_wait(w, w->store, &x);
	assert_int_equal(baton_lease_force(w->store, wanted, 1, &forced), BATON_OK);
	assert_woken(&x, BATON_OK, 0);
	/* Nothing rings at another handle: it is noticed all the same, a little later. */
	struct baton_lease a = hold(w, "a", NULL);
	lie_in_wait(w, world_twin(w), &x);
	release(w, "a", &a);
	advance(w, 10);
	assert_woken(&x, BATON_OK, 0);
}

static void a_wait_for_leases_ends_when_the_time_of_one_is_over(void **state)
{
	struct world *w = *state;
	const struct baton_lease_ask ask = {.subject = BATON_STR("b"),
	                                    .owner = &w->other,
	                                    .ttl = baton_duration_ms(7)};
	struct baton_lease_answer answer;
	struct waiter x;
	hold(w, "a", &w->other);
	assert_int_equal(baton_lease_claim(w->store, &ask, 1, &answer), BATON_OK);
	lie_in_wait(w, w->store, &x);
	advance(w, 7);
	assert_woken(&x, BATON_OK, 1);
	assert_int_equal(baton_lease_claim(w->store, &ask, 1, &answer), BATON_OK);
	assert_int_equal(answer.err, BATON_OK);
}

static void a_wait_for_leases_ends_with_its_time_or_when_it_is_cancelled(void **state)
{
	struct world *w = *state;
	struct waiter x;
	size_t which = 9;
	hold(w, "a", &w->other);
	hold(w, "b", NULL);
	lie_in_wait(w, w->store, &x);
	__atomic_store_n(&x.cancel, 1, __ATOMIC_RELEASE);
	baton_store_poke(w->store);
	assert_woken(&x, BATON_CANCELLED, 9);
	lie_in_wait(w, w->store, &x);
	advance(w, 900);
	assert_woken(&x, BATON_TIMEOUT, 9);
	assert_int_equal(baton_lease_wait(w->store, wanted, 0, x.until, NULL, &which),
	                 BATON_INVALID);
	assert_detail("0 leases to wait for: 1 to 10000 are allowed");
	/* One that nobody holds, or whose holder is dead, is not waited for. */
	const struct baton_str others[] = {BATON_STR("a"), BATON_STR("free")};
	assert_int_equal(baton_lease_wait(w->store, others, 2, x.until, NULL, &which), BATON_OK);
	assert_int_equal(which, 1);
	hold(w, "free", &w->dead);
	which = 9;
	assert_int_equal(baton_lease_wait(w->store, others, 2, x.until, NULL, &which), BATON_OK);
	assert_int_equal(which, 1);
}

static void ten_thousand_fit_in_one_call(void **state)
{
	struct world *w = *state;
	struct baton_lease_ask *asks = calloc(10000, sizeof *asks);
	struct baton_lease_answer *answers = calloc(10000, sizeof *answers);
	char(*names)[8] = calloc(10000, sizeof *names);
	for (int i = 0; i < 10000; i++) {
		snprintf(names[i], sizeof names[i], "s%d", i);
		asks[i].subject = baton_str_z(names[i]);
	}
	assert_int_equal(baton_lease_claim(w->store, asks, 10000, answers), BATON_OK);
	assert_int_equal(answers[9999].err, BATON_OK);
	assert_int_equal(baton_lease_claim(w->store, asks, 10001, answers), BATON_INVALID);
	assert_detail("10001 leases in one call: at most 10000 are allowed");
	free(asks);
	free(answers);
	free(names);
}

static const struct CMUnitTest tests[] = {
	WORLD_TEST(a_free_subject_is_held_for_its_ttl),
	WORLD_TEST(no_ttl_means_thirty_seconds_and_finer_ones_are_rounded_up),
	WORLD_TEST(somebody_else_yields_and_is_told_who_holds_it),
	WORLD_TEST(who_holds_it_already_yields_to_himself_and_can_adopt_it),
	WORLD_TEST(the_same_nonce_gets_the_same_lease_again),
	WORLD_TEST(at_exactly_its_expiry_it_is_free_and_the_next_fence_is_higher),
	WORLD_TEST(a_dead_holder_is_replaced_at_once),
	WORLD_TEST(of_two_that_ask_in_one_call_the_first_has_it),
	WORLD_TEST(a_renewal_extends_and_shortens_only_when_asked_to),
	WORLD_TEST(every_part_of_the_proof_has_to_match),
	WORLD_TEST(what_is_released_is_free_and_its_fence_stays),
	WORLD_TEST(an_expired_lease_can_be_given_back),
	WORLD_TEST(force_takes_it_away_and_says_from_whom),
	WORLD_TEST(those_that_are_held_are_listed_in_order),
	WORLD_TEST(fences_of_lanes_leave_room_for_their_claims),
	WORLD_TEST(fences_grow_when_the_clock_goes_back),
	WORLD_TEST(a_lease_that_is_given_back_is_told_to_those_who_wait_for_its_work),
	WORLD_TEST(who_holds_many_is_told_in_one_call),
	WORLD_TEST(a_wait_for_leases_ends_when_one_is_given_back_or_taken_away),
	WORLD_TEST(a_wait_for_leases_ends_when_the_time_of_one_is_over),
	WORLD_TEST(a_wait_for_leases_ends_with_its_time_or_when_it_is_cancelled),
	WORLD_TEST(ten_thousand_fit_in_one_call),
};

WORLD_MAIN("leases", tests)
