/* For a resource that is written to under fences: lets nobody in who comes after somebody newer.
 *
 * A holder that was frozen past its time does not know that it has lost its claim. What it writes
 * is refused here, if the resource asks before each write: the highest fence seen for each subject
 * is kept, in memory or in a file, and a lower one is not admitted. */
#ifndef BATON_ADMIT_H
#define BATON_ADMIT_H

#include <stddef.h>
#include <stdint.h>

#include <baton/alloc.h>
#include <baton/api.h>
#include <baton/err.h>
#include <baton/id.h>
#include <baton/str.h>

BATON_BEGIN

struct baton_admit;

#define BATON_ADMIT_SUBJECT_MAX 511
#define BATON_ADMIT_SUBJECTS_MAX 1048576

struct baton_admit_options {
	const char *path;                /* a file, shared by all that open it; NULL: in memory */
	uint32_t subjects;               /* the most there can be; 0: 65536. A file that is there
	                                    keeps its own number                                */
	const struct baton_alloc *alloc; /* NULL: the C library's                               */
};

/* Opens what has been admitted so far, which is nothing if there is no such file. A new one takes
 * all its room at once (128 to 256 bytes for each subject that there can be), and is for this user
 * alone; with mode 660 its group may share it.
 *
 * BATON_INVALID: too many subjects, or a bad path; what is there is no such file, damaged, of
 *                another version, another user's, or writable by everybody, or lies in a folder
 *                that is neither this user's nor root's. It is left as it is.
 * BATON_FULL:    no room on the file system. BATON_SYSTEM, BATON_NO_MEMORY.
 * *ret_admit is the caller's, ended by baton_admit_close(); untouched unless BATON_OK. The
 * allocator must outlive it. Any thread. */
BATON_API enum baton_err baton_admit_open(const struct baton_admit_options *options,
                                          struct baton_admit **ret_admit);

/* No other call on it may be under way. What is in a file stays there. In a forked
 * child it only frees what the child has of it. NULL is fine. */
BATON_API void baton_admit_close(struct baton_admit *admit);

/* Admits `fence` if none that is higher was admitted for `subject`, and remembers it. Only a fence
 * that is higher than before costs a write; what it costs does not depend on how many subjects
 * there are.
 *
 * BATON_OK:        it is the highest, or as high as the highest. In a file it is on the disk.
 * BATON_STALE:     a higher one was here: *ret_highest (may be NULL).
 * BATON_INVALID:   fence 0 or 2^53 and above; a subject that is empty or too long; or the file is
 *                  damaged where the subject would be.
 * BATON_FULL:      as many subjects as there can be, or no room on the file system.
 * BATON_BUSY:      a process that is stopped had the file locked for 10 ms.
 * BATON_GONE:      the file was removed or replaced, or this is a forked child: open it again.
 * BATON_NO_MEMORY: in memory only.
 * BATON_SYSTEM.
 * Nothing is admitted unless BATON_OK; but after BATON_SYSTEM, BATON_BUSY or BATON_GONE lower ones
 * may be refused from then on. *ret_highest is untouched unless BATON_STALE. Any thread; a file may
 * be opened by any number of processes. */
BATON_API enum baton_err baton_admit(struct baton_admit *admit, struct baton_str subject,
                                     baton_fence fence, baton_fence *ret_highest);

BATON_END

#endif
