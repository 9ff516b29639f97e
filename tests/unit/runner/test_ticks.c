/* Schedules over a thousand failovers, on a clock that is not real: the seats and the ticking of
 * the product, a store in memory, and processes that crash, freeze and lose answers at the worst
 * moments. No tick is lost or put twice. */
#include <baton/lease.h>
#include <baton/queue.h>
#include <baton/schedule.h>

#include <stdlib.h>
#include <string.h>

#include "runner/seat.h"
#include "store/store.h"
#include "store/ticking.h"
#include "support/fake_clock.h"
#include "support/harness.h"
#include "support/rng.h"

#define FAILOVERS 1000
#define PROCESSES 3
#define TICKS_MAX 100000
#define START_MS INT64_C(1772323200000) /* 2026-03-01, before clocks change in both hemispheres */
#define MINUTE 60000

/* What comes next between the look at the clock and the transaction, and after it. */
enum fault {
	NO_FAULT = 1,
	CRASH_BEFORE, /* it is dead before the transaction                       */
	CRASH_AFTER,  /* and after it                                            */
	FREEZE,       /* it stops in between until others have taken its place   */
	LOSE_ANSWER,  /* the transaction is done, and nobody knows               */
	REFUSE,       /* it is not done, and nobody knows                        */
	FAULTS
};

struct process {
	struct seat seat;
	struct baton_owner owner;
	bool dead, nested;
};

static struct world {
	struct fake_clock clock;
	struct baton_store *store;
	struct store_ops ops;
	const struct store_ops *real;
	struct rng rng;
	struct process processes[PROCESSES];
	struct process *acts; /* who is at it */
	enum fault fault;
	unsigned failovers, late, seen[FAULTS];
	uint64_t fence;
	int64_t wall_max;
	char (*put)[BATON_NAME_MAX + 1];
	size_t put_count;
} w;

static const struct {
	const char *name, *cron, *zone;
} schedules[] = {
	{"hourly", "7 * * * *", "Europe/Berlin"},
	{"night", "30 2 * * *", "Europe/Berlin"},
	{"york", "30 1,2 * * *", "America/New_York"},
	{"sydney", "*/20 2 * * SUN", "Australia/Sydney"},
	{"utc", "0 */5 * * *", ""},
};
#define SCHEDULES (sizeof schedules / sizeof schedules[0])

static uint64_t below(uint64_t limit)
{
	return rng_below(&w.rng, limit);
}

static struct baton_mono now(void)
{
	return w.clock.clock.now(&w.clock.clock);
}

static void note_wall(void)
{
	int64_t wall = baton_store_now(w.store).ms;
	w.wall_max = wall > w.wall_max ? wall : w.wall_max;
}

static void advance(int64_t ms)
{
	fake_clock_advance(&w.clock, baton_duration_ms(ms));
	note_wall();
}

static void born(struct process *p)
{
	bool nested = p->nested;
	*p = (struct process){.nested = nested};
	assert_int_equal(baton_owner_opaque(BATON_STR("process"), &p->owner), BATON_OK);
	seat_init(&p->seat, baton_duration_s(30), baton_duration_s(5), baton_duration_s(1));
	seat_set(&p->seat, SEAT_LEAD);
}

/* What the usher does, at once. */
static void ask(struct process *p, enum seat_kind kind)
{
	static const struct baton_str subject = BATON_STR("singleton/schedule");
	struct baton_lease lease = p->seat.lease;
	const struct baton_lease_proof proof = {subject, &lease};
	const struct baton_lease_ask claim = {
		.subject = subject,
		.owner = &p->owner,
		.ttl = p->seat.ttl,
		.reentrant = true,
	};
	struct baton_lease_answer answer = {.err = BATON_OK};
	struct baton_mono sent = now();
	if (kind == SEAT_CLAIM) {
		assert_int_equal(baton_lease_claim(w.store, &claim, 1, &answer), BATON_OK);
		lease = answer.lease;
	} else if (kind == SEAT_RENEW) {
		baton_lease_renew(w.store, &proof, 1, p->seat.ttl, false, &answer.err);
	} else {
		baton_lease_release(w.store, &proof, 1, &answer.err);
	}
	if (kind == SEAT_CLAIM && answer.err == BATON_OK && lease.fence.v > w.fence) {
		w.fence = lease.fence.v;
		w.failovers++;
	}
	seat_answered(&p->seat, answer.err, &lease, sent, now());
}

static void act(struct process *p);

/* Others act until one of them is in its place, or they see that the clock was set back, and it is
 * not theirs for a long time. */
static void others_take_over(struct process *frozen)
{
	unsigned before = w.failovers;
	frozen->nested = true;
	for (int i = 0; i < 10 && w.failovers == before; i++) {
		advance(30000);
		for (size_t k = 0; k < PROCESSES; k++) {
			if (!w.processes[k].nested)
				act(&w.processes[k]);
		}
	}
	frozen->nested = false;
	w.acts = frozen;
}

static bool gate(void *arg)
{
	struct process *p = arg;
	if (p->dead || !p->seat.works || !baton_mono_live(seat_deadline(&p->seat), now()))
		return false;
	if (w.fault == CRASH_BEFORE) {
		w.seen[CRASH_BEFORE]++;
		p->dead = true;
		return false;
	}
	return true;
}

static enum baton_err step(struct baton_store *store, const struct schedule_step *s)
{
	struct process *p = w.acts;
	enum fault fault = w.fault;
	w.fault = NO_FAULT;
	w.seen[fault]++;
	if (fault == FREEZE)
		others_take_over(p);
	if (fault == REFUSE)
		return BATON_STORAGE;
	enum baton_err e = w.real->schedule_step(store, s);
	w.late += fault == FREEZE && e == BATON_NOT_HELD;
	for (size_t i = 0; i < s->count && e == BATON_OK; i++) {
		assert_true(w.put_count < TICKS_MAX);
		snprintf(w.put[w.put_count++], BATON_NAME_MAX + 1, "%.*s",
		         (int)s->batches[i].source.len, s->batches[i].source.ptr);
	}
	p->dead = p->dead || fault == CRASH_AFTER;
	return fault == LOSE_ANSWER ? BATON_STORAGE : e;
}

/* What the loop of a runner does, with what its ticker does in between. */
static void act(struct process *p)
{
	const struct schedule_gate ticking = {gate, p};
	enum seat_kind kind;
	if (seat_ask(&p->seat, now(), &kind))
		ask(p, kind);
	enum seat_order order = seat_order(&p->seat, now());
	if (order == SEAT_START)
		seat_began(&p->seat, now());
	else if (order == SEAT_STOP)
		seat_ended(&p->seat, now());
	w.acts = p;
	if (p->seat.works)
		schedule_tick_while(w.store, &ticking, NULL, NULL);
	if (p->dead)
		born(p);
}

static void set_clock(void)
{
	int64_t by = (int64_t)below(120 * MINUTE) - 60 * MINUTE;
	struct baton_store_time wall = {baton_store_now(w.store).ms + by};
	fake_clock_set_wall(&w.clock, wall);
	note_wall();
}

/* A while without faults, and then something goes wrong. */
static void episode(void)
{
	w.fault = NO_FAULT;
	if (below(10) == 0)
		set_clock();
	uint64_t rounds = 1 + below(6);
	for (uint64_t i = 0; i < rounds; i++) {
		/* Longer than a ttl, now and then. */
		advance((int64_t)below(i % 2 ? 9000 : 300 * MINUTE));
		if (i + 1 == rounds)
			w.fault = (enum fault)(NO_FAULT + below(FAULTS - NO_FAULT));
		for (size_t k = 0; k < PROCESSES; k++)
			act(&w.processes[k]);
	}
}

static void set_all(void)
{
	for (size_t i = 0; i < SCHEDULES; i++) {
		const struct baton_schedule s = {
			.name = baton_str_z(schedules[i].name),
			.cron = baton_str_z(schedules[i].cron),
			.zone = baton_str_z(schedules[i].zone),
			.missed = BATON_MISSED_ALL,
			.queue = BATON_STR("q"),
			.payload = BATON_STR("x"),
		};
		assert_int_equal(baton_schedule_set(w.store, &s), BATON_OK);
	}
}

static int setup(void **state)
{
	const struct baton_store_options options = {
		.where = BATON_STR("memory:"),
		.clock = &w.clock.clock,
	};
	(void)state;
	w.put = calloc(TICKS_MAX, sizeof *w.put);
	assert_non_null(w.put);
	fake_clock_init(&w.clock, (struct baton_mono){1000000000});
	fake_clock_set_wall(&w.clock, (struct baton_store_time){START_MS});
	assert_int_equal(baton_store_open(&options, &w.store), BATON_OK);
	w.real = w.store->ops;
	w.ops = *w.real;
	w.ops.schedule_step = step;
	w.store->ops = &w.ops;
	w.fault = NO_FAULT;
	for (size_t i = 0; i < PROCESSES; i++)
		born(&w.processes[i]);
	w.rng = rng_seed_from_env();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	w.store->ops = w.real;
	baton_store_close(w.store);
	fake_clock_done(&w.clock);
	free(w.put);
	return 0;
}

static int compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* The moments of one, each of which is there once. */
static size_t check(size_t schedule, struct baton_store_time until)
{
	char key[BATON_NAME_MAX + 1];
	struct baton_store_time at = {START_MS};
	size_t count, found = 0;
	for (;;) {
		assert_int_equal(baton_schedule_ticks(baton_str_z(schedules[schedule].cron),
		                                      baton_str_z(schedules[schedule].zone), at,
		                                      &at, 1, &count),
		                 BATON_OK);
		if (at.ms > until.ms)
			return found;
		snprintf(key, sizeof key, "schedule %s %lld", schedules[schedule].name,
		         (long long)at.ms);
		assert_non_null(bsearch(key, w.put, w.put_count, sizeof *w.put, compare));
		found++;
	}
}

static void no_tick_is_lost_or_put_twice_over_a_thousand_failovers(void **state)
{
	struct baton_store_time next = {0};
	struct baton_queue_info info;
	size_t expected = 0;
	(void)state;
	set_all();
	while (w.failovers < FAILOVERS)
		episode();
	/* What is still to come by then. */
	struct baton_store_time end = {w.wall_max + MINUTE};
	fake_clock_set_wall(&w.clock, end);
	w.acts = &w.processes[0];
	w.fault = NO_FAULT;
	while (next.ms <= end.ms)
		assert_int_equal(baton_schedule_tick(w.store, NULL, &next), BATON_OK);
	qsort(w.put, w.put_count, sizeof *w.put, compare);
	for (size_t i = 0; i < SCHEDULES; i++)
		expected += check(i, end);
	assert_int_equal(w.put_count, expected);
	assert_int_equal(baton_queue_get(w.store, BATON_STR("q"), &info), BATON_OK);
	assert_int_equal(info.counts.ready, expected);
	/* Everything that may go wrong did. */
	for (enum fault fault = NO_FAULT; fault < FAULTS; fault++)
		assert_true(w.seen[fault] > 10);
	assert_true(w.late > 10);
	/* Clocks were changed in all zones. */
	assert_true(end.ms > START_MS + INT64_C(40) * 24 * 60 * MINUTE);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			no_tick_is_lost_or_put_twice_over_a_thousand_failovers, setup, teardown),
	};
	return cmocka_run_group_tests_name("ticks", tests, NULL, NULL);
}
