/* The loader of time zone files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/zone_file.h"
#include "support/fault.h"
#include "support/harness.h"

/* A folder with some files of our own. */
struct world {
	char folder[64];
	struct fault fault;
	struct buf content;
};

static void path_in(const struct world *w, const char *name, char path[128])
{
	snprintf(path, 128, "%s/%s", w->folder, name);
}

static void put_file(const struct world *w, const char *name, size_t size)
{
	char path[128];
	path_in(w, name, path);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	for (size_t i = 0; i < size; i++)
		assert_int_not_equal(fputc((int)('a' + i % 23), f), EOF);
	assert_int_equal(fclose(f), 0);
}

static int set_up(void **state)
{
	static struct world w;
	char path[128];
	memcpy(w.folder, "/tmp/baton-zone-XXXXXX", sizeof "/tmp/baton-zone-XXXXXX");
	assert_non_null(mkdtemp(w.folder));
	path_in(&w, "Area", path);
	assert_int_equal(mkdir(path, 0700), 0);
	path_in(&w, "Pipe", path);
	assert_int_equal(mkfifo(path, 0600), 0);
	put_file(&w, "Area/Town", 5000);
	put_file(&w, "Largest", ZONE_FILE_MAX);
	put_file(&w, "TooLarge", ZONE_FILE_MAX + 1);
	put_file(&w, "Empty", 0);
	fault_init(&w.fault);
	buf_init(&w.content, &w.fault.alloc, ZONE_FILE_MAX);
	*state = &w;
	return 0;
}

static int tear_down(void **state)
{
	static const char *const names[] = {"Area/Town", "Largest", "TooLarge", "Empty", "Pipe"};
	struct world *w = *state;
	char path[128];
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		path_in(w, names[i], path);
		unlink(path);
	}
	path_in(w, "Area", path);
	rmdir(path);
	rmdir(w->folder);
	buf_done(&w->content);
	fault_done(&w->fault);
	return 0;
}

static enum baton_err read_zone(struct world *w, const char *name)
{
	return zone_file_read(w->folder, baton_str_z(name), &w->content);
}

static void assert_refused(struct world *w, struct baton_str name, const char *why)
{
	buf_reset(&w->content);
	assert_int_equal(buf_append(&w->content, "old", 3), BATON_OK);
	assert_int_equal(zone_file_read(w->folder, name, &w->content), BATON_INVALID);
	assert_int_equal(w->content.len, 0);
	if (strstr(baton_err_detail(), why) == NULL)
		fail_msg("%s", baton_err_detail());
}

static void a_file_is_read_whole_and_replaces_what_was_there(void **state)
{
	struct world *w = *state;
	assert_int_equal(read_zone(w, "Empty"), BATON_OK);
	assert_int_equal(w->content.len, 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(read_zone(w, "Area/Town"), BATON_OK);
		assert_int_equal(w->content.len, 5000);
		assert_int_equal(w->content.data[4999], 'a' + 4999 % 23);
	}
}

static void a_file_may_be_as_large_as_allowed_and_no_larger(void **state)
{
	struct world *w = *state;
	assert_int_equal(read_zone(w, "Largest"), BATON_OK);
	assert_int_equal(w->content.len, ZONE_FILE_MAX);
	assert_refused(w, BATON_STR("TooLarge"), "\"TooLarge\" is too large: 65536 bytes");
}

static void what_is_no_file_is_refused_without_waiting(void **state)
{
	struct world *w = *state;
	assert_refused(w, BATON_STR("Area"), "\"Area\" is no time zone but a folder");
	assert_refused(w, BATON_STR("Pipe"), "\"Pipe\" is no time zone but a folder");
	assert_refused(w, BATON_STR("Nowhere"), "there is no time zone \"Nowhere\" in /tmp/");
	assert_refused(w, BATON_STR("Empty/Town"), "there is no time zone \"Empty/Town\"");
}

static void a_name_that_leads_elsewhere_is_refused(void **state)
{
	struct world *w = *state;
	static const struct baton_str names[] = {
		{"/etc/passwd", 11}, {"..", 2},          {"../x", 4},         {"Area/../Town", 12},
		{"Area/..", 7},      {".", 1},           {"./Area/Town", 11}, {"Area/./Town", 11},
		{"Area//Town", 10},  {"Area/Town/", 10}, {".hidden", 7},      {"Area/Town\0x", 11},
		{"Area\nTown", 9},   {"Area Town", 9},   {"\xc3\xa4", 2},     {"/", 1},
	};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		assert_refused(w, names[i], "is no name of a time zone");
}

static void a_name_has_1_to_255_bytes(void **state)
{
	struct world *w = *state;
	char name[256];
	memset(name, 'a', sizeof name);
	assert_refused(w, (struct baton_str){name, 256}, "has 256 bytes: 1 to 255 are allowed");
	assert_refused(w, (struct baton_str){name, 0}, "is empty: 1 to 255 bytes are allowed");
	assert_int_not_equal(zone_file_read(w->folder, (struct baton_str){name, 255}, &w->content),
	                     BATON_OK);
	assert_null(strstr(baton_err_detail(), "are allowed"));
}

static void without_memory_nothing_is_left_behind(void **state)
{
	struct world *w = *state;
	for (unsigned n = 1;; n++) {
		buf_done(&w->content);
		buf_init(&w->content, &w->fault.alloc, ZONE_FILE_MAX);
		fault_arm(&w->fault, n);
		enum baton_err e = read_zone(w, "Area/Town");
		if (!fault_fired(&w->fault)) {
			assert_int_equal(e, BATON_OK);
			assert_true(n > 1);
			return;
		}
		assert_int_equal(e, BATON_NO_MEMORY);
		assert_int_equal(w->content.len, 0);
	}
}

static void the_systems_zones_are_there(void **state)
{
	struct world *w = *state;
	assert_int_equal(zone_file_read(ZONE_FILE_FOLDER, BATON_STR("Europe/Berlin"), &w->content),
	                 BATON_OK);
	assert_memory_equal(w->content.data, "TZif", 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_read_whole_and_replaces_what_was_there),
		cmocka_unit_test(a_file_may_be_as_large_as_allowed_and_no_larger),
		cmocka_unit_test(what_is_no_file_is_refused_without_waiting),
		cmocka_unit_test(a_name_that_leads_elsewhere_is_refused),
		cmocka_unit_test(a_name_has_1_to_255_bytes),
		cmocka_unit_test(without_memory_nothing_is_left_behind),
		cmocka_unit_test(the_systems_zones_are_there),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
