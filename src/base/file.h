/* Files that others find complete or not at all, in folders where nobody else can replace them. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <sys/types.h>

#include <baton/err.h>

/* Whoever can write to a folder can put another file in the place of ours, so it must be ours or
 * root's. `fd` is what open(2) returned for it. BATON_INVALID: it is not. BATON_SYSTEM. */
enum baton_err folder_check(const char *folder, int fd);

/* Makes an empty file without a name, which ends with its last descriptor. One of mode 660 has the
 * group of the folder. -1: errno says why. */
int file_new(int folder, mode_t mode);

/* Gives it its name in the folder, or AT_FDCWD. -1: errno says why, and EEXIST that somebody else
 * was faster. */
int file_name(int fd, int folder, const char *name);

#endif
