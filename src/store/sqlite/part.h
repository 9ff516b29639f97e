/* The file in which a copy is made, until it is complete. */
#ifndef SQLITE_PART_H
#define SQLITE_PART_H

#include <baton/err.h>
#include <baton/store.h>

struct part {
	char path[BATON_STORE_PATH_MAX + 16];
	int fd; /* has a lock as long as this process works on it */
};

/* Makes an empty one beside `path`, and removes those for the same copy that nobody works on any
 * more, since a process that is killed leaves its own behind. */
enum baton_err part_open(struct part *p, const char *path);

/* Removes it, under this name. */
void part_close(struct part *p);

#endif
