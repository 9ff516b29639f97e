/* Waiting in line. */
#include <baton/claim.h>

#include <sched.h>
#include <string.h>

#include "contest/attempt.h"
#include "support/soak.h"
#include "world.h"

static void what_is_free_needs_no_waiting(void **state)
{
	struct world *w = *state;
	struct queued q;
	queued_start(&q, w->ada, "x", (struct baton_mono){0});
	assert_int_equal(queued_end(&q), BATON_OK);
	assert_int_equal(baton_claim_check(&q.claim, NULL), BATON_OK);
}

static void a_release_lets_the_first_in_line_have_it(void **state)
{
	struct world *w = *state;
	struct queued q;
	struct baton_claim x = hold(w->ada, "x");
	queued_start(&q, w->ben, "x", some_day());
	await_in_line(w->ada, 1);
	assert_int_equal(baton_claim_release(&x), BATON_OK);
	assert_int_equal(queued_end(&q), BATON_OK);
	assert_true(q.claim.fence.v > x.fence.v);
	assert_int_equal(holder_of(w->ada, "x").fence.v, q.claim.fence.v);
	await_in_line(w->ada, 0);
	assert_int_equal(usage_of(w->ada).waiters, 0);
}

/* Who stands in the line of a claim's place, from the first to the last: codes of members. Whoever
 * stands there may be passed if the machine lets him wait for 10 ms, so it is this that tests look
 * at, and not who is fastest. */
static uint32_t line_of(const struct baton_claim *claim, uint32_t codes[WORLD_WAITERS])
{
	const struct view *v = claim->fleet->view;
	uint32_t count = 0;
	uint32_t at = atomic_load(&v->slots[claim->slot].line);
	for (; at != 0 && count < WORLD_WAITERS; at = atomic_load(&v->waiters[at - 1].next))
		codes[count++] = atomic_load(&v->waiters[at - 1].owner);
	return count;
}

#define CREW 5u

static void a_line_is_in_order_of_arrival(void **state)
{
	struct world *w = *state;
	struct baton_fleet *crew[CREW];
	struct queued q[CREW];
	uint32_t codes[WORLD_WAITERS] = {0};
	struct baton_claim x = hold(w->ada, "x");
	for (unsigned i = 0; i < CREW; i++) {
		crew[i] = world_join(w, "one of the crew");
		queued_start(&q[i], crew[i], "x", some_day());
		await_in_line(w->ada, i + 1);
	}
	assert_int_equal(line_of(&x, codes), CREW);
	for (unsigned i = 0; i < CREW; i++)
		assert_int_equal(codes[i], crew[i]->code);
	/* One in the middle leaves, and the others keep their places. */
	baton_cancel(&q[2].cancel);
	assert_int_equal(queued_end(&q[2]), BATON_CANCELLED);
	assert_int_equal(line_of(&x, codes), CREW - 1);
	for (unsigned i = 0; i < CREW - 1; i++)
		assert_int_equal(codes[i], crew[i < 2 ? i : i + 1]->code);
	/* Who comes again stands at the end. */
	queued_start(&q[2], crew[2], "x", some_day());
	await_in_line(w->ada, CREW);
	assert_int_equal(line_of(&x, codes), CREW);
	assert_int_equal(codes[CREW - 1], crew[2]->code);
	for (unsigned i = 0; i < CREW; i++) {
		baton_cancel(&q[i].cancel);
		assert_int_equal(queued_end(&q[i]), BATON_CANCELLED);
	}
	for (unsigned i = 0; i < CREW; i++)
		baton_fleet_leave(crew[i]);
}

/* At moments that the test chooses, with tickets that nobody sleeps on. */
static void a_line_admits_one_after_the_other_10_ms_each(void **state)
{
	struct world *w = *state;
	struct view *v = w->ada->view;
	struct baton_claim x = hold(w->ada, "x");
	uint64_t hash = atomic_load(&v->slots[x.slot].hash);
	uint32_t first, second, third;
	assert_int_equal(line_enter(v, x.slot, hash, w->ben->code, &first), BATON_OK);
	assert_int_equal(line_enter(v, x.slot, hash, w->ada->code, &second), BATON_OK);
	assert_int_equal(line_enter(v, x.slot, hash, w->ben->code, &third), BATON_OK);
	struct word word = word_freed(slot_load(&v->slots[x.slot]));
	const int64_t t = 1000000000, late = t + 10 * NS_PER_MS;
	struct turn turn;
	assert_false(line_admits(v, x.slot, word, third, t, &turn));
	assert_int_equal(turn.first, first);
	assert_int_equal(turn.again, late);
	assert_false(line_admits(v, x.slot, word, second, t, &turn));
	assert_false(line_admits(v, x.slot, word, LINE_NONE, t, &turn));
	assert_true(line_admits(v, x.slot, word, first, t, &turn));
	assert_false(line_admits(v, x.slot, word, second, late - 1, &turn));
	assert_int_equal(turn.first, first);
	/* The first has had his time; from now on it is the second's turn, who has as much. */
	assert_false(line_admits(v, x.slot, word, third, late, &turn));
	assert_int_equal(turn.first, second);
	assert_int_equal(turn.again, late + 10 * NS_PER_MS);
	assert_true(line_admits(v, x.slot, word, second, late, &turn));
	assert_false(line_admits(v, x.slot, word, LINE_NONE, late, &turn));
	assert_false(line_admits(v, x.slot, word, third, late + 10 * NS_PER_MS - 1, &turn));
	assert_true(line_admits(v, x.slot, word, third, late + 10 * NS_PER_MS, &turn));
	/* Whoever was passed and comes back is the first again. */
	atomic_store(&v->waiters[first].passed, 0);
	assert_false(line_admits(v, x.slot, word, LINE_NONE, late, &turn));
	assert_int_equal(turn.first, first);
	/* What was offered of another tenure does not count. */
	struct word next = word_freed(word_taken(word, 1, 0));
	assert_false(line_admits(v, x.slot, next, third, late + 500 * NS_PER_MS, &turn));
	assert_int_equal(turn.again, late + 510 * NS_PER_MS);
	line_leave(v, x.slot, hash, first);
	line_leave(v, x.slot, hash, second);
	line_leave(v, x.slot, hash, third);
	assert_int_equal(atomic_load(&v->slots[x.slot].line), 0);
}

static void a_line_gives_a_dead_one_no_time_at_all(void **state)
{
	struct world *w = *state;
	struct view *v = w->ada->view;
	struct kid kid;
	struct turn turn;
	uint32_t second, codes[WORLD_WAITERS] = {0};
	struct baton_claim x = hold(w->ada, "x");
	uint64_t hash = atomic_load(&v->slots[x.slot].hash);
	kid_start(&kid, w);
	kid_tell(&kid, "wait x 60000");
	await_in_line(w->ada, 1);
	assert_int_equal(line_enter(v, x.slot, hash, w->ben->code, &second), BATON_OK);
	struct word word = word_freed(slot_load(&v->slots[x.slot]));
	assert_false(line_admits(v, x.slot, word, second, 1000000000, &turn));
	kid_kill(&kid);
	assert_int_equal(line_of(&x, codes), 2);
	assert_true(line_admits(v, x.slot, word, second, 1000000000, &turn));
	line_leave(v, x.slot, hash, second);
	assert_int_equal(line_of(&x, codes), 0);
}

/* One member each, so that each has to wait for another. */
static void everybody_in_line_holds_in_the_end(void **state)
{
	struct world *w = *state;
	struct baton_fleet *crew[CREW];
	struct queued q[CREW];
	struct baton_claim x = hold(w->ada, "x");
	for (unsigned i = 0; i < CREW; i++) {
		crew[i] = world_join(w, "one of the crew");
		queued_start(&q[i], crew[i], "x", some_day());
	}
	await_in_line(w->ada, CREW);
	assert_int_equal(baton_claim_release(&x), BATON_OK);
	uint64_t last = x.fence.v;
	for (unsigned left = CREW; left > 0; left--) {
		await_in_line(w->ada, left - 1);
		struct baton_claim_holder holder = holder_of(w->ada, "x");
		assert_true(holder.fence.v > last);
		last = holder.fence.v;
		for (unsigned i = 0; i < CREW; i++) {
			struct baton_id id = baton_fleet_incarnation(crew[i]);
			if (!baton_id_equal(&id, &holder.incarnation))
				continue;
			assert_int_equal(queued_end(&q[i]), BATON_OK);
			assert_int_equal(q[i].claim.fence.v, last);
			assert_int_equal(baton_claim_release(&q[i].claim), BATON_OK);
		}
	}
	assert_int_equal(holder_of(w->ada, "x").fence.v, 0);
	for (unsigned i = 0; i < CREW; i++)
		baton_fleet_leave(crew[i]);
}

static void who_asks_once_yields_while_somebody_is_first_in_line(void **state)
{
	struct world *w = *state;
	struct baton_claim_holder holder;
	struct kid kid;
	struct baton_claim x = hold(w->ada, "x");
	kid_start(&kid, w);
	kid_tell(&kid, "wait x 60000");
	await_in_line(w->ada, 1);
	/* It cannot take what it is offered, and has 10 ms to do so, on a clock that stands. */
	kid_stop(&kid);
	struct baton_mono at = now();
	assert_int_equal(baton_claim_release(&x), BATON_OK);
	struct baton_subject subject = subject_of("x");
	struct baton_claim_ask ask = {.subject = &subject};
	struct baton_claim claim;
	assert_int_equal(baton_claim_try_at(w->ben, &ask, at, &claim, &holder), BATON_YIELD);
	assert_int_equal(holder.why, BATON_CLAIM_IN_LINE);
	assert_false(holder.own);
	assert_int_equal(holder.pid, kid.child.pid);
	assert_string_equal(holder.owner, "kid");
	assert_int_equal(holder.fence.v, 0);
	assert_int_equal(baton_claim_holder(w->ben, &subject, at, &holder), BATON_NOT_HELD);
	/* After his time he is passed. */
	assert_int_equal(baton_claim_try_at(w->ben, &ask, in_ms(1000), &claim, &holder), BATON_OK);
	kid_continue(&kid);
	assert_int_equal(baton_claim_release(&claim), BATON_OK);
	assert_true(strstr(kid_hear(&kid), "BATON_OK") == kid.said);
	assert_true(kid_fence(&kid) > claim.fence.v);
	kid_end(&kid);
}

static void waiting_ends_at_its_time_and_says_who_holds(void **state)
{
	struct world *w = *state;
	struct queued q;
	struct baton_claim x = hold(w->ada, "x");
	queued_start(&q, w->ben, "x", in_ms(5));
	assert_int_equal(queued_end(&q), BATON_TIMEOUT);
	assert_true(now().ns >= q.until.ns);
	assert_int_equal(q.holder.why, BATON_CLAIM_HELD);
	assert_string_equal(q.holder.owner, "ada");
	assert_int_equal(q.holder.fence.v, x.fence.v);
	assert_null(q.claim.fleet);
	assert_int_equal(usage_of(w->ada).waiters, 0);
	/* A time that has passed does not wait at all. */
	queued_start(&q, w->ben, "x", (struct baton_mono){0});
	assert_int_equal(queued_end(&q), BATON_TIMEOUT);
}

static void a_cancelled_wait_leaves_no_trace(void **state)
{
	struct world *w = *state;
	struct queued q;
	struct baton_claim x = hold(w->ada, "x");
	queued_start(&q, w->ben, "x", some_day());
	await_in_line(w->ada, 1);
	baton_cancel(&q.cancel);
	assert_int_equal(queued_end(&q), BATON_CANCELLED);
	assert_null(q.claim.fleet);
	assert_int_equal(usage_of(w->ada).waiters, 0);
	await_in_line(w->ada, 0);
	assert_int_equal(baton_claim_release(&x), BATON_OK);
	assert_int_equal(try_label(w->ada, "x", NULL), BATON_OK);
}

static void what_was_cancelled_stays_so(void **state)
{
	struct world *w = *state;
	struct baton_subject subject = subject_of("x");
	struct baton_cancel cancel = {0};
	struct baton_claim_ask ask = {.subject = &subject, .until = some_day(), .cancel = &cancel};
	struct baton_claim claim;
	hold(w->ada, "x");
	baton_cancel(&cancel);
	baton_cancel(&cancel);
	assert_int_equal(baton_claim_wait(w->ben, &ask, &claim, NULL), BATON_CANCELLED);
	assert_int_equal(baton_claim_wait(w->ben, &ask, &claim, NULL), BATON_CANCELLED);
}

static void a_holder_that_dies_is_followed_without_a_release(void **state)
{
	struct world *w = *state;
	struct baton_fleet *cy = world_join(w, "cy");
	struct queued first, second;
	struct kid kid;
	kid_start(&kid, w);
	kid_ask(&kid, "try x 0");
	queued_start(&first, w->ada, "x", some_day());
	await_in_line(w->ada, 1);
	queued_start(&second, cy, "x", some_day());
	await_in_line(w->ada, 2);
	kid_kill(&kid);
	/* One holds, and the other waits for that one now. */
	await_in_line(w->ada, 1);
	struct baton_id ada = baton_fleet_incarnation(w->ada);
	struct baton_claim_holder holder = holder_of(w->ben, "x");
	bool in_order = baton_id_equal(&holder.incarnation, &ada);
	struct queued *one = in_order ? &first : &second, *other = in_order ? &second : &first;
	assert_int_equal(queued_end(one), BATON_OK);
	assert_int_equal(holder.fence.v, one->claim.fence.v);
	assert_true(one->claim.fence.v > kid_fence(&kid));
	assert_int_equal(baton_claim_release(&one->claim), BATON_OK);
	assert_int_equal(queued_end(other), BATON_OK);
	assert_true(other->claim.fence.v > one->claim.fence.v);
	baton_fleet_leave(cy);
}

static void a_ttl_that_ends_wakes_who_waits(void **state)
{
	struct world *w = *state;
	struct queued q;
	struct baton_claim x = hold_for(w->ada, "x", 30);
	queued_start(&q, w->ben, "x", some_day());
	assert_int_equal(queued_end(&q), BATON_OK);
	assert_true(q.claim.fence.v > x.fence.v);
	assert_int_equal(baton_claim_check(&x, NULL), BATON_NOT_HELD);
	assert_int_equal(baton_claim_renew(&x, baton_duration_s(9)), BATON_NOT_HELD);
}

static void a_renewal_is_waited_for_too(void **state)
{
	struct world *w = *state;
	struct queued q;
	struct baton_claim x = hold_for(w->ada, "x", 60000);
	queued_start(&q, w->ben, "x", in_ms(60));
	await_in_line(w->ada, 1);
	assert_int_equal(baton_claim_renew(&x, baton_duration_s(1000)), BATON_OK);
	assert_int_equal(queued_end(&q), BATON_TIMEOUT);
	assert_int_equal(baton_claim_check(&x, NULL), BATON_OK);
}

static void the_ttl_counts_from_when_it_is_held(void **state)
{
	struct world *w = *state;
	struct queued q;
	struct baton_claim x = hold(w->ada, "x");
	queued_start_for(&q, w->ben, "x", some_day(), baton_duration_s(50));
	await_in_line(w->ada, 1);
	struct baton_mono released = now();
	assert_int_equal(baton_claim_release(&x), BATON_OK);
	assert_int_equal(queued_end(&q), BATON_OK);
	assert_true(holder_of(w->ada, "x").expires.ns >= released.ns + INT64_C(50000000000));
	assert_true(holder_of(w->ada, "x").expires.ns <= now().ns + INT64_C(50000000000));
}

static void a_dead_waiter_is_skipped(void **state)
{
	struct world *w = *state;
	struct queued q;
	struct kid kid;
	struct baton_claim x = hold(w->ada, "x");
	kid_start(&kid, w);
	kid_tell(&kid, "wait x 60000");
	await_in_line(w->ada, 1);
	queued_start(&q, w->ben, "x", some_day());
	await_in_line(w->ada, 2);
	kid_kill(&kid);
	assert_int_equal(baton_claim_release(&x), BATON_OK);
	assert_int_equal(queued_end(&q), BATON_OK);
	assert_int_equal(baton_claim_release(&q.claim), BATON_OK);
	/* Nor is anybody who asks once kept out by a dead one. */
	assert_int_equal(try_label(w->ada, "x", NULL), BATON_OK);
}

static bool is_passed(const struct view *v)
{
	for (uint32_t i = 0; i < v->params[PARAM_WAITERS]; i++) {
		if (atomic_load(&v->waiters[i].slot) != 0 &&
		    atomic_load(&v->waiters[i].passed) != 0)
			return true;
	}
	return false;
}

static void a_stopped_waiter_is_passed_and_keeps_its_place(void **state)
{
	struct world *w = *state;
	struct baton_fleet *cy = world_join(w, "cy");
	struct queued second, third;
	struct kid kid;
	uint32_t codes[WORLD_WAITERS] = {0};
	struct baton_claim x = hold(w->ada, "x");
	kid_start(&kid, w);
	kid_tell(&kid, "wait x 60000");
	await_in_line(w->ada, 1);
	line_of(&x, codes);
	uint32_t code = codes[0];
	queued_start(&second, w->ben, "x", some_day());
	await_in_line(w->ada, 2);
	kid_stop(&kid);
	assert_int_equal(baton_claim_release(&x), BATON_OK);
	assert_int_equal(queued_end(&second), BATON_OK);
	assert_true(is_passed(w->ada->view));
	queued_start(&third, cy, "x", some_day());
	await_in_line(w->ada, 2);
	kid_continue(&kid);
	struct baton_mono late = some_day();
	while (is_passed(w->ada->view) && baton_mono_live(late, now()))
		sched_yield();
	assert_false(is_passed(w->ada->view));
	/* Who has taken a ticket stands in line a moment later. */
	while (line_of(&second.claim, codes) != 2 && baton_mono_live(late, now()))
		sched_yield();
	assert_int_equal(line_of(&second.claim, codes), 2);
	assert_int_equal(codes[0], code);
	assert_int_equal(codes[1], cy->code);
	baton_cancel(&third.cancel);
	assert_int_equal(queued_end(&third), BATON_CANCELLED);
	assert_int_equal(baton_claim_release(&second.claim), BATON_OK);
	kid_hear(&kid);
	assert_true(kid_fence(&kid) > second.claim.fence.v);
	kid_end(&kid);
	baton_fleet_leave(cy);
}

static void as_many_can_wait_as_the_fleet_has_room_for(void **state)
{
	struct world *w = *state;
	struct queued q[WORLD_WAITERS], more;
	struct baton_claim x = hold(w->ada, "x");
	for (unsigned i = 0; i < WORLD_WAITERS; i++)
		queued_start(&q[i], w->ben, "x", some_day());
	await_in_line(w->ada, WORLD_WAITERS);
	assert_int_equal(usage_of(w->ada).waiters, WORLD_WAITERS);
	struct baton_subject subject = subject_of("x");
	struct baton_claim_ask ask = {.subject = &subject, .until = some_day()};
	struct baton_claim claim = {.slot = 77};
	assert_int_equal(baton_claim_wait(w->ben, &ask, &claim, NULL), BATON_FULL);
	assert_non_null(strstr(baton_err_detail(), "16"));
	assert_int_equal(claim.slot, 77);
	baton_cancel(&q[3].cancel);
	assert_int_equal(queued_end(&q[3]), BATON_CANCELLED);
	queued_start(&more, w->ben, "x", some_day());
	await_in_line(w->ada, WORLD_WAITERS);
	assert_int_equal(baton_claim_release(&x), BATON_OK);
	for (unsigned i = 0; i < WORLD_WAITERS; i++)
		if (i != 3)
			assert_true(queued_end(&q[i]) == BATON_OK || q[i].holder.own);
	assert_true(queued_end(&more) == BATON_OK || more.holder.own);
}

static void force_lets_the_first_in_line_have_it(void **state)
{
	struct world *w = *state;
	struct baton_subject subject = subject_of("x");
	struct queued q;
	struct baton_claim x = hold(w->ada, "x");
	queued_start(&q, w->ben, "x", some_day());
	await_in_line(w->ada, 1);
	assert_int_equal(baton_claim_force(w->ada, &subject, NULL), BATON_OK);
	assert_int_equal(queued_end(&q), BATON_OK);
	assert_int_equal(baton_claim_check(&x, NULL), BATON_NOT_HELD);
}

static void leaving_lets_the_first_in_line_have_it(void **state)
{
	struct world *w = *state;
	struct queued q;
	hold(w->ada, "x");
	queued_start(&q, w->ben, "x", some_day());
	await_in_line(w->ada, 1);
	baton_fleet_leave(w->ada);
	w->ada = NULL;
	assert_int_equal(queued_end(&q), BATON_OK);
}

static void lines_for_two_subjects_do_not_touch_each_other(void **state)
{
	struct world *w = *state;
	struct queued q[2];
	struct baton_claim x = hold(w->ada, "x"), y = hold(w->ada, "y");
	queued_start(&q[0], w->ben, "x", some_day());
	queued_start(&q[1], w->ben, "y", some_day());
	await_in_line(w->ada, 2);
	assert_int_equal(baton_claim_release(&y), BATON_OK);
	assert_int_equal(queued_end(&q[1]), BATON_OK);
	await_in_line(w->ada, 1);
	assert_int_equal(baton_claim_release(&x), BATON_OK);
	assert_int_equal(queued_end(&q[0]), BATON_OK);
}

/* The first in line may leave between the look at the line and the look at him. */
static void a_first_in_line_who_has_just_left_is_nobodys_own(void **state)
{
	struct world *w = *state;
	struct baton_subject subject = subject_of("x");
	struct baton_claim_holder holder;
	struct attempt a = {.fleet = w->ada, .subject = &subject, .turn = {.first = 3, .again = 0}};
	attempt_describe(&a, &holder);
	assert_int_equal(holder.why, BATON_CLAIM_IN_LINE);
	assert_false(holder.own);
	assert_string_equal(holder.owner, "");
}

/* Hands a subject round among members, all of whom always wait for it. */
struct round {
	struct baton_fleet *fleet;
	pthread_t thread;
	unsigned turns;
	enum baton_err answer;
	_Atomic uint32_t *inside;
	_Atomic uint64_t *last;
};

static void *round_run(void *arg)
{
	struct round *r = arg;
	struct baton_subject subject = subject_of("x");
	for (unsigned i = 0; i < r->turns && r->answer == BATON_OK; i++) {
		struct baton_claim_ask ask = {.subject = &subject, .until = some_day()};
		struct baton_claim claim;
		r->answer = baton_claim_wait(r->fleet, &ask, &claim, NULL);
		if (r->answer != BATON_OK)
			break;
		if (atomic_fetch_add(r->inside, 1) != 0 ||
		    atomic_exchange(r->last, claim.fence.v) >= claim.fence.v)
			r->answer = BATON_STALE;
		atomic_fetch_sub(r->inside, 1);
		if (baton_claim_release(&claim) != BATON_OK)
			r->answer = BATON_NOT_HELD;
	}
	return NULL;
}

static void handing_round_never_stalls_and_never_has_two_holders(void **state)
{
	struct world *w = *state;
	struct round rounds[4];
	_Atomic uint32_t inside = 0;
	_Atomic uint64_t last = 0;
	/* Nobody begins before all stand in line. */
	struct baton_claim x = hold(w->ada, "x");
	for (unsigned i = 0; i < 4; i++) {
		rounds[i] = (struct round){.fleet = world_join(w, "member"),
		                           .turns = soak_scale(500, 100000),
		                           .inside = &inside,
		                           .last = &last};
		pthread_create(&rounds[i].thread, NULL, round_run, &rounds[i]);
	}
	await_in_line(w->ada, 4);
	assert_int_equal(baton_claim_release(&x), BATON_OK);
	for (unsigned i = 0; i < 4; i++) {
		pthread_join(rounds[i].thread, NULL);
		assert_int_equal(rounds[i].answer, BATON_OK);
	}
	for (unsigned i = 0; i < 4; i++)
		baton_fleet_leave(rounds[i].fleet);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WAIT_TEST(what_is_free_needs_no_waiting),
		WAIT_TEST(a_release_lets_the_first_in_line_have_it),
		WAIT_TEST(a_line_is_in_order_of_arrival),
		WORLD_TEST(a_line_admits_one_after_the_other_10_ms_each),
		WORLD_TEST(a_line_gives_a_dead_one_no_time_at_all),
		WAIT_TEST(everybody_in_line_holds_in_the_end),
		WAIT_TEST(who_asks_once_yields_while_somebody_is_first_in_line),
		WAIT_TEST(waiting_ends_at_its_time_and_says_who_holds),
		WAIT_TEST(a_cancelled_wait_leaves_no_trace),
		WAIT_TEST(what_was_cancelled_stays_so),
		WAIT_TEST(a_holder_that_dies_is_followed_without_a_release),
		WAIT_TEST(a_ttl_that_ends_wakes_who_waits),
		WAIT_TEST(a_renewal_is_waited_for_too),
		WAIT_TEST(the_ttl_counts_from_when_it_is_held),
		WAIT_TEST(a_dead_waiter_is_skipped),
		WAIT_TEST(a_stopped_waiter_is_passed_and_keeps_its_place),
		WAIT_TEST(as_many_can_wait_as_the_fleet_has_room_for),
		WAIT_TEST(force_lets_the_first_in_line_have_it),
		WAIT_TEST(leaving_lets_the_first_in_line_have_it),
		WAIT_TEST(lines_for_two_subjects_do_not_touch_each_other),
		WORLD_TEST(a_first_in_line_who_has_just_left_is_nobodys_own),
		WAIT_TEST(handing_round_never_stalls_and_never_has_two_holders),
	};
	return cmocka_run_group_tests_name("wait", tests, NULL, NULL);
}
