/* What the gate allocates, gives back, and survives not getting. */
#include <stdio.h>
#include <string.h>

#include "world.h"

static void an_uncontended_key_of_55_bytes_costs_no_allocation(void **state)
{
	struct world *w = *state;
	char key[56];
	memset(key, 'x', 55);
	key[55] = '\0';
	assert_int_equal(try_key(w, 1, key), BATON_OK);
	assert_int_equal(drop_key(w, 1, key), BATON_OK);
	size_t count = fault_count(&w->fault);
	for (unsigned i = 0; i < 10000; i++) {
		assert_int_equal(try_key(w, i, key), BATON_OK);
		assert_int_equal(drop_key(w, i, key), BATON_OK);
	}
	assert_int_equal(fault_count(&w->fault), count);
}

/* What stays is one chunk of entries for each of the 64 shards, however many keys there were. */
static void keys_without_holder_or_waiter_take_no_memory(void **state)
{
	struct world *w = *state;
	char key[80];
	size_t empty = fault_live_bytes(&w->fault);
	for (unsigned i = 0; i < 200000; i++) {
		snprintf(key, sizeof key, "%0*u", 10 + (int)(i % 60), i);
		assert_int_equal(try_key(w, 1, key), BATON_OK);
	}
	assert_true(fault_live_bytes(&w->fault) > 200000 * 128);
	for (unsigned i = 0; i < 200000; i++) {
		snprintf(key, sizeof key, "%0*u", 10 + (int)(i % 60), i);
		assert_int_equal(drop_key(w, 1, key), BATON_OK);
	}
	assert_true(fault_live_bytes(&w->fault) < empty + 64 * 5000);
}

static void contended_keys_give_back_their_lines_and_holders(void **state)
{
	struct world *w = *state;
	baton_gate_class cls = world_class(w, with_limit(100));
	assert_int_equal(try_in(w, cls, 1, "k"), BATON_OK);
	assert_int_equal(drop_in(w, cls, 1, "k"), BATON_OK);
	size_t blocks = fault_live_blocks(&w->fault);
	struct baton_gate_ticket *line[50];
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(try_in(w, cls, i, "k"), BATON_OK);
	for (unsigned i = 0; i < 50; i++)
		line[i] = enter_in(w, cls, 100 + i, "k");
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(drop_in(w, cls, i, "k"), BATON_OK);
	for (unsigned i = 0; i < 50; i++) {
		assert_int_equal(poll_ticket(w, line[i]), BATON_OK);
		baton_gate_ticket_free(line[i]);
		assert_int_equal(drop_in(w, cls, 100 + i, "k"), BATON_OK);
	}
	assert_int_equal(fault_live_blocks(&w->fault), blocks);
}

static void waiters_that_left_give_back_their_room(void **state)
{
	struct world *w = *state;
	static struct baton_gate_ticket *line[5000];
	assert_int_equal(try_key(w, 1, "k"), BATON_OK);
	struct baton_gate_ticket *stays = enter_key(w, 2, "k");
	size_t before = fault_live_bytes(&w->fault);
	for (unsigned i = 0; i < 5000; i++)
		line[i] = enter_key(w, 10 + i, "k");
	for (unsigned i = 0; i < 5000; i++)
		baton_gate_ticket_free(line[i]);
	assert_true(fault_live_bytes(&w->fault) < before + 10000);
	assert_int_equal(drop_key(w, 1, "k"), BATON_OK);
	assert_int_equal(poll_ticket(w, stays), BATON_OK);
	baton_gate_ticket_free(stays);
}

static bool count_hold(const struct baton_gate_hold *hold, void *arg)
{
	(void)hold;
	++*(unsigned *)arg;
	return true;
}

static unsigned holds(struct world *w)
{
	unsigned count = 0;
	assert_int_equal(baton_gate_each(w->gate, at_ms(1000), count_hold, &count), BATON_OK);
	return count;
}

/* Each scenario is run with its first, second, … allocation failing: every call either does all or
 * says that there is no memory and has done nothing. */
struct scenario {
	struct world *w;
	baton_gate_class crowded;
	baton_gate_class rated;
	struct baton_gate_ticket *tickets[4];
	bool fired;
};

static void scenario_arm(struct scenario *s, unsigned n)
{
	fault_arm(&s->w->fault, n);
}

/* From here on everything works again. */
static void scenario_disarm(struct scenario *s)
{
	s->fired = fault_fired(&s->w->fault);
	fault_arm(&s->w->fault, 0);
}

/* Runs the scenario on a new gate with each of its allocations failing, until there is none left to
 * fail. */
static void sweep(struct world *w, enum baton_err (*run)(struct scenario *, unsigned n))
{
	struct baton_gate_options options = {&w->fault.alloc, &w->clock.clock};
	struct scenario s = {.w = w};
	struct baton_key_policy rated = with_limit(5);
	rated.rate = 100;
	rated.window = baton_duration_ms(1);
	for (unsigned n = 1; n == 1 || s.fired; n++) {
		baton_gate_free(w->gate);
		assert_int_equal(baton_gate_new(&options, &w->gate), BATON_OK);
		s.crowded = world_class(w, with_limit(1000));
		s.rated = world_class(w, rated);
		enum baton_err e = run(&s, n);
		assert_true(s.fired || n > 1);
		assert_int_equal(e, s.fired ? BATON_NO_MEMORY : BATON_OK);
		if (s.fired)
			assert_non_null(strstr(baton_err_detail(), "memory"));
	}
}

static enum baton_err acquire_three(struct scenario *s)
{
	struct ask a;
	char far[200];
	memset(far, 'f', sizeof far - 1);
	far[sizeof far - 1] = '\0';
	ask_more(ask_more(ask_key(&a, s->w, 1, "near"), far, s->crowded), "rated", s->rated);
	return baton_gate_acquire(s->w->gate, &a.ask, NULL, NULL);
}

static enum baton_err sweep_acquire(struct scenario *s, unsigned n)
{
	scenario_arm(s, n);
	enum baton_err e = acquire_three(s);
	scenario_disarm(s);
	assert_int_equal(holds(s->w), e == BATON_OK ? 3 : 0);
	assert_int_equal(acquire_three(s), BATON_OK);
	assert_int_equal(holds(s->w), 3);
	return e;
}

static enum baton_err crowd(struct scenario *s, unsigned runs)
{
	enum baton_err e = BATON_OK;
	for (unsigned run = 10; e == BATON_OK && run < 10 + runs; run++)
		e = try_in(s->w, s->crowded, run, "crowd");
	return e;
}

static enum baton_err sweep_crowd(struct scenario *s, unsigned n)
{
	scenario_arm(s, n);
	enum baton_err e = crowd(s, 50);
	scenario_disarm(s);
	assert_int_equal(crowd(s, 50), BATON_OK);
	assert_int_equal(holds(s->w), 50);
	for (unsigned run = 10; run < 60; run++)
		assert_int_equal(drop_in(s->w, s->crowded, run, "crowd"), BATON_OK);
	return e;
}

/* Run 60 + i asks for a key that is busy, one that is new and one with a rate. */
static struct baton_gate_ask *ask_in_line(struct ask *a, struct scenario *s, unsigned i)
{
	ask_more(ask_key(a, s->w, 60 + i, "new"), "busy", BATON_GATE_CLASS_DEFAULT);
	return &ask_more(a, "rated", s->rated)->ask;
}

/* Those who got into line go on one after the other, whatever became of the others. */
static enum baton_err sweep_line(struct scenario *s, unsigned n)
{
	struct ask a;
	enum baton_err e = BATON_OK;
	assert_int_equal(try_key(s->w, 1, "busy"), BATON_OK);
	scenario_arm(s, n);
	for (unsigned i = 0; e == BATON_OK && i < 4; i++)
		e = baton_gate_enter(s->w->gate, ask_in_line(&a, s, i), NULL, &s->tickets[i]);
	scenario_disarm(s);
	assert_int_equal(holds(s->w), 1);
	assert_int_equal(drop_key(s->w, 1, "busy"), BATON_OK);
	for (unsigned i = 0; i < 4 && s->tickets[i]; i++) {
		assert_int_equal(poll_ticket(s->w, s->tickets[i]), BATON_OK);
		assert_int_equal(baton_gate_release(s->w->gate, ask_in_line(&a, s, i)), BATON_OK);
		baton_gate_ticket_free(s->tickets[i]);
		s->tickets[i] = NULL;
	}
	assert_int_equal(holds(s->w), 0);
	return e;
}

static enum baton_err sweep_wait(struct scenario *s, unsigned n)
{
	struct ask a;
	scenario_arm(s, n);
	enum baton_err e = baton_gate_wait(s->w->gate, ask_in_line(&a, s, 0), at_ms(1000), NULL);
	scenario_disarm(s);
	assert_int_equal(holds(s->w), e == BATON_OK ? 3 : 0);
	return e;
}

static enum baton_err sweep_each(struct scenario *s, unsigned n)
{
	unsigned count = 0;
	assert_int_equal(acquire_three(s), BATON_OK);
	scenario_arm(s, n);
	enum baton_err e = baton_gate_each(s->w->gate, at_ms(1000), count_hold, &count);
	scenario_disarm(s);
	return e;
}

static void waiting_survives_every_failing_allocation(void **state)
{
	sweep(*state, sweep_wait);
}

static void acquire_survives_every_failing_allocation(void **state)
{
	sweep(*state, sweep_acquire);
}

static void a_growing_crowd_survives_every_failing_allocation(void **state)
{
	sweep(*state, sweep_crowd);
}

static void a_growing_line_survives_every_failing_allocation(void **state)
{
	sweep(*state, sweep_line);
}

static void a_walk_survives_every_failing_allocation(void **state)
{
	sweep(*state, sweep_each);
}

static void a_new_gate_survives_every_failing_allocation(void **state)
{
	struct world *w = *state;
	struct baton_gate_options options = {&w->fault.alloc, NULL};
	struct baton_gate *gate = NULL;
	size_t blocks = fault_live_blocks(&w->fault);
	fault_arm(&w->fault, 1);
	assert_int_equal(baton_gate_new(&options, &gate), BATON_NO_MEMORY);
	assert_null(gate);
	assert_int_equal(fault_live_blocks(&w->fault), blocks);
	assert_int_equal(baton_gate_new(&options, &gate), BATON_OK);
	baton_gate_free(gate);
}

/* Giving back never needs memory, not even to shrink. */
static void releasing_survives_every_failing_allocation(void **state)
{
	struct world *w = *state;
	char key[32];
	for (unsigned i = 0; i < 5000; i++) {
		snprintf(key, sizeof key, "key-%u", i);
		assert_int_equal(try_key(w, 1, key), BATON_OK);
	}
	for (unsigned i = 0; i < 5000; i++) {
		snprintf(key, sizeof key, "key-%u", i);
		fault_arm(&w->fault, 1);
		assert_int_equal(drop_key(w, 1, key), BATON_OK);
	}
	fault_arm(&w->fault, 0);
	assert_int_equal(holds(w), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(an_uncontended_key_of_55_bytes_costs_no_allocation),
		WORLD_TEST(keys_without_holder_or_waiter_take_no_memory),
		WORLD_TEST(contended_keys_give_back_their_lines_and_holders),
		WORLD_TEST(waiters_that_left_give_back_their_room),
		WORLD_TEST(acquire_survives_every_failing_allocation),
		WORLD_TEST(a_growing_crowd_survives_every_failing_allocation),
		WORLD_TEST(a_growing_line_survives_every_failing_allocation),
		WORLD_TEST(waiting_survives_every_failing_allocation),
		WORLD_TEST(a_walk_survives_every_failing_allocation),
		WORLD_TEST(a_new_gate_survives_every_failing_allocation),
		WORLD_TEST(releasing_survives_every_failing_allocation),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
