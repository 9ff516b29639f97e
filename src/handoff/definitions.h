/* The services of a folder: a file NAME.conf for each. */
#ifndef HANDOFF_DEFINITIONS_H
#define HANDOFF_DEFINITIONS_H

#include <stddef.h>

#include <baton/err.h>
#include <baton/log.h>

#include "base/arena.h"
#include "handoff/definition.h"

#define DEFINITIONS_MAX 256

/* Reads all of them; *ret_all, and what it points to, is in the arena. The folder and its files
 * have to be this user's or root's, and nobody else's to write.
 *
 * BATON_INVALID: something is wrong, the first of it as the detail says; all of it is in the log,
 * a record for each line. BATON_SYSTEM, BATON_NO_MEMORY. */
enum baton_err definitions_read(const char *folder, const struct baton_log *log,
                                struct arena *arena, struct definition **ret_all,
                                size_t *ret_count);

#endif
