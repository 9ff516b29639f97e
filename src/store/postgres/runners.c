/* Runners and schedules: as they are read, and written back. */
#include <string.h>

#include "store/memory/schedule.h"
#include "store/postgres/write.h"

static void name_copy(const PGresult *r, int row, int column, char *text, size_t room)
{
	struct baton_str s = cell_str(r, row, column);
	size_t len = s.len < room ? s.len : room - 1;
	memcpy(text, s.ptr, len);
	text[len] = '\0';
}

enum baton_err desk_runners(struct desk *d, const PGresult *r)
{
	struct tx tx;
	bool memory = true;
	desk_load_begin(d, &tx);
	for (int i = 0; i < PQntuples(r) && memory; i++) {
		struct runner *n =
			(struct runner *)memory_tx_add(&tx, &d->m->runners, sizeof *n, 0);
		memory = n != NULL;
		if (!memory)
			break;
		n->put.number = (uint64_t)cell_int(r, i, 0);
		n->row.kept = n->put.number;
		name_copy(r, i, 1, n->put.name, sizeof n->put.name);
		n->put.slot = (uint32_t)cell_int(r, i, 2);
		name_copy(r, i, 3, n->put.endpoint, sizeof n->put.endpoint);
		name_copy(r, i, 4, n->put.labels, sizeof n->put.labels);
		baton_owner_parse(cell_str(r, i, 5), &n->put.owner);
		n->put.weight = (uint32_t)cell_int(r, i, 6);
		n->put.ttl.ns = cell_int(r, i, 7);
		n->put.since.ms = cell_int(r, i, 8);
		n->put.beat = (uint64_t)cell_int(r, i, 9);
		name_copy(r, i, 10, n->put.host, sizeof n->put.host);
		name_copy(r, i, 11, n->put.queues, sizeof n->put.queues);
		name_copy(r, i, 12, n->put.life, sizeof n->put.life);
		n->put.guardian = (int32_t)cell_int(r, i, 13);
		n->is.wish = (enum baton_runner_wish)cell_int(r, i, 14);
		name_copy(r, i, 15, n->is.state, sizeof n->is.state);
	}
	return desk_load_done(d, &tx, memory);
}

enum baton_err desk_schedules(struct desk *d, const PGresult *r)
{
	struct tx tx;
	bool memory = true;
	desk_load_begin(d, &tx);
	for (int i = 0; i < PQntuples(r) && memory; i++) {
		const struct baton_schedule s = {
			.name = cell_str(r, i, 0),
			.cron = cell_str(r, i, 1),
			.zone = cell_str(r, i, 2),
			.missed = (enum baton_missed)cell_int(r, i, 3),
			.queue = cell_str(r, i, 4),
			.lane = cell_str(r, i, 5),
			.priority = (uint32_t)cell_int(r, i, 6),
			.payload = cell_str(r, i, 7),
			.last = {cell_int(r, i, 8)},
			.next = {cell_int(r, i, 9)},
		};
		struct schedule *row = memory_schedule_add(&tx, &s);
		memory = row != NULL;
		if (row)
			row->row.kept = 1;
	}
	return desk_load_done(d, &tx, memory);
}

void write_schedules(struct writer *w)
{
	for (struct row *row = w->d->m->schedules.oldest; row; row = row->newer) {
		const struct schedule *s = (struct schedule *)row;
		struct args a;
		if (!row->noted)
			continue;
		writer_args(w, &a, 10);
		arg_text(&a, 0, s->put.name);
		arg_text(&a, 1, s->put.cron);
		arg_text(&a, 2, s->put.zone);
		arg_int(&a, 3, s->put.missed);
		arg_text(&a, 4, s->put.queue);
		arg_text(&a, 5, s->put.lane);
		arg_int(&a, 6, s->put.priority);
		arg_text(&a, 7, s->put.payload);
		arg_int(&a, 8, s->is.last.ms);
		arg_int(&a, 9, s->is.next.ms);
		writer_send(w, SQL_SCHEDULE_SET, &a);
	}
}

void write_runners(struct writer *w)
{
	struct args a;
	for (struct row *row = w->d->m->runners.oldest; row; row = row->newer) {
		const struct runner_row *r = &((struct runner *)row)->put;
		char owner[BATON_OWNER_TEXT];
		if (!row->noted || row->kept > 0)
			continue;
		writer_args(w, &a, 16);
		arg_int(&a, 0, (int64_t)r->number);
		arg_text(&a, 1, baton_str_z(r->name));
		arg_int(&a, 2, r->slot);
		arg_text(&a, 3, baton_str_z(r->endpoint));
		arg_text(&a, 4, baton_str_z(r->labels));
		arg_text(&a, 5, baton_str_z(baton_owner_print(&r->owner, owner)));
		arg_int(&a, 6, r->weight);
		arg_int(&a, 7, r->ttl.ns);
		arg_int(&a, 8, r->since.ms);
		arg_int(&a, 9, 1);
		arg_text(&a, 10, baton_str_z(r->host));
		arg_text(&a, 11, baton_str_z(r->queues));
		arg_text(&a, 12, baton_str_z(r->life));
		arg_int(&a, 13, r->guardian);
		arg_int(&a, 14, ((struct runner *)row)->is.wish);
		arg_text(&a, 15, baton_str_z(((struct runner *)row)->is.state));
		writer_send(w, SQL_RUNNER_ADD, &a);
	}
	if (w->d->m->runner == w->d->last_runner)
		return;
	writer_args(w, &a, 1);
	arg_int(&a, 0, (int64_t)w->d->m->runner);
	writer_send(w, SQL_RUNNER_LAST, &a);
}

void write_schedules_gone(struct writer *w)
{
	struct args a;
	const struct strs *names = &w->d->gone_schedules;
	if (names->count == 0)
		return;
	writer_args(w, &a, 1);
	arg_array(&a, 0, ARG_TEXT);
	for (size_t i = 0; i < names->count; i++)
		add_str(&a, 0, names->list[i]);
	writer_send(w, SQL_SCHEDULE_DROP, &a);
}
