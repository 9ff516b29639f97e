/* Schedules. */
#include <unistd.h>

#include "store/store.h"
#include "world.h"

#define MINUTE 60000
#define HOUR 3600000

static struct baton_schedule schedule_of(const char *name, const char *cron)
{
	return (struct baton_schedule){
		.name = baton_str_z(name),
		.cron = baton_str_z(cron),
		.queue = BATON_STR("q"),
		.payload = BATON_STR("tick"),
	};
}

static void set(struct world *w, const struct baton_schedule *s)
{
	assert_int_equal(baton_schedule_set(w->store, s), BATON_OK);
}

static size_t tick(struct baton_store *store)
{
	size_t count;
	assert_int_equal(baton_schedule_tick(store, &count, NULL), BATON_OK);
	return count;
}

static int64_t next_of(struct world *w, const char *name)
{
	struct baton_schedules *found = NULL;
	assert_int_equal(baton_schedule_get(w->store, baton_str_z(name), &found), BATON_OK);
	assert_int_equal(found->count, 1);
	int64_t next = found->schedules[0].next.ms;
	baton_schedules_free(found);
	return next - START_MS;
}

static void a_tick_puts_a_batch_at_exactly_its_time(void **state)
{
	struct world *w = *state;
	struct baton_schedule s = schedule_of("s", "* * * * *");
	struct baton_store_time next;
	size_t count;
	s.lane = BATON_STR("lane");
	s.priority = 4;
	set(w, &s);
	advance(w, MINUTE - 1);
	assert_int_equal(tick(w->store), 0);
	advance(w, 1);
	assert_int_equal(baton_schedule_tick(w->store, &count, &next), BATON_OK);
	assert_int_equal(count, 1);
	assert_int_equal(next.ms, START_MS + 2 * MINUTE);
	assert_int_equal(tick(w->store), 0);
	const struct baton_work_claim *c = claim(w, "q", 1);
	assert_str(c->lane, "lane");
	assert_str(c->batches[0].payloads[0], "tick");
	assert_int_equal(c->batches[0].priority, 4);
}

static void a_tick_is_put_once_whoever_is_at_it(void **state)
{
	struct world *w = *state;
	struct baton_schedule s = schedule_of("s", "* * * * *");
	set(w, &s);
	for (int i = 0; i < 4; i++) {
		advance(w, MINUTE);
		size_t first = tick(i % 2 ? w->store : world_twin(w));
		size_t second = tick(i % 2 ? world_twin(w) : w->store);
		assert_int_equal(first, 1);
		assert_int_equal(second, 0);
	}
	assert_int_equal(counts(w, "q").ready, 4);
}

static void who_comes_too_late_with_a_step_puts_nothing(void **state)
{
	struct world *w = *state;
	struct baton_schedule s = schedule_of("s", "* * * * *");
	struct baton_batch b = batch_of("q", "", NULL);
	set(w, &s);
	struct schedule_step step = {.name = s.name,
	                             .from = {START_MS - 1},
	                             .last = {START_MS + 1},
	                             .next = {START_MS + 2},
	                             .batches = &b,
	                             .count = 1};
	assert_int_equal(w->store->ops->schedule_step(w->store, &step), BATON_NOT_HELD);
	assert_int_equal(next_of(w, "s"), MINUTE);
	struct baton_queue_info info;
	assert_int_equal(baton_queue_get(w->store, BATON_STR("q"), &info), BATON_NOT_FOUND);
	step.from.ms = START_MS;
	assert_int_equal(w->store->ops->schedule_step(w->store, &step), BATON_OK);
	assert_int_equal(next_of(w, "s"), 2);
	step.name = BATON_STR("none");
	assert_int_equal(w->store->ops->schedule_step(w->store, &step), BATON_NOT_HELD);
	assert_int_equal(counts(w, "q").ready, 1);
}

static void missed_ticks_are_put_once_all_or_not_at_all(void **state)
{
	struct world *w = *state;
	static const struct {
		const char *name;
		enum baton_missed missed;
		uint64_t count;
	} cases[] = {{"once", BATON_MISSED_ONCE, 1},
	             {"all", BATON_MISSED_ALL, 10},
	             {"skip", BATON_MISSED_SKIP, 0},
	             {"unsaid", 0, 1}};
	for (int i = 0; i < 4; i++) {
		struct baton_schedule s = schedule_of(cases[i].name, "0 * * * *");
		s.missed = cases[i].missed;
		s.queue = baton_str_z(cases[i].name);
		set(w, &s);
		put(w, cases[i].name, "");
	}
	advance(w, 10 * HOUR + HOUR / 2);
	assert_int_equal(tick(w->store), 12);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(counts(w, cases[i].name).ready, 1 + cases[i].count);
		assert_int_equal(next_of(w, cases[i].name), 11 * HOUR);
	}
	advance(w, HOUR / 2);
	assert_int_equal(tick(w->store), 4);
}

static void more_missed_ticks_than_one_transaction_takes_are_all_put(void **state)
{
	struct world *w = *state;
	struct baton_schedule s = schedule_of("s", "* * * * *");
	s.missed = BATON_MISSED_ALL;
	set(w, &s);
	advance(w, INT64_C(200) * MINUTE);
	assert_int_equal(tick(w->store), 200);
	assert_int_equal(tick(w->store), 0);
}

static void a_call_puts_a_bounded_number_of_missed_ticks_and_says_that_there_are_more(void **state)
{
	struct world *w = *state;
	struct baton_schedule s = schedule_of("s", "* * * * *");
	struct baton_store_time next;
	size_t count;
	s.missed = BATON_MISSED_ALL;
	set(w, &s);
	advance(w, INT64_C(1100) * MINUTE);
	assert_int_equal(baton_schedule_tick(w->store, &count, &next), BATON_OK);
	assert_int_equal(count, BATON_SCHEDULE_TICKS_MAX);
	assert_int_equal(next.ms, START_MS + INT64_C(1025) * MINUTE);
	assert_int_equal(tick(w->store), 1100 - BATON_SCHEDULE_TICKS_MAX);
	assert_int_equal(tick(w->store), 0);
	assert_int_equal(counts(w, "q").ready, 1100);
}

static void pause_it(struct world *w, bool paused)
{
	assert_int_equal(baton_schedule_pause(w->store, BATON_STR("s"), paused), BATON_OK);
}

static bool is_paused(struct world *w)
{
	struct baton_schedules *found = NULL;
	assert_int_equal(baton_schedule_get(w->store, BATON_STR("s"), &found), BATON_OK);
	bool paused = found->schedules[0].paused;
	assert_int_equal(paused, found->schedules[0].next.ms == BATON_STORE_TIME_NEVER.ms);
	baton_schedules_free(found);
	return paused;
}

static void a_paused_schedule_does_not_tick_and_goes_on_when_it_is_resumed(void **state)
{
	struct world *w = *state;
	struct baton_schedule s = schedule_of("s", "0 * * * *");
	struct baton_store_time next;
	s.missed = BATON_MISSED_ALL;
	set(w, &s);
	pause_it(w, true);
	pause_it(w, true);
	assert_true(is_paused(w));
	advance(w, 3 * HOUR);
	assert_int_equal(baton_schedule_tick(w->store, NULL, &next), BATON_OK);
	assert_int_equal(next.ms, BATON_STORE_TIME_NEVER.ms);
	pause_it(w, false);
	pause_it(w, false);
	assert_false(is_paused(w));
	assert_int_equal(tick(w->store), 0);
	assert_int_equal(next_of(w, "s"), 4 * HOUR);
	advance(w, HOUR);
	assert_int_equal(tick(w->store), 1);
	assert_int_equal(baton_schedule_pause(w->store, BATON_STR("none"), true), BATON_NOT_FOUND);
	assert_detail("there is no schedule \"none\"");
}

static void a_pause_loses_no_tick_that_comes_after_it(void **state)
{
	struct world *w = *state;
	struct baton_schedule s = schedule_of("s", "* * * * * *");
	set(w, &s);
	for (int i = 0; i < 3; i++) {
		pause_it(w, true);
		pause_it(w, false);
	}
	advance(w, 1000);
	assert_int_equal(tick(w->store), 1);
}

static void a_paused_schedule_stays_paused_whatever_it_becomes(void **state)
{
	struct world *w = *state;
	struct baton_schedule s = schedule_of("s", "0 * * * *");
	set(w, &s);
	pause_it(w, true);
	set(w, &s);
	assert_true(is_paused(w));
	s.cron = BATON_STR("30 * * * *");
	set(w, &s);
	assert_true(is_paused(w));
	advance(w, 3 * HOUR);
	assert_int_equal(tick(w->store), 0);
}

static void a_pause_wins_over_who_is_about_to_put_a_tick(void **state)
{
	struct world *w = *state;
	struct baton_schedule s = schedule_of("s", "* * * * *");
	struct baton_batch b = batch_of("q", "", NULL);
	set(w, &s);
	pause_it(w, true);
	const struct schedule_step step = {.name = s.name,
	                                   .queue = s.queue,
	                                   .from = {START_MS},
	                                   .last = {START_MS + MINUTE},
	                                   .next = {START_MS + 2 * MINUTE},
	                                   .batches = &b,
	                                   .count = 1};
	assert_int_equal(w->store->ops->schedule_step(w->store, &step), BATON_NOT_HELD);
	assert_true(is_paused(w));
}

static void one_can_be_put_now_and_the_ticks_come_all_the_same(void **state)
{
	struct world *w = *state;
	struct baton_schedule s = schedule_of("s", "* * * * *");
	struct baton_put put;
	s.lane = BATON_STR("lane");
	s.priority = 4;
	set(w, &s);
	for (int i = 0; i < 2; i++)
		assert_int_equal(baton_schedule_run(w->store, s.name, &put), BATON_OK);
	assert_int_equal(next_of(w, "s"), MINUTE);
	const struct baton_work_claim *c = claim(w, "q", 1);
	assert_str(c->lane, "lane");
	assert_str(c->batches[0].payloads[0], "tick");
	assert_int_equal(c->batches[0].priority, 4);
	advance(w, MINUTE);
	assert_int_equal(tick(w->store), 1);
	assert_int_equal(baton_schedule_run(w->store, BATON_STR("none"), &put), BATON_NOT_FOUND);
}

static void who_waits_is_told_that_a_schedule_has_changed(void **state)
{
	struct world *w = *state;
	struct baton_schedule s = schedule_of("s", "* * * * *");
	const struct baton_store_wait no_wait = {.until = {0}};
	uint64_t seen = 0;
	for (int i = 0; i < 3; i++) {
		while (baton_store_wait(w->store, &no_wait, &seen) == BATON_OK)
			;
		if (i == 0)
			set(w, &s);
		else
			pause_it(w, i == 1);
		assert_int_equal(baton_store_wait(w->store, &no_wait, &seen), BATON_OK);
	}
}

static void a_replaced_schedule_goes_on_where_it_was(void **state)
{
	struct world *w = *state;
	struct baton_schedule s = schedule_of("s", "0 * * * *");
	s.missed = BATON_MISSED_ALL;
	set(w, &s);
	advance(w, 3 * HOUR + 1);
	s.payload = BATON_STR("other");
	set(w, &s);
	assert_int_equal(next_of(w, "s"), HOUR);
	assert_int_equal(tick(w->store), 3);
	assert_str(claim(w, "q", 1)->batches[0].payloads[0], "other");
}

static void a_schedule_with_another_expression_or_zone_begins_now(void **state)
{
	struct world *w = *state;
	struct baton_schedule s = schedule_of("s", "0 * * * *");
	set(w, &s);
	advance(w, 3 * HOUR + 1);
	s.cron = BATON_STR("30 * * * *");
	set(w, &s);
	assert_int_equal(next_of(w, "s"), 3 * HOUR + HOUR / 2);
	assert_int_equal(tick(w->store), 0);
	advance(w, 3 * HOUR);
	s.zone = BATON_STR("Europe/Berlin");
	set(w, &s);
	assert_int_equal(tick(w->store), 0);
}

static void a_removed_schedule_ticks_no_more(void **state)
{
	struct world *w = *state;
	struct baton_schedule s = schedule_of("s", "* * * * *");
	struct baton_schedules *found = NULL;
	set(w, &s);
	assert_int_equal(baton_schedule_remove(w->store, BATON_STR("s")), BATON_OK);
	assert_int_equal(baton_schedule_remove(w->store, BATON_STR("s")), BATON_NOT_FOUND);
	assert_detail("there is no schedule \"s\"");
	assert_int_equal(baton_schedule_get(w->store, BATON_STR("s"), &found), BATON_NOT_FOUND);
	assert_detail("there is no schedule \"s\"");
	advance(w, MINUTE);
	assert_int_equal(tick(w->store), 0);
}

static void a_schedule_that_was_removed_and_made_anew_does_not_tick_twice(void **state)
{
	struct world *w = *state;
	struct baton_schedule s = schedule_of("s", "* * * * *");
	set(w, &s);
	advance(w, MINUTE);
	assert_int_equal(tick(w->store), 1);
	baton_schedule_remove(w->store, BATON_STR("s"));
	step_clock(w, -1);
	set(w, &s);
	advance(w, 1);
	tick(w->store);
	assert_int_equal(counts(w, "q").ready, 1);
}

static void an_error_of_one_keeps_the_others_from_nothing(void **state)
{
	struct world *w = *state;
	struct baton_queue_policy p = policy(w, "full");
	struct baton_schedule a = schedule_of("a", "* * * * *"), b = schedule_of("b", "* * * * *");
	size_t count;
	p.waiting_max = 1;
	set_policy(w, "full", &p);
	put(w, "full", "");
	a.queue = BATON_STR("full");
	set(w, &a);
	set(w, &b);
	advance(w, MINUTE);
	assert_int_equal(baton_schedule_tick(w->store, &count, NULL), BATON_FULL);
	assert_detail("schedule \"a\": queue \"full\" has 1 jobs waiting");
	assert_int_equal(counts(w, "q").ready, 1);
	complete(w, claim(w, "full", 1));
	assert_int_equal(tick(w->store), 1);
	assert_int_equal(counts(w, "full").ready, 1);
}

static void schedules_are_listed_in_the_order_of_their_names(void **state)
{
	struct world *w = *state;
	struct baton_schedule b = schedule_of("b", "@daily"), a = schedule_of("a", "@hourly");
	struct baton_schedules *found = NULL;
	a.zone = BATON_STR("Europe/Berlin");
	set(w, &b);
	set(w, &a);
	assert_int_equal(baton_schedule_list(w->store, BATON_STR(""), 10, &found), BATON_OK);
	assert_int_equal(found->count, 2);
	assert_str(found->schedules[0].name, "a");
	assert_str(found->schedules[0].cron, "@hourly");
	assert_str(found->schedules[0].zone, "Europe/Berlin");
	assert_str(found->schedules[0].queue, "q");
	assert_int_equal(found->schedules[0].missed, BATON_MISSED_ONCE);
	assert_int_equal(found->schedules[0].last.ms, START_MS);
	baton_schedules_free(found);
	assert_int_equal(baton_schedule_list(w->store, BATON_STR("a"), 10, &found), BATON_OK);
	assert_int_equal(found->count, 1);
	assert_str(found->schedules[0].name, "b");
	baton_schedules_free(found);
}

static void refuse(struct world *w, const struct baton_schedule *s, const char *words)
{
	assert_int_equal(baton_schedule_set(w->store, s), BATON_INVALID);
	assert_detail(words);
}

static void a_schedule_has_its_limits(void **state)
{
	struct world *w = *state;
	char name[217];
	memset(name, 'n', 216);
	name[216] = '\0';
	struct baton_schedule s = schedule_of(name, "@daily");
	refuse(w, &s, "the schedule's name has 216 bytes: 1 to 215 are allowed");
	s = schedule_of("", "@daily");
	refuse(w, &s, "the schedule's name is empty");
	s = schedule_of("s", "61 * * * *");
	refuse(w, &s, "61");
	s = schedule_of("s", "@daily");
	s.zone = BATON_STR("Nowhere/Land");
	refuse(w, &s, "Nowhere/Land");
	s.zone = BATON_STR("zone.tab"); /* it is where the zones are, but none of them */
	if (access("/usr/share/zoneinfo/zone.tab", R_OK) == 0)
		refuse(w, &s, "time zone \"zone.tab\": this is no time zone file");
	s = schedule_of("s", "@daily");
	s.queue = BATON_STR("a/b");
	refuse(w, &s, "the queue's name");
	s = schedule_of("s", "@daily");
	s.missed = (enum baton_missed)4;
	refuse(w, &s, "missed is 4: 1 (once), 2 (all) and 3 (skip) are allowed");
	name[215] = '\0';
	s = schedule_of(name, "* * * * *");
	set(w, &s);
	advance(w, MINUTE);
	assert_int_equal(tick(w->store), 1);
}

static void the_ticks_of_an_expression_can_be_asked_for(void **state)
{
	struct baton_store_time ticks[4] = {{0}}, noon = {INT64_C(1774612800000)};
	size_t count = 7;
	(void)state;
	assert_int_equal(baton_schedule_ticks(BATON_STR("0 0 29 2 *"), BATON_STR(""),
	                                      (struct baton_store_time){0}, ticks, 3, &count),
	                 BATON_OK);
	assert_int_equal(count, 3);
	assert_int_equal(ticks[0].ms, INT64_C(68169600000));
	assert_int_equal(ticks[1].ms, INT64_C(194400000000));
	assert_int_equal(ticks[2].ms, INT64_C(320630400000));
	assert_int_equal(ticks[3].ms, 0);
	/* The second of these is skipped by the clocks there. */
	assert_int_equal(baton_schedule_ticks(BATON_STR("30 2 * * *"), BATON_STR("Europe/Berlin"),
	                                      noon, ticks, 3, &count),
	                 BATON_OK);
	assert_int_equal(ticks[0].ms, INT64_C(1774661400000));
	assert_int_equal(ticks[1].ms, INT64_C(1774746000000));
	assert_int_equal(ticks[2].ms, INT64_C(1774830600000));
	/* It is strictly after the moment. */
	assert_int_equal(baton_schedule_ticks(BATON_STR("30 2 * * *"), BATON_STR("Europe/Berlin"),
	                                      ticks[0], ticks + 3, 1, &count),
	                 BATON_OK);
	assert_int_equal(ticks[3].ms, ticks[1].ms);
	assert_int_equal(baton_schedule_ticks(BATON_STR("@daily"), BATON_STR(""), noon, NULL, 0,
	                                      &count),
	                 BATON_OK);
	assert_int_equal(count, 0);
	struct baton_store_time late = {INT64_C(253402300799999)};
	assert_int_equal(baton_schedule_ticks(BATON_STR("@daily"), BATON_STR(""), late, ticks, 4,
	                                      &count),
	                 BATON_OK);
	assert_int_equal(count, 0);
	count = 7;
	assert_int_equal(baton_schedule_ticks(BATON_STR("61 * * * *"), BATON_STR(""), noon, ticks,
	                                      4, &count),
	                 BATON_INVALID);
	assert_detail("61");
	assert_int_equal(baton_schedule_ticks(BATON_STR("@daily"), BATON_STR("Nowhere/Land"), noon,
	                                      ticks, 4, &count),
	                 BATON_INVALID);
	assert_detail("Nowhere/Land");
	assert_int_equal(count, 7);
}

static const struct CMUnitTest tests[] = {
	WORLD_TEST(a_tick_puts_a_batch_at_exactly_its_time),
	WORLD_TEST(a_tick_is_put_once_whoever_is_at_it),
	WORLD_TEST(who_comes_too_late_with_a_step_puts_nothing),
	WORLD_TEST(missed_ticks_are_put_once_all_or_not_at_all),
	WORLD_TEST(more_missed_ticks_than_one_transaction_takes_are_all_put),
	WORLD_TEST(a_call_puts_a_bounded_number_of_missed_ticks_and_says_that_there_are_more),
	WORLD_TEST(a_paused_schedule_does_not_tick_and_goes_on_when_it_is_resumed),
	WORLD_TEST(a_pause_loses_no_tick_that_comes_after_it),
	WORLD_TEST(a_paused_schedule_stays_paused_whatever_it_becomes),
	WORLD_TEST(a_pause_wins_over_who_is_about_to_put_a_tick),
	WORLD_TEST(one_can_be_put_now_and_the_ticks_come_all_the_same),
	WORLD_TEST(who_waits_is_told_that_a_schedule_has_changed),
	WORLD_TEST(a_replaced_schedule_goes_on_where_it_was),
	WORLD_TEST(a_schedule_with_another_expression_or_zone_begins_now),
	WORLD_TEST(a_removed_schedule_ticks_no_more),
	WORLD_TEST(a_schedule_that_was_removed_and_made_anew_does_not_tick_twice),
	WORLD_TEST(an_error_of_one_keeps_the_others_from_nothing),
	WORLD_TEST(schedules_are_listed_in_the_order_of_their_names),
	WORLD_TEST(a_schedule_has_its_limits),
	WORLD_TEST(the_ticks_of_an_expression_can_be_asked_for),
};

WORLD_MAIN("schedule", tests)
