/* How the keys of a store in memory take turns. */
#include "store/memory/pace.h"

#include "queue/line.h"
#include "store/memory/rival.h"

/* The line of its key as it is without it. */
static struct line_before line_without(const struct batch *b, struct baton_store_time now)
{
	struct line_before line = {.idle = true, .turn = b->lane->is.turn};
	for (const struct batch *o = b->lane->first; o && line.first == 0; o = o->next) {
		if (o == b)
			continue;
		if (memory_rival_waits(o, now))
			line.first = o->is.seq;
		line.idle = line.idle && line.first == 0 && !o->is.claim && !o->is.holds;
	}
	return line;
}

static bool takes_turns(const struct lane *lane)
{
	return line_takes_turns(lane->name, &lane->queue->is.policy);
}

static enum baton_err set_turn(struct tx *tx, struct lane *lane, uint64_t turn)
{
	enum baton_err e = lane->is.turn != turn ? memory_tx_save(tx, &lane->row) : BATON_OK;
	if (e == BATON_OK)
		lane->is.turn = turn;
	return e;
}

enum baton_err memory_pace_reset(struct tx *tx, const struct queue *queue)
{
	enum baton_err e = BATON_OK;
	for (struct row *row = tx->m->lanes.oldest; row && e == BATON_OK; row = row->newer) {
		struct lane *lane = (struct lane *)row;
		if (lane->queue == queue && lane->is.turn > 0)
			e = set_turn(tx, lane, 0);
	}
	return e;
}

enum baton_err memory_pace_enter(struct tx *tx, const struct batch *b)
{
	if (!takes_turns(b->lane))
		return BATON_OK;
	const struct line_before line = line_without(b, tx->now);
	return set_turn(tx, b->lane, line_turn(&line, b->is.seq, tx->m->seq));
}

enum baton_err memory_pace_claim(struct tx *tx, struct lane *lane)
{
	if (!takes_turns(lane))
		return BATON_OK;
	tx->m->seq = memory_next_number(tx->m);
	return set_turn(tx, lane, tx->m->seq);
}

static uint64_t place_of(const struct batch *b)
{
	const struct lane *lane = b->lane;
	return line_place(lane->name, &lane->queue->is.policy, b->is.seq, lane->is.turn);
}

bool memory_pace_before(const struct batch *a, const struct batch *b)
{
	uint64_t x = place_of(a), y = place_of(b);
	return x < y || (x == y && a->is.seq < b->is.seq);
}
