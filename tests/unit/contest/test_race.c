/* Of all who want a subject at the same moment exactly one has it. */
#include <baton/claim.h>

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/soak.h"
#include "world.h"

#define RACERS 4u

/* What the racers share: where they meet, and what came of each round. */
struct track {
	_Atomic uint32_t arrived; /* at this meeting           */
	_Atomic uint32_t met;     /* how often all have met    */
	_Atomic uint32_t broken;
	_Atomic uint32_t winners; /* of this round             */
	_Atomic uint64_t fence;   /* of the last winner        */
	unsigned rounds;
	unsigned racers;
};

static void met_wake(struct track *t)
{
	syscall(SYS_futex, &t->met, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void met_break(struct track *t)
{
	atomic_store(&t->broken, 1);
	atomic_fetch_add(&t->met, 1);
	met_wake(t);
}

/* Returns when all have come. False: something broke. */
static bool meet(struct track *t)
{
	uint32_t met = atomic_load(&t->met);
	if (atomic_fetch_add(&t->arrived, 1) + 1 == t->racers) {
		atomic_store(&t->arrived, 0);
		atomic_fetch_add(&t->met, 1);
		met_wake(t);
	}
	/* First without the kernel, so that all begin as nearly at once as can be. */
	for (unsigned i = 0; i < 100 && atomic_load(&t->met) == met; i++)
		__builtin_ia32_pause();
	while (atomic_load(&t->met) == met && atomic_load(&t->broken) == 0)
		syscall(SYS_futex, &t->met, FUTEX_WAIT, met, NULL, NULL, 0);
	return atomic_load(&t->broken) == 0;
}

static bool race_round(struct track *t, struct baton_fleet *f, struct baton_subject *subject)
{
	struct baton_claim_ask ask = {.subject = subject};
	struct baton_claim claim;
	if (!meet(t))
		return false;
	enum baton_err e = baton_claim_try(f, &ask, &claim, NULL);
	/* The machine may let somebody wait who has a lock that the first round needs. */
	bool fine = e == BATON_OK || e == BATON_YIELD || e == BATON_BUSY;
	if (e == BATON_OK) {
		fine = atomic_fetch_add(&t->winners, 1) == 0 &&
		       atomic_exchange(&t->fence, claim.fence.v) < claim.fence.v;
	}
	if (!meet(t))
		return false;
	fine = fine && atomic_load(&t->winners) == 1;
	if (!meet(t))
		return false;
	if (e == BATON_OK) {
		atomic_store(&t->winners, 0);
		fine = fine && baton_claim_release(&claim) == BATON_OK;
	}
	return fine;
}

static void race(struct track *t, struct baton_fleet *f)
{
	struct baton_subject subject = subject_of("x");
	for (unsigned i = 0; i < t->rounds; i++) {
		if (race_round(t, f, &subject))
			continue;
		met_break(t);
		return;
	}
}

struct racer {
	struct track *track;
	struct world *world;
	struct baton_fleet *fleet;
	pthread_t thread;
};

static void *race_in_a_thread(void *arg)
{
	struct racer *r = arg;
	race(r->track, r->fleet);
	return NULL;
}

/* `shared`: all threads are of one member, so that losers yield to themselves. */
static void race_threads(struct world *w, bool shared)
{
	struct track track = {.rounds = soak_scale(5000, 250000), .racers = RACERS};
	struct racer racers[RACERS];
	for (unsigned i = 0; i < RACERS; i++) {
		racers[i] = (struct racer){.track = &track, .fleet = w->ada};
		if (!shared)
			racers[i].fleet = world_join(w, "racer");
		pthread_create(&racers[i].thread, NULL, race_in_a_thread, &racers[i]);
	}
	for (unsigned i = 0; i < RACERS; i++)
		pthread_join(racers[i].thread, NULL);
	for (unsigned i = 0; i < RACERS && !shared; i++)
		baton_fleet_leave(racers[i].fleet);
	assert_int_equal(track.broken, 0);
}

static void one_wins_among_threads_of_one_member(void **state)
{
	race_threads(*state, true);
}

static void one_wins_among_members_of_one_process(void **state)
{
	race_threads(*state, false);
}

static int race_in_a_process(int channel, void *arg)
{
	struct racer *r = arg;
	struct baton_fleet *f;
	if (baton_fleet_join(&r->world->options, &f) != BATON_OK) {
		met_break(r->track);
		return 1;
	}
	channel_send(channel, "joined");
	race(r->track, f);
	baton_fleet_leave(f);
	return atomic_load(&r->track->broken) == 0 ? 0 : 2;
}

static void one_wins_among_processes(void **state)
{
	struct world *w = *state;
	struct track *track = mmap(NULL, sizeof *track, PROT_READ | PROT_WRITE,
	                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(track != MAP_FAILED);
	track->rounds = soak_scale(20000, 1000000);
	track->racers = RACERS;
	struct racer racer = {.track = track, .world = w};
	struct child racers[RACERS];
	/* One after the other, so that nobody is busy joining. */
	for (unsigned i = 0; i < RACERS; i++) {
		char joined[16];
		child_start(&racers[i], race_in_a_process, &racer);
		assert_true(channel_receive(racers[i].channel, joined, sizeof joined));
	}
	for (unsigned i = 0; i < RACERS; i++)
		assert_int_equal(child_reap(&racers[i]), 0);
	assert_true(atomic_load(&track->fence) >= track->rounds);
	munmap(track, sizeof *track);
}

/* Who wins holds something of which there is one, in a table that is far too small. */
struct crush {
	_Atomic uint32_t inside[8];
	_Atomic uint64_t fences[8];
	_Atomic uint32_t broken;
	_Atomic uint32_t won;
};

struct crusher {
	struct crush *crush;
	struct baton_fleet *fleet;
	pthread_t thread;
	unsigned number;
};

static void *crush_in_a_thread(void *arg)
{
	struct crusher *c = arg;
	char label[16];
	for (unsigned i = 0; i < soak_scale(20000, 2000000); i++) {
		struct baton_claim claim;
		unsigned n = (i * 5 + c->number * 3) % 8;
		snprintf(label, sizeof label, "subject-%u", n);
		enum baton_err e = try_label(c->fleet, label, &claim);
		if (e != BATON_OK) {
			/* The machine may let a thread wait that has the shard. */
			if (e != BATON_YIELD && e != BATON_FULL && e != BATON_BUSY)
				atomic_store(&c->crush->broken, 1);
			continue;
		}
		if (atomic_fetch_add(&c->crush->inside[n], 1) != 0 ||
		    atomic_exchange(&c->crush->fences[n], claim.fence.v) >= claim.fence.v)
			atomic_store(&c->crush->broken, 2);
		atomic_fetch_add(&c->crush->won, 1);
		atomic_fetch_sub(&c->crush->inside[n], 1);
		if (baton_claim_release(&claim) != BATON_OK)
			atomic_store(&c->crush->broken, 3);
	}
	return NULL;
}

/* Eight subjects in room for three: they are evicted all the time while others want them. */
static void one_wins_while_room_is_short(void **state)
{
	struct world *w = *state;
	struct crush crush = {.won = 0};
	struct crusher crushers[RACERS];
	w->options.limits.subjects = 3;
	for (unsigned i = 0; i < RACERS; i++)
		crushers[i] = (struct crusher){&crush, world_join(w, "crusher"), 0, i};
	for (unsigned i = 0; i < RACERS; i++)
		pthread_create(&crushers[i].thread, NULL, crush_in_a_thread, &crushers[i]);
	for (unsigned i = 0; i < RACERS; i++)
		pthread_join(crushers[i].thread, NULL);
	for (unsigned i = 0; i < RACERS; i++)
		baton_fleet_leave(crushers[i].fleet);
	assert_int_equal(crush.broken, 0);
	assert_true(crush.won > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(one_wins_among_threads_of_one_member),
		WORLD_TEST(one_wins_among_members_of_one_process),
		EMPTY_TEST(one_wins_among_processes),
		EMPTY_TEST(one_wins_while_room_is_short),
	};
	return cmocka_run_group_tests_name("race", tests, NULL, NULL);
}
