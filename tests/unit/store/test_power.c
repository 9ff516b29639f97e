/* The power fails at whatever moment: a safe store has everything that it acknowledged, a relaxed
 * one may have lost its last moment, and neither hands out a fence again. */
#include <stdio.h>
#include <string.h>

#include <sqlite3.h>

#include "disk.h"
#include "support/skips.h"
#include "support/soak.h"
#include "world.h"

#define OPS_MAX 4000
#define OPS_DAILY 60
#define HELD_MAX 64

/* Few, so that what is in the log gets into the file often. */
#define LOG_PAGES 12

/* What tells the moments of a store from each other. */
struct moment {
	uint64_t ready, delayed, running, done, failed, leases;
};

struct model {
	struct world *w;
	struct rng rng;
	char image[WORLD_PATH];
	struct moment moments[OPS_MAX + 1]; /* after each operation; the first: before all */
	size_t count;                       /* operations */
	size_t sure;           /* of these survive: in a relaxed store up to the last fence */
	uint64_t claim, lease; /* the last fences that were acknowledged */
	char subject[16];      /* of that lease */
	unsigned leases;
	struct baton_work_claims *held[HELD_MAX];
	size_t held_count;
};

static int on_connection(sqlite3 *db, char **error, const struct sqlite3_api_routines *api)
{
	(void)error, (void)api;
	return sqlite3_wal_autocheckpoint(db, LOG_PAGES);
}

static struct moment look(struct baton_store *store)
{
	struct baton_queue_counts c = counts(store, "q");
	static struct baton_lease_entry entries[OPS_MAX];
	size_t leases;
	assert_ok(baton_lease_list(store, BATON_STR("lease"), BATON_STR(""), entries, OPS_MAX,
	                           &leases));
	return (struct moment){
		.ready = c.ready,
		.delayed = c.delayed,
		.running = c.running,
		.done = c.done,
		.failed = c.failed,
		.leases = leases,
	};
}

/* How many operations are done in the store. */
static size_t moment_of(const struct model *m, struct baton_store *store)
{
	struct moment now = look(store);
	for (size_t i = m->count + 1; i > 0; i--) {
		if (memcmp(&m->moments[i - 1], &now, sizeof now) == 0)
			return i - 1;
	}
	fail_msg("ready %d, delayed %d, running %d, done %d, failed %d was never", (int)now.ready,
	         (int)now.delayed, (int)now.running, (int)now.done, (int)now.failed);
	return 0;
}

/* What has to be found in an image. */
struct expected {
	size_t least; /* operations */
	uint64_t claim, lease;
	char subject[16];
};

static struct expected expect(const struct model *m)
{
	struct expected e = {m->sure, m->claim, m->lease, ""};
	memcpy(e.subject, m->subject, sizeof e.subject);
	return e;
}

static void check_image(struct model *m, bool picture, const struct expected *expected)
{
	struct baton_store *store = NULL;
	for (enum disk_fate fate = DISK_LOST; fate <= DISK_TORN; fate++) {
		disk_image(picture, fate, &m->rng, m->image);
		assert_ok(world_try_open(m->w, m->image, &store));
		assert_sound(store);
		size_t found = moment_of(m, store);
		if (found < expected->least)
			fail_msg("of %zu operations %zu are there", expected->least, found);
		uint64_t claim = next_claim_fence(store, "q");
		uint64_t lease = next_fence(store, expected->subject);
		if (claim <= expected->claim || lease <= expected->lease)
			fail_msg("fences %llu and %llu came back after %zu of %zu operations",
			         (unsigned long long)claim, (unsigned long long)lease, found,
			         m->count);
		assert_sound(store);
		baton_store_close(store);
	}
}

#define KEYED_MAX 8

/* Some with a key that few others have, which may share a row, and some in a lane too. */
static void put_keyed(struct model *m)
{
	static const struct baton_str payload = {"a payload", 9};
	struct baton_batch batches[KEYED_MAX];
	struct baton_put puts[KEYED_MAX];
	char keys[KEYED_MAX][8];
	size_t count = 1 + rng_below(&m->rng, KEYED_MAX);
	for (size_t i = 0; i < count; i++) {
		const bool guest = rng_below(&m->rng, 8) == 0;
		snprintf(keys[i], sizeof keys[i], "k%d", (int)rng_below(&m->rng, 30));
		batches[i] = (struct baton_batch){.queue = BATON_STR("q"),
		                                  .lane = baton_str_z(guest ? "lane 0" : ""),
		                                  .key = baton_str_z(keys[i]),
		                                  .payloads = &payload,
		                                  .count = 1};
	}
	assert_ok(baton_work_put(m->w->store, batches, count, puts));
}

static bool do_put(struct model *m)
{
	char lane[16] = "";
	if (rng_below(&m->rng, 3) == 0) {
		put_keyed(m);
		return false;
	}
	if (rng_below(&m->rng, 2))
		snprintf(lane, sizeof lane, "lane %d", (int)rng_below(&m->rng, 5));
	assert_ok(put_some(m->w->store, "q", lane, 1 + rng_below(&m->rng, 20)));
	return false;
}

static bool do_claim(struct model *m)
{
	struct baton_work_claims *claims = NULL;
	enum baton_err e = BATON_NOT_FOUND;
	if (m->held_count < HELD_MAX)
		e = claim_some(m->w->store, "q", 3, &claims);
	if (e != BATON_NOT_FOUND)
		assert_ok(e);
	if (!claims)
		return false;
	m->claim = claims->claims[0].fence.v;
	m->held[m->held_count++] = claims;
	return true;
}

static bool do_end(struct model *m)
{
	if (m->held_count == 0)
		return false;
	struct baton_work_claims *claims = m->held[--m->held_count];
	const struct baton_work_claim *c = &claims->claims[0];
	if (rng_below(&m->rng, 4) == 0)
		assert_ok(end_as(m->w->store, c, BATON_FAIL));
	else
		assert_ok(complete(m->w->store, c, rng_below(&m->rng, 2) ? "q" : NULL));
	baton_work_claims_free(claims);
	return false;
}

static bool do_lease(struct model *m)
{
	struct baton_lease l;
	snprintf(m->subject, sizeof m->subject, "lease %u", ++m->leases);
	assert_ok(lease(m->w->store, m->subject, &l));
	m->lease = l.fence.v;
	return true;
}

static void step(struct model *m)
{
	static bool (*const ops[])(struct model * m) = {do_put, do_claim, do_end, do_lease};
	struct expected before = expect(m);
	disk_arm(1 + (unsigned)rng_below(&m->rng, 30));
	bool fence = ops[rng_below(&m->rng, 4)](m);
	m->moments[++m->count] = look(m->w->store);
	if (fence || m->w->sync != BATON_STORE_RELAXED)
		m->sure = m->count;
	if (disk_fired())
		check_image(m, true, &before);
	disk_arm(0);
	struct expected after = expect(m);
	check_image(m, false, &after);
}

static void live(struct world *w, enum baton_store_sync sync)
{
	static struct model m;
	m = (struct model){.w = w, .rng = rng_seed_from_env(), .subject = "lease"};
	w->sync = sync;
	world_file(w, "image", m.image);
	disk_watch(w->path);
	sqlite3_auto_extension((void (*)(void))on_connection);
	world_open(w);
	m.moments[0] = look(w->store);
	unsigned ops = soak_scale(OPS_DAILY, OPS_MAX);
	while (m.count < ops)
		step(&m);
	assert_true(moment_of(&m, w->store) == m.count);
	world_close(w);
	while (m.held_count > 0)
		baton_work_claims_free(m.held[--m.held_count]);
	sqlite3_reset_auto_extension();
	disk_watch("");
}

static void a_safe_store_has_all_that_it_acknowledged(void **state)
{
	live(*state, BATON_STORE_SAFE);
}

static void a_relaxed_store_hands_out_no_fence_again(void **state)
{
	live(*state, BATON_STORE_RELAXED);
}

/* At every write of the first opening. */
static void a_store_that_is_being_made_is_there_or_not(void **state)
{
	struct world *w = *state;
	struct rng rng = rng_seed_from_env();
	struct baton_store *store = NULL;
	char image[WORLD_PATH];
	world_file(w, "image", image);
	unsigned n = 0;
	do {
		world_remove(w->path);
		disk_watch(w->path);
		disk_arm(++n);
		world_open(w);
		for (enum disk_fate fate = DISK_LOST; fate <= DISK_TORN && disk_fired(); fate++) {
			world_remove(image);
			disk_image(true, fate, &rng, image);
			assert_ok(world_try_open(w, image, &store));
			assert_ok(put_some(store, "q", "", 1));
			assert_sound(store);
			baton_store_close(store);
		}
		world_close(w);
	} while (disk_fired());
	assert_true(n > 10);
	disk_watch("");
}

int main(void)
{
	skips_repair();
	const struct CMUnitTest tests[] = {
		WORLD_TEST(a_safe_store_has_all_that_it_acknowledged),
		WORLD_TEST(a_relaxed_store_hands_out_no_fence_again),
		WORLD_TEST(a_store_that_is_being_made_is_there_or_not),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
