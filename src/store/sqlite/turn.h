/* Whose turn it is to write, among the processes that share a file.
 *
 * SQLite's own lock goes to whoever looks first after it became free, which is mostly the one who
 * has just had it. Here one of those who wait stands in a door: nobody who comes later gets past
 * him, so that he waits for one transaction at most. Those who renew are let to the door first.
 *
 * These are locks on bytes of a file beside the store, which end with their process. They are
 * manners, nothing depends on them: who has waited long enough, or cannot open the file, goes on
 * without. */
#ifndef SQLITE_TURN_H
#define SQLITE_TURN_H

#include <stdbool.h>

struct turn {
	int fd; /* -1: there is none */
	bool renews;
	bool stands; /* in the door */
};

/* `path` is that of the store. */
void turn_open(struct turn *t, const char *path);
void turn_close(struct turn *t);

/* Goes to the door, before the store's lock is asked for. */
void turn_wait(struct turn *t, bool renews);

/* Lets the next one come, once the lock is had or given up. */
void turn_pass(struct turn *t);

#endif
