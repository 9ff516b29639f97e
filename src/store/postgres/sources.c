/* Source keys, and the answers that claims got: as they are read, and written back. */
#include <string.h>

#include "base/digest.h"
#include "store/postgres/write.h"

static void digest_read(const PGresult *r, int row, int column, uint8_t digest[DIGEST_SIZE])
{
	struct baton_str s = cell_str(r, row, column);
	memset(digest, 0, DIGEST_SIZE);
	memcpy(digest, s.ptr, s.len < DIGEST_SIZE ? s.len : DIGEST_SIZE);
}

enum baton_err desk_sources(struct desk *d, const PGresult *r)
{
	struct tx tx;
	bool memory = true;
	desk_load_begin(d, &tx);
	for (int i = 0; i < PQntuples(r) && memory; i++) {
		uint8_t key[DIGEST_SIZE];
		digest_read(r, i, 0, key);
		struct source *s =
			(struct source *)memory_tx_add(&tx, &d->m->sources, sizeof *s,
		                                       memory_hash(d->m, key, sizeof key));
		memory = s != NULL;
		if (!memory)
			break;
		memcpy(s->key, key, sizeof key);
		digest_read(r, i, 1, s->is.content);
		s->is.id = (uint64_t)cell_int(r, i, 2);
		s->is.until.ms = cell_int(r, i, 3);
		s->row.kept = 1;
	}
	return desk_load_done(d, &tx, memory);
}

enum baton_err desk_answers(struct desk *d, const PGresult *r)
{
	struct tx tx;
	bool memory = true;
	desk_load_begin(d, &tx);
	for (int i = 0; i < PQntuples(r) && memory; i++) {
		struct claim_name name = {(uint64_t)cell_int(r, i, 0), (uint64_t)cell_int(r, i, 1)};
		struct answer *a =
			(struct answer *)memory_tx_add(&tx, &d->m->answers, sizeof *a,
		                                       memory_hash(d->m, &name, sizeof name));
		memory = a != NULL;
		if (!memory)
			break;
		a->name = name;
		cell_id(r, i, 2, &a->token);
		a->state = (enum baton_batch_state)cell_int(r, i, 3);
		a->until.ms = cell_int(r, i, 4);
		a->row.kept = 1;
	}
	return desk_load_done(d, &tx, memory);
}

void write_sources(struct writer *w)
{
	static const enum arg_type types[] = {ARG_BYTES, ARG_BYTES, ARG_INT8, ARG_INT8};
	struct args a;
	writer_args(w, &a, 4);
	writer_arrays(&a, types);
	for (struct row *row = w->d->m->sources.oldest; row; row = row->newer) {
		const struct source *s = (struct source *)row;
		if (!row->noted)
			continue;
		add_str(&a, 0, (struct baton_str){(const char *)s->key, DIGEST_SIZE});
		add_str(&a, 1, (struct baton_str){(const char *)s->is.content, DIGEST_SIZE});
		add_int(&a, 2, (int64_t)s->is.id);
		add_int(&a, 3, s->is.until.ms);
	}
	if (a.list[0].count > 0)
		writer_send(w, SQL_SOURCE_SET, &a);
	args_done(&a);
}
