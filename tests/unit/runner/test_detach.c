/* The rules of detachment one by one, and many threads on one machine. */
#include <baton/detach.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "support/harness.h"
#include "support/rng.h"
#include "support/soak.h"

static struct baton_mono at(int64_t ms)
{
	return (struct baton_mono){ms * 1000000};
}

static struct baton_detach_info look(struct baton_detach *d)
{
	struct baton_detach_info info;
	baton_detach_look(d, &info);
	assert_int_equal(info.state, baton_detach_state(d));
	return info;
}

/* Attached again at `ms`, from a detachment that is not manual, by a window that begins 500 ms
 * before. */
static void recover(struct baton_detach *d, int64_t ms)
{
	assert_false(baton_detach_healthy(d, at(ms - 500)));
	assert_true(baton_detach_healthy(d, at(ms)));
}

static void it_begins_attached_in_generation_1(void **state)
{
	(void)state;
	struct baton_detach d;
	memset(&d, 0xa5, sizeof d);
	baton_detach_init(&d, NULL);
	struct baton_detach_info info = look(&d);
	assert_int_equal(info.state, BATON_ATTACHED);
	assert_int_equal(info.generation, 1);
	assert_int_equal(info.failures, 0);
	assert_false(info.manual);
	assert_int_equal(info.since.ns, 0);
	assert_int_equal(info.why, 0);
	assert_string_equal(info.text, "");
}

static void every_reason_has_its_text(void **state)
{
	(void)state;
	static const struct {
		enum baton_detach_why why;
		const char *given;
		const char *text;
	} cases[] = {
		{BATON_DETACH_STORAGE, "disk I/O error", "storage error: disk I/O error"},
		{BATON_DETACH_STORAGE, NULL, "storage error: unknown"},
		{BATON_DETACH_STORAGE, "", "storage error: unknown"},
		{BATON_DETACH_STORAGE, "%s%n", "storage error: %s%n"},
		{BATON_DETACH_STREAK, NULL, "keep-alive failure streak: 3 consecutive failures"},
		{BATON_DETACH_EXPIRED, NULL, "lease expired"},
		{BATON_DETACH_EXPIRED, "not shown", "lease expired"},
		{BATON_DETACH_MANUAL, NULL, "manual detachment"},
		{BATON_DETACH_GUARDIAN, NULL, "guardian lost"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct baton_detach d;
		baton_detach_init(&d, NULL);
		assert_true(baton_detach_make(&d, cases[i].why, cases[i].given, at(7)));
		struct baton_detach_info info = look(&d);
		assert_int_equal(info.state, BATON_DETACHED);
		assert_int_equal(info.generation, 2);
		assert_int_equal(info.why, cases[i].why);
		assert_int_equal(info.manual, cases[i].why == BATON_DETACH_MANUAL);
		assert_int_equal(info.since.ns, at(7).ns);
		assert_string_equal(info.text, cases[i].text);
	}
}

static void a_long_text_is_cut_between_characters(void **state)
{
	(void)state;
	char text[601] = "x";
	for (size_t i = 1; i + 1 < sizeof text; i += 2)
		memcpy(text + i, "\xc3\xa4", 2);
	text[sizeof text - 1] = '\0';
	/* Characters end at even bytes of the reason, or at odd ones. */
	for (size_t skip = 0; skip < 2; skip++) {
		struct baton_detach d;
		baton_detach_init(&d, NULL);
		baton_detach_make(&d, BATON_DETACH_STORAGE, text + skip, at(0));
		struct baton_detach_info info = look(&d);
		size_t len = strlen(info.text);
		assert_int_equal(len, BATON_DETACH_TEXT - 2 + skip);
		assert_int_equal((unsigned char)info.text[len - 1], 0xa4);
	}
}

static void the_text_is_copied(void **state)
{
	(void)state;
	struct baton_detach d;
	baton_detach_init(&d, NULL);
	char text[] = "gone";
	baton_detach_make(&d, BATON_DETACH_STORAGE, text, at(0));
	memcpy(text, "here", 4);
	assert_string_equal(look(&d).text, "storage error: gone");
}

static void only_who_detaches_is_told_so_and_a_repeat_updates_the_reason(void **state)
{
	(void)state;
	struct baton_detach d;
	baton_detach_init(&d, NULL);
	assert_true(baton_detach_make(&d, BATON_DETACH_STORAGE, "one", at(10)));
	assert_false(baton_detach_make(&d, BATON_DETACH_STORAGE, "two", at(20)));
	assert_string_equal(look(&d).text, "storage error: two");
	assert_false(baton_detach_make(&d, BATON_DETACH_EXPIRED, NULL, at(30)));
	struct baton_detach_info info = look(&d);
	assert_string_equal(info.text, "lease expired");
	assert_int_equal(info.why, BATON_DETACH_EXPIRED);
	assert_int_equal(info.generation, 2);
	assert_int_equal(info.since.ns, at(10).ns);
}

static void a_failed_store_call_makes_it_suspect_and_a_success_attached_again(void **state)
{
	(void)state;
	struct baton_detach d;
	baton_detach_init(&d, NULL);
	baton_detach_suspect(&d);
	baton_detach_suspect(&d);
	assert_int_equal(look(&d).state, BATON_SUSPECT);
	assert_int_equal(look(&d).generation, 1);
	assert_false(baton_detach_healthy(&d, at(1)));
	assert_int_equal(look(&d).state, BATON_ATTACHED);
	assert_int_equal(look(&d).generation, 1);
}

static void suspicion_does_not_touch_a_detachment(void **state)
{
	(void)state;
	struct baton_detach d;
	baton_detach_init(&d, NULL);
	baton_detach_make(&d, BATON_DETACH_EXPIRED, NULL, at(0));
	baton_detach_healthy(&d, at(0));
	baton_detach_suspect(&d);
	assert_int_equal(look(&d).state, BATON_DETACHED);
	assert_true(baton_detach_healthy(&d, at(500)));
}

static void a_suspect_can_be_detached(void **state)
{
	(void)state;
	struct baton_detach d;
	baton_detach_init(&d, NULL);
	baton_detach_suspect(&d);
	assert_true(baton_detach_make(&d, BATON_DETACH_EXPIRED, NULL, at(0)));
	assert_int_equal(look(&d).generation, 2);
}

static void three_failures_in_a_row_detach(void **state)
{
	(void)state;
	struct baton_detach d;
	baton_detach_init(&d, NULL);
	assert_false(baton_detach_failed(&d, at(1)));
	assert_int_equal(look(&d).state, BATON_SUSPECT);
	assert_false(baton_detach_failed(&d, at(2)));
	assert_int_equal(look(&d).failures, 2);
	assert_true(baton_detach_failed(&d, at(3)));
	struct baton_detach_info info = look(&d);
	assert_int_equal(info.state, BATON_DETACHED);
	assert_int_equal(info.why, BATON_DETACH_STREAK);
	assert_string_equal(info.text, "keep-alive failure streak: 3 consecutive failures");
	assert_int_equal(info.since.ns, at(3).ns);
	assert_int_equal(info.failures, 0);
	assert_false(baton_detach_failed(&d, at(4)));
}

static void a_success_between_failures_begins_the_streak_anew(void **state)
{
	(void)state;
	struct baton_detach d;
	baton_detach_init(&d, NULL);
	for (int i = 0; i < 5; i++) {
		assert_false(baton_detach_failed(&d, at(i)));
		assert_false(baton_detach_failed(&d, at(i)));
		assert_false(baton_detach_healthy(&d, at(i)));
		assert_int_equal(look(&d).failures, 0);
	}
	assert_int_equal(look(&d).state, BATON_ATTACHED);
}

static void suspicion_is_no_failure(void **state)
{
	(void)state;
	struct baton_detach d;
	baton_detach_init(&d, NULL);
	for (int i = 0; i < 10; i++)
		baton_detach_suspect(&d);
	assert_false(baton_detach_failed(&d, at(0)));
	baton_detach_suspect(&d);
	assert_false(baton_detach_failed(&d, at(0)));
	assert_int_equal(look(&d).failures, 2);
}

static void the_streak_can_be_chosen(void **state)
{
	(void)state;
	static const struct {
		uint32_t streak;
		const char *text;
	} cases[] = {
		{1, "keep-alive failure streak: 1 consecutive failures"},
		{6, "keep-alive failure streak: 6 consecutive failures"},
	};
	for (size_t i = 0; i < 2; i++) {
		struct baton_detach d;
		baton_detach_init(&d, &(struct baton_detach_options){.streak = cases[i].streak});
		for (uint32_t n = 1; n < cases[i].streak; n++)
			assert_false(baton_detach_failed(&d, at(n)));
		assert_true(baton_detach_failed(&d, at(9)));
		assert_string_equal(look(&d).text, cases[i].text);
	}
	struct baton_detach d;
	baton_detach_init(&d, &(struct baton_detach_options){.streak = UINT32_MAX});
	for (int n = 0; n < 1000; n++)
		assert_false(baton_detach_failed(&d, at(n)));
}

static void the_first_healthy_signal_begins_the_window_and_one_at_its_end_attaches(void **state)
{
	(void)state;
	struct baton_detach d;
	baton_detach_init(&d, NULL);
	baton_detach_make(&d, BATON_DETACH_STORAGE, "x", at(0));
	/* Time alone does not count: the window begins only now. */
	assert_false(baton_detach_healthy(&d, at(10000)));
	assert_false(baton_detach_healthy(&d, at(10499)));
	assert_int_equal(look(&d).state, BATON_DETACHED);
	assert_true(baton_detach_healthy(&d, at(10500)));
	struct baton_detach_info info = look(&d);
	assert_int_equal(info.state, BATON_ATTACHED);
	assert_int_equal(info.generation, 3);
	assert_int_equal(info.since.ns, at(10500).ns);
	assert_false(info.manual);
	assert_false(baton_detach_healthy(&d, at(10501)));
}

static void two_healthy_signals_are_enough_however_far_apart(void **state)
{
	(void)state;
	struct baton_detach d;
	baton_detach_init(&d, NULL);
	baton_detach_make(&d, BATON_DETACH_STORAGE, "x", at(0));
	assert_false(baton_detach_healthy(&d, at(1)));
	assert_true(baton_detach_healthy(&d, at(99999)));
}

static void one_healthy_signal_is_not_enough_for_the_shortest_window(void **state)
{
	(void)state;
	struct baton_detach d;
	baton_detach_init(&d, &(struct baton_detach_options){.recovery = {1}});
	baton_detach_make(&d, BATON_DETACH_STORAGE, "x", at(0));
	assert_false(baton_detach_healthy(&d, at(5)));
	assert_false(baton_detach_healthy(&d, at(5)));
	assert_true(baton_detach_healthy(&d, at(6)));
}

static void a_failure_in_the_window_starts_it_over(void **state)
{
	(void)state;
	struct baton_detach d;
	baton_detach_init(&d, NULL);
	baton_detach_make(&d, BATON_DETACH_STORAGE, "x", at(0));
	assert_false(baton_detach_healthy(&d, at(100)));
	assert_false(baton_detach_failed(&d, at(599)));
	assert_string_equal(look(&d).text, "storage error: x");
	assert_false(baton_detach_healthy(&d, at(600)));
	assert_false(baton_detach_healthy(&d, at(1099)));
	assert_true(baton_detach_healthy(&d, at(1100)));
}

static void a_repeated_detachment_in_the_window_starts_it_over(void **state)
{
	(void)state;
	struct baton_detach d;
	baton_detach_init(&d, NULL);
	baton_detach_make(&d, BATON_DETACH_STORAGE, "x", at(0));
	assert_false(baton_detach_healthy(&d, at(100)));
	assert_false(baton_detach_make(&d, BATON_DETACH_STORAGE, "y", at(599)));
	assert_false(baton_detach_healthy(&d, at(600)));
	assert_false(baton_detach_healthy(&d, at(1099)));
	assert_true(baton_detach_healthy(&d, at(1100)));
}

static void a_healthy_signal_older_than_an_unhealthy_one_says_nothing(void **state)
{
	(void)state;
	struct baton_detach d;
	baton_detach_init(&d, NULL);
	baton_detach_make(&d, BATON_DETACH_STORAGE, "x", at(1000));
	assert_false(baton_detach_healthy(&d, at(999)));
	assert_false(baton_detach_healthy(&d, at(1499)));
	assert_false(baton_detach_healthy(&d, at(1998)));
	assert_true(baton_detach_healthy(&d, at(1999)));
	/* At the very moment it counts. */
	baton_detach_make(&d, BATON_DETACH_STORAGE, "x", at(3000));
	assert_false(baton_detach_healthy(&d, at(3000)));
	assert_true(baton_detach_healthy(&d, at(3500)));
}

static void failures_while_detached_are_no_part_of_the_next_streak(void **state)
{
	(void)state;
	struct baton_detach d;
	baton_detach_init(&d, NULL);
	baton_detach_make(&d, BATON_DETACH_STORAGE, "x", at(0));
	for (int i = 0; i < 5; i++)
		assert_false(baton_detach_failed(&d, at(i)));
	recover(&d, 1000);
	assert_false(baton_detach_failed(&d, at(1001)));
	assert_false(baton_detach_failed(&d, at(1002)));
	assert_true(baton_detach_failed(&d, at(1003)));
}

static void a_manual_detachment_stays_until_attach_and_recovers_then(void **state)
{
	(void)state;
	struct baton_detach d;
	baton_detach_init(&d, NULL);
	assert_true(baton_detach_make(&d, BATON_DETACH_MANUAL, NULL, at(0)));
	for (int i = 1; i < 100; i++)
		assert_false(baton_detach_healthy(&d, at(i * 100)));
	assert_true(look(&d).manual);
	assert_true(baton_detach_attach(&d, at(10000)));
	assert_int_equal(look(&d).state, BATON_DETACHED);
	assert_false(look(&d).manual);
	assert_false(baton_detach_attach(&d, at(10000)));
	/* What was healthy before does not count. */
	assert_false(baton_detach_healthy(&d, at(9999)));
	assert_false(baton_detach_healthy(&d, at(10001)));
	assert_false(baton_detach_healthy(&d, at(10500)));
	assert_true(baton_detach_healthy(&d, at(10501)));
	assert_int_equal(look(&d).generation, 3);
}

static void what_became_manual_stays_so_whatever_the_reason_says(void **state)
{
	(void)state;
	struct baton_detach d;
	baton_detach_init(&d, NULL);
	baton_detach_make(&d, BATON_DETACH_STORAGE, "x", at(0));
	baton_detach_healthy(&d, at(0));
	assert_false(baton_detach_make(&d, BATON_DETACH_MANUAL, NULL, at(0)));
	assert_string_equal(look(&d).text, "manual detachment");
	assert_false(baton_detach_make(&d, BATON_DETACH_EXPIRED, NULL, at(0)));
	assert_string_equal(look(&d).text, "lease expired");
	assert_false(baton_detach_failed(&d, at(0)));
	assert_true(look(&d).manual);
	assert_false(baton_detach_healthy(&d, at(1)));
	assert_false(baton_detach_healthy(&d, at(1000)));
	assert_true(baton_detach_attach(&d, at(1000)));
	recover(&d, 1500);
}

static void attach_is_for_manual_detachments_only(void **state)
{
	(void)state;
	struct baton_detach d;
	baton_detach_init(&d, NULL);
	assert_false(baton_detach_attach(&d, at(0)));
	assert_int_equal(look(&d).state, BATON_ATTACHED);
	baton_detach_make(&d, BATON_DETACH_STORAGE, "x", at(0));
	baton_detach_healthy(&d, at(0));
	assert_false(baton_detach_attach(&d, at(400)));
	assert_true(baton_detach_healthy(&d, at(500)));
}

static void it_works_again_and_again(void **state)
{
	(void)state;
	struct baton_detach d;
	baton_detach_init(&d, NULL);
	for (uint32_t i = 0; i < 100; i++) {
		assert_int_equal(look(&d).generation, 1 + 2 * i);
		assert_true(baton_detach_make(&d,
		                              i % 2 ? BATON_DETACH_EXPIRED : BATON_DETACH_STORAGE,
		                              "x", at(1000 * i)));
		assert_string_equal(look(&d).text, i % 2 ? "lease expired" : "storage error: x");
		recover(&d, 1000 * i + 600);
		/* Why it was detached last can still be seen. */
		assert_string_equal(look(&d).text, i % 2 ? "lease expired" : "storage error: x");
	}
}

static void after_repeats_the_next_detachment_has_its_own_reason(void **state)
{
	(void)state;
	struct baton_detach d;
	baton_detach_init(&d, NULL);
	for (int i = 0; i < 5; i++)
		baton_detach_make(&d, BATON_DETACH_STORAGE, "x", at(i));
	recover(&d, 1000);
	baton_detach_make(&d, BATON_DETACH_EXPIRED, NULL, at(2000));
	assert_string_equal(look(&d).text, "lease expired");
}

static void a_window_without_end_never_attaches(void **state)
{
	(void)state;
	struct baton_detach d;
	struct baton_detach_options options = {.recovery = BATON_DURATION_FOREVER};
	baton_detach_init(&d, &options);
	baton_detach_make(&d, BATON_DETACH_STORAGE, "x", at(0));
	assert_false(baton_detach_healthy(&d, at(1)));
	assert_false(baton_detach_healthy(&d, (struct baton_mono){INT64_MAX - 1}));
}

#define THREADS 4

struct arena {
	struct baton_detach d;
	pthread_barrier_t start;
	_Atomic int64_t clock; /* in ms */
	atomic_uint detached;  /* how often a call said that it made the transition */
	atomic_uint attached;
	atomic_bool broken; /* cmocka's asserts are for the main thread */
	unsigned steps;
};

struct player {
	struct arena *arena;
	pthread_t thread;
	struct rng rng;
};

static void expect_one_moment(struct arena *a, uint32_t *generation)
{
	struct baton_detach_info info;
	baton_detach_look(&a->d, &info);
	bool detached = info.state == BATON_DETACHED;
	bool whole =
		detached == (info.generation % 2 == 0) && info.generation >= *generation &&
		(info.generation == 1) == (info.why == 0) && (detached || !info.manual) &&
		(info.why != BATON_DETACH_EXPIRED || strcmp(info.text, "lease expired") == 0) &&
		(info.why != BATON_DETACH_STORAGE || strcmp(info.text, "storage error: lost") == 0);
	if (!whole)
		atomic_store(&a->broken, true);
	*generation = info.generation;
}

static void *player_main(void *arg)
{
	struct player *p = arg;
	struct arena *a = p->arena;
	uint32_t generation = 0;
	pthread_barrier_wait(&a->start);
	for (unsigned i = 0; i < a->steps; i++) {
		struct baton_mono now = at(atomic_fetch_add(&a->clock, 1));
		bool detached = false;
		bool attached = false;
		switch (rng_below(&p->rng, 24)) {
		case 0:
			detached = baton_detach_make(&a->d, BATON_DETACH_EXPIRED, NULL, now);
			break;
		case 1:
			detached = baton_detach_make(&a->d, BATON_DETACH_STORAGE, "lost", now);
			break;
		case 2:
			detached = baton_detach_make(&a->d, BATON_DETACH_MANUAL, NULL, now);
			break;
		case 3:
		case 4:
			baton_detach_attach(&a->d, now);
			break;
		case 5:
		case 6:
			detached = baton_detach_failed(&a->d, now);
			break;
		case 7:
			baton_detach_suspect(&a->d);
			break;
		case 8:
			expect_one_moment(a, &generation);
			break;
		default:
			attached = baton_detach_healthy(&a->d, now);
		}
		atomic_fetch_add(&a->detached, detached);
		atomic_fetch_add(&a->attached, attached);
	}
	return NULL;
}

static void each_transition_is_told_to_exactly_one_thread(void **state)
{
	(void)state;
	struct arena a = {.steps = soak_scale(20000, 2000000)};
	struct baton_detach_options options = {.streak = 2, .recovery = baton_duration_ms(4)};
	baton_detach_init(&a.d, &options);
	pthread_barrier_init(&a.start, NULL, THREADS);
	struct rng seeds = rng_seed_from_env();
	struct player players[THREADS];
	for (unsigned i = 0; i < THREADS; i++) {
		players[i].arena = &a;
		players[i].rng = rng_seed(rng_next(&seeds));
		assert_int_equal(pthread_create(&players[i].thread, NULL, player_main, &players[i]),
		                 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(players[i].thread, NULL);
	pthread_barrier_destroy(&a.start);
	struct baton_detach_info info = look(&a.d);
	printf("# %u times detached, %u times attached\n", a.detached, a.attached);
	assert_false(a.broken);
	assert_true(a.attached > 0);
	assert_int_equal(info.generation, 1 + a.detached + a.attached);
	assert_int_equal(a.detached - a.attached, info.state == BATON_DETACHED);
}

/* How many renewals may come between a detachment and its being noticed: none, whoever makes it. */
static void *detacher_main(void *arg)
{
	struct arena *a = arg;
	pthread_barrier_wait(&a->start);
	baton_detach_make(&a->d, BATON_DETACH_EXPIRED, NULL, at(500));
	if (baton_detach_state(&a->d) != BATON_DETACHED)
		atomic_store(&a->broken, true);
	return NULL;
}

static void a_detachment_that_races_with_reattaching_wins(void **state)
{
	(void)state;
	struct arena a = {.steps = soak_scale(300, 20000)};
	pthread_barrier_init(&a.start, NULL, 2);
	for (unsigned i = 0; i < a.steps; i++) {
		baton_detach_init(&a.d, NULL);
		baton_detach_make(&a.d, BATON_DETACH_STORAGE, "x", at(0));
		baton_detach_healthy(&a.d, at(0));
		pthread_t thread;
		assert_int_equal(pthread_create(&thread, NULL, detacher_main, &a), 0);
		pthread_barrier_wait(&a.start);
		baton_detach_healthy(&a.d, at(500));
		pthread_join(thread, NULL);
		assert_int_equal(look(&a.d).state, BATON_DETACHED);
		assert_string_equal(look(&a.d).text, "lease expired");
	}
	assert_false(a.broken);
	pthread_barrier_destroy(&a.start);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_begins_attached_in_generation_1),
		cmocka_unit_test(every_reason_has_its_text),
		cmocka_unit_test(a_long_text_is_cut_between_characters),
		cmocka_unit_test(the_text_is_copied),
		cmocka_unit_test(only_who_detaches_is_told_so_and_a_repeat_updates_the_reason),
		cmocka_unit_test(a_failed_store_call_makes_it_suspect_and_a_success_attached_again),
		cmocka_unit_test(suspicion_does_not_touch_a_detachment),
		cmocka_unit_test(a_suspect_can_be_detached),
		cmocka_unit_test(three_failures_in_a_row_detach),
		cmocka_unit_test(a_success_between_failures_begins_the_streak_anew),
		cmocka_unit_test(suspicion_is_no_failure),
		cmocka_unit_test(the_streak_can_be_chosen),
		cmocka_unit_test(
			the_first_healthy_signal_begins_the_window_and_one_at_its_end_attaches),
		cmocka_unit_test(two_healthy_signals_are_enough_however_far_apart),
		cmocka_unit_test(one_healthy_signal_is_not_enough_for_the_shortest_window),
		cmocka_unit_test(a_failure_in_the_window_starts_it_over),
		cmocka_unit_test(a_repeated_detachment_in_the_window_starts_it_over),
		cmocka_unit_test(a_healthy_signal_older_than_an_unhealthy_one_says_nothing),
		cmocka_unit_test(failures_while_detached_are_no_part_of_the_next_streak),
		cmocka_unit_test(a_manual_detachment_stays_until_attach_and_recovers_then),
		cmocka_unit_test(what_became_manual_stays_so_whatever_the_reason_says),
		cmocka_unit_test(attach_is_for_manual_detachments_only),
		cmocka_unit_test(it_works_again_and_again),
		cmocka_unit_test(after_repeats_the_next_detachment_has_its_own_reason),
		cmocka_unit_test(a_window_without_end_never_attaches),
		cmocka_unit_test(each_transition_is_told_to_exactly_one_thread),
		cmocka_unit_test(a_detachment_that_races_with_reattaching_wins),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
