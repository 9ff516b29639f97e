/* What the witness of the demo makes of what it is told. It decides, and nothing else: no clock, no
 * input, no process. */
#ifndef CLI_JUDGE_H
#define CLI_JUDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JUDGE_LANES 50
#define JUDGE_JOBS 40 /* in each lane, from 0 */
#define JUDGE_ALL 2000

/* What a handler says: that it begins, or the effect of its job. */
struct judge_record {
	bool effect;
	uint32_t lane;
	uint32_t job;
	int32_t pid;
	uint64_t fence;
};

struct judge_lane {
	uint64_t accepted; /* a bit for each job                              */
	uint64_t fence;    /* the highest that came                           */
	int64_t since_ns;  /* when a handler first began under it             */
};

/* Begins zeroed. */
struct judge {
	struct judge_lane lanes[JUDGE_LANES];
	uint32_t accepted; /* effects that were the first of their job      */
	uint32_t repeated; /* effects that were there already: set aside     */
	uint32_t late;     /* effects that came under an old fence: refused  */

	/* What must never be. */
	uint32_t disordered; /* a job before those that come before it        */
	uint32_t together;   /* a handler while another one of its lane lives */
	uint32_t backward;   /* a handler that began under an old fence       */
	uint32_t strange;    /* what no handler of the demo says              */
};

/* Reads a line, without its end. False: it is none that a handler writes. */
bool judge_read(const char *line, struct judge_record *ret);

/* A handler begins. `busy`: an earlier one of its lane lives. */
void judge_begin(struct judge *j, const struct judge_record *r, bool busy, int64_t now_ns);

/* An effect comes in. False: it is refused, by its fence. */
bool judge_effect(struct judge *j, const struct judge_record *r);

/* Whether the lane has nothing more to come. */
bool judge_lane_done(const struct judge *j, size_t lane);

#endif
