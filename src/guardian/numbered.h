/* The entries of a folder that have numbers for names, as folders of /proc do. */
#ifndef GUARDIAN_NUMBERED_H
#define GUARDIAN_NUMBERED_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>

/* Begins as zeros. */
struct numbered {
	DIR *dir;
};

/* Opens the folder `path`, relative to the open folder `at` unless it is absolute.
 * False: errno says why. */
bool numbered_open(struct numbered *n, int at, const char *path);

/* The descriptor of the folder. */
int numbered_fd(const struct numbered *n);

/* The next one, in no order. False: there are no more. */
bool numbered_next(struct numbered *n, int32_t *ret);

/* For AUTO(). Fine for zeros. */
void numbered_close(struct numbered *n);

#endif
