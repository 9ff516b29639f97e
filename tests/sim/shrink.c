/* Makes a run that goes wrong smaller: fewer actions, fewer runners, less time. */
#include "sim/shrink.h"

#include <string.h>

/* Whether the same rule is broken. */
static bool fails(struct world *w, const struct plan *plan)
{
	struct cover cover;
	const char *rule = w->rule;
	memset(&cover, 0, sizeof cover);
	world_run(w, plan, &cover, false);
	bool same = w->failed && w->rule == rule;
	w->rule = rule;
	return same;
}

/* Without those actions, from the last to the first, so that what remains keeps its place. */
static bool without(struct world *w, struct plan *plan, size_t first, size_t n)
{
	struct plan less = *plan;
	size_t rest = plan->count - first - n;
	memmove(&less.actions[first], &less.actions[first + n], rest * sizeof *less.actions);
	less.count -= n;
	if (!fails(w, &less))
		return false;
	*plan = less;
	return true;
}

static bool fewer(struct world *w, struct plan *plan)
{
	bool changed = false;
	for (size_t n = plan->count / 2; n > 0; n /= 2) {
		for (size_t first = 0; first + n <= plan->count;) {
			if (without(w, plan, first, n))
				changed = true;
			else
				first += n;
		}
	}
	return changed;
}

/* It ends soon after it has gone wrong, and things last half as long. */
static void shorter(struct world *w, struct plan *plan)
{
	struct plan less = *plan;
	fails(w, plan);
	less.end = w->now < plan->end ? w->now : plan->end;
	if (fails(w, &less))
		*plan = less;
	for (size_t i = 0; i < plan->count; i++) {
		less = *plan;
		less.actions[i].span /= 2;
		while (less.actions[i].span > SIM_MS && fails(w, &less)) {
			*plan = less;
			less.actions[i].span /= 2;
		}
	}
}

void shrink(struct world *w, struct plan *plan)
{
	while (fewer(w, plan))
		;
	shorter(w, plan);
	while (plan->seats > 1) {
		struct plan less = *plan;
		less.seats--;
		if (!fails(w, &less))
			break;
		*plan = less;
	}
	fewer(w, plan);
}
