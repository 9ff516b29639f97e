/* How often a service may be started. Pure. */
#ifndef HANDOFF_STARTS_H
#define HANDOFF_STARTS_H

#include <stdint.h>

#include <baton/time.h>

#define STARTS_MAX 3
#define STARTS_WINDOW_MS 30000

/* The last starts. Begins as zeros. */
struct starts {
	struct baton_mono at[STARTS_MAX]; /* a ring */
	uint64_t count;                   /* of all that there were */
};

void starts_add(struct starts *s, struct baton_mono now);

/* How long there may be no other one: 0 unless there were STARTS_MAX in the window, of which one
 * that began it at exactly its end is no longer part. */
struct baton_duration starts_wait(const struct starts *s, struct baton_mono now);

#endif
