/* The keys of jobs that stand together in one row: who has one, and how it leaves the row. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "store/sqlite/bulk_rows.h"
#include "store/sqlite/lanes.h"
#include "store/sqlite/lone.h"

static_assert(ROSTER_JOBS == BULK_MAX, "a row of the roster has the jobs of one row");

#define FEW 16 /* keys that have a line, or are had by one alone: these are looked at at once */

static bool is_young(const struct books *b, int64_t first)
{
	for (size_t i = 0; i < b->young_count; i++) {
		if (b->young[i] == first)
			return true;
	}
	return false;
}

/* The hashes of the row's keys. *ret_count 0: the row is gone. */
static enum baton_err hashes_load(struct db *db, struct arena *a, int64_t first,
                                  int64_t hashes[BULK_MAX], size_t *ret_count)
{
	const struct baton_str *keys;
	struct bulk_row row;
	bool found = false;
	*ret_count = 0;
	enum baton_err e = bulk_find(db, first, &row, &found);
	if (e != BATON_OK || !found || row.first != first || !row.keyed)
		return e;
	e = bulk_load_keys(db, a, first, &keys, ret_count);
	if (e == BATON_OK && *ret_count != row.count)
		e = bulk_damaged(db, first);
	for (size_t i = 0; e == BATON_OK && i < *ret_count; i++)
		hashes[i] = bulk_hash(&row, keys, i);
	return e;
}

/* Others may have written since. */
static enum baton_err sync(struct sqlite_store *s)
{
	struct books *b = &s->books;
	enum baton_err e = BATON_OK;
	if (b->roster.synced)
		return BATON_OK;
	for (size_t i = 0; i < ROSTER_ROWS; i++) {
		if (b->roster.firsts[i] > 0 && !is_young(b, b->roster.firsts[i]))
			roster_drop(&b->roster, b->roster.firsts[i]);
	}
	for (size_t i = 0; e == BATON_OK && i < b->young_count;) {
		const int64_t first = b->young[i];
		int64_t hashes[BULK_MAX];
		size_t count = 0;
		bool known = roster_has(&b->roster, first);
		if (!known)
			e = hashes_load(&s->db, &s->scratch, first, hashes, &count);
		if (e == BATON_OK && count > 0)
			roster_add(&b->roster, first, hashes, count);
		if (known || count > 0)
			i++;
		else if (e == BATON_OK)
			books_grown(b, first);
	}
	b->roster.synced = e == BATON_OK;
	return e;
}

/* A key, and the job that has it. */
struct entry {
	int64_t hash, seq;
};

static int by_hash(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	return (x->hash > y->hash) - (x->hash < y->hash);
}

static enum baton_err entries_add(struct sqlite_store *s, int64_t first, struct entry *entries,
                                  size_t *count)
{
	struct bulk_row row;
	int64_t hashes[BULK_MAX];
	size_t n;
	uint64_t live = 0;
	bool found;
	enum baton_err e = hashes_load(&s->db, &s->scratch, first, hashes, &n);
	if (e != BATON_OK || n == 0)
		return e;
	e = bulk_find(&s->db, first, &row, &found);
	if (e == BATON_OK && found)
		e = bulk_live(&s->db, &row, &live);
	for (size_t i = 0; e == BATON_OK && i < n; i++) {
		if (hashes[i] != 0 && live >> i & 1)
			entries[(*count)++] = (struct entry){hashes[i], first + (int64_t)i};
	}
	return e;
}

/* The keys of the older half go to `lone`, in its order, so that neighbours share pages. Nobody
 * else that is live has the hash of one that is. */
static enum baton_err grow_old(struct sqlite_store *s)
{
	size_t count = 0, half = s->books.young_count / 2;
	struct entry *entries = arena_take(&s->scratch, half * BULK_MAX, sizeof *entries);
	if (!entries)
		return fail_memory(half * BULK_MAX * sizeof *entries, "keys");
	enum baton_err e = BATON_OK;
	for (size_t i = 0; e == BATON_OK && i < half; i++)
		e = entries_add(s, s->books.young[i], entries, &count);
	qsort(entries, count, sizeof *entries, by_hash);
	for (size_t i = 0; e == BATON_OK && i < count; i++)
		e = RUN(&s->db, SQL_LONE_SET, entries[i].hash, entries[i].seq);
	for (size_t i = 0; e == BATON_OK && i < half; i++)
		books_grown(&s->books, s->books.young[0]);
	s->books.changed = true;
	return e;
}

enum baton_err bulk_keys_add(struct sqlite_store *s, const struct bulk_put *p, uint64_t which)
{
	struct books *b = &s->books;
	int64_t hashes[BULK_MAX];
	enum baton_err e = bulk_settle(s);
	if (e == BATON_OK)
		e = sync(s);
	if (e == BATON_OK && b->young_count == ROSTER_ROWS)
		e = grow_old(s);
	if (e != BATON_OK)
		return e;
	for (size_t i = 0; i < p->row.count; i++)
		hashes[i] = which >> i & 1 ? p->hashes[i] : 0;
	roster_add(&b->roster, p->row.first, hashes, p->row.count);
	b->young[b->young_count++] = p->row.first;
	b->changed = true;
	return BATON_OK;
}

/* One that has left the row has its key on. */
enum baton_err bulk_keys_end(struct sqlite_store *s, const struct bulk_row *row)
{
	int64_t hashes[BULK_MAX];
	size_t count = 0;
	if (is_young(&s->books, row->first)) {
		books_grown(&s->books, row->first);
		return BATON_OK;
	}
	enum baton_err e = hashes_load(&s->db, &s->scratch, row->first, hashes, &count);
	for (size_t i = 0; e == BATON_OK && i < count; i++) {
		if (hashes[i] != 0)
			e = RUN(&s->db, SQL_LONE_END, hashes[i], row->first + (int64_t)i);
	}
	return e;
}

/* Divides the head that stands for the job. *ret_done false: there is none. */
static enum baton_err leave_head(struct sqlite_store *s, const struct bulk_row *row, int64_t seq,
                                 bool *ret_done)
{
	struct bulk_head head, part;
	*ret_done = false;
	enum baton_err e = bulk_head_find(&s->db, row, seq, &head);
	if (e != BATON_OK || head.seq == 0 || head.seq > seq)
		return e;
	*ret_done = true;
	e = bulk_head_drop(&s->db, &head);
	part = head;
	part.last = seq - 1;
	if (e == BATON_OK && part.last >= part.seq)
		e = bulk_head_write(s, &part);
	part = head;
	part.seq = seq + 1;
	return e == BATON_OK && part.seq <= part.last ? bulk_head_write(s, &part) : e;
}

/* Takes the claim of the job out of its chunk. *ret_done false: there is none. */
static enum baton_err leave_chunk(struct sqlite_store *s, int64_t seq, struct chunk *c,
                                  struct bulk_claim *ret, bool *ret_done)
{
	bool found;
	size_t at = 0;
	*ret_done = false;
	enum baton_err e = chunk_load(&s->db, seq, c, &found);
	if (e != BATON_OK || !found)
		return e;
	while (at < c->count && c->claims[at].seq != (uint64_t)seq)
		at++;
	if (at == c->count)
		return BATON_OK;
	*ret_done = true;
	*ret = c->claims[at];
	c->claims[at] = c->claims[--c->count];
	return c->count > 0 ? chunk_shrink(&s->db, c) : RUN(&s->db, SQL_CHUNK_DROP, c->first);
}

/* A job that leaves its row. */
struct leaving {
	struct bulk_row row;
	struct batch_row b;
	const struct baton_str *job;
	struct queue_row *q;
};

static enum baton_err leaving_load(struct sqlite_store *s, int64_t seq, struct leaving *ret)
{
	const struct baton_str *jobs, *keys;
	enum baton_err e = bulk_load(&s->db, &s->scratch, seq, &ret->row, &jobs, &keys);
	if (e != BATON_OK)
		return e;
	const size_t index = (size_t)(seq - ret->row.first);
	ret->job = &jobs[index];
	e = books_queue_by_id(&s->books, &s->db, ret->row.queue, &ret->q);
	if (e == BATON_OK)
		bulk_batch_placed(&ret->row, keys, index, ret->q, &ret->b);
	return e;
}

enum baton_err bulk_leave(struct sqlite_store *s, int64_t seq, bool *ret_left)
{
	struct leaving l;
	struct chunk c;
	struct bulk_claim claim;
	bool found = false, ready = false, claimed = false;
	*ret_left = false;
	enum baton_err e = bulk_settle(s);
	if (e == BATON_OK)
		e = bulk_find(&s->db, seq, &l.row, &found);
	if (e != BATON_OK || !found)
		return e;
	e = leave_head(s, &l.row, seq, &ready);
	if (e == BATON_OK && !ready)
		e = leave_chunk(s, seq, &c, &claim, &claimed);
	if (e != BATON_OK || (!ready && !claimed))
		return e;
	*ret_left = true;
	s->melted++;
	roster_strike(&s->books.roster, seq);
	e = leaving_load(s, seq, &l);
	if (e == BATON_OK && ready)
		e = bulk_melt_ready(s, l.q, &l.b, l.job);
	else if (e == BATON_OK)
		e = bulk_melt_claimed(s, &c, &claim, &l.b, l.job);
	return e == BATON_OK ? bulk_end_if_done(s, l.row.first) : e;
}

/* Whether that job is ready or claimed. If not, nobody has to look for it any more. */
static enum baton_err is_live(struct sqlite_store *s, int64_t seq, bool *ret)
{
	struct bulk_row row = {.first = seq};
	uint64_t live = 0;
	bool found = false;
	enum baton_err e = bulk_settle(s);
	if (e == BATON_OK)
		e = bulk_find(&s->db, seq, &row, &found);
	if (e == BATON_OK && found)
		e = bulk_live(&s->db, &row, &live);
	*ret = found && live >> (seq - row.first) & 1;
	if (e == BATON_OK && !*ret)
		roster_strike(&s->books.roster, seq);
	return e;
}

static bool is_gathered(const struct bulk_put *p, int64_t hash)
{
	for (size_t i = 0; p->q && i < p->row.count; i++) {
		if (p->hashes[i] == hash)
			return true;
	}
	return false;
}

enum baton_err bulk_key_leave(struct sqlite_store *s, int64_t hash)
{
	bool left;
	enum baton_err e = is_gathered(&s->bulks.put, hash) ? bulk_flush_put(s) : BATON_OK;
	if (e == BATON_OK)
		e = sync(s);
	const int64_t seq = roster_find(&s->books.roster, hash);
	return e == BATON_OK && seq > 0 ? bulk_leave(s, seq, &left) : e;
}

enum baton_err bulk_melt_keys(struct sqlite_store *s, const struct queue_row *q)
{
	int64_t first = 0;
	enum baton_err e = bulk_flush(s);
	do {
		const int64_t after = first;
		if (e == BATON_OK)
			e = FIND(&s->db, SQL_BULK_KEYED, &first, after, q->id);
		if (e == BATON_OK && first > 0)
			e = bulk_melt(s, first);
	} while (e == BATON_OK && first > 0);
	return e;
}

/* The keys of a queue that are in use, as far as the file tells: those that have lines, and the
 * hashes of those that one job alone has. With more than a few, the file is asked for each. */
struct used {
	struct baton_str lines[FEW];
	int64_t hashes[FEW];
	size_t line_count, hash_count;
	bool more_lines, more_hashes;
};

static enum baton_err used_load(struct sqlite_store *s, int64_t queue, struct used *u)
{
	bool memory = true;
	*u = (struct used){.line_count = 0};
	struct query lines = query_begin(&s->db, SQL_LANE_FEW);
	query_int(&lines, queue);
	query_int(&lines, FEW + 1);
	while (memory && !u->more_lines && query_row(&lines)) {
		u->more_lines = u->line_count == FEW;
		memory = u->more_lines ||
		         arena_copy(&s->scratch, column_str(&lines, 0), &u->lines[u->line_count++]);
	}
	enum baton_err e = query_end(&lines);
	if (e == BATON_OK && !memory)
		return fail(BATON_NO_MEMORY, "no memory for the names of keys");
	if (e != BATON_OK)
		return e;
	struct query hashes = query_begin(&s->db, SQL_LONE_FEW);
	query_int(&hashes, FEW + 1);
	while (!u->more_hashes && query_row(&hashes)) {
		u->more_hashes = u->hash_count == FEW;
		if (!u->more_hashes)
			u->hashes[u->hash_count++] = column_int(&hashes, 0);
	}
	return query_end(&hashes);
}

static enum baton_err has_line(struct sqlite_store *s, const struct used *u, int64_t queue,
                               struct baton_str key, bool *ret)
{
	char text[LINE_NAME_MAX];
	int64_t lane = 0;
	*ret = false;
	if (u->line_count == 0)
		return BATON_OK;
	const struct baton_str line = line_of_key(key, text);
	enum baton_err e = u->more_lines ? lane_find(s, queue, line, &lane) : BATON_OK;
	*ret = lane > 0;
	for (size_t i = 0; i < u->line_count && !*ret; i++)
		*ret = baton_str_equal(u->lines[i], line);
	return e;
}

static enum baton_err has_hash(struct sqlite_store *s, const struct used *u, int64_t hash,
                               bool *ret)
{
	int64_t seq = roster_find(&s->books.roster, hash);
	enum baton_err e = BATON_OK;
	*ret = false;
	if (seq > 0)
		e = is_live(s, seq, ret);
	if (e == BATON_OK && !*ret && u->more_hashes) {
		e = FIND(&s->db, SQL_LONE_FIND, &seq, hash);
		*ret = seq > 0;
	}
	for (size_t i = 0; i < u->hash_count && !*ret; i++)
		*ret = u->hashes[i] == hash;
	return e;
}

/* Those that have the same key as another one. */
#define SLOTS 128 /* twice as many as there can be */
static uint64_t doubles(const struct bulk_put *p)
{
	uint8_t places[SLOTS] = {0}; /* of a job, and one more; 0: free */
	uint64_t found = 0;
	for (size_t i = 0; i < p->row.count; i++) {
		size_t at = (uint64_t)p->hashes[i] % SLOTS;
		if (p->hashes[i] == 0)
			continue;
		while (places[at] > 0 && p->hashes[places[at] - 1] != p->hashes[i])
			at = (at + 1) % SLOTS;
		if (places[at] > 0)
			found |= UINT64_C(1) << i | UINT64_C(1) << (places[at] - 1);
		else
			places[at] = (uint8_t)(i + 1);
	}
	return found;
}

enum baton_err bulk_keys_sort(struct sqlite_store *s, const struct bulk_put *p, uint64_t *ret)
{
	struct used used;
	enum baton_err e = sync(s);
	if (e == BATON_OK)
		e = used_load(s, p->row.queue, &used);
	if (e == BATON_OK)
		*ret &= ~doubles(p);
	for (size_t i = 0; e == BATON_OK && i < p->row.count; i++) {
		bool taken = false;
		if (p->hashes[i] == 0 || !(*ret >> i & 1))
			continue;
		e = has_hash(s, &used, p->hashes[i], &taken);
		if (e == BATON_OK && !taken)
			e = has_line(s, &used, p->row.queue, p->keys[i], &taken);
		if (taken)
			*ret &= ~(UINT64_C(1) << i);
	}
	return e;
}

/* What the check looks at. */
struct search {
	struct db *db;
	struct arena *a;
	struct roster *roster; /* of the rows that the file names */
	struct bulk_faults faults;
};

/* Whether the job is there: with a row of its own, or together with others. */
static enum baton_err is_there(struct db *db, int64_t seq, bool *ret)
{
	struct batch_row b;
	struct bulk_job job = {.found = false};
	enum baton_err e = batch_load(db, seq, &b, ret);
	if (e == BATON_OK && !*ret)
		e = bulk_look(db, seq, &b, &job);
	*ret = *ret || job.found;
	return e;
}

static enum baton_err search_key(struct search *x, const struct bulk_row *row,
                                 const struct baton_str *keys, size_t index)
{
	struct batch_row b;
	bool there = false;
	bulk_batch(row, keys, index, &b);
	if (b.lane_len == 0)
		return BATON_OK;
	const int64_t hash = lone_hash(b.queue, batch_row_line(&b));
	int64_t seqs[2] = {roster_find(x->roster, hash), 0};
	enum baton_err e = FIND(x->db, SQL_LONE_FIND, &seqs[1], hash);
	x->faults.lost += seqs[0] != b.seq && seqs[1] != b.seq;
	for (size_t i = 0; e == BATON_OK && i < 2 && !there; i++) {
		if (seqs[i] > 0 && seqs[i] != b.seq)
			e = is_there(x->db, seqs[i], &there);
	}
	x->faults.doubled += there;
	if (e != BATON_OK)
		return e;
	struct query q = query_begin(x->db, SQL_LANE_FIND);
	query_int(&q, b.queue);
	query_text(&q, batch_row_line(&b));
	x->faults.lined += query_row(&q);
	return query_end(&q);
}

static enum baton_err search_row(struct search *x, int64_t first)
{
	const struct baton_str *keys;
	struct bulk_row row;
	uint64_t live = 0;
	size_t count;
	bool found;
	enum baton_err e = bulk_find(x->db, first, &row, &found);
	if (e == BATON_OK)
		e = bulk_load_keys(x->db, x->a, first, &keys, &count);
	if (e == BATON_OK && (!found || count != row.count))
		e = bulk_damaged(x->db, first);
	if (e == BATON_OK)
		e = bulk_live(x->db, &row, &live);
	for (size_t i = 0; e == BATON_OK && i < row.count; i++) {
		if (live >> i & 1)
			e = search_key(x, &row, keys, i);
	}
	arena_reset(x->a);
	return e;
}

static enum baton_err search_young(struct search *x)
{
	int64_t young[ROSTER_ROWS];
	size_t young_count;
	enum baton_err e = books_young(x->db, young, &young_count);
	for (size_t i = 0; e == BATON_OK && i < young_count; i++) {
		int64_t hashes[BULK_MAX];
		size_t count;
		e = hashes_load(x->db, x->a, young[i], hashes, &count);
		if (e == BATON_OK && count > 0)
			roster_add(x->roster, young[i], hashes, count);
	}
	return e;
}

enum baton_err bulk_keys_check(struct db *db, struct arena *a, struct bulk_faults *ret)
{
	struct roster *roster = arena_take(a, 1, sizeof *roster);
	struct arena rows;
	struct search x = {.db = db, .a = &rows, .roster = roster};
	int64_t first = 0;
	if (!roster)
		return fail_memory(sizeof *roster, "keys");
	arena_init(&rows, a->alloc);
	enum baton_err e = search_young(&x);
	do {
		if (e == BATON_OK)
			e = FIND(db, SQL_BULK_KEYED_NEXT, &first, first);
		if (e == BATON_OK && first > 0)
			e = search_row(&x, first);
	} while (e == BATON_OK && first > 0);
	arena_done(&rows);
	*ret = x.faults;
	return e;
}
