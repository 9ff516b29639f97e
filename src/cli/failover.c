/* How long the lanes of a runner stand still that was killed or frozen. */
#include "failover.h"

void failover_begin(struct failover *f, const struct judge *j, int64_t now_ns)
{
	f->at_ns = now_ns;
	for (size_t i = 0; i < JUDGE_LANES; i++)
		f->before[i] = j->lanes[i].fence;
}

bool failover_look(struct failover *f, const struct judge *j)
{
	bool all = true;
	for (size_t i = 0; i < JUDGE_LANES; i++) {
		if (!f->hit[i] || f->after_ns[i] > 0)
			continue;
		if (j->lanes[i].fence > f->before[i] && j->lanes[i].since_ns > f->at_ns)
			f->after_ns[i] = j->lanes[i].since_ns - f->at_ns;
		else if (!judge_lane_done(j, i))
			all = false;
	}
	return all;
}

struct failover_sum failover_sum(const struct failover *f)
{
	struct failover_sum sum = {.lanes = 0};
	for (size_t i = 0; i < JUDGE_LANES; i++) {
		int64_t after = f->after_ns[i];
		if (after == 0)
			continue;
		sum.least_ns = sum.lanes == 0 || after < sum.least_ns ? after : sum.least_ns;
		sum.most_ns = after > sum.most_ns ? after : sum.most_ns;
		sum.lanes++;
	}
	return sum;
}
