/* Connections for lanes, and who serves them. */
#include "runner/visits.h"

#include "base/check.h"
#include "base/fail.h"
#include "base/mem.h"

#define PLACE_BITS 16

enum baton_err visits_init(struct visits *v, const struct visits_options *options)
{
	uint32_t max = options->asked->max;
	*v = (struct visits){.o = *options};
	CHECK(max <= 1u << PLACE_BITS);
	pthread_mutex_init(&v->mu, NULL);
	v->all = mem_new(options->alloc, max, sizeof *v->all);
	if (!v->all)
		return fail_memory(max * sizeof *v->all, "connections");
	for (uint32_t i = 0; i < max; i++)
		v->all[i].visits = v;
	return BATON_OK;
}

void visits_done(struct visits *v)
{
	if (!v->o.asked)
		return;
	if (v->all)
		mem_free(v->o.alloc, v->all, v->o.asked->max, sizeof *v->all);
	pthread_mutex_destroy(&v->mu);
	*v = (struct visits){.count = 0};
}

static struct baton_visit *place_find(struct visits *v)
{
	uint32_t max = v->o.asked->max;
	if (v->count == max)
		return NULL;
	while (v->all[v->turn % max].id != 0)
		v->turn++;
	return &v->all[v->turn++ % max];
}

/* Ids are not given twice soon, and are not those of claims. */
static uint64_t id_of(struct visits *v, const struct baton_visit *visit)
{
	return COMMANDS_VISIT | (uint64_t)++v->serial << PLACE_BITS | (uint64_t)(visit - v->all);
}

/* Whether that lane is served here; then the visit has begun. */
static bool admit(struct visits *v, struct baton_visit *visit, const struct baton_connection *c,
                  struct baton_mono now)
{
	uint32_t queue = 0;
	while (queue < v->o.serve_count && !baton_str_equal(v->o.serves[queue].queue, c->queue))
		queue++;
	if (queue == v->o.serve_count || c->lane.len == 0 || c->lane.len > BATON_NAME_MAX ||
	    !core_visit(v->o.core, queue, c->lane, now, &visit->shard, &visit->fence))
		return false;
	visit->queue = queue;
	visit->stopping = false;
	pthread_mutex_lock(&v->mu);
	visit->ended = false;
	pthread_mutex_unlock(&v->mu);
	visit->id = id_of(v, visit);
	v->count++;
	return true;
}

static void begin_command(struct visits *v, struct baton_visit *visit, struct baton_connection *c)
{
	baton_connection_welcome(c);
	enum baton_err e = commands_serve(v->o.commands, visit->id, c, visit->fence);
	if (e != BATON_OK) {
		BATON_LOG(v->o.log, BATON_LOG_ERROR, "a connection cannot be served",
		          baton_field_str("lane", c->lane),
		          baton_field_str("why", baton_str_z(baton_err_detail())));
		visits_ended(v, visit->id);
	}
	baton_connection_free(c);
}

static void begin_function(struct visits *v, struct baton_visit *visit, struct baton_connection *c)
{
	if (!alarm_enter(v->o.alarm)) {
		visits_ended(v, visit->id);
		baton_connection_free(c);
		return;
	}
	baton_connection_welcome(c);
	visit->connection = c;
	v->o.asked->connected(v->o.asked->arg, visit);
}

void visits_take(struct visits *v, struct baton_connection *connection, struct baton_mono now)
{
	struct baton_visit *visit = place_find(v);
	if (!visit || !admit(v, visit, connection, now))
		baton_connection_free(connection);
	else if (v->o.asked->connected)
		begin_function(v, visit, connection);
	else if (v->o.streams)
		streams_visit(v->o.streams, visit->id, connection, visit->fence, now);
	else
		begin_command(v, visit, connection);
}

/* Whether a function has ended it, also if that was not heard yet. */
static bool has_ended(struct visits *v, const struct baton_visit *visit)
{
	pthread_mutex_lock(&v->mu);
	bool ended = visit->ended;
	pthread_mutex_unlock(&v->mu);
	return ended;
}

void visits_act(struct visits *v, struct baton_mono now)
{
	for (uint32_t i = 0; v->count > 0 && i < v->o.asked->max; i++) {
		struct baton_visit *visit = &v->all[i];
		if (visit->id == 0 || visit->stopping ||
		    core_visit_goes_on(v->o.core, visit->queue, visit->shard) ||
		    has_ended(v, visit))
			continue;
		visit->stopping = true;
		if (v->o.asked->leave)
			v->o.asked->leave(v->o.asked->arg, visit);
		else if (v->o.streams)
			streams_send_away(v->o.streams, visit->id, now);
		else
			commands_stop(v->o.commands, visit->id);
	}
}

void visits_ended(struct visits *v, uint64_t id)
{
	uint64_t place = id & ((1u << PLACE_BITS) - 1);
	if (!v->all || place >= v->o.asked->max || v->all[place].id != id)
		return;
	core_visit_ended(v->o.core, v->all[place].queue, v->all[place].shard);
	v->all[place].id = 0;
	v->count--;
}

void visits_hear(struct visits *v)
{
	if (!v->all)
		return;
	pthread_mutex_lock(&v->mu);
	struct baton_visit *left = v->left;
	v->left = NULL;
	pthread_mutex_unlock(&v->mu);
	for (struct baton_visit *next; left; left = next) {
		next = left->next;
		visits_ended(v, left->id);
	}
}

const struct baton_connection *baton_visit_connection(const struct baton_visit *visit)
{
	return visit->connection;
}

baton_fence baton_visit_fence(const struct baton_visit *visit)
{
	return visit->fence;
}

void baton_visit_end(struct baton_visit *visit)
{
	struct visits *v = visit->visits;
	pthread_mutex_lock(&v->mu);
	CHECK(!visit->ended);
	visit->ended = true;
	pthread_mutex_unlock(&v->mu);
	baton_connection_free(visit->connection);
	visit->connection = NULL;
	alarm_leave(v->o.alarm);
	/* From the unlock on the place may be another connection's. */
	pthread_mutex_lock(&v->mu);
	visit->next = v->left;
	v->left = visit;
	pthread_mutex_unlock(&v->mu);
	inbox_wake(v->o.inbox);
}
