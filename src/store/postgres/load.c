/* Reading what calls need onto a desk. */
#include <string.h>

#include <baton/queue.h>

#include "base/fail.h"
#include "base/mem.h"
#include "queue/batch.h"
#include "queue/line.h"
#include "queue/policy.h"
#include "store/memory/queue.h"
#include "store/postgres/bulk.h"
#include "store/postgres/keyed.h"
#include "store/postgres/postgres.h"
#include "store/postgres/steps.h"

#define HEADS_MORE 16 /* than are asked for: some may turn out to be dead */
#define NONE (-1)
#define LOOK_START 45 /* where what there is one of begins in the row of a queue */
#define DUE_AT 50
#define DUE_COLUMN 51 /* what time has done to the queue: */
enum due {
	DUE_NO = 0,
	DUE_UNKNOWN = 1,
	DUE_YES = 2
};
#define FIRST_RANK (-1)
#define SKIPPED_MAX 20000 /* batches of a lane that exact ones are looked for among */

static void strs_arg(struct args *a, int at, enum arg_type type, const struct strs *s)
{
	arg_array(a, at, type);
	for (size_t i = 0; i < s->count; i++)
		add_str(a, at, s->list[i]);
}

static void nums_arg(struct args *a, int at, enum arg_type type, const struct nums *n)
{
	arg_array(a, at, type);
	for (size_t i = 0; i < n->count; i++)
		add_int(a, at, (int64_t)n->list[i]);
}

static void nums_more(struct args *a, int at, const struct nums *n)
{
	for (size_t i = 0; i < n->count; i++)
		add_int(a, at, (int64_t)n->list[i]);
}

static void lock_runner(struct conn *c, const struct wants *w)
{
	struct args a;
	if (!w->leaves)
		return;
	args_init(&a, c->alloc, 1);
	arg_int(&a, 0, (int64_t)w->runner);
	conn_send(c, SQL_LOCK_RUNNER, &a);
}

/* Where claims are that stand with others in a row. */
static void chunks_arg(struct args *a, int at, const struct wants *w)
{
	nums_arg(a, at, ARG_INT8, &w->bases);
	nums_arg(a, at + 1, ARG_INT8, &w->lows);
	nums_arg(a, at + 2, ARG_INT8, &w->highs);
}

static void lock_stripes(struct conn *c, const struct wants *first, const struct wants *second)
{
	struct args a;
	const struct nums *const all[] = {&first->stripes, &first->guessed_stripes,
	                                  &second->stripes};
	const struct nums *only = NULL;
	size_t count = 0;
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		only = all[i]->count > 0 ? all[i] : only;
		count += all[i]->count;
	}
	args_init(&a, c->alloc, 1);
	if (count == 1) {
		arg_int(&a, 0, (int64_t)only->list[0]);
		conn_send(c, SQL_LOCK_STRIPE, &a);
		return;
	}
	arg_array(&a, 0, ARG_INT4);
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		nums_more(&a, 0, all[i]);
	conn_send(c, SQL_LOCK_STRIPES, &a);
}

/* The locks of classes, by the bits of their numbers: after those of queues. */
static void lock_classes(struct conn *c, uint64_t classes)
{
	struct args a;
	if (classes == 0)
		return;
	args_init(&a, c->alloc, 1);
	arg_array(&a, 0, ARG_INT4);
	for (uint32_t i = 0; i < CLASSES; i++) {
		if (classes >> i & 1)
			add_int(&a, 0, STRIPES_OF_RUNNERS + STRIPES + i);
	}
	conn_send(c, SQL_LOCK_STRIPES, &a);
}

static void lock_queues(struct conn *c, const struct wants *first, const struct wants *second)
{
	struct args a;
	if (first->guessed.count > 0 ||
	    first->heads.count + first->ids.count + second->heads.count + second->ids.count == 0) {
		lock_stripes(c, first, second);
		lock_runner(c, first);
		return;
	}
	bool claims = first->ids.count + second->ids.count == 0;
	args_init(&a, c->alloc, claims ? 6 : 7);
	nums_arg(&a, 0, ARG_INT8, &first->heads);
	nums_more(&a, 0, &second->heads);
	nums_arg(&a, 1, ARG_INT8, &first->fences);
	nums_more(&a, 1, &second->fences);
	nums_arg(&a, 2, ARG_INT4, &first->stripes);
	nums_more(&a, 2, &second->stripes);
	chunks_arg(&a, 3, first);
	nums_more(&a, 3, &second->bases);
	nums_more(&a, 4, &second->lows);
	nums_more(&a, 5, &second->highs);
	if (!claims) {
		nums_arg(&a, 6, ARG_INT8, &first->ids);
		nums_more(&a, 6, &second->ids);
	}
	conn_send(c, claims ? SQL_LOCK_CLAIMS : SQL_LOCK, &a);
	lock_runner(c, first);
}

void load_lock(struct conn *c, const struct wants *first, const struct wants *second,
               uint64_t classes)
{
	lock_queues(c, first, second);
	lock_classes(c, classes);
}

static bool claims_any(const struct wants *w)
{
	return w->take_count > 0 || (w->lane_ask && w->lane_ask->max > 0);
}

/* Of the queues that something is claimed from. */
static int send_over(struct pg_store *s, struct conn *c, enum sql sql, const struct wants *w)
{
	struct args a;
	args_init(&a, c->alloc, 2);
	arg_array(&a, 0, ARG_TEXT);
	for (size_t i = 0; i < w->take_count; i++)
		add_str(&a, 0, w->takes[i].queue);
	if (w->lane_ask && w->lane_ask->max > 0)
		add_str(&a, 0, w->lane_ask->queue);
	if (s->own_clock)
		arg_int(&a, 1, s->host->wall(s->host).ms);
	return conn_send(c, sql, &a);
}

enum baton_err load_over(struct pg_store *s, struct conn *c, const struct wants *w,
                         struct wants *ret)
{
	if (!claims_any(w))
		return BATON_OK;
	send_over(s, c, SQL_CLASS_TEND, w);
	const int over = send_over(s, c, SQL_CLASS_OVER, w);
	enum baton_err e = conn_round(c);
	const PGresult *r = e == BATON_OK ? conn_answer(c, over) : NULL;
	for (int i = 0; r && i < PQntuples(r); i++) {
		const struct claim_name name = {(uint64_t)cell_int(r, i, 0),
		                                (uint64_t)cell_int(r, i, 1)};
		want_rest(ret, &name);
	}
	return e;
}

/* The keys of a class that were read: `$1` the classes, `$2` the lines. */
static bool class_args(struct args *a, const struct conn *c, const struct desk *d)
{
	bool any = false;
	args_init(a, c->alloc, 2);
	arg_array(a, 0, ARG_TEXT);
	arg_array(a, 1, ARG_TEXT);
	for (struct row *row = d->m->lanes.oldest; row; row = row->newer) {
		const struct lane *lane = (const struct lane *)row;
		const struct baton_queue_policy *policy = &lane->queue->is.policy;
		if (!policy_has_class(policy) || !line_is_keyed(lane->name))
			continue;
		add_str(a, 0, baton_str_z(policy->key_class));
		add_str(a, 1, lane->name);
		any = true;
	}
	return any;
}

enum baton_err load_class(struct conn *c, struct desk *d)
{
	struct args a;
	if (!class_args(&a, c, d)) {
		args_done(&a);
		return BATON_OK;
	}
	struct args lines = a;
	args_init(&a, c->alloc, 1);
	arg_array(&a, 0, ARG_TEXT);
	for (size_t i = 0; i < d->queue_count; i++)
		add_str(&a, 0, baton_str_z(d->queues[i].row->is.policy.key_class));
	const int queues = conn_send(c, SQL_CLASS_QUEUES, &a);
	const int batches = conn_send(c, SQL_CLASS_BATCHES, &lines);
	class_args(&a, c, d);
	const int claims = conn_send(c, SQL_CLASS_CLAIMS, &a);
	enum baton_err e = conn_round(c);
	if (e == BATON_OK)
		e = desk_queues(d, conn_answer(c, queues));
	if (e == BATON_OK)
		e = desk_batches(d, conn_answer(c, batches));
	return e == BATON_OK ? desk_claims(d, conn_answer(c, claims)) : e;
}

/* Whether somebody of another queue may have to give way to what gets ready there. */
static bool has_rivals(const struct baton_queue_policy *policy)
{
	return policy_has_class(policy) && policy->on_conflict != BATON_CONFLICT_WAIT;
}

/* The keys of such queues that were read, or are wanted: as class_args(). */
static bool rival_args(struct args *a, const struct conn *c, const struct desk *d,
                       const struct wants *w)
{
	bool any = false;
	args_init(a, c->alloc, 3);
	arg_array(a, 0, ARG_TEXT);
	arg_array(a, 1, ARG_TEXT);
	for (struct row *row = d->m->lanes.oldest; row; row = row->newer) {
		const struct lane *lane = (const struct lane *)row;
		if (!has_rivals(&lane->queue->is.policy) || !line_is_keyed(lane->name))
			continue;
		add_str(a, 0, baton_str_z(lane->queue->is.policy.key_class));
		add_str(a, 1, lane->name);
		any = true;
	}
	for (size_t i = 0; i < w->lanes.count; i++) {
		const struct queue *q = memory_queue_find(d->m, w->lane_queues.list[i]);
		if (!q || !has_rivals(&q->is.policy) || !line_is_keyed(w->lanes.list[i]))
			continue;
		add_str(a, 0, baton_str_z(q->is.policy.key_class));
		add_str(a, 1, w->lanes.list[i]);
		any = true;
	}
	return any;
}

/* `$3`: so many may give way, at most. */
static int send_rivals(struct conn *c, enum sql sql, const struct wants *w, const struct desk *d)
{
	struct args a;
	rival_args(&a, c, d, w);
	arg_int(&a, 2, (int64_t)(w->lanes.count + w->ids.count + 1));
	return conn_send(c, sql, &a);
}

enum baton_err load_rivals(struct conn *c, const struct wants *w, struct desk *d)
{
	struct args a;
	const bool any = rival_args(&a, c, d, w);
	args_done(&a);
	if (!any)
		return BATON_OK;
	const int batches = send_rivals(c, SQL_RIVAL_BATCHES, w, d);
	const int claims = send_rivals(c, SQL_RIVAL_CLAIMS, w, d);
	const int waiting = send_rivals(c, SQL_RIVAL_WAITING, w, d);
	args_init(&a, c->alloc, 1);
	arg_array(&a, 0, ARG_TEXT);
	for (size_t i = 0; i < d->queue_count; i++)
		add_str(&a, 0, baton_str_z(d->queues[i].row->is.policy.key_class));
	const int queues = conn_send(c, SQL_CLASS_QUEUES, &a);
	enum baton_err e = conn_round(c);
	if (e == BATON_OK)
		e = desk_queues(d, conn_answer(c, queues));
	if (e == BATON_OK)
		e = desk_batches(d, conn_answer(c, batches));
	if (e == BATON_OK)
		e = desk_claims(d, conn_answer(c, claims));
	return e == BATON_OK ? desk_waiting(d, conn_answer(c, waiting)) : e;
}

/* The claims and batches that are named. Of the claims, those that are looked for in rows of their
 * own: `rest`. */
static void named_args(struct args *a, const struct conn *c, int count, const struct wants *w)
{
	args_init(a, c->alloc, count);
	nums_arg(a, 0, ARG_INT8, &w->rest_heads);
	nums_arg(a, 1, ARG_INT8, &w->rest_fences);
	nums_arg(a, 2, ARG_INT8, &w->ids);
}

static int send_strs(struct conn *c, enum sql sql, enum arg_type type, const struct strs *s)
{
	struct args a;
	args_init(&a, c->alloc, 1);
	strs_arg(&a, 0, type, s);
	return conn_send(c, sql, &a);
}

static int send_number(struct conn *c, enum sql sql, int64_t number)
{
	struct args a;
	args_init(&a, c->alloc, 1);
	arg_int(&a, 0, number);
	return conn_send(c, sql, &a);
}

/* Whether something may have a key, which others may wait for, or which may have to wait itself. */
static bool may_have_keys(const struct wants *w)
{
	for (size_t i = 0; i < w->lanes.count; i++) {
		if (line_is_keyed(w->lanes.list[i]))
			return true;
	}
	return w->ids.count > 0;
}

static void send_around(struct conn *c, const struct wants *w, bool payload, struct loading *l)
{
	struct args a;
	if (w->rest_heads.count + w->ids.count + w->lanes.count + w->keys.count == 0)
		return;
	named_args(&a, c, 7, w);
	strs_arg(&a, 3, ARG_TEXT, &w->lane_queues);
	strs_arg(&a, 4, ARG_TEXT, &w->lanes);
	strs_arg(&a, 5, ARG_BYTES, &w->keys);
	arg_bool(&a, 6, payload);
	l->around = conn_send(c, SQL_AROUND, &a);
	if (may_have_keys(w)) {
		named_args(&a, c, 5, w);
		strs_arg(&a, 3, ARG_TEXT, &w->lane_queues);
		strs_arg(&a, 4, ARG_TEXT, &w->lanes);
		l->waiting = conn_send(c, SQL_WAITING, &a);
	}
	if (w->rest_heads.count == 0)
		return;
	args_init(&a, c->alloc, 2);
	nums_arg(&a, 0, ARG_INT8, &w->rest_heads);
	nums_arg(&a, 1, ARG_INT8, &w->rest_fences);
	l->answers = conn_send(c, SQL_ANSWERS, &a);
}

static void send_queues(struct conn *c, const struct wants *w, struct loading *l)
{
	struct args a;
	named_args(&a, c, 8, w);
	strs_arg(&a, 3, ARG_TEXT, &w->queues);
	strs_arg(&a, 4, ARG_BYTES, &w->keys);
	chunks_arg(&a, 5, w);
	l->queues = conn_send(c, SQL_QUEUES, &a);
}

/* What there is one of, and the queues; for who claims, whether time has done something to them. */
static void send_start(struct pg_store *s, struct conn *c, const struct wants *w, struct loading *l)
{
	struct args a;
	if (w->guessed.count > 0) {
		args_init(&a, c->alloc, 1);
		nums_arg(&a, 0, ARG_INT4, &w->guessed);
		l->look = conn_send(c, SQL_LOOK_NUMBERS, &a);
	} else if (w->rest_heads.count + w->ids.count + w->keys.count + w->bases.count > 0) {
		l->start = conn_send(c, SQL_START, NULL);
		send_queues(c, w, l);
	} else if (claims_any(w) && !w->due) {
		args_init(&a, c->alloc, 2);
		strs_arg(&a, 0, ARG_TEXT, &w->queues);
		if (s->own_clock)
			arg_int(&a, 1, s->host->wall(s->host).ms);
		l->look = l->due = conn_send(c, SQL_LOOK_DUE, &a);
	} else if (w->classes.count > 0) {
		args_init(&a, c->alloc, 2);
		strs_arg(&a, 0, ARG_TEXT, &w->queues);
		strs_arg(&a, 1, ARG_TEXT, &w->classes);
		l->look = conn_send(c, SQL_LOOK_CLASS, &a);
	} else {
		l->look = send_strs(c, SQL_LOOK, ARG_TEXT, &w->queues);
	}
}

/* What a runner has: its shards, and what it has claimed. */
static void send_bound(struct conn *c, uint64_t runner, struct loading *l)
{
	l->bound_queues = send_number(c, SQL_RUNNER_QUEUES, (int64_t)runner);
	l->bound_batches = send_number(c, SQL_RUNNER_BATCHES, (int64_t)runner);
	l->bound_claims = send_number(c, SQL_RUNNER_CLAIMS, (int64_t)runner);
	l->bound_leases = send_number(c, SQL_RUNNER_LEASES, (int64_t)runner);
}

static void send_runners(struct conn *c, uint64_t only, struct loading *l)
{
	struct args a;
	args_init(&a, c->alloc, 2);
	arg_int(&a, 0, only > 0 ? (int64_t)only - 1 : 0);
	arg_int(&a, 1, only > 0 ? 1 : BATON_RUNNERS_MAX + 1);
	l->runners = conn_send(c, SQL_RUNNERS, &a);
}

/* What cannot stay in rows with others, because something unusual is done to it. */
static void send_melt(struct conn *c, const struct nums *ids, const struct wants *w)
{
	struct args a;
	if (ids->count == 0 && w->runner == 0)
		return;
	args_init(&a, c->alloc, 4);
	nums_arg(&a, 0, ARG_INT8, ids);
	arg_int(&a, 1, (int64_t)w->runner);
	arg_bool(&a, 2, w->leaves);
	strs_arg(&a, 3, ARG_TEXT, &w->queues);
	conn_send(c, SQL_MELT, &a);
}

/* Claims in rows with others; and, for those who only look, batches. */
static void send_chunks(struct conn *c, const struct wants *w, bool look, struct loading *l)
{
	struct args a;
	if (w->bases.count > 0 && !w->apart) {
		args_init(&a, c->alloc, 3);
		chunks_arg(&a, 0, w);
		l->chunks = conn_send(c, SQL_CHUNKS, &a);
	}
	if (!look || w->ids.count == 0)
		return;
	args_init(&a, c->alloc, 1);
	nums_arg(&a, 0, ARG_INT8, &w->ids);
	l->members = conn_send(c, SQL_MEMBERS, &a);
	args_init(&a, c->alloc, 1);
	nums_arg(&a, 0, ARG_INT8, &w->ids);
	l->member_claims = conn_send(c, SQL_MEMBER_CLAIMS, &a);
	args_init(&a, c->alloc, 1);
	nums_arg(&a, 0, ARG_INT8, &w->ids);
	l->site_holders = conn_send(c, SQL_SITE_HOLDERS, &a);
}

int load_sites(struct conn *c, const struct wants *w)
{
	struct args a;
	args_init(&a, c->alloc, 2);
	arg_int(&a, 0, (int64_t)w->only);
	strs_arg(&a, 1, ARG_TEXT, &w->queues);
	return conn_send(c, SQL_SITE_USES, &a);
}

const struct loading load_nothing = {NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE,
                                     NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE,
                                     NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE};

/* The greatest number among the ids that are asked for. */
static uint64_t last_id(const struct baton_lane_ask *ask)
{
	uint64_t last = 0;
	for (size_t i = 0; ask->ids && i < ask->count; i++) {
		uint64_t number;
		if (batch_id_parse(&ask->ids[i], &number) && number > last)
			last = number;
	}
	return last;
}

static void send_line(struct conn *c, const struct baton_lane_ask *ask, struct loading *l)
{
	struct args a;
	args_init(&a, c->alloc, 4);
	arg_text(&a, 0, ask->queue);
	arg_text(&a, 1, ask->lane);
	arg_int(&a, 2, ask->ids ? SKIPPED_MAX : (int64_t)ask->max + 1);
	arg_int(&a, 3, (int64_t)last_id(ask));
	l->line = conn_send(c, SQL_LINE, &a);
	args_init(&a, c->alloc, 2);
	arg_text(&a, 0, ask->queue);
	arg_text(&a, 1, ask->lane);
	l->line_claims = conn_send(c, SQL_LINE_CLAIMS, &a);
}

/* What time has done to the queues comes before anything is claimed from them; of most it has done
 * nothing, and to look costs a third of what the function does. */
static int send_tend(struct pg_store *s, struct conn *c, const struct wants *w)
{
	struct args a;
	send_strs(c, SQL_GATHER, ARG_TEXT, &w->queues);
	args_init(&a, c->alloc, 2);
	strs_arg(&a, 0, ARG_TEXT, &w->queues);
	if (s->own_clock)
		arg_int(&a, 1, s->host->wall(s->host).ms);
	return conn_send(c, SQL_TEND, &a);
}

/* Which of those that may be taken are held off by users' transactions; the others are locked. */
static int send_taken(struct pg_store *s, struct conn *c, const struct wants *w)
{
	struct args a;
	args_init(&a, c->alloc, 3);
	strs_arg(&a, 0, ARG_TEXT, &w->taken);
	if (s->own_clock)
		arg_int(&a, 1, s->host->wall(s->host).ms);
	arg_bool(&a, 2, w->all_may_be);
	return conn_send(c, SQL_HELD_OFF, &a);
}

/* Those of what is put, of what may queue again behind the others, and of turns. */
static int send_draw(struct conn *c, const struct wants *w)
{
	struct args a;
	args_init(&a, c->alloc, 5);
	arg_int(&a, 0, (int64_t)w->numbers);
	nums_arg(&a, 1, ARG_INT8, &w->heads);
	nums_arg(&a, 2, ARG_INT8, &w->fences);
	arg_array(&a, 3, ARG_TEXT);
	arg_array(&a, 4, ARG_INT4);
	for (size_t i = 0; i < w->take_count; i++) {
		add_str(&a, 3, w->takes[i].queue);
		add_int(&a, 4, w->takes[i].few);
	}
	return conn_send(c, SQL_DRAW, &a);
}

void load_chunks(struct conn *c, const struct wants *w, struct loading *l)
{
	*l = load_nothing;
	send_chunks(c, w, false, l);
}

void load_send(struct pg_store *s, struct conn *c, const struct wants *w, bool payload,
               struct loading *l)
{
	*l = load_nothing;
	if (!payload) {
		send_melt(c, &w->melt, w);
		keyed_thaw(c, &w->lane_queues, &w->lanes);
	}
	if (claims_any(w) && (w->due || w->bases.count + w->ids.count + w->keys.count > 0))
		l->tend = send_tend(s, c, w);
	send_start(s, c, w, l);
	if (w->keys.count > 0)
		l->sources = send_strs(c, SQL_SOURCES, ARG_BYTES, &w->keys);
	send_chunks(c, w, payload, l);
	send_around(c, w, payload, l);
	if (w->subjects.count > 0)
		l->leases = send_strs(c, SQL_LEASES, ARG_TEXT, &w->subjects);
	if (w->taken.count > 0)
		l->held_off = send_taken(s, c, w);
	if (w->runners)
		send_runners(c, w->only, l);
	if (w->schedules.count > 0)
		l->schedules = send_strs(c, SQL_SCHEDULES, ARG_TEXT, &w->schedules);
	if (w->runner > 0)
		send_bound(c, w->runner, l);
	if (w->lane_ask)
		send_line(c, w->lane_ask, l);
	if (w->numbers + w->heads.count + w->take_count > 0 && atomic_load(&s->drawing) > 0)
		l->numbers = send_draw(c, w);
}

bool load_rest(struct wants *w, const struct desk *d)
{
	w->rest_heads.count = w->rest_fences.count = 0;
	for (size_t i = 0; i < w->heads.count; i++) {
		const struct claim_name name = {w->heads.list[i], w->fences.list[i]};
		if (!desk_has_claim(d, &name))
			want_rest(w, &name);
	}
	return w->rest_heads.count > 0;
}

void load_lines(struct conn *c, const struct wants *w, struct loading *l)
{
	*l = load_nothing;
	keyed_thaw(c, &w->lane_queues, &w->lanes);
	send_around(c, w, false, l);
}

void load_rest_send(struct conn *c, const struct wants *w, const struct desk *d, struct loading *l)
{
	const struct nums none = {.count = 0};
	*l = load_nothing;
	send_melt(c, d->melts ? &w->rest_heads : &none, w);
	send_queues(c, w, l);
	send_around(c, w, false, l);
}

static void heads_args(struct args *a, const struct conn *c, const struct wants *w,
                       const struct page_end *after)
{
	args_init(a, c->alloc, 9);
	arg_array(a, 0, ARG_TEXT);
	arg_array(a, 1, ARG_INT4);
	arg_array(a, 2, ARG_INT4);
	arg_array(a, 3, ARG_INT4);
	arg_array(a, 4, ARG_INT2);
	arg_array(a, 5, ARG_INT8);
	arg_array(a, 6, ARG_INT8);
	strs_arg(a, 7, ARG_TEXT, &w->full);
	strs_arg(a, 8, ARG_TEXT, &w->sites);
	for (size_t i = 0; i < w->take_count; i++) {
		const struct want_heads *h = &w->takes[i];
		add_str(a, 0, h->queue);
		add_int(a, 1, h->pool);
		add_int(a, 2, (int64_t)h->few + HEADS_MORE);
		add_int(a, 3, h->max);
		add_int(a, 4, after ? after->rank : FIRST_RANK);
		add_int(a, 5, after ? after->place : 0);
		add_int(a, 6, after ? after->seq : 0);
	}
}

void load_heads(struct conn *c, const struct wants *w, const struct page_end *after,
                struct loading *l)
{
	struct args a;
	heads_args(&a, c, w, after);
	l->heads = conn_send(c, SQL_HEADS, &a);
	heads_args(&a, c, w, after);
	l->heads_last = conn_send(c, SQL_HEADS_LAST, &a);
}

static int send_pools(struct conn *c, const struct wants *w, enum sql sql, int count)
{
	struct args a;
	args_init(&a, c->alloc, count);
	arg_array(&a, 0, ARG_TEXT);
	arg_array(&a, 1, ARG_INT4);
	if (count > 2)
		arg_array(&a, 2, ARG_INT4);
	for (size_t i = 0; i < w->take_count; i++) {
		add_str(&a, 0, w->takes[i].queue);
		add_int(&a, 1, w->takes[i].pool);
		if (count > 2)
			add_int(&a, 2, w->takes[i].few);
	}
	return conn_send(c, sql, &a);
}

void load_claim_look(struct pg_store *s, struct conn *c, const struct wants *w, uint32_t queue,
                     struct loading *l)
{
	struct args a;
	*l = load_nothing;
	args_init(&a, c->alloc, 3);
	arg_int(&a, 0, queue);
	if (s->own_clock)
		arg_int(&a, 1, s->host->wall(s->host).ms);
	arg_text(&a, 2, w->subjects.list[0]);
	l->claim_look = conn_send(c, SQL_CLAIM_LOOK, &a);
	load_bulks(c, w, l);
}

enum look_column {
	LOOK_CLOCK = 0,
	LOOK_NOW,
	LOOK_DUE,
	LOOK_HEADS,
	LOOK_VERSION,
	LOOK_COUNTS,
	LOOK_TENDED,
	LOOK_STEP,
	LOOK_LEASE
};

bool load_is_as(const struct conn *c, const struct loading *l, const struct read_queue *is)
{
	const PGresult *r = conn_answer(c, l->claim_look);
	return PQntuples(r) == 1 && cell_int(r, 0, LOOK_STEP) == pg_step_count &&
	       (uint64_t)cell_int(r, 0, LOOK_COUNTS) == is->counts &&
	       (uint32_t)cell_int(r, 0, LOOK_VERSION) == is->version &&
	       cell_int(r, 0, LOOK_TENDED) == is->since_ms && cell_int(r, 0, LOOK_DUE) == DUE_NO;
}

struct baton_store_time load_now(struct pg_store *s, const struct conn *c, const struct loading *l)
{
	struct baton_store_time now = {cell_int(conn_answer(c, l->claim_look), 0, LOOK_CLOCK)};
	atomic_store(&s->ahead_ms, now.ms - s->host->now(s->host).ns / 1000000);
	return s->own_clock ? s->host->wall(s->host) : now;
}

enum baton_err load_claim_look_take(const struct conn *c, const struct loading *l, struct desk *d)
{
	const PGresult *r = conn_answer(c, l->claim_look);
	for (size_t i = 0; i < d->queue_count; i++)
		desk_tended_at(d, (int64_t)d->queues[i].row->row.kept, cell_int(r, 0, LOOK_NOW));
	return desk_leases_at(d, r, LOOK_LEASE);
}

void load_bulks(struct conn *c, const struct wants *w, struct loading *l)
{
	if (l->heads == NONE && l->claim_look == NONE)
		l->heads_any = send_pools(c, w, SQL_HEADS_ANY, 2);
	l->bulks = send_pools(c, w, SQL_BULKS, 3);
}

bool load_has_heads(const struct conn *c, const struct loading *l)
{
	if (l->claim_look != NONE)
		return cell_bool(conn_answer(c, l->claim_look), 0, LOOK_HEADS);
	return l->heads_any != NONE && cell_bool(conn_answer(c, l->heads_any), 0, 0);
}

bool load_is_due(const struct conn *c, const struct loading *l)
{
	const PGresult *r = l->due != NONE ? conn_answer(c, l->due) : NULL;
	for (int i = 0; r && i < PQntuples(r); i++) {
		if (cell_int(r, i, DUE_COLUMN) == DUE_YES)
			return true;
	}
	return false;
}

enum baton_err load_heads_take(const struct conn *c, const struct loading *l, struct desk *d,
                               const struct wants *w, struct page_end *ret)
{
	enum baton_err e = BATON_OK;
	if (l->bulks != NONE)
		e = desk_bulks(d, conn_answer(c, l->bulks));
	if (l->heads == NONE || e != BATON_OK)
		return e;
	const PGresult *last = conn_answer(c, l->heads_last);
	const int rows = PQntuples(last);
	uint64_t most = 0, found = 0;
	for (size_t i = 0; i < w->take_count; i++)
		most += (uint64_t)w->takes[i].few + HEADS_MORE;
	for (int i = 0; i < rows; i++)
		found += (uint64_t)cell_int(last, i, 3);
	ret->full = rows > 0 && found >= most;
	ret->rank = rows > 0 ? cell_int(last, rows - 1, 2) : 0;
	ret->place = rows > 0 ? cell_int(last, rows - 1, 4) : 0;
	ret->seq = rows > 0 ? cell_int(last, rows - 1, 5) : 0;
	ret->any = rows > 0;
	e = desk_batches(d, conn_answer(c, l->heads));
	if (e == BATON_OK)
		e = desk_far(d, last);
	return e == BATON_OK ? desk_held(d, conn_answer(c, l->heads)) : e;
}

/* What there is one of, and what the server's clock shows. */
static enum baton_err open_desk(struct pg_store *s, struct conn *c, const struct loading *l,
                                struct desk *d)
{
	const int at = l->look != NONE ? LOOK_START : 0;
	const PGresult *r = conn_answer(c, l->look != NONE ? l->look : l->start);

	if (PQntuples(r) == 0)
		return fail(BATON_STORAGE, "store %s is damaged: its counters are gone",
		            s->base.where);
	if (cell_int(r, 0, at + 4) != pg_step_count)
		return fail(
			BATON_STORAGE,
			"store %s has version %lld of its tables by now, and this program knows "
			"version %d: it has to be a newer one",
			s->base.where, (long long)cell_int(r, 0, at + 4), pg_step_count);
	struct baton_store_time now = {cell_int(r, 0, at)}, made = {cell_int(r, 0, at + 1)};
	atomic_store(&s->ahead_ms, now.ms - s->host->now(s->host).ns / 1000000);
	if (s->own_clock)
		now = s->host->wall(s->host);
	enum baton_err e = desk_open(d, &s->base, now, made, &c->spare);
	if (e != BATON_OK)
		return e;
	d->m->runner = d->last_runner = (uint64_t)cell_int(r, 0, at + 2);
	d->m->seq = d->last = (uint64_t)cell_int(r, 0, at + 3);
	d->expects = true;
	return BATON_OK;
}

static enum baton_err take_numbers(struct desk *d, const PGresult *r)
{
	size_t count = (size_t)PQntuples(r);
	if (count == 0)
		return BATON_OK;
	uint64_t *numbers = arena_take(&d->arena, count, sizeof *numbers);
	if (!numbers)
		return fail_memory(count * sizeof *numbers, "numbers");
	for (size_t i = 0; i < count; i++)
		numbers[i] = (uint64_t)cell_int(r, (int)i, 0);
	d->m->numbers = numbers;
	d->m->number_count = count;
	d->m->seq = numbers[0] - 1;
	d->expects = false;
	return BATON_OK;
}

/* Nothing is due in these queues, and no claim is over. */
static enum baton_err desk_quiet(struct desk *d, const PGresult *r)
{
	for (int i = 0; i < PQntuples(r); i++) {
		if (cell_int(r, i, DUE_COLUMN) == DUE_NO)
			desk_tended_at(d, cell_int(r, i, 0), cell_int(r, i, DUE_AT));
	}
	return BATON_OK;
}

struct step {
	int answer;
	enum baton_err (*put)(struct desk *d, const PGresult *r);
};

static enum baton_err take_steps(const struct conn *c, const struct loading *l, struct desk *d)
{
	const struct step steps[] = {
		{l->look, desk_queues},           {l->due, desk_quiet},
		{l->queues, desk_queues},         {l->bound_queues, desk_queues},
		{l->tend, desk_tended},           {l->sources, desk_sources},
		{l->line, desk_batches},          {l->around, desk_batches},
		{l->bound_batches, desk_batches}, {l->members, desk_batches},
		{l->chunks, desk_chunks},         {l->around, desk_around},
		{l->bound_claims, desk_claims},   {l->line_claims, desk_claims},
		{l->member_claims, desk_claims},  {l->answers, desk_answers},
		{l->leases, desk_leases},         {l->bound_leases, desk_leases},
		{l->runners, desk_runners},       {l->schedules, desk_schedules},
		{l->numbers, take_numbers},       {l->held_off, desk_held_off},
		{l->waiting, desk_waiting},       {l->site_holders, desk_site_holders},
	};
	enum baton_err e = BATON_OK;
	for (size_t i = 0; i < sizeof steps / sizeof steps[0] && e == BATON_OK; i++) {
		if (steps[i].answer != NONE)
			e = steps[i].put(d, conn_answer(c, steps[i].answer));
	}
	return e;
}

enum baton_err load_take(struct pg_store *s, struct conn *c, const struct loading *l,
                         struct desk *d)
{
	enum baton_err e = open_desk(s, c, l, d);
	return e == BATON_OK ? take_steps(c, l, d) : e;
}

enum baton_err load_rest_take(const struct conn *c, const struct loading *l, struct desk *d)
{
	return take_steps(c, l, d);
}
