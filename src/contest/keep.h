/* A file that processes change together under its lock, and whose content outlives a power failure:
 * complete from the moment it has its name, and trusted only after a look. */
#ifndef CONTEST_KEEP_H
#define CONTEST_KEEP_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <baton/err.h>
#include <baton/time.h>

/* How long one call may wait, all in all, for a lock whose holder does not go on. */
#define KEEP_PATIENCE ((struct baton_duration){10000000})

struct keep_spec {
	const char *path;
	const char *what; /* for messages, as in "is no <what>"                                   */
	mode_t mode;      /* of a new one                                                         */
	bool group;       /* one of mode 660 may be another user's                                */
	bool make;        /* make one if there is none                                            */

	/* Writes the content of a new one into `fd`, at the beginning of an empty file. */
	enum baton_err (*fill)(int fd, void *arg);
	void *arg;
};

struct keep {
	int fd;     /* -1: there was none, and none was to be made                               */
	int folder; /* -1, or the folder of it                                                   */
	bool made;  /* by this keep_open()                                                       */
	dev_t dev;
	ino_t ino;
	off_t size; /* when it was opened                                                        */
	const char *path;        /* borrowed, for messages                                       */
	char name[NAME_MAX + 1]; /* in its folder                                                */
};

/* As a keep is before it is open. */
#define KEEP_NONE ((struct keep){.fd = -1, .folder = -1, .path = NULL})

/* Opens the file at spec->path, which must outlive the keep. Its owner, its mode and its folder
 * were looked at; its content was not. With spec->make, its name is on the disk, and so is what a
 * new one was filled with.
 *
 * BATON_INVALID: a bad path; or what is there is no regular file, another user's, or writable by
 *                everybody, or lies in a folder of which that can be said. It is left as it is.
 * BATON_FULL:    no room on the file system. BATON_SYSTEM: anything else.
 * *ret is untouched unless BATON_OK, and then ended by keep_close(). */
enum baton_err keep_open(const struct keep_spec *spec, struct keep *ret);

/* Fine for KEEP_NONE, and twice. For AUTO(). */
void keep_close(struct keep *k);

/* Locks it against everybody who opened it for himself. What the wait takes is taken from
 * *patience, of which at the beginning of a call there is KEEP_PATIENCE.
 *
 * BATON_BUSY: the patience is at its end. BATON_SYSTEM. */
enum baton_err keep_lock(const struct keep *k, struct baton_duration *patience);
void keep_unlock(const struct keep *k);

/* Whether the path still leads to this file. */
bool keep_is_current(const struct keep *k);

/* Reads exactly `len` bytes. BATON_INVALID: there are not so many. BATON_SYSTEM. */
enum baton_err keep_read(const struct keep *k, void *bytes, size_t len, off_t at);

/* Writes `len` bytes. BATON_FULL, BATON_SYSTEM. */
enum baton_err keep_write(const struct keep *k, const void *bytes, size_t len, off_t at);

/* Returns once all that was written, by whomever, is on the disk. BATON_SYSTEM. */
enum baton_err keep_sync(const struct keep *k);

/* As fail(BATON_INVALID), about a file that is left as it is. */
enum baton_err keep_refuse(const char *path, const char *why);

#endif
