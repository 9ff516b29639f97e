/* The servers of tests: several at a time, each for itself, and gone with whoever started it,
 * however he ends. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/child.h"
#include "support/cluster.h"
#include "support/harness.h"

#define PATIENCE_MS 60000 /* longer than a server takes to end */

/* Starts one, says where it is and who cares for it, and ends when he is told to. */
static int own_server(int channel, void *arg)
{
	struct cluster c;
	char text[200], database[200];
	(void)arg;
	if (!cluster_start(&c, false))
		return 1;
	cluster_database(&c, database, sizeof database);
	cluster_run(database, "CREATE TABLE t(x int)");
	snprintf(text, sizeof text, "%d %s", (int)c.helper, c.directory);
	channel_send(channel, text);
	channel_receive(channel, text, sizeof text);
	cluster_stop(&c);
	return 0;
}

struct owner {
	struct child child;
	char directory[150];
	int helper, server; /* handles of these processes */
};

static int handle_of(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	assert_true(fd >= 0);
	return fd;
}

static pid_t server_in(const char *directory)
{
	char path[200];
	int pid = 0;
	snprintf(path, sizeof path, "%s/data/postmaster.pid", directory);
	FILE *f = fopen(path, "re");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%d", &pid), 1);
	fclose(f);
	return pid;
}

static void owner_start(struct owner *o)
{
	char text[200];
	int helper = 0;
	child_start(&o->child, own_server, NULL);
	assert_true(channel_receive(o->child.channel, text, sizeof text));
	assert_int_equal(sscanf(text, "%d %149s", &helper, o->directory), 2);
	o->helper = handle_of(helper);
	o->server = handle_of(server_in(o->directory));
}

static bool has_ended(int handle, int within_ms)
{
	struct pollfd on = {.fd = handle, .events = POLLIN};
	return poll(&on, 1, within_ms) == 1;
}

static void assert_gone(struct owner *o)
{
	assert_true(has_ended(o->server, PATIENCE_MS));
	assert_true(has_ended(o->helper, PATIENCE_MS));
	assert_int_not_equal(access(o->directory, F_OK), 0);
	close(o->server);
	close(o->helper);
}

static void a_server_ends_with_whoever_started_it(void **state)
{
	struct owner killed, done;
	(void)state;
	owner_start(&killed);
	owner_start(&done);
	assert_string_not_equal(killed.directory, done.directory);
	kill(killed.child.pid, SIGKILL);
	assert_int_equal(child_reap(&killed.child), 128 + SIGKILL);
	assert_gone(&killed);
	assert_false(has_ended(done.server, 0));
	channel_send(done.child.channel, "end");
	assert_int_equal(child_reap(&done.child), 0);
	assert_gone(&done);
}

int main(void)
{
	struct cluster c;
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_server_ends_with_whoever_started_it)};
	if (!cluster_start(&c, false)) {
		printf("1..0 # SKIP no PostgreSQL server can be started here\n");
		return 0;
	}
	cluster_stop(&c);
	return cmocka_run_group_tests_name("cluster", tests, NULL, NULL);
}
