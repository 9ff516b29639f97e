/* A word that two processes change: every order of what they do, and both at once. */
#include "handoff/slate.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/harness.h"

static const struct baton_mono moment = {1234567890123};

static void assert_taken(const struct slate *s, uint32_t word, struct baton_mono at)
{
	struct baton_mono when = {0};
	assert_true(slate_is_taken(s, word, &when));
	assert_int_equal(when.ns, at.ns);
}

static void who_is_first_has_it(void **state)
{
	struct slate s;
	struct baton_mono when = {0};
	(void)state;
	assert_int_equal(slate_new(&s), BATON_OK);
	uint32_t one = slate_offer(&s, 7), other = slate_offer(&s, 8);
	assert_true(one > 0 && other > 0 && one != other);
	assert_false(slate_is_taken(&s, one, &when));

	assert_true(slate_take(&s, one, 7, moment));
	assert_taken(&s, one, moment);
	assert_true(slate_is_unseen(&s, one, moment));
	assert_false(slate_take(&s, one, 7, moment));
	assert_false(slate_revoke(&s, one, 7, &when));
	assert_int_equal(when.ns, moment.ns);

	assert_true(slate_revoke(&s, other, 8, &when));
	assert_true(slate_revoke(&s, other, 8, &when));
	assert_false(slate_take(&s, other, 8, moment));
	assert_false(slate_is_taken(&s, other, &when));

	slate_clear(&s, one);
	assert_false(slate_is_unseen(&s, one, moment));
	assert_false(slate_take(&s, one, 7, moment));
	slate_done(&s);
	slate_done(&s);
}

static void a_word_is_that_of_one_connection(void **state)
{
	struct slate s;
	struct baton_mono when;
	(void)state;
	assert_int_equal(slate_new(&s), BATON_OK);
	uint32_t word = slate_offer(&s, 7);
	assert_true(slate_revoke(&s, word, 7, &when));
	slate_clear(&s, word);
	assert_int_equal(slate_offer(&s, 8), word);
	/* An offer of before, read late, or one that was never made. */
	assert_false(slate_take(&s, word, 7, moment));
	assert_false(slate_take(&s, 0, 8, moment));
	assert_false(slate_take(&s, word + 1, 8, moment));
	assert_false(slate_take(&s, SLATE_WORDS, 8, moment));
	assert_true(slate_take(&s, word, 8, moment));
	slate_done(&s);
}

static void there_are_so_many_words(void **state)
{
	struct slate s, none = SLATE_NONE;
	(void)state;
	assert_int_equal(slate_new(&s), BATON_OK);
	for (uint32_t i = 1; i < SLATE_WORDS; i++)
		assert_int_equal(slate_offer(&s, i), i);
	assert_int_equal(slate_offer(&s, 1000), 0);
	slate_clear(&s, 300);
	assert_int_equal(slate_offer(&s, 1000), 300);
	slate_done(&s);
	assert_int_equal(slate_offer(&none, 1), 0);
	assert_false(slate_take(&none, 1, 1, moment));
}

static void another_broker_goes_on_with_it(void **state)
{
	struct slate s, next, none = SLATE_NONE;
	struct baton_mono when;
	(void)state;
	assert_int_equal(slate_new(&s), BATON_OK);
	for (uint32_t i = 1; i <= 3; i++)
		assert_int_equal(slate_offer(&s, i), i);
	assert_true(slate_take(&s, 2, 2, moment));
	int fd = dup(s.fd);
	assert_int_equal(slate_map(&fd, &next), BATON_OK);
	assert_int_equal(fd, -1);
	assert_true(slate_adopt(&next, 2));
	assert_true(slate_adopt(&next, 3));
	assert_false(slate_adopt(&next, 3));
	assert_false(slate_adopt(&next, 0));
	assert_false(slate_adopt(&next, SLATE_WORDS));
	assert_false(slate_adopt(&none, 1));
	/* What was not taken over can be that of another connection. */
	assert_int_equal(slate_offer(&next, 9), 1);
	assert_int_equal(slate_offer(&next, 10), 4);
	assert_taken(&next, 2, moment);
	assert_true(slate_revoke(&next, 3, 3, &when));
	assert_false(slate_take(&s, 3, 3, moment));
	slate_done(&next);
	slate_done(&s);
}

static void nonsense_is_not_taken(void **state)
{
	struct slate s;
	struct baton_mono when;
	(void)state;
	assert_int_equal(slate_new(&s), BATON_OK);
	uint32_t word = slate_offer(&s, 7);
	const uint64_t wrong[] = {0, 7 << 2 | 3, 8 << 2 | 1, UINT64_MAX};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		atomic_store(&s.words[word], wrong[i]);
		assert_true(slate_revoke(&s, word, 7, &when));
	}
	slate_done(&s);
}

static int file_of(off_t size, int seals, uint64_t head)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, size), 0);
	assert_int_equal(pwrite(fd, &head, sizeof head, 0), sizeof head);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void only_a_page_that_stays_is_mapped(void **state)
{
	const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW;
	const uint64_t head = UINT64_C(0x736c617465000001);
	const struct {
		off_t size;
		int seals;
		uint64_t head;
		enum baton_err result;
	} cases[] = {
		{SLATE_BYTES, seals, head, BATON_OK},
		{SLATE_BYTES - 1, seals, head, BATON_INVALID},
		{2 * SLATE_BYTES, seals, head, BATON_INVALID},
		{SLATE_BYTES, F_SEAL_GROW | F_SEAL_SEAL, head, BATON_INVALID},
		{SLATE_BYTES, seals, head + 1, BATON_INVALID},
		{SLATE_BYTES, seals | F_SEAL_WRITE, head, BATON_SYSTEM},
	};
	int pipes[2];
	struct slate s;
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int fd = file_of(cases[i].size, cases[i].seals, cases[i].head);
		assert_int_equal(slate_map(&fd, &s), cases[i].result);
		assert_int_equal(fd < 0, cases[i].result == BATON_OK);
		if (cases[i].result == BATON_OK)
			slate_done(&s);
		else
			close(fd);
	}
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(slate_map(&pipes[0], &s), BATON_INVALID);
	close(pipes[0]);
	close(pipes[1]);
}

static void nobody_makes_it_shorter(void **state)
{
	struct slate s;
	(void)state;
	assert_int_equal(slate_new(&s), BATON_OK);
	assert_int_equal(ftruncate(s.fd, 0), -1);
	assert_int_equal(fcntl(s.fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
	slate_done(&s);
}

/* Every order in which a backend and a broker do what they do about one connection. Each step is
 * one change or one look at what they share; either of them may end for ever after any step.
 *
 * The backend reads the clock, takes the connection if it is in time, serves it, and tells. The
 * broker takes it back at the deadline, at which it reads the clock; or it looks, hears, and lets
 * go; then the word is that of the next connection. An upgrade is a second broker that goes on with
 * the steps of the first. */
enum actor { BACKEND, BROKER, CLOCK, ACTORS };
enum { BACKEND_STEPS = 4, BROKER_STEPS = 3, CLOCK_STEPS = 1, ORDER_MAX = 8 };

struct play {
	struct slate slate;
	uint32_t word;
	bool late;       /* the deadline is reached                        */
	bool saw_time;   /* the backend has found that it is not           */
	bool took;       /* the backend, by the word                       */
	bool served;     /* a byte was read from the connection            */
	bool shut;       /* the broker has shut it down                    */
	bool let_go;     /* the broker has closed its copy, and touches it no more */
	bool told;
	bool stale;      /* the next connection was taken by the offer of this one */
};

static void backend_step(struct play *p, int step)
{
	if (step == 0)
		p->saw_time = !p->late;
	else if (step == 1 && p->saw_time)
		p->took = slate_take(&p->slate, p->word, 7, moment);
	else if (step == 2 && p->took)
		p->served = true;
	else if (step == 3 && p->took)
		p->told = true;
}

static void broker_settle(struct play *p)
{
	struct baton_mono when;
	if (p->let_go || p->shut)
		return;
	if (p->told || slate_is_taken(&p->slate, p->word, &when))
		p->let_go = true;
	else if (p->late && slate_revoke(&p->slate, p->word, 7, &when))
		p->shut = true;
	else if (p->late)
		p->let_go = true;
}

/* Looks twice, and then the word is that of another connection, if it is free. */
static void broker_step(struct play *p, int step)
{
	if (step < 2) {
		broker_settle(p);
	} else if (p->let_go || p->shut) {
		slate_clear(&p->slate, p->word);
		assert_int_equal(slate_offer(&p->slate, 8), p->word);
		p->stale = slate_take(&p->slate, p->word, 7, moment);
	}
}

/* The one that lives on finishes what it has to; the end of the other ends the channel. */
static void finish(struct play *p, const int *steps, bool killed_broker)
{
	for (int step = steps[BACKEND]; killed_broker && step < BACKEND_STEPS; step++)
		backend_step(p, step);
	p->late = true;
	if (!killed_broker)
		broker_settle(p);
}

static void judge(const struct play *p, bool killed_broker)
{
	/* Nobody is served from a connection that the client sees the end of, and reconnects. */
	assert_false(p->shut && p->served);
	assert_false(p->shut && p->took);
	assert_false(p->stale);
	/* Whoever is alive has decided. */
	if (!killed_broker)
		assert_true(p->shut != p->let_go);
	/* "Accepted" is never said of one that was not. */
	assert_false(p->let_go && !p->took);
}

/* Plays one order, and has one of the two end where the order ends for it. */
static unsigned play(const enum actor *order, int count, enum actor killed, int killed_at)
{
	struct play p = {.word = 0};
	int steps[ACTORS] = {0};
	assert_int_equal(slate_new(&p.slate), BATON_OK);
	p.word = slate_offer(&p.slate, 7);
	for (int i = 0; i < count; i++) {
		int step = steps[order[i]];
		if (order[i] == killed && step >= killed_at)
			continue;
		steps[order[i]]++;
		if (order[i] == BACKEND)
			backend_step(&p, step);
		else if (order[i] == BROKER)
			broker_step(&p, step);
		else
			p.late = true;
	}
	finish(&p, steps, killed == BROKER);
	judge(&p, killed == BROKER);
	slate_done(&p.slate);
	return 1;
}

static unsigned walk(enum actor *order, int count, const int *left)
{
	unsigned plays = 0;
	if (left[BACKEND] + left[BROKER] + left[CLOCK] == 0) {
		for (int at = 0; at <= BACKEND_STEPS; at++)
			plays += play(order, count, BACKEND, at);
		for (int at = 0; at < BROKER_STEPS; at++)
			plays += play(order, count, BROKER, at);
		return plays;
	}
	for (int who = 0; who < ACTORS; who++) {
		int rest[ACTORS];
		memcpy(rest, left, sizeof rest);
		if (rest[who]-- == 0)
			continue;
		order[count] = (enum actor)who;
		plays += walk(order, count + 1, rest);
	}
	return plays;
}

static void in_every_order_one_of_them_has_it(void **state)
{
	enum actor order[ORDER_MAX];
	const int left[ACTORS] = {BACKEND_STEPS, BROKER_STEPS, CLOCK_STEPS};
	(void)state;
	/* 8! / (4! 3! 1!) orders, each with 8 ends. */
	assert_int_equal(walk(order, 0, left), 280 * 8);
}

/* Both at once, on two threads. */
#define ROUNDS 5000

struct race {
	struct slate slate;
	_Atomic uint64_t round; /* which may begin */
	_Atomic uint64_t ended; /* by the backend  */
	bool took;
};

static void *race_take(void *arg)
{
	struct race *r = arg;
	for (uint64_t i = 1; i <= ROUNDS; i++) {
		while (atomic_load(&r->round) < i)
			sched_yield();
		r->took = slate_take(&r->slate, 1, i, moment);
		atomic_store(&r->ended, i);
	}
	return NULL;
}

static void at_the_same_time_one_of_them_has_it(void **state)
{
	static struct race r;
	pthread_t thread;
	struct baton_mono when;
	(void)state;
	assert_int_equal(slate_new(&r.slate), BATON_OK);
	assert_int_equal(pthread_create(&thread, NULL, race_take, &r), 0);
	for (uint64_t i = 1; i <= ROUNDS; i++) {
		assert_int_equal(slate_offer(&r.slate, i), 1);
		atomic_store(&r.round, i);
		bool revoked = slate_revoke(&r.slate, 1, i, &when);
		while (atomic_load(&r.ended) < i)
			sched_yield();
		assert_int_not_equal(revoked, r.took);
		slate_clear(&r.slate, 1);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	slate_done(&r.slate);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_is_first_has_it),
		cmocka_unit_test(a_word_is_that_of_one_connection),
		cmocka_unit_test(there_are_so_many_words),
		cmocka_unit_test(another_broker_goes_on_with_it),
		cmocka_unit_test(nonsense_is_not_taken),
		cmocka_unit_test(only_a_page_that_stays_is_mapped),
		cmocka_unit_test(nobody_makes_it_shorter),
		cmocka_unit_test(in_every_order_one_of_them_has_it),
		cmocka_unit_test(at_the_same_time_one_of_them_has_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
