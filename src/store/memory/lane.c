/* The lanes of a store in memory, and their lines. */
#include "store/memory/lane.h"

#include "base/check.h"
#include "queue/line.h"
#include "queue/place.h"
#include "store/memory/rate.h"

/* Names have no NUL, so that one can stand between them. */
uint64_t memory_lane_hash(const struct memory *m, struct baton_str queue, struct baton_str name)
{
	char text[BATON_NAME_MAX + 1 + LINE_NAME_MAX];
	CHECK(queue.len <= BATON_NAME_MAX && name.len <= LINE_NAME_MAX);
	memcpy(text, queue.ptr, queue.len);
	text[queue.len] = '\0';
	memcpy(text + queue.len + 1, name.ptr, name.len);
	return memory_hash(m, text, queue.len + 1 + name.len);
}

struct lane *memory_lane_find(const struct memory *m, struct baton_str queue, struct baton_str name)
{
	struct row *row = memory_row_first(&m->lanes, memory_lane_hash(m, queue, name));
	for (; row; row = memory_row_next(row)) {
		struct lane *lane = (struct lane *)row;
		if (baton_str_equal(lane->name, name) && baton_str_equal(lane->queue->name, queue))
			return lane;
	}
	return NULL;
}

static struct lane *lane_add(struct tx *tx, struct queue *queue, struct baton_str name,
                             uint64_t hash)
{
	struct lane *lane = NULL;
	lane = (struct lane *)memory_tx_add(tx, &tx->m->lanes, sizeof *lane + name.len, hash);
	if (!lane)
		return NULL;
	char *text = (char *)(lane + 1);
	if (name.len > 0)
		memcpy(text, name.ptr, name.len);
	lane->queue = queue;
	lane->name = (struct baton_str){text, name.len};
	lane->is.until = memory_rate_until(tx->m, lane);
	return lane;
}

struct lane *memory_lane_open(struct tx *tx, struct queue *queue, struct baton_str name,
                              uint64_t id)
{
	if (name.len == 0)
		return lane_add(tx, queue, name, memory_hash(tx->m, &id, sizeof id));
	struct lane *lane = memory_lane_find(tx->m, queue->name, name);
	return lane ? lane : lane_add(tx, queue, name, memory_lane_hash(tx->m, queue->name, name));
}

static void take_out(struct batch *b)
{
	struct lane *lane = b->lane;
	if (!b->prev && lane->first != b)
		return;
	*(b->prev ? &b->prev->next : &lane->first) = b->next;
	*(b->next ? &b->next->prev : &lane->last) = b->prev;
	b->prev = b->next = NULL;
}

void memory_lane_place(struct batch *b)
{
	struct lane *lane = b->lane;
	take_out(b);
	struct batch *prev = lane->last;
	while (prev && prev->is.seq > b->is.seq)
		prev = prev->prev;
	b->prev = prev;
	b->next = prev ? prev->next : lane->first;
	*(b->prev ? &b->prev->next : &lane->first) = b;
	*(b->next ? &b->next->prev : &lane->last) = b;
}

void memory_guest_add(struct batch *b, struct lane *key)
{
	b->key = key;
	b->guest_next = key->guests;
	if (b->guest_next)
		b->guest_next->guest_prev = b;
	key->guests = b;
}

static void guest_leave(struct batch *b)
{
	*(b->guest_prev ? &b->guest_prev->guest_next : &b->key->guests) = b->guest_next;
	if (b->guest_next)
		b->guest_next->guest_prev = b->guest_prev;
	b->guest_prev = b->guest_next = NULL;
}

static struct lane *if_empty(struct lane *lane)
{
	return lane && !lane->first && !lane->guests ? lane : NULL;
}

struct row *memory_lane_left(struct row *row)
{
	struct batch *b = (struct batch *)row;
	if (!b->lane)
		return NULL;
	take_out(b);
	if (b->key)
		guest_leave(b);
	struct lane *lane = if_empty(b->lane), *key = if_empty(b->key);
	if (!lane)
		return key ? &key->row : NULL;
	lane->with = key;
	return &lane->row;
}

struct row *memory_lane_gone(struct row *row)
{
	struct lane *with = ((struct lane *)row)->with;
	return with ? &with->row : NULL;
}

const struct lane *memory_key_of(const struct lane *lane, const struct lane *key)
{
	return key ? key : lane;
}

void memory_lane_restored(struct row *row)
{
	memory_lane_place((struct batch *)row);
}

bool memory_line_has(const struct batch *b)
{
	return b->is.state == BATON_BATCH_READY || b->is.state == BATON_BATCH_CLAIMED ||
	       (b->is.blocks && !b->is.holds);
}

bool memory_claim_is_offered(const struct claim *claim, struct baton_store_time now)
{
	return claim->is.offered && !baton_store_time_live(claim->is.expires, now);
}

bool memory_claim_counts(const struct batch *b)
{
	const struct batch *other = b->is.claim->is.count > 1 ? b->prev : NULL;
	while (other && other->is.claim != b->is.claim)
		other = other->prev;
	return !other;
}

static struct line look_at_lane(const struct lane *lane, struct baton_store_time now)
{
	struct line line = {.free = true};
	for (struct batch *b = lane->first; b; b = b->next) {
		if (b->is.holds && !line.dead)
			line.dead = b;
		if (!memory_line_has(b))
			continue;
		if (!line.first)
			line.first = b;
		if (b->is.state != BATON_BATCH_CLAIMED)
			continue;
		if (!line.claimed)
			line.claimed = b;
		if (!memory_claim_is_offered(b->is.claim, now))
			line.free = false;
		else if (!line.offered)
			line.offered = b;
	}
	if (!line.first || line.first->is.state == BATON_BATCH_RETRY || line.dead)
		line.free = false;
	return line;
}

static struct batch *lower(struct batch *a, struct batch *b)
{
	return !a || b->is.seq < a->is.seq ? b : a;
}

/* One that has the key, or wants it. Returns how many times it holds it. */
static uint64_t key_look_at(struct line *line, struct batch *b, struct baton_store_time now)
{
	bool claimed = b->is.state == BATON_BATCH_CLAIMED;
	bool offered = claimed && memory_claim_is_offered(b->is.claim, now);
	bool keeps = b->key ? b->is.keeps : b->is.holds;
	bool waits = offered || b->is.state == BATON_BATCH_READY;
	if (waits && b->key) {
		struct line own = look_at_lane(b->lane, now);
		waits = own.free && own.first == b;
	}
	if (claimed && !line->claimed)
		line->claimed = b;
	if (offered && !line->offered)
		line->offered = b;
	if (waits)
		line->first = lower(line->first, b);
	if (!keeps && (!claimed || offered))
		return 0;
	line->holder = lower(line->holder, b);
	return keeps || memory_claim_counts(b);
}

static struct line look_at_key(const struct lane *lane, struct baton_store_time now)
{
	struct line line = {.free = false};
	uint64_t holds = 0;
	for (struct batch *b = lane->first; b; b = b->next)
		holds += key_look_at(&line, b, now);
	for (struct batch *b = lane->guests; b; b = b->guest_next)
		holds += key_look_at(&line, b, now);
	bool room = key_has_room(&lane->queue->is.policy, holds);
	line.until = lane->is.until;
	line.free = line.first && room && line.until.ms == 0;
	if (room)
		line.holder = NULL;
	return line;
}

/* The first of the lane is a guest: it can be claimed if it is its turn. */
static struct line look_at_guest(struct line line, struct baton_store_time now)
{
	struct line key = look_at_key(line.first->key, now);
	line.holder = key.holder;
	line.until = key.until;
	line.ahead = key.first != line.first ? key.first : NULL;
	line.free = key.free && !line.ahead;
	return line;
}

struct line memory_line_look(const struct lane *lane, struct baton_store_time now)
{
	bool keyed = line_is_keyed(lane->name);
	struct line line = keyed ? look_at_key(lane, now) : look_at_lane(lane, now);
	if (!line.free || !line.first->key)
		return line;
	if (!keyed)
		return look_at_guest(line, now);
	line.free = false;
	return line;
}

struct batch *memory_line_first(const struct lane *lane, struct baton_store_time now)
{
	if (line_is_keyed(lane->name))
		return look_at_key(lane, now).first;
	struct line line = look_at_lane(lane, now);
	return line.free ? line.first : NULL;
}

struct batch *memory_head(const struct lane *lane, struct baton_store_time now)
{
	bool keyed = line_is_keyed(lane->name);
	struct line line = keyed ? look_at_key(lane, now) : look_at_lane(lane, now);
	return line.free && (keyed || !line.first->key) ? line.first : NULL;
}

/* On a desk only what was said to be a head is one: of other keys not everything was read. */
void memory_heads_mark(const struct tx *tx, const struct queue *queue)
{
	if (!queue->is.guests)
		return;
	for (struct row *row = tx->m->lanes.oldest; row; row = row->newer) {
		struct lane *lane = (struct lane *)row;
		if (lane->queue != queue || !lane->guests)
			continue;
		const struct batch *head = memory_head(lane, tx->now);
		bool known = head && (!tx->m->keeper.changed || head->was_head);
		lane->marked_in = tx->m->calls;
		lane->marked = known ? head->is.seq : 0;
	}
}

bool memory_head_is_marked(const struct tx *tx, const struct batch *b)
{
	const struct lane *key = b->key;
	return !key || (key->marked_in == tx->m->calls && key->marked == b->is.seq);
}

uint32_t memory_lane_shard(const struct lane *lane)
{
	uint32_t shards = lane->queue->is.policy.shards;
	if (lane->name.len > 0)
		return place_of_line(lane->queue->name, lane->name, shards);
	return lane->first ? (uint32_t)(lane->first->id % shards) : 0;
}
