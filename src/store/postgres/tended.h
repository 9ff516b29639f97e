/* How far the queues are known to be tended: up to when nothing of them is due, and no claim over.
 *
 * What is gone stays in the indexes as long as somebody holds an old snapshot, and would be walked
 * over each time. Whoever comes later to a queue, under its lock, gives no time that has passed;
 * but the server's clock may be set back, so now and then everything is looked at. */
#ifndef POSTGRES_TENDED_H
#define POSTGRES_TENDED_H

#include <stdbool.h>
#include <stdint.h>

#define TENDED_QUEUES 64
#define TENDED_ALL_MS 60000

struct tended {
	uint64_t queue;   /* a hash of its name; 0: none                                     */
	int64_t since_ms; /* before that nothing is due                                      */
	int64_t seen_ms;  /* the server's time when it was last looked at                    */
	int64_t all_ms;   /* that when everything was, and nothing was due; 0: never         */
};

/* From when on has to be looked for what is due in the queue; 0: everything. */
int64_t tended_since(const struct tended all[TENDED_QUEUES], uint64_t queue, int64_t now_ms);

/* It was looked at, from `since_ms` on, and not before the server showed what it showed the last
 * time; afterwards it showed `now_ms`. `clear`: nothing was due. */
void tended_note(struct tended all[TENDED_QUEUES], uint64_t queue, int64_t since_ms, int64_t now_ms,
                 bool clear);

#endif
