/* Runners and their shards: what is asked for is checked here, and kept by the backend. */
#include <baton/shard.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fail.h"
#include "base/mem.h"
#include "base/quote.h"
#include "base/utf8.h"
#include "queue/batch.h"
#include "queue/place.h"
#include "store/keys.h"
#include "store/store.h"

struct baton_runner {
	struct baton_store *store;
	uint64_t number;
	uint32_t slot;
	struct baton_owner owner;
};

static enum baton_err check_text(const char *what, struct baton_str s)
{
	return s.len == 0 ? BATON_OK : baton_str_name(what, s.ptr, s.len, BATON_NAME_MAX, &s);
}

static enum baton_err check_name(struct baton_str name)
{
	return baton_str_name("the runner's name", name.ptr, name.len, BATON_NAME_MAX, &name);
}

static enum baton_err check_queues(const struct baton_runner_ask *ask)
{
	size_t len = ask->queue_count > 0 ? ask->queue_count - 1 : 0;
	for (size_t i = 0; i < ask->queue_count; i++) {
		enum baton_err e = batch_check_queue(ask->queues[i]);
		if (e != BATON_OK)
			return e;
		len += ask->queues[i].len;
	}
	if (len <= BATON_RUNNER_QUEUES_MAX)
		return BATON_OK;
	return fail(BATON_INVALID,
	            "the names of %zu queues have %zu bytes, with one between any two: at most %d "
	            "are allowed",
	            ask->queue_count, len, BATON_RUNNER_QUEUES_MAX);
}

/* Others, who are elsewhere in the file system, have to find it. */
static enum baton_err check_life(struct baton_str life)
{
	char shown[QUOTE_TEXT];
	if (life.len == 0)
		return BATON_OK;
	enum baton_err e = baton_str_name("the path of the life file", life.ptr, life.len,
	                                  BATON_RUNNER_LIFE_MAX, &life);
	if (e == BATON_OK && life.ptr[0] != '/')
		e = fail(BATON_INVALID, "the life file is %s: a path that begins with / is needed",
		         quote(life, shown));
	return e;
}

static enum baton_err check_texts(const struct baton_runner_ask *ask)
{
	enum baton_err e = check_name(ask->name);
	if (e == BATON_OK)
		e = check_text("the endpoint", ask->endpoint);
	if (e == BATON_OK)
		e = check_text("the labels", ask->labels);
	if (e == BATON_OK)
		e = check_queues(ask);
	return e == BATON_OK ? check_life(ask->life) : e;
}

static enum baton_err check_ask(const struct baton_runner_ask *ask)
{
	char is[BATON_DURATION_TEXT];
	enum baton_err e = check_texts(ask);
	if (e == BATON_OK && ask->guardian < 0)
		e = fail(BATON_INVALID, "the guardian is process %" PRId32 ": there is none",
		         ask->guardian);
	if (e == BATON_OK && ask->weight > BATON_RUNNER_WEIGHT_MAX)
		e = fail(BATON_INVALID, "weight is %" PRIu32 ": 0 to %d are allowed", ask->weight,
		         BATON_RUNNER_WEIGHT_MAX);
	if (e == BATON_OK && (ask->ttl.ns < baton_duration_ms(BATON_RUNNER_TTL_MIN_MS).ns ||
	                      ask->ttl.ns > baton_duration_ms(BATON_RUNNER_TTL_MAX_MS).ns))
		e = fail(BATON_INVALID, "ttl is %s: 1s to 1h are allowed",
		         baton_duration_print(ask->ttl, is));
	return e;
}

/* The beats are opened when the first runner is asked about. */
static enum baton_err beats_need(struct baton_store *store)
{
	pthread_mutex_lock(&store->beats_mu);
	enum baton_err e = BATON_OK;
	if (!store->beats.segment.base)
		e = beats_open(&store->beats, store->beats_path[0] ? store->beats_path : NULL);
	pthread_mutex_unlock(&store->beats_mu);
	return e;
}

static enum baton_err enter(struct baton_store *store)
{
	enum baton_err e = store_enter(store);
	return e == BATON_OK ? beats_need(store) : e;
}

/* What is seen of a runner's beat. */
static uint64_t beat_of(const struct baton_store *store, const struct runner_row *row)
{
	return store->ops->beat ? row->beat : beats_read(&store->beats, row->slot);
}

/* Takes the beat away, if it is as it was seen. BATON_NOT_HELD: it is not. */
static enum baton_err beat_stop(struct baton_store *store, const struct runner_row *row,
                                uint64_t seen)
{
	if (store->ops->beat_stop)
		return store->ops->beat_stop(store, row->number, seen);
	return beats_stop(&store->beats, row->slot, seen) ? BATON_OK : BATON_NOT_HELD;
}

static void info_make(struct baton_store *store, const struct runner_row *row,
                      struct baton_runner_info *ret)
{
	*ret = (struct baton_runner_info){
		.number = row->number,
		.guardian = row->guardian,
		.wish = row->wish,
		.owner = row->owner,
		.weight = row->weight,
		.ttl = row->ttl,
		.since = row->since,
		.beat = beat_of(store, row),
	};
	memcpy(ret->name, row->name, sizeof ret->name);
	memcpy(ret->endpoint, row->endpoint, sizeof ret->endpoint);
	memcpy(ret->labels, row->labels, sizeof ret->labels);
	memcpy(ret->host, row->host, sizeof ret->host);
	memcpy(ret->queues, row->queues, sizeof ret->queues);
	memcpy(ret->life, row->life, sizeof ret->life);
	memcpy(ret->state, row->state, sizeof ret->state);
}

/* `s` was checked, so there is room. */
static void copy(char *to, struct baton_str s)
{
	if (s.len > 0)
		memcpy(to, s.ptr, s.len);
	to[s.len] = '\0';
}

static void copy_queues(char *to, const struct baton_runner_ask *ask)
{
	for (size_t i = 0; i < ask->queue_count; i++) {
		if (i > 0)
			*to++ = '/';
		copy(to, ask->queues[i]);
		to += ask->queues[i].len;
	}
}

/* For people; who has none that they can read has none. */
static void copy_host(char to[BATON_NAME_MAX + 1])
{
	char name[BATON_NAME_MAX + 1] = "";
	struct baton_str s;
	if (gethostname(name, sizeof name - 1) == 0 &&
	    baton_str_name("the host's name", name, strlen(name), BATON_NAME_MAX, &s) == BATON_OK)
		copy(to, s);
}

static enum baton_err row_make(struct baton_store *store, const struct baton_runner_ask *ask,
                               struct runner_row *row)
{
	*row = (struct runner_row){.owner = store->owner,
	                           .weight = ask->weight,
	                           .ttl = ask->ttl,
	                           .guardian = ask->guardian,
	                           .wish = BATON_WISH_WORK};
	copy_host(row->host);
	copy_queues(row->queues, ask);
	copy(row->life, ask->life);
	copy(row->name, ask->name);
	copy(row->endpoint, ask->endpoint);
	copy(row->labels, ask->labels);
	return baton_id_random(&row->owner.incarnation);
}

/* Whether the one in the way may be removed, and is: he is dead, or to be replaced. Whether
 * handlers live that he has left behind is not for the store to find out. */
static enum baton_err make_way(struct baton_store *store, const struct runner_row *other,
                               bool replace)
{
	bool dead = baton_owner_is_dead(&store->owner, &other->owner, store->reach);
	if (!replace && (!dead || other->life[0]))
		return BATON_YIELD;
	while (!store->ops->beat && beat_stop(store, other, beat_of(store, other)) != BATON_OK)
		;
	enum baton_err e = store->ops->runner_remove(store, other->number, RUNNER_TAKEN);
	return e == BATON_NOT_HELD ? BATON_OK : e;
}

static enum baton_err add(struct baton_store *store, const struct baton_runner_ask *ask,
                          struct runner_row *row, struct baton_runner_info *ret_other)
{
	struct runner_row other;
	enum baton_err e = store->ops->runner_add(store, row, &other);
	if (e == BATON_YIELD) {
		e = make_way(store, &other, ask->replace);
		if (e == BATON_YIELD && ret_other)
			info_make(store, &other, ret_other);
		if (e == BATON_OK)
			e = store->ops->runner_add(store, row, &other);
	}
	return e;
}

enum baton_err baton_runner_register(struct baton_store *store, const struct baton_runner_ask *ask,
                                     struct baton_runner **ret_runner,
                                     struct baton_runner_info *ret_other)
{
	struct runner_row row;
	enum baton_err e = enter(store);
	if (e == BATON_OK)
		e = check_ask(ask);
	if (e == BATON_OK)
		e = row_make(store, ask, &row);
	if (e != BATON_OK)
		return e;
	struct baton_runner *runner = mem_new(store->alloc, 1, sizeof *runner);
	if (!runner)
		return fail_memory(sizeof *runner, "a runner");
	e = add(store, ask, &row, ret_other);
	if (e != BATON_OK) {
		mem_free(store->alloc, runner, 1, sizeof *runner);
		return e;
	}
	beats_begin(&store->beats, row.slot, &row.owner.incarnation);
	*runner = (struct baton_runner){store, row.number, row.slot, row.owner};
	*ret_runner = runner;
	return BATON_OK;
}

enum baton_err baton_runner_unregister(struct baton_runner *runner)
{
	struct baton_store *store = runner->store;
	enum baton_err e = store_enter(store);
	return e == BATON_OK ? store->ops->runner_remove(store, runner->number, RUNNER_LEFT) : e;
}

void baton_runner_free(struct baton_runner *runner)
{
	if (runner)
		mem_free(runner->store->alloc, runner, 1, sizeof *runner);
}

void baton_runner_leave(struct baton_runner *runner)
{
	if (runner)
		baton_runner_unregister(runner);
	baton_runner_free(runner);
}

bool store_is_known(const struct baton_work_proof *known, size_t count, const char *claim)
{
	size_t i = 0;
	while (i < count && strcmp(known[i].id, claim) != 0)
		i++;
	return i < count;
}

enum baton_err baton_runner_settle(struct baton_runner *runner,
                                   const struct baton_work_proof *known, size_t count)
{
	struct baton_store *store = runner->store;
	enum baton_err e = store_enter(store);
	return e == BATON_OK ? store->ops->runner_settle(store, runner->number, known, count) : e;
}

uint64_t baton_runner_number(const struct baton_runner *runner)
{
	return runner->number;
}

const struct baton_owner *baton_runner_owner(const struct baton_runner *runner)
{
	return &runner->owner;
}

enum baton_err baton_runner_beat(struct baton_runner *runner)
{
	enum baton_err e = store_enter(runner->store);
	if (e != BATON_OK)
		return e;
	if (runner->store->ops->beat)
		return runner->store->ops->beat(runner->store, runner->number);
	return beats_beat(&runner->store->beats, runner->slot, &runner->owner.incarnation)
	               ? BATON_OK
	               : BATON_NOT_HELD;
}

/* Whether nobody has taken its beat away. */
static bool beat_holds(const struct baton_runner *r)
{
	return r->store->ops->beat || beats_holds(&r->store->beats, r->slot, &r->owner.incarnation);
}

/* BATON_NOT_HELD: it was stopped. */
static enum baton_err enter_as(const struct baton_runner *runner)
{
	enum baton_err e = store_enter(runner->store);
	return e == BATON_OK && !beat_holds(runner) ? BATON_NOT_HELD : e;
}

/* Who is stopped meanwhile has proved nothing. */
static enum baton_err mark(struct baton_runner *runner, const struct runner_mark *mark)
{
	enum baton_err e = enter_as(runner);
	if (e == BATON_OK)
		e = runner->store->ops->runner_mark(runner->store, mark);
	return e == BATON_OK ? enter_as(runner) : e;
}

enum baton_err baton_runner_prove(struct baton_runner *runner)
{
	const struct runner_mark nothing = {.number = runner->number};
	return mark(runner, &nothing);
}

enum baton_err baton_runner_tell(struct baton_runner *runner, struct baton_str state)
{
	char text[BATON_NAME_MAX + 1];
	const struct runner_mark told = {.number = runner->number, .state = text};
	enum baton_err e = check_text("the runner's state", state);
	if (e != BATON_OK)
		return e;
	copy(text, state);
	return mark(runner, &told);
}

/* A NUL would be the end of it in some stores. */
static enum baton_err check_report(struct baton_str report)
{
	if (report.len > BATON_RUNNER_REPORT_MAX)
		return fail(BATON_INVALID, "a report of %zu bytes: at most %d are allowed",
		            report.len, BATON_RUNNER_REPORT_MAX);
	if (!utf8_is_valid(report.ptr, report.len) ||
	    (report.len > 0 && memchr(report.ptr, '\0', report.len)))
		return fail(BATON_INVALID, "a report has to be UTF-8 without NULs");
	return BATON_OK;
}

enum baton_err baton_runner_report(struct baton_runner *runner, struct baton_str state,
                                   struct baton_str report)
{
	char text[BATON_NAME_MAX + 1];
	const struct runner_mark told = {
		.number = runner->number,
		.state = text,
		.report = {report.len > 0 ? report.ptr : "", report.len},
	};
	enum baton_err e = check_text("the runner's state", state);
	if (e == BATON_OK)
		e = check_report(report);
	if (e != BATON_OK)
		return e;
	copy(text, state);
	return mark(runner, &told);
}

enum baton_err baton_runner_cancels(struct baton_runner *runner, struct baton_claim_id *ids,
                                    size_t max, size_t *ret_count)
{
	enum baton_err e = store_enter(runner->store);
	*ret_count = 0;
	if (e != BATON_OK || max == 0)
		return e;
	return runner->store->ops->runner_cancels(runner->store, runner->number, ids, max,
	                                          ret_count);
}

enum baton_err baton_runner_reported(struct baton_store *store, uint64_t number, char *text,
                                     struct baton_str *ret_report, struct baton_store_time *ret_at)
{
	struct runner_report report = {.text = text};
	enum baton_err e = store_enter(store);
	if (e == BATON_OK)
		e = store->ops->runner_report(store, number, &report);
	if (e != BATON_OK)
		return e;
	*ret_report = (struct baton_str){text, report.len};
	*ret_at = report.at;
	return BATON_OK;
}

enum baton_err baton_runner_wish(struct baton_store *store, struct baton_str name,
                                 enum baton_runner_wish wish)
{
	char shown[QUOTE_TEXT];
	const struct runner_mark wished = {.name = name, .wish = wish};
	enum baton_err e = store_enter(store);
	if (e == BATON_OK)
		e = check_name(name);
	if (e == BATON_OK && (unsigned)wish - 1 >= BATON_WISH_LEAVE)
		e = fail(BATON_INVALID, "the wish is %d: %d to %d are allowed", (int)wish,
		         BATON_WISH_WORK, BATON_WISH_LEAVE);
	if (e == BATON_OK)
		e = store->ops->runner_mark(store, &wished);
	if (e == BATON_NOT_HELD)
		e = fail(BATON_NOT_FOUND, "there is no runner %s", quote(name, shown));
	return e;
}

enum baton_err baton_runner_list(struct baton_store *store, uint64_t after,
                                 struct baton_runner_info *infos, size_t max, size_t *ret_count)
{
	enum baton_err e = enter(store);
	size_t count = 0;
	while (e == BATON_OK && count < max) {
		struct runner_row row;
		e = store->ops->runner_next(store, after, &row);
		if (e != BATON_OK)
			break;
		info_make(store, &row, &infos[count++]);
		after = row.number;
	}
	if (e == BATON_NOT_FOUND)
		e = BATON_OK;
	if (e == BATON_OK)
		*ret_count = count;
	return e;
}

bool baton_runner_serves(const struct baton_runner_info *info, struct baton_str queue)
{
	const char *at = info->queues;
	while (*at) {
		size_t len = strcspn(at, "/");
		if (baton_str_equal((struct baton_str){at, len}, queue))
			return true;
		at += len;
		at += *at == '/';
	}
	return false;
}

enum baton_err baton_runner_stop(struct baton_store *store, const struct baton_runner_info *seen)
{
	struct runner_row row;
	enum baton_err e = enter(store);
	if (e == BATON_OK && seen->number == 0)
		e = BATON_NOT_HELD;
	if (e == BATON_OK)
		e = store->ops->runner_next(store, seen->number - 1, &row);
	if (e == BATON_NOT_FOUND || (e == BATON_OK && row.number != seen->number))
		return BATON_NOT_HELD;
	return e == BATON_OK ? beat_stop(store, &row, seen->beat) : e;
}

enum baton_err baton_runner_take_over(struct baton_store *store,
                                      const struct baton_runner_info *seen)
{
	enum baton_err e = baton_runner_stop(store, seen);
	return e == BATON_OK ? store->ops->runner_remove(store, seen->number, RUNNER_TAKEN) : e;
}

static enum baton_err check_shards(const struct baton_shard *shards, size_t count)
{
	if (count > BATON_SHARDS_MAX)
		return fail(BATON_INVALID, "%zu shards in one call: at most %d are allowed", count,
		            BATON_SHARDS_MAX);
	for (size_t i = 0; i < count; i++) {
		enum baton_err e = batch_check_queue(shards[i].queue);
		if (e != BATON_OK)
			return e;
	}
	return BATON_OK;
}

static enum baton_err shard_change(struct baton_runner *runner, const struct baton_shard *shards,
                                   size_t count, bool take, struct baton_shard_answer *answers)
{
	struct baton_store *store = runner->store;
	enum baton_err e = enter_as(runner);
	if (e == BATON_OK)
		e = check_shards(shards, count);
	if (e != BATON_OK)
		return e;
	struct shard_change change = {runner->number, shards, count, take, answers};
	return store->ops->shard_change(store, &change);
}

enum baton_err baton_shard_take(struct baton_runner *runner, const struct baton_shard *shards,
                                size_t count, struct baton_shard_answer *answers)
{
	return shard_change(runner, shards, count, true, answers);
}

enum baton_err baton_shard_give(struct baton_runner *runner, const struct baton_shard *shards,
                                size_t count, struct baton_shard_answer *answers)
{
	return shard_change(runner, shards, count, false, answers);
}

enum baton_err baton_shard_list(struct baton_store *store, struct baton_str queue, uint32_t first,
                                struct baton_shard_answer *answers, size_t count)
{
	enum baton_err e = store_enter(store);
	if (e == BATON_OK)
		e = batch_check_queue(queue);
	return e == BATON_OK ? store->ops->shard_list(store, queue, first, answers, count) : e;
}

/* The runner of that number, if it is there. */
static enum baton_err runner_seen(struct baton_store *store, uint64_t number,
                                  struct baton_where *ret)
{
	struct runner_row row;
	if (number == 0)
		return BATON_OK;
	enum baton_err e = store->ops->runner_next(store, number - 1, &row);
	ret->owned = e == BATON_OK && row.number == number;
	if (ret->owned)
		info_make(store, &row, &ret->runner);
	return e == BATON_NOT_FOUND ? BATON_OK : e;
}

enum baton_err baton_lane_where(struct baton_store *store, struct baton_str queue,
                                struct baton_str lane, struct baton_where *ret)
{
	char subject[BATON_LEASE_SUBJECT_MAX + 1];
	struct baton_queue_info info;
	struct baton_shard_answer has = {.runner = 0};
	enum baton_err e = enter(store);
	if (e == BATON_OK)
		e = baton_lane_subject(queue, lane, subject);
	if (e == BATON_OK)
		e = store->ops->queue_get(store, queue, &info);
	if (e != BATON_OK)
		return e;
	struct baton_where where = {.shard = place_of_lane(queue, lane, info.policy.shards)};
	e = store->ops->shard_list(store, queue, where.shard, &has, 1);
	where.fence = has.fence;
	if (e == BATON_OK)
		e = runner_seen(store, has.runner, &where);
	if (e == BATON_OK)
		*ret = where;
	return e;
}

/* Of all shards together. */
static uint64_t claims_of_shards(const struct baton_tick *tick)
{
	uint64_t claims = 0;
	for (size_t i = 0; i < tick->shard_count; i++)
		claims += tick->shards[i].claims;
	return claims;
}

size_t store_tick_claims(const struct baton_tick *tick)
{
	uint64_t claims = claims_of_shards(tick);
	return (size_t)(tick->claims > 0 && tick->claims < claims ? tick->claims : claims);
}

static enum baton_err check_tick(const struct baton_tick *tick)
{
	uint64_t claims = tick->claims > 0 ? tick->claims : claims_of_shards(tick);
	enum baton_err e = check_shards(tick->shards, tick->shard_count);
	if (e == BATON_OK)
		e = store_check_ends(tick->ends, tick->end_count);
	for (size_t i = 0; i < tick->shard_count && e == BATON_OK; i++) {
		if (tick->shards[i].max > BATON_JOIN_MAX)
			e = fail(BATON_INVALID,
			         "%" PRIu32 " batches in one claim: at most %d are allowed",
			         tick->shards[i].max, BATON_JOIN_MAX);
	}
	if (e == BATON_OK && claims > BATON_CLAIMS_MAX)
		e = fail(BATON_INVALID, "%" PRIu64 " claims in one call: at most %d are allowed",
		         claims, BATON_CLAIMS_MAX);
	return e;
}

enum baton_err baton_runner_tick(struct baton_runner *runner, const struct baton_tick *tick,
                                 struct baton_work_claims **ret_claims)
{
	enum baton_err e = enter_as(runner);
	if (e == BATON_OK)
		e = check_tick(tick);
	if (e != BATON_OK)
		return e;
	struct baton_tick joined = *tick;
	AUTO(arena_done) struct arena keys;
	arena_init(&keys, runner->store->alloc);
	e = keys_of_ends(&keys, &joined.ends, joined.end_count);
	return e == BATON_OK ? runner->store->ops->tick(runner->store, runner->number, &joined,
	                                                ret_claims)
	                     : e;
}

enum baton_err baton_runner_more(struct baton_runner *runner, const struct baton_more_ask *ask,
                                 struct baton_work_claims **ret_claims)
{
	const struct baton_shard shard = {.queue = ask->queue};
	enum baton_err e = enter_as(runner);
	if (e == BATON_OK)
		e = check_shards(&shard, 1);
	if (e == BATON_OK && (ask->max == 0 || ask->max > BATON_JOIN_MAX))
		e = fail(BATON_INVALID, "%" PRIu32 " batches in one claim: 1 to %d are allowed",
		         ask->max, BATON_JOIN_MAX);
	if (e != BATON_OK)
		return e;
	*ret_claims = NULL;
	return ask->lane.len == 0
	               ? BATON_OK
	               : runner->store->ops->more(runner->store, runner->number, ask, ret_claims);
}
