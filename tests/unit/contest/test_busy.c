/* A process that is stopped where others have to go keeps nobody waiting: they say busy, and go on
 * when it does, or when it dies. */
#include <baton/claim.h>

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "contest/mark.h"
#include "world.h"

static void stop_with(struct kid *kid, struct world *w, const char *what)
{
	kid_start(kid, w);
	assert_string_equal(kid_ask(kid, what), "BATON_OK 0");
	kid_stop(kid);
}

static void let_go(struct kid *kid)
{
	kid_continue(kid);
	assert_string_equal(kid_ask(kid, "unlock"), "BATON_OK 0");
	kid_end(kid);
}

static void new_subjects_wait_for_a_stopped_process_and_no_others(void **state)
{
	struct world *w = *state;
	struct kid kid;
	struct baton_claim x = hold(w->ada, "x"), claim = {.slot = 77};
	stop_with(&kid, w, "lock shard");
	assert_int_equal(try_label(w->ada, "new", &claim), BATON_BUSY);
	assert_non_null(strstr(baton_err_detail(), "10 ms"));
	assert_int_equal(claim.slot, 77);
	/* What is there already is looked up, given back and taken without a lock. */
	assert_int_equal(try_label(w->ben, "x", NULL), BATON_YIELD);
	assert_int_equal(baton_claim_renew(&x, baton_duration_s(9)), BATON_OK);
	assert_int_equal(baton_claim_release(&x), BATON_OK);
	assert_int_equal(try_label(w->ben, "x", &x), BATON_OK);
	assert_int_equal(baton_claim_release(&x), BATON_OK);
	let_go(&kid);
	assert_int_equal(try_label(w->ada, "new", NULL), BATON_OK);
	/* The attempt has left no trace. */
	assert_int_equal(usage_of(w->ada).known, 2);
}

static void a_stopped_process_that_is_killed_is_in_nobodys_way(void **state)
{
	struct world *w = *state;
	struct kid kid;
	stop_with(&kid, w, "lock shard");
	assert_int_equal(try_label(w->ada, "new", NULL), BATON_BUSY);
	kid_kill(&kid);
	assert_int_equal(try_label(w->ada, "new", NULL), BATON_OK);
}

static void waiting_in_line_is_busy_too(void **state)
{
	struct world *w = *state;
	struct kid kid;
	struct baton_subject subject = subject_of("x");
	struct baton_claim_ask ask = {.subject = &subject, .until = some_day()};
	struct baton_claim claim;
	hold(w->ada, "x");
	stop_with(&kid, w, "lock shard");
	assert_int_equal(baton_claim_wait(w->ben, &ask, &claim, NULL), BATON_BUSY);
	let_go(&kid);
	assert_int_equal(usage_of(w->ada).waiters, 0);
}

static void who_cannot_leave_the_line_is_taken_out_by_the_next(void **state)
{
	struct world *w = *state;
	struct kid kid;
	struct queued q, next;
	struct baton_claim x = hold(w->ada, "x");
	queued_start(&q, w->ben, "x", some_day());
	await_in_line(w->ada, 1);
	stop_with(&kid, w, "lock shard");
	baton_cancel(&q.cancel);
	assert_int_equal(queued_end(&q), BATON_CANCELLED);
	/* He stands there, and is nobody to wait for. */
	await_in_line(w->ada, 1);
	assert_int_equal(usage_of(w->ada).waiters, 0);
	let_go(&kid);
	assert_int_equal(baton_claim_release(&x), BATON_OK);
	x = hold(w->ada, "x");
	queued_start(&next, w->ben, "x", some_day());
	await_waiting(w->ada, 1);
	assert_int_equal(baton_claim_release(&x), BATON_OK);
	assert_int_equal(queued_end(&next), BATON_OK);
	await_in_line(w->ada, 0);
	assert_int_equal(usage_of(w->ada).waiters, 0);
}

static void an_index_that_a_dead_process_left_half_changed_is_repaired(void **state)
{
	struct world *w = *state;
	struct kid kid;
	struct baton_subject x = subject_of("x");
	struct baton_claim claim = hold(w->ada, "x"), adopted;
	struct baton_claim y = hold(w->ada, "y");
	baton_claim_release(&y);
	stop_with(&kid, w, "tear");
	/* Where it is cannot be known now. */
	assert_int_equal(try_label(w->ben, "x", NULL), BATON_BUSY);
	assert_int_equal(baton_claim_adopt(w->ada, &x, &adopted), BATON_BUSY);
	assert_int_equal(baton_claim_force(w->ben, &x, NULL), BATON_BUSY);
	/* Whoever has a claim needs to look for nothing. */
	assert_int_equal(baton_claim_check(&claim, NULL), BATON_OK);
	assert_int_equal(baton_claim_renew(&claim, baton_duration_s(9)), BATON_OK);
	kid_kill(&kid);
	assert_int_equal(try_label(w->ben, "x", NULL), BATON_YIELD);
	assert_int_equal(baton_claim_adopt(w->ada, &x, &adopted), BATON_OK);
	assert_int_equal(adopted.fence.v, claim.fence.v);
	assert_int_equal(adopted.slot, claim.slot);
	assert_true(hold(w->ben, "y").fence.v > y.fence.v);
	assert_int_equal(usage_of(w->ada).known, 2);
}

static void lines_are_whole_after_a_repair(void **state)
{
	struct world *w = *state;
	struct baton_fleet *cy = world_join(w, "cy");
	struct view *v = w->ada->view;
	struct kid kid;
	struct queued q[2];
	struct baton_claim x = hold(w->ada, "x");
	queued_start(&q[0], w->ben, "x", some_day());
	await_in_line(w->ada, 1);
	queued_start(&q[1], cy, "x", some_day());
	await_in_line(w->ada, 2);
	stop_with(&kid, w, "tear");
	atomic_store(&v->slots[x.slot].line, 0);
	kid_kill(&kid);
	hold(w->ada, "new");
	uint32_t first = atomic_load(&v->slots[x.slot].line);
	assert_int_not_equal(first, 0);
	assert_int_equal(atomic_load(&v->waiters[first - 1].owner), w->ben->code);
	uint32_t second = atomic_load(&v->waiters[first - 1].next);
	assert_int_not_equal(second, 0);
	assert_int_equal(atomic_load(&v->waiters[second - 1].owner), cy->code);
	for (unsigned i = 0; i < 2; i++) {
		baton_cancel(&q[i].cancel);
		assert_int_equal(queued_end(&q[i]), BATON_CANCELLED);
	}
	baton_fleet_leave(cy);
}

static void nobody_joins_past_a_stopped_process_and_whoever_is_in_goes_on(void **state)
{
	struct world *w = *state;
	struct baton_fleet *cy = NULL;
	struct kid kid;
	stop_with(&kid, w, "lock roster");
	assert_int_equal(world_join_error(w, "cy", &cy), BATON_BUSY);
	assert_null(cy);
	assert_int_equal(baton_fleet_reset(w->path), BATON_BUSY);
	struct baton_claim x = hold(w->ada, "x");
	assert_int_equal(baton_claim_release(&x), BATON_OK);
	/* Leaving is not kept up, and what was held is free. */
	hold(w->ben, "y");
	baton_fleet_leave(w->ben);
	w->ben = NULL;
	assert_int_equal(try_label(w->ada, "y", NULL), BATON_OK);
	assert_int_equal(usage_of(w->ada).departed, 1);
	let_go(&kid);
	cy = world_join(w, "cy");
	assert_int_equal(usage_of(w->ada).departed, 0);
	baton_fleet_leave(cy);
}

static void a_roster_whose_holder_died_is_used_again(void **state)
{
	struct world *w = *state;
	struct kid kid;
	stop_with(&kid, w, "lock roster");
	kid_kill(&kid);
	struct baton_fleet *cy = world_join(w, "cy");
	assert_int_equal(usage_of(w->ada).members, 3);
	baton_fleet_leave(cy);
}

static void a_mark_that_somebody_has_locked_is_busy(void **state)
{
	struct world *w = *state;
	struct view *v = w->ada->view;
	struct baton_claim x = hold(w->ada, "x");
	baton_claim_release(&x);
	uint64_t mark = atomic_load(&v->control->mark);
	atomic_store(&v->slots[x.slot].who, word_make(mark, WORD_FREE, 0).who);
	int fd = open(w->mark, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(try_label(w->ada, "x", NULL), BATON_BUSY);
	assert_int_equal(holder_of(w->ada, "x").fence.v, 0);
	close(fd);
	assert_int_equal(try_label(w->ada, "x", NULL), BATON_OK);
}

static void a_lock_that_is_none_is_an_error_and_no_end(void **state)
{
	struct world *w = *state;
	struct view *v = w->ada->view;
	int kind = v->shards[0].lock.mutex.__data.__kind;
	v->shards[0].lock.mutex.__data.__kind = 0x7777;
	assert_int_equal(try_label(w->ada, "x", NULL), BATON_INVALID);
	assert_non_null(strstr(baton_err_detail(), "damaged"));
	v->shards[0].lock.mutex.__data.__kind = kind;
	assert_int_equal(try_label(w->ada, "x", NULL), BATON_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(new_subjects_wait_for_a_stopped_process_and_no_others),
		WORLD_TEST(a_stopped_process_that_is_killed_is_in_nobodys_way),
		WORLD_TEST(waiting_in_line_is_busy_too),
		WORLD_TEST(who_cannot_leave_the_line_is_taken_out_by_the_next),
		WORLD_TEST(an_index_that_a_dead_process_left_half_changed_is_repaired),
		WORLD_TEST(lines_are_whole_after_a_repair),
		WORLD_TEST(nobody_joins_past_a_stopped_process_and_whoever_is_in_goes_on),
		WORLD_TEST(a_roster_whose_holder_died_is_used_again),
		WORLD_TEST(a_mark_that_somebody_has_locked_is_busy),
		WORLD_TEST(a_lock_that_is_none_is_an_error_and_no_end),
	};
	return cmocka_run_group_tests_name("busy", tests, NULL, NULL);
}
