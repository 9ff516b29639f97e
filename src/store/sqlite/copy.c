/* Copying an SQLite file while it is in use. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
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
	enum baton_err e = db_open(&to, part, false, s->db.patience_ms);
	to.path = path; /* what people are told */
	if (e == BATON_OK) {
		pthread_mutex_lock(&s->read_mu);
		e = db_begin(&s->read, SQL_BEGIN_READ);
		if (e == BATON_OK)
			e = db_exec(&s->read, "SELECT 1 FROM state");
		if (e == BATON_OK)
			e = copy_pages(s, &to, progress);
		db_rollback(&s->read);
		pthread_mutex_unlock(&s->read_mu);
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

/* An empty file for the copy, whose name is completed. */
static enum baton_err part_make(char *part, const char *path)
{
	int fd = mkstemp(part);
	if (fd < 0)
		return fail(BATON_STORAGE, "cannot make %s: %s", path, strerror(errno));
	close(fd);
	return BATON_OK;
}

enum baton_err sqlite_backup(struct baton_store *store, const char *path,
                             const struct baton_store_progress *progress)
{
	struct sqlite_store *s = (struct sqlite_store *)store;
	char part[BATON_STORE_PATH_MAX + 16];
	snprintf(part, sizeof part, "%s.XXXXXX", path);
	if (access(path, F_OK) == 0)
		return fail(BATON_INVALID, "%s is there already: a copy replaces nothing", path);
	enum baton_err e = part_make(part, path);
	if (e != BATON_OK)
		return e;
	e = copy_to(s, part, path, progress);
	if (e == BATON_OK && link(part, path) != 0)
		e = errno == EEXIST
		            ? fail(BATON_INVALID, "%s is there already: a copy replaces nothing",
		                   path)
		            : fail(BATON_STORAGE, "cannot make %s: %s", path, strerror(errno));
	unlink(part);
	return e == BATON_OK ? folder_sync(path) : e;
}
