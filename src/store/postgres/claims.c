/* Claims in rows of their own: as they are read, and written back. */
#include <inttypes.h>

#include "base/fail.h"
#include "queue/line.h"
#include "store/memory/lane.h"
#include "store/memory/take.h"
#include "store/postgres/bulk.h"
#include "store/postgres/write.h"

#define BATCH_CLAIM 27 /* where the claim of a batch begins, if it comes with it */
#define AROUND_DEAD 39

static struct batch *batch_by_seq(const struct desk *d, uint64_t seq)
{
	struct batch *b = desk_batch(d, seq);
	if (b && b->is.seq == seq)
		return b;
	for (struct row *row = d->m->batches.oldest; row; row = row->newer) {
		b = (struct batch *)row;
		if (b->is.seq == seq)
			return b;
	}
	return NULL;
}

bool desk_has_claim(const struct desk *d, const struct claim_name *name)
{
	struct row *row = memory_row_first(&d->m->claims, memory_hash(d->m, name, sizeof *name));
	for (; row; row = memory_row_next(row)) {
		const struct claim *c = (struct claim *)row;
		if (c->name.head == name->head && c->name.fence == name->fence)
			return true;
	}
	return false;
}

/* A claim in a row of an answer, from that column on. */
struct claim_cells {
	const PGresult *r;
	int row, at;
};

static void claim_read(const struct claim_cells *from, struct claim *c)
{
	const PGresult *r = from->r;
	const int row = from->row, at = from->at;
	cell_id(r, row, at + 2, &c->token);
	c->granter = (uint64_t)cell_int(r, row, at + 6);
	c->claimed_at.ms = cell_int(r, row, at + 7);
	c->is.expires.ms = cell_int(r, row, at + 8);
	c->is.offered = cell_bool(r, row, at + 9);
	c->row.kept = CLAIM_KEPT | (c->is.offered ? CLAIM_OFFERED : 0);
}

/* The first of its batches that is here, or NULL. */
static struct batch *claim_first(struct desk *d, const struct claim_cells *from)
{
	struct batch *b = NULL;
	for (size_t i = 0; i < cell_count(from->r, from->row, from->at + 10) && !b; i++)
		b = batch_by_seq(d, (uint64_t)cell_element(from->r, from->row, from->at + 10, i));
	return b;
}

static void claim_attach(struct desk *d, const struct claim_cells *from, struct claim *c)
{
	size_t count = cell_count(from->r, from->row, from->at + 10);
	for (size_t i = 0; i < count; i++) {
		struct batch *b = batch_by_seq(d, (uint64_t)cell_element(from->r, from->row,
		                                                         from->at + 10, i));
		if (!b)
			continue;
		b->is.claim = c;
		c->is.count++;
	}
}

static enum baton_err claim_load(struct desk *d, struct tx *tx, const struct claim_cells *from)
{
	struct claim_name name = {(uint64_t)cell_int(from->r, from->row, from->at),
	                          (uint64_t)cell_int(from->r, from->row, from->at + 1)};
	struct baton_owner owner;
	if (desk_has_claim(d, &name))
		return BATON_OK;
	if (baton_owner_parse(cell_str(from->r, from->row, from->at + 3), &owner) != BATON_OK)
		return fail(BATON_STORAGE, "the store is damaged: a claim has no owner");
	const struct batch *first = claim_first(d, from);
	struct claim *c = first ? memory_claim_add(tx, &name, first) : NULL;
	if (!c)
		return first ? BATON_NO_MEMORY : BATON_OK; /* none of its batches is here */
	c->owner = owner;
	claim_read(from, c);
	claim_attach(d, from, c);
	return BATON_OK;
}

static enum baton_err claims_load(struct desk *d, const PGresult *r, int at)
{
	struct tx tx;
	enum baton_err e = BATON_OK;
	desk_load_begin(d, &tx);
	for (int i = 0; i < PQntuples(r) && e == BATON_OK; i++) {
		if (!cell_is_null(r, i, at))
			e = claim_load(d, &tx, &(struct claim_cells){r, i, at});
	}
	return desk_load_end(d, &tx, e);
}

enum baton_err desk_claims(struct desk *d, const PGresult *r)
{
	return claims_load(d, r, 0);
}

enum baton_err desk_held(struct desk *d, const PGresult *r)
{
	return claims_load(d, r, BATCH_CLAIM);
}

enum baton_err desk_around(struct desk *d, const PGresult *r)
{
	if (PQntuples(r) > 0)
		d->dead += cell_int(r, 0, AROUND_DEAD);
	return desk_held(d, r);
}

/* The batches of the claim as an array is written. */
static void add_seqs(struct args *a, int at, const struct claim *c, struct buf *text)
{
	const char *before = "{";
	buf_reset(text);
	for (const struct batch *b = c->lane->first; b; b = b->next) {
		if (b->is.claim != c)
			continue;
		buf_printf(text, "%s%" PRIu64, before, b->is.seq);
		before = ",";
	}
	if (buf_printf(text, "}") == BATON_OK)
		add_str(a, at, buf_str(text));
	else
		a->list[at].bytes.err = text->err;
}

static void claim_add(struct args *a, const struct claim *c, struct buf *text)
{
	char owner[BATON_OWNER_TEXT];
	add_int(a, 0, (int64_t)c->name.head);
	add_int(a, 1, (int64_t)c->name.fence);
	add_str(a, 2, (struct baton_str){(const char *)c->token.bytes, sizeof c->token.bytes});
	add_str(a, 3, baton_str_z(baton_owner_print(&c->owner, owner)));
	add_str(a, 4, c->lane->queue->name);
	add_optional(a, 5, c->lane->name);
	add_int(a, 6, (int64_t)c->granter);
	add_int(a, 7, c->claimed_at.ms);
	add_int(a, 8, c->is.expires.ms);
	add_bool(a, 9, c->is.offered);
	add_seqs(a, 10, c, text);
	char guest[LINE_KEYS_MAX];
	add_optional(a, 11, memory_claim_guest(c, guest));
}

static void claim_set(struct args *a, const struct claim *c, struct buf *text)
{
	add_int(a, 0, (int64_t)c->name.head);
	add_int(a, 1, (int64_t)c->name.fence);
	add_int(a, 2, c->is.expires.ms);
	add_bool(a, 3, c->is.offered);
	add_seqs(a, 4, c, text);
}

static bool stands_in_bulk(const struct claim *c)
{
	return c->lane->first && (c->lane->first->row.kept & IN_BULK);
}

enum baton_err write_claims(struct writer *w)
{
	static const enum arg_type new_types[] = {ARG_INT8, ARG_INT8, ARG_BYTES, ARG_TEXT,
	                                          ARG_TEXT, ARG_TEXT, ARG_INT8,  ARG_INT8,
	                                          ARG_INT8, ARG_BOOL, ARG_TEXT,  ARG_TEXT};
	static const enum arg_type old_types[] = {ARG_INT8, ARG_INT8, ARG_INT8, ARG_BOOL, ARG_TEXT};
	struct args new, old;
	struct buf text;
	buf_init(&text, w->c->alloc, (size_t)1 << 24);
	writer_args(w, &new, 12);
	writer_args(w, &old, 5);
	writer_arrays(&new, new_types);
	writer_arrays(&old, old_types);
	for (struct row *row = w->d->m->claims.oldest; row; row = row->newer) {
		const struct claim *claim = (struct claim *)row;
		if (!row->noted)
			continue;
		if (!claim->is.offered)
			desk_until(w->d, claim->lane->queue, claim->is.expires);
		if (stands_in_bulk(claim))
			continue;
		if (row->kept == 0)
			claim_add(&new, claim, &text);
		else
			claim_set(&old, claim, &text);
	}
	enum baton_err e = args_check(&new);
	if (e == BATON_OK)
		e = args_check(&old);
	if (e == BATON_OK && old.list[0].count > 0)
		writer_send(w, SQL_CLAIM_SET, &old);
	if (e == BATON_OK && new.list[0].count > 0)
		writer_send(w, SQL_CLAIM_ADD, &new);
	args_done(&new);
	args_done(&old);
	buf_done(&text);
	return e;
}
