/* Jobs with keys that stand together in rows with others. */
#include "store/postgres/keyed.h"

#include "base/fail.h"
#include "queue/line.h"
#include "store/postgres/bulk.h"

bool keyed_are_usual(const struct baton_queue_policy *policy, bool guests)
{
	return key_is_usual(policy) && !guests;
}

bool keyed_is_alone(const struct desk *d, const struct batch *b)
{
	const struct lane *lane = b->lane;
	const struct queue *q = lane->queue;
	return !d->apart && lane->first == b && lane->last == b && line_is_keyed(lane->name) &&
	       keyed_are_usual(&q->is.policy, q->is.guests);
}

bool keyed_stands_in_bulk(const struct desk *d, const struct lane *lane)
{
	const struct batch *b = lane->first;
	return b && b == lane->last && ((b->row.kept & IN_BULK) || bulk_takes(d, b));
}

/* A new batch whose key has to be looked for. */
static bool is_asked_about(const struct desk *d, const struct batch *b)
{
	return b->row.noted && b->row.kept == 0 && line_is_keyed(b->lane->name) &&
	       ((d->presumes && b->is.state == BATON_BATCH_READY) || bulk_takes(d, b));
}

static void check_one(struct conn *c, struct args *all, const struct queue *q, uint64_t number)
{
	struct args a;
	struct arg lines;
	args_init(&a, c->alloc, 3);
	arg_int(&a, 0, (int64_t)q->row.kept);
	lines = a.list[1];
	a.list[1] = all->list[2];
	all->list[2] = lines;
	arg_int(&a, 2, (int64_t)number);
	conn_send(c, SQL_ALONE_ONE, &a);
	args_done(all);
}

bool keyed_check(const struct desk *d, struct conn *c)
{
	struct args a;
	const struct queue *only = NULL;
	bool several = false;
	uint64_t number = 0;
	args_init(&a, c->alloc, 4);
	arg_array(&a, 0, ARG_INT4);
	arg_array(&a, 1, ARG_TEXT);
	arg_array(&a, 2, ARG_TEXT);
	for (struct row *row = d->m->batches.oldest; row; row = row->newer) {
		const struct batch *b = (struct batch *)row;
		const struct queue *q = b->lane->queue;
		/* The first of a row need not have a key. */
		if (row->kept == 0 && row->noted && (number == 0 || b->is.seq < number))
			number = b->is.seq;
		if (!is_asked_about(d, b))
			continue;
		add_int(&a, 0, (int64_t)q->row.kept);
		add_str(&a, 1, q->name);
		add_str(&a, 2, b->lane->name);
		several = several || (only && only != q) || q->row.kept == 0;
		only = q;
	}
	if (!only) {
		args_done(&a);
		return false;
	}
	if (!several) {
		check_one(c, &a, only, number);
		return true;
	}
	arg_int(&a, 3, (int64_t)number);
	conn_send(c, SQL_ALONE, &a);
	return true;
}

void keyed_thaw(struct conn *c, const struct strs *queues, const struct strs *lines)
{
	struct args a;
	args_init(&a, c->alloc, 2);
	arg_array(&a, 0, ARG_TEXT);
	arg_array(&a, 1, ARG_TEXT);
	for (size_t i = 0; i < lines->count; i++) {
		if (!line_is_keyed(lines->list[i]))
			continue;
		add_str(&a, 0, queues->list[i]);
		add_str(&a, 1, lines->list[i]);
	}
	if (a.list[0].count > 0)
		conn_send(c, SQL_THAW, &a);
	else
		args_done(&a);
}

bool keyed_melt(const struct desk *d, struct conn *c)
{
	struct args a;
	args_init(&a, c->alloc, 1);
	arg_array(&a, 0, ARG_TEXT);
	for (size_t i = 0; i < d->queue_count; i++) {
		const struct read_queue *read = &d->queues[i];
		const struct queue *q = read->row;
		if (keyed_are_usual(&read->policy, read->guests) &&
		    !keyed_are_usual(&q->is.policy, q->is.guests))
			add_str(&a, 0, q->name);
	}
	if (a.list[0].count == 0) {
		args_done(&a);
		return false;
	}
	conn_send(c, SQL_MELT_KEYS, &a);
	return true;
}

static uint32_t number_at(const char *bytes)
{
	const unsigned char *at = (const unsigned char *)bytes;
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

#define ARRAY_HEAD 20  /* bytes of an array before its elements: */
#define ARRAY_COUNT 12 /* how many there are is here             */
#define ARRAY_NULL UINT32_MAX

static enum baton_err keys_damaged(void)
{
	return fail(BATON_STORAGE, "the store is damaged: the keys of several batches are cut off");
}

enum baton_err keyed_read(const PGresult *r, int row, int column, struct keyed_names *ret)
{
	const struct baton_str bytes = cell_str(r, row, column);
	*ret = (struct keyed_names){.left = 0};
	if (cell_is_null(r, row, column))
		return BATON_OK;
	if (bytes.len < ARRAY_HEAD)
		return keys_damaged();
	ret->rest = (struct baton_str){bytes.ptr + ARRAY_HEAD, bytes.len - ARRAY_HEAD};
	ret->left = number_at(bytes.ptr + ARRAY_COUNT);
	return ret->left > 0 ? BATON_OK : keys_damaged();
}

enum baton_err keyed_next(struct keyed_names *names, struct baton_str *ret)
{
	struct baton_str *rest = &names->rest;
	*ret = (struct baton_str){"", 0};
	if (names->left == 0)
		return rest->ptr ? keys_damaged() : BATON_OK; /* there are more batches than keys */
	uint32_t len = rest->len >= sizeof len ? number_at(rest->ptr) : 0;
	if (len == ARRAY_NULL)
		len = 0;
	else if (len == 0 || len > rest->len - sizeof len || len > LINE_NAME_MAX)
		return keys_damaged();
	*ret = (struct baton_str){rest->ptr + sizeof len, len};
	rest->ptr += sizeof len + len;
	rest->len -= sizeof len + len;
	names->left--;
	return BATON_OK;
}
