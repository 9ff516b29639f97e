/* Joining, leaving and losing a fleet. */
#include <baton/fleet.h>

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "contest/line.h"
#include "world.h"

static void the_first_to_join_makes_the_file(void **state)
{
	struct world *w = *state;
	struct stat st;
	w->ada = world_join(w, "ada");
	assert_int_equal(stat(w->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	/* All of it is there, so that no later write can fail. */
	assert_true(st.st_blocks * 512 >= st.st_size);
	assert_int_equal(stat(w->mark, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_true(baton_fleet_is_current(w->ada));
	struct baton_fleet_usage usage = usage_of(w->ada);
	assert_int_equal(usage.members, 1);
	assert_int_equal(usage.limits.members, WORLD_MEMBERS);
	assert_int_equal(usage.limits.subjects, WORLD_SUBJECTS);
	assert_int_equal(usage.limits.waiters, WORLD_WAITERS);
	assert_int_equal(usage.limits.events, WORLD_EVENTS);
	assert_int_equal(usage.limits.wakeups, WORLD_WAKEUPS);
}

static void a_fleet_for_the_group_is_for_the_group(void **state)
{
	struct world *w = *state;
	struct stat st;
	w->options.group = true;
	w->ada = world_join(w, "ada");
	assert_int_equal(stat(w->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0660);
	assert_int_equal(stat(w->mark, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0660);
}

static void one_that_is_there_keeps_its_limits(void **state)
{
	struct world *w = *state;
	w->ada = world_join(w, "ada");
	w->options.limits.subjects = 1000;
	w->ben = world_join(w, "ben");
	assert_int_equal(usage_of(w->ben).limits.subjects, WORLD_SUBJECTS);
}

static void limits_that_cannot_be_are_refused(void **state)
{
	struct world *w = *state;
	static const struct {
		struct baton_fleet_limits limits;
		const char *said;
	} cases[] = {
		{{.members = BATON_FLEET_MEMBERS_MAX + 1}, "65000"},
		{{.subjects = BATON_FLEET_SUBJECTS_MAX + 1}, "4194304"},
		{{.waiters = BATON_FLEET_WAITERS_MAX + 1}, "1048576"},
		{{.events = 3}, "power of 2"},
		{{.events = 2 * BATON_FLEET_EVENTS_MAX}, "65536"},
		{{.wakeups = 100}, "power of 2"},
		{{.wakeups = 2 * BATON_FLEET_WAKEUPS_MAX}, "1048576"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct baton_fleet *f = NULL;
		w->options.limits = cases[i].limits;
		assert_int_equal(world_join_error(w, "ada", &f), BATON_INVALID);
		assert_non_null(strstr(baton_err_detail(), cases[i].said));
		assert_int_equal(baton_fleet_twin(&w->options, &f), BATON_INVALID);
		assert_null(f);
		assert_int_not_equal(access(w->path, F_OK), 0);
	}
}

static void the_smallest_fleet_works(void **state)
{
	struct world *w = *state;
	w->options.limits = (struct baton_fleet_limits){1, 1, 1, 1, 1};
	w->ada = world_join(w, "ada");
	struct baton_claim x = hold(w->ada, "x");
	assert_int_equal(try_label(w->ada, "y", NULL), BATON_FULL);
	assert_int_equal(baton_claim_release(&x), BATON_OK);
	assert_int_equal(try_label(w->ada, "y", NULL), BATON_OK);
}

static void labels_and_paths_that_cannot_be_are_refused(void **state)
{
	struct world *w = *state;
	struct baton_fleet *f = NULL;
	char owner[300], path[BATON_FLEET_PATH_MAX + 2];
	memset(owner, 'o', 256);
	owner[256] = '\0';
	assert_int_equal(world_join_error(w, "", &f), BATON_INVALID);
	assert_int_equal(world_join_error(w, owner, &f), BATON_INVALID);
	assert_int_equal(world_join_error(w, "line\nfeed", &f), BATON_INVALID);
	assert_int_equal(world_join_error(w, "\xff", &f), BATON_INVALID);
	w->options.path = "relative/fleet";
	assert_int_equal(world_join_error(w, "ada", &f), BATON_INVALID);
	assert_non_null(strstr(baton_err_detail(), "absolute"));
	memset(path, 'p', sizeof path - 1);
	path[0] = '/';
	path[sizeof path - 1] = '\0';
	w->options.path = path;
	assert_int_equal(world_join_error(w, "ada", &f), BATON_INVALID);
	assert_non_null(strstr(baton_err_detail(), "4001"));
	w->options.path = w->path;
	w->options.mark = "relative";
	assert_int_equal(world_join_error(w, "ada", &f), BATON_INVALID);
	assert_null(f);
	assert_int_not_equal(access(w->path, F_OK), 0);
}

static void the_environment_can_name_the_fleet(void **state)
{
	struct world *w = *state;
	char path[BATON_FLEET_PATH_MAX + 1] = "as it was";
	setenv("BATON_FLEET", "relative", 1);
	assert_int_equal(baton_fleet_default(path), BATON_INVALID);
	assert_string_equal(path, "as it was");
	w->options.path = NULL;
	assert_int_equal(world_join_error(w, "ada", &w->ada), BATON_INVALID);
	setenv("BATON_FLEET", w->path, 1);
	assert_int_equal(baton_fleet_default(path), BATON_OK);
	assert_string_equal(path, w->path);
	w->ada = world_join(w, "ada");
	assert_int_equal(access(w->path, F_OK), 0);
	assert_int_equal(access(w->mark, F_OK), 0);
	unsetenv("BATON_FLEET");
}

static void a_process_may_be_several_members(void **state)
{
	struct world *w = *state;
	w->ada = world_join(w, "ada");
	w->ben = world_join(w, "ada");
	struct baton_id a = baton_fleet_incarnation(w->ada), b = baton_fleet_incarnation(w->ben);
	assert_false(baton_id_equal(&a, &b));
	hold(w->ada, "x");
	assert_int_equal(try_label(w->ben, "x", NULL), BATON_YIELD);
	assert_int_equal(usage_of(w->ada).members, 2);
	baton_fleet_leave(NULL);
}

static void members_are_limited_and_places_used_again(void **state)
{
	struct world *w = *state;
	struct baton_fleet *f[WORLD_MEMBERS], *more = NULL;
	for (unsigned i = 0; i < WORLD_MEMBERS; i++)
		f[i] = world_join(w, "member");
	assert_int_equal(world_join_error(w, "more", &more), BATON_FULL);
	assert_non_null(strstr(baton_err_detail(), "16"));
	assert_null(more);
	baton_fleet_leave(f[7]);
	f[7] = world_join(w, "more");
	assert_int_equal(f[7]->code, 8);
	for (unsigned i = 0; i < WORLD_MEMBERS; i++)
		baton_fleet_leave(f[i]);
	for (unsigned i = 0; i < 10 * WORLD_MEMBERS; i++)
		baton_fleet_leave(world_join(w, "member"));
}

static void places_of_the_dead_are_used_again(void **state)
{
	struct world *w = *state;
	struct kid kids[WORLD_MEMBERS - 1];
	struct baton_fleet *f = NULL;
	w->ada = world_join(w, "ada");
	for (unsigned i = 0; i < WORLD_MEMBERS - 1; i++)
		kid_start(&kids[i], w);
	assert_int_equal(world_join_error(w, "ben", &f), BATON_FULL);
	for (unsigned i = 0; i < WORLD_MEMBERS - 1; i++)
		kid_kill(&kids[i]);
	struct baton_fleet_usage usage = usage_of(w->ada);
	assert_int_equal(usage.members, 1);
	assert_int_equal(usage.departed, WORLD_MEMBERS - 1);
	w->ben = world_join(w, "ben");
	assert_int_equal(usage_of(w->ada).departed, 0);
}

/* The file goes while one holds and one waits. */
static void lose_the_file(struct world *w, void (*lose)(struct world *w))
{
	struct baton_duration left = {5};
	struct queued q;
	struct baton_subject subject = subject_of("x");
	struct baton_claim_ask ask = {.subject = &subject, .until = some_day()};
	struct baton_claim_holder holder;
	struct baton_claim x = hold(w->ada, "x"), claim;
	queued_start(&q, w->ben, "x", some_day());
	await_in_line(w->ada, 1);
	lose(w);
	assert_false(baton_fleet_is_current(w->ada));
	assert_int_equal(baton_claim_check(&x, &left), BATON_NOT_HELD);
	assert_int_equal(left.ns, 5);
	assert_int_equal(baton_claim_renew(&x, baton_duration_s(9)), BATON_NOT_HELD);
	assert_int_equal(baton_claim_release(&x), BATON_NOT_HELD);
	assert_int_equal(baton_claim_try(w->ada, &ask, &claim, NULL), BATON_GONE);
	assert_non_null(strstr(baton_err_detail(), w->path));
	assert_int_equal(baton_claim_wait(w->ada, &ask, &claim, NULL), BATON_GONE);
	assert_int_equal(baton_claim_adopt(w->ada, &subject, &claim), BATON_GONE);
	assert_int_equal(baton_claim_force(w->ada, &subject, NULL), BATON_GONE);
	assert_int_equal(baton_claim_holder(w->ada, &subject, now(), &holder), BATON_GONE);
	/* Who waits is woken by his own keeper. */
	assert_int_equal(queued_end(&q), BATON_GONE);
	assert_int_equal(try_label(w->ben, "y", NULL), BATON_GONE);
	struct baton_fleet *cy = world_join(w, "cy");
	assert_true(hold(cy, "x").fence.v > x.fence.v);
	assert_true(baton_fleet_is_current(cy));
	/* The end of the old ones does not touch the new one. */
	baton_fleet_leave(w->ada);
	baton_fleet_leave(w->ben);
	w->ada = w->ben = NULL;
	assert_int_equal(usage_of(cy).members, 1);
	assert_int_not_equal(holder_of(cy, "x").fence.v, 0);
	baton_fleet_leave(cy);
}

static void file_unlink(struct world *w)
{
	assert_int_equal(unlink(w->path), 0);
}

static void file_replace(struct world *w)
{
	char other[112];
	snprintf(other, sizeof other, "%s/other", w->folder);
	struct baton_fleet_options options = w->options;
	struct baton_fleet *f;
	options.path = other;
	options.mark = w->mark;
	assert_int_equal(baton_fleet_join(&options, &f), BATON_OK);
	baton_fleet_leave(f);
	assert_int_equal(rename(other, w->path), 0);
}

static void all_is_lost_with_a_file_that_was_removed(void **state)
{
	lose_the_file(*state, file_unlink);
}

static void all_is_lost_with_a_file_that_was_replaced(void **state)
{
	lose_the_file(*state, file_replace);
}

/* Whoever notices first that the file has gone may be another thread than the keeper. With a ticket
 * that nobody sleeps on, so that nobody gives it back meanwhile. */
static void who_waits_is_woken_also_when_another_thread_noticed_first(void **state)
{
	struct world *w = *state;
	struct view *v = w->ben->view;
	struct baton_claim x = hold(w->ada, "x"), y = hold(w->ben, "y");
	uint64_t hash = atomic_load(&v->slots[x.slot].hash);
	uint32_t ticket;
	assert_int_equal(line_enter(v, x.slot, hash, w->ben->code, &ticket), BATON_OK);
	uint32_t bell = atomic_load(&v->waiters[ticket].bell);
	atomic_store(w->ben->here, HERE_GONE);
	assert_int_equal(unlink(w->path), 0);
	assert_int_equal(baton_claim_check(&y, NULL), BATON_NOT_HELD);
	struct baton_mono late = in_ms(10000);
	while (atomic_load(&v->waiters[ticket].bell) == bell && baton_mono_live(late, now()))
		sched_yield();
	assert_int_not_equal(atomic_load(&v->waiters[ticket].bell), bell);
}

#define CROWD 100

static int join_at_once(int channel, void *arg)
{
	struct world *w = arg;
	char go[8], id[BATON_ID_TEXT];
	struct baton_fleet *f;
	struct baton_fleet_options options = w->options;
	channel_receive(channel, go, sizeof go);
	enum baton_err e = baton_fleet_join(&options, &f);
	if (e != BATON_OK) {
		channel_send(channel, e == BATON_BUSY ? "busy" : baton_err_detail());
		return 1;
	}
	channel_send(channel, baton_id_print(&f->view->segment.header->id, id));
	/* All stay until all have joined. */
	channel_receive(channel, go, sizeof go);
	baton_fleet_leave(f);
	return 0;
}

static void a_hundred_that_join_at_once_are_in_one_fleet(void **state)
{
	struct world *w = *state;
	static struct child crowd[CROWD];
	char first[256] = "", said[256];
	w->options.limits.members = CROWD + 1;
	for (int i = 0; i < CROWD; i++)
		child_start(&crowd[i], join_at_once, w);
	for (int i = 0; i < CROWD; i++)
		channel_send(crowd[i].channel, "go");
	unsigned different = 0, busy = 0;
	for (int i = 0; i < CROWD; i++) {
		channel_receive(crowd[i].channel, said, sizeof said);
		if (strcmp(said, "busy") == 0) {
			busy++; /* the machine let somebody wait who had the roster */
			continue;
		}
		if (first[0] == '\0')
			memcpy(first, said, sizeof first);
		different += strcmp(first, said) != 0;
	}
	printf("# %u of %d were told that somebody was in the way\n", busy, CROWD);
	w->ada = world_join(w, "ada");
	assert_int_equal(different, 0);
	assert_int_equal(usage_of(w->ada).members, CROWD + 1 - busy);
	for (int i = 0; i < CROWD; i++)
		child_hang_up(&crowd[i]);
	for (int i = 0; i < CROWD; i++)
		child_reap(&crowd[i]);
}

static void a_reset_is_refused_while_members_live(void **state)
{
	struct world *w = *state;
	struct kid kid;
	assert_int_equal(baton_fleet_reset(w->path), BATON_NOT_HELD);
	kid_start(&kid, w);
	assert_int_equal(baton_fleet_reset(w->path), BATON_YIELD);
	w->ada = world_join(w, "ada");
	struct baton_claim x = hold(w->ada, "x");
	assert_int_equal(baton_fleet_reset(w->path), BATON_YIELD);
	assert_int_equal(baton_claim_check(&x, NULL), BATON_OK);
	baton_fleet_leave(w->ada);
	w->ada = NULL;
	kid_stop(&kid);
	assert_int_equal(baton_fleet_reset(w->path), BATON_YIELD);
	kid_kill(&kid);
	assert_int_equal(baton_fleet_reset(w->path), BATON_OK);
	assert_int_not_equal(access(w->path, F_OK), 0);
	assert_int_equal(access(w->mark, F_OK), 0);
	assert_int_equal(baton_fleet_reset("relative"), BATON_INVALID);
}

static void a_reset_says_how_many_live_and_names_one(void **state)
{
	struct world *w = *state;
	w->ada = world_join(w, "ada");
	w->ben = world_join(w, "ben");
	assert_int_equal(baton_fleet_reset(w->path), BATON_YIELD);
	assert_non_null(strstr(baton_err_detail(), "2 members"));
	assert_non_null(strstr(baton_err_detail(), "ada"));
}

/* As when whoever reset it died before he could remove it. */
static void a_fleet_that_was_closed_is_followed_by_a_new_one(void **state)
{
	struct world *w = *state;
	w->ada = world_join(w, "ada");
	struct baton_id before = usage_of(w->ada).id;
	struct baton_claim x = hold(w->ada, "x");
	atomic_store(&w->ada->view->control->closed, 1);
	w->ben = world_join(w, "ben");
	struct baton_id after = usage_of(w->ben).id;
	assert_false(baton_id_equal(&before, &after));
	assert_false(baton_fleet_is_current(w->ada));
	assert_true(hold(w->ben, "x").fence.v > x.fence.v);
}

static void file_patch(const char *path, off_t at, const void *bytes, size_t len)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, len, at), (ssize_t)len);
	close(fd);
}

/* Opens nothing, changes nothing. */
static void assert_refused(struct world *w)
{
	struct stat before, after;
	struct baton_fleet *f = NULL;
	struct baton_watch *watch = NULL;
	assert_int_equal(stat(w->path, &before), 0);
	assert_int_equal(world_join_error(w, "ada", &f), BATON_INVALID);
	assert_non_null(strstr(baton_err_detail(), w->path));
	assert_int_equal(baton_watch_open(w->path, &watch), BATON_INVALID);
	assert_int_equal(baton_fleet_reset(w->path), BATON_INVALID);
	assert_null(f);
	assert_null(watch);
	assert_int_equal(stat(w->path, &after), 0);
	assert_true(before.st_ino == after.st_ino && before.st_size == after.st_size);
	assert_true(before.st_mtim.tv_sec == after.st_mtim.tv_sec &&
	            before.st_mtim.tv_nsec == after.st_mtim.tv_nsec);
}

static void what_is_no_fleet_of_ours_is_refused_and_left_as_it_is(void **state)
{
	struct world *w = *state;
	static const struct {
		size_t at;
		uint8_t byte;
	} damages[] = {
		{offsetof(struct segment_header, magic), 'X'},
		{offsetof(struct segment_header, layout), 99},
		{offsetof(struct segment_header, kind), 'X'},
		{offsetof(struct segment_header, kind_version), 99},
		{offsetof(struct segment_header, size), 1},
		{offsetof(struct segment_header, param_count), 4},
		{offsetof(struct segment_header, params), 77},
		{offsetof(struct segment_header, params) + 3, 0xff},
	};
	for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
		baton_fleet_leave(world_join(w, "ada"));
		file_patch(w->path, (off_t)damages[i].at, &damages[i].byte, 1);
		assert_refused(w);
		assert_int_equal(unlink(w->path), 0);
	}
}

/* As after a reboot, if its file is on a disk. */
static void a_fleet_of_an_earlier_boot_is_followed_by_a_new_one(void **state)
{
	struct world *w = *state;
	struct baton_watch *watch = NULL;
	w->ada = world_join(w, "ada");
	struct baton_claim x = hold(w->ada, "x");
	file_patch(w->path, offsetof(struct segment_header, boot), "an earlier boot.", 16);
	assert_int_equal(baton_watch_open(w->path, &watch), BATON_NOT_HELD);
	w->ben = world_join(w, "ben");
	assert_false(baton_fleet_is_current(w->ada));
	assert_true(hold(w->ben, "x").fence.v > x.fence.v);
}

static void files_of_another_size_or_mode_are_refused(void **state)
{
	struct world *w = *state;
	struct stat st;
	baton_fleet_leave(world_join(w, "ada"));
	assert_int_equal(stat(w->path, &st), 0);
	assert_int_equal(truncate(w->path, st.st_size - 4096), 0);
	assert_refused(w);
	assert_int_equal(truncate(w->path, st.st_size + 4096), 0);
	assert_refused(w);
	assert_int_equal(truncate(w->path, 10), 0);
	assert_refused(w);
	assert_int_equal(truncate(w->path, 0), 0);
	assert_refused(w);
	assert_int_equal(unlink(w->path), 0);
	baton_fleet_leave(world_join(w, "ada"));
	static const mode_t modes[] = {0666, 0644, 0606, 0777};
	for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
		assert_int_equal(chmod(w->path, modes[i]), 0);
		assert_refused(w);
	}
	assert_int_equal(chmod(w->path, 0600), 0);
	w->ada = world_join(w, "ada");
}

static void a_damaged_mark_is_refused_and_makes_no_fleet(void **state)
{
	struct world *w = *state;
	struct baton_fleet *f = NULL;
	FILE *mark = fopen(w->mark, "w");
	assert_non_null(mark);
	fputs("not a number at all!\n", mark);
	fclose(mark);
	assert_int_equal(chmod(w->mark, 0600), 0);
	assert_int_equal(world_join_error(w, "ada", &f), BATON_INVALID);
	assert_null(f);
	assert_int_not_equal(access(w->path, F_OK), 0);
}

static void a_twin_is_not_joined_by_its_path_nor_a_fleet_as_a_twin(void **state)
{
	struct world *w = *state;
	struct baton_fleet *f = NULL;
	w->ada = world_join(w, "ada");
	assert_int_equal(baton_fleet_twin_join(w->ada, BATON_STR("ben"), &f), BATON_INVALID);
	assert_null(f);
}

#define EXECS "60"

/* Joins, holds, and becomes itself again until it has done so often enough. */
static int join_and_exec(const char *path, const char *left)
{
	char fewer[24];
	struct baton_fleet_options options = {.path = path, .owner = BATON_STR("again")};
	struct baton_fleet *f;
	if (baton_fleet_join(&options, &f) != BATON_OK)
		return 10;
	if (try_label(f, "x", NULL) != BATON_OK)
		return 11;
	if (strcmp(left, "0") == 0)
		return view_members_used(f->view) <= 2 ? 0 : 12;
	snprintf(fewer, sizeof fewer, "%ld", strtol(left, NULL, 10) - 1);
	execl("/proc/self/exe", "again", path, fewer, (char *)NULL);
	return 13;
}

static int begin_to_exec(int channel, void *arg)
{
	struct world *w = arg;
	(void)channel;
	execl("/proc/self/exe", "again", w->path, EXECS, (char *)NULL);
	return 13;
}

static void becoming_another_program_and_joining_again_leaks_no_places(void **state)
{
	struct world *w = *state;
	struct child child;
	w->ada = world_join(w, "ada");
	child_start(&child, begin_to_exec, w);
	assert_int_equal(child_reap(&child), 0);
	assert_int_equal(try_label(w->ada, "x", NULL), BATON_OK);
}

int main(int argc, char **argv)
{
	if (argc == 3)
		return join_and_exec(argv[1], argv[2]);
	const struct CMUnitTest tests[] = {
		EMPTY_TEST(the_first_to_join_makes_the_file),
		EMPTY_TEST(a_fleet_for_the_group_is_for_the_group),
		EMPTY_TEST(one_that_is_there_keeps_its_limits),
		EMPTY_TEST(limits_that_cannot_be_are_refused),
		EMPTY_TEST(the_smallest_fleet_works),
		EMPTY_TEST(labels_and_paths_that_cannot_be_are_refused),
		EMPTY_TEST(the_environment_can_name_the_fleet),
		EMPTY_TEST(a_process_may_be_several_members),
		EMPTY_TEST(members_are_limited_and_places_used_again),
		EMPTY_TEST(places_of_the_dead_are_used_again),
		WORLD_TEST(all_is_lost_with_a_file_that_was_removed),
		WORLD_TEST(all_is_lost_with_a_file_that_was_replaced),
		WORLD_TEST(who_waits_is_woken_also_when_another_thread_noticed_first),
		EMPTY_TEST(a_hundred_that_join_at_once_are_in_one_fleet),
		EMPTY_TEST(a_reset_is_refused_while_members_live),
		EMPTY_TEST(a_reset_says_how_many_live_and_names_one),
		EMPTY_TEST(a_fleet_that_was_closed_is_followed_by_a_new_one),
		EMPTY_TEST(what_is_no_fleet_of_ours_is_refused_and_left_as_it_is),
		EMPTY_TEST(a_fleet_of_an_earlier_boot_is_followed_by_a_new_one),
		EMPTY_TEST(files_of_another_size_or_mode_are_refused),
		EMPTY_TEST(a_damaged_mark_is_refused_and_makes_no_fleet),
		EMPTY_TEST(a_twin_is_not_joined_by_its_path_nor_a_fleet_as_a_twin),
		EMPTY_TEST(becoming_another_program_and_joining_again_leaks_no_places),
	};
	return cmocka_run_group_tests_name("fleet", tests, NULL, NULL);
}
