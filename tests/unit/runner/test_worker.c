/* A persistent worker as the runner sees it: pauses, claims, and lines in both directions. */
#include "runner/worker.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/harness.h"

struct world {
	struct worker worker;
	int other; /* the end of the process */
};

static int make(void **state)
{
	static struct world w;
	int ends[2];
	worker_init(&w.worker, baton_alloc_libc());
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
		return -1;
	w.worker.fd = ends[0];
	w.other = ends[1];
	*state = &w;
	return 0;
}

static int unmake(void **state)
{
	struct world *w = *state;
	worker_shut(&w->worker);
	worker_shut(&w->worker);
	if (w->other >= 0)
		close(w->other);
	return 0;
}

static void whoever_dies_is_started_again_later_and_later(void **state)
{
	(void)state;
	static const struct {
		int64_t last, lived, pause; /* ms */
	} cases[] = {
		{0, 0, 100},       {100, 0, 200},         {200, 59999, 400},   {400, 60000, 100},
		{12800, 0, 25600}, {14999, 0, 29998},     {15000, 0, 30000},   {25600, 0, 30000},
		{30000, 0, 30000}, {30000, 59999, 30000}, {30000, 60000, 100},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct baton_duration pause = worker_pause(baton_duration_ms(cases[i].last),
		                                           baton_duration_ms(cases[i].lived));
		assert_int_equal(pause.ns, baton_duration_ms(cases[i].pause).ns);
	}
}

static void say(const struct world *w, const char *bytes)
{
	assert_int_equal(send(w->other, bytes, strlen(bytes), 0), (ssize_t)strlen(bytes));
}

static enum worker_got hear(struct world *w)
{
	enum worker_got got;
	assert_int_equal(worker_read(&w->worker, &got), BATON_OK);
	return got;
}

static void next_is(struct world *w, const char *line)
{
	struct baton_str found;
	assert_true(worker_line(&w->worker, &found));
	assert_int_equal(found.len, strlen(line));
	assert_memory_equal(found.ptr, line, found.len);
}

static void nothing_follows(struct world *w)
{
	struct baton_str found;
	assert_false(worker_line(&w->worker, &found));
}

static void lines_come_whole_however_they_were_cut(void **state)
{
	struct world *w = *state;
	nothing_follows(w);
	assert_int_equal(hear(w), WORKER_NOTHING);
	say(w, "on");
	assert_int_equal(hear(w), WORKER_SOME);
	nothing_follows(w);
	assert_int_equal(worker_rest(&w->worker), 2);
	say(w, "e\n\ntwo\nthr");
	assert_int_equal(hear(w), WORKER_SOME);
	next_is(w, "one");
	next_is(w, "");
	next_is(w, "two");
	nothing_follows(w);
	assert_int_equal(worker_rest(&w->worker), 3);
	say(w, "ee\n");
	assert_int_equal(hear(w), WORKER_SOME);
	next_is(w, "three");
	nothing_follows(w);
	assert_int_equal(worker_rest(&w->worker), 0);
	say(w, "x");
	close(w->other);
	w->other = -1;
	assert_int_equal(hear(w), WORKER_SOME);
	assert_int_equal(hear(w), WORKER_END);
	assert_int_equal(worker_rest(&w->worker), 1);
}

static const struct baton_str payloads[] = {BATON_STR("a\"b\n"), BATON_STR("\xff"), BATON_STR("")};
static const struct baton_work_batch batches[] = {
	{.id = {"7"}, .seq = 70, .attempt = 2, .payloads = payloads, .count = 1},
	{.id = {"8"}, .seq = 80, .attempt = 1, .payloads = payloads + 1, .count = 2},
};
static const struct baton_work_claim claim = {
	.proof = {.id = "c-1"},
	.fence = {5},
	.queue = BATON_STR("q"),
	.lane = BATON_STR("l/\xc3\xa9"),
	.batches = batches,
	.count = 2,
};

static void a_claim_is_a_line_and_so_is_its_cancellation(void **state)
{
	static const char expected[] =
		"{\"claim\":\"c-1\",\"fence\":5,\"queue\":\"q\",\"lane\":\"l/\xc3\xa9\","
		"\"concurrency_key\":null,"
		"\"attempt\":2,\"jobs\":[{\"id\":\"7\",\"seq\":70,\"payload\":\"a\\\"b\\n\"},"
		"{\"id\":\"8\",\"seq\":80,"
		"\"payloads\":[{\"payload_base64\":\"/w==\"},{\"payload\":\"\"}]}]}\n"
		"{\"cancel\":\"c-1\"}\n";
	struct world *w = *state;
	char found[1024];
	assert_int_equal(worker_give(&w->worker, &claim), BATON_OK);
	assert_int_equal(worker_cancel(&w->worker, &claim), BATON_OK);
	assert_true(worker_write(&w->worker));
	assert_true(worker_write(&w->worker));
	ssize_t n = recv(w->other, found, sizeof found - 1, 0);
	assert_int_equal(n, (ssize_t)sizeof expected - 1);
	found[n] = '\0';
	assert_string_equal(found, expected);
}

static void what_cannot_be_added_whole_is_not_there(void **state)
{
	struct world *w = *state;
	char found[64];
	assert_int_equal(worker_cancel(&w->worker, &claim), BATON_OK);
	w->worker.out.max = 100;
	assert_int_equal(worker_give(&w->worker, &claim), BATON_FULL);
	assert_int_equal(worker_cancel(&w->worker, &claim), BATON_OK);
	assert_true(worker_write(&w->worker));
	ssize_t n = recv(w->other, found, sizeof found - 1, 0);
	assert_int_equal(n, 34);
	assert_memory_equal(found, "{\"cancel\":\"c-1\"}\n{\"cancel\":\"c-1\"}\n", 34);
}

static void who_does_not_read_is_written_to_as_far_as_the_socket_takes_it(void **state)
{
	struct world *w = *state;
	char found[65536];
	size_t total = 0, lines = 0;
	ssize_t n;
	/* The socket takes a few hundred thousand bytes; then a chunk is kept here, and no more. */
	while (!worker_is_full(&w->worker)) {
		assert_int_equal(worker_cancel(&w->worker, &claim), BATON_OK);
		lines++;
		(void)worker_write(&w->worker);
	}
	assert_false(worker_write(&w->worker));
	assert_true(w->worker.out.len - w->worker.written < 65536 + 64);
	while (!worker_write(&w->worker) || total < 17 * lines) {
		n = recv(w->other, found, sizeof found, MSG_DONTWAIT);
		assert_true(n > 0);
		total += (size_t)n;
	}
	assert_int_equal(total, 17 * lines);
}

static void who_has_gone_is_not_written_to(void **state)
{
	struct world *w = *state;
	close(w->other);
	w->other = -1;
	assert_int_equal(worker_cancel(&w->worker, &claim), BATON_OK);
	assert_true(worker_write(&w->worker));
}

static void claims_are_kept_in_the_order_in_which_they_came(void **state)
{
	(void)state;
	struct errand a = {.run = 1}, b = {.run = 2}, c = {.run = 3};
	struct errands list = {.count = 0};
	errands_add(&list, &a);
	errands_add(&list, &b);
	errands_add(&list, &c);
	errands_remove(&list, &b);
	assert_ptr_equal(list.first, &a);
	assert_ptr_equal(a.next, &c);
	errands_remove(&list, &c);
	assert_ptr_equal(list.last, &a);
	errands_add(&list, &b);
	assert_ptr_equal(a.next, &b);
	errands_remove(&list, &a);
	errands_remove(&list, &b);
	assert_null(list.first);
	assert_null(list.last);
	assert_int_equal(list.count, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, unmake)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whoever_dies_is_started_again_later_and_later),
		TEST(lines_come_whole_however_they_were_cut),
		TEST(a_claim_is_a_line_and_so_is_its_cancellation),
		TEST(what_cannot_be_added_whole_is_not_there),
		TEST(who_does_not_read_is_written_to_as_far_as_the_socket_takes_it),
		TEST(who_has_gone_is_not_written_to),
		cmocka_unit_test(claims_are_kept_in_the_order_in_which_they_came),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
