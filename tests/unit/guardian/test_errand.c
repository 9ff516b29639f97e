/* What a runner, its guardian and the nannies tell each other, and what is no such thing. */
#include "guardian/errand.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "guardian/wards.h"
#include "support/fault.h"
#include "support/harness.h"

struct world {
	int ends[2];
	int fds[ORDER_FDS];
	struct errand_order order;
};

static int setup(void **state)
{
	static struct world world;
	world = (struct world){
		.fds = {0, 1, 2, -1, -1},
		.order = {.magic = ERRAND_MAGIC, .kind = ERRAND_START, .serial = 4711},
	};
	*state = &world;
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, world.ends);
}

static int teardown(void **state)
{
	const struct world *w = *state;
	close(w->ends[0]);
	close(w->ends[1]);
	return 0;
}

/* How many descriptors this process has that are not below the first free one. */
static int next_fd(void)
{
	int fd = dup(0);
	close(fd);
	return fd;
}

static void an_order_arrives_with_its_descriptors(void **state)
{
	struct world *w = *state;
	int free_before = next_fd();
	for (unsigned present = 0; present < 4; present++) {
		struct errand_order got;
		int fds[ORDER_FDS];
		w->order.present = (uint16_t)present;
		w->fds[ORDER_IN] = present & ORDER_HAS_IN ? 0 : -1;
		w->fds[ORDER_CHANNEL] = present & ORDER_HAS_CHANNEL ? 0 : -1;
		assert_int_equal(order_pass(w->ends[0], &w->order, w->fds), ERRAND_DONE);
		assert_int_equal(order_get(w->ends[1], &got, fds), ERRAND_DONE);
		assert_int_equal(got.serial, 4711);
		for (int i = 0; i < ORDER_FDS; i++) {
			assert_int_equal(fds[i] >= 0, w->fds[i] >= 0);
			if (fds[i] >= 0)
				assert_int_equal(fcntl(fds[i], F_GETFD), FD_CLOEXEC);
		}
		order_close(fds);
		assert_int_equal(next_fd(), free_before);
	}
}

static void nothing_and_nobody_are_told_apart(void **state)
{
	struct world *w = *state;
	struct errand_order order;
	struct errand_report report;
	int fds[ORDER_FDS];
	assert_int_equal(order_get(w->ends[1], &order, fds), ERRAND_NOT_NOW);
	assert_int_equal(report_get(w->ends[1], &report), ERRAND_NOT_NOW);
	close(w->ends[0]);
	assert_int_equal(order_get(w->ends[1], &order, fds), ERRAND_HUNG_UP);
	assert_int_equal(report_get(w->ends[1], &report), ERRAND_HUNG_UP);
	assert_int_equal(order_pass(w->ends[1], &w->order, w->fds), ERRAND_HUNG_UP);
	assert_int_equal(report_pass(w->ends[1], &report, true), ERRAND_HUNG_UP);
	w->ends[0] = dup(w->ends[1]);
}

static void what_is_no_order_is_closed_and_passed_over(void **state)
{
	struct world *w = *state;
	struct errand_order got;
	int fds[ORDER_FDS], free_before = next_fd();
	const struct {
		uint32_t magic;
		uint16_t kind;
		uint16_t present;
		bool known; /* only its descriptors are not what it says */
	} cases[] = {
		{ERRAND_MAGIC + 1, ERRAND_START, 0, false},
		{0, ERRAND_STOP, 0, false},
		{ERRAND_MAGIC, 0, 0, false},
		{ERRAND_MAGIC, ERRAND_KILL + 1, 0, false},
		{ERRAND_MAGIC, ERRAND_START, ORDER_HAS_IN, true},
		{ERRAND_MAGIC, ERRAND_START, ORDER_HAS_IN | ORDER_HAS_CHANNEL, true},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		w->order.magic = cases[i].magic;
		w->order.kind = cases[i].kind;
		w->order.present = cases[i].present;
		assert_int_equal(order_pass(w->ends[0], &w->order, w->fds), ERRAND_DONE);
		assert_int_equal(order_get(w->ends[1], &got, fds), ERRAND_STRANGE);
		assert_int_equal(got.kind != 0, cases[i].known);
		for (int k = 0; k < ORDER_FDS; k++)
			assert_int_equal(fds[k], -1);
		assert_int_equal(next_fd(), free_before);
	}
	assert_int_equal(send(w->ends[0], "short", 5, 0), 5);
	assert_int_equal(order_get(w->ends[1], &got, fds), ERRAND_STRANGE);
	assert_int_equal(got.kind, 0);
	char longer[sizeof got + 1] = "";
	assert_int_equal(send(w->ends[0], longer, sizeof longer, 0), sizeof longer);
	assert_int_equal(order_get(w->ends[1], &got, fds), ERRAND_STRANGE);
}

static void a_report_of_another_version_is_strange(void **state)
{
	struct world *w = *state;
	struct errand_report report = {.magic = ERRAND_MAGIC, .kind = ERRAND_ENDED, .code = 7}, got;
	assert_int_equal(report_pass(w->ends[0], &report, true), ERRAND_DONE);
	assert_int_equal(report_get(w->ends[1], &got), ERRAND_DONE);
	assert_int_equal(got.code, 7);
	report.magic++;
	assert_int_equal(report_pass(w->ends[0], &report, true), ERRAND_DONE);
	assert_int_equal(report_get(w->ends[1], &got), ERRAND_STRANGE);
	assert_int_equal(send(w->ends[0], &report, 8, 0), 8);
	assert_int_equal(report_get(w->ends[1], &got), ERRAND_STRANGE);
}

static void whoever_does_not_read_is_not_waited_for(void **state)
{
	struct world *w = *state;
	struct errand_report report = {.magic = ERRAND_MAGIC};
	enum errand_got got;
	do
		got = report_pass(w->ends[0], &report, true);
	while (got == ERRAND_DONE);
	assert_int_equal(got, ERRAND_NOT_NOW);
	assert_int_equal(order_pass(w->ends[0], &w->order, w->fds), ERRAND_NOT_NOW);
}

static int file_of(const void *bytes, size_t size)
{
	int fd = memfd_create("test", MFD_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), size);
	return fd;
}

static void arguments_and_variables_are_read_as_they_were_written(void **state)
{
	(void)state;
	char *argv[] = {(char *)"one", (char *)"", (char *)"three", NULL};
	char *env[] = {(char *)"A=1", NULL};
	AUTO(buf_done) struct buf buf;
	buf_init(&buf, baton_alloc_libc(), 1000);
	args_write(&buf, argv, env);
	AUTO(fd_closep) int fd = file_of(buf.data, buf.len);
	struct fault fault;
	fault_init(&fault);
	for (unsigned n = 1;; n++) {
		AUTO(errand_args_done) struct args args = {.alloc = &fault.alloc};
		fault_arm(&fault, n);
		enum baton_err e = args_read(&args, fd);
		if (fault_fired(&fault)) {
			assert_int_equal(e, BATON_NO_MEMORY);
			continue;
		}
		assert_int_equal(e, BATON_OK);
		for (int i = 0; i < 3; i++)
			assert_string_equal(args.argv[i], argv[i]);
		assert_null(args.argv[3]);
		assert_string_equal(args.env[0], "A=1");
		assert_null(args.env[1]);
		break;
	}
	fault_done(&fault);
}

static void what_is_no_list_of_arguments_is_refused(void **state)
{
	(void)state;
	const struct {
		struct baton_str bytes;
	} cases[] = {
		{BATON_STR("")},               /* nothing */
		{BATON_STR("\1\0\0\0")},       /* one, and none is there */
		{BATON_STR("\1\0\0")},         /* not even a number */
		{BATON_STR("\0\0\0\0A=1\0")},  /* no command */
		{BATON_STR("\2\0\0\0true\0")}, /* two, and one is there */
		{BATON_STR("\377\377\377\377true\0")} /* more than anything could hold */,
		{BATON_STR("\1\0\0\0true")}, /* without an end */
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		AUTO(fd_closep) int fd = file_of(cases[i].bytes.ptr, cases[i].bytes.len);
		AUTO(errand_args_done) struct args args = {.alloc = baton_alloc_libc()};
		assert_int_equal(args_read(&args, fd), BATON_INVALID);
	}
	AUTO(fd_closep) int fd = file_of("\1\0\0\0true\0", 9);
	AUTO(errand_args_done) struct args args = {.alloc = baton_alloc_libc()};
	assert_int_equal(ftruncate(fd, WARDS_ARGS_MAX + 5), 0);
	assert_int_equal(args_read(&args, fd), BATON_INVALID);
	assert_int_equal(args_read(&args, -1), BATON_SYSTEM);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_order_arrives_with_its_descriptors),
		TEST(nothing_and_nobody_are_told_apart),
		TEST(what_is_no_order_is_closed_and_passed_over),
		TEST(a_report_of_another_version_is_strange),
		TEST(whoever_does_not_read_is_not_waited_for),
		cmocka_unit_test(arguments_and_variables_are_read_as_they_were_written),
		cmocka_unit_test(what_is_no_list_of_arguments_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
