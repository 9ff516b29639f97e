/* Tokens and acknowledgements against a model that has no index, no heap and no list. */
#include <string.h>

#include "handoff/acks.h"
#include "support/fault.h"
#include "support/harness.h"
#include "support/rng.h"
#include "support/soak.h"

#define MAX 12
#define TTL_MS 40
#define TIMEOUT_MS 15
#define CONNECTIONS 20
#define BACKENDS 3

struct model_token {
	bool used;
	struct token token;
	uint64_t generation;
	uint64_t connection;
	int64_t expires;
};

struct model_ack {
	bool used;
	struct token token;
	uint64_t backend;
	uint64_t tag;
	int64_t since;
	int64_t deadline;
	uint64_t order;
};

struct world {
	struct rng rng;
	struct fault fault;
	struct tokens tokens;
	struct acks acks;
	struct model_token model_tokens[MAX];
	struct model_ack model_acks[MAX];
	struct token known[64]; /* the last that were issued */
	unsigned known_count;
	uint64_t orders;
	int64_t now; /* ns */
};

/* Few enough values that they are drawn twice now and then. */
static enum baton_err draw(void *arg, struct token *ret)
{
	struct world *w = arg;
	memset(ret, 0, sizeof *ret);
	ret->bytes[0] = (uint8_t)rng_below(&w->rng, 3);
	ret->bytes[15] = (uint8_t)rng_below(&w->rng, 20);
	return BATON_OK;
}

static struct baton_mono now_of(const struct world *w)
{
	return (struct baton_mono){w->now};
}

static struct token_binding binding_of(struct world *w)
{
	return (struct token_binding){BATON_STR("chat"), rng_below(&w->rng, 2),
	                              rng_below(&w->rng, CONNECTIONS)};
}

static struct token any_token(struct world *w)
{
	struct token token;
	if (w->known_count > 0 && rng_below(&w->rng, 8) > 0) {
		unsigned last = w->known_count < 64 ? w->known_count : 64;
		return w->known[rng_below(&w->rng, last)];
	}
	draw(w, &token);
	return token;
}

static struct model_token *model_find(struct world *w, const struct token *token)
{
	for (int i = 0; i < MAX; i++)
		if (w->model_tokens[i].used &&
		    memcmp(&w->model_tokens[i].token, token, sizeof *token) == 0)
			return &w->model_tokens[i];
	return NULL;
}

static void model_revoke(struct world *w, const struct token *token)
{
	struct model_token *m = model_find(w, token);
	if (m)
		m->used = false;
}

static unsigned model_pending(const struct world *w)
{
	unsigned n = 0;
	for (int i = 0; i < MAX; i++)
		n += w->model_tokens[i].used;
	return n;
}

static void model_sweep(struct world *w)
{
	for (int i = 0; i < MAX; i++)
		if (w->model_tokens[i].expires <= w->now)
			w->model_tokens[i].used = false;
}

static struct model_ack *model_ack(struct world *w, const struct token *token)
{
	for (int i = 0; i < MAX; i++)
		if (w->model_acks[i].used &&
		    memcmp(&w->model_acks[i].token, token, sizeof *token) == 0)
			return &w->model_acks[i];
	return NULL;
}

static void step_issue(struct world *w)
{
	struct token_binding b = binding_of(w);
	struct token token;
	enum baton_err e = tokens_issue(&w->tokens, &b, now_of(w), &token);
	model_sweep(w);
	for (int i = 0; i < MAX; i++)
		if (w->model_tokens[i].connection == b.connection)
			w->model_tokens[i].used = false;
	if (e != BATON_OK) {
		assert_int_equal(e, BATON_FULL);
		/* With 60 values and 12 places, 16 tries do not all fail in any run that is. */
		assert_int_equal(model_pending(w), MAX);
		return;
	}
	assert_null(model_find(w, &token));
	int i = 0;
	while (w->model_tokens[i].used)
		assert_true(++i < MAX);
	w->model_tokens[i] = (struct model_token){true, token, b.generation, b.connection,
	                                          w->now + TTL_MS * INT64_C(1000000)};
	w->known[w->known_count++ % 64] = token;
}

static void step_consume(struct world *w)
{
	struct token_binding b = binding_of(w);
	struct token token = any_token(w);
	enum token_verdict want = TOKEN_NOT_PENDING;
	for (int i = 0; i < MAX; i++) {
		struct model_token *m = &w->model_tokens[i];
		if (!m->used || m->connection != b.connection || m->generation != b.generation)
			continue;
		if (m->expires <= w->now)
			want = TOKEN_EXPIRED;
		else if (memcmp(&m->token, &token, sizeof token) != 0)
			want = TOKEN_MISMATCH;
		else
			want = TOKEN_ACCEPTED;
		m->used = want == TOKEN_MISMATCH;
	}
	assert_int_equal(tokens_consume(&w->tokens, &b, &token, now_of(w)), want);
}

static void step_register(struct world *w)
{
	struct token token = any_token(w);
	uint64_t backend = rng_below(&w->rng, BACKENDS), tag = rng_next(&w->rng);
	struct model_ack *m = model_ack(w, &token);
	for (int i = 0; !m && i < MAX; i++)
		m = w->model_acks[i].used ? NULL : &w->model_acks[i];
	enum baton_err e = acks_register(&w->acks, &token, backend, tag, now_of(w));
	assert_int_equal(e, m ? BATON_OK : BATON_FULL);
	if (m)
		*m = (struct model_ack){true,       token,  backend,
		                        tag,        w->now, w->now + TIMEOUT_MS * INT64_C(1000000),
		                        w->orders++};
}

static void step_acknowledge(struct world *w)
{
	struct token token = any_token(w);
	uint64_t backend = rng_below(&w->rng, BACKENDS);
	struct model_ack *m = model_ack(w, &token);
	struct baton_duration took = {-1};
	enum ack_verdict want = ACK_NOT_PENDING;
	int64_t want_took = -1;
	if (m && m->backend == backend) {
		want = w->now < m->deadline ? ACK_IN_TIME : ACK_TOO_LATE;
		want_took = want == ACK_IN_TIME ? w->now - m->since : -1;
		m->used = false;
		model_revoke(w, &token);
	}
	assert_int_equal(acks_acknowledge(&w->acks, &token, backend, now_of(w), &took), want);
	assert_int_equal(took.ns, want_took);
}

static void step_abandon(struct world *w)
{
	struct token token = any_token(w);
	struct model_ack *m = model_ack(w, &token);
	uint64_t backend = 99;
	assert_int_equal(acks_abandon(&w->acks, &token, &backend), m != NULL);
	assert_int_equal(backend, m ? m->backend : 99);
	if (m)
		m->used = false;
	model_revoke(w, &token);
}

static struct model_ack *model_earliest(struct world *w)
{
	struct model_ack *first = NULL;
	for (int i = 0; i < MAX; i++) {
		struct model_ack *m = &w->model_acks[i];
		if (m->used && (!first || m->deadline < first->deadline ||
		                (m->deadline == first->deadline && m->order < first->order)))
			first = m;
	}
	return first;
}

static void step_expire(struct world *w)
{
	struct ack_expired got;
	while (acks_expire(&w->acks, now_of(w), &got)) {
		struct model_ack *m = model_earliest(w);
		assert_non_null(m);
		assert_true(m->deadline <= w->now);
		assert_memory_equal(&got.token, &m->token, sizeof got.token);
		assert_int_equal(got.backend, m->backend);
		assert_int_equal(got.tag, m->tag);
		m->used = false;
		model_revoke(w, &got.token);
	}
	struct model_ack *m = model_earliest(w);
	assert_true(!m || m->deadline > w->now);
	assert_int_equal(acks_next(&w->acks).ns, m ? m->deadline : INT64_MAX);
}

static void step_revoke(struct world *w)
{
	struct token token = any_token(w);
	assert_int_equal(tokens_revoke(&w->tokens, &token), model_find(w, &token) != NULL);
	model_revoke(w, &token);
}

static void step_time(struct world *w)
{
	/* Often exactly to a deadline. */
	struct model_ack *m = model_earliest(w);
	if (m && m->deadline > w->now && rng_below(&w->rng, 2) == 0)
		w->now = m->deadline;
	else
		w->now += (int64_t)rng_below(&w->rng, 8) * 1000000;
}

static void all_steps_do_what_the_model_does(void **state)
{
	(void)state;
	static void (*const steps[])(struct world * w) = {
		step_issue,    step_issue,    step_issue,       step_consume,
		step_register, step_register, step_acknowledge, step_abandon,
		step_expire,   step_revoke,   step_time,
	};
	static struct world w;
	w = (struct world){.rng = rng_seed_from_env()};
	fault_init(&w.fault);
	assert_int_equal(tokens_init(&w.tokens, &w.fault.alloc,
	                             (struct tokens_policy){TTL_MS, MAX, TOKENS_TRIES},
	                             (struct token_source){draw, &w}),
	                 BATON_OK);
	assert_int_equal(acks_init(&w.acks, &w.fault.alloc, &w.tokens, TIMEOUT_MS, MAX), BATON_OK);
	for (unsigned i = 0; i < soak_scale(200000, 20000000); i++) {
		steps[rng_below(&w.rng, sizeof steps / sizeof *steps)](&w);
		assert_int_equal(w.tokens.pending, model_pending(&w));
	}
	acks_done(&w.acks);
	tokens_done(&w.tokens);
	fault_done(&w.fault);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_steps_do_what_the_model_does),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
