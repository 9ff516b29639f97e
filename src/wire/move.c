/* What a broker hands to the one that takes its place. */
#include "wire/move.h"

#include "base/fail.h"
#include "wire/convert.h"
#include "wire/handoff.h"

bool wire_item_has_fd(enum wire_item_kind kind)
{
	switch (kind) {
	case WIRE_ITEM_LOCK:
	case WIRE_ITEM_CLIENTS:
	case WIRE_ITEM_BACKENDS:
	case WIRE_ITEM_LISTENER:
	case WIRE_ITEM_CHANNEL:
	case WIRE_ITEM_STORED:
	case WIRE_ITEM_PASSING:
	case WIRE_ITEM_CHILD:
	case WIRE_ITEM_PEER:
	case WIRE_ITEM_SLATE:
		return true;
	case WIRE_ITEM_SERVICE:
	case WIRE_ITEM_COUNTER:
	case WIRE_ITEM_IDS:
	case WIRE_ITEM_LEFTOVER:
	case WIRE_ITEM_WILL:
		break;
	}
	return false;
}

static void item_out(const struct wire_item *item, Baton__Wire__Item *pb)
{
	Baton__Wire__Item init = BATON__WIRE__ITEM__INIT;
	*pb = init;
	pb->kind = (uint32_t)item->kind;
	pb->service = pack_data(item->service);
	pb->name = pack_data(item->name);
	pb->other = pack_data(item->other);
	pb->bytes = pack_data(item->bytes);
	pb->token = pack_data(item->token);
	pb->id = item->id;
	pb->generation = item->generation;
	pb->capabilities = item->capabilities;
	pb->since = item->since;
	pb->until = item->until;
	pb->n_numbers = item->numbers_count;
	/* What is packed is only read. */
	pb->numbers = (uint64_t *)item->numbers;
}

enum baton_err convert_move_encode(const struct wire_move *move, struct buf *out)
{
	Baton__Wire__Handoff pb = BATON__WIRE__HANDOFF__INIT;
	Baton__Wire__Move m = BATON__WIRE__MOVE__INIT;
	Baton__Wire__Item items[WIRE_MOVE_ITEMS_MAX];
	Baton__Wire__Item *places[WIRE_MOVE_ITEMS_MAX];
	if (move->items_count > WIRE_MOVE_ITEMS_MAX)
		return fail(BATON_FULL, "a portion of %zu items; %d are allowed", move->items_count,
		            WIRE_MOVE_ITEMS_MAX);
	for (size_t i = 0; i < move->items_count; i++) {
		item_out(&move->items[i], &items[i]);
		places[i] = &items[i];
	}
	m.step = (uint32_t)move->step;
	m.number = move->number;
	m.detail = pack_data(move->detail);
	m.n_items = move->items_count;
	m.items = places;
	pb.is_case = BATON__WIRE__HANDOFF__IS_MOVE;
	pb.move = &m;
	return pack(&pb.base, out);
}

static enum baton_err texts_in(const Baton__Wire__Item *pb, struct wire_item *ret)
{
	enum baton_err e = pack_text("service", pb->service, WIRE_SERVICE_MAX, &ret->service);
	if (e == BATON_OK && ret->service.len > 0 && !wire_is_service(ret->service))
		e = fail(BATON_INVALID,
		         "an item of a service whose name is not of 1 to %d of "
		         "[a-z0-9-]",
		         WIRE_SERVICE_MAX);
	if (e == BATON_OK)
		e = pack_text("name", pb->name, WIRE_ENDPOINT_MAX, &ret->name);
	if (e == BATON_OK)
		e = pack_text("owner", pb->other, BATON_NAME_MAX, &ret->other);
	if (e == BATON_OK)
		e = pack_bytes("a Hello", pb->bytes, WIRE_HELLO_MAX + WIRE_FRAME_HEAD, &ret->bytes);
	return e == BATON_OK ? pack_bytes("a token", pb->token, WIRE_SECRET_MAX, &ret->token) : e;
}

static enum baton_err item_in(const Baton__Wire__Item *pb, struct wire_item *ret)
{
	if (pb->kind < WIRE_ITEM_LOCK || pb->kind > WIRE_ITEM_SLATE)
		return fail(BATON_INVALID, "an item of the unknown kind %u", (unsigned)pb->kind);
	if (pb->n_numbers > WIRE_MOVE_NUMBERS_MAX)
		return fail(BATON_INVALID, "an item with %zu numbers; %d are allowed",
		            pb->n_numbers, WIRE_MOVE_NUMBERS_MAX);
	ret->kind = (enum wire_item_kind)pb->kind;
	ret->id = pb->id;
	ret->generation = pb->generation;
	ret->capabilities = pb->capabilities;
	ret->since = pb->since;
	ret->until = pb->until;
	ret->numbers = pb->numbers;
	ret->numbers_count = pb->n_numbers;
	return texts_in(pb, ret);
}

enum baton_err convert_move_in(const Baton__Wire__Move *pb, struct arena *arena,
                               struct wire_move *ret)
{
	if (pb->step < WIRE_MOVE_ASK || pb->step > WIRE_MOVE_REFUSED)
		return fail(BATON_INVALID, "the unknown step %u of an upgrade", (unsigned)pb->step);
	if (pb->n_items > WIRE_MOVE_ITEMS_MAX)
		return fail(BATON_INVALID, "a portion of %zu items; %d are allowed", pb->n_items,
		            WIRE_MOVE_ITEMS_MAX);
	struct wire_item *items = arena_take(arena, pb->n_items + 1, sizeof *items);
	if (!items)
		return fail_memory(pb->n_items * sizeof *items, "a portion");
	enum baton_err e = pack_text("detail", pb->detail, WIRE_DETAIL_MAX, &ret->detail);
	for (size_t i = 0; i < pb->n_items && e == BATON_OK; i++)
		e = item_in(pb->items[i], &items[i]);
	ret->step = (enum wire_move_step)pb->step;
	ret->number = pb->number;
	ret->items = items;
	ret->items_count = pb->n_items;
	return e;
}
