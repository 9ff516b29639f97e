/* Leases: as they are read, and written back. */
#include <string.h>

#include "base/fail.h"
#include "store/memory/lease.h"
#include "store/postgres/write.h"

static bool lease_read(const PGresult *r, int row, int at, struct lease *l)
{
	struct baton_str owner = cell_str(r, row, at + 2);
	l->row.kept = 1 + (uint64_t)cell_int(r, row, at + 5);
	l->is.row.held = cell_bool(r, row, at + 1);
	cell_id(r, row, at + 3, &l->is.row.token);
	cell_id(r, row, at + 4, &l->is.row.nonce);
	l->is.row.fence = (uint64_t)cell_int(r, row, at + 5);
	l->is.counter = (uint64_t)cell_int(r, row, at + 6);
	l->is.row.claimed_at.ms = cell_int(r, row, at + 7);
	l->is.row.expires_at.ms = cell_int(r, row, at + 8);
	l->is.runner = (uint64_t)cell_int(r, row, at + 9);
	return owner.len == 0 || baton_owner_parse(owner, &l->is.row.owner) == BATON_OK;
}

static bool lease_note(struct desk *d, struct lease *l, bool first)
{
	if (!desk_room(d, (void **)&d->leases, d->lease_count, &d->lease_cap, sizeof *d->leases))
		return false;
	struct read_lease *read = &d->leases[d->lease_count++];
	read->row = l;
	memcpy(&read->was, &l->is.row, sizeof read->was);
	read->counter = l->is.counter;
	read->runner = l->is.runner;
	read->first = first;
	return true;
}

enum baton_err desk_leases_at(struct desk *d, const PGresult *r, int at)
{
	struct tx tx;
	bool memory = true, sound = true;
	desk_load_begin(d, &tx);
	for (int i = 0; i < PQntuples(r) && memory && sound; i++) {
		if (cell_is_null(r, i, at))
			continue;
		struct lease *l = memory_lease_make(&tx, cell_str(r, i, at));
		memory = l != NULL;
		sound = memory && lease_read(r, i, at, l);
		bool first =
			PQnfields(r) > at + 10 && cell_int(r, i, at + 10) == cell_int(r, i, at + 6);
		memory = memory && lease_note(d, l, first);
	}
	enum baton_err e = desk_load_done(d, &tx, memory);
	if (e == BATON_OK && !sound)
		e = fail(BATON_STORAGE,
		         "the store is damaged: it has an owner that cannot be read");
	return e;
}

enum baton_err desk_leases(struct desk *d, const PGresult *r)
{
	return desk_leases_at(d, r, 0);
}

enum baton_err desk_held_off(struct desk *d, const PGresult *r)
{
	for (int i = 0; i < PQntuples(r); i++) {
		struct lease *l = memory_lease_find(d->m, cell_str(r, i, 0));
		if (l)
			l->held_off = true;
	}
	return BATON_OK;
}

static void add_id(struct args *a, int at, const struct baton_id *id)
{
	add_str(a, at, (struct baton_str){(const char *)id->bytes, sizeof id->bytes});
}

/* What nobody has held, such as a shard, has no owner. */
static void lease_add(struct args *a, const struct lease *l)
{
	static const struct baton_id none;
	const struct lease_row *row = &l->is.row;
	char owner[BATON_OWNER_TEXT] = "";
	if (!baton_id_equal(&row->owner.incarnation, &none))
		baton_owner_print(&row->owner, owner);
	add_str(a, 0, l->subject);
	add_bool(a, 1, row->held);
	add_str(a, 2, baton_str_z(owner));
	add_id(a, 3, &row->token);
	add_id(a, 4, &row->nonce);
	add_int(a, 5, (int64_t)row->fence);
	add_int(a, 6, (int64_t)l->is.counter);
	add_int(a, 7, row->claimed_at.ms);
	add_int(a, 8, row->expires_at.ms);
	if (l->is.runner > 0)
		add_int(a, 9, (int64_t)l->is.runner);
	else
		add_null(a, 9);
}

void write_guard(struct writer *w)
{
	struct args a;
	writer_args(w, &a, 1);
	arg_array(&a, 0, ARG_TEXT);
	for (struct row *row = w->d->m->leases.oldest; row; row = row->newer) {
		const struct lease *l = (struct lease *)row;
		if (row->noted && row->kept > 0 && row->kept != 1 + l->is.row.fence)
			add_str(&a, 0, l->subject);
	}
	if (a.list[0].count > 0)
		writer_send(w, SQL_GUARD, &a);
	args_done(&a);
}

/* Of one subject. Whoever else holds it has another token. */
static bool is_same_hold(const struct lease_row *a, const struct lease_row *b)
{
	return a->held == b->held && a->fence == b->fence &&
	       baton_id_equal(&a->owner.incarnation, &b->owner.incarnation) &&
	       baton_id_equal(&a->token, &b->token) && baton_id_equal(&a->nonce, &b->nonce) &&
	       a->claimed_at.ms == b->claimed_at.ms && a->expires_at.ms == b->expires_at.ms;
}

/* Whether nothing but the count of its claims has changed. */
static const struct read_lease *is_only_counted(const struct desk *d, const struct lease *l)
{
	for (size_t i = 0; i < d->lease_count; i++) {
		const struct read_lease *read = &d->leases[i];
		if (read->row == l)
			return is_same_hold(&read->was, &l->is.row) &&
			                       read->runner == l->is.runner &&
			                       l->is.counter > read->counter
			               ? read
			               : NULL;
	}
	return NULL;
}

static void counter_set_one(struct writer *w, const struct read_lease *read)
{
	struct args a;
	writer_args(w, &a, 4);
	arg_text(&a, 0, read->row->subject);
	arg_int(&a, 1, (int64_t)read->row->is.row.fence);
	arg_int(&a, 2, (int64_t)read->counter);
	arg_int(&a, 3, (int64_t)read->row->is.counter);
	writer_send(w, SQL_COUNTER_SET_ONE, &a);
}

void write_counters(struct writer *w)
{
	static const enum arg_type types[] = {ARG_TEXT, ARG_INT8, ARG_INT8, ARG_INT8};
	struct args a;
	const struct read_lease *only = NULL;
	writer_args(w, &a, 4);
	writer_arrays(&a, types);
	for (struct row *row = w->d->m->leases.oldest; row; row = row->newer) {
		const struct lease *l = (struct lease *)row;
		const struct read_lease *read = row->noted ? is_only_counted(w->d, l) : NULL;
		if (!read)
			continue;
		add_str(&a, 0, l->subject);
		add_int(&a, 1, (int64_t)l->is.row.fence);
		add_int(&a, 2, read->first ? 0 : (int64_t)read->counter);
		add_int(&a, 3, (int64_t)l->is.counter);
		only = read;
	}
	if (only && !only->first && a.list[0].count == 1)
		counter_set_one(w, only);
	else if (a.list[0].count > 0)
		writer_send(w, SQL_COUNTER_SET, &a);
	args_done(&a);
}

void write_leases(struct writer *w)
{
	static const enum arg_type types[] = {ARG_TEXT, ARG_BOOL, ARG_TEXT, ARG_BYTES, ARG_BYTES,
	                                      ARG_INT8, ARG_INT8, ARG_INT8, ARG_INT8,  ARG_INT8};
	struct args a;
	writer_args(w, &a, 10);
	writer_arrays(&a, types);
	for (struct row *row = w->d->m->leases.oldest; row; row = row->newer) {
		if (row->noted && !is_only_counted(w->d, (struct lease *)row))
			lease_add(&a, (struct lease *)row);
	}
	if (a.list[0].count > 0)
		writer_send(w, SQL_LEASE_SET, &a);
	args_done(&a);
}
