/* Where the contest's bench keeps its files: a new folder, in memory if there is room. */
#ifndef BENCH_CLAIMS_ARENA_H
#define BENCH_CLAIMS_ARENA_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include <baton/err.h>
#include <baton/fleet.h>

/* Ends the program over what should not go wrong. */
void must(enum baton_err e);

/* Zeros, or the end of the program. */
void *arena_new(size_t size);

/* A path that nobody has used before. The folder is removed with all that is in it once the process
 * that first asked for a path and all that it forked have ended, however that happens. */
void arena_path(char path[PATH_MAX]);

/* Joins the fleet at that path, which has room for `subjects`; 0: as many as it has by itself. */
struct baton_fleet *arena_join(const char *path, const char *owner, uint32_t subjects);

/* This moment, on a clock that all processes share. */
int64_t arena_now(void);

/* Memory that forked children share. */
void *arena_share(size_t size);

#endif
