/* How the keys of a store in memory take turns. */
#include "store/memory/pace.h"

#include "queue/line.h"

/* Whether nobody else is in the line of its key, or holds that. */
static bool is_alone(const struct batch *b)
{
	for (const struct batch *other = b->lane->first; other; other = other->next) {
		bool counts = other->is.state == BATON_BATCH_READY || other->is.claim != NULL ||
		              other->is.holds;
		if (other != b && counts)
			return false;
	}
	return true;
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
	struct lane *lane = b->lane;
	if (!line_is_keyed(lane->name) || (lane->is.turn == 0 && !takes_turns(lane)) ||
	    !is_alone(b))
		return BATON_OK;
	/* One that was just put needs none. */
	return set_turn(tx, lane, takes_turns(lane) && b->is.seq < tx->m->seq ? tx->m->seq : 0);
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
