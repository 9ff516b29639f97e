/* What can be done to a store in a PostgreSQL database. */
#include "base/fail.h"
#include "store/memory/ops.h"
#include "store/postgres/look.h"
#include "store/postgres/postgres.h"

#define BEAT_MIN_MS 1000 /* that a beat may take, however short the ttl is */

static struct pg_store *of(struct baton_store *store)
{
	return (struct pg_store *)store;
}

struct lease_claim_args {
	const struct baton_lease_ask *asks;
	size_t count;
	struct baton_lease_answer *answers;
};

static void lease_claim_want(struct wants *w, const void *args)
{
	const struct lease_claim_args *a = args;
	for (size_t i = 0; i < a->count; i++)
		want_take(w, a->asks[i].subject);
}

static enum baton_err lease_claim_run(struct baton_store *desk, void *args)
{
	const struct lease_claim_args *a = args;
	return memory_lease_claim(desk, a->asks, a->count, a->answers);
}

static enum baton_err pg_lease_claim(struct baton_store *store, const struct baton_lease_ask *asks,
                                     size_t count, struct baton_lease_answer *answers)
{
	struct lease_claim_args args = {asks, count, answers};
	struct call call = {.want = lease_claim_want, .run = lease_claim_run, .args = &args};
	for (size_t i = 0; i < count; i++) {
		struct baton_duration ttl = store_ttl(asks[i].ttl);
		if (i == 0 || ttl.ns < call.ttl.ns)
			call.ttl = ttl;
	}
	return pg_do(&of(store)->keeps, &call);
}

struct proof_args {
	const struct baton_lease_proof *proofs;
	size_t count;
	struct baton_duration ttl;
	bool shorten;
	enum baton_err *answers;
};

static void proof_want(struct wants *w, const void *args)
{
	const struct proof_args *a = args;
	for (size_t i = 0; i < a->count; i++)
		want_subject(w, a->proofs[i].subject);
}

static enum baton_err renew_lease_run(struct baton_store *desk, void *args)
{
	const struct proof_args *a = args;
	return memory_lease_renew(desk, a->proofs, a->count, a->ttl, a->shorten, a->answers);
}

static enum baton_err pg_lease_renew(struct baton_store *store,
                                     const struct baton_lease_proof *proofs, size_t count,
                                     struct baton_duration ttl, bool shorten,
                                     enum baton_err *answers)
{
	struct proof_args args = {proofs, count, ttl, shorten, answers};
	struct call call = {.want = proof_want, .run = renew_lease_run, .args = &args, .ttl = ttl};
	call.request.first = true;
	return pg_do(&of(store)->keeps, &call);
}

static enum baton_err release_run(struct baton_store *desk, void *args)
{
	const struct proof_args *a = args;
	return memory_lease_release(desk, a->proofs, a->count, a->answers);
}

static enum baton_err pg_lease_release(struct baton_store *store,
                                       const struct baton_lease_proof *proofs, size_t count,
                                       enum baton_err *answers)
{
	struct proof_args args = {.proofs = proofs, .count = count, .answers = answers};
	struct call call = {.want = proof_want, .run = release_run, .args = &args};
	return pg_do(&of(store)->keeps, &call);
}

struct force_args {
	const struct baton_str *subjects;
	size_t count;
	struct baton_lease_answer *answers;
};

static void force_want(struct wants *w, const void *args)
{
	const struct force_args *a = args;
	for (size_t i = 0; i < a->count; i++)
		want_subject(w, a->subjects[i]);
}

static enum baton_err force_run(struct baton_store *desk, void *args)
{
	const struct force_args *a = args;
	return memory_lease_force(desk, a->subjects, a->count, a->answers);
}

static enum baton_err pg_lease_force(struct baton_store *store, const struct baton_str *subjects,
                                     size_t count, struct baton_lease_answer *answers)
{
	struct force_args args = {subjects, count, answers};
	struct call call = {.want = force_want, .run = force_run, .args = &args};
	return pg_do(&of(store)->keeps, &call);
}

struct queue_args {
	struct baton_str name;
	const struct baton_queue_policy *policy;
	uint32_t fields;
	bool existing;
};

static void queue_want(struct wants *w, const void *args)
{
	const struct queue_args *a = args;
	want_queue(w, a->name);
	want_class(w, a->fields & BATON_POLICY_KEY_CLASS
	                      ? (struct baton_str){a->policy->key_class,
	                                           strnlen(a->policy->key_class, BATON_NAME_MAX)}
	                      : BATON_STR(""));
}

static enum baton_err queue_run(struct baton_store *desk, void *args)
{
	const struct queue_args *a = args;
	return memory_queue_set(desk, a->name, a->policy, a->fields, a->existing);
}

static enum baton_err pg_queue_set(struct baton_store *store, struct baton_str name,
                                   const struct baton_queue_policy *policy, uint32_t fields,
                                   bool existing)
{
	struct queue_args args = {name, policy, fields, existing};
	struct call call = {.want = queue_want, .run = queue_run, .args = &args, .alone = true};
	return pg_do(&of(store)->adds, &call);
}

struct put_args {
	const struct baton_batch *batches;
	size_t count;
	struct baton_put *puts;
};

static void put_want(struct wants *w, const void *args)
{
	const struct put_args *a = args;
	want_puts(w, a->batches, a->count);
}

static enum baton_err put_run(struct baton_store *desk, void *args)
{
	const struct put_args *a = args;
	return memory_put(desk, a->batches, a->count, a->puts);
}

static enum baton_err pg_put(struct baton_store *store, const struct baton_batch *batches,
                             size_t count, struct baton_put *puts)
{
	struct put_args args = {batches, count, puts};
	struct call call = {.want = put_want, .run = put_run, .args = &args};
	return pg_do(&of(store)->adds, &call);
}

/* What a call that claims has got so far. */
struct take_args {
	const void *ask;
	uint64_t runner;
	struct baton_work_claims *claims;
};

/* It may be done again, after a rollback. */
static void forget_claims(struct take_args *a)
{
	baton_work_claims_free(a->claims);
	a->claims = NULL;
}

static enum baton_err give_claims(enum baton_err e, struct take_args *a,
                                  struct baton_work_claims **ret_claims)
{
	if (e == BATON_OK)
		*ret_claims = a->claims;
	else
		forget_claims(a);
	return e;
}

static void claim_want(struct wants *w, const void *args)
{
	const struct baton_work_ask *ask = ((const struct take_args *)args)->ask;
	const struct want_heads heads = {ask->queue, 0, ask->claims, ask->max};
	want_pull(w, ask->queue);
	if (ask->claims > 0 && ask->max > 0)
		want_heads(w, &heads);
}

static enum baton_err claim_run(struct baton_store *desk, void *args)
{
	struct take_args *a = args;
	forget_claims(a);
	return memory_claim(desk, a->ask, &a->claims);
}

static enum baton_err pg_claim(struct baton_store *store, const struct baton_work_ask *ask,
                               struct baton_work_claims **ret_claims)
{
	struct take_args args = {.ask = ask};
	struct call call = {.want_more = claim_want, .run_more = claim_run, .args = &args};
	return give_claims(pg_do(&of(store)->takes, &call), &args, ret_claims);
}

static void lane_want(struct wants *w, const void *args)
{
	want_line(w, ((const struct take_args *)args)->ask);
}

static enum baton_err lane_run(struct baton_store *desk, void *args)
{
	struct take_args *a = args;
	forget_claims(a);
	return memory_lane_claim(desk, a->ask, &a->claims);
}

static enum baton_err pg_lane_claim(struct baton_store *store, const struct baton_lane_ask *ask,
                                    struct baton_work_claims **ret_claims)
{
	struct take_args args = {.ask = ask};
	struct call call = {.want_more = lane_want,
	                    .run_more = lane_run,
	                    .args = &args,
	                    .alone = true};
	return give_claims(pg_do(&of(store)->takes, &call), &args, ret_claims);
}

struct renew_args {
	const struct baton_work_proof *proofs;
	size_t count;
	struct baton_duration ttl;
	struct baton_work_renewal *answers;
};

static void renew_want(struct wants *w, const void *args)
{
	const struct renew_args *a = args;
	for (size_t i = 0; i < a->count; i++)
		want_claim(w, &a->proofs[i], false);
}

static enum baton_err renew_run(struct baton_store *desk, void *args)
{
	const struct renew_args *a = args;
	return memory_renew(desk, a->proofs, a->count, a->ttl, a->answers);
}

static enum baton_err pg_renew(struct baton_store *store, const struct baton_work_proof *proofs,
                               size_t count, struct baton_duration ttl,
                               struct baton_work_renewal *answers)
{
	struct renew_args args = {proofs, count, ttl, answers};
	struct call call = {.want = renew_want, .run = renew_run, .args = &args, .ttl = ttl};
	call.request.first = true;
	return pg_do(&of(store)->keeps, &call);
}

struct end_args {
	const struct baton_work_end *ends;
	size_t count;
	struct baton_work_ended *answers;
};

static void end_want(struct wants *w, const void *args)
{
	const struct end_args *a = args;
	want_ends(w, a->ends, a->count);
}

static enum baton_err end_run(struct baton_store *desk, void *args)
{
	const struct end_args *a = args;
	return memory_end(desk, a->ends, a->count, a->answers);
}

static enum baton_err pg_end(struct baton_store *store, const struct baton_work_end *ends,
                             size_t count, struct baton_work_ended *answers)
{
	struct end_args args = {ends, count, answers};
	struct call call = {.want = end_want, .run = end_run, .args = &args};
	return pg_do(&of(store)->adds, &call);
}

struct next_args {
	struct take_args take; /* comes first */
	struct end_args end;
	bool refused; /* the claim, by an answer */
};

static void next_ends_want(struct wants *w, const void *args)
{
	end_want(w, &((const struct next_args *)args)->end);
}

static enum baton_err next_ends_run(struct baton_store *desk, void *args)
{
	return end_run(desk, &((struct next_args *)args)->end);
}

static enum baton_err next_run(struct baton_store *desk, void *args)
{
	enum baton_err e = claim_run(desk, args);
	((struct next_args *)args)->refused = e == BATON_NOT_FOUND || e == BATON_BUSY;
	return e;
}

/* A claim that is refused leaves nothing behind, not even what time has done: the ends are done
 * alone then. */
static enum baton_err pg_next(struct baton_store *store, const struct baton_work_end *ends,
                              size_t count, struct baton_work_ended *answers,
                              const struct baton_work_ask *ask,
                              struct baton_work_claims **ret_claims)
{
	struct next_args args = {.take = {.ask = ask}, .end = {ends, count, answers}};
	struct call call = {.want = next_ends_want,
	                    .run = next_ends_run,
	                    .want_more = claim_want,
	                    .run_more = next_run,
	                    .args = &args};
	enum baton_err e = give_claims(pg_do(&of(store)->takes, &call), &args.take, ret_claims);
	enum baton_err ended = e;
	if (e != BATON_OK && args.refused) {
		ended = pg_end(store, ends, count, answers);
		if (ended == BATON_OK)
			fail_detail("%s", call.request.detail);
	}
	if (ended != BATON_OK)
		store_ends_fail(answers, count, ended);
	return ended == BATON_OK ? e : ended;
}

struct ids_args {
	const struct baton_batch_id *ids;
	size_t count;
	enum baton_cancelled *cancelled;
	enum baton_err *revived;
};

static void ids_want(struct wants *w, const void *args)
{
	const struct ids_args *a = args;
	for (size_t i = 0; i < a->count; i++)
		want_batch(w, &a->ids[i]);
	w->numbers += a->revived ? a->count : 0;
}

static enum baton_err cancel_run(struct baton_store *desk, void *args)
{
	const struct ids_args *a = args;
	return memory_cancel(desk, a->ids, a->count, a->cancelled);
}

static enum baton_err pg_cancel(struct baton_store *store, const struct baton_batch_id *ids,
                                size_t count, enum baton_cancelled *answers)
{
	struct ids_args args = {.ids = ids, .count = count, .cancelled = answers};
	struct call call = {.want = ids_want, .run = cancel_run, .args = &args};
	return pg_do(&of(store)->adds, &call);
}

static enum baton_err revive_run(struct baton_store *desk, void *args)
{
	const struct ids_args *a = args;
	return memory_revive(desk, a->ids, a->count, a->revived);
}

static enum baton_err pg_revive(struct baton_store *store, const struct baton_batch_id *ids,
                                size_t count, enum baton_err *answers)
{
	struct ids_args args = {.ids = ids, .count = count, .revived = answers};
	struct call call = {.want = ids_want, .run = revive_run, .args = &args};
	return pg_do(&of(store)->adds, &call);
}

static void schedule_want(struct wants *w, const void *args)
{
	want_schedule(w, ((const struct baton_schedule *)args)->name);
}

static enum baton_err schedule_set_run(struct baton_store *desk, void *args)
{
	return memory_schedule_set(desk, args);
}

static enum baton_err pg_schedule_set(struct baton_store *store,
                                      const struct baton_schedule *schedule)
{
	struct baton_schedule copy = *schedule;
	struct call call = {.want = schedule_want, .run = schedule_set_run, .args = &copy};
	return pg_do(&of(store)->adds, &call);
}

static enum baton_err schedule_remove_run(struct baton_store *desk, void *args)
{
	return memory_schedule_remove(desk, ((const struct baton_schedule *)args)->name);
}

static enum baton_err pg_schedule_remove(struct baton_store *store, struct baton_str name)
{
	struct baton_schedule named = {.name = name};
	struct call call = {.want = schedule_want, .run = schedule_remove_run, .args = &named};
	return pg_do(&of(store)->adds, &call);
}

static void step_want(struct wants *w, const void *args)
{
	const struct schedule_step *const *step = args;
	want_schedule(w, (*step)->name);
	want_puts(w, (*step)->batches, (*step)->count);
}

static enum baton_err step_run(struct baton_store *desk, void *args)
{
	const struct schedule_step *const *step = args;
	return memory_schedule_step(desk, *step);
}

static enum baton_err pg_schedule_step(struct baton_store *store, const struct schedule_step *step)
{
	struct call call = {.want = step_want, .run = step_run, .args = &step};
	return pg_do(&of(store)->adds, &call);
}

struct settle_args {
	uint64_t number;
	const struct baton_work_proof *known;
	size_t count;
};

struct runner_args {
	struct runner_row *row, *other;
	uint64_t number;
	enum runner_end end;
};

/* What runners ask, and the looks that they wait for, hangs no longer than a third of the shortest
 * ttl. */
static void beat_within(struct pg_store *s, struct baton_duration ttl)
{
	int64_t third = ttl.ns / 3000000;
	int64_t before = atomic_load(&s->beat_ms);
	third = third < BEAT_MIN_MS ? BEAT_MIN_MS : third;
	if (before == 0 || third < before)
		atomic_store(&s->beat_ms, third);
}

static void runner_add_want(struct wants *w, const void *args)
{
	(void)args;
	want_runner(w, 0);
}

static enum baton_err runner_add_run(struct baton_store *desk, void *args)
{
	const struct runner_args *a = args;
	return memory_runner_add(desk, a->row, a->other);
}

static enum baton_err pg_runner_add(struct baton_store *store, struct runner_row *row,
                                    struct runner_row *ret_other)
{
	struct runner_args args = {.row = row, .other = ret_other};
	struct call call = {.want = runner_add_want, .run = runner_add_run, .args = &args};
	enum baton_err e = pg_do(&of(store)->keeps, &call);
	if (e == BATON_OK)
		beat_within(of(store), row->ttl);
	return e;
}

static void runner_remove_want(struct wants *w, const void *args)
{
	const struct runner_args *a = args;
	want_runner(w, a->number);
	w->runner = a->number;
	w->leaves = true;
}

static enum baton_err runner_remove_run(struct baton_store *desk, void *args)
{
	const struct runner_args *a = args;
	return memory_runner_remove(desk, a->number, a->end);
}

static enum baton_err pg_runner_remove(struct baton_store *store, uint64_t number,
                                       enum runner_end end)
{
	struct runner_args args = {.number = number, .end = end};
	struct call call = {.want = runner_remove_want,
	                    .run = runner_remove_run,
	                    .args = &args,
	                    .alone = true};
	return pg_do(&of(store)->adds, &call);
}

static void settle_want(struct wants *w, const void *args)
{
	const struct settle_args *a = args;
	want_runner(w, a->number);
	w->runner = a->number;
	w->leaves = true;
}

static enum baton_err settle_run(struct baton_store *desk, void *args)
{
	const struct settle_args *a = args;
	return memory_runner_settle(desk, a->number, a->known, a->count);
}

static enum baton_err pg_runner_settle(struct baton_store *store, uint64_t number,
                                       const struct baton_work_proof *known, size_t count)
{
	struct settle_args args = {number, known, count};
	struct call call = {.want = settle_want,
	                    .run = settle_run,
	                    .args = &args,
	                    .alone = true,
	                    .within_ms = atomic_load(&of(store)->beat_ms)};
	return pg_do(&of(store)->adds, &call);
}

/* BATON_NOT_HELD: it was stopped, or is not there any more. */
static enum baton_err runner_acts(struct baton_store *desk, uint64_t number)
{
	struct runner_row row;
	enum baton_err e = memory_runner_next(desk, number - 1, &row);
	if (e == BATON_NOT_FOUND || (e == BATON_OK && (row.number != number || row.beat == 0)))
		return BATON_NOT_HELD;
	return e;
}

static void shard_want(struct wants *w, const void *args)
{
	const struct shard_change *const *change = args;
	want_runner(w, (*change)->runner);
	for (size_t i = 0; i < (*change)->count; i++)
		want_shard(w, (*change)->shards[i].queue, (*change)->shards[i].number);
	w->runner = (*change)->take ? 0 : (*change)->runner;
}

static enum baton_err shard_run(struct baton_store *desk, void *args)
{
	const struct shard_change *const *change = args;
	enum baton_err e = runner_acts(desk, (*change)->runner);
	return e == BATON_OK ? memory_shard_change(desk, *change) : e;
}

static enum baton_err pg_shard_change(struct baton_store *store, const struct shard_change *change)
{
	struct call call = {.want = shard_want,
	                    .run = shard_run,
	                    .args = &change,
	                    .alone = true,
	                    .within_ms = atomic_load(&of(store)->beat_ms)};
	return pg_do(&of(store)->adds, &call);
}

static void tick_ends_want(struct wants *w, const void *args)
{
	const struct take_args *a = args;
	const struct baton_tick *tick = a->ask;
	want_runner(w, a->runner);
	want_ends(w, tick->ends, tick->end_count);
}

static enum baton_err tick_ends_run(struct baton_store *desk, void *args)
{
	const struct take_args *a = args;
	struct baton_tick ends = *(const struct baton_tick *)a->ask;
	struct baton_work_claims *none = NULL;
	ends.shard_count = 0;
	enum baton_err e = runner_acts(desk, a->runner);
	return e == BATON_OK ? memory_tick(desk, a->runner, &ends, &none) : e;
}

static void tick_want(struct wants *w, const void *args)
{
	const struct take_args *a = args;
	const struct baton_tick *tick = a->ask;
	want_runner(w, a->runner);
	for (size_t i = 0; i < tick->shard_count; i++) {
		const struct baton_shard *s = &tick->shards[i];
		uint32_t claims = (uint32_t)store_tick_claims(tick);
		const struct want_heads heads = {s->queue, s->number + 1,
		                                 s->claims < claims ? s->claims : claims, s->max};
		want_shard(w, s->queue, s->number);
		if (s->claims > 0 && s->max > 0)
			want_heads(w, &heads);
	}
}

static enum baton_err tick_run(struct baton_store *desk, void *args)
{
	struct take_args *a = args;
	struct baton_tick takes = *(const struct baton_tick *)a->ask;
	takes.end_count = 0;
	forget_claims(a);
	enum baton_err e = runner_acts(desk, a->runner);
	return e == BATON_OK ? memory_tick(desk, a->runner, &takes, &a->claims) : e;
}

static enum baton_err pg_tick(struct baton_store *store, uint64_t runner,
                              const struct baton_tick *tick, struct baton_work_claims **ret_claims)
{
	struct take_args args = {.ask = tick, .runner = runner};
	struct call call = {.want_more = tick_want,
	                    .run_more = tick_run,
	                    .args = &args,
	                    .alone = true,
	                    .within_ms = atomic_load(&of(store)->beat_ms)};
	if (tick->end_count > 0) {
		call.want = tick_ends_want;
		call.run = tick_ends_run;
	}
	return give_claims(pg_do(&of(store)->takes, &call), &args, ret_claims);
}

struct more_args {
	struct take_args take; /* comes first */
	struct baton_lane_ask line;
};

static void more_want(struct wants *w, const void *args)
{
	const struct more_args *a = args;
	const struct baton_more_ask *ask = a->take.ask;
	want_runner(w, a->take.runner);
	want_shard(w, ask->queue, ask->shard);
	w->lane_ask = &a->line;
}

static enum baton_err more_run(struct baton_store *desk, void *args)
{
	struct take_args *a = &((struct more_args *)args)->take;
	forget_claims(a);
	enum baton_err e = runner_acts(desk, a->runner);
	return e == BATON_OK ? memory_more(desk, a->runner, a->ask, &a->claims) : e;
}

static enum baton_err pg_more(struct baton_store *store, uint64_t runner,
                              const struct baton_more_ask *ask,
                              struct baton_work_claims **ret_claims)
{
	struct more_args args = {
		.take = {.ask = ask, .runner = runner},
		.line = {.queue = ask->queue,
	                 .lane = ask->lane,
	                 .at = BATON_CHECKPOINT,
	                 .max = ask->max},
	};
	struct call call = {.want_more = more_want,
	                    .run_more = more_run,
	                    .args = &args,
	                    .alone = true,
	                    .within_ms = atomic_load(&of(store)->beat_ms)};
	return give_claims(pg_do(&of(store)->takes, &call), &args.take, ret_claims);
}

const struct store_ops postgres_ops = {
	.close = postgres_close,
	.lease_claim = pg_lease_claim,
	.lease_renew = pg_lease_renew,
	.lease_release = pg_lease_release,
	.lease_force = pg_lease_force,
	.lease_read = pg_lease_read,
	.lease_list = pg_lease_list,
	.queue_set = pg_queue_set,
	.queue_list = pg_queue_list,
	.queue_get = pg_queue_get,
	.put = pg_put,
	.claim = pg_claim,
	.lane_claim = pg_lane_claim,
	.renew = pg_renew,
	.end = pg_end,
	.next = pg_next,
	.cancel = pg_cancel,
	.revive = pg_revive,
	.get = pg_get,
	.list = pg_list,
	.next_due = pg_next_due,
	.schedule_set = pg_schedule_set,
	.schedule_remove = pg_schedule_remove,
	.schedule_list = pg_schedule_list,
	.schedule_step = pg_schedule_step,
	.runner_add = pg_runner_add,
	.runner_remove = pg_runner_remove,
	.runner_settle = pg_runner_settle,
	.runner_next = pg_runner_next,
	.runner_mark = pg_runner_mark,
	.runner_cancels = pg_runner_cancels,
	.runner_report = pg_runner_report,
	.shard_change = pg_shard_change,
	.shard_list = pg_shard_list,
	.tick = pg_tick,
	.more = pg_more,
	.beat = pg_beat,
	.beat_stop = pg_beat_stop,
	.backup = pg_backup,
	.check = pg_check,
	.tidy = pg_tidy,
	.version = pg_version,
	.doze = pg_doze,
};
