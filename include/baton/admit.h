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
	uint32_t subjects;               /* the most there can be; 0: 65536                     */
	const struct baton_alloc *alloc; /* NULL: the C library's                               */
};

/* Opens what has been admitted so far, which is nothing if there is no such file.
 *
 * BATON_INVALID: what is there is no such file, damaged, or of another version; it is left as it
 * is. BATON_FULL: no room on the file system. BATON_SYSTEM, BATON_NO_MEMORY.
 * *ret_admit is untouched unless BATON_OK. */
BATON_API enum baton_err baton_admit_open(const struct baton_admit_options *options,
                                          struct baton_admit **ret_admit);

/* NULL is fine. */
BATON_API void baton_admit_close(struct baton_admit *admit);

/* Admits `fence` if none that is higher was admitted for `subject`, and remembers it.
 *
 * BATON_OK:      it is the highest, or as high as the highest. In a file it is on the disk.
 * BATON_STALE:   a higher one was here: *ret_highest (may be NULL).
 * BATON_INVALID: fence 0 or 2^53 and above; a subject that is empty or too long.
 * BATON_FULL:    as many subjects as there can be, or no room on the file system.
 * BATON_SYSTEM.  Nothing is admitted unless BATON_OK. Any thread; with a file, any process. */
BATON_API enum baton_err baton_admit(struct baton_admit *admit, struct baton_str subject,
                                     baton_fence fence, baton_fence *ret_highest);

BATON_END

#endif
