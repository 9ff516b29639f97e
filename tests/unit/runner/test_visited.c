/* Connections for lanes: when they begin, when they have to end, and what waits for that. */
#include <stdio.h>

#include "actor.h"
#include "handoff/guest.h"
#include "runner/visits.h"

#define LANES 64

/* A connection that is served. */
struct visitor {
	bool here;
	uint32_t shard;
	baton_fence fence;
};

static struct visitor visit(struct world *w, struct actor *a, unsigned lane)
{
	struct visitor guest = {.here = false};
	char name[16];
	snprintf(name, sizeof name, "lane-%u", lane);
	guest.here =
		core_visit(a->core, 0, baton_str_z(name), world_now(w), &guest.shard, &guest.fence);
	return guest;
}

static void visit_all(struct world *w, struct actor *a, struct visitor guests[LANES])
{
	for (unsigned i = 0; i < LANES; i++) {
		guests[i] = visit(w, a, i);
		assert_true(guests[i].here);
	}
}

static bool goes_on(struct actor *a, const struct visitor *guest)
{
	return core_visit_goes_on(a->core, 0, guest->shard);
}

static void leave(struct actor *a, struct visitor *guest)
{
	guest->here = false;
	core_visit_ended(a->core, 0, guest->shard);
}

static void leave_all(struct actor *a, struct visitor guests[LANES])
{
	for (unsigned i = 0; i < LANES; i++)
		if (guests[i].here)
			leave(a, &guests[i]);
}

/* So many beats of both, with all that they want to ask. */
static void live(struct world *w, struct actor *a, struct actor *b, int beats)
{
	for (int i = 0; i < beats; i++) {
		world_pass(w, 1000);
		actor_beat(w, a);
		actor_beat(w, b);
		actor_settle(w, a);
		actor_settle(w, b);
	}
}

static void a_connection_is_served_under_the_fence_of_its_shard(void **state)
{
	struct world *w = *state;
	struct actor a;
	struct baton_where where;
	actor_init(w, &a, "a", 4);
	assert_false(visit(w, &a, 1).here);
	actor_settle(w, &a);
	struct visitor guest = visit(w, &a, 1);
	assert_true(guest.here && goes_on(&a, &guest));
	assert_int_equal(baton_lane_where(w->store, w->queue, BATON_STR("lane-1"), &where),
	                 BATON_OK);
	assert_int_equal(guest.fence.v, where.fence.v);
	assert_int_equal(guest.shard, where.shard);
	assert_int_equal(core_counts(a.core).visits, 1);
	leave(&a, &guest);
	assert_int_equal(core_counts(a.core).visits, 0);
	actor_done(&a);
}

static void a_shard_goes_to_another_runner_once_nobody_is_served_under_it(void **state)
{
	struct world *w = *state;
	struct actor a, b;
	struct visitor guests[LANES];
	unsigned leaving = 0;
	actor_init(w, &a, "a", 4);
	actor_init(w, &b, "b", 4);
	actor_settle(w, &a);
	visit_all(w, &a, guests);
	actor_settle(w, &b);
	live(w, &a, &b, 3);
	/* They are told to end, nobody new begins there, and the shards stay. */
	assert_int_equal(core_counts(a.core).owned, SHARDS);
	assert_int_equal(core_counts(b.core).owned, 0);
	for (unsigned i = 0; i < LANES; i++) {
		if (goes_on(&a, &guests[i]))
			continue;
		leaving++;
		assert_false(visit(w, &a, i).here || visit(w, &b, i).here);
		leave(&a, &guests[i]);
	}
	assert_in_range(leaving, 1, LANES - 1);
	live(w, &a, &b, 3);
	assert_int_equal(core_counts(a.core).owned, SHARDS / 2);
	assert_int_equal(core_counts(b.core).owned, SHARDS / 2);
	for (unsigned i = 0; i < LANES; i++) {
		struct visitor at_b = visit(w, &b, i);
		assert_int_equal(at_b.here, !guests[i].here);
		if (at_b.here) {
			assert_true(at_b.fence.v > guests[i].fence.v);
			leave(&b, &at_b);
		} else {
			assert_true(goes_on(&a, &guests[i]));
		}
	}
	leave_all(&a, guests);
	actor_done(&a);
	actor_done(&b);
}

static void at_the_deadline_nobody_goes_on_and_it_registers_anew_when_they_have_ended(void **state)
{
	struct world *w = *state;
	struct actor a;
	actor_init(w, &a, "a", 4);
	actor_settle(w, &a);
	struct visitor guest = visit(w, &a, 1);
	uint64_t before = core_number(a.core);
	world_pass(w, (TTL_S - MARGIN_S) * 1000 - 1);
	core_time(a.core, world_now(w));
	assert_true(goes_on(&a, &guest));
	world_pass(w, 1);
	assert_false(visit(w, &a, 2).here);
	assert_false(goes_on(&a, &guest));
	/* What serves it has to be dead then, whatever the runner does. */
	assert_true(core_hard_stop(a.core).ns < INT64_MAX);
	for (int i = 0; i < 50; i++) {
		actor_settle(w, &a);
		world_pass(w, 100);
	}
	assert_int_equal(core_number(a.core), before);
	leave(&a, &guest);
	for (int i = 0; i < 50 && core_number(a.core) <= before; i++) {
		actor_settle(w, &a);
		world_pass(w, 100);
	}
	actor_settle(w, &a);
	assert_true(core_number(a.core) > before);
	struct visitor again = visit(w, &a, 1);
	assert_true(again.here && again.fence.v > guest.fence.v);
	leave(&a, &again);
	actor_done(&a);
}

static void a_runner_that_was_replaced_does_nothing_while_somebody_is_served(void **state)
{
	struct world *w = *state;
	struct actor a;
	enum baton_err err;
	actor_init(w, &a, "a", 4);
	actor_settle(w, &a);
	struct visitor guest = visit(w, &a, 1);
	core_beaten(a.core, core_number(a.core), BATON_NOT_HELD, "", world_now(w), world_now(w));
	assert_false(goes_on(&a, &guest));
	assert_true(core_hard_stop(a.core).ns < INT64_MAX);
	for (int i = 0; i < 50; i++) {
		actor_settle(w, &a);
		world_pass(w, 100);
	}
	assert_int_equal(core_number(a.core), 0);
	core_stop(a.core, baton_duration_s(0), world_now(w));
	assert_false(core_is_done(a.core, &err));
	leave(&a, &guest);
	core_time(a.core, world_now(w));
	actor_settle(w, &a);
	assert_true(core_is_done(a.core, &err));
	actor_done(&a);
}

static void while_it_is_suspect_nobody_begins_and_those_who_are_here_go_on(void **state)
{
	struct world *w = *state;
	struct actor a;
	actor_init(w, &a, "a", 4);
	actor_settle(w, &a);
	struct visitor guest = visit(w, &a, 1);
	baton_detach_suspect(&a.detach);
	assert_false(visit(w, &a, 1).here);
	assert_true(goes_on(&a, &guest));
	actor_settle(w, &a);
	struct visitor other = visit(w, &a, 1);
	assert_true(other.here);
	leave(&a, &other);
	leave(&a, &guest);
	actor_done(&a);
}

static void a_stopped_runner_leaves_once_nobody_is_served(void **state)
{
	struct world *w = *state;
	struct actor a;
	enum baton_err err;
	actor_init(w, &a, "a", 4);
	actor_settle(w, &a);
	struct visitor guest = visit(w, &a, 1);
	core_stop(a.core, baton_duration_s(15), world_now(w));
	assert_false(goes_on(&a, &guest));
	assert_false(visit(w, &a, 1).here);
	actor_settle(w, &a);
	assert_false(core_is_done(a.core, &err));
	assert_true(core_number(a.core) > 0);
	leave(&a, &guest);
	actor_settle(w, &a);
	assert_true(core_is_done(a.core, &err));
	assert_int_equal(err, BATON_OK);
	actor_done(&a);
}

static void detached_by_hand_it_gives_its_shards_once_nobody_is_served(void **state)
{
	struct world *w = *state;
	struct actor a;
	struct baton_where where;
	actor_init(w, &a, "a", 4);
	actor_settle(w, &a);
	struct visitor guest = visit(w, &a, 1);
	core_detach(a.core, world_now(w));
	assert_false(goes_on(&a, &guest));
	actor_settle(w, &a);
	baton_lane_where(w->store, w->queue, BATON_STR("lane-1"), &where);
	assert_true(where.owned);
	leave(&a, &guest);
	world_pass(w, 2000);
	actor_beat(w, &a);
	actor_settle(w, &a);
	baton_lane_where(w->store, w->queue, BATON_STR("lane-1"), &where);
	assert_false(where.owned);
	actor_done(&a);
}

/* Those that functions serve. */
struct party {
	struct baton_visit *all[2];
	unsigned count, sent_away;
};

static void party_connected(void *arg, struct baton_visit *visit)
{
	struct party *p = arg;
	p->all[p->count++] = visit;
}

/* With the one who has to go, all others do. */
static void party_leave(void *arg, struct baton_visit *visit)
{
	struct party *p = arg;
	assert_non_null(baton_visit_connection(visit));
	p->sent_away++;
	while (p->count > 0)
		baton_visit_end(p->all[--p->count]);
}

static void who_has_ended_is_not_sent_away(void **state)
{
	struct world *w = *state;
	struct actor a;
	struct alarm alarm;
	struct inbox inbox;
	struct visits visits;
	struct party party = {.count = 0};
	const struct baton_serve serve = {.queue = w->queue};
	const struct baton_runner_connections asked = {.max = 2,
	                                               .connected = party_connected,
	                                               .leave = party_leave,
	                                               .arg = &party};
	actor_init(w, &a, "a", 4);
	actor_settle(w, &a);
	assert_int_equal(alarm_init(&alarm, baton_clock_boot(), NULL, false), BATON_OK);
	assert_int_equal(inbox_init(&inbox), BATON_OK);
	const struct visits_options options = {.alloc = baton_alloc_libc(),
	                                       .asked = &asked,
	                                       .serves = &serve,
	                                       .serve_count = 1,
	                                       .core = a.core,
	                                       .alarm = &alarm,
	                                       .inbox = &inbox};
	assert_int_equal(visits_init(&visits, &options), BATON_OK);
	for (int i = 0; i < 2; i++) {
		struct guest *guest;
		assert_int_equal(guest_new(baton_alloc_libc(), -1, &guest), BATON_OK);
		guest->connection.queue = w->queue;
		guest->connection.lane = BATON_STR("lane-1");
		visits_take(&visits, &guest->connection, world_now(w));
	}
	assert_int_equal(party.count, 2);
	core_stop(a.core, baton_duration_s(15), world_now(w));
	visits_act(&visits, world_now(w));
	visits_act(&visits, world_now(w));
	assert_int_equal(party.sent_away, 1);
	visits_hear(&visits);
	assert_int_equal(core_counts(a.core).visits, 0);
	visits_done(&visits);
	inbox_done(&inbox);
	alarm_done(&alarm);
	actor_done(&a);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_connection_is_served_under_the_fence_of_its_shard),
		TEST(a_shard_goes_to_another_runner_once_nobody_is_served_under_it),
		TEST(at_the_deadline_nobody_goes_on_and_it_registers_anew_when_they_have_ended),
		TEST(a_runner_that_was_replaced_does_nothing_while_somebody_is_served),
		TEST(while_it_is_suspect_nobody_begins_and_those_who_are_here_go_on),
		TEST(a_stopped_runner_leaves_once_nobody_is_served),
		TEST(detached_by_hand_it_gives_its_shards_once_nobody_is_served),
		TEST(who_has_ended_is_not_sent_away),
	};
#undef TEST
	return cmocka_run_group_tests(tests, NULL, NULL);
}
