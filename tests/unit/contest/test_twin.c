/* A fleet without a file gives the same answers as one with a file. */
#include <baton/fleet.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "world.h"

/* A step of a scenario: who does what with which subject, at which moment, and what is answered. */
enum verb {
	TRY = 1,
	RELEASE,
	RENEW,
	CHECK,
	ADOPT,
	FORCE,
	HOLDER
};

struct deed {
	enum verb verb;
	bool ben; /* else ada */
	const char *label;
	int64_t ttl_ms;
	int64_t at_ms; /* from an hour after now, so that nothing has expired by the real clock */
};

static const struct deed deeds[] = {
	{TRY, false, "x", 0, 0},        {TRY, true, "x", 0, 0},      {TRY, false, "x", 0, 0},
	{ADOPT, false, "x", 0, 0},      {ADOPT, true, "x", 0, 0},    {CHECK, false, "x", 0, 5},
	{RELEASE, true, "x", 0, 0},     {RELEASE, false, "x", 0, 0}, {RELEASE, false, "x", 0, 0},
	{HOLDER, true, "x", 0, 0},      {TRY, true, "x", 10, 0},     {CHECK, true, "x", 0, 9},
	{CHECK, true, "x", 0, 10},      {RENEW, true, "x", 20, 9},   {CHECK, true, "x", 0, 28},
	{HOLDER, false, "x", 0, 28},    {HOLDER, false, "x", 0, 29}, {TRY, false, "x", 5, 29},
	{RENEW, true, "x", 5, 29},      {RELEASE, true, "x", 0, 0},  {FORCE, true, "x", 0, 29},
	{FORCE, true, "x", 0, 29},      {CHECK, false, "x", 0, 29},  {TRY, false, "", 0, 0},
	{TRY, false, "y", -5, 0},       {RENEW, false, "y", 5, 0},   {CHECK, false, "y", 0, 100},
	{TRY, true, "z", INT64_MAX, 0}, {CHECK, true, "z", 0, 1},    {HOLDER, true, "never", 0, 0},
	{FORCE, true, "never", 0, 0},   {TRY, true, "w", 1, 0},      {TRY, true, "w", 1, 1},
};

#define DEEDS (sizeof deeds / sizeof deeds[0])

struct answer {
	int64_t left;    /* by a check                           */
	uint64_t fence;  /* from the first one on                */
	int64_t expires; /* by a yield and a look at the holder, in ms from the beginning */
	int64_t since;   /* the same                             */
	char owner[16];  /* the same                             */
	enum baton_err e;
	bool own; /* the same */
};

struct play {
	struct world *w;
	struct baton_mono begin;
	struct baton_claim claims[2][4]; /* of ada and ben; x, y, z, w */
	uint64_t first;
};

static struct baton_claim *claim_of(struct play *p, const struct deed *d)
{
	size_t n = d->label[0] >= 'x' ? (size_t)(d->label[0] - 'x') : 3;
	return &p->claims[d->ben][n];
}

static void describe(const struct play *p, const struct baton_claim_holder *h, struct answer *a)
{
	a->own = h->own;
	a->fence = h->fence.v - p->first;
	a->expires = h->expires.ns == INT64_MAX ? -1 : (h->expires.ns - p->begin.ns) / 1000000;
	a->since = (h->since.ns - p->begin.ns) / 1000000;
	snprintf(a->owner, sizeof a->owner, "%.15s", h->owner);
}

static struct answer play_one(struct play *p, const struct deed *d)
{
	struct baton_fleet *f = d->ben ? p->w->ben : p->w->ada;
	struct baton_subject subject = subject_of(d->label);
	struct baton_mono at = baton_mono_add(p->begin, baton_duration_ms(d->at_ms));
	struct baton_duration ttl = baton_duration_ms(d->ttl_ms), left = {-1};
	struct baton_claim_ask ask = {.subject = &subject, .ttl = ttl};
	struct baton_claim_holder holder = {.pid = 0};
	struct baton_claim *claim = claim_of(p, d);
	struct answer a = {.left = -1};
	switch (d->verb) {
	case TRY:
		a.e = baton_claim_try_at(f, &ask, at, claim, &holder);
		if (p->first == 0)
			p->first = claim->fence.v;
		if (a.e == BATON_OK)
			a.fence = claim->fence.v - p->first;
		else if (a.e == BATON_YIELD)
			describe(p, &holder, &a);
		break;
	case RELEASE:
		a.e = baton_claim_release(claim);
		break;
	case RENEW:
		a.e = baton_claim_renew_at(claim, ttl, at);
		break;
	case CHECK:
		a.e = baton_claim_check_at(claim, at, &left);
		a.left = left.ns;
		break;
	case ADOPT:
		a.e = baton_claim_adopt(f, &subject, claim);
		break;
	case FORCE:
		a.e = baton_claim_force(f, &subject, &holder);
		break;
	case HOLDER:
		a.e = baton_claim_holder(f, &subject, at, &holder);
		if (a.e == BATON_OK)
			describe(p, &holder, &a);
		break;
	}
	return a;
}

static void play_all(int (*setup)(void **state), struct answer answers[DEEDS])
{
	void *state = NULL;
	assert_int_equal(setup(&state), 0);
	struct play p = {.w = state, .begin = in_ms(3600000)};
	for (size_t i = 0; i < DEEDS; i++)
		answers[i] = play_one(&p, &deeds[i]);
	assert_int_equal(world_teardown(&state), 0);
}

static void a_twin_answers_as_a_file_does(void **state)
{
	static struct answer file[DEEDS], twin[DEEDS];
	(void)state;
	play_all(world_setup, file);
	play_all(world_setup_twin, twin);
	unsigned held = 0;
	for (size_t i = 0; i < DEEDS; i++) {
		const struct answer *a = &file[i], *b = &twin[i];
		if (a->e != b->e || a->left != b->left || a->fence != b->fence ||
		    a->own != b->own || a->expires != b->expires || a->since != b->since ||
		    strcmp(a->owner, b->owner) != 0)
			fail_msg("deed %zu: %s with a file, %s without", i, baton_err_name(a->e),
			         baton_err_name(b->e));
		held += a->e == BATON_OK;
	}
	/* It is a scenario in which something happens. */
	assert_true(held > 10 && held < DEEDS - 10);
}

#define TWIN_TEST(name) cmocka_unit_test_setup_teardown(name, world_setup_twin, world_teardown)

static void a_twin_has_no_file(void **state)
{
	struct world *w = *state;
	struct baton_watch *watch;
	assert_int_not_equal(access(w->path, F_OK), 0);
	assert_int_not_equal(access(w->mark, F_OK), 0);
	assert_true(baton_fleet_is_current(w->ada));
	assert_int_equal(baton_watch_fleet(w->ada, &watch), BATON_OK);
	assert_string_equal(baton_watch_path(watch), "");
	struct baton_claim x = hold(w->ben, "x");
	struct baton_event event;
	uint64_t lost;
	assert_int_equal(baton_watch_next(watch, some_day(), NULL, &event, &lost), BATON_OK);
	assert_int_equal(event.fence.v, x.fence.v);
	assert_string_equal(event.owner, "ben");
	baton_watch_close(watch);
}

static void two_twins_are_two_fleets(void **state)
{
	struct world *w = *state;
	struct baton_fleet *other = NULL;
	assert_int_equal(baton_fleet_twin(&w->options, &other), BATON_OK);
	hold(w->ada, "x");
	assert_int_equal(try_label(other, "x", NULL), BATON_OK);
	baton_fleet_leave(other);
}

static void who_leaves_a_twin_gives_all_back_and_the_last_ends_it(void **state)
{
	struct world *w = *state;
	struct queued q;
	hold(w->ada, "x");
	queued_start(&q, w->ben, "x", some_day());
	await_in_line(w->ada, 1);
	baton_fleet_leave(w->ada);
	w->ada = NULL;
	assert_int_equal(queued_end(&q), BATON_OK);
	assert_int_equal(usage_of(w->ben).members, 1);
}

static void members_of_a_twin_are_limited_and_places_used_again(void **state)
{
	struct world *w = *state;
	struct baton_fleet *f[WORLD_MEMBERS], *more = NULL;
	for (unsigned i = 2; i < WORLD_MEMBERS; i++)
		assert_int_equal(baton_fleet_twin_join(w->ada, BATON_STR("one"), &f[i]), BATON_OK);
	assert_int_equal(baton_fleet_twin_join(w->ada, BATON_STR("more"), &more), BATON_FULL);
	assert_int_equal(baton_fleet_twin_join(w->ada, BATON_STR(""), &more), BATON_INVALID);
	assert_null(more);
	for (unsigned i = 2; i < WORLD_MEMBERS; i++)
		baton_fleet_leave(f[i]);
	assert_int_equal(baton_fleet_twin_join(w->ada, BATON_STR("more"), &more), BATON_OK);
	baton_fleet_leave(more);
}

static int use_the_parents_twin(int channel, void *arg)
{
	struct world *w = arg;
	(void)channel;
	if (baton_fleet_is_current(w->ada) || try_label(w->ada, "x", NULL) != BATON_GONE)
		return 1;
	baton_fleet_leave(w->ada);
	baton_fleet_leave(w->ben);
	return 0;
}

static void a_forked_child_is_no_member_of_a_twin(void **state)
{
	struct world *w = *state;
	struct child child;
	child_start(&child, use_the_parents_twin, w);
	assert_int_equal(child_reap(&child), 0);
	assert_int_equal(try_label(w->ada, "x", NULL), BATON_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_twin_answers_as_a_file_does),
		TWIN_TEST(a_twin_has_no_file),
		TWIN_TEST(two_twins_are_two_fleets),
		TWIN_TEST(who_leaves_a_twin_gives_all_back_and_the_last_ends_it),
		TWIN_TEST(members_of_a_twin_are_limited_and_places_used_again),
		TWIN_TEST(a_forked_child_is_no_member_of_a_twin),
	};
	return cmocka_run_group_tests_name("twin", tests, NULL, NULL);
}
