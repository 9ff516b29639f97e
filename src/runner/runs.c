/* The claims that a runner has, from the tick that gave them to the tick that ended them. */
#include "base/check.h"
#include "base/fail.h"
#include "base/mem.h"
#include "runner/state.h"

#define SERIAL_SHIFT 32
#define FIFOS 5

static enum baton_err fifo_init(struct fifo *f, const struct baton_alloc *alloc, uint32_t max)
{
	f->numbers = mem_new(alloc, max, sizeof *f->numbers);
	f->max = max;
	return f->numbers ? BATON_OK : fail_memory(max * sizeof *f->numbers, "a runner");
}

static void fifo_done(struct fifo *f, const struct baton_alloc *alloc)
{
	mem_free(alloc, f->numbers, f->max, sizeof *f->numbers);
	f->numbers = NULL;
}

static void fifo_add(struct fifo *f, uint32_t number)
{
	CHECK(f->count < f->max);
	f->numbers[(f->first + f->count++) % f->max] = number;
}

static bool fifo_next(struct fifo *f, uint32_t *ret)
{
	if (f->count == 0)
		return false;
	*ret = f->numbers[f->first];
	f->first = (f->first + 1) % f->max;
	f->count--;
	return true;
}

/* Claims are asked for only where there are slots: no more than those run, and two ticks' worth may
 * be on their way to the store before less is asked for. */
enum baton_err runs_init(struct runs *runs, const struct baton_alloc *alloc, uint32_t slots)
{
	uint32_t max = slots + 2 * BATON_CLAIMS_MAX + CORE_EXTRAS_MAX;
	*runs = (struct runs){.max = max};
	runs->all = mem_new(alloc, max, sizeof *runs->all);
	runs->blocks = mem_new(alloc, max, sizeof *runs->blocks);
	if (!runs->all || !runs->blocks)
		return fail_memory(max * sizeof *runs->all, "a runner");
	struct fifo *fifos[FIFOS] = {&runs->spare, &runs->spare_blocks, &runs->fresh, &runs->halts,
	                             &runs->over};
	for (size_t i = 0; i < FIFOS; i++) {
		enum baton_err e = fifo_init(fifos[i], alloc, max);
		if (e != BATON_OK)
			return e;
	}
	for (uint32_t i = 0; i < max; i++) {
		fifo_add(&runs->spare, i);
		fifo_add(&runs->spare_blocks, i);
	}
	return BATON_OK;
}

void runs_done(struct runs *runs, const struct baton_alloc *alloc)
{
	for (uint32_t i = 0; i < runs->max && runs->all && runs->blocks; i++) {
		if (runs->all[i].is != RUN_NONE && runs->all[i].end.drop)
			runs->all[i].end.drop(runs->all[i].end.hold);
		baton_work_claims_free(runs->blocks[i].claims);
	}
	fifo_done(&runs->spare, alloc);
	fifo_done(&runs->spare_blocks, alloc);
	fifo_done(&runs->fresh, alloc);
	fifo_done(&runs->halts, alloc);
	fifo_done(&runs->over, alloc);
	mem_free(alloc, runs->all, runs->max, sizeof *runs->all);
	mem_free(alloc, runs->blocks, runs->max, sizeof *runs->blocks);
	*runs = (struct runs){.max = 0};
}

static uint32_t number_of(const struct core *c, const struct run *r)
{
	return (uint32_t)(r - c->runs.all);
}

uint64_t run_id(const struct core *c, const struct run *r)
{
	return (uint64_t)r->serial << SERIAL_SHIFT | number_of(c, r);
}

struct run *run_find(struct core *c, uint64_t id)
{
	uint32_t number = (uint32_t)id;
	if (number >= c->runs.max)
		return NULL;
	struct run *r = &c->runs.all[number];
	return r->is != RUN_NONE && r->serial == id >> SERIAL_SHIFT ? r : NULL;
}

static uint32_t queue_of(const struct core *c, struct baton_str name)
{
	uint32_t i = 0;
	while (i < c->o.serve_count && !baton_str_equal(c->served[i].serve->queue, name))
		i++;
	CHECK(i < c->o.serve_count);
	return i;
}

static struct shard *shard_of(struct core *c, const struct run *r)
{
	struct served *s = &c->served[r->queue];
	CHECK(r->shard < s->count);
	return &s->shards[r->shard];
}

static struct run *run_make(struct core *c, const struct baton_work_claim *claim, uint32_t block)
{
	uint32_t number;
	CHECK(fifo_next(&c->runs.spare, &number));
	struct run *r = &c->runs.all[number];
	*r = (struct run){
		.is = RUN_NEW,
		.serial = ++c->runs.serial,
		.block = block,
		.queue = queue_of(c, claim->queue),
		.shard = claim->shard,
		.claim = claim,
	};
	shard_of(c, r)->runs++;
	return r;
}

static void run_add(struct core *c, const struct baton_work_claim *claim, uint32_t block)
{
	struct run *r = run_make(c, claim, block);
	struct served *s = &c->served[r->queue];
	/* Who had nothing to do meanwhile does not get for that what others had. */
	c->pass = s->pass > c->pass ? s->pass : c->pass;
	s->pass = c->pass + 1.0 / s->serve->weight;
	s->turn = (claim->shard + 1) % s->count;
	c->runs.running++;
	c->counts.claimed++;
	fifo_add(&c->runs.fresh, number_of(c, r));
}

static uint32_t block_add(struct core *c, struct baton_work_claims *claims)
{
	uint32_t block;
	CHECK(claims->count > 0 && fifo_next(&c->runs.spare_blocks, &block));
	c->runs.blocks[block] = (struct block){claims, (uint32_t)claims->count};
	return block;
}

struct run *run_extra(struct core *c, struct baton_work_claims *claims)
{
	struct run *r = run_make(c, &claims->claims[0], block_add(c, claims));
	r->is = RUN_EXTRA;
	r->extra = true;
	c->runs.extras++;
	return r;
}

void runs_add(struct core *c, struct baton_work_claims *claims)
{
	if (!claims)
		return;
	uint32_t block = block_add(c, claims);
	for (size_t i = 0; i < claims->count; i++)
		run_add(c, &claims->claims[i], block);
}

void run_drop(struct core *c, struct run *r)
{
	struct block *block = &c->runs.blocks[r->block];
	uint32_t number = r->block;
	CHECK(r->is == RUN_ENDED || r->is == RUN_SENT || r->is == RUN_TIED);
	shard_of(c, r)->runs--;
	c->runs.unsent--;
	c->runs.extras -= r->extra;
	if (r->end.drop)
		r->end.drop(r->end.hold);
	*r = (struct run){.is = RUN_NONE};
	fifo_add(&c->runs.spare, number_of(c, r));
	if (--block->left > 0)
		return;
	baton_work_claims_free(block->claims);
	*block = (struct block){NULL, 0};
	fifo_add(&c->runs.spare_blocks, number);
}

struct run *run_next(struct core *c, const struct run *r)
{
	return r->more > 0 ? &c->runs.all[r->more - 1] : NULL;
}

/* What it took ends as it does; follow-up work is put once, and what both point to is its own. */
static void run_tie(struct core *c, const struct run *r)
{
	for (struct run *x = run_next(c, r); x; x = run_next(c, x)) {
		x->is = RUN_TIED;
		x->end = r->end;
		x->end.emits = NULL;
		x->end.emit_count = 0;
		x->end.drop = NULL;
	}
}

void run_end(struct core *c, struct run *r, const struct core_end *end)
{
	CHECK(r->is == RUN_NEW || r->is == RUN_ON || r->is == RUN_STOPPING || r->is == RUN_EXTRA);
	c->runs.running -= r->is != RUN_EXTRA;
	more_forget(c, r);
	r->is = RUN_ENDED;
	r->end = *end;
	c->runs.unsent++;
	for (struct run *x = run_next(c, r); x; x = run_next(c, x))
		c->runs.unsent++;
	run_tie(c, r);
	fifo_add(&c->runs.over, number_of(c, r));
}

void run_again(struct core *c, struct run *r)
{
	CHECK(r->is == RUN_SENT);
	r->is = RUN_ENDED;
	run_tie(c, r);
	fifo_add(&c->runs.over, number_of(c, r));
}

void run_stop(struct core *c, struct run *r)
{
	const struct core_end never = {.how = BATON_ABANDON};
	if (r->is == RUN_NEW) {
		run_end(c, r, &never);
	} else if (r->is == RUN_ON) {
		r->is = RUN_STOPPING;
		fifo_add(&c->runs.halts, number_of(c, r));
	}
}

void runs_stop(struct core *c)
{
	for (uint32_t i = 0; i < c->runs.max; i++)
		run_stop(c, &c->runs.all[i]);
	c->runs.fresh.count = 0;
}

static struct run *next_that(struct core *c, struct fifo *f, enum run_is is)
{
	uint32_t number;
	while (fifo_next(f, &number)) {
		if (c->runs.all[number].is == is)
			return &c->runs.all[number];
	}
	return NULL;
}

struct run *runs_fresh(struct core *c)
{
	return next_that(c, &c->runs.fresh, RUN_NEW);
}

struct run *runs_halt(struct core *c)
{
	return next_that(c, &c->runs.halts, RUN_STOPPING);
}

struct run *runs_over(struct core *c)
{
	return next_that(c, &c->runs.over, RUN_ENDED);
}

void runs_stop_new(struct core *c)
{
	struct run *r;
	while ((r = runs_fresh(c)))
		run_stop(c, r);
}
