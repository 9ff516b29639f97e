/* A bench: contestants that do the same work side by side, and what may be said about them.
 *
 * Most cases are about throughput: a turn is so many operations, its figure the time of one. Others
 * are about latency: a turn is so many occasions, each of which has a time of its own; its figure
 * is their median, and the report shows how they are distributed.
 *
 * All contestants of a case are set up together and take turns in one process, round by round,
 * each round starting with another one. A figure is the median of the rounds; a ratio is taken
 * inside each round, where both sides met the same weather, and its median is judged. Rounds are
 * added until the spread of the ratios is small or the bound is reached; latencies have a fixed
 * number of them.
 *
 * A turn can be cut into slices, of which everybody has one after the other: so a neighbour who is
 * there for some milliseconds is there for all of them. Its figure is the median of its slices. */
#ifndef BENCH_HARNESS_H
#define BENCH_HARNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crew.h"
#include "stats.h"

enum role {
	ROLE_SUBJECT = 1, /* the one that the bench is about: exactly one              */
	ROLE_RIVAL,       /* does the same for its own users; the fastest one counts   */
	ROLE_FLOOR,       /* the least that the work can cost; no one would use it so  */
	ROLE_END
};

/* One piece of work, done by every contestant. */
struct bench_case {
	const char *name;      /* on the command line and in JSON, such as "churn/1000/2"        */
	const char *group;     /* cases of a group, next to each other, share a table ...        */
	const char *label;     /* ... in which this stands above a column                        */
	uint64_t ops;          /* of each thread in each turn                                    */
	unsigned slices;       /* of each turn, at most STATS_MAX; 0: it is not cut              */
	double goal[ROLE_END]; /* subject's time : that role's best time, at most; 0: no goal */
	const char *against[ROLE_END]; /* who counts in that role; NULL: the fastest         */
	double p99_goal_ns;            /* of the subject's latencies, at most; 0: no goal    */
	const void *load;              /* for setup()                                        */
	unsigned threads;
	unsigned samples; /* not 0: it is about latency, and a turn has so many occasions */
	bool cpu; /* the time that the one thread has the processor for; else the wall's     */
};

struct contestant {
	const char *name;
	const char *about; /* version, and how it is used, for the report */
	enum role role;

	/* Builds whatever the turns of this case need. Not timed. Ends the program when it
	 * cannot. NULL: it has no part in this case. */
	void *(*setup)(const struct contestant *self, const struct bench_case *c);

	/* One thread's part of a turn: operations number `from` to `from + ops - 1` of its
	 * input, the same for every contestant. Returns how many of them did what they should. */
	crew_work *run;

	/* One occasion of a case that is about latency: returns how many nanoseconds it took. */
	double (*sample)(void *state);

	void (*teardown)(void *state);
	const void *arg; /* for setup() */
};

/* A figure that is no time: a count, a size. */
struct fact {
	const char *name;
	const char *unit;
	double value;
	double at_most; /* NAN: no goal */
	double floor;   /* the least that it can be here, if that is known; else 0 */
};

struct bench {
	const char *name;
	const char *title;
	const char *text; /* what an operation is, what was taken care of; Markdown */
	const struct contestant *contestants;
	size_t contestant_count;
	const struct bench_case *cases;
	size_t case_count;

	/* Writes up to `max` facts and returns how many. May be NULL. */
	size_t (*facts)(struct fact *ret, size_t max);
};

#define BENCH_FACTS_MAX 16

enum verdict {
	VERDICT_NONE = 1, /* there is no goal */
	VERDICT_MET,
	VERDICT_MISSED,
	VERDICT_UNDECIDED, /* the goal lies inside the spread */
	VERDICT_LIMITED    /* it was missed, and the rival's p99, or the floor of a fact, does
	                      not meet it either */
};

/* The subject's time : the time of the fastest contestant of a role. */
struct ratio {
	const struct contestant *against; /* NULL: nobody has that role */
	struct spread spread;
	double goal; /* 0: none */
	enum verdict verdict;
};

/* All that a contestant did in a case. */
struct record {
	bool played;
	/* By round: the wall time of the turn per operation of one of its threads, or the median
	 * of the turn's latencies. */
	double ns[STATS_MAX];
	double slices[STATS_MAX]; /* of the round that is being played                        */
	double *samples; /* every latency, in order of size; NULL: the case is not about them */
	size_t sample_count;
};

/* What came out of a case. */
struct outcome {
	const struct bench_case *c;
	unsigned rounds;
	struct record *records; /* by contestant */
	struct ratio ratios[ROLE_END];
	enum verdict p99_verdict; /* of the subject */
};

/* Runs the bench as the command line says, prints the report and returns the exit status. */
int bench_main(const struct bench *bench, int argc, char **argv);

#endif
