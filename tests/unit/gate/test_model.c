/* The gate against a model that is too simple to be wrong: long random sequences, every answer
 * compared. */
#include <stdio.h>
#include <string.h>

#include "support/rng.h"
#include "support/soak.h"
#include "world.h"

#define KEYS 6u
#define RUNS 8u
#define TICKETS 8u
#define STARTS 64u
#define CLASSES 4u

struct model_hold {
	unsigned run;
	uint64_t fence; /* 0: not known yet         */
	uint64_t above; /* it must be above this one */
	int64_t expires;
};

struct model_key {
	unsigned cls;
	struct model_hold holds[RUNS];
	unsigned count;
	int64_t starts[STARTS];
	unsigned start_count;
	uint64_t last_fence;
};

/* Tickets stand in `line` in the order in which they came. */
struct model_ticket {
	struct baton_gate_ticket *real; /* NULL: unused */
	unsigned run;
	unsigned keys; /* bits */
	unsigned arrival;
	bool held;
	unsigned woken;
};

struct model {
	struct world *w;
	struct rng rng;
	int64_t now;
	struct baton_key_policy policy[CLASSES];
	baton_gate_class cls[CLASSES];
	struct model_key keys[KEYS];
	struct model_ticket tickets[TICKETS];
	unsigned arrivals;
	unsigned visited; /* by check_hold() */
};

static const char *const names[KEYS] = {"a", "b", "c", "d", "e", "f"};

static struct model_hold *hold_of(struct model_key *k, unsigned run)
{
	for (unsigned i = 0; i < k->count; i++)
		if (k->holds[i].run == run)
			return &k->holds[i];
	return NULL;
}

static void pass_time(struct model *m)
{
	for (struct model_key *k = m->keys; k < m->keys + KEYS; k++) {
		int64_t window = m->policy[k->cls].window.ns;
		for (unsigned i = k->count; i-- > 0;)
			if (k->holds[i].expires <= m->now)
				k->holds[i] = k->holds[--k->count];
		while (k->start_count > 0 && k->starts[0] + window <= m->now) {
			k->start_count--;
			memmove(k->starts, k->starts + 1, k->start_count * sizeof *k->starts);
		}
	}
}

/* Whether somebody who came before `arrival` waits for the key. */
static bool line_before(const struct model *m, unsigned key, unsigned arrival)
{
	for (const struct model_ticket *t = m->tickets; t < m->tickets + TICKETS; t++)
		if (t->real && !t->held && t->keys & 1u << key && t->arrival < arrival)
			return true;
	return false;
}

static enum baton_gate_why refusal(struct model *m, unsigned key, unsigned run, unsigned arrival)
{
	struct model_key *k = &m->keys[key];
	const struct baton_key_policy *p = &m->policy[k->cls];
	if (hold_of(k, run))
		return 0;
	if (line_before(m, key, arrival))
		return BATON_GATE_IN_LINE;
	if (k->count >= p->limit)
		return BATON_GATE_HELD;
	if (p->rate > 0 && k->start_count >= p->rate)
		return BATON_GATE_RATE;
	return 0;
}

/* The first key that refuses, or KEYS. */
static unsigned first_refusal(struct model *m, unsigned keys, unsigned run, unsigned arrival)
{
	unsigned key = 0;
	while (key < KEYS && (!(keys & 1u << key) || !refusal(m, key, run, arrival)))
		key++;
	return key;
}

static void learn_fence(struct model_key *k, struct model_hold *hold, uint64_t fence)
{
	assert_true(fence > hold->above);
	hold->fence = fence;
	if (fence > k->last_fence)
		k->last_fence = fence;
}

/* `fences` is NULL for those who were let in by somebody else's call: check_hold() finds theirs. */
static void take(struct model *m, unsigned keys, unsigned run, const baton_fence *fences)
{
	for (unsigned key = 0; key < KEYS; key++) {
		struct model_key *k = &m->keys[key];
		const struct baton_key_policy *p = &m->policy[k->cls];
		int64_t expires = p->ttl.ns ? m->now + p->ttl.ns : INT64_MAX;
		if (!(keys & 1u << key))
			continue;
		struct model_hold *hold = hold_of(k, run);
		if (!hold) {
			hold = &k->holds[k->count++];
			*hold = (struct model_hold){run, 0, k->last_fence, expires};
			if (p->rate)
				k->starts[k->start_count++] = m->now;
			assert_true(k->start_count < STARTS);
		} else if (expires > hold->expires) {
			hold->expires = expires;
		}
		if (fences && hold->fence)
			assert_int_equal(hold->fence, fences->v);
		if (fences)
			learn_fence(k, hold, fences++->v);
	}
}

/* Lets everybody go on who may, in order of arrival, until nobody may. */
static void settle(struct model *m)
{
	struct model_ticket *next;
	do {
		next = NULL;
		for (struct model_ticket *t = m->tickets; t < m->tickets + TICKETS; t++)
			if (t->real && !t->held &&
			    first_refusal(m, t->keys, t->run, t->arrival) == KEYS &&
			    (!next || t->arrival < next->arrival))
				next = t;
		if (next) {
			take(m, next->keys, next->run, NULL);
			next->held = true;
		}
	} while (next);
}

static struct baton_gate_ask *model_ask(struct model *m, struct ask *a, unsigned run, unsigned keys)
{
	a->ask = (struct baton_gate_ask){a->keys, 0, run_id(run), {m->now}};
	for (unsigned key = 0; key < KEYS; key++)
		if (keys & 1u << key)
			ask_more(a, names[key], m->cls[m->keys[key].cls]);
	return &a->ask;
}

/* One key, mostly; sometimes several. */
static unsigned some_keys(struct model *m)
{
	unsigned keys = 1u << rng_below(&m->rng, KEYS);
	while (rng_below(&m->rng, 3) == 0)
		keys |= 1u << rng_below(&m->rng, KEYS);
	return keys;
}

static unsigned index_of(unsigned keys, unsigned key)
{
	return (unsigned)__builtin_popcount(keys & ((1u << key) - 1));
}

static void check_yield(struct model *m, unsigned keys, unsigned key, unsigned run,
                        unsigned arrival, const struct baton_gate_yield *yield)
{
	assert_int_equal(yield->key, index_of(keys, key));
	assert_int_equal(yield->why, refusal(m, key, run, arrival));
	assert_int_equal(yield->holders, m->keys[key].count);
	assert_int_equal(yield->limit, m->policy[m->keys[key].cls].limit);
}

static void do_acquire(struct model *m)
{
	struct ask a;
	baton_fence fences[KEYS];
	struct baton_gate_yield yield;
	unsigned run = (unsigned)rng_below(&m->rng, RUNS);
	unsigned keys = some_keys(m);
	unsigned key = first_refusal(m, keys, run, UINT32_MAX);
	enum baton_err e =
		baton_gate_acquire(m->w->gate, model_ask(m, &a, run, keys), fences, &yield);
	assert_int_equal(e, key == KEYS ? BATON_OK : BATON_YIELD);
	if (e == BATON_OK)
		take(m, keys, run, fences);
	else
		check_yield(m, keys, key, run, UINT32_MAX, &yield);
}

static void do_release(struct model *m)
{
	struct ask a;
	unsigned run = (unsigned)rng_below(&m->rng, RUNS);
	unsigned keys = some_keys(m);
	bool all = true;
	for (unsigned key = 0; key < KEYS; key++) {
		struct model_key *k = &m->keys[key];
		struct model_hold *hold = hold_of(k, run);
		if (!(keys & 1u << key))
			continue;
		if (hold)
			*hold = k->holds[--k->count];
		else
			all = false;
	}
	assert_int_equal(baton_gate_release(m->w->gate, model_ask(m, &a, run, keys)),
	                 all ? BATON_OK : BATON_NOT_HELD);
}

static void do_renew(struct model *m)
{
	struct ask a;
	unsigned run = (unsigned)rng_below(&m->rng, RUNS);
	unsigned key = (unsigned)rng_below(&m->rng, KEYS);
	const struct baton_key_policy *p = &m->policy[m->keys[key].cls];
	struct model_hold *hold = hold_of(&m->keys[key], run);
	int64_t expires = p->ttl.ns ? m->now + p->ttl.ns : INT64_MAX;
	if (hold && expires > hold->expires)
		hold->expires = expires;
	assert_int_equal(baton_gate_renew(m->w->gate, model_ask(m, &a, run, 1u << key)),
	                 hold ? BATON_OK : BATON_NOT_HELD);
}

static void on_wake(void *arg)
{
	((struct model_ticket *)arg)->woken++;
}

static bool run_waits(const struct model *m, unsigned run)
{
	for (const struct model_ticket *t = m->tickets; t < m->tickets + TICKETS; t++)
		if (t->real && !t->held && t->run == run)
			return true;
	return false;
}

/* A run waits with one ticket at a time: a second one may go on later than it could. */
static void do_enter(struct model *m)
{
	struct ask a;
	struct model_ticket *t = &m->tickets[rng_below(&m->rng, TICKETS)];
	unsigned run = (unsigned)rng_below(&m->rng, RUNS);
	if (t->real || run_waits(m, run))
		return;
	struct baton_wake wake = {on_wake, t};
	*t = (struct model_ticket){.run = run, .keys = some_keys(m), .arrival = m->arrivals++};
	bool admitted = first_refusal(m, t->keys, t->run, UINT32_MAX) == KEYS;
	assert_int_equal(baton_gate_enter(m->w->gate, model_ask(m, &a, t->run, t->keys), &wake,
	                                  &t->real),
	                 BATON_OK);
	baton_fence fences[KEYS];
	if (admitted) {
		assert_int_equal(baton_gate_ticket_poll(t->real, (struct baton_mono){m->now},
		                                        fences, NULL),
		                 BATON_OK);
		take(m, t->keys, t->run, fences);
		t->held = true;
	}
}

static void do_leave(struct model *m)
{
	struct model_ticket *t = &m->tickets[rng_below(&m->rng, TICKETS)];
	if (t->real && rng_below(&m->rng, 2) == 0)
		assert_int_equal(baton_gate_ticket_cancel(t->real), !t->held);
	baton_gate_ticket_free(t->real);
	t->real = NULL;
}

static void do_class(struct model *m)
{
	unsigned c = (unsigned)rng_below(&m->rng, CLASSES);
	m->policy[c].limit = 1 + (uint32_t)rng_below(&m->rng, RUNS);
	if (c == 2)
		m->policy[c].ttl = baton_duration_ms((int64_t)rng_below(&m->rng, 4) * 20);
	assert_int_equal(baton_gate_class_set(m->w->gate, m->cls[c], &m->policy[c],
	                                      (struct baton_mono){m->now}),
	                 BATON_OK);
}

static void do_time(struct model *m)
{
	struct baton_duration d = baton_duration_ms((int64_t)rng_below(&m->rng, 30));
	fake_clock_advance(&m->w->clock, d);
	m->now += d.ns;
}

/* After time has passed the holders of tickets ask again, as they must. */
static void poll_all(struct model *m)
{
	for (unsigned arrival = 0; arrival < m->arrivals; arrival++)
		for (struct model_ticket *t = m->tickets; t < m->tickets + TICKETS; t++)
			if (t->real && !t->held && t->arrival == arrival)
				(void)baton_gate_ticket_poll(t->real, (struct baton_mono){m->now},
				                             NULL, NULL);
}

/* After check_holds(): asking must not be what lets somebody in. */
static void check_tickets(struct model *m)
{
	for (struct model_ticket *t = m->tickets; t < m->tickets + TICKETS; t++) {
		struct baton_gate_yield yield;
		if (!t->real)
			continue;
		unsigned key = first_refusal(m, t->keys, t->run, t->arrival);
		assert_int_equal(baton_gate_ticket_poll(t->real, (struct baton_mono){m->now}, NULL,
		                                        &yield),
		                 t->held ? BATON_OK : BATON_YIELD);
		if (!t->held)
			check_yield(m, t->keys, key, t->run, t->arrival, &yield);
	}
}

static bool check_hold(const struct baton_gate_hold *hold, void *arg)
{
	struct model *m = arg;
	unsigned run;
	memcpy(&run, hold->holder.run.bytes, sizeof run);
	struct model_key *k = &m->keys[hold->key.text.ptr[0] - 'a'];
	struct model_hold *expected = hold_of(k, run);
	assert_non_null(expected);
	assert_int_equal(m->cls[k->cls].v, hold->key.cls.v);
	if (expected->fence == 0)
		learn_fence(k, expected, hold->holder.fence.v);
	assert_int_equal(expected->fence, hold->holder.fence.v);
	assert_int_equal(expected->expires, hold->holder.expires.ns);
	m->visited++;
	return true;
}

static void check_holds(struct model *m)
{
	unsigned expected = 0;
	m->visited = 0;
	for (unsigned key = 0; key < KEYS; key++)
		expected += m->keys[key].count;
	assert_int_equal(baton_gate_each(m->w->gate, (struct baton_mono){m->now}, check_hold, m),
	                 BATON_OK);
	assert_int_equal(m->visited, expected);
}

static void (*const steps[])(struct model *) = {
	do_acquire, do_acquire, do_acquire, do_release, do_release, do_release, do_renew,
	do_enter,   do_enter,   do_enter,   do_leave,   do_time,    do_class,
};

static void step(struct model *m)
{
	void (*what)(struct model *) = steps[rng_below(&m->rng, sizeof steps / sizeof *steps)];
	what(m);
	if (what == do_time) {
		pass_time(m);
		poll_all(m);
	}
	settle(m);
	check_holds(m);
	check_tickets(m);
}

static void model_init(struct model *m, struct world *w, struct rng rng)
{
	*m = (struct model){.w = w, .rng = rng, .now = at_ms(1000).ns};
	m->policy[0] = with_limit(1);
	m->policy[1] = with_limit(2);
	m->policy[2] = with_limit(2);
	m->policy[2].ttl = baton_duration_ms(40);
	m->policy[3] = with_limit(3);
	m->policy[3].rate = 2;
	m->policy[3].window = baton_duration_ms(50);
	for (unsigned c = 1; c < CLASSES; c++)
		m->cls[c] = world_class(w, m->policy[c]);
	for (unsigned key = 0; key < KEYS; key++)
		m->keys[key].cls = key % CLASSES;
}

static void model_done(struct model *m)
{
	for (unsigned i = 0; i < TICKETS; i++)
		baton_gate_ticket_free(m->tickets[i].real);
}

static void random_sequences_give_the_models_answers(void **state)
{
	struct rng rng = rng_seed_from_env();
	for (unsigned round = 0; round < soak_scale(60, 5000); round++) {
		struct model m;
		void *fresh = NULL;
		assert_int_equal(world_setup(&fresh), 0);
		model_init(&m, fresh, rng_seed(rng_next(&rng)));
		for (unsigned i = 0; i < 400; i++)
			step(&m);
		model_done(&m);
		world_teardown(&fresh);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_sequences_give_the_models_answers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
