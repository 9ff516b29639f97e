/* Fences of one subject only ever grow, whatever happens to the subject, the fleet or the clock. */
#include <baton/claim.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "contest/mark.h"
#include "support/soak.h"
#include "world.h"

#define HOUR_S 3600

/* What the wall clock of this process shows, off by so many seconds. */
static time_t wall_step_s;

int clock_gettime(clockid_t clock, struct timespec *t)
{
	long result = syscall(SYS_clock_gettime, clock, t);
	if (clock == CLOCK_REALTIME)
		t->tv_sec += wall_step_s;
	return (int)result;
}

static int setup(void **state)
{
	wall_step_s = 0;
	return world_setup(state);
}

#define FENCE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, world_teardown)

/* Takes it and gives it back. */
static uint64_t fence_of(struct baton_fleet *f, const char *label)
{
	struct baton_claim claim = hold(f, label);
	assert_int_equal(baton_claim_release(&claim), BATON_OK);
	assert_true(claim.fence.v < UINT64_C(1) << 53);
	return claim.fence.v;
}

static void everybody_leaves(struct world *w)
{
	baton_fleet_leave(w->ada);
	baton_fleet_leave(w->ben);
	w->ada = w->ben = NULL;
}

static void they_grow_across_release_expiry_force_and_a_crash(void **state)
{
	struct world *w = *state;
	struct baton_subject x = subject_of("x");
	struct baton_claim_ask brief = {.subject = &x, .ttl = {1}};
	struct baton_claim claim;
	uint64_t last = fence_of(w->ada, "x");
	for (int i = 0; i < 3; i++) {
		uint64_t next = fence_of(w->ben, "x");
		assert_true(next > last);
		assert_int_equal(baton_claim_try_at(w->ada, &brief, (struct baton_mono){1}, &claim,
		                                    NULL),
		                 BATON_OK);
		assert_true(claim.fence.v > next);
		last = hold(w->ben, "x").fence.v;
		assert_true(last > claim.fence.v);
		assert_int_equal(baton_claim_force(w->ada, &x, NULL), BATON_OK);
		struct kid kid;
		kid_start(&kid, w);
		kid_ask(&kid, "try x 0");
		assert_true(kid_fence(&kid) > last);
		last = kid_fence(&kid);
		kid_kill(&kid);
	}
	assert_true(fence_of(w->ada, "x") > last);
}

static void they_grow_although_the_room_had_another_subject_meanwhile(void **state)
{
	struct world *w = *state;
	static uint64_t fences[300];
	char label[32];
	memset(fences, 0, sizeof fences);
	for (unsigned i = 0; i < soak_scale(30000, 3000000); i++) {
		unsigned n = i * 7919 % 300;
		snprintf(label, sizeof label, "subject-%u", n);
		uint64_t fence = fence_of(i % 2 ? w->ada : w->ben, label);
		if (fence <= fences[n])
			fail_msg("%s had fence %llu before %llu", label,
			         (unsigned long long)fences[n], (unsigned long long)fence);
		fences[n] = fence;
	}
}

/* It comes back to a place whose own count is far behind. */
static void they_grow_although_the_subject_moved_to_a_younger_place(void **state)
{
	struct world *w = *state;
	uint64_t last = 0;
	everybody_leaves(w);
	assert_int_equal(unlink(w->path), 0);
	w->options.limits.subjects = 2;
	w->ada = world_join(w, "ada");
	for (int i = 0; i < 1000; i++)
		last = fence_of(w->ada, "x");
	fence_of(w->ada, "y");
	struct baton_claim z = hold(w->ada, "z");
	assert_int_equal(z.slot, 0);
	struct baton_claim x = hold(w->ada, "x");
	assert_int_equal(x.slot, 1);
	assert_true(x.fence.v > last);
}

static void they_grow_across_a_reset(void **state)
{
	struct world *w = *state;
	uint64_t before = fence_of(w->ada, "x");
	everybody_leaves(w);
	assert_int_equal(baton_fleet_reset(w->path), BATON_OK);
	w->ada = world_join(w, "ada");
	assert_true(fence_of(w->ada, "x") > before);
}

/* The mark alone has to see to it. */
static void they_grow_across_resets_within_a_moment_of_a_clock_that_stands_still(void **state)
{
	struct world *w = *state;
	uint64_t last = fence_of(w->ada, "x");
	for (int i = 0; i < 5; i++) {
		everybody_leaves(w);
		assert_int_equal(baton_fleet_reset(w->path), BATON_OK);
		wall_step_s = -1000;
		w->ada = world_join(w, "ada");
		uint64_t next = fence_of(w->ada, "x");
		assert_true(next > last);
		last = next;
	}
}

static void they_grow_across_the_removal_of_the_file_and_a_clock_that_went_back(void **state)
{
	struct world *w = *state;
	static const time_t steps[] = {-HOUR_S, -24 * HOUR_S, HOUR_S, -1000000};
	uint64_t last = fence_of(w->ada, "x");
	for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
		everybody_leaves(w);
		assert_int_equal(unlink(w->path), 0);
		wall_step_s = steps[i];
		w->ada = world_join(w, "ada");
		uint64_t next = fence_of(w->ada, "x");
		assert_true(next > last);
		last = next;
	}
}

/* The clock alone has to see to it. */
static void they_grow_although_the_mark_was_lost_with_the_file(void **state)
{
	struct world *w = *state;
	uint64_t before = fence_of(w->ada, "x");
	everybody_leaves(w);
	assert_int_equal(unlink(w->path), 0);
	assert_int_equal(unlink(w->mark), 0);
	wall_step_s = HOUR_S;
	w->ada = world_join(w, "ada");
	assert_true(fence_of(w->ada, "x") > before);
}

static uint64_t mark_of(const struct world *w)
{
	uint64_t mark = 0;
	assert_int_equal(mark_raise(w->mark, 0600, 0, &mark), BATON_OK);
	return mark;
}

static void no_fence_is_above_the_mark_on_the_disk(void **state)
{
	struct world *w = *state;
	struct view *v = w->ada->view;
	assert_true(fence_of(w->ada, "x") <= mark_of(w));
	/* As after so many claims that the block is used up. */
	uint64_t before = mark_of(w);
	atomic_store(&v->slots[0].who, word_make(before - 1, WORD_FREE, 0).who);
	assert_int_equal(fence_of(w->ada, "x"), before);
	assert_true(mark_of(w) == before);
	assert_int_equal(fence_of(w->ada, "x"), before + 1);
	assert_true(mark_of(w) > before);
	assert_true(usage_of(w->ada).mark.v == mark_of(w));
}

static void without_a_mark_nothing_is_handed_out(void **state)
{
	struct world *w = *state;
	struct view *v = w->ada->view;
	struct baton_claim claim = {.slot = 77};
	fence_of(w->ada, "x");
	uint64_t mark = mark_of(w);
	atomic_store(&v->slots[0].who, word_make(mark, WORD_FREE, 0).who);
	assert_int_equal(chmod(w->mark, 0666), 0);
	assert_int_equal(try_label(w->ada, "x", &claim), BATON_INVALID);
	assert_int_equal(claim.slot, 77);
	assert_int_equal(holder_of(w->ben, "x").fence.v, 0);
	assert_int_equal(chmod(w->mark, 0600), 0);
	assert_int_equal(try_label(w->ada, "x", &claim), BATON_OK);
	assert_int_equal(claim.fence.v, mark + 1);
}

static void the_mark_can_be_kept_elsewhere(void **state)
{
	struct world *w = *state;
	char elsewhere[128];
	snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", w->folder);
	everybody_leaves(w);
	assert_int_equal(unlink(w->path), 0);
	assert_int_equal(unlink(w->mark), 0);
	w->options.mark = elsewhere;
	w->ada = world_join(w, "ada");
	uint64_t before = fence_of(w->ada, "x");
	assert_int_not_equal(access(w->mark, F_OK), 0);
	baton_fleet_leave(w->ada);
	w->ada = NULL;
	assert_int_equal(unlink(w->path), 0);
	wall_step_s = -HOUR_S;
	w->ada = world_join(w, "ada");
	assert_true(fence_of(w->ada, "x") > before);
	assert_int_equal(unlink(elsewhere), 0);
}

static void a_clock_or_mark_from_far_ahead_is_refused(void **state)
{
	struct world *w = *state;
	struct baton_fleet *f = NULL;
	everybody_leaves(w);
	assert_int_equal(unlink(w->path), 0);
	FILE *mark = fopen(w->mark, "w");
	assert_non_null(mark);
	fprintf(mark, "%020llu\n", (unsigned long long)MARK_MAX);
	fclose(mark);
	assert_int_equal(world_join_error(w, "ada", &f), BATON_INVALID);
	assert_null(f);
	assert_int_not_equal(access(w->path, F_OK), 0);
	assert_int_equal(mark_of(w), MARK_MAX);
}

static void the_last_fence_is_followed_by_an_error(void **state)
{
	struct world *w = *state;
	struct view *v = w->ada->view;
	fence_of(w->ada, "x");
	atomic_store(&v->slots[0].who, word_make(WORD_TENURE_MAX - MARK_BLOCK, WORD_FREE, 0).who);
	assert_int_equal(try_label(w->ada, "x", NULL), BATON_FULL);
	assert_int_equal(holder_of(w->ada, "x").fence.v, 0);
}

/* Everything that depends on time, with the wall clock stepped by an hour in the middle of it. */
static void a_step_of_the_wall_clock_changes_nothing(void **state)
{
	struct world *w = *state;
	static const time_t steps[] = {HOUR_S, -HOUR_S};
	for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
		struct baton_duration before, after;
		wall_step_s = 0;
		struct baton_claim claim = hold_for(w->ada, "x", 100000);
		struct baton_mono expires = holder_of(w->ben, "x").expires;
		assert_int_equal(baton_claim_check(&claim, &before), BATON_OK);
		wall_step_s = steps[i];
		assert_int_equal(baton_claim_check(&claim, &after), BATON_OK);
		assert_in_range(after.ns, 1, before.ns);
		assert_int_equal(holder_of(w->ben, "x").expires.ns, expires.ns);
		assert_int_equal(try_label(w->ben, "x", NULL), BATON_YIELD);
		assert_int_equal(baton_claim_renew(&claim, baton_duration_s(100)), BATON_OK);
		assert_true(holder_of(w->ben, "x").expires.ns < now().ns + INT64_C(101000000000));
		struct queued q;
		queued_start(&q, w->ben, "x", in_ms(1));
		assert_int_equal(queued_end(&q), BATON_TIMEOUT);
		assert_int_equal(baton_claim_release(&claim), BATON_OK);
		queued_start(&q, w->ben, "x", some_day());
		assert_int_equal(queued_end(&q), BATON_OK);
		assert_int_equal(baton_claim_release(&q.claim), BATON_OK);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FENCE_TEST(they_grow_across_release_expiry_force_and_a_crash),
		FENCE_TEST(they_grow_although_the_room_had_another_subject_meanwhile),
		FENCE_TEST(they_grow_although_the_subject_moved_to_a_younger_place),
		FENCE_TEST(they_grow_across_a_reset),
		FENCE_TEST(they_grow_across_resets_within_a_moment_of_a_clock_that_stands_still),
		FENCE_TEST(they_grow_across_the_removal_of_the_file_and_a_clock_that_went_back),
		FENCE_TEST(they_grow_although_the_mark_was_lost_with_the_file),
		FENCE_TEST(no_fence_is_above_the_mark_on_the_disk),
		FENCE_TEST(without_a_mark_nothing_is_handed_out),
		FENCE_TEST(the_mark_can_be_kept_elsewhere),
		FENCE_TEST(a_clock_or_mark_from_far_ahead_is_refused),
		FENCE_TEST(the_last_fence_is_followed_by_an_error),
		FENCE_TEST(a_step_of_the_wall_clock_changes_nothing),
	};
	return cmocka_run_group_tests_name("fence", tests, NULL, NULL);
}
