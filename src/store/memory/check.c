/* Whether the rows of a store in memory fit together. */
#include "store/memory/check.h"

#include <inttypes.h>
#include <stdio.h>

#include "queue/policy.h"
#include "store/memory/class.h"
#include "store/memory/rate.h"
#include "store/memory/runner.h"

#define SENTENCES_MAX 16

/* What was found so far; the first sentences are kept to be reported without the lock. */
struct faults {
	uint64_t count;
	char sentences[SENTENCES_MAX][160];
};

static void expect(struct faults *f, bool fits, const char *what, uint64_t number)
{
	if (fits)
		return;
	if (f->count < SENTENCES_MAX)
		snprintf(f->sentences[f->count], sizeof f->sentences[0], "%s (%" PRIu64 ")", what,
		         number);
	f->count++;
}

static bool has_keys(const struct claim *claim, const struct batch *b)
{
	for (size_t i = 0; i < b->key_count && i < claim->key_count; i++) {
		if (claim->keys[i] != b->keys[i].key)
			return false;
	}
	return claim->key_count == b->key_count;
}

static void check_batch(struct faults *f, const struct memory *m, const struct batch *b)
{
	bool claimed = b->is.state == BATON_BATCH_CLAIMED;
	expect(f, b->is.state >= BATON_BATCH_READY && b->is.state < BATON_BATCH_GONE,
	       "a batch has no state", b->id);
	expect(f, b->is.seq <= m->seq, "a batch has a number that was not given yet", b->id);
	expect(f, claimed == (b->is.claim != NULL), "a batch is claimed without a claim", b->id);
	expect(f, !b->is.claim || b->is.claim->lane == b->lane,
	       "a batch is under a claim of another lane", b->id);
	expect(f, !b->is.claim || has_keys(b->is.claim, b),
	       "a batch is under a claim of another key", b->id);
	expect(f, !b->is.keeps || (b->key_count > 0 && b->is.state == BATON_BATCH_RETRY),
	       "a key is kept by what does not wait", b->id);
	expect(f, b->key_count == 0 || b->lane->queue->is.guests || b->is.state > BATON_BATCH_DEAD,
	       "a batch has a lane and a key, or several, and its queue does not know", b->id);
	expect(f, b->next == NULL || b->next->is.seq > b->is.seq,
	       "the next batch of the lane has a lower number", b->id);
	expect(f, b->next ? b->next->prev == b : b->lane->last == b,
	       "a batch is not in its place in its lane", b->id);
}

static void check_claim(struct faults *f, const struct claim *claim)
{
	uint64_t count = 0;
	for (const struct batch *b = claim->lane->first; b; b = b->next)
		count += b->is.claim == claim;
	expect(f, count > 0 && count == claim->is.count,
	       "a claim has another number of batches than it says", claim->name.head);
}

static void check_queue(struct faults *f, const struct memory *m, const struct queue *queue)
{
	uint64_t in[BATON_BATCH_GONE + 1] = {0};
	for (const struct row *row = m->batches.oldest; row; row = row->newer) {
		const struct batch *b = (const struct batch *)row;
		if (b->lane->queue == queue)
			in[b->is.state]++;
	}
	for (int state = BATON_BATCH_READY; state < BATON_BATCH_GONE; state++)
		expect(f, in[state] == queue->is.in[state],
		       "a queue has another number of batches in a state than it says",
		       (uint64_t)state);
	struct baton_queue_policy policy = queue->is.policy;
	const struct queue *other = memory_class_next(queue, NULL);
	for (; other; other = memory_class_next(queue, other)) {
		policy_share(&policy, &other->is.policy);
		expect(f, policy_equal(&policy, &queue->is.policy),
		       "queues of a class have another policy of keys than others of it", 1);
	}
}

static void check_text(struct faults *f, const struct memory *m, const struct text *text)
{
	uint64_t users = 0;
	for (const struct row *row = m->batches.oldest; row; row = row->newer) {
		const struct batch *b = (const struct batch *)row;
		users += b->is.error == text;
		users += b->is.result == text;
	}
	expect(f, users > 0 && users == text->is.users,
	       "a text is used by another number of batches than it says", text->row.hash);
}

/* How many rows have starts of the same key as this one. */
static size_t starts_rows(const struct memory *m, const struct rate *rate)
{
	size_t count = 1;
	for (const struct row *row = m->rates.oldest; row; row = row->newer) {
		const struct rate *other = (const struct rate *)row;
		count += other != rate && policy_has_class(&rate->queue->is.policy) &&
		         policy_same_class(&other->queue->is.policy, &rate->queue->is.policy) &&
		         baton_str_equal(other->name, rate->name);
	}
	return count;
}

static void check_all(struct faults *f, const struct memory *m)
{
	for (const struct row *row = m->batches.oldest; row; row = row->newer)
		check_batch(f, m, (const struct batch *)row);
	for (const struct row *row = m->claims.oldest; row; row = row->newer)
		check_claim(f, (const struct claim *)row);
	for (const struct row *row = m->queues.oldest; row; row = row->newer)
		check_queue(f, m, (const struct queue *)row);
	for (const struct row *row = m->texts.oldest; row; row = row->newer)
		check_text(f, m, (const struct text *)row);
	for (const struct row *row = m->leases.oldest; row; row = row->newer) {
		uint64_t runner = ((const struct lease *)row)->is.runner;
		expect(f, runner == 0 || memory_runner_find(m, runner),
		       "a shard has an owner that is not registered", runner);
	}
	for (const struct row *row = m->lanes.oldest; row; row = row->newer) {
		const struct lane *lane = (const struct lane *)row;
		expect(f, lane->first || lane->guests, "a lane is empty", row->hash);
		expect(f, lane->is.until.ms == memory_rate_until(m, lane).ms,
		       "a key waits for another time than its starts say", row->hash);
	}
	for (const struct row *row = m->rates.oldest; row; row = row->newer) {
		const struct rate *rate = (const struct rate *)row;
		expect(f, rate->count > 0 && rate->count <= rate->queue->is.policy.key_rate.starts,
		       "a key has another number of starts than it may", row->hash);
		expect(f, starts_rows(m, rate) == 1,
		       "starts of a key are in two queues of its class", row->hash);
	}
}

enum baton_err memory_check(struct baton_store *store,
                            void (*report)(void *arg, const char *sentence), void *arg,
                            uint64_t *ret_faults)
{
	struct memory *m = (struct memory *)store;
	struct faults f = {.count = 0};
	pthread_mutex_lock(&m->mu);
	check_all(&f, m);
	pthread_mutex_unlock(&m->mu);
	for (uint64_t i = 0; report && i < f.count && i < SENTENCES_MAX; i++)
		report(arg, f.sentences[i]);
	*ret_faults = f.count;
	return BATON_OK;
}
