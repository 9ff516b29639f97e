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

static enum baton_err set_turn(struct tx *tx, struct lane *lane, bool next)
{
	enum baton_err e = memory_tx_save(tx, &lane->row);
	if (e != BATON_OK)
		return e;
	if (next)
		tx->m->seq = memory_next_number(tx->m);
	lane->is.turn = next ? tx->m->seq : 0;
	return BATON_OK;
}

enum baton_err memory_pace_enter(struct tx *tx, const struct batch *b)
{
	struct lane *lane = b->lane;
	if (!line_is_keyed(lane->name) || (lane->is.turn == 0 && !takes_turns(lane)) ||
	    !is_alone(b))
		return BATON_OK;
	return set_turn(tx, lane, takes_turns(lane) && b->is.seq != tx->m->seq);
}

enum baton_err memory_pace_claim(struct tx *tx, struct lane *lane)
{
	return takes_turns(lane) ? set_turn(tx, lane, true) : BATON_OK;
}

uint64_t memory_pace_place(const struct batch *b)
{
	const struct lane *lane = b->lane;
	return line_place(lane->name, &lane->queue->is.policy, b->is.seq, lane->is.turn);
}
