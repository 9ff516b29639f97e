/* Runners of the bench, each a process of its own, and what their handlers leave. */
#ifndef BENCH_JOBS_TEAM_H
#define BENCH_JOBS_TEAM_H

#include <stdbool.h>

#include "jobs/jobs.h"

/* Who handles a claim. */
enum hand {
	HAND_CALL = 1, /* a function                    */
	HAND_STREAM,   /* persistent workers            */
	HAND_COMMAND   /* a process for each claim      */
};

/* The words with which this program starts itself: as a runner, as a persistent worker and as a
 * command. Returns if it was not started so. */
void team_part(int argc, char **argv);

/* The path of this program. */
char *team_self(void);

#define SHIFT_COMMANDS 8 /* at once */

/* A store for one contestant: a new file, or a new database of the server. NULL: there is no
 * server. */
struct place;
struct place *place_open(bool server);
struct baton_store *place_store(const struct place *place);
void place_close(struct place *place);

/* A runner in this process: does `count` jobs that are put first, and returns once all of them are
 * completed. NULL: there is no server. */
void *shift_open(enum hand hand, bool server);
void shift_live(void *shift, uint64_t count);
void shift_close(void *shift);

/* From the call of put until a handler runs, in another process. */
void *start_setup(enum hand hand);
double start_sample(void *team);

/* From the moment at which a runner is killed, or stopped, until another one handles what it had
 * begun. */
void *failover_setup(bool silent);
double failover_sample(void *team);

void team_teardown(void *team);

/* How long a stopped runner is waited for. */
#define TEAM_TTL_MS 1000

#endif
