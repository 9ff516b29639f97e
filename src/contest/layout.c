/* What lies where in a fleet's segment. */
#include "contest/layout.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/fail.h"
#include "contest/lock.h"
#include "contest/mark.h"

#define KIND "fleet"
#define KIND_VERSION 2u
#define PAGE 4096u

/* Subjects per shard, and shards at most. */
#define SHARD_SUBJECTS 1024u
#define SHARDS_MAX 64u

static_assert(sizeof(struct bell) * BELLS == PAGE, "bells are what a watch may write to");
static_assert(sizeof(struct slot) == 64, "part of the segment's format");
static_assert(offsetof(struct slot, since) == 16, "part of the segment's format");
static_assert(offsetof(struct slot, offered) == 48, "part of the segment's format");
static_assert(sizeof(struct name) == 512, "part of the segment's format");
static_assert(sizeof(struct waiter) == 64, "part of the segment's format");
static_assert(sizeof(struct ring_entry) == 32, "part of the segment's format");
static_assert(sizeof(struct lock) == 64, "part of the segment's format");
static_assert(sizeof(struct shard) == 128, "part of the segment's format");
static_assert(sizeof(struct member) % 64 == 0, "members do not share cache lines");
static_assert(ATOMIC_INT_LOCK_FREE == 2 && ATOMIC_LLONG_LOCK_FREE == 2, "shared by processes");

/* Where the parts are, from the beginning of the data. */
struct plan {
	uint64_t control, members, shards, index, slots, names, waiters, lanes, wakeups, size;
	uint64_t lane_size;
	uint32_t shard_count, shard_places;
};

static uint32_t power_of_2_from(uint32_t n)
{
	uint32_t p = 1;
	while (p < n)
		p *= 2;
	return p;
}

static uint64_t part(struct plan *p, uint64_t bytes)
{
	uint64_t at = p->size;
	p->size += (bytes + PAGE - 1) / PAGE * PAGE;
	return at;
}

static struct plan plan_of(const uint32_t *params)
{
	struct plan p = {.size = 0};
	uint32_t subjects = params[PARAM_SUBJECTS];
	p.shard_count = power_of_2_from(subjects / SHARD_SUBJECTS);
	if (p.shard_count > SHARDS_MAX)
		p.shard_count = SHARDS_MAX;
	p.shard_places = power_of_2_from(2 * (subjects / p.shard_count + 1));
	p.lane_size = ring_size(params[PARAM_EVENTS]);

	part(&p, sizeof(struct bell) * BELLS);
	p.control = part(&p, sizeof(struct control));
	p.members = part(&p, (uint64_t)params[PARAM_MEMBERS] * sizeof(struct member));
	p.shards = part(&p, p.shard_count * sizeof(struct shard));
	p.index = part(&p, (uint64_t)p.shard_count * p.shard_places * sizeof(index_entry));
	p.slots = part(&p, (uint64_t)subjects * sizeof(struct slot));
	p.names = part(&p, (uint64_t)subjects * sizeof(struct name));
	p.waiters = part(&p, (uint64_t)params[PARAM_WAITERS] * sizeof(struct waiter));
	p.lanes = part(&p, (uint64_t)params[PARAM_MEMBERS] * p.lane_size);
	p.wakeups = part(&p, ring_size(params[PARAM_WAKEUPS]));
	return p;
}

struct limit {
	const char *name;
	uint32_t usual, max;
	bool power_of_2;
};

static const struct limit limits_table[PARAM_COUNT] = {
	[PARAM_MEMBERS] = {"members", BATON_FLEET_MEMBERS, BATON_FLEET_MEMBERS_MAX, false},
	[PARAM_SUBJECTS] = {"subjects", BATON_FLEET_SUBJECTS, BATON_FLEET_SUBJECTS_MAX, false},
	[PARAM_WAITERS] = {"waiters", BATON_FLEET_WAITERS, BATON_FLEET_WAITERS_MAX, false},
	[PARAM_EVENTS] = {"events", BATON_FLEET_EVENTS, BATON_FLEET_EVENTS_MAX, true},
	[PARAM_WAKEUPS] = {"wakeups", BATON_FLEET_WAKEUPS, BATON_FLEET_WAKEUPS_MAX, true},
};

static enum baton_err params_check(const uint32_t *params)
{
	for (int i = 0; i < PARAM_COUNT; i++) {
		const struct limit *l = &limits_table[i];
		if (params[i] < 1 || params[i] > l->max)
			return fail(BATON_INVALID,
			            "a fleet of %u %s cannot be: 1 to %u are allowed", params[i],
			            l->name, l->max);
		if (l->power_of_2 && (params[i] & (params[i] - 1)) != 0)
			return fail(BATON_INVALID,
			            "a fleet of %u %s cannot be: it must be a power of 2",
			            params[i], l->name);
	}
	return BATON_OK;
}

enum baton_err layout_params(const struct baton_fleet_limits *limits,
                             uint32_t params[SEGMENT_PARAMS])
{
	const uint32_t wanted[PARAM_COUNT] = {
		[PARAM_MEMBERS] = limits->members, [PARAM_SUBJECTS] = limits->subjects,
		[PARAM_WAITERS] = limits->waiters, [PARAM_EVENTS] = limits->events,
		[PARAM_WAKEUPS] = limits->wakeups,
	};
	memset(params, 0, SEGMENT_PARAMS * sizeof *params);
	for (int i = 0; i < PARAM_COUNT; i++)
		params[i] = wanted[i] != 0 ? wanted[i] : limits_table[i].usual;
	return params_check(params);
}

static size_t data_size(const uint32_t *params)
{
	return params_check(params) == BATON_OK ? (size_t)plan_of(params).size : 0;
}

static void view_find(struct view *v, char *data, const uint32_t *params)
{
	struct plan p = plan_of(params);
	memcpy(v->params, params, sizeof v->params);
	v->bells = (struct bell *)(void *)data;
	v->control = (struct control *)(void *)(data + p.control);
	v->members = (struct member *)(void *)(data + p.members);
	v->shards = (struct shard *)(void *)(data + p.shards);
	v->index = (index_entry *)(void *)(data + p.index);
	v->slots = (struct slot *)(void *)(data + p.slots);
	v->names = (struct name *)(void *)(data + p.names);
	v->waiters = (struct waiter *)(void *)(data + p.waiters);
	v->lanes = data + p.lanes;
	v->wakeups = (struct ring *)(void *)(data + p.wakeups);
	v->lane_size = p.lane_size;
	v->shard_count = p.shard_count;
	v->shard_places = p.shard_places;
	v->lock_kind = lock_kind();
}

static uint64_t wall_floor(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return ((uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000) << 6;
}

/* No fence below it was handed out before: the larger of the mark and the time of day. */
static enum baton_err floor_find(struct control *control, const struct fleet_seed *seed,
                                 uint64_t *ret_floor)
{
	uint64_t floor = wall_floor();
	uint64_t before = 0;
	if (seed->mark_path[0] != '\0') {
		enum baton_err e = mark_raise(seed->mark_path, seed->mode, 0, &before);
		if (e != BATON_OK)
			return e;
	}
	if (before > floor)
		floor = before;
	if (floor >= WORD_TENURE_MAX - MARK_BLOCK)
		return fail(BATON_INVALID,
		            "the clock or '%.200s' is far ahead: no fences are left above %llu",
		            seed->mark_path, (unsigned long long)floor);
	if (seed->mark_path[0] != '\0') {
		enum baton_err e =
			mark_raise(seed->mark_path, seed->mode, floor + MARK_BLOCK, &before);
		if (e != BATON_OK)
			return e;
	}
	atomic_store(&control->mark, floor + MARK_BLOCK);
	*ret_floor = floor;
	return BATON_OK;
}

static enum baton_err data_init(void *data, const uint32_t *params, void *arg)
{
	struct view v = {.bells = NULL};
	uint64_t floor = 0;
	view_find(&v, data, params);
	enum baton_err e = floor_find(v.control, arg, &floor);
	if (e == BATON_OK)
		e = baton_id_random(&v.control->seed);
	if (e == BATON_OK)
		e = lock_init(&v.control->roster);
	for (uint32_t i = 0; e == BATON_OK && i < v.shard_count; i++) {
		e = lock_init(&v.shards[i].lock);
		atomic_store(&v.shards[i].floor, floor);
	}
	for (uint32_t i = 0; e == BATON_OK && i < params[PARAM_SUBJECTS]; i++)
		atomic_store_explicit(&v.slots[i].who, word_make(floor, WORD_VACANT, 0).who,
		                      memory_order_relaxed);
	return e;
}

struct segment_spec layout_spec(void)
{
	return (struct segment_spec){
		.kind = KIND,
		.kind_version = KIND_VERSION,
		.param_count = PARAM_COUNT,
		.mode = 0600,
		.size = data_size,
		.init = data_init,
	};
}

void view_init(struct view *v)
{
	view_find(v, v->segment.data, v->segment.params);
	v->mark_path = "";
	atomic_store(&v->afforded, 0);
}

enum baton_err view_floor(struct view *v)
{
	struct control *c = v->control;
	uint64_t mark = 0;
	if (v->mark_path[0] == '\0')
		return BATON_OK;
	enum baton_err e = mark_raise(v->mark_path, v->mark_mode, 0, &mark);
	if (e != BATON_OK || mark <= atomic_load(&c->mark))
		return e;
	for (uint32_t i = 0; i < v->shard_count; i++)
		raise_to(&v->shards[i].floor, mark);
	raise_to(&c->mark, mark);
	return BATON_OK;
}
