/* The services of a folder. */
#include "handoff/definitions.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fail.h"

#define SUFFIX ".conf"
#define NAME_MAX_BYTES 255

struct folder {
	const char *path;
	const struct baton_log *log;
	struct arena *arena;
	struct definition *all;
	size_t count;
	size_t wrong;
	char first[512]; /* what was wrong first */
};

static void wrong(void *arg, const char *sentence)
{
	struct folder *f = arg;
	BATON_LOG(f->log, BATON_LOG_ERROR, "wrong definition of a service",
	          baton_field_str("why", baton_str_z(sentence)));
	if (f->wrong++ == 0)
		snprintf(f->first, sizeof f->first, "%s", sentence);
}

static bool user(const char *name, uint32_t *ret_uid)
{
	struct passwd entry;
	struct passwd *found = NULL;
	char room[4096];
	if (getpwnam_r(name, &entry, room, sizeof room, &found) != 0 || !found)
		return false;
	*ret_uid = found->pw_uid;
	return true;
}

/* Whoever can write it decides what is run. */
static enum baton_err mode_check(const char *path, const struct stat *s)
{
	if (s->st_uid != geteuid() && s->st_uid != 0)
		return fail(BATON_INVALID, "'%.200s' belongs to the user %u, not to %u or root",
		            path, (unsigned)s->st_uid, (unsigned)geteuid());
	if ((s->st_mode & 0022) != 0)
		return fail(BATON_INVALID,
		            "'%.200s' has mode %03o; others must not be able to write it", path,
		            (unsigned)s->st_mode & 0777);
	return BATON_OK;
}

static enum baton_err file_read(int fd, const char *path, struct arena *arena,
                                struct baton_str *ret)
{
	struct stat s;
	size_t len = 0;
	if (fstat(fd, &s) != 0 || !S_ISREG(s.st_mode))
		return fail(BATON_INVALID, "'%.200s' is no file", path);
	enum baton_err e = mode_check(path, &s);
	if (e != BATON_OK)
		return e;
	char *text = arena_take(arena, DEFINITION_FILE_MAX + 1, 1);
	if (!text)
		return fail_memory(DEFINITION_FILE_MAX, "a definition");
	for (ssize_t n = 1; n > 0 && len <= DEFINITION_FILE_MAX; len += (size_t)n) {
		n = read(fd, text + len, DEFINITION_FILE_MAX + 1 - len);
		if (n < 0)
			return fail_errno(errno, "'%.200s' cannot be read", path);
	}
	if (len > DEFINITION_FILE_MAX)
		return fail(BATON_INVALID, "'%.200s' has more than %u bytes", path,
		            DEFINITION_FILE_MAX);
	*ret = (struct baton_str){text, len};
	return BATON_OK;
}

static enum baton_err file_take(struct folder *f, int folder, const char *name)
{
	char path[512];
	AUTO(fd_closep) int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct definition_source source = {
		.file = path,
		.name = {name, strlen(name) - strlen(SUFFIX)},
		.user = user,
		.wrong = wrong,
		.arg = f,
	};
	snprintf(path, sizeof path, "%.200s/%.255s", f->path, name);
	if (fd < 0)
		return fail_errno(errno, "'%.200s' cannot be opened", path);
	enum baton_err e = file_read(fd, path, f->arena, &source.text);
	if (e == BATON_INVALID) {
		wrong(f, baton_err_detail());
		return BATON_OK;
	}
	if (e == BATON_OK)
		e = definition_read(&source, f->arena, &f->all[f->count]);
	if (e == BATON_OK)
		f->count++;
	return e == BATON_INVALID ? BATON_OK : e;
}

static int is_definition(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name);
	return len > strlen(SUFFIX) && entry->d_name[0] != '.' &&
	       strcmp(entry->d_name + len - strlen(SUFFIX), SUFFIX) == 0;
}

static enum baton_err files_take(struct folder *f, int folder, struct dirent **names, int count)
{
	enum baton_err e = BATON_OK;
	if (count > DEFINITIONS_MAX)
		return fail(BATON_INVALID,
		            "'%.200s' has %d definitions of services; %d are "
		            "allowed",
		            f->path, count, DEFINITIONS_MAX);
	f->all = arena_take(f->arena, (size_t)count + 1, sizeof *f->all);
	if (!f->all)
		return fail_memory((size_t)count * sizeof *f->all, "services");
	for (int i = 0; i < count && e == BATON_OK; i++)
		e = file_take(f, folder, names[i]->d_name);
	return e;
}

static enum baton_err folder_open(const char *path, int *ret_fd)
{
	struct stat s;
	AUTO(fd_closep) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return fail(BATON_INVALID, "there is no folder '%.200s' with services", path);
	if (fd < 0 || fstat(fd, &s) != 0)
		return fail_errno(errno, "the folder '%.200s' cannot be opened", path);
	enum baton_err e = mode_check(path, &s);
	if (e == BATON_OK)
		*ret_fd = fd_take(&fd);
	return e;
}

enum baton_err definitions_read(const char *folder, const struct baton_log *log,
                                struct arena *arena, struct definition **ret_all, size_t *ret_count)
{
	struct folder f = {.path = folder, .log = log, .arena = arena};
	struct dirent **names = NULL;
	AUTO(fd_closep) int fd = -1;
	enum baton_err e = folder_open(folder, &fd);
	if (e != BATON_OK)
		return e;
	int count = scandir(folder, &names, is_definition, alphasort);
	if (count < 0)
		return fail_errno(errno, "the folder '%.200s' cannot be read", folder);
	if (count == 0)
		BATON_LOG(log, BATON_LOG_WARN, "no services",
		          baton_field_str("why", BATON_STR("no file is named NAME" SUFFIX)),
		          baton_field_str("folder", baton_str_z(folder)));
	e = files_take(&f, fd, names, count);
	for (int i = 0; i < count; i++)
		free(names[i]);
	free(names);
	if (e == BATON_OK && f.wrong > 0)
		e = fail(BATON_INVALID, "%s", f.first);
	if (e != BATON_OK)
		return e;
	*ret_all = f.all;
	*ret_count = f.count;
	return BATON_OK;
}
