/* Handlers that are commands, under a guardian. */
#ifndef RUNNER_COMMANDS_H
#define RUNNER_COMMANDS_H

#include <baton/runner.h>

#include "guardian/wards.h"
#include "runner/core.h"

#define COMMANDS_PATH_MAX 4095

/* In the number of what serves a connection, and in that of no claim. */
#define COMMANDS_VISIT (UINT64_C(1) << 63)

struct commands_options {
	const struct baton_alloc *alloc;
	const struct baton_handler *handler;
	const char *beside; /* a file; what says that handlers live lies in a folder beside it */
	const char *lock;   /* what a runner must not keep locked: see struct wards_ask */
	int64_t lock_at;
	bool awake; /* deadlines are on baton_clock_awake() */

	/* Whether that run was asked to stop; what it wrote to standard error; and that it wrote
	 * more to standard output than is kept. */
	bool (*stopped)(void *arg, uint64_t run);
	void (*said)(void *arg, uint64_t run, struct baton_str line);
	void (*cut)(void *arg, uint64_t run);

	/* What has served that connection has ended, with all that it started. */
	void (*left)(void *arg, uint64_t visit);
	void *arg;
};

struct commands {
	struct commands_options o;        /* [const] */
	struct wards *wards;              /* [loop] */
	char life[COMMANDS_PATH_MAX + 1]; /* [const] the life file */
	bool lost;                        /* [loop] the guardian has died */
	char why[512];                    /* [loop] */
};

/* Starts the guardian. commands_done() is fine after a failure. */
enum baton_err commands_init(struct commands *c, const struct commands_options *options);

/* Kills what still runs. Fine for a zeroed one. */
void commands_done(struct commands *c);

/* Starts one for the claim. Not BATON_OK: it cannot be, and the detail says why. */
enum baton_err commands_start(struct commands *c, uint64_t run,
                              const struct baton_work_claim *claim);

/* Starts one that serves a connection, which is its descriptor 3. Not BATON_OK: it cannot be. */
struct baton_connection;
enum baton_err commands_serve(struct commands *c, uint64_t visit,
                              const struct baton_connection *connection, baton_fence fence);

/* Asks one to stop: SIGTERM, and after its grace SIGKILL. */
void commands_stop(struct commands *c, uint64_t id);

/* How a command ended, in words. */
void commands_why(const struct ward_news *news, const struct baton_handler *handler, char *text,
                  size_t max);

/* From SIGTERM to SIGKILL. */
struct baton_duration commands_grace(const struct baton_handler *handler);

/* A run that has ended, and how; what it points to lasts until the next call. */
struct commands_news {
	uint64_t run;
	struct baton_work_end end;
};

/* False: nothing has ended. Never waits. */
bool commands_next(struct commands *c, struct commands_news *ret);

#endif
