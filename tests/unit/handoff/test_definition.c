/* What a file says about a service, and what is said about a wrong one. */
#include "handoff/definition.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "support/fault.h"
#include "support/harness.h"

struct world {
	struct fault fault;
	struct arena arena;
	struct buf said;
	struct definition d;
};

static int setup(void **state)
{
	static struct world w;
	fault_init(&w.fault);
	arena_init(&w.arena, &w.fault.alloc);
	buf_init(&w.said, baton_alloc_libc(), 1 << 16);
	memset(&w.d, 0, sizeof w.d);
	*state = &w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	arena_done(&w->arena);
	buf_done(&w->said);
	fault_done(&w->fault);
	return 0;
}

static bool user(const char *name, uint32_t *ret_uid)
{
	*ret_uid = 33;
	return strcmp(name, "www-data") == 0;
}

static void wrong(void *arg, const char *sentence)
{
	struct world *w = arg;
	buf_printf(&w->said, "%s\n", sentence);
}

static enum baton_err read_text(struct world *w, const char *name, const char *text)
{
	const struct definition_source source = {
		.file = "x.conf",
		.name = baton_str_z(name),
		.text = baton_str_z(text),
		.user = user,
		.wrong = wrong,
		.arg = w,
	};
	return definition_read(&source, &w->arena, &w->d);
}

static void only_the_command_has_to_be_there(void **state)
{
	struct world *w = *state;
	assert_int_equal(read_text(w, "chat", "command = chatd"), BATON_OK);
	assert_string_equal(w->d.name, "chat");
	assert_string_equal(w->d.command[0], "chatd");
	assert_null(w->d.command[1]);
	assert_int_equal(w->d.takes, TAKES_HANDOFF);
	assert_int_equal(w->d.max, DEFINITION_COMMANDS);
	assert_int_equal(w->d.start.ns, baton_duration_s(10).ns);
	assert_int_equal(w->d.stop.ns, baton_duration_s(60).ns);
	assert_int_equal(w->d.idle.ns, INT64_MAX);
	assert_int_equal(w->d.probe.ns, INT64_MAX);
	assert_int_equal(w->d.rate.count, 0);
	assert_null(w->d.folder);
	assert_false(definition_allows(&w->d, 33));
}

static void everything_can_be_said(void **state)
{
	struct world *w = *state;
	enum baton_err e = read_text(
		w, "a-1",
		"# All of it\r\n\n"
		"  command =/bin/x  'a b' \"c \\\" d\" e\\ f '' \n"
		"takes = fd3\nversion = 2.1 beta\nallow = www-data 5\nallow = 0\nfolder = /srv\n"
		"environment = A=b c\nenvironment = D=\nno-new-privileges = yes\n"
		"open-files = 64\nmemory-mib = 2\nmax = 65536\nstart-timeout = 1ms\n"
		"stop-timeout = 1d\nidle = 1h 30min\nprobe = 5s\nrate = 20 / 1min");
	assert_int_equal(e, BATON_OK);
	static const char *const words[] = {"/bin/x", "a b", "c \" d", "e f", ""};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		assert_string_equal(w->d.command[i], words[i]);
	assert_null(w->d.command[5]);
	assert_int_equal(w->d.takes, TAKES_FD3);
	assert_string_equal(w->d.version, "2.1 beta");
	assert_true(definition_allows(&w->d, 33));
	assert_true(definition_allows(&w->d, 0));
	assert_false(definition_allows(&w->d, 1));
	assert_string_equal(w->d.folder, "/srv");
	assert_int_equal(w->d.environment_count, 2);
	assert_string_equal(w->d.environment[0], "A=b c");
	assert_true(w->d.no_new_privileges);
	assert_int_equal(w->d.open_files, 64);
	assert_int_equal(w->d.memory, 2 << 20);
	assert_int_equal(w->d.max, 65536);
	assert_int_equal(w->d.start.ns, 1000000);
	assert_int_equal(w->d.stop.ns, baton_duration_s(86400).ns);
	assert_int_equal(w->d.idle.ns, baton_duration_s(5400).ns);
	assert_int_equal(w->d.probe.ns, baton_duration_s(5).ns);
	assert_int_equal(w->d.rate.count, 20);
	assert_int_equal(w->d.rate.window.ns, baton_duration_s(60).ns);
}

static void what_is_wrong_is_said_with_its_line(void **state)
{
	struct world *w = *state;
	static const struct {
		const char *text;
		const char *said;
	} cases[] = {
		{"", "x.conf:0: there is no line with 'command'\n"},
		{"takes = stdio\n", "x.conf:1: there is no line with 'command'\n"},
		{"command =\n", "x.conf:1: 'command' has no value\n"},
		{"command = ''\n", "x.conf:1: there is no command\n"},
		{"command = bin/x\n", "x.conf:1: 'bin/x' is neither an absolute path nor a name to "
	                              "be found in PATH\n"},
		{"command = a 'b\n", "x.conf:1: a quotation mark is not closed\n"},
		{"command = a\ncommand = b\n", "x.conf:2: 'command' is there twice\n"},
		{"command = a\nmax = 65537\n",
	         "x.conf:2: \"65537\" is no number from 1 to 65536\n"},
		{"command = a\nmax = -1\n", "x.conf:2: \"-1\" is no number from 1 to 65536\n"},
		{"command = a\nopen-files = 7\n",
	         "x.conf:2: \"7\" is no number from 8 to 1073741824\n"},
		{"command = a\nidle = 2d\n",
	         "x.conf:2: \"2d\" is not from 1ms to 1d or infinity\n"},
		{"command = a\nrate = 5\n",
	         "x.conf:2: \"5\" is not of the form NUMBER/DURATION, such as 100/1s\n"},
		{"command = a\nrate = 0/1s\n", "x.conf:2: \"0\" is no number from 1 to 1000000\n"},
		{"command = a\nrate = 1/2d\n", "x.conf:2: \"2d\" is not from 1ms to 1d\n"},
		{"command = a\nprobe = 0s\n",
	         "x.conf:2: \"0s\" is not from 1ms to 1d or infinity\n"},
		{"command = a\nstop-timeout = infinity\n",
	         "x.conf:2: \"infinity\" is not from 1ms to 1d\n"},
		{"command = a\nfolder = tmp\n", "x.conf:2: \"tmp\" is no absolute path\n"},
		{"command = a\nenvironment = A\n",
	         "x.conf:2: \"A\" is not of the form NAME=VALUE\n"},
		{"command = a\nenvironment = =b\n",
	         "x.conf:2: \"=b\" is not of the form NAME=VALUE\n"},
		{"command = a\nno-new-privileges = 1\n", "x.conf:2: \"1\" is neither yes nor no\n"},
		{"command = a\nallow = 4294967295\n", "x.conf:2: there is no user '4294967295'\n"},
		{"command = a\nallow = 'x\n", "x.conf:2: a quotation mark is not closed\n"},
		{"command = a\n\xff = b\n\n=\n",
	         "x.conf:2: the line is no text\nx.conf:4: \"\" is no key of a service\n"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		buf_reset(&w->said);
		assert_int_equal(read_text(w, "echo", cases[i].text), BATON_INVALID);
		assert_string_equal(w->said.data, cases[i].said);
	}
}

static void what_is_too_long_is_said(void **state)
{
	struct world *w = *state;
	char text[3 * DEFINITION_LINE_MAX];
	int len = snprintf(text, sizeof text, "command = x\n");
	memset(text + len, 'a', DEFINITION_LINE_MAX + 1);
	text[len + DEFINITION_LINE_MAX + 1] = '\0';
	assert_int_equal(read_text(w, "echo", text), BATON_INVALID);
	assert_string_equal(w->said.data, "x.conf:2: a line of 4097 bytes; 4096 are allowed\n");
	buf_reset(&w->said);
	snprintf(text, sizeof text, "command = x");
	for (int i = 0; i < DEFINITION_WORDS_MAX; i++)
		strcat(text, " a");
	assert_int_equal(read_text(w, "echo", text), BATON_INVALID);
	assert_string_equal(w->said.data, "x.conf:1: a command of more than 64 words\n");
	buf_reset(&w->said);
	assert_int_equal(read_text(w, "E", "command = x"), BATON_INVALID);
	assert_string_equal(w->said.data, "x.conf:1: \"E\" is no name of a service, which is 1 to "
	                                  "64 of [a-z0-9-]\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(only_the_command_has_to_be_there, setup, teardown),
		cmocka_unit_test_setup_teardown(everything_can_be_said, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_wrong_is_said_with_its_line, setup,
	                                        teardown),
		cmocka_unit_test_setup_teardown(what_is_too_long_is_said, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
