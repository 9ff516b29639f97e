/* The file beside which the locks of a runner's commands lie. */
#ifndef RUNNER_BESIDE_H
#define RUNNER_BESIDE_H

#include <baton/err.h>
#include <baton/store.h>

#define BESIDE_MAX 4095

/* That of the store, or, if that is elsewhere, one of this user's, which is made. */
enum baton_err beside_find(const struct baton_store *store, char path[BESIDE_MAX + 1]);

/* The path of a life file that nobody else has, in the folder with the locks of that file's
 * users. */
enum baton_err beside_life(const char *beside, char path[BESIDE_MAX + 1]);

#endif
