/* A segment is made complete or not at all, and trusted only after a look. */
#include "shm/segment.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fail.h"
#include "support/child.h"
#include "support/harness.h"
#include "support/rng.h"
#include "support/skips.h"

#define FILLED 0x5a
#define DATA_BYTES 8192u

struct world {
	char folder[64];
	char path[96];
	struct segment_spec spec;
};

static size_t data_size(const uint32_t *params)
{
	if (params[0] == 0 || params[0] > 1000) {
		(void)fail(BATON_INVALID, "%u pages; 1 to 1000 are allowed", params[0]);
		return 0;
	}
	return (size_t)params[0] * 4096;
}

static enum baton_err fill(void *data, const uint32_t *params, void *arg)
{
	(void)arg;
	memset(data, FILLED, data_size(params));
	return BATON_OK;
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof *w);
	if (!w)
		return -1;
	strcpy(w->folder, "/tmp/baton-segment-XXXXXX");
	if (!mkdtemp(w->folder))
		return -1;
	snprintf(w->path, sizeof w->path, "%s/fleet", w->folder);
	w->spec = (struct segment_spec){
		.path = w->path,
		.kind = "test",
		.kind_version = 3,
		.params = {DATA_BYTES / 4096},
		.param_count = 1,
		.mode = 0600,
		.size = data_size,
		.init = fill,
	};
	*state = w;
	return 0;
}

static unsigned files_in(const char *folder)
{
	unsigned count = 0;
	DIR *dir = opendir(folder);
	assert_non_null(dir);
	for (struct dirent *d; (d = readdir(dir));)
		count += d->d_name[0] != '.';
	closedir(dir);
	return count;
}

static int teardown(void **state)
{
	struct world *w = *state;
	unlink(w->path);
	rmdir(w->path);
	int left = rmdir(w->folder);
	free(w);
	return left;
}

static void a_new_segment_is_complete(void **state)
{
	struct world *w = *state;
	struct stat st;
	AUTO(segment_close) struct segment s = {0};
	assert_int_equal(segment_open(&w->spec, &s), BATON_OK);
	assert_int_equal(s.header->params[0], 2);
	for (size_t i = 0; i < DATA_BYTES; i++)
		assert_int_equal(((unsigned char *)s.data)[i], FILLED);
	assert_int_equal(stat(w->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(st.st_size, 4096 + DATA_BYTES);
	assert_true(st.st_blocks * 512 >= st.st_size);
	assert_int_equal(files_in(w->folder), 1);
}

static void the_second_sees_what_the_first_wrote_and_keeps_its_geometry(void **state)
{
	struct world *w = *state;
	AUTO(segment_close) struct segment first = {0};
	AUTO(segment_close) struct segment second = {0};
	assert_int_equal(segment_open(&w->spec, &first), BATON_OK);
	strcpy(first.data, "hello");
	w->spec.params[0] = 7;
	assert_int_equal(segment_open(&w->spec, &second), BATON_OK);
	assert_string_equal(second.data, "hello");
	assert_int_equal(second.header->params[0], 2);
	assert_int_equal(second.size, first.size);
	assert_true(baton_id_equal(&first.header->id, &second.header->id));
}

static void a_reader_makes_nothing_and_maps_what_is_there(void **state)
{
	struct world *w = *state;
	AUTO(segment_close) struct segment writer = {0};
	AUTO(segment_close) struct segment reader = {0};
	struct segment_spec spec = w->spec;
	spec.read_only = true;
	assert_int_equal(segment_open(&spec, &reader), BATON_NOT_HELD);
	assert_int_equal(files_in(w->folder), 0);
	assert_int_equal(segment_open(&w->spec, &writer), BATON_OK);
	assert_int_equal(segment_open(&spec, &reader), BATON_OK);
	assert_int_equal(((unsigned char *)reader.data)[0], FILLED);
}

static int write_to_a_readers_mapping(int channel, void *arg)
{
	struct segment_spec spec = *(struct segment_spec *)arg;
	struct segment s = {0};
	(void)channel;
	spec.read_only = true;
	signal(SIGSEGV, SIG_DFL);
	if (segment_open(&spec, &s) != BATON_OK)
		return 1;
	*(volatile char *)s.data = 0;
	return 0;
}

static void a_reader_cannot_write(void **state)
{
	struct world *w = *state;
	struct child c;
	AUTO(segment_close) struct segment s = {0};
	assert_int_equal(segment_open(&w->spec, &s), BATON_OK);
	child_start(&c, write_to_a_readers_mapping, &w->spec);
	assert_int_not_equal(child_reap(&c), 0);
	assert_int_equal(((unsigned char *)s.data)[0], FILLED);
}

static enum baton_err stop_inside(void *data, const uint32_t *params, void *arg)
{
	char go_on[8];
	(void)params;
	memset(data, 1, 1);
	channel_send(*(int *)arg, "inside");
	return channel_receive(*(int *)arg, go_on, sizeof go_on) ? BATON_OK : BATON_SYSTEM;
}

static int make_and_stop_inside(int channel, void *arg)
{
	struct segment_spec spec = *(struct segment_spec *)arg;
	struct segment s = {0};
	spec.init = stop_inside;
	spec.arg = &channel;
	return segment_open(&spec, &s) == BATON_OK ? 0 : 1;
}

static void a_maker_killed_on_the_way_leaves_nothing(void **state)
{
	struct world *w = *state;
	struct child c;
	char message[16];
	AUTO(segment_close) struct segment s = {0};
	child_start(&c, make_and_stop_inside, &w->spec);
	assert_true(channel_receive(c.channel, message, sizeof message));
	assert_int_equal(files_in(w->folder), 0);
	kill(c.pid, SIGKILL);
	assert_int_equal(child_reap(&c), 128 + SIGKILL);
	assert_int_equal(files_in(w->folder), 0);
	assert_int_equal(segment_open(&w->spec, &s), BATON_OK);
	assert_int_equal(((unsigned char *)s.data)[0], FILLED);
}

static void who_is_overtaken_while_making_uses_the_others_segment(void **state)
{
	struct world *w = *state;
	struct child slow;
	char message[16];
	AUTO(segment_close) struct segment s = {0};
	child_start(&slow, make_and_stop_inside, &w->spec);
	assert_true(channel_receive(slow.channel, message, sizeof message));
	assert_int_equal(segment_open(&w->spec, &s), BATON_OK);
	channel_send(slow.channel, "go");
	assert_int_equal(child_reap(&slow), 0);
	assert_true(segment_is_current(&s));
	assert_int_equal(files_in(w->folder), 1);
}

static int open_at_the_signal(int channel, void *arg)
{
	char text[BATON_ID_TEXT + 8];
	struct segment s = {0};
	channel_send(channel, "ready");
	if (!channel_receive(channel, text, sizeof text) || segment_open(arg, &s) != BATON_OK)
		return 1;
	channel_send(channel, baton_id_print(&s.header->id, text));
	return 0;
}

static void open_by_many_at_once(struct world *w)
{
	struct child children[100];
	char first[64] = "";
	char text[64];
	for (int i = 0; i < 100; i++) {
		child_start(&children[i], open_at_the_signal, &w->spec);
		assert_true(channel_receive(children[i].channel, text, sizeof text));
	}
	for (int i = 0; i < 100; i++)
		channel_send(children[i].channel, "go");
	for (int i = 0; i < 100; i++) {
		assert_true(channel_receive(children[i].channel, text, sizeof text));
		if (i == 0)
			strcpy(first, text);
		assert_string_equal(text, first);
		assert_int_equal(child_reap(&children[i]), 0);
	}
	assert_int_equal(files_in(w->folder), 1);
}

static void a_hundred_processes_that_open_it_at_once_share_one(void **state)
{
	open_by_many_at_once(*state);
}

static void a_segment_that_is_removed_or_replaced_is_no_longer_current(void **state)
{
	struct world *w = *state;
	AUTO(segment_close) struct segment old = {0};
	AUTO(segment_close) struct segment new = {0};
	assert_int_equal(segment_open(&w->spec, &old), BATON_OK);
	assert_true(segment_is_current(&old));
	assert_int_equal(unlink(w->path), 0);
	assert_false(segment_is_current(&old));
	assert_int_equal(segment_open(&w->spec, &new), BATON_OK);
	assert_false(segment_is_current(&old));
	assert_true(segment_is_current(&new));
}

/* Writes `len` bytes at `at` into the file, as an enemy would. */
static void scribble(const struct world *w, off_t at, const void *bytes, size_t len)
{
	AUTO(fd_closep) int fd = open(w->path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, bytes, len, at), (ssize_t)len);
}

static void assert_refused(struct world *w, const char *because)
{
	struct segment s = {.size = 77};
	struct stat before;
	struct stat after;
	assert_int_equal(lstat(w->path, &before), 0);
	assert_int_equal(segment_open(&w->spec, &s), BATON_INVALID);
	assert_int_equal(s.size, 77);
	if (!strstr(baton_err_detail(), because))
		fail_msg("'%s' does not say '%s'", baton_err_detail(), because);
	assert_non_null(strstr(baton_err_detail(), w->path));
	assert_int_equal(lstat(w->path, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_int_equal(before.st_size, after.st_size);
	assert_int_equal(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
}

static void a_damaged_or_foreign_header_is_refused_and_left_alone(void **state)
{
	struct world *w = *state;
	static const struct {
		size_t at;
		uint32_t value;
		const char *because;
	} cases[] = {
		{offsetof(struct segment_header, magic), 7, "is no shared segment"},
		{offsetof(struct segment_header, kind), 7, "is no shared segment"},
		{offsetof(struct segment_header, layout), 2, "has version 2.3, and this program"},
		{offsetof(struct segment_header, kind_version), 4, "has version 1.4"},
		{offsetof(struct segment_header, data_offset), 0, "is damaged"},
		{offsetof(struct segment_header, size), 5, "is damaged"},
		{offsetof(struct segment_header, size) + 4, 1, "is damaged"},
		{offsetof(struct segment_header, param_count), 9, "is damaged"},
		{offsetof(struct segment_header, params), 3, "is damaged"},
		{offsetof(struct segment_header, params), UINT32_MAX, "is damaged"},
		{offsetof(struct segment_header, params), 0, "is damaged"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		AUTO(segment_close) struct segment s = {0};
		unlink(w->path);
		assert_int_equal(segment_open(&w->spec, &s), BATON_OK);
		scribble(w, (off_t)cases[i].at, &cases[i].value, sizeof cases[i].value);
		assert_refused(w, cases[i].because);
	}
}

static void a_file_of_another_size_is_refused(void **state)
{
	struct world *w = *state;
	AUTO(segment_close) struct segment s = {0};
	assert_int_equal(segment_open(&w->spec, &s), BATON_OK);
	static const off_t sizes[] = {4096 + DATA_BYTES + 1, 4096 + DATA_BYTES - 1, 4096, 100, 0};
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		assert_int_equal(truncate(w->path, sizes[i]), 0);
		assert_refused(w, sizes[i] <= 100 ? "too short" : "is damaged");
	}
}

static void random_bytes_are_refused(void **state)
{
	struct world *w = *state;
	struct rng rng = rng_seed_from_env();
	for (int round = 0; round < 500; round++) {
		uint64_t bytes[512];
		AUTO(segment_close) struct segment s = {0};
		unlink(w->path);
		assert_int_equal(segment_open(&w->spec, &s), BATON_OK);
		for (size_t i = 0; i < 512; i++)
			bytes[i] = rng_next(&rng);
		/* Every other one keeps its header but for 8 bytes. */
		size_t at = round % 2 ? rng_below(&rng, sizeof(struct segment_header) - 8) : 0;
		struct segment_header before = *s.header;
		scribble(w, (off_t)at, bytes, round % 2 ? 8 : sizeof bytes);
		struct segment other = {.size = 77};
		enum baton_err e = segment_open(&w->spec, &other);
		if (e == BATON_OK) {
			/* Then it hit only what says nothing: params that do not count, the id; or
			 * the boot, and this is another one. */
			assert_memory_equal(&before, other.header,
			                    offsetof(struct segment_header, params) + 4);
			assert_true(baton_id_equal(&before.boot, &other.header->boot));
			segment_close(&other);
		} else {
			assert_int_equal(e, BATON_INVALID);
		}
	}
}

static void age(const struct world *w)
{
	struct baton_id boot = {{1, 2, 3}};
	scribble(w, offsetof(struct segment_header, boot), &boot, sizeof boot);
}

static void one_of_an_earlier_boot_is_replaced_by_whoever_makes_one(void **state)
{
	struct world *w = *state;
	AUTO(segment_close) struct segment old = {0};
	AUTO(segment_close) struct segment new = {0};
	struct segment_spec looker = w->spec;
	looker.read_only = true;
	assert_int_equal(segment_open(&w->spec, &old), BATON_OK);
	age(w);
	assert_int_equal(segment_open(&looker, &new), BATON_NOT_HELD);
	assert_true(segment_is_current(&old));
	assert_int_equal(segment_open(&w->spec, &new), BATON_OK);
	assert_false(segment_is_current(&old));
	assert_false(baton_id_equal(&old.header->id, &new.header->id));
	assert_int_equal(files_in(w->folder), 1);
}

static void processes_that_replace_an_old_one_at_once_share_the_new_one(void **state)
{
	struct world *w = *state;
	AUTO(segment_close) struct segment old = {0};
	assert_int_equal(segment_open(&w->spec, &old), BATON_OK);
	age(w);
	open_by_many_at_once(w);
}

static void another_mode_is_refused(void **state)
{
	struct world *w = *state;
	static const mode_t modes[] = {0644, 0666, 0777, 0400, 04600};
	AUTO(segment_close) struct segment s = {0};
	assert_int_equal(segment_open(&w->spec, &s), BATON_OK);
	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
		assert_int_equal(chmod(w->path, modes[i]), 0);
		struct segment other;
		enum baton_err e = segment_open(&w->spec, &other);
		/* Without root's rights a file that may not be written is not even opened. */
		assert_true(e == BATON_INVALID || (modes[i] == 0400 && e == BATON_SYSTEM));
	}
	assert_int_equal(chmod(w->path, 0660), 0);
	struct segment shared = {0};
	assert_int_equal(segment_open(&w->spec, &shared), BATON_OK);
	segment_close(&shared);
}

static void what_is_no_regular_file_is_refused(void **state)
{
	struct world *w = *state;
	struct segment s;
	assert_int_equal(mkfifo(w->path, 0600), 0);
	assert_refused(w, "is no regular file");
	unlink(w->path);
	assert_int_equal(symlink("/dev/null", w->path), 0);
	assert_int_equal(segment_open(&w->spec, &s), BATON_SYSTEM);
	unlink(w->path);
	assert_int_equal(mkdir(w->path, 0700), 0);
	assert_int_equal(segment_open(&w->spec, &s), BATON_SYSTEM);
}

static void a_folder_that_others_can_write_to_is_refused(void **state)
{
	struct world *w = *state;
	struct segment s;
	assert_int_equal(chmod(w->folder, 0777), 0);
	assert_int_equal(segment_open(&w->spec, &s), BATON_INVALID);
	assert_non_null(strstr(baton_err_detail(), "chmod o-w"));
	assert_int_equal(chmod(w->folder, 01777), 0);
	assert_int_equal(segment_open(&w->spec, &s), BATON_OK);
	segment_close(&s);
	assert_int_equal(unlink(w->path), 0);
	assert_int_equal(chmod(w->folder, 0700), 0);
	if (geteuid() == 0) {
		assert_int_equal(chown(w->folder, 65534, 65534), 0);
		assert_int_equal(segment_open(&w->spec, &s), BATON_INVALID);
		assert_non_null(strstr(baton_err_detail(), "belongs to uid 65534"));
		assert_int_equal(chown(w->folder, 0, 0), 0);
	}
	assert_int_equal(files_in(w->folder), 0);
}

static void bad_paths_modes_and_geometries_say_what_is_allowed(void **state)
{
	struct world *w = *state;
	struct segment s;
	struct segment_spec spec = w->spec;
	static const char *const paths[] = {"relative", "", "/tmp/"};
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		spec.path = paths[i];
		assert_int_equal(segment_open(&spec, &s), BATON_INVALID);
		assert_non_null(strstr(baton_err_detail(), "absolute path"));
	}
	spec.path = "/nonexistent-folder/fleet";
	assert_int_equal(segment_open(&spec, &s), BATON_SYSTEM);
	assert_non_null(strstr(baton_err_detail(), "/nonexistent-folder"));
	spec = w->spec;
	spec.mode = 0644;
	assert_int_equal(segment_open(&spec, &s), BATON_INVALID);
	spec = w->spec;
	spec.params[0] = 1001;
	assert_int_equal(segment_open(&spec, &s), BATON_INVALID);
	assert_string_equal(baton_err_detail(), "1001 pages; 1 to 1000 are allowed");
	assert_int_equal(files_in(w->folder), 0);
}

static int open_on_a_small_file_system(int channel, void *arg)
{
	struct world *w = arg;
	struct segment s;
	(void)channel;
	if (!child_unshare(CLONE_NEWNS) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("none", w->folder, "tmpfs", 0, "size=8k,mode=0700") != 0)
		return CHILD_SKIP;
	bool full = segment_open(&w->spec, &s) == BATON_FULL;
	bool said = strstr(baton_err_detail(), "no room for a shared segment of 12288 bytes");
	return full && said && files_in(w->folder) == 0 ? 0 : 1;
}

static void a_full_file_system_is_an_error_and_leaves_nothing(void **state)
{
	struct child c;
	child_start(&c, open_on_a_small_file_system, *state);
	int code = child_reap(&c);
	if (code == CHILD_SKIP)
		skip();
	assert_int_equal(code, 0);
}

static void closing_twice_or_what_was_never_opened_is_fine(void **state)
{
	struct world *w = *state;
	struct segment s = {0};
	segment_close(&s);
	assert_int_equal(segment_open(&w->spec, &s), BATON_OK);
	segment_close(&s);
	segment_close(&s);
}

#define SEGMENT_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	skips_repair();
	const struct CMUnitTest tests[] = {
		SEGMENT_TEST(a_new_segment_is_complete),
		SEGMENT_TEST(the_second_sees_what_the_first_wrote_and_keeps_its_geometry),
		SEGMENT_TEST(a_reader_makes_nothing_and_maps_what_is_there),
		SEGMENT_TEST(a_reader_cannot_write),
		SEGMENT_TEST(a_maker_killed_on_the_way_leaves_nothing),
		SEGMENT_TEST(who_is_overtaken_while_making_uses_the_others_segment),
		SEGMENT_TEST(a_hundred_processes_that_open_it_at_once_share_one),
		SEGMENT_TEST(a_segment_that_is_removed_or_replaced_is_no_longer_current),
		SEGMENT_TEST(a_damaged_or_foreign_header_is_refused_and_left_alone),
		SEGMENT_TEST(a_file_of_another_size_is_refused),
		SEGMENT_TEST(random_bytes_are_refused),
		SEGMENT_TEST(one_of_an_earlier_boot_is_replaced_by_whoever_makes_one),
		SEGMENT_TEST(processes_that_replace_an_old_one_at_once_share_the_new_one),
		SEGMENT_TEST(another_mode_is_refused),
		SEGMENT_TEST(what_is_no_regular_file_is_refused),
		SEGMENT_TEST(a_folder_that_others_can_write_to_is_refused),
		SEGMENT_TEST(bad_paths_modes_and_geometries_say_what_is_allowed),
		SEGMENT_TEST(a_full_file_system_is_an_error_and_leaves_nothing),
		SEGMENT_TEST(closing_twice_or_what_was_never_opened_is_fine),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
