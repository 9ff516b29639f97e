/* Connections for lanes, each served by a command of its own. */
#include "runner/visits.h"

#include "base/fail.h"
#include "base/mem.h"

enum baton_err visits_init(struct visits *v, const struct visits_options *options)
{
	*v = (struct visits){.o = *options};
	v->all = mem_new(options->alloc, options->max, sizeof *v->all);
	return v->all ? BATON_OK : fail_memory(options->max * sizeof *v->all, "connections");
}

void visits_done(struct visits *v)
{
	if (v->all)
		mem_free(v->o.alloc, v->all, v->o.max, sizeof *v->all);
	v->all = NULL;
}

static struct visit *place_find(struct visits *v)
{
	uint32_t i = 0;
	while (i < v->o.max && v->all[i].id != 0)
		i++;
	return i < v->o.max ? &v->all[i] : NULL;
}

/* Ids are never given twice, and are not those of claims. */
static uint64_t id_of(struct visits *v, const struct visit *visit)
{
	return COMMANDS_VISIT | (uint64_t)++v->serial << 16 | (uint64_t)(visit - v->all);
}

/* Whether that lane is served here; then the visit has begun, under *ret_fence. */
static bool admit(struct visits *v, struct visit *visit, const struct baton_connection *c,
                  struct baton_mono now, baton_fence *ret_fence)
{
	uint32_t queue = 0;
	while (queue < v->o.serve_count && !baton_str_equal(v->o.serves[queue].queue, c->queue))
		queue++;
	if (queue == v->o.serve_count || c->lane.len == 0 || c->lane.len > BATON_NAME_MAX)
		return false;
	*visit = (struct visit){.queue = queue};
	return core_visit(v->o.core, queue, c->lane, now, &visit->shard, ret_fence);
}

static void begin(struct visits *v, struct visit *visit, struct baton_connection *c,
                  baton_fence fence)
{
	visit->id = id_of(v, visit);
	v->count++;
	baton_connection_welcome(c);
	enum baton_err e = commands_serve(v->o.commands, visit->id, c, fence);
	if (e == BATON_OK)
		return;
	BATON_LOG(v->o.log, BATON_LOG_ERROR, "a connection cannot be served",
	          baton_field_str("lane", c->lane),
	          baton_field_str("why", baton_str_z(baton_err_detail())));
	visits_ended(v, visit->id);
}

void visits_take(struct visits *v, struct baton_connection *connection, struct baton_mono now)
{
	baton_fence fence;
	struct visit *visit = place_find(v);
	if (visit && admit(v, visit, connection, now, &fence))
		begin(v, visit, connection, fence);
	baton_connection_free(connection);
}

void visits_act(struct visits *v)
{
	for (uint32_t i = 0; v->count > 0 && i < v->o.max; i++) {
		struct visit *visit = &v->all[i];
		if (visit->id == 0 || visit->stopping ||
		    core_visit_goes_on(v->o.core, visit->queue, visit->shard))
			continue;
		visit->stopping = true;
		commands_stop(v->o.commands, visit->id);
	}
}

void visits_ended(struct visits *v, uint64_t id)
{
	struct visit *visit = &v->all[id & 0xffff];
	if (!v->all || (id & 0xffff) >= v->o.max || visit->id != id)
		return;
	core_visit_ended(v->o.core, visit->queue, visit->shard);
	visit->id = 0;
	v->count--;
}
