/* What a broker does when descriptors run out, step by step. Pure. */
#ifndef HANDOFF_PRESSURE_H
#define HANDOFF_PRESSURE_H

#include <stdbool.h>
#include <stdint.h>

#define PRESSURE_GOOD 3

enum pressure_level {
	PRESSURE_NONE = 1,
	PRESSURE_SHORT,    /* no handoffs, which keep a descriptor: clients reconnect           */
	PRESSURE_REFUSING, /* clients are told to come again, through a descriptor kept for that */
	PRESSURE_PAUSED    /* nobody is accepted for a while                                    */
};

struct pressure {
	uint64_t limit; /* [const] of descriptors */
	enum pressure_level level;
	unsigned good; /* accepts in a row that went well */
};

void pressure_init(struct pressure *p, uint64_t limit);

/* A connection was accepted while so many descriptors are in use. PRESSURE_GOOD of these in a row
 * end any pressure but that of a count at three quarters of the limit or above. */
void pressure_accepted(struct pressure *p, uint64_t used);

/* A connection could not be accepted for want of descriptors; it could be refused through the
 * reserve, or not even that. */
void pressure_failed(struct pressure *p, bool refused);

/* A pause is over: it is tried again. */
void pressure_resume(struct pressure *p);

#endif
