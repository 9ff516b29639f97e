/* A process that is killed at whatever moment: what it was told to be done is there, what it was
 * doing is there as a whole or not at all, and fences only grow. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support/child.h"
#include "support/rng.h"
#include "support/skips.h"
#include "support/soak.h"
#include "support/strike.h"
#include "world.h"

/* More than the moments of the life below. */
#define MOMENTS_MAX 5000

#define STRIDE_DAILY 7

#define STEPS 4 /* put, claim, complete, lease */

#define JOBS 6 /* so many stand in one row, if they have no lane */

/* What the process that is killed does. */
struct life {
	const char *lane;
	size_t count;    /* batches   */
	uint32_t claims; /* for these */
	const char *next;
	size_t held; /* by others: as many have the same keys, those of the rows that they share */
};

static const struct life in_a_lane = {"lane", 2, 1, "next", 0};
static const struct life together = {"", JOBS, JOBS, NULL, 0};
static const struct life with_keys = {"", JOBS, JOBS, NULL, JOBS};

/* What the process that is killed was told. */
struct told {
	unsigned steps;
	uint64_t claim, lease; /* fences; 0: none */
};

struct victim {
	struct world *w;
	const struct life *life;
	int told; /* where it writes a struct told after each step */
};

static bool tell(const struct victim *v, const struct told *t)
{
	return write(v->told, t, sizeof *t) == (ssize_t)sizeof *t;
}

/* Each with a key of its own; the last one in that lane. */
static enum baton_err put_keyed(struct baton_store *store, const char *lane)
{
	static const struct baton_str payload = {"a payload", 9};
	struct baton_batch batches[JOBS];
	struct baton_put puts[JOBS];
	char keys[JOBS][8];
	for (size_t i = 0; i < JOBS; i++) {
		snprintf(keys[i], sizeof keys[i], "k%zu", i);
		batches[i] = (struct baton_batch){.queue = BATON_STR("q"),
		                                  .lane = baton_str_z(i + 1 < JOBS ? "" : lane),
		                                  .key = baton_str_z(keys[i]),
		                                  .payloads = &payload,
		                                  .count = 1};
	}
	return baton_work_put(store, batches, JOBS, puts);
}

static enum baton_err put_all(struct baton_store *store, const struct life *life)
{
	return life->held > 0 ? put_keyed(store, "guest")
	                      : put_some(store, "q", life->lane, life->count);
}

static enum baton_err claim_all(struct baton_store *store, const struct life *life,
                                struct baton_work_claims **ret)
{
	return life->claims == 1 ? claim_some(store, "q", 2, ret)
	                         : claim_each(store, "q", life->claims, ret);
}

static enum baton_err complete_all(struct baton_store *store, const struct life *life,
                                   const struct baton_work_claims *claims)
{
	return life->next ? complete(store, &claims->claims[0], life->next)
	                  : complete_each(store, claims, claims->count);
}

static bool live_steps(const struct victim *v, struct baton_store *store)
{
	const struct life *life = v->life;
	struct told t = {.steps = 0};
	struct baton_work_claims *claims = NULL;
	struct baton_lease l;
	if (put_all(store, life) != BATON_OK)
		return false;
	t.steps++;
	if (!tell(v, &t) || claim_all(store, life, &claims) != BATON_OK || !claims ||
	    claims->count != life->claims)
		return false;
	t.steps++;
	t.claim = claims->claims[claims->count - 1].fence.v;
	if (!tell(v, &t) || complete_all(store, life, claims) != BATON_OK)
		return false;
	t.steps++;
	if (!tell(v, &t) || lease(store, "subject", &l) != BATON_OK)
		return false;
	t.steps++;
	t.lease = l.fence.v;
	baton_work_claims_free(claims);
	return tell(v, &t);
}

static int live(void *arg)
{
	const struct victim *v = arg;
	struct baton_store *store = NULL;
	if (world_try_open(v->w, v->w->path, &store) != BATON_OK || !live_steps(v, store))
		return 1;
	baton_store_close(store);
	return 0;
}

/* How many steps can be seen to be done; fails if one is half done. */
static unsigned steps_done(struct baton_store *store, const struct life *life)
{
	const uint64_t n = life->count, held = life->held;
	struct baton_queue_counts q = counts(store, "q");
	struct baton_lease_holder holder;
	bool leased = baton_lease_inspect(store, BATON_STR("subject"), &holder) == BATON_OK;
	uint64_t next = counts(store, "next").ready;
	const struct {
		uint64_t ready, running, done, next;
	} rows[] = {{0, held, 0, 0},
	            {n, held, 0, 0},
	            {0, n + held, 0, 0},
	            {0, held, n, life->next ? 1 : 0}};
	for (unsigned i = 0; i < 4; i++) {
		if (q.ready == rows[i].ready && q.running == rows[i].running &&
		    q.done == rows[i].done && next == rows[i].next && (i == 3 || !leased))
			return leased ? 4 : i;
	}
	fail_msg("ready %d, running %d, done %d, emitted %d", (int)q.ready, (int)q.running,
	         (int)q.done, (int)next);
	return 0;
}

static void fences_go_on(struct world *w, const struct told *t)
{
	struct baton_work_filter claimed = {.queue = BATON_STR("q"),
	                                    .state = BATON_BATCH_CLAIMED,
	                                    .max = 2 * JOBS};
	struct baton_work_page *page = NULL;
	assert_ok(baton_work_list(w->store, &claimed, &page));
	uint64_t seen = 0;
	for (size_t i = 0; i < page->count; i++)
		seen = page->infos[i].fence.v > seen ? page->infos[i].fence.v : seen;
	baton_work_page_free(page);
	world_advance(w, 2000);
	uint64_t fence = next_claim_fence(w->store, "q");
	assert_true(fence > t->claim && fence > seen);
	assert_true(next_fence(w->store, "subject") > t->lease);
	world_advance(w, -2000);
}

/* Returns false when the victim has lived to its end. */
static bool kill_at(struct world *w, const struct life *life, unsigned moment)
{
	int ends[2];
	struct told t = {.steps = 0}, next;
	assert_int_equal(pipe(ends), 0);
	struct victim v = {w, life, ends[1]};
	int code = strike_kill(moment, live, &v);
	close(ends[1]);
	while (read(ends[0], &next, sizeof next) == (ssize_t)sizeof next)
		t = next;
	close(ends[0]);
	if (code == CHILD_SKIP)
		skip();
	world_open(w);
	assert_sound(w->store);
	unsigned done = steps_done(w->store, life);
	if (done < t.steps || done > t.steps + 1)
		fail_msg("moment %u: %u steps were told, and %u are done", moment, t.steps, done);
	fences_go_on(w, &t);
	assert_sound(w->store);
	world_close(w);
	if (code == 0)
		assert_int_equal(t.steps, STEPS);
	else
		assert_int_equal(code, 128 + SIGKILL);
	return code != 0;
}

/* Every moment, or daily those of a sample. */
static unsigned next_moment(struct rng *rng)
{
	return 1 + (unsigned)rng_below(rng, soak_scale(STRIDE_DAILY, 1));
}

static void kill_at_each(struct world *w, const struct life *life, const char *original)
{
	struct rng rng = rng_seed_from_env();
	unsigned moment = 0;
	bool killed = true;
	while (killed) {
		moment += next_moment(&rng);
		assert_true(moment < MOMENTS_MAX);
		if (original)
			world_copy(original, w->path);
		else
			world_remove(w->path);
		killed = kill_at(w, life, moment);
	}
	print_message("# %u moments\n", moment - 1);
	assert_true(moment > 100);
}

static void a_process_may_be_killed_while_it_makes_a_store_and_uses_it(void **state)
{
	kill_at_each(*state, &in_a_lane, NULL);
}

/* Two may have a key, and somebody has each of them once, in a row that they share. */
static void hold_keys(struct baton_store *store)
{
	const struct baton_queue_policy p = {.key_limit = 2};
	const struct baton_work_ask ask = {.queue = BATON_STR("q"),
	                                   .ttl = baton_duration_s(86400),
	                                   .claims = JOBS,
	                                   .max = 1};
	struct baton_work_claims *claims = NULL;
	assert_ok(baton_queue_change(store, BATON_STR("q"), &p, BATON_POLICY_KEY_LIMIT));
	assert_ok(put_keyed(store, ""));
	assert_ok(baton_work_claim(store, &ask, &claims));
	assert_int_equal(claims->count, JOBS);
	baton_work_claims_free(claims);
}

/* A store that is closed, with all that the life does to it done once already. */
static void kill_at_each_of_a_copy(struct world *w, const struct life *life)
{
	struct baton_lease l;
	char original[WORLD_PATH];
	world_file(w, "original", original);
	world_open(w);
	assert_ok(put_some(w->store, "other", "lane", 3));
	assert_ok(lease(w->store, "subject", &l));
	if (life->held > 0)
		hold_keys(w->store);
	world_advance(w, 2000);
	world_close(w);
	world_copy(w->path, original);
	kill_at_each(w, life, original);
}

static void a_process_may_be_killed_while_it_uses_a_store(void **state)
{
	kill_at_each_of_a_copy(*state, &in_a_lane);
}

static void a_process_may_be_killed_while_its_jobs_share_a_row(void **state)
{
	kill_at_each_of_a_copy(*state, &together);
}

/* The jobs that others have leave their row, each for one that wants the same key. */
static void a_process_may_be_killed_while_jobs_leave_a_row_for_their_keys(void **state)
{
	kill_at_each_of_a_copy(*state, &with_keys);
}

/* Has the store open until the test hangs up. */
static int keep_open(int channel, void *arg)
{
	struct world *w = arg;
	struct baton_store *store = NULL;
	char message[8];
	if (world_try_open(w, w->path, &store) != BATON_OK ||
	    put_some(store, "other", "", 1) != BATON_OK)
		return 1;
	channel_send(channel, "open");
	while (channel_receive(channel, message, sizeof message))
		;
	bool works = put_some(store, "other", "", 1) == BATON_OK;
	baton_store_close(store);
	return works ? 0 : 1;
}

static void others_who_have_the_store_open_go_on(void **state)
{
	struct world *w = *state;
	struct rng rng = rng_seed_from_env();
	bool killed = true;
	for (unsigned moment = 1; killed; moment += next_moment(&rng)) {
		struct child other;
		char message[8];
		world_remove(w->path);
		child_start(&other, keep_open, w);
		assert_true(channel_receive(other.channel, message, sizeof message));
		killed = kill_at(w, &in_a_lane, moment);
		child_hang_up(&other);
		assert_int_equal(child_reap(&other), 0);
	}
}

int main(void)
{
	skips_repair();
	const struct CMUnitTest tests[] = {
		WORLD_TEST(a_process_may_be_killed_while_it_makes_a_store_and_uses_it),
		WORLD_TEST(a_process_may_be_killed_while_it_uses_a_store),
		WORLD_TEST(a_process_may_be_killed_while_its_jobs_share_a_row),
		WORLD_TEST(a_process_may_be_killed_while_jobs_leave_a_row_for_their_keys),
		WORLD_TEST(others_who_have_the_store_open_go_on),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
