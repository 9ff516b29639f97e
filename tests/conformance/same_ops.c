/* The operations that two stores are compared by. */
#include "same.h"

static const char *const queues[SAME_QUEUES] = {"a", "b", SAME_SHARDED, "c"};
static const char *const lanes[SAME_LANES] = {"", "x", "y", "z"};
static const char *const keys[SAME_KEYS] = {"k", "l", "x"};
static const struct baton_str lists[][SAME_KEYS] = {
	{{"l", 1}, {"k", 1}},
	{{"x", 1}, {"l", 1}},
	{{"k", 1}, {"x", 1}},
	{{"x", 1}, {"k", 1}, {"l", 1}},
};
static const char *const groups[] = {"", "", "g"};
static const char *const sources[] = {"k0", "k1", "k2", "k3", "k4"};
static const struct baton_str payloads[] = {{"one", 3}, {"two", 3}};

void same_did(struct same *s, const char *format, ...)
{
	size_t len = strlen(s->did);
	va_list args;
	va_start(args, format);
	vsnprintf(s->did + len, sizeof s->did - len, format, args);
	va_end(args);
}

/* The words of a refusal are the same too. */
static enum baton_err said(struct same *s, int side, enum baton_err e)
{
	snprintf(s->said[side], sizeof s->said[side], "%s",
	         e == BATON_OK ? "" : baton_err_detail());
	return e;
}

static void compare_said(struct same *s)
{
	same_text(s, "detail", baton_str_z(s->said[0]), baton_str_z(s->said[1]));
}

static const char *pick_queue(const uint32_t *n)
{
	return queues[n[0] % SAME_QUEUES];
}

static const char *pick_lane(uint32_t n)
{
	return lanes[n % SAME_LANES];
}

/* Somebody else, somebody who is dead, or mostly the one who opened the store first, through
 * whichever handle. */
static const struct baton_owner *pick_owner(const struct same *s, int side, uint32_t n)
{
	const struct world *w = &s->w[side];
	return n % 5 == 0 ? &w->other : n % 5 == 1 ? &w->dead : &s->self[side];
}

static struct baton_batch make_batch(struct same *s, const uint32_t *n)
{
	struct baton_batch b = batch_of(pick_queue(n), pick_lane(n[1]), &payloads[n[2] % 2]);
	b.priority = n[3] % 3;
	bool guests = n[0] % SAME_QUEUES >= SAME_GUESTS;
	if (n[11] % 3 == 0 || (guests && n[11] % 3 == 1)) {
		b.key = baton_str_z(keys[n[11] % 9 / 3]);
		b.lane.len = guests ? b.lane.len : 0;
	}
	if (guests && n[11] % 3 == 2 && n[11] % 9 > 2) {
		uint32_t list = n[11] / 9 % 4;
		b.keys = lists[list];
		b.key_count = list == 3 ? 3 : 2;
		same_did(s, " keys %.*s", (int)b.key_count, &"lk xl kx xkl"[list * 3]);
	}
	if (n[4] % 2 == 0) {
		b.slot = BATON_JOIN;
		b.group = baton_str_z(groups[n[5] % 3]);
	} else if (n[4] % 7 == 1) {
		b.cls = BATON_COMMAND;
	}
	if (n[6] % 4 == 0)
		b.delivery = BATON_AFTER_COMMIT;
	if (n[7] % 4 == 0)
		b.delay = baton_duration_ms(n[7] % 700);
	else if (n[7] % 31 == 1)
		b.at.ms = START_MS + n[7] % 100000;
	if (n[8] % 3 == 0)
		b.source = baton_str_z(sources[n[8] % 5]);
	if (n[9] % 6 == 0)
		b.retry = (struct baton_retry){1 + n[9] % 3, BATON_BACKOFF_FIXED,
		                               baton_duration_ms(50), baton_duration_ms(50)};
	same_did(s, " %s/%.*s key %.*s%s%s%s%s", pick_queue(n), (int)b.lane.len, pick_lane(n[1]),
	         (int)b.key.len, b.key.len > 0 ? b.key.ptr : "", b.slot ? " join" : "",
	         b.cls ? " command" : "", b.delivery ? " after-commit" : "",
	         b.retry.attempts ? " retry" : "");
	same_did(s, " priority %u delay %lld at %lld source %.*s", b.priority,
	         (long long)b.delay.ns / 1000000, (long long)b.at.ms, (int)b.source.len,
	         b.source.ptr);
	return b;
}

static void add_id(struct same *s, const struct baton_batch_id *id)
{
	if (s->id_count < SAME_IDS)
		s->ids[s->id_count++] = *id;
}

static void do_put(struct same *s, const uint32_t *n)
{
	struct baton_batch b[3];
	struct baton_put put[SIDES][3];
	enum baton_err e[SIDES];
	size_t count = 1 + (n[10] % 4 == 0 ? n[10] % 3 : 0);
	for (size_t i = 0; i < count; i++) {
		uint32_t own[SAME_NUMBERS];
		for (int j = 0; j < SAME_NUMBERS; j++)
			own[j] = (uint32_t)(n[j] + i * 7919);
		b[i] = make_batch(s, own);
	}
	for (int i = 0; i < SIDES; i++)
		e[i] = said(s, i, baton_work_put(s->w[i].store, b, count, put[i]));
	SAME(s, "put", e[0], e[1]);
	compare_said(s);
	same_did(s, ": %s", baton_err_name(e[0]));
	for (size_t i = 0; i < count && e[0] == BATON_OK && e[1] == BATON_OK; i++) {
		same_text(s, "id", baton_str_z(put[0][i].id.text), baton_str_z(put[1][i].id.text));
		SAME(s, "state", put[0][i].state, put[1][i].state);
		SAME(s, "existing", put[0][i].existing, put[1][i].existing);
		same_did(s, " %s", put[0][i].id.text);
		add_id(s, &put[0][i].id);
		bool guest = b[i].key_count > 0 || (b[i].lane.len > 0 && b[i].key.len > 0);
		s->guests = s->guests ||
		            (guest &&
		             baton_str_equal(b[i].queue, baton_str_z(queues[SAME_QUEUES - 1])));
	}
}

#define TOGETHER 12

#define TOGETHER_KEYS 60

/* Jobs that there is nothing unusual about, which a store may keep in one row; of some, most have
 * keys that few others have. */
static void do_put_together(struct same *s, const uint32_t *n)
{
	static const struct baton_str payload = BATON_STR("together");
	struct baton_batch b[TOGETHER];
	struct baton_put put[SIDES][TOGETHER];
	char text[TOGETHER][4];
	size_t count = 2 + n[1] % (TOGETHER - 1);
	for (size_t i = 0; i < count; i++) {
		b[i] = (struct baton_batch){.queue = baton_str_z(pick_queue(n)),
		                            .priority = n[2] % 8 == 0 ? 3 : 0,
		                            .payloads = &payload,
		                            .count = 1};
		uint32_t key = (uint32_t)(n[4] + i * (1 + n[5] % 7)) % TOGETHER_KEYS;
		if (n[3] % 3 == 0 || key == 0)
			continue;
		snprintf(text[i], sizeof text[i], "%u", key);
		b[i].key = key < 3 ? baton_str_z(keys[key]) : baton_str_z(text[i]);
		same_did(s, " key %.*s", (int)b[i].key.len, b[i].key.ptr);
	}
	enum baton_err e[SIDES];
	for (int i = 0; i < SIDES; i++)
		e[i] = said(s, i, baton_work_put(s->w[i].store, b, count, put[i]));
	SAME(s, "put", e[0], e[1]);
	compare_said(s);
	for (size_t i = 0; i < count && e[0] == BATON_OK && e[1] == BATON_OK; i++) {
		same_text(s, "id", baton_str_z(put[0][i].id.text), baton_str_z(put[1][i].id.text));
		add_id(s, &put[0][i].id);
	}
	same_did(s, " %zu of %s", count, pick_queue(n));
}

/* Fences are different numbers on both sides, but on each they grow along a lane, whatever the mode
 * of its queue was in between. */
static void check_fence(struct same *s, int side, const struct baton_work_claim *c)
{
	for (int q = 0; q < SAME_QUEUES; q++) {
		for (int l = 1; l < SAME_LANES; l++) {
			uint64_t *last = &s->fences[side][q][l];
			if (!baton_str_equal(c->queue, baton_str_z(queues[q])) ||
			    !baton_str_equal(c->lane, baton_str_z(lanes[l])))
				continue;
			if (c->fence.v <= *last)
				same_differ(s, "the fence of %s goes back", c->proof.id);
			*last = c->fence.v;
		}
	}
	for (int k = 0; k < SAME_KEYS; k++) {
		uint64_t *last = &s->key_fences[side][k];
		if (!baton_str_equal(c->queue, baton_str_z(queues[SAME_QUEUES - 1])) ||
		    !same_has_key(c->keys, c->key_count, baton_str_z(keys[k])))
			continue;
		if (c->fence.v <= *last && s->guests)
			same_differ(s, "the fence of %s goes back along its key", c->proof.id);
		*last = c->fence.v;
	}
}

static void compare_claimed(struct same *s, const struct baton_work_claim *a,
                            const struct baton_work_claim *b)
{
	same_text(s, "lane", a->lane, b->lane);
	same_keys(s, a->keys, a->key_count, b->keys, b->key_count);
	same_text(s, "key", a->key, b->key);
	same_text(s, "queue", a->queue, b->queue);
	SAME(s, "claimed_at", a->claimed_at.ms, b->claimed_at.ms);
	SAME(s, "expires_at", a->expires_at.ms, b->expires_at.ms);
	SAME(s, "hold", a->hold.ns, b->hold.ns);
	SAME(s, "batches of a claim", a->count, b->count);
	for (size_t i = 0; i < a->count && i < b->count; i++) {
		const struct baton_work_batch *x = &a->batches[i], *y = &b->batches[i];
		same_text(s, "claimed batch", baton_str_z(x->id.text), baton_str_z(y->id.text));
		SAME(s, "attempt", x->attempt, y->attempt);
		SAME(s, "seq", x->seq, y->seq);
		same_text(s, "group", x->group, y->group);
		same_text(s, "payload", x->payloads[0], y->payloads[0]);
	}
}

static void keep_claim(struct same *s, const struct baton_work_claim *a,
                       const struct baton_work_claim *b)
{
	if (s->claim_count == SAME_CLAIMS)
		return;
	struct same_claim *c = &s->claims[s->claim_count++];
	c->proof[0] = a->proof;
	c->proof[1] = b->proof;
	c->count = a->count < SAME_BATCHES ? a->count : SAME_BATCHES;
	for (size_t i = 0; i < c->count; i++)
		c->ids[i] = a->batches[i].id;
	snprintf(c->lane, sizeof c->lane, "%.*s", (int)a->lane.len, a->lane.ptr);
}

void same_claims(struct same *s, struct baton_work_claims *given[SIDES])
{
	size_t count[SIDES] = {given[0] ? given[0]->count : 0, given[1] ? given[1]->count : 0};
	SAME(s, "claims", count[0], count[1]);
	for (size_t i = 0; i < count[0] && i < count[1]; i++) {
		const struct baton_work_claim *a = &given[0]->claims[i], *b = &given[1]->claims[i];
		compare_claimed(s, a, b);
		check_fence(s, 0, a);
		check_fence(s, 1, b);
		same_check_key(s, 0, a);
		same_check_key(s, 1, b);
		keep_claim(s, a, b);
		same_did(s, " %s(%zu)", a->batches[0].id.text, a->count);
	}
	baton_work_claims_free(given[0]);
	baton_work_claims_free(given[1]);
}

static void do_claim(struct same *s, const uint32_t *n)
{
	struct baton_work_claims *given[SIDES] = {NULL, NULL};
	enum baton_err e[SIDES];
	struct baton_work_ask ask = {
		.queue = baton_str_z(pick_queue(n)),
		.ttl = baton_duration_ms(1 + n[1] % 400),
		.claims = n[2] % 5,
		.max = n[3] % SAME_BATCHES,
	};
	for (int i = 0; i < SIDES; i++) {
		ask.owner = pick_owner(s, i, n[4]);
		e[i] = said(s, i, baton_work_claim(s->w[i].store, &ask, &given[i]));
	}
	same_did(s, " %s %u of %u: %s", pick_queue(n), ask.claims, ask.max, baton_err_name(e[0]));
	SAME(s, "claim", e[0], e[1]);
	compare_said(s);
	same_claims(s, given);
}

/* The lane of n[1] that has a name. */
static uint32_t named_lane(const uint32_t *n)
{
	return 1 + n[1] % (SAME_LANES - 1);
}

static void compare_answers(struct same *s, const struct baton_lease_answer a[SIDES],
                            struct same_lease *keep)
{
	SAME(s, "lease", a[0].err, a[1].err);
	same_did(s, ": %s", baton_err_name(a[0].err));
	if (a[0].err != BATON_OK || a[1].err != BATON_OK) {
		SAME(s, "own", a[0].holder.own, a[1].holder.own);
		SAME(s, "end of the holder", a[0].holder.expires_at.ms, a[1].holder.expires_at.ms);
		return;
	}
	SAME(s, "end", a[0].lease.expires_at.ms, a[1].lease.expires_at.ms);
	for (int i = 0; i < SIDES && keep->given; i++) {
		if (a[i].lease.fence.v < keep->lease[i].fence.v)
			same_differ(s, "a lease's fence goes back");
	}
	keep->given = true;
	keep->lease[0] = a[0].lease;
	keep->lease[1] = a[1].lease;
}

static void take_lease(struct same *s, const uint32_t *n, const char *subject,
                       struct same_lease *keep)
{
	struct baton_lease_answer answer[SIDES];
	same_did(s, " %s", subject);
	for (int i = 0; i < SIDES; i++) {
		const struct baton_lease_ask ask = {
			.subject = baton_str_z(subject),
			.owner = pick_owner(s, i, n[2]),
			.ttl = baton_duration_ms(1 + n[3] % 3000),
			.reentrant = n[4] % 3 == 0,
		};
		enum baton_err e = baton_lease_claim(s->w[i].store, &ask, 1, &answer[i]);
		SAME(s, "lease claim", e, BATON_OK);
		if (e != BATON_OK)
			return;
	}
	compare_answers(s, answer, keep);
}

static void do_hold_lane(struct same *s, const uint32_t *n)
{
	char subject[BATON_LEASE_SUBJECT_MAX + 1];
	uint32_t lane = named_lane(n);
	baton_lane_subject(baton_str_z(pick_queue(n)), baton_str_z(lanes[lane]), subject);
	take_lease(s, n, subject, &s->lanes[n[0] % SAME_QUEUES][lane]);
}

static void do_hold_pull(struct same *s, const uint32_t *n)
{
	char subject[16];
	snprintf(subject, sizeof subject, "pull/%s", pick_queue(n));
	take_lease(s, n, subject, &s->pulls[n[0] % SAME_QUEUES]);
}

/* Gives back, renews or takes away the lease of a lane or of a queue. */
static void do_lease(struct same *s, const uint32_t *n)
{
	char subject[BATON_LEASE_SUBJECT_MAX + 1];
	uint32_t lane = named_lane(n);
	bool pull = n[2] % 3 == 0;
	struct same_lease *kept =
		pull ? &s->pulls[n[0] % SAME_QUEUES] : &s->lanes[n[0] % SAME_QUEUES][lane];
	enum baton_err answer[SIDES] = {BATON_OK, BATON_OK};
	struct baton_lease_answer forced[SIDES];
	baton_lane_subject(baton_str_z(pick_queue(n)), baton_str_z(lanes[lane]), subject);
	if (pull)
		snprintf(subject, sizeof subject, "pull/%s", pick_queue(n));
	same_did(s, " %s %u", subject, n[3] % 4);
	for (int i = 0; i < SIDES; i++) {
		const struct baton_str name = baton_str_z(subject);
		const struct baton_lease_proof proof = {name, &kept->lease[i]};
		struct baton_store *store = s->w[i].store;
		if (n[3] % 4 == 0) {
			baton_lease_force(store, &name, 1, &forced[i]);
			answer[i] = forced[i].err;
		} else if (n[3] % 4 == 1) {
			baton_lease_renew(store, &proof, 1, baton_duration_ms(1 + n[4] % 2000),
			                  n[5] % 2, &answer[i]);
		} else {
			baton_lease_release(store, &proof, 1, &answer[i]);
		}
	}
	same_did(s, ": %s", baton_err_name(answer[0]));
	SAME(s, "lease", answer[0], answer[1]);
	SAME(s, "end of a lease", kept->lease[0].expires_at.ms, kept->lease[1].expires_at.ms);
}

static void do_lane_claim(struct same *s, const uint32_t *n)
{
	uint32_t lane = named_lane(n);
	struct same_lease *kept = &s->lanes[n[0] % SAME_QUEUES][lane];
	struct baton_work_claims *given[SIDES] = {NULL, NULL};
	struct baton_batch_id ids[3];
	enum baton_err e[SIDES];
	struct baton_lane_ask ask = lane_ask(pick_queue(n), lanes[lane], NULL);
	ask.ttl = baton_duration_ms(1 + n[3] % 600);
	ask.at = n[4] % 2 ? BATON_IDLE : BATON_CHECKPOINT;
	ask.max = n[5] % SAME_BATCHES;
	ask.pass = n[6] % 2;
	if (n[7] % 3 == 0 && s->id_count > 0) {
		ask.ids = ids;
		ask.count = n[7] % 7 == 0 ? 0 : 1 + n[8] % 3;
		for (size_t i = 0; i < ask.count; i++)
			ids[i] = s->ids[s->id_count - 1 -
			                (n[9] % 6 + i * (n[10] % 3)) % s->id_count];
	}
	same_did(s, " %s/%s %s max %u%s", pick_queue(n), lanes[lane],
	         ask.at == BATON_IDLE ? "idle" : "checkpoint", ask.max, ask.pass ? " pass" : "");
	for (size_t i = 0; ask.ids && i < ask.count; i++)
		same_did(s, " id %s", ids[i].text);
	for (int i = 0; i < SIDES; i++) {
		ask.lease = &kept->lease[i];
		e[i] = baton_lane_claim(s->w[i].store, &ask, &given[i]);
	}
	same_did(s, ": %s", baton_err_name(e[0]));
	SAME(s, "lane claim", e[0], e[1]);
	same_claims(s, given);
}

const struct same_claim *same_pick_claim(struct same *s, uint32_t n)
{
	size_t last = s->claim_count < 12 ? s->claim_count : 12;
	const struct same_claim *c = last ? &s->claims[s->claim_count - 1 - n % last] : NULL;
	if (c)
		same_did(s, " %s", c->proof[0].id);
	return c;
}

static void do_renew(struct same *s, const uint32_t *n)
{
	const struct same_claim *c = same_pick_claim(s, n[0]);
	struct baton_work_renewal answer[SIDES];
	if (!c)
		return;
	for (int i = 0; i < SIDES; i++)
		SAME(s, "renew",
		     baton_work_renew(s->w[i].store, &c->proof[i], 1,
		                      baton_duration_ms(1 + n[1] % 500), &answer[i]),
		     BATON_OK);
	same_did(s, ": %s", baton_err_name(answer[0].err));
	SAME(s, "renewal", answer[0].err, answer[1].err);
	SAME(s, "end", answer[0].expires_at.ms, answer[1].expires_at.ms);
	SAME(s, "cancel", answer[0].cancel, answer[1].cancel);
}

/* An end of that claim, but for the proof. */
static struct baton_work_end make_end(struct same *s, const struct same_claim *c, const uint32_t *n,
                                      struct baton_batch *emit)
{
	static const char *const hows[] = {"", "complete", "fail", "reject", "abandon", "snooze"};
	struct baton_work_end end = {.how = (enum baton_work_how)(n[1] % 7 < 5 ? 1 + n[1] % 7 : 1)};
	bool completes = end.how == BATON_COMPLETE;
	same_did(s, " %s", hows[end.how]);
	if (n[2] % 3 == 0) {
		end.ids = c->ids + n[3] % c->count;
		end.count = 1 + n[4] % (c->count - n[3] % c->count);
		same_did(s, " %zu from %s", end.count, end.ids[0].text);
	}
	if (completes && n[5] % 3 == 0)
		end.result = BATON_STR("the result");
	if (completes && n[6] % 3 == 0) {
		*emit = make_batch(s, n);
		end.emits = emit;
		end.emit_count = 1;
	}
	if (end.how == BATON_FAIL || end.how == BATON_REJECT)
		end.error = n[5] % 2 ? BATON_STR("it broke") : BATON_STR("");
	if (end.how == BATON_SNOOZE || n[7] % 3 == 0)
		end.delay = baton_duration_ms(n[7] % 300);
	return end;
}

static void compare_ended(struct same *s, const struct baton_work_ended answer[SIDES])
{
	same_did(s, ": %s", baton_err_name(answer[0].err));
	SAME(s, "end", answer[0].err, answer[1].err);
	SAME(s, "state", answer[0].state, answer[1].state);
	SAME(s, "due", answer[0].due.ms, answer[1].due.ms);
}

static void do_end(struct same *s, const uint32_t *n)
{
	const struct same_claim *c = same_pick_claim(s, n[0]);
	struct baton_work_ended answer[SIDES];
	struct baton_batch emit;
	if (!c)
		return;
	struct baton_work_end end = make_end(s, c, n, &emit);
	for (int i = 0; i < SIDES; i++) {
		end.proof = c->proof[i];
		enum baton_err e = baton_work_end(s->w[i].store, &end, 1, &answer[i]);
		if (e != BATON_OK)
			same_differ(s, "%s: %s: %s", s->w[i].where, baton_err_name(e),
			            baton_err_detail());
	}
	compare_ended(s, answer);
}

static void do_next(struct same *s, const uint32_t *n)
{
	const struct same_claim *c = same_pick_claim(s, n[0]);
	struct baton_work_claims *given[SIDES] = {NULL, NULL};
	struct baton_work_ended answer[SIDES];
	struct baton_batch emit;
	enum baton_err e[SIDES];
	if (!c)
		return;
	struct baton_work_end end = make_end(s, c, n, &emit);
	/* What gets a number: a server that refuses the claim may have drawn it in vain. */
	end.emit_count = 0;
	if (end.how == BATON_FAIL || end.how == BATON_SNOOZE)
		end = (struct baton_work_end){.how = BATON_REJECT};
	struct baton_work_ask ask = {
		.queue = baton_str_z(queues[n[8] % SAME_QUEUES]),
		.ttl = baton_duration_ms(1 + n[9] % 400),
		.claims = n[10] % 5,
		.max = n[11] % SAME_BATCHES,
	};
	for (int i = 0; i < SIDES; i++) {
		end.proof = c->proof[i];
		ask.owner = pick_owner(s, i, n[5]);
		e[i] = said(s, i,
		            baton_work_next(s->w[i].store, &end, 1, &answer[i], &ask, &given[i]));
	}
	compare_ended(s, answer);
	same_did(s, ", %u of %u of %.1s: %s", ask.claims, ask.max, ask.queue.ptr,
	         baton_err_name(e[0]));
	SAME(s, "next", e[0], e[1]);
	compare_said(s);
	same_claims(s, given);
}

static const struct baton_batch_id *pick_id(struct same *s, uint32_t n)
{
	size_t last = s->id_count < 30 ? s->id_count : 30;
	const struct baton_batch_id *id = last ? &s->ids[s->id_count - 1 - n % last] : NULL;
	if (id)
		same_did(s, " %s", id->text);
	return id;
}

static void do_cancel(struct same *s, const uint32_t *n)
{
	const struct baton_batch_id *id = pick_id(s, n[0]);
	if (id)
		SAME(s, "cancel", cancel(&s->w[0], id), cancel(&s->w[1], id));
}

static void do_revive(struct same *s, const uint32_t *n)
{
	const struct baton_batch_id *id = pick_id(s, n[0]);
	if (id)
		SAME(s, "revive", revive(&s->w[0], id), revive(&s->w[1], id));
}

static void do_advance(struct same *s, const uint32_t *n)
{
	int64_t ms = n[0] % 40 == 0 ? 3000 : n[1] % 120;
	same_did(s, " %lld", (long long)ms);
	for (int i = 0; i < SIDES; i++)
		advance(&s->w[i], ms);
}

/* Of the queue of runners: mostly as it is, and with what goes with it. */
static void set_scope(struct same *s, const uint32_t *n, struct baton_queue_policy *p)
{
	p->key_scope = policy(&s->w[0], SAME_SHARDED).key_scope;
	if (n[3] / 200 % 4 == 0)
		p->key_scope = (enum baton_key_scope)(1 + n[3] / 800 % BATON_KEY_SCOPE_CLUSTER);
	if (p->key_scope == BATON_KEY_SCOPE_CLUSTER || n[3] / 2400 % 8 == 0)
		return;
	p->hold_on_retry = BATON_HOLD_GIVE_UP;
	p->on_conflict = BATON_CONFLICT_WAIT;
	if (n[3] / 19200 % 2)
		p->key_fair = BATON_KEY_FAIR_ON;
	if (n[3] / 38400 % 2)
		p->key_rate = (struct baton_key_rate){1 + n[3] / 76800 % 3, baton_duration_ms(100)};
}

static void do_policy(struct same *s, const uint32_t *n)
{
	struct baton_queue_policy p = baton_queue_policy_default();
	struct baton_retry retry = {1 + n[1] % 4,
	                            n[2] % 2 ? BATON_BACKOFF_FIXED : BATON_BACKOFF_NONE,
	                            baton_duration_ms(1 + n[3] % 200), baton_duration_ms(1000)};
	enum baton_err e[SIDES];
	p.retry = p.retry_lane = retry;
	p.on_retry = n[4] % 2 ? BATON_ON_RETRY_BLOCK : BATON_ON_RETRY_PASS;
	p.on_dead = n[5] % 2 ? BATON_ON_DEAD_CONTINUE : BATON_ON_DEAD_HOLD;
	p.keep = baton_duration_ms(n[6] % 2 ? 0 : 1 + n[6] % 500);
	p.dedupe = baton_duration_ms(1 + n[7] % 500);
	p.waiting_max = n[8] % 4 == 0 ? 1 + n[8] % 20 : 0;
	p.mode = (enum baton_queue_mode)(1 + n[9] % 3);
	p.paused = n[10] % 8 == 0;
	p.key_limit = 1 + n[11] % 3;
	p.hold_on_retry = n[11] / 3 % 2 ? BATON_HOLD_KEEP : BATON_HOLD_GIVE_UP;
	p.on_conflict = (enum baton_on_conflict)(1 + n[11] / 6 % BATON_CONFLICT_REPLACE);
	p.key_waiting_max = n[8] % 3 == 0 ? 1 + n[8] / 3 % 5 : 0;
	p.key_fair = n[10] / 8 % 2 ? BATON_KEY_FAIR_ON : BATON_KEY_FAIR_OFF;
	if (n[10] / 16 % 2)
		p.key_rate = (struct baton_key_rate){1 + n[10] / 32 % 3,
		                                     baton_duration_ms(1 + n[10] / 96 % 400)};
	p.key_ttl = baton_duration_ms(n[9] / 3 % 3 == 0 ? 1 + n[9] / 9 % 300 : 0);
	if (n[2] / 2 % 4) { /* as most queues are */
		p.keep = p.key_ttl = (struct baton_duration){0};
		p.on_conflict = BATON_CONFLICT_WAIT;
		p.key_waiting_max = 0;
		p.key_fair = BATON_KEY_FAIR_OFF;
		p.key_rate = (struct baton_key_rate){.starts = 0};
	}
	/* Where lanes have keys the rest would be refused nearly always. */
	if (n[0] % SAME_QUEUES >= SAME_GUESTS && n[0] / SAME_QUEUES % 8 > 0) {
		p.mode = (enum baton_queue_mode)(1 + n[9] % 2);
		p.on_conflict = BATON_CONFLICT_WAIT;
		p.key_fair = BATON_KEY_FAIR_OFF;
	}
	if (n[0] % SAME_QUEUES == SAME_GUESTS)
		set_scope(s, n, &p);
	if (n[0] % SAME_QUEUES == SAME_GUESTS) {
		p.shards = 1;
		/* In a server, a runner gets the work of an open queue with its second tick. */
		if (n[9] / 27 % 4 != 0 || world_is_served())
			p.mode = BATON_QUEUE_RUNNER;
	}
	/* They leave their class only while there is nothing in them, and join again. */
	bool classed = s->classed && n[0] % SAME_QUEUES >= SAME_CLASS &&
	               (n[0] % SAME_QUEUES != SAME_GUESTS || !world_is_served());
	if (classed && n[4] / 2 % 16 > 0) {
		snprintf(p.key_class, sizeof p.key_class, "shared");
		if (n[0] / SAME_QUEUES % 8 > 0) {
			p.mode = p.mode == BATON_QUEUE_LANE ? BATON_QUEUE_PULL : p.mode;
		}
	}
	for (int i = 0; i < SIDES; i++)
		e[i] = said(s, i, baton_queue_set(s->w[i].store, baton_str_z(pick_queue(n)), &p));
	same_did(s, " %s: %s", pick_queue(n), baton_err_name(e[0]));
	same_did(s,
	         " mode %d attempts %u on_retry %d on_dead %d keep %lld dedupe %lld waiting %llu%s",
	         (int)p.mode, retry.attempts, (int)p.on_retry, (int)p.on_dead,
	         (long long)p.keep.ns / 1000000, (long long)p.dedupe.ns / 1000000,
	         (unsigned long long)p.waiting_max, p.paused ? " paused" : "");
	same_did(s, " key_limit %u hold_on_retry %d on_conflict %d key_waiting_max %u fair %d",
	         p.key_limit, (int)p.hold_on_retry, (int)p.on_conflict, p.key_waiting_max,
	         (int)p.key_fair);
	same_did(s, " rate %llu/%lld key_ttl %lld scope %d class %s",
	         (unsigned long long)p.key_rate.starts, (long long)p.key_rate.window.ns / 1000000,
	         (long long)p.key_ttl.ns / 1000000, (int)p.key_scope, p.key_class);
	SAME(s, "queue_set", e[0], e[1]);
	compare_said(s);
}

static void do_pause(struct same *s, const uint32_t *n)
{
	struct baton_str queue = baton_str_z(pick_queue(n));
	bool paused = n[1] % 4 == 0;
	same_did(s, " %s %d", pick_queue(n), paused);
	SAME(s, "pause", baton_queue_pause(s->w[0].store, queue, paused),
	     baton_queue_pause(s->w[1].store, queue, paused));
}

/* How much there is to forget is each store's own business. */
static void do_tidy(struct same *s, const uint32_t *n)
{
	for (int i = 0; i < SIDES; i++)
		SAME(s, "tidy", baton_store_tidy(s->w[i].store, n[0] % 50, NULL), BATON_OK);
}

static const struct {
	const char *name;
	void (*apply)(struct same *s, const uint32_t *n);
	uint32_t weight;
} kinds[] = {
	{"put", do_put, 24},
	{"put together", do_put_together, 12},
	{"claim", do_claim, 18},
	{"hold lane", do_hold_lane, 5},
	{"hold pull", do_hold_pull, 2},
	{"lease", do_lease, 3},
	{"lane claim", do_lane_claim, 14},
	{"renew", do_renew, 6},
	{"end", do_end, 18},
	{"next", do_next, 8},
	{"cancel", do_cancel, 5},
	{"revive", do_revive, 5},
	{"advance", do_advance, 12},
	{"policy", do_policy, 2},
	{"pause", do_pause, 2},
	{"tidy", do_tidy, 1},
	{"runner", same_runner, 3},
	{"shard", same_shard, 4},
	{"tick", same_tick, 14},
	{"more", same_more, 3},
	{"settle", same_settle, 1},
	{"take over", same_take_over, 1},
};
#define KINDS (sizeof kinds / sizeof kinds[0])

uint32_t same_kind(uint64_t lot)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < KINDS; i++)
		sum += kinds[i].weight;
	lot %= sum;
	uint32_t kind = 0;
	while (lot >= kinds[kind].weight)
		lot -= kinds[kind++].weight;
	return kind;
}

/* What one handle has kept in memory must not count when another has written. */
static void turn_to_twin(struct same *s)
{
	for (int i = 0; i < SIDES; i++) {
		struct baton_store *store = s->w[i].store, *twin = world_twin(&s->w[i]);
		if (twin == store)
			continue;
		s->w[i].store = twin;
		s->w[i].twin = store;
	}
}

void same_apply(struct same *s, const struct op *op)
{
	bool turns = op->n[SAME_NUMBERS - 1] >> 16 & 1;
	snprintf(s->did, sizeof s->did, "%s%s", turns ? "by the other: " : "",
	         kinds[op->kind].name);
	if (turns)
		turn_to_twin(s);
	kinds[op->kind].apply(s, op->n);
}
