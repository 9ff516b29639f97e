/* Several processes on one store: they are started before the store is opened, since a file that
 * was opened is not for a forked child, and do what they are told. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <baton/lease.h>
#include <baton/shard.h>
#include <baton/store.h>
#include <baton/work.h>

#include "support/child.h"
#include "support/cluster.h"
#include "support/harness.h"

#define MATES 4
#define ROUNDS 20
#define ANSWER 200
#define COMMAND (ANSWER + 16)

struct team {
	char directory[200];
	char where[256];
	struct child mates[MATES];
};

/* With that source key, in a lane of that name; or, after a '@', without these and with that
 * concurrency key. */
static void say_put(int channel, struct baton_store *store, const char *key)
{
	const bool keyed = key[0] == '@';
	static const struct baton_str payload = {"p", 1};
	char text[64];
	struct baton_put put = {.existing = false};
	const struct baton_batch b = {.queue = BATON_STR("q"),
	                              .lane = baton_str_z(keyed ? "" : key),
	                              .key = baton_str_z(keyed ? key + 1 : ""),
	                              .source = baton_str_z(keyed ? "" : key),
	                              .payloads = &payload,
	                              .count = 1};
	enum baton_err e = baton_work_put(store, &b, 1, &put);
	snprintf(text, sizeof text, "%d %d %s", e, put.existing, put.id.text);
	channel_send(channel, text);
}

#define TOGETHER 5

/* So many in one call, each with its own key, which begins with that. */
static void say_together(int channel, struct baton_store *store, const char *prefix)
{
	static const struct baton_str payload = {"p", 1};
	struct baton_batch b[TOGETHER];
	struct baton_put puts[TOGETHER];
	char keys[TOGETHER][32], text[8];
	for (int i = 0; i < TOGETHER; i++) {
		snprintf(keys[i], sizeof keys[i], "%.24s%d", prefix, i);
		b[i] = (struct baton_batch){.queue = BATON_STR("q"),
		                            .key = baton_str_z(keys[i]),
		                            .payloads = &payload,
		                            .count = 1};
	}
	snprintf(text, sizeof text, "%d 0", (int)baton_work_put(store, b, TOGETHER, puts));
	channel_send(channel, text);
}

/* And which claim it is, so that others can end it too. */
static void say_claim(int channel, struct baton_store *store, struct baton_duration ttl)
{
	struct baton_work_claims *claims = NULL;
	const struct baton_work_ask ask = {.queue = BATON_STR("q"),
	                                   .ttl = ttl,
	                                   .claims = 1,
	                                   .max = 1};
	enum baton_err e = baton_work_claim(store, &ask, &claims);
	char text[ANSWER], token[BATON_ID_TEXT];
	if (claims)
		snprintf(text, sizeof text, "%d 1 %s %s", e, claims->claims[0].proof.id,
		         baton_id_print(&claims->claims[0].proof.token, token));
	else
		snprintf(text, sizeof text, "%d 0", e);
	baton_work_claims_free(claims);
	channel_send(channel, text);
}

/* `claim`: as say_claim() has said it. */
static void say_end(int channel, struct baton_store *store, const char *claim,
                    enum baton_work_how how)
{
	struct baton_work_end end = {.how = how};
	struct baton_work_ended answer = {.err = BATON_SYSTEM};
	char text[ANSWER];
	size_t len = strcspn(claim, " ");
	memcpy(end.proof.id, claim, len);
	enum baton_err e = baton_id_parse(baton_str_z(claim + len + 1), &end.proof.token);
	if (e == BATON_OK)
		e = baton_work_end(store, &end, 1, &answer);
	snprintf(text, sizeof text, "%d %d", e, answer.err);
	channel_send(channel, text);
}

static void say_cancel(int channel, struct baton_store *store, const char *name)
{
	struct baton_batch_id id = {""};
	enum baton_cancelled answer = BATON_CANCEL_MISSING;
	char text[ANSWER];
	memcpy(id.text, name, strlen(name));
	enum baton_err e = baton_work_cancel(store, &id, 1, &answer);
	snprintf(text, sizeof text, "%d %d", e, answer);
	channel_send(channel, text);
}

static void say_hold(int channel, struct baton_store *store, const char *subject)
{
	const struct baton_lease_ask ask = {.subject = baton_str_z(subject)};
	struct baton_lease_answer answer = {.err = BATON_OK};
	enum baton_err e = baton_lease_claim(store, &ask, 1, &answer);
	char text[64];
	snprintf(text, sizeof text, "%d %d %" PRIu64, e, answer.err, answer.lease.fence.v);
	channel_send(channel, text);
}

static struct baton_runner *enlisted; /* of this mate */

/* Registers as "r", with that life file; "-": without one. */
static void say_runner(int channel, struct baton_store *store, const char *life)
{
	const struct baton_runner_ask ask = {.name = BATON_STR("r"),
	                                     .ttl = baton_duration_s(3600),
	                                     .life = strcmp(life, "-") == 0 ? BATON_STR("")
	                                                                    : baton_str_z(life)};
	char text[64];
	snprintf(text, sizeof text, "%d", baton_runner_register(store, &ask, &enlisted, NULL));
	channel_send(channel, text);
}

/* Takes over whoever is registered. */
static void say_take_over(int channel, struct baton_store *store)
{
	static struct baton_runner_info info;
	size_t count = 0;
	char text[64];
	enum baton_err e = baton_runner_list(store, 0, &info, 1, &count);
	if (e == BATON_OK)
		e = baton_runner_take_over(store, &info);
	snprintf(text, sizeof text, "%d", e);
	channel_send(channel, text);
}

static bool begins(const char *command, const char *with, const char **ret_rest)
{
	size_t len = strlen(with);
	*ret_rest = command + len;
	return strncmp(command, with, len) == 0;
}

static void obey(int channel, struct baton_store *store, const char *command)
{
	const char *rest;
	if (begins(command, "put ", &rest))
		say_put(channel, store, rest);
	else if (begins(command, "together ", &rest))
		say_together(channel, store, rest);
	else if (begins(command, "claim", &rest))
		say_claim(channel, store, baton_duration_s(3600));
	else if (begins(command, "touch", &rest))
		say_claim(channel, store, baton_duration_ms(1));
	else if (begins(command, "complete ", &rest))
		say_end(channel, store, rest, BATON_COMPLETE);
	else if (begins(command, "abandon ", &rest))
		say_end(channel, store, rest, BATON_ABANDON);
	else if (begins(command, "cancel ", &rest))
		say_cancel(channel, store, rest);
	else if (begins(command, "hold ", &rest))
		say_hold(channel, store, rest);
	else if (begins(command, "runner ", &rest))
		say_runner(channel, store, rest);
	else if (begins(command, "take over", &rest))
		say_take_over(channel, store);
}

static int mate(int channel, void *arg)
{
	const struct baton_store_options options = {.where = baton_str_z(arg)};
	struct baton_store *store = NULL;
	char command[COMMAND];
	while (channel_receive(channel, command, sizeof command)) {
		if (strcmp(command, "open") == 0)
			channel_send(channel, baton_store_open(&options, &store) == BATON_OK
			                              ? "open"
			                              : baton_err_detail());
		else
			obey(channel, store, command);
	}
	baton_runner_leave(enlisted);
	baton_store_close(store);
	return 0;
}

static void answer_of(struct team *t, int i, char text[ANSWER])
{
	assert_true(channel_receive(t->mates[i].channel, text, ANSWER));
}

static void ask_all(struct team *t, const char *command)
{
	for (int i = 0; i < MATES; i++)
		channel_send(t->mates[i].channel, command);
}

static int start_mates(struct team *t, void **state)
{
	for (int i = 0; i < MATES; i++)
		child_start(&t->mates[i], mate, t->where);
	char text[ANSWER];
	ask_all(t, "open");
	for (int i = 0; i < MATES; i++) {
		answer_of(t, i, text);
		assert_string_equal(text, "open");
	}
	*state = t;
	return 0;
}

static const char *kind = "sqlite:";
static struct cluster cluster;

static int setup(void **state)
{
	struct team *t = calloc(1, sizeof *t);
	const char *tmp = getenv("TMPDIR");
	if (strcmp(kind, "postgres:") == 0) {
		cluster_database(&cluster, t->where, sizeof t->where);
		return start_mates(t, state);
	}
	snprintf(t->directory, sizeof t->directory, "%s/baton-processes-XXXXXX",
	         tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(t->directory));
	snprintf(t->where, sizeof t->where, "sqlite:%s/store", t->directory);
	return start_mates(t, state);
}
/* Whoever was killed has been reaped already. */
static int teardown(void **state)
{
	struct team *t = *state;
	struct baton_store *store = NULL;
	uint64_t faults = 1;
	for (int i = 0; i < MATES; i++) {
		if (t->mates[i].pid == 0)
			continue;
		child_hang_up(&t->mates[i]);
		assert_int_equal(child_reap(&t->mates[i]), 0);
	}
	const struct baton_store_options options = {.where = baton_str_z(t->where)};
	assert_int_equal(baton_store_open(&options, &store), BATON_OK);
	assert_int_equal(baton_store_check(store, NULL, NULL, &faults), BATON_OK);
	assert_int_equal(faults, 0);
	baton_store_close(store);
	if (cluster.directory[0])
		cluster_drop(&cluster, t->where);
	static const char *const ends[] = {"", "-wal", "-shm", "-turn", "-beats"};
	for (int i = 0; i < 5; i++) {
		char path[300];
		snprintf(path, sizeof path, "%s/store%s", t->directory, ends[i]);
		unlink(path);
	}
	rmdir(t->directory);
	free(t);
	return 0;
}

static void of_puts_with_one_source_key_one_is_stored_and_all_have_its_id(void **state)
{
	struct team *t = *state;
	for (int round = 0; round < ROUNDS; round++) {
		char command[64], text[ANSWER], first[ANSWER] = "";
		int stored = 0;
		snprintf(command, sizeof command, "put key%d", round);
		ask_all(t, command);
		for (int i = 0; i < MATES; i++) {
			answer_of(t, i, text);
			assert_int_equal(text[0], '0');
			stored += text[2] == '0';
			if (i == 0)
				snprintf(first, sizeof first, "%s", text + 4);
			assert_string_equal(text + 4, first);
		}
		assert_int_equal(stored, 1);
	}
}

static void one_of_many_claimants_has_a_batch(void **state)
{
	struct team *t = *state;
	char text[ANSWER];
	for (int round = 0; round < ROUNDS; round++) {
		char command[64];
		int given = 0;
		snprintf(command, sizeof command, "put key%d", round);
		channel_send(t->mates[0].channel, command);
		answer_of(t, 0, text);
		ask_all(t, "claim");
		for (int i = 0; i < MATES; i++) {
			answer_of(t, i, text);
			assert_int_equal(text[0], '0');
			given += text[2] == '1';
		}
		assert_int_equal(given, 1);
	}
}

static void one_of_many_claimants_holds_a_key(void **state)
{
	struct team *t = *state;
	char text[ANSWER], command[COMMAND] = "complete ";
	for (int i = 0; i < 2 * MATES; i++) {
		channel_send(t->mates[i % MATES].channel, "put @k");
		answer_of(t, i % MATES, text);
		assert_int_equal(text[0], '0');
	}
	for (int round = 0; round < 2 * MATES; round++) {
		int given = 0;
		ask_all(t, "claim");
		for (int i = 0; i < MATES; i++) {
			answer_of(t, i, text);
			assert_int_equal(text[0], '0');
			if (text[2] == '0')
				continue;
			given++;
			snprintf(command + 9, sizeof command - 9, "%s", text + 4);
		}
		assert_int_equal(given, 1);
		channel_send(t->mates[round % MATES].channel, command);
		answer_of(t, round % MATES, text);
		assert_string_equal(text, "0 0");
	}
}

/* Two put jobs of the same keys while two claim: of each key one is claimed, and one waits. */
static void of_the_same_keys_that_two_put_together_one_job_each_is_claimed(void **state)
{
	struct team *t = *state;
	char text[ANSWER], command[COMMAND];
	static const char *const first[] = {"put @first",
	                                    "claim"}; /* from then on there is a queue */
	for (int i = 0; i < 2; i++) {
		channel_send(t->mates[0].channel, first[i]);
		answer_of(t, 0, text);
		assert_int_equal(text[0], '0');
	}
	for (int round = 0; round < ROUNDS; round++) {
		int given = 0, last = 0;
		snprintf(command, sizeof command, "together %d.", round);
		for (int i = 0; i < MATES; i++)
			channel_send(t->mates[i].channel, i % 2 == 0 ? command : "claim");
		do {
			last = given;
			for (int i = 0; i < MATES; i++) {
				answer_of(t, i, text);
				assert_int_equal(text[0], '0');
				given += text[2] == '1';
			}
			ask_all(t, "claim");
		} while (given > last || last == 0);
		for (int i = 0; i < MATES; i++) {
			answer_of(t, i, text);
			assert_string_equal(text, "0 0");
		}
		assert_int_equal(given, TOGETHER);
	}
}

static void one_of_many_claimants_holds_a_subject(void **state)
{
	struct team *t = *state;
	for (int round = 0; round < ROUNDS; round++) {
		char command[64], text[ANSWER];
		int held = 0;
		snprintf(command, sizeof command, "hold s%d", round);
		ask_all(t, command);
		for (int i = 0; i < MATES; i++) {
			answer_of(t, i, text);
			assert_int_equal(text[0], '0');
			held += text[2] == '0';
		}
		assert_int_equal(held, 1);
	}
}

static uint64_t hold(struct team *t, int i, const char *subject)
{
	char command[64], text[ANSWER];
	snprintf(command, sizeof command, "hold %s", subject);
	channel_send(t->mates[i].channel, command);
	answer_of(t, i, text);
	assert_true(strncmp(text, "0 0 ", 4) == 0);
	return strtoull(text + 4, NULL, 10);
}

static void a_holder_that_was_killed_is_replaced_at_once(void **state)
{
	struct team *t = *state;
	char text[ANSWER];
	uint64_t first = hold(t, 0, "s");
	channel_send(t->mates[1].channel, "hold s");
	answer_of(t, 1, text);
	assert_true(strncmp(text, "0 1 ", 4) == 0);
	kill(t->mates[0].pid, SIGKILL);
	child_await_end(&t->mates[0]);
	uint64_t second = hold(t, 1, "s");
	assert_true(second > first);
	assert_int_equal(child_reap(&t->mates[0]), 128 + SIGKILL);
	t->mates[0].pid = 0;
	kill(t->mates[1].pid, SIGKILL);
	assert_int_equal(child_reap(&t->mates[1]), 128 + SIGKILL);
	t->mates[1].pid = 0;
	assert_true(hold(t, 2, "s") > second);
}

/* All of the others ask at once for what the dead one held. */
static void of_many_who_want_what_a_dead_holder_had_one_has_it(void **state)
{
	struct team *t = *state;
	uint64_t last = 0;
	for (int round = 0; round < MATES - 1; round++) {
		char text[ANSWER];
		int held = 0, winner = 0;
		uint64_t fence = 0;
		for (int i = round; i < MATES; i++)
			channel_send(t->mates[i].channel, "hold s");
		for (int i = round; i < MATES; i++) {
			answer_of(t, i, text);
			if (strncmp(text, "0 0 ", 4) != 0)
				continue;
			held++;
			winner = i;
			fence = strtoull(text + 4, NULL, 10);
		}
		assert_int_equal(held, 1);
		assert_true(fence > last);
		last = fence;
		kill(t->mates[winner].pid, SIGKILL);
		assert_int_equal(child_reap(&t->mates[winner]), 128 + SIGKILL);
		t->mates[winner] = t->mates[round];
		t->mates[round].pid = 0;
	}
}

static void assert_answers(struct team *t, int i, const char *command, const char *answer)
{
	char text[ANSWER];
	channel_send(t->mates[i].channel, command);
	answer_of(t, i, text);
	assert_string_equal(text, answer);
}

static void strike_dead(struct team *t, int i)
{
	kill(t->mates[i].pid, SIGKILL);
	assert_int_equal(child_reap(&t->mates[i]), 128 + SIGKILL);
	t->mates[i].pid = 0;
}

/* Its handlers may live: whoever wants its place has to find that out. */
static void a_killed_runner_makes_way_at_once_unless_it_has_a_life_file(void **state)
{
	struct team *t = *state;
	char yields[16];
	snprintf(yields, sizeof yields, "%d", BATON_YIELD);
	assert_answers(t, 0, "runner -", "0");
	assert_answers(t, 1, "runner /r.life", yields);
	strike_dead(t, 0);
	assert_answers(t, 1, "runner /r.life", "0");
	strike_dead(t, 1);
	assert_answers(t, 2, "runner -", yields);
	assert_answers(t, 2, "take over", "0");
	assert_answers(t, 2, "runner -", "0");
}

/* Tells one, and has its answer. */
static void tell(struct team *t, int i, char text[ANSWER], const char *what, const char *rest)
{
	char command[COMMAND];
	snprintf(command, sizeof command, "%s%s", what, rest);
	channel_send(t->mates[i].channel, command);
	answer_of(t, i, text);
	assert_int_equal(text[0], '0');
}

/* Tells two at once, and has what each answers after its first word. */
static void tell_two(struct team *t, const char *one, const char *two, int ret[2])
{
	const char *const commands[2] = {one, two};
	char text[ANSWER];
	for (int i = 0; i < 2; i++)
		channel_send(t->mates[i].channel, commands[i]);
	for (int i = 0; i < 2; i++) {
		answer_of(t, i, text);
		assert_int_equal(text[0], '0');
		ret[i] = atoi(text + 2);
	}
}

static void put_key(struct team *t, int round, char text[ANSWER])
{
	char key[32];
	snprintf(key, sizeof key, "key%d", round);
	tell(t, 2, text, "put ", key);
}

static void either_the_completion_or_the_takeover_is_the_first(void **state)
{
	struct team *t = *state;
	for (int round = 0; round < ROUNDS; round++) {
		char text[ANSWER], complete[COMMAND];
		int said[2];
		put_key(t, round, text);
		tell(t, 0, text, "touch", "");
		assert_int_equal(text[2], '1');
		snprintf(complete, sizeof complete, "complete %s", text + 4);
		tell_two(t, complete, "claim", said);
		assert_int_equal(said[0], said[1] == 1 ? BATON_NOT_HELD : BATON_OK);
		tell(t, 3, text, "claim", "");
		assert_int_equal(text[2], '0');
	}
}

static void either_the_completion_or_the_abandonment_is_the_first(void **state)
{
	struct team *t = *state;
	for (int round = 0; round < ROUNDS; round++) {
		char text[ANSWER], complete[COMMAND], abandon[COMMAND];
		int said[2];
		put_key(t, round, text);
		tell(t, 0, text, "claim", "");
		assert_int_equal(text[2], '1');
		snprintf(complete, sizeof complete, "complete %s", text + 4);
		snprintf(abandon, sizeof abandon, "abandon %s", text + 4);
		tell_two(t, complete, abandon, said);
		bool completed = said[0] == BATON_OK;
		assert_int_equal(said[0], completed ? BATON_OK : BATON_NOT_HELD);
		assert_int_equal(said[1], completed ? BATON_NOT_HELD : BATON_OK);
		tell(t, 3, text, "claim", "");
		assert_int_equal(text[2], completed ? '0' : '1');
	}
}

static void either_the_cancellation_or_the_claim_is_the_first(void **state)
{
	struct team *t = *state;
	for (int round = 0; round < ROUNDS; round++) {
		char text[ANSWER], cancel[COMMAND];
		int said[2];
		put_key(t, round, text);
		snprintf(cancel, sizeof cancel, "cancel %s", text + 4);
		tell_two(t, cancel, "claim", said);
		assert_int_equal(said[0], said[1] == 1 ? BATON_CANCEL_TOLD : BATON_CANCEL_REMOVED);
		tell(t, 3, text, "claim", "");
		assert_int_equal(text[2], '0');
	}
}

static int use_parents_store(int channel, void *arg)
{
	struct baton_store *store = arg;
	struct baton_lease_holder holder;
	char text[64];
	snprintf(text, sizeof text, "%s",
	         baton_err_name(baton_lease_inspect(store, BATON_STR("s"), &holder)));
	channel_send(channel, text);
	return 0;
}

static void a_forked_child_cannot_use_its_parents_handle(void **state)
{
	(void)state;
	const struct baton_store_options options = {.where = BATON_STR("memory:")};
	struct baton_store *store;
	struct child c;
	char text[64];
	assert_int_equal(baton_store_open(&options, &store), BATON_OK);
	child_start(&c, use_parents_store, store);
	assert_true(channel_receive(c.channel, text, sizeof text));
	assert_string_equal(text, "BATON_GONE");
	assert_int_equal(child_reap(&c), 0);
	baton_store_close(store);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			of_puts_with_one_source_key_one_is_stored_and_all_have_its_id, setup,
			teardown),
		cmocka_unit_test_setup_teardown(one_of_many_claimants_has_a_batch, setup, teardown),
		cmocka_unit_test_setup_teardown(one_of_many_claimants_holds_a_key, setup, teardown),
		cmocka_unit_test_setup_teardown(
			of_the_same_keys_that_two_put_together_one_job_each_is_claimed, setup,
			teardown),
		cmocka_unit_test_setup_teardown(one_of_many_claimants_holds_a_subject, setup,
	                                        teardown),
		cmocka_unit_test_setup_teardown(a_holder_that_was_killed_is_replaced_at_once, setup,
	                                        teardown),
		cmocka_unit_test_setup_teardown(of_many_who_want_what_a_dead_holder_had_one_has_it,
	                                        setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_killed_runner_makes_way_at_once_unless_it_has_a_life_file, setup,
			teardown),
		cmocka_unit_test_setup_teardown(either_the_completion_or_the_takeover_is_the_first,
	                                        setup, teardown),
		cmocka_unit_test_setup_teardown(
			either_the_completion_or_the_abandonment_is_the_first, setup, teardown),
		cmocka_unit_test_setup_teardown(either_the_cancellation_or_the_claim_is_the_first,
	                                        setup, teardown),
		cmocka_unit_test(a_forked_child_cannot_use_its_parents_handle),
	};
	if (argc == 2)
		kind = argv[1];
	if (strcmp(kind, "postgres:") == 0 && !cluster_start(&cluster, false)) {
		printf("1..0 # SKIP no PostgreSQL server can be started here\n");
		return 0;
	}
	int failed = cmocka_run_group_tests_name("processes", tests, NULL, NULL);
	cluster_stop(&cluster);
	return failed;
}
