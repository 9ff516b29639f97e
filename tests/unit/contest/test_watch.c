/* Looking at a fleet from outside: what is told, in which order, and how much was missed. */
#include <baton/watch.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "contest/watch.h"
#include "world.h"

static const struct baton_mono at_once = {0};

static struct baton_watch *watch_of(struct world *w)
{
	struct baton_watch *watch = NULL;
	assert_int_equal(baton_watch_open(w->path, &watch), BATON_OK);
	return watch;
}

static struct baton_event next_of(struct baton_watch *watch)
{
	struct baton_event event = {.pid = 0};
	uint64_t lost = 0;
	enum baton_err e = baton_watch_next(watch, some_day(), NULL, &event, &lost);
	if (e != BATON_OK)
		fail_msg("no event but %s, %llu lost", baton_err_name(e), (unsigned long long)lost);
	return event;
}

static void assert_event(struct baton_watch *watch, enum baton_event_kind kind, const char *label,
                         uint64_t fence, const char *owner)
{
	struct baton_event event = next_of(watch);
	assert_string_equal(baton_event_name(event.kind), baton_event_name(kind));
	assert_true(baton_str_equal(event.space, BATON_STR("test")));
	assert_true(baton_str_equal(event.label, baton_str_z(label)));
	assert_int_equal(event.fence.v, fence);
	assert_string_equal(event.owner, owner);
}

static void assert_nothing(struct baton_watch *watch)
{
	struct baton_event event;
	uint64_t lost;
	assert_int_equal(baton_watch_next(watch, at_once, NULL, &event, &lost), BATON_TIMEOUT);
}

static void what_happens_is_told_in_order(void **state)
{
	struct world *w = *state;
	struct baton_subject x = subject_of("x");
	struct baton_claim_ask ask = {.subject = &x, .ttl = {1}};
	struct baton_claim brief;
	hold(w->ada, "before");
	struct baton_watch *watch = watch_of(w);
	assert_string_equal(baton_watch_path(watch), w->path);
	assert_nothing(watch);
	struct baton_claim a = hold(w->ada, "x");
	assert_int_equal(baton_claim_release(&a), BATON_OK);
	struct baton_claim b = hold(w->ben, "x");
	assert_int_equal(baton_claim_force(w->ada, &x, NULL), BATON_OK);
	assert_int_equal(baton_claim_try_at(w->ada, &ask, (struct baton_mono){1}, &brief, NULL),
	                 BATON_OK);
	struct baton_claim c = hold(w->ben, "x");
	assert_event(watch, BATON_EVENT_CLAIMED, "x", a.fence.v, "ada");
	assert_event(watch, BATON_EVENT_RELEASED, "x", a.fence.v, "ada");
	assert_event(watch, BATON_EVENT_CLAIMED, "x", b.fence.v, "ben");
	assert_event(watch, BATON_EVENT_FORCED, "x", b.fence.v, "ben");
	assert_event(watch, BATON_EVENT_CLAIMED, "x", brief.fence.v, "ada");
	assert_event(watch, BATON_EVENT_EXPIRED, "x", brief.fence.v, "ada");
	assert_event(watch, BATON_EVENT_CLAIMED, "x", c.fence.v, "ben");
	assert_nothing(watch);
	baton_watch_close(watch);
	baton_watch_close(NULL);
}

static void kinds_have_names(void **state)
{
	(void)state;
	assert_string_equal(baton_event_name(BATON_EVENT_CLAIMED), "claimed");
	assert_string_equal(baton_event_name(BATON_EVENT_RELEASED), "released");
	assert_string_equal(baton_event_name(BATON_EVENT_EXPIRED), "expired");
	assert_string_equal(baton_event_name(BATON_EVENT_DIED), "died");
	assert_string_equal(baton_event_name(BATON_EVENT_FORCED), "forced");
}

static void yields_and_renewals_are_no_events(void **state)
{
	struct world *w = *state;
	struct baton_claim x = hold(w->ada, "x");
	struct baton_watch *watch = watch_of(w);
	assert_int_equal(try_label(w->ben, "x", NULL), BATON_YIELD);
	assert_int_equal(baton_claim_renew(&x, baton_duration_s(9)), BATON_OK);
	assert_int_equal(baton_claim_check(&x, NULL), BATON_OK);
	assert_nothing(watch);
	baton_watch_close(watch);
}

static void the_death_of_a_holder_is_told_although_nobody_replaces_it(void **state)
{
	struct world *w = *state;
	struct kid kid;
	struct baton_watch *watch = watch_of(w);
	kid_start(&kid, w);
	kid_ask(&kid, "try x 0");
	assert_event(watch, BATON_EVENT_CLAIMED, "x", kid_fence(&kid), "kid");
	assert_nothing(watch);
	kid_kill(&kid);
	struct baton_event event = next_of(watch);
	assert_int_equal(event.kind, BATON_EVENT_DIED);
	assert_int_equal(event.fence.v, kid_fence(&kid));
	assert_int_equal(event.pid, kid.child.pid);
	/* Once, also when somebody takes it over. */
	struct baton_claim x = hold(w->ada, "x");
	assert_event(watch, BATON_EVENT_CLAIMED, "x", x.fence.v, "ada");
	assert_nothing(watch);
	baton_watch_close(watch);
}

static void the_death_of_a_holder_is_told_by_whoever_takes_over(void **state)
{
	struct world *w = *state;
	struct kid kid;
	kid_start(&kid, w);
	kid_ask(&kid, "try x 0");
	kid_kill(&kid);
	struct baton_watch *watch = watch_of(w);
	struct baton_claim x = hold(w->ada, "x");
	assert_event(watch, BATON_EVENT_DIED, "x", kid_fence(&kid), "kid");
	assert_event(watch, BATON_EVENT_CLAIMED, "x", x.fence.v, "ada");
	assert_nothing(watch);
	baton_watch_close(watch);
}

#define MANY (HEARD_MAX + 500)

/* More than a watch remembers at once. */
static void all_that_a_dead_member_held_is_told(void **state)
{
	struct world *w = *state;
	struct kid kid;
	char text[32];
	struct baton_event event;
	uint64_t lost;
	w->options.limits.subjects = MANY;
	w->ada = world_join(w, "ada");
	kid_start(&kid, w);
	for (unsigned i = 0; i < MANY; i++) {
		snprintf(text, sizeof text, "try kids-%u 0", i);
		kid_ask(&kid, text);
		kid_fence(&kid);
	}
	struct baton_watch *watch = watch_of(w);
	kid_kill(&kid);
	for (unsigned i = 0; i < MANY; i++) {
		assert_int_equal(baton_watch_next(watch, in_ms(10000), NULL, &event, &lost),
		                 BATON_OK);
		assert_int_equal(event.kind, BATON_EVENT_DIED);
	}
	assert_nothing(watch);
	baton_watch_close(watch);
}

static void a_watch_that_does_not_read_is_told_exactly_how_much_it_lost(void **state)
{
	struct world *w = *state;
	struct baton_claim held = hold(w->ben, "held");
	struct baton_watch *slow = watch_of(w), *quick = watch_of(w);
	struct baton_event event;
	uint64_t said = 0, told = 0, lost = 0;
	/* Ten times the room, in two events each; only the last subject's name has to be known. */
	unsigned cycles = 10 * WORLD_EVENTS / 2;
	for (unsigned i = 0; i < cycles; i++) {
		struct baton_claim x = hold(w->ada, "x");
		assert_int_equal(baton_claim_release(&x), BATON_OK);
		said += 2;
		assert_event(quick, BATON_EVENT_CLAIMED, "x", x.fence.v, "ada");
		assert_event(quick, BATON_EVENT_RELEASED, "x", x.fence.v, "ada");
	}
	for (;;) {
		uint64_t more = 0;
		enum baton_err e = baton_watch_next(slow, at_once, NULL, &event, &more);
		if (e == BATON_TIMEOUT)
			break;
		if (e == BATON_FULL) {
			assert_true(more > 0);
			lost += more;
			continue;
		}
		assert_int_equal(e, BATON_OK);
		told++;
	}
	assert_int_equal(told, WORLD_EVENTS);
	assert_int_equal(lost, said - WORLD_EVENTS);
	/* The truth is in the table. */
	assert_int_equal(baton_claim_check(&held, NULL), BATON_OK);
	baton_watch_close(slow);
	baton_watch_close(quick);
}

/* What somebody sees who looks at the table. */
struct seen {
	unsigned count;
	unsigned stop_after;
	uint64_t fences;
	char owner[BATON_NAME_MAX + 1];
};

static bool see(const struct baton_subject *subject, const struct baton_claim_holder *holder,
                void *arg)
{
	struct seen *seen = arg;
	assert_true(baton_str_equal(subject->space, BATON_STR("test")));
	seen->fences += holder->fence.v;
	memcpy(seen->owner, holder->owner, sizeof seen->owner);
	return ++seen->count != seen->stop_after;
}

static void the_table_can_be_looked_at(void **state)
{
	struct world *w = *state;
	struct baton_watch *watch = watch_of(w);
	struct seen seen = {.count = 0};
	baton_watch_each(watch, now(), see, &seen);
	assert_int_equal(seen.count, 0);
	struct baton_claim x = hold(w->ada, "x"), y = hold(w->ben, "y");
	struct baton_claim gone = hold(w->ben, "gone");
	hold_for(w->ben, "brief", 1000);
	baton_claim_release(&gone);
	baton_watch_each(watch, in_ms(2000), see, &seen);
	assert_int_equal(seen.count, 2);
	assert_int_equal(seen.fences, x.fence.v + y.fence.v);
	seen = (struct seen){.stop_after = 1};
	baton_watch_each(watch, now(), see, &seen);
	assert_int_equal(seen.count, 1);
	struct baton_fleet_usage usage;
	baton_watch_usage(watch, in_ms(2000), &usage);
	assert_int_equal(usage.subjects, 2);
	assert_int_equal(usage.known, 4);
	assert_int_equal(usage.members, 2);
	assert_int_equal(usage.waiters, 0);
	assert_true(usage.mark.v >= y.fence.v);
	baton_watch_close(watch);
}

static bool see_member(const struct baton_member *member, void *arg)
{
	struct baton_member *found = arg;
	if (strcmp(member->owner, "ada") == 0)
		found[0] = *member;
	else if (strcmp(member->owner, "kid") == 0)
		found[1] = *member;
	return true;
}

static void members_can_be_looked_at(void **state)
{
	struct world *w = *state;
	struct kid kid;
	struct baton_member found[2] = {{.pid = 0}};
	struct baton_watch *watch = watch_of(w);
	kid_start(&kid, w);
	hold(w->ada, "x");
	hold(w->ada, "y");
	kid_tell(&kid, "wait x 60000");
	await_in_line(w->ada, 1);
	baton_watch_members(watch, now(), see_member, found);
	struct baton_id ada = baton_fleet_incarnation(w->ada);
	assert_int_equal(found[0].pid, getpid());
	assert_true(baton_id_equal(&found[0].incarnation, &ada));
	assert_int_equal(found[0].held, 2);
	assert_int_equal(found[0].waiting, 0);
	assert_true(found[0].since.ns > 0 && found[0].since.ns <= now().ns);
	assert_int_equal(found[1].pid, kid.child.pid);
	assert_int_equal(found[1].held, 0);
	assert_int_equal(found[1].waiting, 1);
	kid_kill(&kid);
	found[1].pid = 0;
	baton_watch_members(watch, now(), see_member, found);
	assert_int_equal(found[1].pid, 0);
	baton_watch_close(watch);
}

static void a_watch_waits_until_its_time_or_until_it_is_cancelled(void **state)
{
	struct world *w = *state;
	struct baton_watch *watch = watch_of(w);
	struct baton_event event = {.pid = 5};
	struct baton_cancel cancel = {0};
	uint64_t lost = 5;
	struct baton_mono until = in_ms(5);
	assert_int_equal(baton_watch_next(watch, until, &cancel, &event, &lost), BATON_TIMEOUT);
	assert_true(now().ns >= until.ns);
	baton_cancel(&cancel);
	assert_int_equal(baton_watch_next(watch, some_day(), &cancel, &event, &lost),
	                 BATON_CANCELLED);
	assert_int_equal(event.pid, 5);
	assert_int_equal(lost, 5);
	baton_watch_close(watch);
}

static void a_watch_is_told_that_the_file_has_gone(void **state)
{
	struct world *w = *state;
	struct baton_watch *watch = watch_of(w), *none = NULL;
	struct baton_event event;
	uint64_t lost;
	assert_int_equal(unlink(w->path), 0);
	assert_int_equal(baton_watch_next(watch, some_day(), NULL, &event, &lost), BATON_GONE);
	baton_watch_close(watch);
	assert_int_equal(baton_watch_open(w->path, &none), BATON_NOT_HELD);
	assert_null(none);
	assert_int_not_equal(access(w->path, F_OK), 0);
}

static void a_descriptor_becomes_readable_when_something_happens(void **state)
{
	struct world *w = *state;
	struct baton_watch *watch = watch_of(w);
	int fd = -1, again = -1;
	eventfd_t count;
	assert_int_equal(baton_watch_fd(watch, &fd), BATON_OK);
	assert_int_equal(baton_watch_fd(watch, &again), BATON_OK);
	assert_int_equal(fd, again);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	/* It begins by saying so once. */
	assert_int_equal(poll(&p, 1, 60000), 1);
	assert_int_equal(eventfd_read(fd, &count), 0);
	assert_nothing(watch);
	struct baton_claim x = hold(w->ada, "x");
	assert_int_equal(poll(&p, 1, 60000), 1);
	assert_int_equal(eventfd_read(fd, &count), 0);
	assert_event(watch, BATON_EVENT_CLAIMED, "x", x.fence.v, "ada");
	baton_watch_close(watch);
}

static int write_to_the_table(int channel, void *arg)
{
	struct world *w = arg;
	struct baton_watch *watch;
	(void)channel;
	signal(SIGSEGV, SIG_DFL);
	if (baton_watch_open(w->path, &watch) != BATON_OK)
		return 1;
	*(volatile uint64_t *)(void *)&watch->view->slots[0].who = 0;
	return 0;
}

static void a_watch_cannot_write_to_the_table(void **state)
{
	struct child child;
	child_start(&child, write_to_the_table, *state);
	assert_int_equal(child_reap(&child), 128 + SIGSEGV);
}

static void events_of_a_member_that_has_left_are_nobodys(void **state)
{
	struct world *w = *state;
	struct baton_watch *watch = watch_of(w);
	struct baton_fleet *cy = world_join(w, "cy");
	struct baton_claim x = hold(cy, "x");
	baton_fleet_leave(cy);
	struct baton_event event = next_of(watch);
	assert_int_equal(event.fence.v, x.fence.v);
	assert_int_equal(event.pid, 0);
	assert_string_equal(event.owner, "");
	/* Nor those of the one who has his place now. */
	cy = world_join(w, "di");
	event = next_of(watch);
	assert_int_equal(event.kind, BATON_EVENT_RELEASED);
	assert_string_equal(event.owner, "");
	baton_fleet_leave(cy);
	baton_watch_close(watch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(what_happens_is_told_in_order),
		cmocka_unit_test(kinds_have_names),
		WORLD_TEST(yields_and_renewals_are_no_events),
		WORLD_TEST(the_death_of_a_holder_is_told_although_nobody_replaces_it),
		WORLD_TEST(the_death_of_a_holder_is_told_by_whoever_takes_over),
		EMPTY_TEST(all_that_a_dead_member_held_is_told),
		WORLD_TEST(a_watch_that_does_not_read_is_told_exactly_how_much_it_lost),
		WORLD_TEST(the_table_can_be_looked_at),
		WORLD_TEST(members_can_be_looked_at),
		WORLD_TEST(a_watch_waits_until_its_time_or_until_it_is_cancelled),
		WORLD_TEST(a_watch_is_told_that_the_file_has_gone),
		WORLD_TEST(a_descriptor_becomes_readable_when_something_happens),
		WORLD_TEST(a_watch_cannot_write_to_the_table),
		WORLD_TEST(events_of_a_member_that_has_left_are_nobodys),
	};
	return cmocka_run_group_tests_name("watch", tests, NULL, NULL);
}
