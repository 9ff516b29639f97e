/* Many threads on one gate, on the real clock: each keeps a model of what it holds, and whenever
 * all of them stand still the gate must hold exactly the sum of the models. */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "support/rng.h"
#include "support/soak.h"
#include "world.h"

#define THREADS 4u
#define KEYS 5u
#define RUNS 3u /* per thread */

static const uint32_t limits[KEYS] = {1, 1, 2, 3, 1};
static const char *const names[KEYS] = {"a", "b", "c", "d", "e"};

struct arena {
	struct baton_gate *gate;
	baton_gate_class cls[KEYS];
	pthread_barrier_t barrier;
	atomic_uint inside[KEYS];     /* runs that believe that they hold the key */
	_Atomic uint64_t fence[KEYS]; /* the highest that anybody was given       */
	atomic_bool broken;           /* cmocka's asserts are for the main thread */
	unsigned rounds;
	unsigned steps;
};

struct player {
	struct arena *arena;
	pthread_t thread;
	struct rng rng;
	unsigned number;
	unsigned held[RUNS]; /* bits of keys */
	unsigned granted;
	unsigned gave_up;
};

#define EXPECT(player, cond)                                                            \
	do {                                                                            \
		if (!(cond) && !atomic_exchange(&(player)->arena->broken, true))        \
			printf("# thread %u: not true: %s\n", (player)->number, #cond); \
	} while (0)

static struct baton_mono real_now(void)
{
	const struct baton_clock *clock = baton_clock_awake();
	return clock->now(clock);
}

static struct baton_gate_ask *player_ask(struct player *p, struct ask *a, unsigned run,
                                         unsigned keys)
{
	a->ask = (struct baton_gate_ask){a->keys, 0, run_id(p->number * RUNS + run), real_now()};
	for (unsigned key = 0; key < KEYS; key++)
		if (keys & 1u << key)
			ask_more(a, names[key], p->arena->cls[key]);
	return &a->ask;
}

static void player_enter(struct player *p, unsigned run, unsigned keys, const baton_fence *fences)
{
	for (unsigned key = 0; key < KEYS; key++) {
		if (!(keys & 1u << key))
			continue;
		baton_fence fence = *fences++;
		if (p->held[run] & 1u << key)
			continue;
		uint64_t last = atomic_load(&p->arena->fence[key]);
		EXPECT(p, atomic_fetch_add(&p->arena->inside[key], 1) < limits[key]);
		EXPECT(p, limits[key] > 1 || fence.v > last);
		while (fence.v > last &&
		       !atomic_compare_exchange_weak(&p->arena->fence[key], &last, fence.v))
			;
	}
	p->held[run] |= keys;
	p->granted++;
}

static void player_leave(struct player *p, unsigned run, unsigned keys)
{
	struct ask a;
	bool all = (p->held[run] & keys) == keys;
	for (unsigned key = 0; key < KEYS; key++)
		if (p->held[run] & keys & 1u << key)
			atomic_fetch_sub(&p->arena->inside[key], 1);
	p->held[run] &= ~keys;
	EXPECT(p, baton_gate_release(p->arena->gate, player_ask(p, &a, run, keys)) ==
	                  (all ? BATON_OK : BATON_NOT_HELD));
}

static unsigned some_keys(struct player *p)
{
	unsigned keys = 1u << rng_below(&p->rng, KEYS);
	while (rng_below(&p->rng, 3) == 0)
		keys |= 1u << rng_below(&p->rng, KEYS);
	return keys;
}

static void step_acquire(struct player *p, unsigned run, unsigned keys)
{
	struct ask a;
	baton_fence fences[KEYS];
	enum baton_err e =
		baton_gate_acquire(p->arena->gate, player_ask(p, &a, run, keys), fences, NULL);
	EXPECT(p, e == BATON_OK || e == BATON_YIELD);
	if (e == BATON_OK)
		player_enter(p, run, keys, fences);
}

/* Waits briefly, so that two threads which hold what the other wants get out of it. */
static void step_wait(struct player *p, unsigned run, unsigned keys)
{
	struct ask a;
	baton_fence fences[KEYS];
	player_ask(p, &a, run, keys);
	struct baton_mono until = baton_mono_add(a.ask.now, baton_duration_ms(1));
	enum baton_err e = baton_gate_wait(p->arena->gate, &a.ask, until, fences);
	EXPECT(p, e == BATON_OK || e == BATON_TIMEOUT);
	if (e == BATON_OK)
		player_enter(p, run, keys, fences);
	else
		p->gave_up++;
}

static void on_wake(void *arg)
{
	atomic_fetch_add((atomic_uint *)arg, 1);
}

static void step_ticket(struct player *p, unsigned run, unsigned keys)
{
	struct ask a;
	baton_fence fences[KEYS];
	atomic_uint woken = 0;
	struct baton_wake wake = {on_wake, &woken};
	struct baton_gate_ticket *t = NULL;
	EXPECT(p, baton_gate_enter(p->arena->gate, player_ask(p, &a, run, keys), &wake, &t) ==
	                  BATON_OK);
	for (unsigned i = (unsigned)rng_below(&p->rng, 20); i > 0; i--)
		sched_yield();
	if (rng_below(&p->rng, 2) == 0)
		(void)baton_gate_ticket_cancel(t);
	enum baton_err e = baton_gate_ticket_poll(t, real_now(), fences, NULL);
	if (e == BATON_OK) {
		player_enter(p, run, keys, fences);
	} else if (e == BATON_YIELD && !baton_gate_ticket_cancel(t)) {
		EXPECT(p, baton_gate_ticket_poll(t, real_now(), fences, NULL) == BATON_OK);
		player_enter(p, run, keys, fences);
	}
	baton_gate_ticket_free(t);
}

static void step(struct player *p)
{
	unsigned run = (unsigned)rng_below(&p->rng, RUNS);
	unsigned keys = some_keys(p);
	switch (rng_below(&p->rng, 8)) {
	case 0:
	case 1:
		step_acquire(p, run, keys);
		break;
	case 2:
		step_wait(p, run, keys);
		break;
	case 3:
		step_ticket(p, run, keys);
		break;
	default:
		player_leave(p, run, p->held[run] && rng_below(&p->rng, 4) ? p->held[run] : keys);
	}
}

static void *player_main(void *arg)
{
	struct player *p = arg;
	for (unsigned round = 0; round < p->arena->rounds; round++) {
		for (unsigned i = 0; i < p->arena->steps; i++)
			step(p);
		pthread_barrier_wait(&p->arena->barrier);
		/* The main thread compares. */
		pthread_barrier_wait(&p->arena->barrier);
	}
	for (unsigned run = 0; run < RUNS; run++)
		if (p->held[run])
			player_leave(p, run, p->held[run]);
	return NULL;
}

struct census {
	struct player *players;
	unsigned found[THREADS * RUNS];
};

static bool count_hold(const struct baton_gate_hold *hold, void *arg)
{
	struct census *census = arg;
	unsigned run;
	memcpy(&run, hold->holder.run.bytes, sizeof run);
	census->found[run] |= 1u << (hold->key.text.ptr[0] - 'a');
	return true;
}

static void compare(struct arena *arena, struct player *players)
{
	struct census census = {.players = players};
	assert_int_equal(baton_gate_each(arena->gate, real_now(), count_hold, &census), BATON_OK);
	for (unsigned i = 0; i < THREADS * RUNS; i++)
		assert_int_equal(census.found[i], players[i / RUNS].held[i % RUNS]);
}

static void arena_init(struct arena *arena, unsigned rounds, unsigned steps)
{
	memset(arena, 0, sizeof *arena);
	arena->rounds = rounds;
	arena->steps = steps;
	assert_int_equal(baton_gate_new(NULL, &arena->gate), BATON_OK);
	for (unsigned key = 0; key < KEYS; key++) {
		struct baton_key_policy policy = with_limit(limits[key]);
		assert_int_equal(baton_gate_class_add(arena->gate, &policy, &arena->cls[key]),
		                 BATON_OK);
	}
	pthread_barrier_init(&arena->barrier, NULL, THREADS + 1);
}

static void threads_hold_exactly_what_their_models_say(void **state)
{
	struct arena arena;
	struct player players[THREADS];
	struct rng rng = rng_seed_from_env();
	unsigned granted = 0;
	unsigned gave_up = 0;
	(void)state;
	arena_init(&arena, soak_scale(30, 3000), 200);
	for (unsigned i = 0; i < THREADS; i++) {
		players[i] = (struct player){.arena = &arena,
		                             .number = i,
		                             .rng = rng_seed(rng_next(&rng))};
		assert_int_equal(pthread_create(&players[i].thread, NULL, player_main, &players[i]),
		                 0);
	}
	for (unsigned round = 0; round < arena.rounds; round++) {
		pthread_barrier_wait(&arena.barrier);
		compare(&arena, players);
		pthread_barrier_wait(&arena.barrier);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(players[i].thread, NULL);
		granted += players[i].granted;
		gave_up += players[i].gave_up;
	}
	printf("# %u granted, %u timed out\n", granted, gave_up);
	assert_false(atomic_load(&arena.broken));
	assert_true(granted > 0);
	compare(&arena, players);
	pthread_barrier_destroy(&arena.barrier);
	baton_gate_free(arena.gate);
}

/* A relay: every thread wants the same two keys over and over, and nobody may sleep through his
 * turn. */
struct relay {
	struct baton_gate *gate;
	atomic_uint inside;
	atomic_bool broken;
	unsigned laps;
	unsigned total; /* [the keys] */
};

struct runner {
	struct relay *relay;
	pthread_t thread;
	unsigned number;
};

static void *runner_main(void *arg)
{
	struct runner *r = arg;
	for (unsigned lap = 0; lap < r->relay->laps; lap++) {
		struct ask a = {.ask = {a.keys, 0, run_id(r->number), real_now()}};
		/* Odd ones name them the other way round. */
		ask_more(&a, r->number % 2 ? "left" : "right", BATON_GATE_CLASS_DEFAULT);
		if (r->number % 3)
			ask_more(&a, r->number % 2 ? "right" : "left", BATON_GATE_CLASS_DEFAULT);
		else
			a.keys[0].text = BATON_STR("left");
		if (baton_gate_wait(r->relay->gate, &a.ask, BATON_MONO_NEVER, NULL) != BATON_OK ||
		    atomic_fetch_add(&r->relay->inside, 1) != 0)
			atomic_store(&r->relay->broken, true);
		r->relay->total++;
		atomic_fetch_sub(&r->relay->inside, 1);
		if (baton_gate_release(r->relay->gate, &a.ask) != BATON_OK)
			atomic_store(&r->relay->broken, true);
	}
	return NULL;
}

static void nobody_sleeps_through_his_turn(void **state)
{
	struct runner runners[6];
	struct relay relay = {.laps = soak_scale(3000, 300000)};
	(void)state;
	assert_int_equal(baton_gate_new(NULL, &relay.gate), BATON_OK);
	for (unsigned i = 0; i < 6; i++) {
		runners[i] = (struct runner){.relay = &relay, .number = i};
		assert_int_equal(pthread_create(&runners[i].thread, NULL, runner_main, &runners[i]),
		                 0);
	}
	for (unsigned i = 0; i < 6; i++)
		pthread_join(runners[i].thread, NULL);
	assert_false(atomic_load(&relay.broken));
	assert_int_equal(relay.total, 6 * relay.laps);
	baton_gate_free(relay.gate);
}

/* Nobody sleeps here: each looks until he has the key, and frees his ticket at that moment. */
static void *poller_main(void *arg)
{
	struct runner *r = arg;
	for (unsigned lap = 0; lap < r->relay->laps; lap++) {
		struct ask a = {.ask = {a.keys, 0, run_id(r->number), real_now()}};
		struct baton_gate_ticket *t = NULL;
		ask_more(&a, "key", BATON_GATE_CLASS_DEFAULT);
		if (baton_gate_enter(r->relay->gate, &a.ask, NULL, &t) != BATON_OK)
			atomic_store(&r->relay->broken, true);
		while (baton_gate_ticket_poll(t, a.ask.now, NULL, NULL) == BATON_YIELD)
			sched_yield();
		baton_gate_ticket_free(t);
		r->relay->total++;
		if (baton_gate_release(r->relay->gate, &a.ask) != BATON_OK)
			atomic_store(&r->relay->broken, true);
	}
	return NULL;
}

static void who_sees_that_he_has_the_key_may_free_his_ticket_at_once(void **state)
{
	struct runner pollers[3];
	struct relay relay = {.laps = soak_scale(10000, 1000000)};
	(void)state;
	assert_int_equal(baton_gate_new(NULL, &relay.gate), BATON_OK);
	for (unsigned i = 0; i < 3; i++) {
		pollers[i] = (struct runner){.relay = &relay, .number = i};
		assert_int_equal(pthread_create(&pollers[i].thread, NULL, poller_main, &pollers[i]),
		                 0);
	}
	for (unsigned i = 0; i < 3; i++)
		pthread_join(pollers[i].thread, NULL);
	assert_false(atomic_load(&relay.broken));
	assert_int_equal(relay.total, 3 * relay.laps);
	baton_gate_free(relay.gate);
}

/* Each thread cancels the other one's ticket, which its owner frees as soon as he knows. */
struct canceller {
	struct baton_gate *gate;
	sem_t ready;
	sem_t seen;
	struct baton_gate_ticket *ticket;
	unsigned rounds;
	unsigned cancelled;
};

static void *canceller_main(void *arg)
{
	struct canceller *c = arg;
	for (unsigned i = 0; i < c->rounds; i++) {
		sem_wait(&c->ready);
		struct baton_gate_ticket *ticket = c->ticket;
		(void)baton_gate_ticket_cancel(ticket);
		sem_post(&c->seen);
	}
	return NULL;
}

static void a_cancelled_ticket_may_be_freed_while_the_canceller_is_still_busy(void **state)
{
	struct canceller c = {.rounds = soak_scale(3000, 300000)};
	struct ask a = {.ask = {a.keys, 0, run_id(1), real_now()}};
	pthread_t thread;
	(void)state;
	sem_init(&c.ready, 0, 0);
	sem_init(&c.seen, 0, 0);
	assert_int_equal(baton_gate_new(NULL, &c.gate), BATON_OK);
	ask_more(ask_more(&a, "left", BATON_GATE_CLASS_DEFAULT), "right", BATON_GATE_CLASS_DEFAULT);
	assert_int_equal(baton_gate_acquire(c.gate, &a.ask, NULL, NULL), BATON_OK);
	assert_int_equal(pthread_create(&thread, NULL, canceller_main, &c), 0);
	a.ask.run = run_id(2);
	for (unsigned i = 0; i < c.rounds; i++) {
		assert_int_equal(baton_gate_enter(c.gate, &a.ask, NULL, &c.ticket), BATON_OK);
		sem_post(&c.ready);
		c.cancelled +=
			baton_gate_ticket_wait(c.ticket, BATON_MONO_NEVER, NULL) == BATON_CANCELLED;
		baton_gate_ticket_free(c.ticket);
		sem_wait(&c.seen);
	}
	pthread_join(thread, NULL);
	assert_int_equal(c.cancelled, c.rounds);
	baton_gate_free(c.gate);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_hold_exactly_what_their_models_say),
		cmocka_unit_test(nobody_sleeps_through_his_turn),
		cmocka_unit_test(who_sees_that_he_has_the_key_may_free_his_ticket_at_once),
		cmocka_unit_test(a_cancelled_ticket_may_be_freed_while_the_canceller_is_still_busy),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
