/* A holder that is dead, by whatever means, is replaced at once; one that is not, is not. */
#include <baton/claim.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "contest/roster.h"
#include "world.h"

static void assert_taken_over(struct world *w, const struct kid *kid)
{
	struct baton_claim claim = hold(w->ada, "x");
	assert_true(claim.fence.v > kid_fence(kid));
}

static void one_that_was_killed_is_replaced(void **state)
{
	struct world *w = *state;
	struct kid kid;
	kid_start(&kid, w);
	kid_ask(&kid, "try x 0");
	assert_int_equal(try_label(w->ada, "x", NULL), BATON_YIELD);
	kid_kill(&kid);
	assert_int_equal(holder_of(w->ada, "x").fence.v, 0);
	assert_taken_over(w, &kid);
}

/* Dead is dead: nobody has to reap it, or to wait for its ttl. */
static void one_that_was_killed_and_not_reaped_is_replaced(void **state)
{
	struct world *w = *state;
	struct kid kid;
	kid_start(&kid, w);
	kid_ask(&kid, "try x 1000000");
	assert_int_equal(kill(kid.child.pid, SIGKILL), 0);
	child_await_end(&kid.child);
	assert_taken_over(w, &kid);
	child_reap(&kid.child);
}

static void one_that_exits_without_releasing_is_replaced(void **state)
{
	struct world *w = *state;
	struct kid kid;
	kid_start(&kid, w);
	kid_ask(&kid, "try x 0");
	kid_tell(&kid, "exit");
	assert_int_equal(child_reap(&kid.child), 0);
	assert_taken_over(w, &kid);
}

static void one_that_leaves_gives_all_back(void **state)
{
	struct world *w = *state;
	struct kid kid;
	kid_start(&kid, w);
	kid_ask(&kid, "try y 0");
	kid_ask(&kid, "try x 0");
	kid_end(&kid);
	assert_int_equal(try_label(w->ada, "y", NULL), BATON_OK);
	assert_taken_over(w, &kid);
	assert_int_equal(usage_of(w->ada).departed, 0);
}

static void one_that_became_another_program_is_replaced(void **state)
{
	struct world *w = *state;
	struct kid kid;
	kid_start(&kid, w);
	kid_ask(&kid, "try x 0");
	uint64_t fence = kid_fence(&kid);
	/* What it closes when it becomes another tells that it has. */
	assert_string_equal(kid_ask(&kid, "exec"), "");
	assert_int_equal(kill(kid.child.pid, 0), 0);
	assert_true(hold(w->ada, "x").fence.v > fence);
	/* The process lives, so its place is not given to another. */
	struct baton_fleet *cy = world_join(w, "cy");
	assert_int_equal(usage_of(w->ada).departed, 1);
	baton_fleet_leave(cy);
	kid_kill(&kid);
}

static void one_that_leaves_a_forked_child_behind_is_replaced(void **state)
{
	struct world *w = *state;
	struct kid kid;
	kid_start(&kid, w);
	assert_string_equal(kid_ask(&kid, "fork"), "BATON_OK 0");
	kid_ask(&kid, "try x 0");
	kid_ask(&kid, "fork");
	kid_ask(&kid, "check");
	assert_int_equal(kill(kid.child.pid, SIGKILL), 0);
	child_await_end(&kid.child);
	assert_taken_over(w, &kid);
	struct baton_fleet *cy = world_join(w, "cy");
	assert_int_equal(usage_of(w->ada).departed, 0);
	baton_fleet_leave(cy);
	child_hang_up(&kid.child);
	child_reap(&kid.child);
}

static void a_thread_that_ends_leaves_the_claim_to_its_process(void **state)
{
	struct world *w = *state;
	struct kid kid;
	kid_start(&kid, w);
	kid_ask(&kid, "thread x");
	uint64_t fence = kid_fence(&kid);
	assert_int_equal(holder_of(w->ada, "x").fence.v, fence);
	assert_int_equal(try_label(w->ada, "x", NULL), BATON_YIELD);
	kid_ask(&kid, "check");
	assert_int_equal(kid_fence(&kid), fence);
	kid_ask(&kid, "release");
	assert_int_equal(kid_fence(&kid), fence);
	kid_end(&kid);
}

/* What a forked child finds that uses its parent's membership and claim. */
struct inherited {
	struct baton_fleet *fleet;
	struct baton_claim claim;
};

#define EXPECT(n, condition) \
	if (!(condition))    \
	return n

static int use_what_was_inherited(int channel, void *arg)
{
	struct inherited *i = arg;
	struct baton_subject x = subject_of("x");
	struct baton_claim_ask ask = {.subject = &x, .until = some_day()};
	struct baton_claim claim;
	struct baton_claim_holder holder;
	(void)channel;
	EXPECT(1, !baton_fleet_is_current(i->fleet));
	EXPECT(2, baton_claim_check(&i->claim, NULL) == BATON_NOT_HELD);
	EXPECT(3, baton_claim_renew(&i->claim, baton_duration_s(9)) == BATON_NOT_HELD);
	EXPECT(4, baton_claim_release(&i->claim) == BATON_NOT_HELD);
	EXPECT(5, baton_claim_try(i->fleet, &ask, &claim, &holder) == BATON_GONE);
	EXPECT(6, strstr(baton_err_detail(), "fork") != NULL);
	EXPECT(7, baton_claim_wait(i->fleet, &ask, &claim, &holder) == BATON_GONE);
	EXPECT(8, baton_claim_adopt(i->fleet, &x, &claim) == BATON_GONE);
	EXPECT(9, baton_claim_force(i->fleet, &x, &holder) == BATON_GONE);
	EXPECT(10, baton_claim_holder(i->fleet, &x, now(), &holder) == BATON_GONE);
	baton_claim_done(&i->claim);
	baton_fleet_leave(i->fleet);
	return 0;
}

static void a_forked_child_owns_nothing_of_its_parents(void **state)
{
	struct world *w = *state;
	struct child child;
	struct inherited i = {.fleet = w->ada, .claim = hold(w->ada, "x")};
	child_start(&child, use_what_was_inherited, &i);
	assert_int_equal(child_reap(&child), 0);
	assert_true(baton_fleet_is_current(w->ada));
	assert_int_equal(baton_claim_check(&i.claim, NULL), BATON_OK);
	assert_int_equal(try_label(w->ben, "x", NULL), BATON_YIELD);
	assert_int_equal(baton_claim_release(&i.claim), BATON_OK);
}

static void a_stopped_holder_keeps_its_claim_within_its_ttl(void **state)
{
	struct world *w = *state;
	struct kid kid;
	kid_start(&kid, w);
	kid_ask(&kid, "try x 1000000");
	kid_stop(&kid);
	assert_int_equal(try_label(w->ada, "x", NULL), BATON_YIELD);
	kid_continue(&kid);
	kid_ask(&kid, "check");
	kid_fence(&kid);
	kid_ask(&kid, "renew 1000000");
	kid_fence(&kid);
	kid_end(&kid);
}

static void a_stopped_holder_loses_its_claim_past_its_ttl_and_learns_it(void **state)
{
	struct world *w = *state;
	struct kid kid;
	kid_start(&kid, w);
	kid_ask(&kid, "try x 1000000");
	uint64_t fence = kid_fence(&kid);
	kid_stop(&kid);
	struct baton_subject subject = subject_of("x");
	struct baton_claim_ask ask = {.subject = &subject};
	struct baton_claim claim;
	assert_int_equal(baton_claim_try_at(w->ada, &ask, in_ms(1000001), &claim, NULL), BATON_OK);
	assert_true(claim.fence.v > fence);
	kid_continue(&kid);
	assert_string_equal(kid_ask(&kid, "check"), "BATON_NOT_HELD 0");
	assert_string_equal(kid_ask(&kid, "renew 1000"), "BATON_NOT_HELD 0");
	assert_string_equal(kid_ask(&kid, "release"), "BATON_NOT_HELD 0");
	assert_string_equal(kid_ask(&kid, "try x 0"), "BATON_YIELD 0");
	kid_end(&kid);
	assert_int_equal(baton_claim_check(&claim, NULL), BATON_OK);
}

static void a_stopped_holder_without_a_ttl_keeps_its_claim(void **state)
{
	struct world *w = *state;
	struct kid kid;
	kid_start(&kid, w);
	kid_ask(&kid, "try x 0");
	kid_stop(&kid);
	assert_int_equal(try_label(w->ada, "x", NULL), BATON_YIELD);
	kid_kill(&kid);
	assert_taken_over(w, &kid);
}

/* The member with that pid. */
static uint32_t code_of(const struct view *v, pid_t pid)
{
	for (uint32_t code = 1; code <= view_members_used(v); code++) {
		struct member_facts facts;
		if (roster_facts(v, code, &facts) && facts.owner.pid == pid &&
		    strcmp(facts.owner.id, "kid") == 0)
			return code;
	}
	fail_msg("there is no member with pid %d", (int)pid);
	return 0;
}

static void facts_forge(struct view *v, uint32_t code, const struct member_facts *facts)
{
	uint64_t words[FACTS_WORDS] = {0};
	memcpy(words, facts, sizeof *facts);
	for (size_t i = 0; i < FACTS_WORDS; i++)
		atomic_store(&v->members[code - 1].facts[i], words[i]);
}

static void a_pid_that_was_given_to_another_does_not_look_alive(void **state)
{
	struct world *w = *state;
	struct view *v = w->ada->view;
	struct member_facts facts;
	struct kid kid;
	kid_start(&kid, w);
	kid_ask(&kid, "try x 0");
	uint32_t code = code_of(v, kid.child.pid);
	assert_true(roster_facts(v, code, &facts));
	kid_kill(&kid);
	/* As if this very process had its number now, which began at another time. */
	facts.owner.pid = getpid();
	facts.owner.start = w->ada->self.start + 1;
	facts_forge(v, code, &facts);
	assert_taken_over(w, &kid);
	struct baton_fleet *cy = world_join(w, "cy");
	assert_int_equal(cy->code, code);
	assert_int_equal(usage_of(w->ada).departed, 0);
	baton_fleet_leave(cy);
}

static void a_process_that_lost_its_keeper_loses_its_claims_and_keeps_its_place(void **state)
{
	struct world *w = *state;
	struct view *v = w->ada->view;
	struct kid kid;
	kid_start(&kid, w);
	kid_ask(&kid, "try x 0");
	uint32_t code = code_of(v, kid.child.pid);
	atomic_store(&v->members[code - 1].life, 0);
	struct baton_claim claim = hold(w->ada, "x");
	assert_true(claim.fence.v > kid_fence(&kid));
	assert_string_equal(kid_ask(&kid, "check"), "BATON_NOT_HELD 0");
	assert_string_equal(kid_ask(&kid, "release"), "BATON_NOT_HELD 0");
	struct baton_fleet *cy = world_join(w, "cy");
	assert_int_not_equal(cy->code, code);
	baton_fleet_leave(cy);
	kid_kill(&kid);
	cy = world_join(w, "cy");
	assert_int_equal(cy->code, code);
	baton_fleet_leave(cy);
	assert_int_equal(baton_claim_check(&claim, NULL), BATON_OK);
}

static void a_process_that_cannot_be_seen_has_its_place_reused_after_10_s(void **state)
{
	struct world *w = *state;
	struct view *v = w->ada->view;
	struct member_facts facts;
	struct kid kid;
	kid_start(&kid, w);
	kid_ask(&kid, "try x 0");
	uint32_t code = code_of(v, kid.child.pid);
	struct member *m = &v->members[code - 1];
	assert_true(roster_facts(v, code, &facts));
	kid_kill(&kid);
	facts.owner.pid_ns++;
	facts_forge(v, code, &facts);
	assert_taken_over(w, &kid);
	struct baton_fleet *cy = world_join(w, "cy");
	assert_int_not_equal(cy->code, code);
	baton_fleet_leave(cy);
	assert_true(atomic_load(&m->dead_since) != 0);
	/* The test itself may take its time, but not an hour. */
	atomic_store(&m->dead_since, now().ns + 3600 * INT64_C(1000000000));
	cy = world_join(w, "cy");
	assert_int_not_equal(cy->code, code);
	baton_fleet_leave(cy);
	atomic_store(&m->dead_since, now().ns - 10 * INT64_C(1000000000));
	cy = world_join(w, "cy");
	assert_int_equal(cy->code, code);
	assert_int_equal(atomic_load(&m->dead_since), 0);
	baton_fleet_leave(cy);
}

static void what_a_dead_member_held_is_freed_when_its_place_is_reused(void **state)
{
	struct world *w = *state;
	struct kid kid;
	kid_start(&kid, w);
	uint32_t code = code_of(w->ada->view, kid.child.pid);
	kid_ask(&kid, "try x 0");
	kid_ask(&kid, "try y 0");
	kid_kill(&kid);
	struct baton_fleet *cy = world_join(w, "cy");
	assert_int_equal(cy->code, code);
	/* It is a new member with the old number, and has nothing of the old one's. */
	struct baton_subject x = subject_of("x");
	struct baton_claim claim;
	assert_int_equal(baton_claim_adopt(cy, &x, &claim), BATON_NOT_HELD);
	assert_int_equal(usage_of(cy).subjects, 0);
	assert_taken_over(w, &kid);
	assert_int_equal(try_label(w->ben, "y", NULL), BATON_OK);
	baton_fleet_leave(cy);
}

static void what_a_dead_member_held_makes_room_in_a_full_table(void **state)
{
	struct world *w = *state;
	struct kid kid;
	char text[32];
	kid_start(&kid, w);
	for (unsigned i = 0; i < WORLD_SUBJECTS; i++) {
		snprintf(text, sizeof text, "try kids-%u 0", i);
		kid_ask(&kid, text);
		kid_fence(&kid);
	}
	assert_int_equal(try_label(w->ada, "x", NULL), BATON_FULL);
	kid_kill(&kid);
	for (unsigned i = 0; i < WORLD_SUBJECTS; i++) {
		snprintf(text, sizeof text, "mine-%u", i);
		assert_int_equal(try_label(w->ada, text, NULL), BATON_OK);
	}
}

static void what_only_dead_ones_wait_for_makes_room_in_a_full_table(void **state)
{
	struct world *w = *state;
	struct baton_claim claims[WORLD_SUBJECTS];
	struct kid kids[3];
	char text[32];
	for (unsigned i = 0; i < WORLD_SUBJECTS; i++) {
		snprintf(text, sizeof text, "mine-%u", i);
		claims[i] = hold(w->ada, text);
	}
	for (unsigned i = 0; i < 3; i++) {
		kid_start(&kids[i], w);
		snprintf(text, sizeof text, "wait mine-%u 60000", i);
		kid_tell(&kids[i], text);
		await_in_line(w->ada, i + 1);
	}
	for (unsigned i = 0; i < 3; i++) {
		kid_kill(&kids[i]);
		assert_int_equal(baton_claim_release(&claims[i]), BATON_OK);
		snprintf(text, sizeof text, "another-%u", i);
		assert_int_equal(try_label(w->ben, text, NULL), BATON_OK);
	}
}

static void tickets_of_the_dead_are_used_again_before_a_line_is_full(void **state)
{
	struct world *w = *state;
	struct kid kid;
	kid_start(&kid, w);
	kid_ask(&kid, "try y 0");
	uint32_t code = 0;
	for (uint32_t i = 1; i <= WORLD_MEMBERS; i++) {
		struct member_facts facts;
		if (roster_facts(w->ada->view, i, &facts) && facts.owner.pid == kid.child.pid)
			code = i;
	}
	assert_int_not_equal(code, 0);
	kid_kill(&kid);
	for (uint32_t i = 0; i < WORLD_WAITERS; i++)
		atomic_store(&w->ada->view->waiters[i].owner, code);
	hold(w->ada, "x");
	struct baton_subject x = subject_of("x");
	struct baton_claim claim;
	struct baton_claim_ask ask = {.subject = &x,
	                              .until = baton_mono_add(now(), baton_duration_ms(1))};
	assert_int_equal(baton_claim_wait(w->ben, &ask, &claim, NULL), BATON_TIMEOUT);
}

static void many_deaths_leave_nothing_behind(void **state)
{
	struct world *w = *state;
	uint64_t last = 0;
	for (unsigned i = 0; i < 3 * WORLD_MEMBERS; i++) {
		struct kid kid;
		kid_start(&kid, w);
		kid_ask(&kid, "try x 0");
		assert_true(kid_fence(&kid) > last);
		last = kid_fence(&kid);
		kid_kill(&kid);
	}
	assert_true(view_members_used(w->ada->view) <= 3);
	assert_int_equal(usage_of(w->ada).known, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(one_that_was_killed_is_replaced),
		WORLD_TEST(one_that_was_killed_and_not_reaped_is_replaced),
		WORLD_TEST(one_that_exits_without_releasing_is_replaced),
		WORLD_TEST(one_that_leaves_gives_all_back),
		WORLD_TEST(one_that_became_another_program_is_replaced),
		WORLD_TEST(one_that_leaves_a_forked_child_behind_is_replaced),
		WORLD_TEST(a_thread_that_ends_leaves_the_claim_to_its_process),
		WORLD_TEST(a_forked_child_owns_nothing_of_its_parents),
		WORLD_TEST(a_stopped_holder_keeps_its_claim_within_its_ttl),
		WORLD_TEST(a_stopped_holder_loses_its_claim_past_its_ttl_and_learns_it),
		WORLD_TEST(a_stopped_holder_without_a_ttl_keeps_its_claim),
		WORLD_TEST(a_pid_that_was_given_to_another_does_not_look_alive),
		WORLD_TEST(a_process_that_lost_its_keeper_loses_its_claims_and_keeps_its_place),
		WORLD_TEST(a_process_that_cannot_be_seen_has_its_place_reused_after_10_s),
		WORLD_TEST(what_a_dead_member_held_is_freed_when_its_place_is_reused),
		WORLD_TEST(what_a_dead_member_held_makes_room_in_a_full_table),
		WORLD_TEST(what_only_dead_ones_wait_for_makes_room_in_a_full_table),
		WORLD_TEST(tickets_of_the_dead_are_used_again_before_a_line_is_full),
		WORLD_TEST(many_deaths_leave_nothing_behind),
	};
	return cmocka_run_group_tests_name("death", tests, NULL, NULL);
}
