/* Where keys count that do not count in the whole cluster, and who is there. */
#include "sim/sim.h"
#include "store/store.h"

enum baton_key_scope sim_scope(const struct world *w, uint32_t queue)
{
	const uint64_t n = (w->plan->seed / 13 + queue) % 4;
	if (sim_has_guests(w, queue) || sim_is_classed(w, queue) || n > 1)
		return BATON_KEY_SCOPE_CLUSTER;
	return n == 0 ? BATON_KEY_SCOPE_PROCESS : BATON_KEY_SCOPE_HOST;
}

bool sim_has_sites(const struct world *w, uint32_t queue)
{
	return sim_scope(w, queue) != BATON_KEY_SCOPE_CLUSTER;
}

bool sim_is_same_site(const struct world *w, uint32_t queue, const struct proc *a,
                      const struct proc *b)
{
	switch (sim_scope(w, queue)) {
	case BATON_KEY_SCOPE_PROCESS:
		return a == b;
	case BATON_KEY_SCOPE_HOST:
		return a && b && a->host == b->host;
	case BATON_KEY_SCOPE_CLUSTER:
		break;
	}
	return true;
}

uint32_t sim_holds(const struct world *w, uint32_t queue, uint32_t key, const struct proc *p)
{
	uint32_t holds = 0;
	for (uint32_t i = w->grants_from; i < w->grant_count; i++) {
		const struct grant *g = &w->grants[i];
		holds += !g->ended && sim_class(w, g->queue) == sim_class(w, queue) &&
		         (g->keys & KEY_BIT(key)) &&
		         sim_is_same_site(w, queue, p, proc_of(w, g->number));
	}
	return holds;
}

uint64_t sim_starts(const struct world *w, const struct grant *g, uint32_t key,
                    struct baton_store_time now)
{
	const struct baton_duration window = sim_rate(w, g->queue).window;
	const bool host = sim_scope(w, g->queue) == BATON_KEY_SCOPE_HOST;
	uint64_t starts = 0;
	for (uint32_t i = w->grant_count; i > w->counted; i--) {
		const struct grant *o = &w->grants[i - 1];
		if (baton_store_time_ready(baton_store_time_add(o->at, window), now))
			break;
		if (o == g || o->queue != g->queue || !(o->keys & KEY_BIT(key)))
			continue;
		starts += host ? sim_is_same_site(w, g->queue, proc_of(w, g->number),
		                                  proc_of(w, o->number))
		               : g->number == o->number;
	}
	return starts;
}

void sim_site_enter(struct proc *p, struct baton_owner *was)
{
	struct baton_owner *owner = &p->w->store->owner;
	*was = *owner;
	/* Process 1 is always there, and nothing else is known of it. */
	owner->pid = 1;
	owner->boot.bytes[0] = (uint8_t)(p->host + 1);
	if (p->w->plan->variant == VARIANT_HOSTLESS)
		owner->boot.bytes[1] = (uint8_t)(p->id + 1);
}

void sim_site_leave(struct proc *p, const struct baton_owner *was)
{
	p->w->store->owner = *was;
}
