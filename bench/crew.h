/* Threads that start together, so that the time of a whole turn can be taken. */
#ifndef BENCH_CREW_H
#define BENCH_CREW_H

#include <stdbool.h>
#include <stdint.h>

struct crew;

/* What one thread does in a turn; `thread` counts from 0. Returns how many operations succeeded. */
typedef uint64_t crew_work(void *state, unsigned thread, uint64_t from, uint64_t ops);

struct crew_turn {
	crew_work *work;
	void *state;
	uint64_t from; /* the number of the first operation */
	uint64_t lead; /* so many come first and are not timed */
	uint64_t ops;  /* so many are timed                  */
	bool cpu;      /* one thread only: its time on the processor, not the wall's */
};

/* The caller is thread 0; the others are started here and wait. */
struct crew *crew_new(unsigned threads);
void crew_free(struct crew *crew);

/* Every thread does lead + ops operations, starting the timed ones together. Returns the
 * nanoseconds from the first start to the last end; *ret_done is how many operations succeeded,
 * in all threads together. */
double crew_run(struct crew *crew, const struct crew_turn *turn, uint64_t *ret_done);

#endif
