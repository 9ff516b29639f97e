/* Batches as they are put. The literals of digests come from sha256sum, over each text behind its
 * length and each number, in eight bytes with the highest first. */
#include <stdio.h>
#include <string.h>

#include "queue/batch.h"
#include "support/harness.h"

static const struct baton_str payloads[] = {{"p", 1}, {"", 0}};

static struct baton_batch a_batch(void)
{
	return (struct baton_batch){
		.queue = BATON_STR("q"),
		.lane = BATON_STR("x"),
		.slot = BATON_JOIN,
		.group = BATON_STR("g"),
		.priority = 3,
		.delay = baton_duration_ms(5),
		.source = BATON_STR("key"),
		.payloads = payloads,
		.count = 2,
	};
}

static void assert_hex(const uint8_t digest[DIGEST_SIZE], const char *hex)
{
	char text[2 * DIGEST_SIZE + 1];
	for (int i = 0; i < DIGEST_SIZE; i++)
		snprintf(text + 2 * i, 3, "%02x", digest[i]);
	assert_string_equal(text, hex);
}

static void zeros_stand_for_work_earliest_and_exclusive(void **state)
{
	(void)state;
	struct baton_batch b = {.count = 0};
	b = batch_filled(&b);
	assert_int_equal(b.cls, BATON_WORK);
	assert_int_equal(b.delivery, BATON_EARLIEST);
	assert_int_equal(b.slot, BATON_EXCLUSIVE);
	b.cls = BATON_COMMAND;
	b.delivery = BATON_AFTER_COMMIT;
	b.slot = BATON_JOIN;
	b = batch_filled(&b);
	assert_int_equal(b.cls, BATON_COMMAND);
	assert_int_equal(b.delivery, BATON_AFTER_COMMIT);
	assert_int_equal(b.slot, BATON_JOIN);
}

static void the_digest_is_over_all_fields_in_order(void **state)
{
	(void)state;
	uint8_t out[DIGEST_SIZE];
	struct baton_batch b = a_batch();
	b = batch_filled(&b);
	batch_digest(&b, out);
	assert_hex(out, "537636916ef96c1fa5e2d011025b45462adeb931775483bbf597c043a94a7eeb");
	batch_source_digest(&b, out);
	assert_hex(out, "c012155e93de3e51e1de0e286721da76c9a97e8b3bbdf3aff7a8e7903180e66a");
}

/* Over each key behind its length, at the end: one alone has the digest that it always had. */
static void the_digest_is_over_each_key(void **state)
{
	(void)state;
	uint8_t none[DIGEST_SIZE], one[DIGEST_SIZE], two[DIGEST_SIZE], other[DIGEST_SIZE];
	struct digest d;
	struct baton_batch b = {.queue = BATON_STR("q")}, filled = batch_filled(&b);
	filled.key = (struct baton_str){"k\1l", 3};
	batch_digest(&filled, two);
	filled.key = BATON_STR("kl");
	batch_digest(&filled, other);
	filled.key = BATON_STR("k");
	batch_digest(&filled, one);
	filled.key.len = 0;
	batch_digest(&filled, none);
	assert_false(digest_equal(two, other, DIGEST_SIZE));
	assert_false(digest_equal(two, one, DIGEST_SIZE));
	assert_false(digest_equal(one, none, DIGEST_SIZE));
	digest_init(&d);
	digest_str(&d, filled.queue);
	digest_str(&d, filled.lane);
	digest_number(&d, BATON_WORK);
	digest_number(&d, BATON_EARLIEST);
	digest_number(&d, BATON_EXCLUSIVE);
	digest_str(&d, filled.group);
	for (int i = 0; i < 8; i++)
		digest_number(&d, 0);
	digest_str(&d, BATON_STR("k"));
	digest_str(&d, BATON_STR("l"));
	digest_end(&d, other);
	assert_true(digest_equal(two, other, DIGEST_SIZE));
}

static void the_source_key_is_not_part_of_the_content(void **state)
{
	(void)state;
	uint8_t with[DIGEST_SIZE], without[DIGEST_SIZE];
	struct baton_batch b = a_batch();
	batch_digest(&b, with);
	b.source.len = 0;
	batch_digest(&b, without);
	assert_true(digest_equal(with, without, DIGEST_SIZE));
}

static void every_other_field_is(void **state)
{
	(void)state;
	const struct baton_batch a = a_batch();
	struct baton_batch others[] = {a, a, a, a, a, a, a, a, a, a, a, a, a};
	others[0].queue = BATON_STR("r");
	others[1].lane = BATON_STR("");
	others[2].cls = BATON_COMMAND;
	others[3].delivery = BATON_AFTER_COMMIT;
	others[4].slot = BATON_EXCLUSIVE;
	others[5].group = BATON_STR("");
	others[6].priority = 4;
	others[7].delay = baton_duration_ms(6);
	others[8].at.ms = 1;
	others[9].retry.attempts = 1;
	others[10].retry.base.ns = 1;
	others[11].count = 1;
	others[12].payloads = &payloads[1];
	others[12].count = 1;
	uint8_t first[DIGEST_SIZE], other[DIGEST_SIZE];
	batch_digest(&a, first);
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		batch_digest(&others[i], other);
		if (digest_equal(first, other, DIGEST_SIZE))
			fail_msg("field %zu", i);
	}
}

static void it_is_available_now_after_its_delay_or_at_its_time(void **state)
{
	(void)state;
	const struct baton_store_time now = {1000};
	struct baton_batch b = {.delay = {0}};
	assert_int_equal(batch_available(&b, now).ms, 1000);
	b.delay = baton_duration_ms(5);
	assert_int_equal(batch_available(&b, now).ms, 1005);
	b = (struct baton_batch){.at = {1001}};
	assert_int_equal(batch_available(&b, now).ms, 1001);
	b.at.ms = 999;
	assert_int_equal(batch_available(&b, now).ms, 1000);
}

static void a_name_is_read_only_as_it_is_written(void **state)
{
	(void)state;
	static const char *const bad[] = {"",
	                                  "0",
	                                  "01",
	                                  "+1",
	                                  " 1",
	                                  "1 ",
	                                  "1x",
	                                  "-1",
	                                  "9007199254740992",
	                                  "99999999999999999999999"};
	struct baton_batch_id id;
	uint64_t number = 77;
	batch_id_print(9007199254740991, &id);
	assert_string_equal(id.text, "9007199254740991");
	assert_true(batch_id_parse(&id, &number));
	assert_int_equal(number, 9007199254740991);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		memset(&id, 0, sizeof id);
		memcpy(id.text, bad[i], strlen(bad[i]));
		if (batch_id_parse(&id, &number))
			fail_msg("\"%s\" was read as %llu", bad[i], (unsigned long long)number);
	}
	memset(id.text, '1', sizeof id.text);
	assert_false(batch_id_parse(&id, &number));
}

static void the_name_of_a_claim_is_two_numbers(void **state)
{
	(void)state;
	static const char *const bad[] = {"",      "-",    "1",    "1-",  "-2",
	                                  "1-2-3", "1 -2", "1-2 ", "a-2", "1-9007199254740992"};
	const struct claim_name name = {9007199254740991, 9007199254740991};
	struct claim_name read = {0, 0};
	char text[CLAIM_NAME_TEXT];
	claim_name_print(&name, text);
	assert_string_equal(text, "9007199254740991-9007199254740991");
	assert_true(claim_name_parse(text, &read));
	assert_int_equal(read.head, name.head);
	assert_int_equal(read.fence, name.fence);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		memset(text, 0, sizeof text);
		memcpy(text, bad[i], strlen(bad[i]));
		if (claim_name_parse(text, &read))
			fail_msg("\"%s\" was read", bad[i]);
	}
	memset(text, '1', sizeof text);
	assert_false(claim_name_parse(text, &read));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(zeros_stand_for_work_earliest_and_exclusive),
		cmocka_unit_test(the_digest_is_over_all_fields_in_order),
		cmocka_unit_test(the_digest_is_over_each_key),
		cmocka_unit_test(the_source_key_is_not_part_of_the_content),
		cmocka_unit_test(every_other_field_is),
		cmocka_unit_test(it_is_available_now_after_its_delay_or_at_its_time),
		cmocka_unit_test(a_name_is_read_only_as_it_is_written),
		cmocka_unit_test(the_name_of_a_claim_is_two_numbers),
	};
	return cmocka_run_group_tests_name("batch", tests, NULL, NULL);
}
