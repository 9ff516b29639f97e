/* How long the lanes of a runner stand still that was killed or frozen, as the witness sees it. */
#ifndef CLI_FAILOVER_H
#define CLI_FAILOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "judge.h"

/* Begins zeroed. */
struct failover {
	int64_t at_ns;                 /* when it happened                                    */
	bool hit[JUDGE_LANES];         /* lanes that were the runner's                        */
	uint64_t before[JUDGE_LANES];  /* the fence of each then                              */
	int64_t after_ns[JUDGE_LANES]; /* how much later another owner began; 0: not yet     */
};

/* It happens now, to the lanes that are `hit`. */
void failover_begin(struct failover *f, const struct judge *j, int64_t now_ns);

/* Looks again. True: every lane goes on, or had nothing more to come. */
bool failover_look(struct failover *f, const struct judge *j);

struct failover_sum {
	size_t lanes;
	int64_t least_ns, most_ns; /* 0 without lanes */
};

struct failover_sum failover_sum(const struct failover *f);

#endif
