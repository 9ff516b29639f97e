/* 128-bit ids. */
#include <baton/id.h>

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "support/child.h"
#include "support/harness.h"
#include "support/skips.h"

static const struct baton_id sample = {{0x00, 0x01, 0x0a, 0xff, 0x80, 0x7f, 0x10, 0x20, 0x30, 0x40,
                                        0x50, 0x60, 0x70, 0x80, 0x90, 0xab}};
#define SAMPLE_TEXT "00010aff807f102030405060708090ab"

static void random_ids_differ(void **state)
{
	(void)state;
	struct baton_id a, b;
	assert_int_equal(baton_id_random(&a), BATON_OK);
	assert_int_equal(baton_id_random(&b), BATON_OK);
	assert_false(baton_id_equal(&a, &b));
	assert_true(baton_id_equal(&a, &a));
}

static void every_byte_of_a_random_id_is_drawn(void **state)
{
	(void)state;
	struct baton_id seen = {{0}};
	for (int i = 0; i < 64; i++) {
		struct baton_id id;
		assert_int_equal(baton_id_random(&id), BATON_OK);
		for (size_t k = 0; k < sizeof id.bytes; k++)
			seen.bytes[k] |= id.bytes[k];
	}
	for (size_t k = 0; k < sizeof seen.bytes; k++)
		assert_int_equal(seen.bytes[k], 0xff);
}

/* Makes getrandom() fail with EPERM from now on. */
static bool forbid_random(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getrandom, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static int draw_without_a_source(int channel, void *arg)
{
	(void)channel;
	(void)arg;
	struct baton_id id = sample;
	if (!forbid_random())
		return CHILD_SKIP;
	if (baton_id_random(&id) != BATON_SYSTEM || !baton_id_equal(&id, &sample))
		return 1;
	return strcmp(baton_err_detail(),
	              "the system gives no random bytes: Operation not permitted") == 0
	               ? 0
	               : 2;
}

static void without_a_random_source_there_is_an_error(void **state)
{
	(void)state;
	struct child c;
	child_start(&c, draw_without_a_source, NULL);
	int code = child_reap(&c);
	if (code == CHILD_SKIP)
		skip();
	assert_int_equal(code, 0);
}

static void an_id_is_printed_as_small_hexadecimal_digits(void **state)
{
	(void)state;
	char text[BATON_ID_TEXT];
	assert_ptr_equal(baton_id_print(&sample, text), text);
	assert_string_equal(text, SAMPLE_TEXT);
}

static void what_was_printed_is_read_back_in_either_case(void **state)
{
	(void)state;
	struct baton_id id;
	assert_int_equal(baton_id_parse(BATON_STR(SAMPLE_TEXT), &id), BATON_OK);
	assert_true(baton_id_equal(&id, &sample));
	id = (struct baton_id){{0}};
	assert_int_equal(baton_id_parse(BATON_STR("00010AFF807F102030405060708090AB"), &id),
	                 BATON_OK);
	assert_true(baton_id_equal(&id, &sample));
}

static void anything_else_is_refused_with_the_reason(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		const char *detail;
	} cases[] = {
		{"", "\"\" is no id: it has 0 bytes instead of 32"},
		{"00010aff807f102030405060708090a",
	         "\"00010aff807f102030405060708090a\" is no id: it has 31 bytes instead of 32"},
		{SAMPLE_TEXT "0", "\"" SAMPLE_TEXT "0\" is no id: it has 33 bytes instead of 32"},
		{"00010aff807f102030405060708090ag",
	         "\"00010aff807f102030405060708090ag\" is no id: only hexadecimal digits are "
	         "allowed"},
		{"00010aff-807f102030405060708090a",
	         "\"00010aff-807f102030405060708090a\" is no id: only hexadecimal digits are "
	         "allowed"},
		{" 0010aff807f102030405060708090ab",
	         "\" 0010aff807f102030405060708090ab\" is no id: only hexadecimal digits are "
	         "allowed"},
		{"00010aff807f102030405060708090a\n",
	         "\"00010aff807f102030405060708090a\\x0a\" is no id: only hexadecimal digits are "
	         "allowed"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct baton_id id = sample;
		assert_int_equal(baton_id_parse(baton_str_z(cases[i].text), &id), BATON_INVALID);
		assert_string_equal(baton_err_detail(), cases[i].detail);
		assert_true(baton_id_equal(&id, &sample));
	}
	struct baton_id id = sample;
	assert_int_equal(baton_id_parse((struct baton_str){NULL, 0}, &id), BATON_INVALID);
}

int main(void)
{
	skips_repair();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_ids_differ),
		cmocka_unit_test(every_byte_of_a_random_id_is_drawn),
		cmocka_unit_test(without_a_random_source_there_is_an_error),
		cmocka_unit_test(an_id_is_printed_as_small_hexadecimal_digits),
		cmocka_unit_test(what_was_printed_is_read_back_in_either_case),
		cmocka_unit_test(anything_else_is_refused_with_the_reason),
	};
	return cmocka_run_group_tests_name("id", tests, NULL, NULL);
}
