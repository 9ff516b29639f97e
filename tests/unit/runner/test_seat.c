/* The right to be the one instance of a singleton. */
#include "runner/seat.h"
#include "support/harness.h"

#define S INT64_C(1000000000)
#define MS INT64_C(1000000)

/* Of a ttl of 30 s, 5 s are margin; others look every second. */
struct world {
	struct seat seat;
	struct baton_lease lease;
};

static int setup(void **state)
{
	static struct world w;
	w = (struct world){.lease = {.fence = {7}}};
	seat_init(&w.seat, baton_duration_s(30), baton_duration_s(5), baton_duration_s(1));
	*state = &w;
	return 0;
}

static struct baton_mono at(int64_t ns)
{
	return (struct baton_mono){ns};
}

static bool asks(struct world *w, int64_t now, enum seat_kind kind)
{
	enum seat_kind is;
	return seat_ask(&w->seat, at(now), &is) && is == kind;
}

static void asks_nothing(struct world *w, int64_t now)
{
	enum seat_kind kind;
	assert_false(seat_ask(&w->seat, at(now), &kind));
}

static void answer(struct world *w, enum baton_err err, int64_t sent, int64_t now)
{
	seat_answered(&w->seat, err, &w->lease, at(sent), at(now));
}

static enum seat_order order(struct world *w, int64_t now)
{
	return seat_order(&w->seat, at(now));
}

/* It holds the lease since 10 s, and an instance runs. */
static void begin(struct world *w)
{
	seat_set(&w->seat, SEAT_LEAD);
	assert_true(asks(w, 10 * S, SEAT_CLAIM));
	answer(w, BATON_OK, 10 * S, 11 * S);
	assert_int_equal(order(w, 11 * S), SEAT_START);
	seat_began(&w->seat, at(11 * S));
	w->seat.closed = false;
}

static void only_who_leads_asks_for_the_lease(void **state)
{
	struct world *w = *state;
	asks_nothing(w, 10 * S);
	seat_set(&w->seat, SEAT_STAY);
	asks_nothing(w, 10 * S);
	assert_int_equal(seat_next(&w->seat, at(10 * S)).ns, BATON_MONO_NEVER.ns);
	seat_set(&w->seat, SEAT_LEAD);
	assert_true(asks(w, 10 * S, SEAT_CLAIM));
	asks_nothing(w, 10 * S);
}

static void who_yields_looks_again_and_at_once_when_somebody_has_died(void **state)
{
	struct world *w = *state;
	seat_set(&w->seat, SEAT_LEAD);
	assert_true(asks(w, 10 * S, SEAT_CLAIM));
	answer(w, BATON_YIELD, 10 * S, 10 * S);
	assert_int_equal(order(w, 10 * S), SEAT_NOTHING);
	asks_nothing(w, 11 * S - 1);
	assert_int_equal(seat_next(&w->seat, at(10 * S)).ns, 11 * S);
	assert_true(asks(w, 11 * S, SEAT_CLAIM));
	answer(w, BATON_YIELD, 11 * S, 11 * S);
	seat_look(&w->seat);
	assert_true(asks(w, 11 * S, SEAT_CLAIM));
}

static void what_is_held_is_renewed_at_a_third_of_its_time(void **state)
{
	struct world *w = *state;
	begin(w);
	assert_int_equal(seat_next(&w->seat, at(11 * S)).ns, 20 * S);
	asks_nothing(w, 20 * S - 1);
	assert_true(asks(w, 20 * S, SEAT_RENEW));
	answer(w, BATON_OK, 20 * S, 22 * S);
	asks_nothing(w, 30 * S - 1);
	assert_true(asks(w, 30 * S, SEAT_RENEW));
	/* Nobody knows whether it was done. */
	answer(w, BATON_STORAGE, 30 * S, 31 * S);
	asks_nothing(w, 32 * S - 1);
	assert_true(asks(w, 32 * S, SEAT_RENEW));
	assert_int_equal(order(w, 32 * S), SEAT_NOTHING);
}

static void its_time_counts_from_before_the_request(void **state)
{
	struct world *w = *state;
	begin(w);
	assert_int_equal(seat_deadline(&w->seat).ns, 35 * S);
	assert_int_equal(seat_hard_stop(&w->seat).ns, 37 * S + S / 2);
	assert_int_equal(order(w, 35 * S - 1), SEAT_NOTHING);
	assert_int_equal(order(w, 35 * S), SEAT_STOP);
	assert_int_equal(order(w, 35 * S), SEAT_NOTHING);
}

static void nothing_starts_at_or_after_the_deadline(void **state)
{
	struct world *w = *state;
	seat_set(&w->seat, SEAT_LEAD);
	assert_true(asks(w, 10 * S, SEAT_CLAIM));
	answer(w, BATON_OK, 10 * S, 35 * S);
	assert_int_equal(order(w, 35 * S), SEAT_NOTHING);
	assert_true(asks(w, 35 * S, SEAT_RENEW));
	answer(w, BATON_OK, 35 * S, 35 * S);
	assert_int_equal(order(w, 35 * S), SEAT_START);
}

static void who_is_suspect_goes_on_and_starts_nothing(void **state)
{
	struct world *w = *state;
	begin(w);
	seat_set(&w->seat, SEAT_STAY);
	assert_int_equal(order(w, 12 * S), SEAT_NOTHING);
	assert_true(asks(w, 20 * S, SEAT_RENEW));
	answer(w, BATON_OK, 20 * S, 20 * S);
	seat_ended(&w->seat, at(21 * S));
	assert_int_equal(order(w, 30 * S), SEAT_NOTHING);
	seat_set(&w->seat, SEAT_LEAD);
	assert_int_equal(order(w, 30 * S), SEAT_START);
}

static void who_leaves_stops_clears_away_and_then_gives_the_lease_back(void **state)
{
	struct world *w = *state;
	begin(w);
	seat_set(&w->seat, SEAT_LEAVE);
	assert_int_equal(order(w, 12 * S), SEAT_STOP);
	assert_false(seat_is_leaving(&w->seat));
	/* Until it has ended the lease is kept. */
	assert_true(asks(w, 20 * S, SEAT_RENEW));
	answer(w, BATON_OK, 20 * S, 20 * S);
	seat_ended(&w->seat, at(21 * S));
	assert_true(seat_is_leaving(&w->seat));
	asks_nothing(w, 21 * S);
	w->seat.closed = true;
	assert_int_equal(seat_next(&w->seat, at(21 * S)).ns, 0);
	assert_true(asks(w, 21 * S, SEAT_RELEASE));
	answer(w, BATON_OK, 21 * S, 21 * S);
	asks_nothing(w, 90 * S);
	assert_int_equal(seat_next(&w->seat, at(90 * S)).ns, BATON_MONO_NEVER.ns);
}

static void what_was_perhaps_given_back_starts_nothing_before_it_is_renewed(void **state)
{
	struct world *w = *state;
	begin(w);
	seat_set(&w->seat, SEAT_LEAVE);
	order(w, 12 * S);
	seat_ended(&w->seat, at(12 * S));
	w->seat.closed = true;
	assert_true(asks(w, 12 * S, SEAT_RELEASE));
	seat_set(&w->seat, SEAT_LEAD);
	assert_int_equal(order(w, 12 * S), SEAT_NOTHING);
	answer(w, BATON_STORAGE, 12 * S, 13 * S);
	assert_int_equal(order(w, 13 * S), SEAT_NOTHING);
	assert_true(asks(w, 14 * S, SEAT_RENEW));
	answer(w, BATON_NOT_HELD, 14 * S, 14 * S);
	assert_int_equal(order(w, 14 * S), SEAT_NOTHING);
	assert_true(asks(w, 15 * S, SEAT_CLAIM));
	answer(w, BATON_OK, 15 * S, 15 * S);
	assert_int_equal(order(w, 15 * S), SEAT_START);
}

static void what_is_lost_is_stopped_and_asked_for_when_it_has_ended(void **state)
{
	struct world *w = *state;
	begin(w);
	assert_true(asks(w, 20 * S, SEAT_RENEW));
	answer(w, BATON_NOT_HELD, 20 * S, 20 * S);
	assert_int_equal(order(w, 20 * S), SEAT_STOP);
	asks_nothing(w, 30 * S);
	assert_int_equal(seat_hard_stop(&w->seat).ns, 37 * S + S / 2);
	seat_ended(&w->seat, at(30 * S));
	asks_nothing(w, 30 * S);
	w->seat.closed = true;
	assert_true(asks(w, 30 * S, SEAT_CLAIM));
}

static void what_ends_is_started_again_after_pauses_that_grow(void **state)
{
	struct world *w = *state;
	int64_t now = 11 * S, pause = 100 * MS;
	begin(w);
	for (int i = 0; i < 5; i++, pause *= 2) {
		seat_ended(&w->seat, at(now));
		assert_int_equal(order(w, now + pause - 1), SEAT_NOTHING);
		assert_int_equal(seat_next(&w->seat, at(now)).ns, now + pause);
		assert_int_equal(order(w, now + pause), SEAT_START);
		now += pause;
		seat_began(&w->seat, at(now));
	}
}

static void what_is_in_the_way_is_looked_for_again_soon(void **state)
{
	struct world *w = *state;
	begin(w);
	seat_ended(&w->seat, at(12 * S));
	assert_int_equal(order(w, 13 * S), SEAT_START);
	seat_delayed(&w->seat, at(13 * S));
	assert_int_equal(order(w, 13 * S), SEAT_NOTHING);
	assert_int_equal(order(w, 13 * S + 20 * MS), SEAT_START);
}

#define TEST(f) cmocka_unit_test_setup(f, setup)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(only_who_leads_asks_for_the_lease),
		TEST(who_yields_looks_again_and_at_once_when_somebody_has_died),
		TEST(what_is_held_is_renewed_at_a_third_of_its_time),
		TEST(its_time_counts_from_before_the_request),
		TEST(nothing_starts_at_or_after_the_deadline),
		TEST(who_is_suspect_goes_on_and_starts_nothing),
		TEST(who_leaves_stops_clears_away_and_then_gives_the_lease_back),
		TEST(what_was_perhaps_given_back_starts_nothing_before_it_is_renewed),
		TEST(what_is_lost_is_stopped_and_asked_for_when_it_has_ended),
		TEST(what_ends_is_started_again_after_pauses_that_grow),
		TEST(what_is_in_the_way_is_looked_for_again_soon),
	};
	return cmocka_run_group_tests_name("seat", tests, NULL, NULL);
}
