/* What can be seen: batches, their reasons, lists, and when something is due. */
#include "world.h"

static enum baton_why why(struct world *w, const struct baton_batch_id *id)
{
	return look(w, id)->why;
}

static int64_t next_due(struct world *w, const char *queue)
{
	struct baton_store_time due = {-1};
	enum baton_err e = baton_work_next_due(w->store, baton_str_z(queue), &due);
	assert_true(e == BATON_OK || (e == BATON_NOT_FOUND && due.ms == -1));
	return e == BATON_OK ? due.ms - START_MS : -1;
}

static void a_look_shows_all_about_a_batch(void **state)
{
	struct world *w = *state;
	struct baton_batch b = batch_of("q", "x", NULL);
	b.slot = BATON_JOIN;
	b.group = BATON_STR("g");
	b.priority = 3;
	b.delivery = BATON_AFTER_COMMIT;
	struct baton_batch_id id = put_batch(w, &b);
	const struct baton_work_info *info = look(w, &id);
	assert_str(info->queue, "q");
	assert_str(info->lane, "x");
	assert_str(info->batch.group, "g");
	assert_int_equal(info->batch.priority, 3);
	assert_int_equal(info->batch.slot, BATON_JOIN);
	assert_int_equal(info->batch.delivery, BATON_AFTER_COMMIT);
	assert_int_equal(info->batch.cls, BATON_WORK);
	assert_int_equal(info->batch.attempt, 0);
	assert_str(info->batch.payloads[0], "payload");
	const struct baton_work_claim *c = claim(w, "q", 1);
	info = look(w, &id);
	assert_str(info->claim, c->proof.id);
	assert_int_equal(info->fence.v, c->fence.v);
	assert_string_equal(info->owner.id, "tester");
	assert_int_equal(info->claimed_at.ms, START_MS);
	assert_int_equal(info->expires_at.ms, START_MS + 1000);
	assert_int_equal(info->batch.attempt, 1);
	assert_int_equal(info->why, BATON_WHY_NOTHING);
}

static void there_is_no_batch_of_a_name_that_was_never_given(void **state)
{
	struct world *w = *state;
	static const char *const names[] = {"1", "", "01", "-1", "x", "99999999999999999999999"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct baton_batch_id id = {""};
		struct baton_work_page *page;
		memcpy(id.text, names[i], strlen(names[i]));
		assert_int_equal(baton_work_get(w->store, &id, &page), BATON_NOT_FOUND);
		assert_detail("there is no job");
	}
}

static void the_reason_why_it_does_not_run_is_the_first_of_them(void **state)
{
	struct world *w = *state;
	struct baton_batch_id first = put(w, "q", "x"), second = put(w, "q", "x");
	struct baton_batch_id later = put_later(w, "q", "x", 100), single = put(w, "q", "");
	assert_int_equal(why(w, &first), BATON_WHY_READY);
	assert_int_equal(why(w, &second), BATON_WHY_BEHIND);
	assert_id(look(w, &second)->ahead, first);
	assert_int_equal(why(w, &later), BATON_WHY_DELAYED);
	baton_queue_pause(w->store, BATON_STR("q"), true);
	assert_int_equal(why(w, &first), BATON_WHY_PAUSED);
	assert_int_equal(why(w, &second), BATON_WHY_BEHIND);
	assert_int_equal(why(w, &single), BATON_WHY_PAUSED);
	baton_queue_pause(w->store, BATON_STR("q"), false);
	claim(w, "q", 1);
	assert_int_equal(why(w, &first), BATON_WHY_NOTHING);
	assert_int_equal(why(w, &second), BATON_WHY_BEHIND);
}

static void a_list_goes_by_number_in_pages(void **state)
{
	struct world *w = *state;
	for (int i = 0; i < 5; i++)
		put(w, "q", i % 2 ? "x" : "");
	put(w, "other", "x");
	struct baton_work_filter f = {.queue = BATON_STR("q"), .max = 2};
	const struct baton_work_page *page = list(w, &f);
	assert_int_equal(page->count, 2);
	assert_string_equal(page->infos[1].batch.id.text, "2");
	assert_int_equal(page->infos[0].batch.count, 0);
	f.after = page->next;
	page = list(w, &f);
	f.after = page->next;
	assert_string_equal(page->infos[0].batch.id.text, "3");
	page = list(w, &f);
	assert_int_equal(page->count, 1);
	assert_int_equal(page->next, 0);
	f = (struct baton_work_filter){.max = 6};
	page = list(w, &f);
	assert_int_equal(page->count, 6);
	assert_int_equal(page->next, 0);
}

static void a_list_can_be_of_a_lane_or_of_a_state(void **state)
{
	struct world *w = *state;
	put(w, "q", "x");
	put(w, "other", "x");
	put_later(w, "q", "y", 100);
	struct baton_work_filter f = {.lane = BATON_STR("x"), .max = 10};
	assert_int_equal(list(w, &f)->count, 2);
	f.queue = BATON_STR("q");
	assert_int_equal(list(w, &f)->count, 1);
	f = (struct baton_work_filter){.state = BATON_BATCH_DELAYED, .max = 10};
	assert_int_equal(list(w, &f)->count, 1);
	assert_string_equal(list(w, &f)->infos[0].batch.id.text, "3");
	f = (struct baton_work_filter){.queue = BATON_STR("none"), .max = 10};
	assert_int_equal(list(w, &f)->count, 0);
}

static void a_revived_batch_is_listed_by_its_new_number(void **state)
{
	struct world *w = *state;
	struct baton_batch_id id = put(w, "q", "x");
	put(w, "q", "x");
	end(w, claim(w, "q", 1), BATON_REJECT);
	revive(w, &id);
	const struct baton_work_filter f = {.max = 10};
	const struct baton_work_page *page = list(w, &f);
	assert_string_equal(page->infos[0].batch.id.text, "2");
	assert_string_equal(page->infos[1].batch.id.text, "1");
}

static void an_error_is_shown_in_full_only_by_a_look(void **state)
{
	struct world *w = *state;
	char text[300];
	memset(text, 'e', sizeof text);
	memcpy(text + 199, "\xc3\xa9", 2);
	struct baton_batch_id id = put(w, "q", "x");
	const struct baton_work_end e = {.proof = claim(w, "q", 1)->proof,
	                                 .how = BATON_REJECT,
	                                 .error = {text, 300}};
	end_with(w, &e);
	assert_int_equal(look(w, &id)->error.len, 300);
	const struct baton_work_filter f = {.max = 1};
	assert_int_equal(list(w, &f)->infos[0].error.len, 199);
}

static void results_are_not_in_a_list(void **state)
{
	struct world *w = *state;
	struct baton_queue_policy p = policy(w, "q");
	p.keep = baton_duration_s(60);
	set_policy(w, "q", &p);
	put(w, "q", "x");
	const struct baton_work_end e = {.proof = claim(w, "q", 1)->proof,
	                                 .how = BATON_COMPLETE,
	                                 .result = BATON_STR("r")};
	end_with(w, &e);
	const struct baton_work_filter f = {.state = BATON_BATCH_DONE, .max = 1};
	assert_int_equal(list(w, &f)->count, 1);
	assert_int_equal(list(w, &f)->infos[0].result.len, 0);
}

static void the_next_due_is_the_first_delay_or_expiry(void **state)
{
	struct world *w = *state;
	assert_int_equal(next_due(w, ""), -1);
	put_later(w, "q", "x", 5000);
	put_later(w, "other", "x", 300);
	assert_int_equal(next_due(w, "q"), 5000);
	assert_int_equal(next_due(w, ""), 300);
	assert_int_equal(next_due(w, "none"), -1);
	put(w, "q", "y");
	const struct baton_work_claim *c = claim(w, "q", 1);
	assert_int_equal(next_due(w, "q"), 1000);
	renew(w, c, 2000);
	assert_int_equal(next_due(w, "q"), 2000);
	baton_queue_pause(w->store, BATON_STR("q"), true);
	assert_int_equal(next_due(w, "q"), -1);
	assert_int_equal(next_due(w, ""), 300);
}

static void a_claim_that_is_offered_is_due_no_more(void **state)
{
	struct world *w = *state;
	put(w, "q", "x");
	put(w, "q", "y");
	claim(w, "q", 1);
	advance(w, 500);
	claim(w, "q", 1);
	assert_int_equal(next_due(w, "q"), 1000);
	advance(w, 500);
	claim(w, "q", 1);
	assert_int_equal(next_due(w, "q"), 1500);
}

static void the_oldest_is_the_age_of_the_first_head(void **state)
{
	struct world *w = *state;
	put(w, "q", "x");
	advance(w, 100);
	put(w, "q", "y");
	advance(w, 50);
	assert_int_equal(counts(w, "q").oldest.ns, baton_duration_ms(150).ns);
	claim(w, "q", 1);
	assert_int_equal(counts(w, "q").oldest.ns, baton_duration_ms(50).ns);
	claim(w, "q", 1);
	assert_int_equal(counts(w, "q").oldest.ns, 0);
}

static const struct CMUnitTest tests[] = {
	WORLD_TEST(a_look_shows_all_about_a_batch),
	WORLD_TEST(there_is_no_batch_of_a_name_that_was_never_given),
	WORLD_TEST(the_reason_why_it_does_not_run_is_the_first_of_them),
	WORLD_TEST(a_list_goes_by_number_in_pages),
	WORLD_TEST(a_list_can_be_of_a_lane_or_of_a_state),
	WORLD_TEST(a_revived_batch_is_listed_by_its_new_number),
	WORLD_TEST(an_error_is_shown_in_full_only_by_a_look),
	WORLD_TEST(results_are_not_in_a_list),
	WORLD_TEST(the_next_due_is_the_first_delay_or_expiry),
	WORLD_TEST(a_claim_that_is_offered_is_due_no_more),
	WORLD_TEST(the_oldest_is_the_age_of_the_first_head),
};

WORLD_MAIN("look", tests)
