/* The highest fence of a fleet, kept in a file for the time after the fleet's segment. */
#ifndef CONTEST_MARK_H
#define CONTEST_MARK_H

#include <stdint.h>
#include <sys/types.h>

#include <baton/err.h>

/* No fence of a fleet is higher: 48 bits. */
#define MARK_MAX ((UINT64_C(1) << 48) - 1)

/* Makes the number in the file at least `at_least`, which may be 0: then it is only read. It is on
 * the disk when this returns. A file that is not there is made, with `mode` (0600, or 0660 to share
 * it with its group), unless it is only read.
 *
 * BATON_OK:      *ret_before is what the number was before; 0: there was no file.
 * BATON_INVALID: at_least is above MARK_MAX; or what is there is not 20 digits and a line feed, up
 *                to MARK_MAX, or no regular file, or another user's (but for a shared one), or
 *                writable by everybody. It is left as it is.
 * BATON_FULL:    no room on the file system. The number is as it was.
 * BATON_BUSY:    a process that is stopped had the file locked for 10 ms. The number is as it was.
 * BATON_SYSTEM:  anything else. The number may be higher than it was, and not yet on the disk.
 * *ret_before is untouched unless BATON_OK. Any thread, any process; who dies inside leaves the old
 * number or the new one. */
enum baton_err mark_raise(const char *path, mode_t mode, uint64_t at_least, uint64_t *ret_before);

#endif
