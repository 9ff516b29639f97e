/* What a loop waits for, as one descriptor: others that become readable, and a moment. */
#ifndef RUNNER_WAITER_H
#define RUNNER_WAITER_H

#include <stdbool.h>

#include <baton/err.h>
#include <baton/time.h>

struct waiter {
	int fd;               /* readable when there is something to do; -1: not open */
	int timer;            /* or -1 */
	struct baton_mono at; /* as it was set */
};

/* `awake`: moments are on baton_clock_awake(), not on baton_clock_boot().
 *
 * BATON_SYSTEM: no descriptor. waiter_done() is fine all the same. */
enum baton_err waiter_init(struct waiter *w, bool awake);
void waiter_done(struct waiter *w);

/* Waits for it too, until it is left out, which comes before it is closed. -1 is fine.
 * BATON_SYSTEM: it cannot be waited for. */
enum baton_err waiter_add(struct waiter *w, int fd);
void waiter_leave_out(struct waiter *w, int fd);

/* Waits until then at the latest. */
void waiter_set(struct waiter *w, struct baton_mono at);

/* Returns when there is something to do, or a signal came. */
void waiter_wait(const struct waiter *w);

#endif
