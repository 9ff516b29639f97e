/* The lanes of a store in memory, and their lines. */
#include "store/memory/lane.h"

#include "base/check.h"
#include "queue/line.h"
#include "queue/place.h"
#include "queue/policy.h"
#include "store/memory/class.h"
#include "store/memory/rate.h"

/* Names have no NUL, so that one can stand between them. */
uint64_t memory_lane_hash(const struct memory *m, struct baton_str queue, struct baton_str name)
{
	char text[BATON_NAME_MAX + 1 + RATE_NAME_MAX];
	CHECK(queue.len <= BATON_NAME_MAX && name.len <= RATE_NAME_MAX);
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

void memory_guest_add(struct batch *b, size_t at, struct lane *key)
{
	struct guest *guest = &b->keys[at];
	*guest = (struct guest){.batch = b, .key = key, .next = key->guests};
	if (guest->next)
		guest->next->prev = guest;
	key->guests = guest;
}

static void guest_leave(struct guest *guest)
{
	*(guest->prev ? &guest->prev->next : &guest->key->guests) = guest->next;
	if (guest->next)
		guest->next->prev = guest->prev;
	guest->prev = guest->next = NULL;
}

static bool is_empty(const struct lane *lane)
{
	return !lane->first && !lane->guests;
}

struct row *memory_lane_left(struct row *row)
{
	struct batch *b = (struct batch *)row;
	if (!b->lane)
		return NULL;
	take_out(b);
	for (size_t i = 0; i < b->key_count; i++)
		guest_leave(&b->keys[i]);
	struct lane *gone = is_empty(b->lane) ? b->lane : NULL;
	for (size_t i = 0; i < b->key_count; i++) {
		struct lane *key = b->keys[i].key;
		if (!is_empty(key))
			continue;
		key->with = gone;
		gone = key;
	}
	return gone ? &gone->row : NULL;
}

struct row *memory_lane_gone(struct row *row)
{
	struct lane *with = ((struct lane *)row)->with;
	return with ? &with->row : NULL;
}

const struct lane *memory_key_of_claim(const struct claim *claim)
{
	return claim->key_count > 0 ? claim->keys[0] : claim->lane;
}

const struct lane *memory_key_of(const struct batch *b)
{
	return b->key_count > 0 ? b->keys[0].key : b->lane;
}

static void add_name(char text[LINE_KEYS_MAX], size_t *len, struct baton_str name)
{
	CHECK(*len + name.len <= LINE_KEYS_MAX);
	memcpy(text + *len, name.ptr, name.len);
	*len += name.len;
}

struct baton_str memory_guest_name(const struct batch *b, char text[LINE_KEYS_MAX])
{
	size_t len = 0;
	for (size_t i = 0; i < b->key_count; i++)
		add_name(text, &len, b->keys[i].key->name);
	return (struct baton_str){len > 0 ? text : NULL, len};
}

struct baton_str memory_claim_guest(const struct claim *claim, char text[LINE_KEYS_MAX])
{
	size_t len = 0;
	for (size_t i = 0; i < claim->key_count; i++)
		add_name(text, &len, claim->keys[i]->name);
	return (struct baton_str){len > 0 ? text : NULL, len};
}

struct baton_str memory_keys(const struct batch *b, char text[LINE_KEYS_MAX])
{
	return line_key(b->key_count > 0 ? memory_guest_name(b, text) : b->lane->name);
}

struct baton_str memory_claim_keys(const struct claim *claim, char text[LINE_KEYS_MAX])
{
	return line_key(claim->key_count > 0 ? memory_claim_guest(claim, text) : claim->lane->name);
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

/* How many times it holds its key. */
static uint64_t key_holds(struct line *line, struct batch *b, struct baton_store_time now)
{
	bool claimed = b->is.state == BATON_BATCH_CLAIMED;
	bool offered = claimed && memory_claim_is_offered(b->is.claim, now);
	bool keeps = b->key_count > 0 ? b->is.keeps : b->is.holds;
	if (!keeps && (!claimed || offered))
		return 0;
	line->holder = lower(line->holder, b);
	return keeps || memory_claim_counts(b);
}

/* The same of all who have the key in other queues of its class. */
static uint64_t class_holds(struct line *line, const struct lane *lane, struct baton_store_time now)
{
	uint64_t holds = 0;
	const struct queue *queue = memory_class_next(lane->queue, NULL);
	for (; queue; queue = memory_class_next(lane->queue, queue)) {
		const struct lane *other = memory_class_line(queue, lane->name);
		for (struct batch *b = other ? other->first : NULL; b; b = b->next)
			holds += key_holds(line, b, now);
		for (struct guest *g = other ? other->guests : NULL; g; g = g->next)
			holds += key_holds(line, g->batch, now);
	}
	return holds;
}

/* One that has the key, or wants it. Returns how many times it holds it. */
static uint64_t key_look_at(struct line *line, struct batch *b, struct baton_store_time now)
{
	bool claimed = b->is.state == BATON_BATCH_CLAIMED;
	bool offered = claimed && memory_claim_is_offered(b->is.claim, now);
	bool waits = offered || b->is.state == BATON_BATCH_READY;
	if (waits && b->key_count > 0) {
		struct line own = look_at_lane(b->lane, now);
		waits = own.free && own.first == b;
	}
	if (claimed && !line->claimed)
		line->claimed = b;
	if (offered && !line->offered)
		line->offered = b;
	if (waits)
		line->first = lower(line->first, b);
	return key_holds(line, b, now);
}

static struct line look_at_key(const struct lane *lane, struct baton_store_time now)
{
	struct line line = {.free = false};
	uint64_t holds = 0;
	for (struct batch *b = lane->first; b; b = b->next)
		holds += key_look_at(&line, b, now);
	for (struct guest *g = lane->guests; g; g = g->next)
		holds += key_look_at(&line, g->batch, now);
	holds += class_holds(&line, lane, now);
	bool room = key_has_room(&lane->queue->is.policy, holds);
	line.key = lane;
	line.until = lane->is.until;
	line.free = line.first && room && line.until.ms == 0;
	if (room)
		line.holder = NULL;
	return line;
}

/* Makes of what was found about some of its keys what is so with one more: the first that is full
 * counts, or the last that has started too often, or the first who comes before it. */
static void add_key(struct line *line, const struct line *key)
{
	bool later = key->until.ms > line->until.ms && !line->holder;
	if (later || (key->holder && !line->holder))
		line->key = key->key;
	if (key->until.ms > line->until.ms)
		line->until = key->until;
	if (!line->holder)
		line->holder = key->holder;
	if (key->first && key->first != line->first)
		line->ahead = lower(line->ahead, key->first);
	line->free = line->free && key->free && key->first == line->first;
}

/* The first of the lane is a guest: it can be claimed if it is its turn, with all of its keys. */
static struct line look_at_guest(struct line line, struct baton_store_time now)
{
	line.holder = NULL;
	for (size_t i = 0; i < line.first->key_count; i++) {
		struct line key = look_at_key(line.first->keys[i].key, now);
		add_key(&line, &key);
	}
	return line;
}

struct line memory_line_look(const struct lane *lane, struct baton_store_time now)
{
	bool keyed = line_is_keyed(lane->name);
	struct line line = keyed ? look_at_key(lane, now) : look_at_lane(lane, now);
	if (!line.free || line.first->key_count == 0)
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

/* Whether it is the turn of that guest with its other keys, too. */
static bool is_turn(const struct batch *b, const struct lane *but, struct baton_store_time now)
{
	for (size_t i = 0; i < b->key_count; i++) {
		const struct lane *key = b->keys[i].key;
		if (key == but)
			continue;
		const struct line line = look_at_key(key, now);
		if (!line.free || line.first != b)
			return false;
	}
	return true;
}

struct batch *memory_head(const struct lane *lane, struct baton_store_time now)
{
	bool keyed = line_is_keyed(lane->name);
	struct line line = keyed ? look_at_key(lane, now) : look_at_lane(lane, now);
	if (!line.free || (!keyed && line.first->key_count > 0))
		return NULL;
	return is_turn(line.first, lane, now) ? line.first : NULL;
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
	const struct lane *key = memory_key_of(b);
	if (memory_class_is_taken(tx, b))
		return false;
	if (b->key_count > 0)
		return key->marked_in == tx->m->calls && key->marked == b->is.seq;
	return b->was_head || !tx->m->keeper.changed || !line_is_keyed(key->name) ||
	       !policy_has_class(&key->queue->is.policy);
}

uint32_t memory_lane_shard(const struct lane *lane)
{
	uint32_t shards = lane->queue->is.policy.shards;
	if (lane->name.len > 0)
		return place_of_line(lane->queue->name, lane->name, shards);
	return lane->first ? (uint32_t)(lane->first->id % shards) : 0;
}

uint32_t memory_claim_shard(const struct lane *lane)
{
	bool sharded = lane->queue->is.policy.mode == BATON_QUEUE_RUNNER;
	return sharded || !line_is_keyed(lane->name) ? memory_lane_shard(lane) : 0;
}
