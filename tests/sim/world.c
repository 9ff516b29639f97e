/* The world of a run: its clock, what happens next, and its end. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "sim/sim.h"
#include "store/store.h"

const char *const sim_queues[PLAN_QUEUES] = {"mail", "orders", "tasks"};
const uint32_t sim_shards[PLAN_QUEUES] = {4, 7, 2};
const uint32_t sim_key_limits[PLAN_QUEUES] = {1, 2, 1};

int64_t between(struct rng *rng, int64_t low, int64_t high)
{
	return low + (int64_t)rng_below(rng, (uint64_t)(high - low) + 1);
}

bool chance(struct rng *rng, unsigned percent)
{
	return rng_below(rng, 100) < percent;
}

void count(struct world *w, enum covered what)
{
	w->cover->counts[what]++;
}

void say(struct world *w, const struct proc *p, const char *format, ...)
{
	va_list args;
	if (!w->trace)
		return;
	printf("# %10.6f ", (double)w->now / (double)SIM_S);
	if (p)
		printf("%s#%" PRIu32 " ", p->name, p->id);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}

void wrong(struct world *w, const char *format, ...)
{
	va_list args;
	if (w->failed)
		return;
	va_start(args, format);
	vsnprintf(w->text, sizeof w->text, format, args);
	va_end(args);
	w->failed = true;
	w->rule = format;
	say(w, NULL, "WRONG: %s", w->text);
}

static bool sooner(const struct event *a, const struct event *b)
{
	return a->at != b->at ? a->at < b->at : a->serial < b->serial;
}

void event_add(struct world *w, int64_t at, enum event_kind kind, uint32_t who, uint64_t arg)
{
	CHECK(w->event_count < SIM_EVENTS_MAX);
	size_t i = w->event_count++;
	const struct event e = {at > w->now ? at : w->now, ++w->serial, kind, who, arg};
	while (i > 0 && sooner(&e, &w->events[(i - 1) / 2])) {
		w->events[i] = w->events[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	w->events[i] = e;
}

bool event_next(struct world *w, struct event *ret)
{
	if (w->event_count == 0)
		return false;
	*ret = w->events[0];
	const struct event last = w->events[--w->event_count];
	size_t i = 0;
	for (size_t next = 1; next < w->event_count; next = 2 * i + 1) {
		if (next + 1 < w->event_count && sooner(&w->events[next + 1], &w->events[next]))
			next++;
		if (!sooner(&w->events[next], &last))
			break;
		w->events[i] = w->events[next];
		i = next;
	}
	w->events[i] = last;
	return true;
}

/* The store's clock. */

static struct world *world_of(const struct baton_clock *self)
{
	return (struct world *)((char *)self - offsetof(struct world, clock));
}

static struct baton_mono store_mono(const struct baton_clock *self)
{
	return (struct baton_mono){world_of(self)->now + SIM_S};
}

static struct baton_store_time store_wall(const struct baton_clock *self)
{
	const struct world *w = world_of(self);
	return (struct baton_store_time){INT64_C(1767225600000) + (w->now + w->wall) / SIM_MS};
}

static void never_wait(const struct baton_clock *self, const uint32_t *word, uint32_t seen,
                       struct baton_mono until)
{
	(void)self;
	(void)word;
	(void)seen;
	(void)until;
	CHECK(false);
}

static void on_news(void *arg, const struct baton_store_news *news, size_t news_count)
{
	struct world *w = arg;
	(void)news;
	(void)news_count;
	w->changes++;
	for (uint32_t i = 0; i < w->proc_count; i++) {
		if (w->procs[i]->alive)
			event_add(w, w->now + 5 * SIM_MS, EV_EAR, i, 1);
	}
}

/* Whether those of a class do not know of each other. */
static bool are_apart(const struct world *w)
{
	return w->plan->variant == VARIANT_CLASSLESS || w->plan->variant == VARIANT_APART;
}

static void open_store(struct world *w)
{
	const struct baton_store_options options = {
		.where = BATON_STR("memory:"),
		.clock = &w->clock,
		.hook = {on_news, w},
	};
	struct baton_queue_policy policy = baton_queue_policy_default();
	const struct baton_retry retry = {
		.attempts = 5,
		.backoff = BATON_BACKOFF_FIXED,
		.base = {200 * SIM_MS},
		.cap = {200 * SIM_MS},
	};
	policy.retry = policy.retry_lane = retry;
	CHECK(baton_store_open(&options, &w->store) == BATON_OK);
	/* Who lives is for the world to say, and not to be looked up among real processes. */
	CHECK(baton_owner_opaque(BATON_STR("sim"), &w->store->owner) == BATON_OK);
	for (size_t i = 0; i < PLAN_QUEUES; i++) {
		policy.shards = sim_shards[i];
		const bool sites = sim_has_sites(w, (uint32_t)i);
		const bool unkeyed = w->plan->variant == VARIANT_KEYLESS ||
		                     (sites && w->plan->variant == VARIANT_SITELESS);
		policy.key_limit = unkeyed ? 1000 : sim_limit(w, (uint32_t)i);
		bool fair = sim_is_fair(w, (uint32_t)i) && w->plan->variant != VARIANT_UNFAIR;
		policy.key_fair = fair ? BATON_KEY_FAIR_ON : BATON_KEY_FAIR_OFF;
		const bool unrated = w->plan->variant == VARIANT_UNRATED ||
		                     (sites && w->plan->variant == VARIANT_SITE_UNRATED);
		policy.key_rate =
			unrated ? (struct baton_key_rate){.starts = 0} : sim_rate(w, (uint32_t)i);
		policy.key_ttl = sim_key_ttl(w, (uint32_t)i);
		policy.hold_on_retry = i == 0 || sites ? BATON_HOLD_GIVE_UP : BATON_HOLD_KEEP;
		policy.key_scope = sim_scope(w, (uint32_t)i);
		policy.on_conflict = (enum baton_on_conflict)(
			1 + (w->plan->seed + sim_class(w, (uint32_t)i)) % 5);
		bool classed = sim_is_classed(w, (uint32_t)i);
		if (sites || sim_waits_always(w, (uint32_t)i))
			policy.on_conflict = BATON_CONFLICT_WAIT;
		snprintf(policy.key_class, sizeof policy.key_class, "%s",
		         classed && !are_apart(w) ? "shared" : "");
		policy.on_retry = i == 0 ? BATON_ON_RETRY_PASS : BATON_ON_RETRY_BLOCK;
		CHECK(baton_queue_set(w->store, baton_str_z(sim_queues[i]), &policy) == BATON_OK);
	}
}

struct world *world_new(void)
{
	struct world *w = calloc(1, sizeof *w);
	CHECK(w);
	return w;
}

void world_free(struct world *w)
{
	for (uint32_t i = 0; i < SIM_PROCS_MAX && w; i++) {
		if (!w->procs[i])
			continue;
		carrier_done(&w->procs[i]->carrier);
		free(w->procs[i]);
	}
	free(w);
}

/* What is large in a process is kept for the next run. */
static void begin(struct world *w, const struct plan *plan, struct cover *cover, bool trace)
{
	struct proc *procs[SIM_PROCS_MAX];
	memcpy(procs, w->procs, sizeof procs);
	memset(w, 0, sizeof *w);
	memcpy(w->procs, procs, sizeof procs);
	w->plan = plan;
	w->cover = cover;
	w->trace = trace;
	w->clock = (struct baton_clock){store_mono, store_wall, never_wait};
	open_store(w);
	for (size_t i = 0; i < plan->count; i++)
		event_add(w, plan->actions[i].at, EV_ACTION, 0, i);
	event_add(w, plan->end, EV_HEAL, 0, 0);
}

static void end(struct world *w)
{
	for (uint32_t i = 0; i < w->proc_count; i++)
		proc_done(w->procs[i]);
	for (uint32_t i = 0; i < w->handle_count; i++)
		baton_runner_free(w->handles[i]);
	baton_store_close(w->store);
}

static void happen(struct world *w, const struct event *e)
{
	if (e->kind == EV_ACTION && w->healed)
		return;
	if (e->kind == EV_ACTION)
		act(w, &w->plan->actions[e->arg]);
	else if (e->kind == EV_HEAL)
		heal(w);
	else if (e->kind == EV_LOOK)
		judge_look(w);
	else if (e->kind == EV_BOOT)
		proc_boot(w, e->who, e->arg != 0);
	else
		proc_event(w->procs[e->who], e);
}

static void mix(struct world *w, const struct event *e)
{
	struct rng r = {w->digest ^ (uint64_t)e->at};
	r.state ^= (uint64_t)e->kind << 56 ^ (uint64_t)e->who << 48 ^ e->arg;
	w->digest = rng_next(&r);
	w->steps++;
}

void world_run(struct world *w, const struct plan *plan, struct cover *cover, bool trace)
{
	struct event e;
	begin(w, plan, cover, trace);
	while (!w->failed && !w->over && event_next(w, &e)) {
		CHECK(e.at >= w->now);
		w->now = e.at;
		mix(w, &e);
		happen(w, &e);
		if (plan->whys)
			judge_whys(w);
	}
	end(w);
}
