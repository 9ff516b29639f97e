/* Singletons: named tasks of which one instance runs at a time, whoever offers them.
 *
 * A runner (<baton/runner.h>) offers those that it is given. One of the runners of a store that
 * offer a name holds its lease, "singleton/NAME", and has the task running: a command under a
 * guardian, or a function on a thread. Another one takes its place when it leaves, drains, is dead
 * or cannot prove any more that it holds the lease; by then nothing of its instance runs. An
 * instance that ends is started again after a pause, which grows from 100 ms to 30 s. */
#ifndef BATON_SINGLETON_H
#define BATON_SINGLETON_H

#include <stdbool.h>
#include <stddef.h>

#include <baton/api.h>
#include <baton/id.h>
#include <baton/str.h>
#include <baton/time.h>

BATON_BEGIN

#define BATON_SINGLETONS_MAX 16 /* of one runner */
#define BATON_SINGLETON_NAME_MAX (BATON_NAME_MAX - 10)

/* What becomes of a function that still runs when its time is over: it cannot be killed. */
enum baton_overtime {
	BATON_OVERTIME_ABORT =
		1,            /* the process is, before anybody else can get what it works on  */
	BATON_OVERTIME_FENCED /* it goes on: all its effects carry the fence, and are refused */
};

/* An instance that is a function, for as long as that runs. */
struct baton_duty;

/* The fence of the lease: it grows from holder to holder. Any thread. */
BATON_API baton_fence baton_duty_fence(const struct baton_duty *duty);

/* Whether it is to end: the runner leaves, drains or is detached, or the lease is lost or cannot be
 * renewed. Any thread. */
BATON_API bool baton_duty_is_over(const struct baton_duty *duty);

/* Waits for so long, or until it is to end; false: it is. Of the function's own thread. */
BATON_API bool baton_duty_rest(struct baton_duty *duty, struct baton_duration duration);

/* Called on a thread of its own; the instance ends when it returns. */
typedef void (*baton_duty_call)(void *arg, struct baton_duty *duty);

/* What it points to is borrowed for as long as the runner is there. */
struct baton_singleton {
	/* 1 to BATON_SINGLETON_NAME_MAX bytes of UTF-8 without control characters; not "schedule",
	 * which is the one that puts what schedules have due. */
	struct baton_str name;

	/* With a group of its own. It gets BATON_SINGLETON and BATON_FENCE in its environment, and
	 * nothing on its standard input. NULL: it is a function. */
	char *const *command;
	struct baton_duration grace; /* from SIGTERM to SIGKILL; 0: 5 s. Less if time runs out */
	const char *guardian;        /* the helper; NULL: the installed one */

	baton_duty_call call; /* without a command */
	void *arg;
	enum baton_overtime overtime; /* without a command; has to be said */
};

BATON_END

#endif
