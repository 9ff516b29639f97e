/* The processes that descend from this one. */
#include "guardian/tree.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "support/child.h"
#include "support/fault.h"
#include "support/harness.h"

static void the_parent_stands_after_a_name_of_any_kind(void **state)
{
	(void)state;
	static const struct {
		const char *stat;
		int32_t parent; /* 0: cannot be read */
	} cases[] = {
		{"12 (sh) S 7 12 12 0", 7},
		{"12 (a ) S 9 b) R 8 12", 8},
		{"12 ()) Z 1 1", 1},
		{"12 (sh) S 2147483647 1", 2147483647},
		{"12 (sh) S 2147483648 1", 0},
		{"12 (sh) S -1 1", 0},
		{"12 (sh) S 7", 0},
		{"12 (sh) S ", 0},
		{"12 (sh)", 0},
		{"12 (sh", 0},
		{"", 0},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int32_t parent = 0;
		bool read = tree_parse_parent(baton_str_z(cases[i].stat), &parent);
		assert_int_equal(read, cases[i].parent != 0);
		assert_int_equal(parent, cases[i].parent);
	}
}

static void who_descends_is_kept_and_nobody_else(void **state)
{
	(void)state;
	/* 10 is the ancestor: 11, 12 below 11, 5 below 12 (pids start over), not 13 below 1. */
	struct kin kin[] = {{.pid = 1},
	                    {.pid = 5, .parent = 12},
	                    {.pid = 10, .parent = 1},
	                    {.pid = 11, .parent = 10},
	                    {.pid = 12, .parent = 11},
	                    {.pid = 13, .parent = 1},
	                    {.pid = 14, .parent = 13},
	                    {.pid = 15, .parent = 99}};
	assert_int_equal(tree_keep(kin, 8, 10), 3);
	assert_int_equal(kin[0].pid, 5);
	assert_int_equal(kin[1].pid, 11);
	assert_int_equal(kin[2].pid, 12);
}

static void a_circle_leads_nowhere(void **state)
{
	(void)state;
	struct kin kin[] = {{.pid = 2, .parent = 3},
	                    {.pid = 3, .parent = 4},
	                    {.pid = 4, .parent = 2},
	                    {.pid = 5, .parent = 2},
	                    {.pid = 6, .parent = 6}};
	assert_int_equal(tree_keep(kin, 5, 10), 0);
	assert_int_equal(tree_keep(kin, 0, 10), 0);
}

static void who_is_spared_goes_with_all_below(void **state)
{
	(void)state;
	/* 11 with 12 and 5, 13 with 14. */
	struct kin kin[] = {{.pid = 5, .parent = 12},
	                    {.pid = 11, .parent = 10},
	                    {.pid = 12, .parent = 11},
	                    {.pid = 13, .parent = 10},
	                    {.pid = 14, .parent = 13}};
	struct tree tree = {.kin = kin, .count = tree_keep(kin, 5, 10)};
	assert_int_equal(tree.count, 5);
	tree_spare(&tree, NULL, 0);
	assert_int_equal(tree.count, 5);
	tree_excuse(&tree, (const int32_t[]){13, 99}, 2);
	tree_spare(&tree, (const int32_t[]){11, 99}, 2);
	assert_int_equal(tree.count, 2);
	assert_int_equal(kin[0].pid, 13);
	assert_int_equal(kin[0].line, KIN_EXCUSED);
	assert_int_equal(kin[1].pid, 14);
	assert_int_equal(kin[1].line, KIN_OURS);
	tree_spare(&tree, (const int32_t[]){13}, 1);
	assert_int_equal(tree.count, 0);
}

/* Forks, and tells the pid of its child; both wait to be killed, or to be asked. */
static int with_a_child(int channel, void *arg)
{
	char message[16];
	(void)arg;
	pid_t pid = fork();
	if (pid == 0) {
		while (channel_receive(channel, message, sizeof message))
			channel_send(channel, "here");
		return 0;
	}
	snprintf(message, sizeof message, "%d", (int)pid);
	channel_send(channel, message);
	pause();
	return 0;
}

static int32_t start_family(struct child *c)
{
	char message[16];
	child_start(c, with_a_child, NULL);
	assert_true(channel_receive(c->channel, message, sizeof message));
	return (int32_t)atoi(message);
}

static bool has(const struct tree *t, int32_t pid)
{
	for (size_t i = 0; i < t->count; i++) {
		if (t->kin[i].pid == pid)
			return true;
	}
	return false;
}

static void children_and_their_children_are_found(void **state)
{
	(void)state;
	struct child c;
	char message[16];
	AUTO(tree_done) struct tree tree = {.alloc = baton_alloc_libc()};
	/* Who is signalled after his parent has died is found by this. */
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
	int32_t grandchild = start_family(&c);
	assert_int_equal(tree_look(&tree), BATON_OK);
	assert_int_equal(tree.count, 2);
	assert_true(has(&tree, c.pid));
	assert_true(has(&tree, grandchild));
	tree_signal(&tree, SIGKILL);
	assert_false(channel_receive(c.channel, message, sizeof message));
	assert_int_equal(child_reap(&c), 128 + SIGKILL);
}

static void who_is_not_of_the_family_gets_no_signal(void **state)
{
	(void)state;
	struct child c;
	char message[16];
	/* As if the pid had belonged to another process when the tree was looked at: its parent is
	 * neither this process nor one of the tree. */
	struct kin kin = {.pid = start_family(&c), .parent = getpid()};
	struct tree stale = {.alloc = baton_alloc_libc(), .kin = &kin, .count = 1, .room = 1};
	tree_signal(&stale, SIGKILL);
	channel_send(c.channel, "there?");
	assert_true(channel_receive(c.channel, message, sizeof message));
	assert_string_equal(message, "here");
	kin.pid = c.pid;
	tree_signal(&stale, SIGKILL);
	child_hang_up(&c);
	assert_int_equal(child_reap(&c), 128 + SIGKILL);
}

static void each_allocation_may_fail(void **state)
{
	(void)state;
	struct fault fault;
	fault_init(&fault);
	for (unsigned n = 1;; n++) {
		AUTO(tree_done) struct tree tree = {.alloc = &fault.alloc};
		fault_arm(&fault, n);
		enum baton_err e = tree_look(&tree);
		if (!fault_fired(&fault)) {
			assert_int_equal(e, BATON_OK);
			break;
		}
		assert_int_equal(e, BATON_NO_MEMORY);
		assert_int_equal(tree.count, 0);
	}
	fault_done(&fault);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_parent_stands_after_a_name_of_any_kind),
		cmocka_unit_test(who_descends_is_kept_and_nobody_else),
		cmocka_unit_test(a_circle_leads_nowhere),
		cmocka_unit_test(who_is_spared_goes_with_all_below),
		cmocka_unit_test(children_and_their_children_are_found),
		cmocka_unit_test(who_is_not_of_the_family_gets_no_signal),
		cmocka_unit_test(each_allocation_may_fail),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
