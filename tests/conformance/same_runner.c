/* The operations of runners, by which two stores are compared. Their queue has one shard, so that
 * each store puts work without a lane into the same. */
#include <baton/shard.h>

#include "same.h"

#define TTL_S 3600
#define ENDS 3
#define KNOWN 4

static const char *const names[SAME_RUNNERS] = {"r", "s"};
static const struct baton_str queue = BATON_STR(SAME_SHARDED);

static struct same_runner *pick_runner(struct same *s, uint32_t n)
{
	same_did(s, " %s", names[n % SAME_RUNNERS]);
	return &s->runners[n % SAME_RUNNERS];
}

static bool is_registered(const struct same_runner *r)
{
	return r->handles[0] && r->handles[1];
}

static void leave(struct same_runner *r)
{
	for (int i = 0; i < SIDES; i++) {
		baton_runner_leave(r->handles[i]);
		r->handles[i] = NULL;
	}
}

void same_runners_leave(struct same *s)
{
	for (size_t i = 0; i < SAME_RUNNERS; i++)
		leave(&s->runners[i]);
}

void same_runner(struct same *s, const uint32_t *n)
{
	struct same_runner *r = pick_runner(s, n[0]);
	enum baton_err e[SIDES];
	const struct baton_runner_ask ask = {.name = baton_str_z(names[n[0] % SAME_RUNNERS]),
	                                     .weight = 1,
	                                     .ttl = baton_duration_s(TTL_S),
	                                     .replace = n[1] % 2 == 0};
	if (is_registered(r) && n[2] % 3 == 0) {
		same_did(s, " leaves");
		leave(r);
		return;
	}
	for (int i = 0; i < SIDES; i++) {
		struct baton_runner *handle = NULL;
		e[i] = baton_runner_register(s->w[i].store, &ask, &handle, NULL);
		if (e[i] != BATON_OK)
			continue;
		baton_runner_free(r->handles[i]);
		r->handles[i] = handle;
	}
	same_did(s, "%s: %s", ask.replace ? " replaces" : "", baton_err_name(e[0]));
	SAME(s, "register", e[0], e[1]);
}

static void compare_owned(struct same *s, const struct baton_shard_answer a[SIDES])
{
	SAME(s, "shard", a[0].err, a[1].err);
	for (int i = 0; i < SIDES && a[i].err == BATON_OK; i++) {
		if (a[i].fence.v < s->shard_fences[i])
			same_differ(s, "the fence of the shard goes back");
		s->shard_fences[i] = a[i].fence.v;
	}
}

void same_shard(struct same *s, const uint32_t *n)
{
	const struct same_runner *r = pick_runner(s, n[0]);
	const struct baton_shard shard = {.queue = queue};
	struct baton_shard_answer answer[SIDES];
	enum baton_err e[SIDES];
	if (!is_registered(r))
		return;
	const bool gives = n[1] % 4 == 0;
	memset(answer, 0, sizeof answer);
	for (int i = 0; i < SIDES; i++)
		e[i] = (gives ? baton_shard_give : baton_shard_take)(r->handles[i], &shard, 1,
		                                                     &answer[i]);
	same_did(s, " %s: %s", gives ? "gives" : "takes", baton_err_name(e[0]));
	SAME(s, "shards", e[0], e[1]);
	if (e[0] != BATON_OK || e[1] != BATON_OK)
		return;
	if (gives)
		SAME(s, "given", answer[0].err, answer[1].err);
	else
		compare_owned(s, answer);
}

static void compare_ended(struct same *s, struct baton_work_ended a[SIDES][ENDS], size_t count)
{
	for (size_t i = 0; i < count; i++) {
		SAME(s, "ended", a[0][i].err, a[1][i].err);
		SAME(s, "state", a[0][i].state, a[1][i].state);
		SAME(s, "due", a[0][i].due.ms, a[1][i].due.ms);
		same_did(s, " ended %s", baton_err_name(a[0][i].err));
	}
}

/* In a server whoever asks for a shard sees what is due in its queue; elsewhere only who has it. So
 * others do not ask there. */
static size_t asks_for(struct same *s, const struct same_runner *r)
{
	struct baton_shard_answer who = {.err = BATON_NOT_HELD};
	if (!world_is_served())
		return 1;
	enum baton_err e = baton_shard_list(s->w[0].store, queue, 0, &who, 1);
	return e == BATON_OK && who.runner == baton_runner_number(r->handles[0]) ? 1 : 0;
}

void same_tick(struct same *s, const uint32_t *n)
{
	const struct same_runner *r = pick_runner(s, n[0]);
	const struct baton_shard shard = {queue, 0, n[1] % 5, n[2] % SAME_BATCHES};
	struct baton_work_claims *given[SIDES] = {NULL, NULL};
	struct baton_work_end ends[SIDES][ENDS];
	struct baton_work_ended ended[SIDES][ENDS];
	struct baton_shard_answer owned[SIDES];
	enum baton_err e[SIDES];
	size_t count = n[3] % (ENDS + 1);
	if (!is_registered(r))
		return;
	const size_t asked = asks_for(s, r);
	memset(ended, 0, sizeof ended);
	memset(owned, 0, sizeof owned);
	for (size_t i = 0; i < count; i++) {
		const struct same_claim *c = same_pick_claim(s, n[4] + (uint32_t)i * n[5]);
		const uint32_t how = n[6 + i % 3] % 8;
		if (!c)
			return;
		for (int side = 0; side < SIDES; side++)
			ends[side][i] = (struct baton_work_end){
				.proof = c->proof[side],
				.how = (enum baton_work_how)(how < 5 ? 1 + how : 1),
				.delay = baton_duration_ms(how == BATON_SNOOZE - 1 ? n[9] % 300
			                                                           : 0)};
	}
	for (int i = 0; i < SIDES; i++) {
		const struct baton_tick tick = {.ends = ends[i],
		                                .end_count = count,
		                                .ended = ended[i],
		                                .shards = &shard,
		                                .shard_count = asked,
		                                .owned = &owned[i]};
		e[i] = baton_runner_tick(r->handles[i], &tick, &given[i]);
	}
	same_did(s, " %u of %u: %s", shard.claims, shard.max, baton_err_name(e[0]));
	SAME(s, "tick", e[0], e[1]);
	if (e[0] == BATON_OK && e[1] == BATON_OK) {
		compare_ended(s, ended, count);
		if (asked > 0)
			compare_owned(s, owned);
	}
	same_claims(s, given);
}

void same_more(struct same *s, const uint32_t *n)
{
	const struct same_runner *r = pick_runner(s, n[0]);
	struct baton_work_claims *given[SIDES] = {NULL, NULL};
	enum baton_err e[SIDES];
	const struct same_claim *c = is_registered(r) ? same_pick_claim(s, n[1]) : NULL;
	if (!c || !c->lane[0])
		return;
	for (int i = 0; i < SIDES; i++) {
		const struct baton_more_ask ask = {.queue = queue,
		                                   .lane = baton_str_z(c->lane),
		                                   .proof = c->proof[i],
		                                   .max = 1 + n[2] % SAME_BATCHES};
		e[i] = baton_runner_more(r->handles[i], &ask, &given[i]);
	}
	same_did(s, ": %s", baton_err_name(e[0]));
	SAME(s, "more", e[0], e[1]);
	same_claims(s, given);
}

/* Whatever it has claimed but the last few. */
void same_settle(struct same *s, const uint32_t *n)
{
	const struct same_runner *r = pick_runner(s, n[0]);
	struct baton_work_proof known[SIDES][KNOWN];
	enum baton_err e[SIDES];
	size_t count = n[1] % (KNOWN + 1);
	if (!is_registered(r))
		return;
	for (size_t i = 0; i < count; i++) {
		const struct same_claim *c = same_pick_claim(s, (uint32_t)i);
		if (!c)
			return;
		known[0][i] = c->proof[0];
		known[1][i] = c->proof[1];
	}
	for (int i = 0; i < SIDES; i++)
		e[i] = baton_runner_settle(r->handles[i], known[i], count);
	same_did(s, ": %s", baton_err_name(e[0]));
	SAME(s, "settle", e[0], e[1]);
}

/* The one that is registered first, whoever it is. */
void same_take_over(struct same *s, const uint32_t *n)
{
	static struct baton_runner_info infos[SIDES][SAME_RUNNERS];
	size_t count[SIDES] = {0, 0};
	enum baton_err e[SIDES];
	for (int i = 0; i < SIDES; i++)
		SAME(s, "runners",
		     baton_runner_list(s->w[i].store, 0, infos[i], SAME_RUNNERS, &count[i]),
		     BATON_OK);
	SAME(s, "runners", count[0], count[1]);
	if (count[0] == 0 || count[0] != count[1])
		return;
	const size_t at = n[0] % count[0];
	same_text(s, "runner", baton_str_z(infos[0][at].name), baton_str_z(infos[1][at].name));
	for (int i = 0; i < SIDES; i++)
		e[i] = baton_runner_take_over(s->w[i].store, &infos[i][at]);
	same_did(s, " %s: %s", infos[0][at].name, baton_err_name(e[0]));
	SAME(s, "take over", e[0], e[1]);
}
