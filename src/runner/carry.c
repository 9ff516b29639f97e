/* Carries what the core asks for to the store, and the answers back. */
#include "runner/carry.h"

#include <stdio.h>

#include "base/fail.h"
#include "base/mem.h"

enum baton_err carrier_init(struct carrier *c, const struct carrier_options *options)
{
	*c = (struct carrier){.o = *options};
	c->infos = mem_new(options->alloc, BATON_RUNNERS_MAX, sizeof *c->infos);
	c->fates = mem_new(options->alloc, BATON_RUNNERS_MAX, sizeof *c->fates);
	return c->infos && c->fates
	               ? BATON_OK
	               : fail_memory(BATON_RUNNERS_MAX * sizeof *c->infos, "a list of runners");
}

/* The handle is of no use any more. */
static void retire(struct carrier *c)
{
	if (c->runner && c->o.retire)
		c->o.retire(c->o.arg, c->runner);
	else
		baton_runner_free(c->runner);
	c->runner = NULL;
}

void carrier_done(struct carrier *c)
{
	retire(c);
	mem_free(c->o.alloc, c->infos, BATON_RUNNERS_MAX, sizeof *c->infos);
	mem_free(c->o.alloc, c->fates, BATON_RUNNERS_MAX, sizeof *c->fates);
	for (size_t i = 0; i < c->o.serve_count; i++)
		mem_free(c->o.alloc, c->owners[i], c->owner_count[i], sizeof *c->owners[i]);
}

static enum baton_err do_register(struct carrier *c, struct core_answer *ret)
{
	retire(c);
	enum baton_err e = baton_runner_register(c->o.store, &c->o.ask, &c->runner, &ret->other);
	if (e == BATON_YIELD)
		ret->fate = c->o.fate(c->o.arg, &ret->other);
	if (e != BATON_OK)
		return e;
	ret->number = baton_runner_number(c->runner);
	if (c->o.began)
		c->o.began(c->o.arg, c->runner);
	return BATON_OK;
}

static enum baton_err room(struct carrier *c, size_t i, uint32_t count)
{
	if (c->owner_count[i] >= count)
		return BATON_OK;
	struct baton_shard_answer *owners =
		mem_resize(c->o.alloc, c->owners[i], c->owner_count[i], count, sizeof *owners);
	if (!owners)
		return fail_memory(count * sizeof *owners, "a list of shards");
	c->owners[i] = owners;
	c->owner_count[i] = count;
	return BATON_OK;
}

static enum baton_err look_at_queue(struct carrier *c, size_t i)
{
	struct baton_str queue = c->o.serves[i].queue;
	struct baton_queue_info info;
	c->seen[i] = (struct core_queue_seen){.there = false};
	enum baton_err e = baton_queue_get(c->o.store, queue, &info);
	if (e == BATON_NOT_FOUND)
		return BATON_OK;
	if (e == BATON_OK)
		e = room(c, i, info.policy.shards);
	if (e == BATON_OK)
		e = baton_shard_list(c->o.store, queue, 0, c->owners[i], info.policy.shards);
	if (e != BATON_OK)
		return e;
	c->seen[i] = (struct core_queue_seen){
		.there = true,
		.served = info.policy.mode == BATON_QUEUE_OPEN ||
	                  info.policy.mode == BATON_QUEUE_RUNNER,
		.paused = info.policy.paused,
		.shards = info.policy.shards,
		.owners = c->owners[i],
	};
	return BATON_OK;
}

static enum baton_err do_survey(struct carrier *c, struct core_answer *ret)
{
	c->survey = (struct core_survey){.runners = c->infos, .fates = c->fates, .queues = c->seen};
	enum baton_err e = baton_runner_list(c->o.store, 0, c->infos, BATON_RUNNERS_MAX,
	                                     &c->survey.runner_count);
	for (size_t i = 0; i < c->survey.runner_count && e == BATON_OK; i++)
		c->fates[i] = c->o.fate(c->o.arg, &c->infos[i]);
	for (size_t i = 0; i < c->o.serve_count && e == BATON_OK; i++)
		e = look_at_queue(c, i);
	c->survey.cancels = c->cancels;
	if (e == BATON_OK && c->runner)
		e = baton_runner_cancels(c->runner, c->cancels, CARRY_CANCELS,
		                         &c->survey.cancel_count);
	ret->survey = &c->survey;
	return e;
}

static enum baton_err do_tick(struct carrier *c, const struct core_request *r,
                              struct core_answer *ret)
{
	const struct baton_tick tick = {
		.ends = r->ends,
		.end_count = r->end_count,
		.ended = r->ended,
		.shards = r->shards,
		.shard_count = r->shard_count,
		.owned = r->answers,
		.claims = r->claims,
	};
	return baton_runner_tick(c->runner, &tick, &ret->claims);
}

static enum baton_err do_leave(struct carrier *c)
{
	enum baton_err e = baton_runner_unregister(c->runner);
	if (e == BATON_OK || e == BATON_NOT_HELD)
		retire(c);
	return e;
}

static enum baton_err do_probe(struct carrier *c)
{
	size_t count;
	return baton_runner_list(c->o.store, 0, c->infos, 1, &count);
}

static enum baton_err do_registered(struct carrier *c, const struct core_request *r,
                                    struct core_answer *ret)
{
	switch (r->kind) {
	case CORE_TAKE:
		return baton_shard_take(c->runner, r->shards, r->shard_count, r->answers);
	case CORE_GIVE:
		return baton_shard_give(c->runner, r->shards, r->shard_count, r->answers);
	case CORE_TICK:
		return do_tick(c, r, ret);
	case CORE_MORE:
		return baton_runner_more(c->runner, r->more, &ret->claims);
	case CORE_SETTLE:
		return baton_runner_settle(c->runner, r->proofs, r->proof_count);
	case CORE_PROVE:
		return baton_runner_prove(c->runner);
	case CORE_TELL:
		return r->report.ptr
		               ? baton_runner_report(c->runner, baton_str_z(r->text), r->report)
		               : baton_runner_tell(c->runner, baton_str_z(r->text));
	case CORE_LEAVE:
		return do_leave(c);
	case CORE_REGISTER:
	case CORE_SURVEY:
	case CORE_TAKE_OVER:
	case CORE_WISH:
	case CORE_PROBE:
		break;
	}
	return BATON_SYSTEM;
}

static enum baton_err carry(struct carrier *c, const struct core_request *r,
                            struct core_answer *ret)
{
	switch (r->kind) {
	case CORE_REGISTER:
		return do_register(c, ret);
	case CORE_SURVEY:
		return do_survey(c, ret);
	case CORE_TAKE_OVER:
		return baton_runner_take_over(c->o.store, r->victim);
	case CORE_WISH:
		return baton_runner_wish(c->o.store,
		                         r->victim ? baton_str_z(r->victim->name) : c->o.ask.name,
		                         r->wish);
	case CORE_PROBE:
		return do_probe(c);
	case CORE_TAKE:
	case CORE_GIVE:
	case CORE_TICK:
	case CORE_MORE:
	case CORE_SETTLE:
	case CORE_PROVE:
	case CORE_TELL:
	case CORE_LEAVE:
		break;
	}
	return c->runner ? do_registered(c, r, ret) : BATON_NOT_HELD;
}

void carry_out(struct carrier *c, const struct core_request *request, struct core_answer *ret)
{
	*ret = (struct core_answer){.sent = c->o.clock->now(c->o.clock)};
	ret->err = carry(c, request, ret);
	if (ret->err != BATON_OK)
		snprintf(ret->why, sizeof ret->why, "%s", baton_err_detail());
}
