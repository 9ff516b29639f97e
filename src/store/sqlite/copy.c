/* Copying an SQLite file while it is in use. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "store/sqlite/part.h"
#include "store/sqlite/sqlite.h"

#define PAGES 256 /* between two reports */

/* The copy is made under another name, and gets its own when it is complete and on the disk. */
static enum baton_err copy_pages(struct sqlite_store *s, struct db *to,
                                 const struct baton_store_progress *progress)
{
	sqlite3_backup *b = sqlite3_backup_init(to->handle, "main", s->read.handle, "main");
	int code = b ? SQLITE_OK : sqlite3_errcode(to->handle);
	bool go_on = true;
	while (b && go_on && (code == SQLITE_OK || code == SQLITE_BUSY || code == SQLITE_LOCKED)) {
		code = sqlite3_backup_step(b, PAGES);
		uint64_t all = (uint64_t)sqlite3_backup_pagecount(b);
		uint64_t left = (uint64_t)sqlite3_backup_remaining(b);
		if (progress && progress->call)
			go_on = progress->call(progress->arg, all - left, all);
	}
	sqlite3_backup_finish(b);
	if (!go_on)
		return fail(BATON_CANCELLED, "the copy was stopped");
	return code == SQLITE_DONE ? BATON_OK : db_fail(to, code, "copy to");
}

/* Whoever opens it first is told that it is a copy. */
static enum baton_err stamp(struct db *to)
{
	int code = sqlite3_exec(to->handle,
	                        "PRAGMA journal_mode=DELETE; PRAGMA synchronous=EXTRA;"
	                        "UPDATE state SET copied = 1",
	                        NULL, NULL, NULL);
	return code == SQLITE_OK ? BATON_OK : db_fail(to, code, "copy to");
}

static enum baton_err copy_to(struct sqlite_store *s, const char *part, const char *path,
                              const struct baton_store_progress *progress)
{
	struct db to;
	enum baton_err e = db_open(&to, part, false, &s->db.patience);
	to.path = path; /* what people are told */
	if (e == BATON_OK)
		e = sqlite_read_begin(s);
	if (e == BATON_OK) {
		e = db_begin(&s->read, SQL_BEGIN_READ);
		if (e == BATON_OK)
			e = db_exec(&s->read, "SELECT 1 FROM state");
		if (e == BATON_OK)
			e = copy_pages(s, &to, progress);
		db_rollback(&s->read);
		sqlite_read_end(s);
	}
	if (e == BATON_OK)
		e = stamp(&to);
	db_close(&to);
	return e;
}

static enum baton_err folder_sync(const char *path)
{
	char folder[BATON_STORE_PATH_MAX + 8];
	snprintf(folder, sizeof folder, "%s", path);
	char *slash = strrchr(folder, '/');
	if (slash)
		slash[1] = '\0';
	int fd = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int errnum = fd >= 0 && fsync(fd) == 0 ? 0 : errno;
	if (fd >= 0)
		close(fd);
	if (errnum == 0)
		return BATON_OK;
	return fail(BATON_STORAGE, "cannot sync the folder of %s: %s", path, strerror(errnum));
}

static enum baton_err exists(const char *path)
{
	return fail(BATON_INVALID, "%s is there already: a copy replaces nothing", path);
}

/* Neither the file nor what SQLite would take for a part of it. */
static enum baton_err check_free(const char *path)
{
	static const char *const beside[] = {"", "-wal", "-journal"};
	char name[BATON_STORE_PATH_MAX + 16];
	for (size_t i = 0; i < sizeof beside / sizeof beside[0]; i++) {
		snprintf(name, sizeof name, "%s%s", path, beside[i]);
		if (access(name, F_OK) == 0)
			return exists(name);
	}
	return BATON_OK;
}

static enum baton_err publish(const char *part, const char *path)
{
	if (link(part, path) == 0)
		return BATON_OK;
	return errno == EEXIST ? exists(path)
	                       : fail(BATON_STORAGE, "cannot make %s: %s", path, strerror(errno));
}

enum baton_err sqlite_backup(struct baton_store *store, const char *path,
                             const struct baton_store_progress *progress)
{
	struct sqlite_store *s = (struct sqlite_store *)store;
	struct part part;
	enum baton_err e = check_free(path);
	if (e == BATON_OK)
		e = part_open(&part, path);
	if (e != BATON_OK)
		return e;
	e = copy_to(s, part.path, path, progress);
	if (e == BATON_OK)
		e = publish(part.path, path);
	part_close(&part);
	if (e != BATON_OK)
		return e;
	e = folder_sync(path);
	if (e != BATON_OK)
		unlink(path);
	return e;
}
