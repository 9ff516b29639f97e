/* Owners: who they are and how they are written. Whether they are dead: test_death.c. */
#include <baton/owner.h>

#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "support/child.h"
#include "support/harness.h"
#include "support/skips.h"

#define INCARNATION "00112233445566778899aabbccddeeff"
#define BOOT "ffeeddccbbaa99887766554433221100"

static void this_process_is_described_with_a_new_incarnation(void **state)
{
	(void)state;
	static const struct baton_id zero;
	struct baton_owner a, b;
	assert_int_equal(baton_owner_self(BATON_STR("worker 1"), &a), BATON_OK);
	assert_int_equal(baton_owner_self(BATON_STR("worker 1"), &b), BATON_OK);
	assert_string_equal(a.id, "worker 1");
	assert_int_equal(a.pid, getpid());
	assert_int_not_equal(a.pid_ns, 0);
	assert_int_not_equal(a.start, 0);
	assert_false(baton_id_equal(&a.boot, &zero));
	assert_false(baton_id_equal(&a.incarnation, &b.incarnation));
	assert_true(baton_id_equal(&a.boot, &b.boot));
	assert_int_equal(a.start, b.start);
}

static void an_opaque_owner_has_a_name_and_an_incarnation_only(void **state)
{
	(void)state;
	static const struct baton_id zero;
	struct baton_owner a, b;
	assert_int_equal(baton_owner_opaque(BATON_STR("elsewhere"), &a), BATON_OK);
	assert_int_equal(baton_owner_opaque(BATON_STR("elsewhere"), &b), BATON_OK);
	assert_string_equal(a.id, "elsewhere");
	assert_int_equal(a.pid, 0);
	assert_int_equal(a.pid_ns, 0);
	assert_int_equal(a.start, 0);
	assert_true(baton_id_equal(&a.boot, &zero));
	assert_false(baton_id_equal(&a.incarnation, &b.incarnation));
}

static void the_longest_name_is_allowed_and_a_longer_one_is_not(void **state)
{
	(void)state;
	char name[BATON_NAME_MAX + 1];
	memset(name, 'n', sizeof name);
	struct baton_owner owner;
	assert_int_equal(baton_owner_self((struct baton_str){name, BATON_NAME_MAX}, &owner),
	                 BATON_OK);
	assert_int_equal(strlen(owner.id), BATON_NAME_MAX);
	memset(&owner, 0x5a, sizeof owner);
	assert_int_equal(baton_owner_self((struct baton_str){name, sizeof name}, &owner),
	                 BATON_INVALID);
	assert_string_equal(baton_err_detail(), "the owner id has 256 bytes: 1 to 255 are allowed");
	assert_int_equal(owner.pid, 0x5a5a5a5a);
	assert_int_equal(baton_owner_opaque(BATON_STR(""), &owner), BATON_INVALID);
	assert_string_equal(baton_err_detail(),
	                    "the owner id is empty: 1 to 255 bytes are allowed");
	assert_int_equal(baton_owner_opaque(BATON_STR("a\nb"), &owner), BATON_INVALID);
	assert_string_equal(baton_err_detail(),
	                    "the owner id has the control character U+000A at byte 1");
	assert_int_equal(owner.pid, 0x5a5a5a5a);
}

static int describe_without_proc(int channel, void *arg)
{
	(void)channel;
	(void)arg;
	if (!child_unshare(CLONE_NEWNS) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("none", "/proc", "tmpfs", 0, NULL) != 0)
		return CHILD_SKIP;
	struct baton_owner owner = {.pid = 99};
	if (baton_owner_self(BATON_STR("worker"), &owner) != BATON_SYSTEM || owner.pid != 99)
		return 1;
	if (strcmp(baton_err_detail(), "the kernel's boot id cannot be read from /proc: "
	                               "No such file or directory") != 0)
		return 2;
	/* An opaque owner needs none of it. */
	return baton_owner_opaque(BATON_STR("worker"), &owner) == BATON_OK ? 0 : 3;
}

static void without_proc_there_is_an_error(void **state)
{
	(void)state;
	struct child c;
	child_start(&c, describe_without_proc, NULL);
	int code = child_reap(&c);
	if (code == CHILD_SKIP)
		skip();
	assert_int_equal(code, 0);
}

static void what_is_written_is_read_back(void **state)
{
	(void)state;
	static const char *const texts[] = {
		INCARNATION ":::::name",
		INCARNATION ":::::::a:b::",
		INCARNATION ":" BOOT ":4026531836:1234:987654321:worker 1",
		INCARNATION ":" BOOT ":18446744073709551615:2147483647:18446744073709551615:x",
		INCARNATION ":" BOOT ":0:1:0:J\u00fcrgen:5",
	};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct baton_owner owner;
		char text[BATON_OWNER_TEXT];
		assert_int_equal(baton_owner_parse(baton_str_z(texts[i]), &owner), BATON_OK);
		assert_ptr_equal(baton_owner_print(&owner, text), text);
		assert_string_equal(text, texts[i]);
	}
}

static void every_field_is_read(void **state)
{
	(void)state;
	struct baton_owner owner;
	assert_int_equal(baton_owner_parse(BATON_STR(INCARNATION ":" BOOT ":11:22:33:a:b"), &owner),
	                 BATON_OK);
	char text[BATON_ID_TEXT];
	assert_string_equal(baton_id_print(&owner.incarnation, text), INCARNATION);
	assert_string_equal(baton_id_print(&owner.boot, text), BOOT);
	assert_int_equal(owner.pid_ns, 11);
	assert_int_equal(owner.pid, 22);
	assert_int_equal(owner.start, 33);
	assert_string_equal(owner.id, "a:b");
}

static void the_longest_owner_fits_into_its_text(void **state)
{
	(void)state;
	struct baton_owner owner, read;
	memset(&owner, 0xff, sizeof owner);
	memset(owner.id, 'n', BATON_NAME_MAX);
	owner.id[BATON_NAME_MAX] = '\0';
	owner.pid = INT32_MAX;
	char text[BATON_OWNER_TEXT];
	baton_owner_print(&owner, text);
	assert_true(strlen(text) < BATON_OWNER_TEXT - 1);
	assert_int_equal(baton_owner_parse(baton_str_z(text), &read), BATON_OK);
	assert_memory_equal(&read, &owner, offsetof(struct baton_owner, pid) + sizeof owner.pid);
}

#define NO_INCARNATION " is no incarnation of an owner: 32 small hexadecimal digits are needed"
#define NO_BOOT " is no boot id of an owner: 32 small hexadecimal digits are needed"
#define NO_NS " is no pid namespace of an owner: a number from 0 to 18446744073709551615 is needed"
#define NO_PID " is no pid of an owner: a number from 1 to 2147483647 is needed"
#define NO_START " is no start time of an owner: a number from 0 to 18446744073709551615 is needed"
#define A INCARNATION ":"
#define B A BOOT ":"

static void anything_else_is_refused_by_its_part(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		const char *detail;
	} cases[] = {
		{"", "\"\" is no owner: it has 0 colons instead of at least 5"},
		{"worker", "\"worker\" is no owner: it has 0 colons instead of at least 5"},
		{A "::::", "the owner id is empty: 1 to 255 bytes are allowed"},
		{A ":::x", "\"" A ":::x\" is no owner: it has 4 colons instead of at least 5"},
		{":::::x", "\"\"" NO_INCARNATION},
		{"00112233445566778899AABBCCDDEEFF:::::x",
	         "\"00112233445566778899AABBCCDDEEFF\"" NO_INCARNATION},
		{" 0112233445566778899aabbccddeeff:::::x",
	         "\" 0112233445566778899aabbccddeeff\"" NO_INCARNATION},
		{"0112233445566778899aabbccddeeff:::::x",
	         "\"0112233445566778899aabbccddeeff\"" NO_INCARNATION},
		{B ":::x", "\"\"" NO_NS},
		{A ":1:1:1:x", "\"\"" NO_BOOT},
		{A "FFeeddccbbaa99887766554433221100:1:1:1:x",
	         "\"FFeeddccbbaa99887766554433221100\"" NO_BOOT},
		{A "ffeeddcc-bbaa-9988-7766-554433221100:1:1:1:x",
	         "\"ffeeddcc-bbaa-9988-7766-554433221100\"" NO_BOOT},
		{B "01:1:1:x", "\"01\"" NO_NS},
		{B "+1:1:1:x", "\"+1\"" NO_NS},
		{B "18446744073709551616:1:1:x", "\"18446744073709551616\"" NO_NS},
		{B "1::1:x", "\"\"" NO_PID},
		{B "1:0:1:x", "\"0\"" NO_PID},
		{B "1:-1:1:x", "\"-1\"" NO_PID},
		{B "1: 1:1:x", "\" 1\"" NO_PID},
		{B "1:2147483648:1:x", "\"2147483648\"" NO_PID},
		{B "1:1::x", "\"\"" NO_START},
		{B "1:1:00:x", "\"00\"" NO_START},
		{B "1:1:1\n:x", "\"1\\x0a\"" NO_START},
		{B "1:1:18446744073709551616:x", "\"18446744073709551616\"" NO_START},
		{A "::1::x", "\"\"" NO_BOOT},
		{B "1:1:1:", "the owner id is empty: 1 to 255 bytes are allowed"},
		{B "1:1:1:a\n", "the owner id has the control character U+000A at byte 1"},
		{B "1:1:1:\xff", "the owner id is not valid UTF-8 at byte 0"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct baton_owner owner = {.pid = 99};
		assert_int_equal(baton_owner_parse(baton_str_z(cases[i].text), &owner),
		                 BATON_INVALID);
		assert_string_equal(baton_err_detail(), cases[i].detail);
		assert_int_equal(owner.pid, 99);
	}
}

static void a_text_that_is_missing_or_has_a_nul_or_too_long_a_name_is_refused(void **state)
{
	(void)state;
	struct baton_owner owner;
	assert_int_equal(baton_owner_parse((struct baton_str){NULL, 0}, &owner), BATON_INVALID);
	assert_string_equal(baton_err_detail(),
	                    "\"\" is no owner: it has 0 colons instead of at least 5");
	assert_int_equal(baton_owner_parse(BATON_STR(A "::::a\0b"), &owner), BATON_INVALID);
	assert_string_equal(baton_err_detail(),
	                    "the owner id has the control character U+0000 at byte 1");

	char text[500] = A "::::";
	size_t before = strlen(text);
	memset(text + before, 'n', BATON_NAME_MAX + 1);
	struct baton_str longest = {text, before + BATON_NAME_MAX};
	assert_int_equal(baton_owner_parse(longest, &owner), BATON_OK);
	longest.len++;
	assert_int_equal(baton_owner_parse(longest, &owner), BATON_INVALID);
	assert_string_equal(baton_err_detail(), "the owner id has 256 bytes: 1 to 255 are allowed");
}

int main(void)
{
	skips_repair();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(this_process_is_described_with_a_new_incarnation),
		cmocka_unit_test(an_opaque_owner_has_a_name_and_an_incarnation_only),
		cmocka_unit_test(the_longest_name_is_allowed_and_a_longer_one_is_not),
		cmocka_unit_test(without_proc_there_is_an_error),
		cmocka_unit_test(what_is_written_is_read_back),
		cmocka_unit_test(every_field_is_read),
		cmocka_unit_test(the_longest_owner_fits_into_its_text),
		cmocka_unit_test(anything_else_is_refused_by_its_part),
		cmocka_unit_test(a_text_that_is_missing_or_has_a_nul_or_too_long_a_name_is_refused),
	};
	return cmocka_run_group_tests_name("owner", tests, NULL, NULL);
}
