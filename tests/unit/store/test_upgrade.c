/* Databases that an earlier version has left: all that is in them is there, and whoever is at it
 * when they are brought to this version changes nothing about that. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <baton/schedule.h>
#include <baton/shard.h>

#include "past_functions.h"
#include "served.h"
#include "support/child.h"
#include "support/soak.h"
#include "world.h"

#define TEXT_MAX 16384
#define HOUR_MS (3600 * 1000)
#define FIRST_WITH_KEYS 5
#define FIRST_WITH_BULK 6
#define FIRST_WITH_KEYS_TOGETHER 12

static int newest(void)
{
	int version = 0;
	while (baton_store_tables(version + 1))
		version++;
	return version;
}

static const char with_rows_of_their_own[] =
	"SELECT baton.melt(ARRAY(SELECT first FROM baton.bulk))";

static const char with_keys_of_their_own[] =
	"SELECT baton.melt(ARRAY(SELECT first FROM baton.bulk WHERE keys IS NOT NULL))";

/* All that both have, into the tables of the earlier version. */
static const char copy_rows[] =
	"DO $$ DECLARE t text; columns text; BEGIN "
	"FOR t IN SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'baton'::regnamespace "
	"AND c.relkind = 'r' ORDER BY c.relname = 'report' LOOP "
	"SELECT string_agg(quote_ident(a.attname), ', ') INTO columns FROM pg_attribute a "
	"JOIN pg_attribute b ON b.attname = a.attname AND b.attnum > 0 AND NOT b.attisdropped "
	"WHERE a.attrelid = ('baton.' || t)::regclass AND a.attnum > 0 "
	"AND b.attrelid = ('later.' || t)::regclass; "
	"EXECUTE format('INSERT INTO baton.%I(%s) OVERRIDING SYSTEM VALUE SELECT %s "
	"FROM later.%I', t, columns, columns, t); END LOOP; "
	"PERFORM setval('baton.seq', s.last_value, s.is_called) FROM later.seq s; "
	"PERFORM setval(pg_get_serial_sequence('baton.queue', 'id'), (SELECT max(id) FROM "
	"baton.queue)); "
	"UPDATE baton.state SET place = regexp_replace(place, '[.][0-9]+/', '.' || "
	"'baton.state'::regclass::oid || '/'); END $$";

/* Before there were rows for these. */
static const char count_in_place[] =
	"UPDATE baton.queue q SET ready = q.ready + t.ready, delayed = q.delayed + t.delayed, "
	"retrying = q.retrying + t.retrying, claimed = q.claimed + t.claimed, "
	"dead = q.dead + t.dead, kept = q.kept + t.kept, done = q.done + t.done, "
	"failed = q.failed + t.failed, top = t.top, floor = t.floor "
	"FROM (SELECT DISTINCT ON (queue) * FROM later.tally ORDER BY queue, n DESC) t "
	"WHERE q.id = t.queue; "
	"UPDATE baton.lease l SET counter = greatest(l.counter, k.n) FROM (SELECT DISTINCT ON "
	"(subject) * FROM later.counter ORDER BY subject, fence DESC, n DESC) k "
	"WHERE l.subject = k.subject AND l.fence = k.fence; "
	"INSERT INTO baton.answer(head, fence, until, state, token) SELECT h.head, h.fence, "
	"r.until, r.state, substring(r.tokens FROM (16 * h.at - 15)::int FOR 16) "
	"FROM later.reply r CROSS JOIN LATERAL unnest(r.heads, r.fences) WITH ORDINALITY "
	"h(head, fence, at)";

/* None of them does anything but fail, and all may call them. */
static void go_back_to_functions(const char *where, int version)
{
	char text[400];
	for (size_t i = 0; i < sizeof past_functions / sizeof past_functions[0]; i++) {
		snprintf(text, sizeof text,
		         "CREATE FUNCTION baton.%s LANGUAGE plpgsql AS "
		         "'BEGIN RAISE ''an old function''; END'",
		         past_functions[i].head);
		if (past_functions[i].since <= version)
			cluster_run(where, text);
	}
	if (version >= 2)
		cluster_run(where, past_rest);
}

/* All functions and views, and who may what with these and the tables. */
static long long outlines_of(const char *where)
{
	return cluster_number(
		where,
		"SELECT hashtextextended(string_agg(x.line, '; ' ORDER BY x.line), 0) FROM ("
		"SELECT p.oid::regprocedure || p.prosrc || p.prosecdef || p.provolatile::text || "
		"coalesce(p.proconfig::text, '') "
		"AS line FROM pg_proc p WHERE p.pronamespace = 'baton'::regnamespace UNION ALL "
		"SELECT c.relname || pg_get_viewdef(c.oid) FROM pg_class c WHERE c.relkind = 'v' "
		"AND c.relnamespace = 'baton'::regnamespace UNION ALL "
		"SELECT t.tgname || pg_get_triggerdef(t.oid) FROM pg_trigger t "
		"WHERE NOT t.tgisinternal UNION ALL "
		"SELECT p.oid::regprocedure || a.grantee::regrole::text || a.privilege_type "
		"FROM pg_proc p CROSS JOIN aclexplode(coalesce(p.proacl, acldefault('f', "
		"p.proowner))) a WHERE p.pronamespace = 'baton'::regnamespace UNION ALL "
		"SELECT c.relname || a.grantee::regrole::text || a.privilege_type FROM pg_class c "
		"CROSS JOIN aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a "
		"WHERE c.relkind IN ('r', 'v', 'S') AND c.relnamespace = 'baton'::regnamespace "
		"UNION ALL SELECT a.grantee::regrole::text || a.privilege_type FROM pg_namespace n "
		"CROSS JOIN aclexplode(n.nspacl) a WHERE n.nspname = 'baton') x");
}

/* Makes the store, which is closed, one of that version. */
static void go_back(const char *where, int version)
{
	char text[100];
	if (version < FIRST_WITH_BULK)
		cluster_run(where, with_rows_of_their_own);
	if (version < FIRST_WITH_KEYS_TOGETHER)
		cluster_run(where, with_keys_of_their_own);
	cluster_run(where, "ALTER SCHEMA baton RENAME TO later");
	for (int step = 1; step <= version; step++)
		cluster_run(where, baton_store_tables(step));
	go_back_to_functions(where, version);
	cluster_run(where, copy_rows);
	if (version < FIRST_WITH_BULK)
		cluster_run(where, count_in_place);
	snprintf(text, sizeof text, "UPDATE baton.state SET version = %d", version);
	cluster_run(where, text);
	cluster_run(where, "SET client_min_messages = warning; DROP SCHEMA later CASCADE");
}

static long long version_of(const char *where)
{
	return cluster_number(where, "SELECT version FROM baton.state");
}

/* What was done before the change, and has to hold after it. */
struct past {
	const char *where;
	struct fake_clock clock;
	struct baton_store *store;
	int version;
	struct baton_work_claims *live, *over, *done; /* a claim that lasts, one that has expired,
	                                                 and one that was completed */
	struct baton_lease lease;
	struct baton_put source;
	char jobs[TEXT_MAX];
};

static enum baton_err open_past(struct past *p)
{
	const struct baton_store_options options = {.where = baton_str_z(p->where),
	                                            .owner = BATON_STR("tester"),
	                                            .clock = &p->clock.clock};
	return baton_store_open(&options, &p->store);
}

static void advance(struct past *p, int64_t ms)
{
	fake_clock_advance(&p->clock, baton_duration_ms(ms));
}

static struct baton_work_claims *claim_for(struct past *p, const char *queue, uint32_t claims,
                                           int64_t ttl_ms)
{
	struct baton_work_claims *given = NULL;
	const struct baton_work_ask ask = {.queue = baton_str_z(queue),
	                                   .ttl = baton_duration_ms(ttl_ms),
	                                   .claims = claims,
	                                   .max = 1};
	assert_ok(baton_work_claim(p->store, &ask, &given));
	assert_non_null(given);
	assert_int_equal(given->count, claims);
	return given;
}

static void claim_and_end(struct past *p, const char *queue, enum baton_work_how how)
{
	struct baton_work_claims *given = claim_for(p, queue, 1, 1000);
	const struct baton_work_end end = {.proof = given->claims[0].proof,
	                                   .how = how,
	                                   .delay = baton_duration_s(how == BATON_FAIL ? 60 : 0)};
	struct baton_work_ended ended;
	assert_ok(baton_work_end(p->store, &end, 1, &ended));
	assert_ok(ended.err);
	baton_work_claims_free(given);
}

static struct baton_put put_one(struct past *p, struct baton_batch batch)
{
	static const struct baton_str payload = {"one", 3};
	struct baton_put put;
	batch.payloads = &payload;
	batch.count = 1;
	assert_ok(baton_work_put(p->store, &batch, 1, &put));
	return put;
}

static struct baton_put put_source(struct past *p)
{
	return put_one(p, (struct baton_batch){.queue = BATON_STR("q"),
	                                       .lane = BATON_STR("s"),
	                                       .source = BATON_STR("key")});
}

static void fill_policies(struct past *p)
{
	const struct baton_queue_policy kept = {.keep = baton_duration_s(3600)};
	const struct baton_queue_policy hold = {.on_dead = BATON_ON_DEAD_HOLD};
	assert_ok(baton_queue_change(p->store, BATON_STR("kept"), &kept, BATON_POLICY_KEEP));
	assert_ok(baton_queue_change(p->store, BATON_STR("hold"), &hold, BATON_POLICY_ON_DEAD));
}

/* In lanes: claimed, expired, waiting for its next attempt, dead, holding its lane, delayed. */
static void fill_lanes(struct past *p)
{
	assert_ok(put_some(p->store, "q", "live", 3));
	p->live = claim_for(p, "q", 1, HOUR_MS);
	assert_ok(put_some(p->store, "q", "over", 2));
	p->over = claim_for(p, "q", 1, 1000);
	assert_ok(put_some(p->store, "q", "retry", 2));
	claim_and_end(p, "q", BATON_FAIL);
	assert_ok(put_some(p->store, "q", "dead", 1));
	claim_and_end(p, "q", BATON_REJECT);
	assert_ok(put_some(p->store, "hold", "held", 2));
	claim_and_end(p, "hold", BATON_REJECT);
	put_one(p, (struct baton_batch){.queue = BATON_STR("q"),
	                                .lane = BATON_STR("late"),
	                                .delay = baton_duration_s(60)});
	p->source = put_source(p);
}

/* Without: alone, together, done and kept. */
static void fill_others(struct past *p)
{
	assert_ok(put_some(p->store, "alone", "", 2));
	claim_and_end(p, "alone", BATON_SNOOZE);
	assert_ok(put_some(p->store, "bulk", "", 7));
	baton_work_claims_free(claim_for(p, "bulk", 2, HOUR_MS));
	claim_and_end(p, "bulk", BATON_COMPLETE);
	assert_ok(put_some(p->store, "kept", "", 1));
	p->done = claim_for(p, "kept", 1, 1000);
	assert_ok(complete(p->store, &p->done->claims[0], NULL));
	for (int i = 0; i < 3 && p->version >= FIRST_WITH_KEYS; i++)
		put_one(p,
		        (struct baton_batch){.queue = BATON_STR("keyed"), .key = BATON_STR("k")});
	if (p->version >= FIRST_WITH_KEYS)
		baton_work_claims_free(claim_for(p, "keyed", 1, HOUR_MS));
}

/* A runner that has claimed something, and is dead. */
static int run_and_die(int channel, void *arg)
{
	struct past *p = arg;
	const struct baton_runner_ask ask = {.name = BATON_STR("runner"),
	                                     .weight = 1,
	                                     .ttl = baton_duration_s(10)};
	const struct baton_queue_policy one = {.shards = 1};
	const struct baton_shard shard = {BATON_STR("r"), 0, 1, 1};
	struct baton_shard_answer answer;
	const struct baton_tick tick = {.shards = &shard, .shard_count = 1, .owned = &answer};
	struct baton_work_claims *claims = NULL;
	struct baton_runner *runner = NULL;
	(void)channel;
	if (open_past(p) != BATON_OK ||
	    baton_queue_change(p->store, BATON_STR("r"), &one, BATON_POLICY_SHARDS) != BATON_OK ||
	    put_some(p->store, "r", "x", 2) != BATON_OK ||
	    baton_runner_register(p->store, &ask, &runner, NULL) != BATON_OK ||
	    baton_shard_take(runner, &shard, 1, &answer) != BATON_OK ||
	    baton_runner_tick(runner, &tick, &claims) != BATON_OK)
		return 1;
	return claims && claims->count == 1 ? 0 : 2;
}

static void fill_runner(struct past *p)
{
	struct child c;
	child_start(&c, run_and_die, p);
	assert_int_equal(child_reap(&c), 0);
}

/* All jobs, as text. */
static void list_jobs(struct baton_store *store, char text[TEXT_MAX])
{
	struct baton_work_page *page = NULL;
	const struct baton_work_filter filter = {.max = BATON_LIST_MAX};
	size_t len = 0;
	assert_ok(baton_work_list(store, &filter, &page));
	assert_true(page->count > 0 && page->next == 0);
	for (size_t i = 0; i < page->count; i++) {
		const struct baton_work_info *w = &page->infos[i];
		len += (size_t)snprintf(text + len, TEXT_MAX - len,
		                        "%s %" PRIu64 " %.*s/%.*s %d %u %.*s %" PRIu64 "\n",
		                        w->batch.id.text, w->batch.seq, (int)w->queue.len,
		                        w->queue.ptr, (int)w->lane.len, w->lane.ptr, (int)w->state,
		                        w->batch.attempt, (int)w->claim.len, w->claim.ptr,
		                        w->fence.v);
		assert_true(len < TEXT_MAX);
	}
	baton_work_page_free(page);
}

static void fill(struct past *p)
{
	const struct baton_schedule daily = {.name = BATON_STR("daily"),
	                                     .cron = BATON_STR("0 5 * * *"),
	                                     .queue = BATON_STR("ticks")};
	fill_runner(p);
	assert_ok(open_past(p));
	fill_policies(p);
	fill_lanes(p);
	fill_others(p);
	assert_ok(baton_schedule_set(p->store, &daily));
	assert_ok(lease(p->store, "subject", &p->lease));
	assert_sound(p->store);
	list_jobs(p->store, p->jobs);
	baton_store_close(p->store);
	p->store = NULL;
}

static void assert_proofs_hold(struct past *p)
{
	const struct baton_lease_proof proof = {BATON_STR("subject"), &p->lease};
	struct baton_work_renewal renewal;
	enum baton_err answer;
	assert_ok(baton_lease_renew(p->store, &proof, 1, baton_duration_ms(1000), false, &answer));
	assert_ok(answer);
	assert_true(next_fence(p->store, "subject") > p->lease.fence.v);
	assert_ok(baton_work_renew(p->store, &p->live->claims[0].proof, 1, baton_duration_s(60),
	                           &renewal));
	assert_ok(renewal.err);
	assert_ok(complete(p->store, &p->live->claims[0], NULL));
	assert_ok(complete(p->store, &p->done->claims[0], NULL));
	struct baton_put again = put_source(p);
	assert_true(again.existing);
	assert_string_equal(again.id.text, p->source.id.text);
}

static void assert_schedule_ticks(struct past *p)
{
	size_t count = 0;
	assert_ok(baton_schedule_tick(p->store, &count, NULL));
	assert_int_equal(count, 0);
	advance(p, 24 * HOUR_MS);
	assert_ok(baton_schedule_tick(p->store, &count, NULL));
	assert_int_equal(count, 1);
	assert_int_equal(counts(p->store, "ticks").ready, 1);
}

/* What it had claimed comes first, as a second attempt. */
static void assert_runner_is_replaced(struct past *p)
{
	struct baton_runner_info dead;
	size_t count;
	struct baton_runner *runner = NULL;
	const struct baton_runner_ask ask = {.name = BATON_STR("runner"),
	                                     .weight = 1,
	                                     .ttl = baton_duration_s(10)};
	const struct baton_shard shard = {BATON_STR("r"), 0, 1, 1};
	struct baton_shard_answer answer;
	assert_ok(baton_runner_list(p->store, 0, &dead, 1, &count));
	assert_int_equal(count, 1);
	assert_ok(baton_runner_take_over(p->store, &dead));
	assert_ok(baton_runner_register(p->store, &ask, &runner, NULL));
	assert_ok(baton_runner_report(runner, BATON_STR("attached"), BATON_STR("a report")));
	assert_ok(baton_shard_take(runner, &shard, 1, &answer));
	assert_ok(answer.err);
	advance(p, HOUR_MS);
	struct baton_work_end end = {.how = BATON_COMPLETE};
	for (uint32_t i = 0; i < 2; i++) {
		struct baton_work_claims *claims = NULL;
		struct baton_work_ended ended;
		const struct baton_tick tick = {.ends = &end,
		                                .end_count = i,
		                                .ended = &ended,
		                                .shards = &shard,
		                                .shard_count = 1,
		                                .owned = &answer};
		assert_ok(baton_runner_tick(runner, &tick, &claims));
		assert_non_null(claims);
		assert_int_equal(claims->claims[0].batches[0].attempt, 2 - i);
		end.proof = claims->claims[0].proof;
		baton_work_claims_free(claims);
	}
	baton_runner_leave(runner);
}

/* The last batch of each lane that was completed. */
struct lanes {
	char names[16][32];
	uint64_t seqs[16];
	size_t count;
};

static void assert_next_of(struct lanes *l, const struct baton_work_claim *c)
{
	size_t i = 0;
	while (i < l->count && (strlen(l->names[i]) != c->lane.len ||
	                        memcmp(l->names[i], c->lane.ptr, c->lane.len) != 0))
		i++;
	assert_true(i < 16);
	if (i == l->count)
		snprintf(l->names[l->count++], 32, "%.*s", (int)c->lane.len, c->lane.ptr);
	assert_true(c->batches[0].seq > l->seqs[i]);
	l->seqs[i] = c->batches[0].seq;
}

static unsigned finish(struct past *p, const char *queue)
{
	struct lanes lanes = {.count = 0};
	unsigned count = 0;
	for (;;) {
		struct baton_work_claims *given = NULL;
		assert_ok(claim_some(p->store, queue, 1, &given));
		if (!given)
			return count;
		if (given->claims[0].lane.len > 0)
			assert_next_of(&lanes, &given->claims[0]);
		assert_ok(complete(p->store, &given->claims[0], NULL));
		baton_work_claims_free(given);
		count++;
	}
}

static void revive_all(struct past *p)
{
	struct baton_work_page *page = NULL;
	const struct baton_work_filter filter = {.max = BATON_LIST_MAX, .state = BATON_BATCH_DEAD};
	assert_ok(baton_work_list(p->store, &filter, &page));
	assert_int_equal(page->count, 2);
	for (size_t i = 0; i < page->count; i++) {
		enum baton_err answer;
		assert_ok(baton_work_revive(p->store, &page->infos[i].batch.id, 1, &answer));
		assert_ok(answer);
	}
	baton_work_page_free(page);
}

/* Hours later: nothing waits any more, and nothing is held. */
static void assert_all_comes_out(struct past *p)
{
	const bool keys = p->version >= FIRST_WITH_KEYS;
	revive_all(p);
	assert_int_equal(finish(p, "q"), 2 + 2 + 2 + 1 + 1 + 1);
	assert_int_equal(complete(p->store, &p->over->claims[0], NULL), BATON_NOT_HELD);
	assert_int_equal(finish(p, "hold"), 2);
	assert_int_equal(finish(p, "alone"), 2);
	assert_int_equal(finish(p, "bulk"), 6);
	if (keys)
		assert_int_equal(finish(p, "keyed"), 3);
	assert_ok(put_some(p->store, "new", "", 5));
	assert_int_equal(finish(p, "new"), 5);
	for (size_t i = 0; i < 5; i++) {
		static const char *const names[] = {"q", "hold", "alone", "bulk", "keyed"};
		struct baton_queue_counts c = counts(p->store, names[i]);
		assert_int_equal(c.ready + c.delayed + c.running + c.dead, 0);
	}
	assert_int_equal(counts(p->store, "kept").done, 1);
}

static void past_done(struct past *p)
{
	baton_work_claims_free(p->live);
	baton_work_claims_free(p->over);
	baton_work_claims_free(p->done);
	baton_store_close(p->store);
	fake_clock_done(&p->clock);
}

static void live_through_the_change(struct bench *b, int version)
{
	struct past p = {.where = b->where, .version = version};
	char jobs[TEXT_MAX];
	fake_clock_init(&p.clock, (struct baton_mono){1});
	fill(&p);
	long long outlines = outlines_of(b->where);
	go_back(b->where, version);
	assert_ok(open_past(&p));
	assert_int_equal(version_of(b->where), newest());
	assert_true(outlines_of(b->where) == outlines);
	if (version >= 2)
		assert_true(cluster_number(b->where, "SELECT count(*) FROM public.mine") > 0);
	assert_sound(p.store);
	list_jobs(p.store, jobs);
	assert_string_equal(jobs, p.jobs);
	assert_proofs_hold(&p);
	assert_sound(p.store);
	assert_runner_is_replaced(&p);
	assert_schedule_ticks(&p);
	assert_all_comes_out(&p);
	assert_sound(p.store);
	past_done(&p);
}

static void all_that_an_earlier_version_has_stored_is_there(void **state)
{
	struct bench *b = *state;
	const int every = (int)soak_scale((unsigned)newest() - 2, 1);
	baton_store_close(b->store);
	for (int version = 1; version < newest(); version += every) {
		struct bench old;
		cluster_database(served_cluster(), old.where, sizeof old.where);
		baton_store_close(open_as(old.where));
		live_through_the_change(&old, version);
		cluster_drop(served_cluster(), old.where);
	}
	b->store = open_as(b->where);
}

static void assert_lane_of_next(struct baton_store *store, const char *expected)
{
	struct baton_work_claims *claims = NULL;
	char lanes[64] = "";
	assert_ok(claim_each(store, "keyed", 8, &claims));
	for (size_t i = 0; claims && i < claims->count; i++)
		snprintf(lanes + strlen(lanes), sizeof lanes - strlen(lanes), "%.*s ",
		         (int)claims->claims[i].lane.len, claims->claims[i].lane.ptr);
	assert_string_equal(lanes, expected);
	for (size_t i = 0; claims && i < claims->count; i++)
		assert_ok(complete(store, &claims->claims[i], NULL));
	baton_work_claims_free(claims);
	assert_sound(store);
}

/* Claimed, and ready: lanes wait for these keys now. */
static void keys_of_version_10_hold_up_lanes_that_want_them(void **state)
{
	struct bench *b = *state;
	struct past p = {.where = b->where, .version = 10};
	struct baton_batch claimed = {.queue = BATON_STR("keyed"), .key = BATON_STR("k")};
	struct baton_batch ready = {.queue = BATON_STR("keyed"), .key = BATON_STR("l")};
	fake_clock_init(&p.clock, (struct baton_mono){1});
	baton_store_close(b->store);
	assert_ok(open_past(&p));
	put_one(&p, claimed);
	p.live = claim_for(&p, "keyed", 1, HOUR_MS);
	put_one(&p, ready);
	baton_store_close(p.store);
	go_back(b->where, 10);
	assert_ok(open_past(&p));
	claimed.lane = BATON_STR("a");
	put_one(&p, claimed);
	ready.lane = BATON_STR("b");
	put_one(&p, ready);
	put_one(&p, (struct baton_batch){.queue = BATON_STR("keyed"),
	                                 .lane = BATON_STR("c"),
	                                 .key = BATON_STR("m")});
	assert_sound(p.store);
	assert_lane_of_next(p.store, " c "); /* that of l without a lane, and m */
	assert_lane_of_next(p.store, "b ");
	assert_lane_of_next(p.store, "");
	assert_ok(complete(p.store, &p.live->claims[0], NULL));
	assert_lane_of_next(p.store, "a ");
	past_done(&p);
	b->store = open_as(b->where);
}

/* As another process: its patience outlasts whatever the test does. */
static struct baton_store *open_patiently(const char *where)
{
	struct baton_store *store = NULL;
	const struct baton_store_options options = {.where = baton_str_z(where),
	                                            .patience = baton_duration_s(60)};
	return baton_store_open(&options, &store) == BATON_OK ? store : NULL;
}

static int open_when_told(int channel, void *arg)
{
	char word[16];
	if (!channel_receive(channel, word, sizeof word))
		return 1;
	struct baton_store *store = open_patiently(arg);
	bool put = store && put_into(store, "x", "y") == BATON_OK;
	baton_store_close(store);
	return put ? 0 : 1;
}

static void of_several_who_bring_it_up_to_date_at_once_each_succeeds(void **state)
{
	enum {
		CROWD = 4
	};
	struct bench *b = *state;
	struct child crowd[CROWD];
	baton_store_close(b->store);
	go_back(b->where, 1);
	for (int i = 0; i < CROWD; i++)
		child_start(&crowd[i], open_when_told, b->where);
	for (int i = 0; i < CROWD; i++)
		channel_send(crowd[i].channel, "go");
	for (int i = 0; i < CROWD; i++)
		assert_int_equal(child_reap(&crowd[i]), 0);
	assert_int_equal(version_of(b->where), newest());
	b->store = open_as(b->where);
	for (int i = 0; i < CROWD; i++)
		assert_next(b, "y");
}

/* Until somebody waits for a lock on the table. */
static void await_waiter(const struct bench *b, const char *table)
{
	char text[200];
	snprintf(text, sizeof text,
	         "SELECT count(*) FROM pg_locks l JOIN pg_class c ON c.oid = l.relation "
	         "AND c.relname = '%s' WHERE NOT l.granted AND l.database = (SELECT oid FROM "
	         "pg_database WHERE datname = current_database())",
	         table);
	while (cluster_number(b->where, text) == 0)
		;
}

static int open_at_once(int channel, void *arg)
{
	(void)channel;
	struct baton_store *store = open_patiently(arg);
	baton_store_close(store);
	return store ? 0 : 1;
}

/* Step 4 is done then, and step 5 waits for the table. */
static void who_is_killed_between_two_steps_has_done_none(void **state)
{
	struct bench *b = *state;
	struct child c;
	PGconn *user = user_of(b);
	baton_store_close(b->store);
	go_back(b->where, 3);
	assert_true(does(user, "BEGIN; LOCK TABLE baton.queue IN ACCESS SHARE MODE"));
	child_start(&c, open_at_once, b->where);
	await_waiter(b, "queue");
	kill(c.pid, SIGKILL);
	assert_int_equal(child_reap(&c), 128 + SIGKILL);
	assert_true(does(user, "COMMIT"));
	/* Its transaction ends when the server finds that nobody is there any more. */
	assert_true(does(user, "SELECT pg_advisory_lock(1650553967, -1)"));
	assert_int_equal(version_of(b->where), 3);
	assert_int_equal(cluster_number(b->where, "SELECT count(*) FROM pg_class WHERE "
	                                          "relname = 'report'"),
	                 0);
	PQfinish(user);
	b->store = open_as(b->where);
	assert_int_equal(version_of(b->where), newest());
}

/* He has read the version, as those do who write. */
static void who_is_in_the_middle_of_something_is_waited_for(void **state)
{
	struct bench *b = *state;
	struct baton_store *store = NULL;
	const struct baton_store_options options = {.where = baton_str_z(b->where),
	                                            .patience = baton_duration_ms(50)};
	PGconn *user = user_of(b);
	baton_store_close(b->store);
	go_back(b->where, newest() - 1);
	assert_true(does(user, "BEGIN; SELECT version FROM baton.state"));
	assert_int_equal(baton_store_open(&options, &store), BATON_BUSY);
	assert_true(does(user, "COMMIT"));
	PQfinish(user);
	b->store = open_as(b->where);
}

/* Who works with the tables has locked one of them, and waits for the one that is locked. */
static void who_locks_the_tables_in_another_order_is_given_way(void **state)
{
	struct bench *b = *state;
	struct child c;
	PGconn *user = user_of(b), *other = user_of(b);
	baton_store_close(b->store);
	go_back(b->where, 3);
	cluster_run(b->where, "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET deadlock_timeout "
	                      "= ''10ms''', current_database()); END $$");
	assert_true(does(user, "SET deadlock_timeout = '1h'; BEGIN; "
	                       "LOCK TABLE baton.queue IN ACCESS SHARE MODE"));
	assert_true(does(other, "BEGIN; CREATE TABLE baton.report()"));
	child_start(&c, open_at_once, b->where);
	while (cluster_number(b->where, "SELECT count(*) FROM pg_locks WHERE NOT granted "
	                                "AND locktype = 'transactionid'") == 0)
		;
	assert_int_equal(PQsendQuery(user, "SELECT version FROM baton.state"), 1);
	await_waiter(b, "state");
	assert_true(does(other, "ROLLBACK"));
	PGresult *r = PQgetResult(user);
	assert_int_equal(PQresultStatus(r), PGRES_TUPLES_OK);
	assert_string_equal(PQgetvalue(r, 0, 0), "3");
	PQclear(r);
	assert_null(PQgetResult(user));
	assert_true(does(user, "COMMIT"));
	assert_int_equal(child_reap(&c), 0);
	PQfinish(user);
	PQfinish(other);
	cluster_run(b->where, "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET "
	                      "deadlock_timeout', current_database()); END $$");
	b->store = open_as(b->where);
}

static void who_was_there_before_does_not_write_to_newer_tables(void **state)
{
	struct bench *b = *state;
	struct baton_queue_info info;
	assert_int_equal(put_into(b->store, "x", "1"), BATON_OK);
	cluster_run(b->where, "UPDATE baton.state SET version = version + 1");
	assert_int_equal(put_into(b->store, "x", "2"), BATON_STORAGE);
	assert_detail("it has to be a newer one");
	assert_int_equal(baton_queue_get(b->store, BATON_STR("q"), &info), BATON_STORAGE);
	cluster_run(b->where, "UPDATE baton.state SET version = version - 1");
	assert_int_equal(put_into(b->store, "x", "3"), BATON_OK);
	assert_next(b, "1");
	assert_next(b, "3");
}

static void who_may_not_change_the_tables_is_told_what_to_do(void **state)
{
	struct bench *b = *state;
	struct baton_store *store = NULL;
	char where[400];
	snprintf(where, sizeof where, "%s", b->where);
	memcpy(strstr(where, "user=baton"), "user=guest", 10);
	const struct baton_store_options options = {.where = baton_str_z(where)};
	cluster_run(b->where, "CREATE ROLE guest LOGIN IN ROLE "
	                      "baton_runner");
	baton_store_close(b->store);
	go_back(b->where, newest() - 1);
	assert_int_equal(baton_store_open(&options, &store), BATON_STORAGE);
	assert_detail("baton migrate has to be run by their owner");
	b->store = open_as(b->where);
	assert_int_equal(baton_store_open(&options, &store), BATON_OK);
	baton_store_close(store);
	cluster_run(b->where, "DROP OWNED BY guest; DROP ROLE guest");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SERVED_TEST(all_that_an_earlier_version_has_stored_is_there),
		SERVED_TEST(keys_of_version_10_hold_up_lanes_that_want_them),
		SERVED_TEST(of_several_who_bring_it_up_to_date_at_once_each_succeeds),
		SERVED_TEST(who_is_killed_between_two_steps_has_done_none),
		SERVED_TEST(who_is_in_the_middle_of_something_is_waited_for),
		SERVED_TEST(who_locks_the_tables_in_another_order_is_given_way),
		SERVED_TEST(who_was_there_before_does_not_write_to_newer_tables),
		SERVED_TEST(who_may_not_change_the_tables_is_told_what_to_do),
	};
	return served_main("upgrade", tests, sizeof tests / sizeof tests[0]);
}
