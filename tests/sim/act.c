/* What people and faults do. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "sim/sim.h"

static const char *const lanes[SIM_LANES] = {"", "anna", "bert", "cleo", "dora"};

static const char *const keys[SIM_KEYS + 1] = {"", "one", "two", "anna"};

uint32_t sim_key(struct baton_str name)
{
	for (uint32_t k = 1; k <= SIM_KEYS; k++) {
		if (baton_str_equal(name, baton_str_z(keys[k])))
			return k;
	}
	return 0;
}

/* Some of the keys, at least two, in an order that is not theirs. */
static void several_keys(struct world *w, struct job *job, struct rng *rng)
{
	uint32_t without = (uint32_t)rng_below(rng, SIM_KEYS + 1); /* 0: all */
	struct baton_batch *batch = &job->batch;
	job->key = job->keys = 0;
	for (uint32_t k = SIM_KEYS; k > 0; k--) {
		if (k == without)
			continue;
		job->key = k;
		job->keys |= KEY_BIT(k);
		job->list[batch->key_count++] = baton_str_z(keys[k]);
	}
	batch->keys = job->list;
	batch->key.len = 0;
	if (w->plan->variant == VARIANT_PARTIAL)
		batch->key_count = 1;
}

uint32_t job_new(struct world *w, struct rng *rng)
{
	uint32_t i = w->job_count;
	if (i == SIM_JOBS_MAX)
		return i;
	struct job *job = &w->jobs[w->job_count++];
	job->queue = (uint32_t)rng_below(rng, PLAN_QUEUES);
	job->lane = (uint32_t)rng_below(rng, SIM_LANES);
	if (chance(rng, 30)) {
		job->key = 1 + (uint32_t)rng_below(rng, SIM_KEYS);
		if (!sim_has_guests(w, job->queue))
			job->lane = 0;
	}
	job->keys = job->key > 0 ? KEY_BIT(job->key) : 0;
	bool several = job->key > 0 && sim_has_guests(w, job->queue) && chance(rng, 40);
	job->poison = chance(rng, 1);
	job->loose = chance(rng, 5);
	bool command = chance(rng, 10);
	snprintf(job->text, sizeof job->text, "%" PRIu32, i);
	snprintf(job->source, sizeof job->source, "s%" PRIu32, i);
	job->payload = baton_str_z(job->text);
	job->batch = (struct baton_batch){
		.queue = baton_str_z(sim_queues[job->queue]),
		.lane = baton_str_z(lanes[job->lane]),
		.key = baton_str_z(keys[job->key]),
		.cls = command ? BATON_COMMAND : BATON_WORK,
		.slot = !command && chance(rng, 50) ? BATON_JOIN : BATON_EXCLUSIVE,
		.priority = (uint32_t)rng_below(rng, 3),
		.delay = {job->loose ? between(rng, SIM_MS, 3 * SIM_S) : 0},
		.source = baton_str_z(job->source),
		.payloads = &job->payload,
		.count = 1,
	};
	if (several)
		several_keys(w, job, rng);
	if (w->plan->variant == VARIANT_GUESTLESS && job->lane > 0) {
		job->batch.key.len = 0;
		job->batch.key_count = 0;
	}
	return i;
}

static void put_again(struct world *w, const struct baton_batch *batches, size_t n,
                      const struct baton_put *first)
{
	struct baton_put again[3];
	count(w, COVER_PUT_AGAIN);
	CHECK(baton_work_put(w->store, batches, n, again) == BATON_OK);
	for (size_t i = 0; i < n; i++) {
		if (!again[i].existing || strcmp(again[i].id.text, first[i].id.text) != 0)
			wrong(w, "a put that is repeated puts anew");
	}
}

static bool is_ready(const struct world *w, const struct job *job)
{
	struct baton_work_page *page = NULL;
	if (!job->put || job->id.text[0] == '\0')
		return false;
	enum baton_err e = baton_work_get(w->store, &job->id, &page);
	bool ready = e == BATON_OK && page->infos[0].state == BATON_BATCH_READY;
	baton_work_page_free(page);
	return ready;
}

/* How many wait for the one of its keys for which most do. */
static uint32_t most_waiting(const struct world *w, const struct job *job)
{
	uint32_t most = 0;
	for (uint32_t k = 1; k <= SIM_KEYS; k++) {
		uint32_t ready = 0;
		for (uint32_t i = 0; i < w->job_count && (job->keys & KEY_BIT(k)); i++)
			ready += sim_class(w, w->jobs[i].queue) == sim_class(w, job->queue) &&
			         (w->jobs[i].keys & KEY_BIT(k)) && is_ready(w, &w->jobs[i]);
		most = ready > most ? ready : most;
	}
	return most;
}

static void set_bound(struct world *w, const struct job *job, uint32_t bound)
{
	const struct baton_queue_policy p = {.key_waiting_max = bound};
	CHECK(baton_queue_change(w->store, baton_str_z(sim_queues[job->queue]), &p,
	                         BATON_POLICY_KEY_WAITING_MAX) == BATON_OK);
}

/* Of each key no more wait than its queue allows, wherever they stand, if that is set just now. */
static void put_bounded(struct world *w, const struct job *job)
{
	struct baton_put put;
	uint32_t bound = 1 + (w->job_count & 1), waiting = most_waiting(w, job);
	bool full = waiting >= bound && job->batch.delay.ns == 0;
	if (!full || job->keys == 0)
		return;
	if (w->plan->variant != VARIANT_UNBOUNDED)
		set_bound(w, job, bound);
	enum baton_err e = baton_work_put(w->store, &job->batch, 1, &put);
	set_bound(w, job, 0);
	if (e != BATON_FULL)
		wrong(w, "job %s is put, though %" PRIu32 " wait for its key", job->text, waiting);
	count(w, job->lane > 0 || job->batch.key_count > 1 ? COVER_BOUND_GUEST
	         : sim_has_sites(w, job->queue)            ? COVER_BOUND_SITE
	                                                   : COVER_BOUND);
	if (sim_is_classed(w, job->queue))
		count(w, COVER_BOUND_CLASSED);
}

static void put(struct world *w, struct rng *rng)
{
	struct baton_batch batches[3];
	struct baton_put puts[3];
	uint32_t first = w->job_count;
	size_t n = 1 + rng_below(rng, 3);
	if (w->job_count + 2 * n > SIM_JOBS_MAX)
		return;
	for (size_t i = 0; i < n; i++)
		job_new(w, rng);
	for (size_t i = 0; i < n; i++)
		batches[i] = w->jobs[first + i].batch;
	/* Where jobs get fewer keys than they are thought to have, others judge that. */
	if (!w->failed && w->plan->variant != VARIANT_GUESTLESS &&
	    w->plan->variant != VARIANT_PARTIAL)
		put_bounded(w, &w->jobs[first]);
	CHECK(baton_work_put(w->store, batches, n, puts) == BATON_OK);
	for (size_t i = 0; i < n; i++) {
		struct job *job = &w->jobs[first + i];
		job->put = true;
		job->order = ++w->orders;
		job->id = puts[i].id;
		say(w, NULL, "job %zu is put to %s, lane '%s', key '%s'%s", first + i,
		    sim_queues[job->queue], lanes[job->lane], keys[job->key],
		    job->batch.key_count > 2 ? " and all others"
		    : job->batch.key_count > 1
		            ? (job->keys & KEY_BIT(3) ? " and 'anna'" : " and 'two'")
		            : "");
		if (chance(rng, 10) && !job->poison)
			job->emit = job_new(w, rng);
	}
	count(w, COVER_PUT);
	if (chance(rng, 20))
		put_again(w, batches, n, puts);
}

static bool is_skipped(const struct world *w, const struct job *job)
{
	struct baton_work_page *page = NULL;
	enum baton_err e = baton_work_get(w->store, &job->id, &page);
	bool skipped = e == BATON_OK && page->infos[0].state == BATON_BATCH_SKIPPED;
	baton_work_page_free(page);
	return skipped;
}

static void cancel(struct world *w, struct rng *rng)
{
	enum baton_cancelled answer;
	if (w->job_count == 0)
		return;
	struct job *job = &w->jobs[rng_below(rng, w->job_count)];
	for (uint32_t i = 0; i < w->job_count && (!job->put || job->done); i++)
		job = &w->jobs[i];
	if (!job->put || job->id.text[0] == '\0')
		return;
	CHECK(baton_work_cancel(w->store, &job->id, 1, &answer) == BATON_OK);
	say(w, NULL, "job %s is cancelled: %d", job->text, (int)answer);
	if (answer == BATON_CANCEL_REMOVED) {
		count(w, COVER_CANCEL_REMOVED);
		if (job->done || job->removed)
			wrong(w, "job %s was there after it had ended", job->text);
		job->removed = true;
	} else if (answer == BATON_CANCEL_TOLD) {
		count(w, COVER_CANCEL_TOLD);
		job->cancel = true;
	} else if (!job->done && !job->removed && !job->cancel && !job->skipped &&
	           !is_skipped(w, job)) {
		wrong(w, "job %s is lost", job->text);
	}
}

static void pause(struct world *w, uint32_t queue, bool paused)
{
	CHECK(baton_queue_pause(w->store, baton_str_z(sim_queues[queue]), paused) == BATON_OK);
	count(w, paused ? COVER_PAUSE : COVER_RESUME);
	w->paused[queue] = paused;
}

void freeze(struct proc *p, int64_t span)
{
	struct world *w = p->w;
	if (p->frozen > w->now)
		return;
	p->frozen = w->now + span;
	count(w, span < w->plan->ttl ? COVER_FREEZE_SHORT : COVER_FREEZE_LONG);
}

/* Now, or in the middle of the next start of a handler. */
static void freeze_soon(struct proc *p, const struct action *a)
{
	if (a->arg % 3 == 0)
		p->armed = a->span;
	else
		freeze(p, a->span);
}

/* Somebody at its own controls: it was heard, and from then on nothing starts. */
static void detach(struct proc *p)
{
	struct world *w = p->w;
	bool detached = baton_detach_state(&p->detach) == BATON_DETACHED;
	count(w, detached ? COVER_DETACH_AGAIN : COVER_DETACH_HAND);
	p->manual = true;
	if (w->plan->variant == VARIANT_UNDETACHED && detached)
		return;
	core_detach(p->core, proc_now(p));
	proc_act(p);
}

static void attach(struct proc *p)
{
	if (!p->manual)
		return;
	count(p->w, COVER_ATTACH_HAND);
	p->manual = false;
	core_attach(p->core, proc_now(p));
	proc_act(p);
}

static void stop(struct proc *p, int64_t grace)
{
	if (p->stopping)
		return;
	count(p->w, COVER_STOP);
	p->stopping = true;
	core_stop(p->core, (struct baton_duration){grace}, proc_now(p));
	proc_act(p);
}

static void retire(struct proc *p, int64_t grace)
{
	if (p->seat == 0)
		return;
	count(p->w, COVER_RETIRE);
	p->w->retired[p->seat] = true;
	stop(p, grace);
}

/* The guardian is dead, and its handlers die with it. The runner detaches until it has another. */
static void orphan(struct proc *p)
{
	count(p->w, COVER_ORPHAN);
	p->orphan = true;
	ward_kill_all(p, COVER_KILL_DEAD);
	baton_detach_make(&p->detach, BATON_DETACH_GUARDIAN, NULL, proc_now(p));
	proc_act(p);
}

static void replace(struct proc *p)
{
	count(p->w, COVER_REPLACE);
	proc_boot(p->w, p->seat, true);
}

static void act_on(struct proc *p, const struct action *a)
{
	bool frozen = p->frozen > p->w->now;
	int64_t grace = (int64_t)(a->arg % 5) * SIM_S;
	if (a->kind == ACT_REPLACE) {
		replace(p);
	} else if (a->kind == ACT_CRASH) {
		count(p->w, COVER_CRASH);
		proc_die(p);
	} else if (a->kind == ACT_FREEZE) {
		freeze_soon(p, a);
	} else if (frozen) {
		return;
	} else if (a->kind == ACT_DETACH) {
		detach(p);
	} else if (a->kind == ACT_ATTACH) {
		attach(p);
	} else if (a->kind == ACT_STOP) {
		stop(p, grace);
	} else if (a->kind == ACT_RETIRE) {
		retire(p, grace);
	} else if (a->kind == ACT_ORPHAN) {
		orphan(p);
	}
}

/* The operator asks it for something, and later to work again. */
static void wish(struct world *w, const struct action *a)
{
	static const enum covered seen[] = {
		[BATON_WISH_WORK] = COVER_WISH_WORK,
		[BATON_WISH_DRAIN] = COVER_WISH_DRAIN,
		[BATON_WISH_DETACH] = COVER_WISH_DETACH,
	};
	char name[16];
	enum baton_runner_wish what = a->arg % 3 == 0   ? BATON_WISH_WORK
	                              : a->arg % 3 == 1 ? BATON_WISH_DRAIN
	                                                : BATON_WISH_DETACH;
	snprintf(name, sizeof name, "r%" PRIu32, a->seat);
	enum baton_err e = baton_runner_wish(w->store, baton_str_z(name), what);
	CHECK(e == BATON_OK || e == BATON_NOT_FOUND);
	if (e != BATON_OK)
		return;
	count(w, seen[what]);
	for (uint32_t i = 0; i < w->proc_count; i++)
		w->procs[i]->manual &= w->procs[i]->seat != a->seat || what == BATON_WISH_DETACH;
}

static void set_clock(struct world *w, int64_t span)
{
	find_skipped(w);
	count(w, span < 0 ? COVER_STEP_BACK : COVER_STEP_AHEAD);
	w->wall += span;
	if (span < 0)
		judge_set_back(w);
	w->wall_most = w->wall > w->wall_most ? w->wall : w->wall_most;
}

void act(struct world *w, const struct action *a)
{
	struct rng rng = rng_seed(a->arg);
	struct proc *p = a->seat < w->plan->seats ? proc_at(w, a->seat) : NULL;
	w->written = w->moved = true;
	say(w, NULL, "%s %" PRIu32 ", %.3f s", action_name(a->kind), a->seat,
	    (double)a->span / (double)SIM_S);
	if (a->kind == ACT_PUT)
		put(w, &rng);
	else if (a->kind == ACT_CANCEL)
		cancel(w, &rng);
	else if (a->kind == ACT_PAUSE || a->kind == ACT_RESUME)
		pause(w, (uint32_t)(a->arg % PLAN_QUEUES), a->kind == ACT_PAUSE);
	else if (a->kind == ACT_STEP)
		set_clock(w, a->span);
	else if (a->kind == ACT_WISH)
		wish(w, a);
	else if (a->kind == ACT_JOIN)
		proc_boot(w, a->seat, false);
	else if (p)
		act_on(p, a);
}

/* The operator looks whether he was heard, and asks again: what was asked of a registration is
 * forgotten with it. */
void heal_again(struct world *w)
{
	static struct baton_runner_info infos[SIM_PROCS_MAX];
	size_t n;
	w->written = w->moved = true;
	CHECK(baton_runner_list(w->store, 0, infos, SIM_PROCS_MAX, &n) == BATON_OK);
	for (size_t i = 0; i < n; i++) {
		if (infos[i].wish == BATON_WISH_DRAIN || infos[i].wish == BATON_WISH_DETACH)
			CHECK(baton_runner_wish(w->store, baton_str_z(infos[i].name),
			                        BATON_WISH_WORK) == BATON_OK);
	}
}

void heal(struct world *w)
{
	say(w, NULL, "no more faults");
	w->written = w->moved = true;
	w->healed = true;
	find_skipped(w);
	w->wall = w->wall_most; /* so that what was delayed is due in time */
	for (uint32_t i = 0; i < PLAN_QUEUES; i++)
		pause(w, i, false);
	for (uint32_t i = 0; i < w->proc_count && !w->failed; i++) {
		struct proc *p = w->procs[i];
		p->frozen = p->frozen > w->now ? w->now : p->frozen;
		if (p->alive)
			attach(p);
	}
	for (uint32_t i = 0; i < w->plan->seats; i++)
		event_add(w, w->now, EV_BOOT, i, 0);
	heal_again(w);
	event_add(w, w->now + SIM_S, EV_LOOK, 0, 0);
}
