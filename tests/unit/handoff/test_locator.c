/* Questions about lanes, asked on one thread and answered on another. */
#include "handoff/locator.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "support/fault.h"
#include "support/harness.h"

/* Whoever knows answers one question after the other, once the gate is open. */
struct oracle {
	pthread_mutex_t gate;
	unsigned calls; /* [gate] */
};

static enum baton_err where(void *arg, struct baton_str queue, struct baton_str lane,
                            struct baton_broker_place *ret)
{
	struct oracle *o = arg;
	pthread_mutex_lock(&o->gate);
	o->calls++;
	pthread_mutex_unlock(&o->gate);
	assert_int_equal(ret->owner[0], '\0');
	if (baton_str_equal(lane, BATON_STR("nowhere")))
		return BATON_NOT_FOUND;
	snprintf(ret->owner, sizeof ret->owner, "%.*s/%.*s", (int)queue.len, queue.ptr,
	         (int)lane.len, lane.ptr);
	return BATON_OK;
}

static struct locator_answer answer_await(struct locator *l)
{
	struct locator_answer answer;
	while (!locator_next(l, &answer)) {
		struct pollfd p = {.fd = locator_fd(l), .events = POLLIN};
		assert_int_equal(poll(&p, 1, 60000), 1);
	}
	return answer;
}

static void answers_come_in_order(void **state)
{
	(void)state;
	struct fault fault;
	struct oracle oracle = {.gate = PTHREAD_MUTEX_INITIALIZER};
	struct locator *l;
	fault_init(&fault);
	assert_int_equal(locator_open(&fault.alloc, where, &oracle, &l), BATON_OK);
	for (uint64_t i = 0; i < 600; i++) {
		bool nowhere = i % 3 == 0;
		char lane[16];
		snprintf(lane, sizeof lane, "%d", (int)i);
		assert_true(locator_ask(l, i, BATON_STR("mail"),
		                        baton_str_z(nowhere ? "nowhere" : lane)));
		if (i < 200)
			continue;
		struct locator_answer answer = answer_await(l);
		assert_int_equal(answer.connection, i - 200);
		assert_int_equal(answer.err, (i - 200) % 3 == 0 ? BATON_NOT_FOUND : BATON_OK);
		snprintf(lane, sizeof lane, "mail/%d", (int)i - 200);
		assert_string_equal(answer.place.owner, (i - 200) % 3 == 0 ? "" : lane);
	}
	locator_close(l);
	fault_done(&fault);
}

static void only_so_many_questions_are_open(void **state)
{
	(void)state;
	struct fault fault;
	struct oracle oracle = {.gate = PTHREAD_MUTEX_INITIALIZER};
	struct locator *l;
	fault_init(&fault);
	assert_int_equal(locator_open(&fault.alloc, where, &oracle, &l), BATON_OK);
	pthread_mutex_lock(&oracle.gate);
	for (uint64_t i = 0; i < LOCATOR_MAX; i++)
		assert_true(locator_ask(l, i, BATON_STR("q"), BATON_STR("l")));
	assert_false(locator_ask(l, LOCATOR_MAX, BATON_STR("q"), BATON_STR("l")));
	pthread_mutex_unlock(&oracle.gate);
	for (uint64_t i = 0; i < LOCATOR_MAX; i++)
		assert_int_equal(answer_await(l).connection, i);
	assert_true(locator_ask(l, 1, BATON_STR("q"), BATON_STR("l")));
	assert_int_equal(answer_await(l).connection, 1);
	locator_close(l);
	fault_done(&fault);
}

static void it_ends_with_questions_that_nobody_answered(void **state)
{
	(void)state;
	struct fault fault;
	struct oracle oracle = {.gate = PTHREAD_MUTEX_INITIALIZER};
	struct locator *l;
	fault_init(&fault);
	assert_int_equal(locator_open(&fault.alloc, where, &oracle, &l), BATON_OK);
	for (uint64_t i = 0; i < LOCATOR_MAX; i++)
		assert_true(locator_ask(l, i, BATON_STR("q"), BATON_STR("l")));
	locator_close(l);
	assert_true(oracle.calls <= LOCATOR_MAX);
	locator_close(NULL);
	fault_arm(&fault, 1);
	assert_int_equal(locator_open(&fault.alloc, where, &oracle, &l), BATON_NO_MEMORY);
	fault_done(&fault);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_come_in_order),
		cmocka_unit_test(only_so_many_questions_are_open),
		cmocka_unit_test(it_ends_with_questions_that_nobody_answered),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
