/* Batches as they are put. */
#include "queue/batch.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/fail.h"
#include "base/number.h"
#include "base/quote.h"
#include "queue/line.h"

#define NUMBER_MAX ((UINT64_C(1) << 53) - 1)

static enum baton_err check_name(const char *what, struct baton_str name)
{
	return baton_str_name(what, name.ptr, name.len, BATON_NAME_MAX, &name);
}

enum baton_err batch_check_queue(struct baton_str name)
{
	enum baton_err e = check_name("queue's name", name);
	if (e != BATON_OK || !memchr(name.ptr, '/', name.len))
		return e;
	char shown[QUOTE_TEXT];
	return fail(BATON_INVALID, "the queue's name is %s: it may not have a '/'",
	            quote(name, shown));
}

static enum baton_err check_optional(const char *what, struct baton_str name)
{
	return name.len == 0 ? BATON_OK : check_name(what, name);
}

static enum baton_err check_kinds(const struct baton_batch *b)
{
	if ((unsigned)b->cls > BATON_COMMAND)
		return fail(BATON_INVALID, "class is %d: %d (work) and %d (command) are allowed",
		            (int)b->cls, BATON_WORK, BATON_COMMAND);
	if ((unsigned)b->delivery > BATON_AFTER_COMMIT)
		return fail(BATON_INVALID,
		            "delivery is %d: %d (earliest) and %d (after commit) are allowed",
		            (int)b->delivery, BATON_EARLIEST, BATON_AFTER_COMMIT);
	if ((unsigned)b->slot > BATON_JOIN)
		return fail(BATON_INVALID, "slot is %d: %d (exclusive) and %d (join) are allowed",
		            (int)b->slot, BATON_EXCLUSIVE, BATON_JOIN);
	if (b->group.len > 0 && b->slot != BATON_JOIN)
		return fail(BATON_INVALID, "a group is given, but the batch joins no others");
	if (b->slot == BATON_JOIN && b->cls == BATON_COMMAND)
		return fail(BATON_INVALID, "a command joins no others: it is claimed alone");
	if (b->priority > BATON_PRIORITY_MAX)
		return fail(BATON_INVALID, "priority is %" PRIu32 ": 0 to %d are allowed",
		            b->priority, BATON_PRIORITY_MAX);
	return BATON_OK;
}

static enum baton_err check_time(const struct baton_batch *b)
{
	struct baton_duration max = baton_duration_ms(BATON_QUEUE_SPAN_MAX_MS);
	if (b->delay.ns < 0 || b->delay.ns > max.ns) {
		char is[BATON_DURATION_TEXT], limit[BATON_DURATION_TEXT];
		return fail(BATON_INVALID, "delay is %s: 0 to %s are allowed",
		            baton_duration_print(b->delay, is), baton_duration_print(max, limit));
	}
	if (b->at.ms < 0)
		return fail(BATON_INVALID, "the time is before 1970");
	if (b->at.ms > 0 && b->delay.ns > 0)
		return fail(BATON_INVALID,
		            "both a delay and a time are given: only one is allowed");
	return BATON_OK;
}

static enum baton_err check_keys(const struct baton_batch *b)
{
	if (b->key_count > BATON_KEYS_MAX)
		return fail(BATON_INVALID, "the batch has %zu keys: at most %d are allowed",
		            b->key_count, BATON_KEYS_MAX);
	if (b->key_count > 0 && b->key.len > 0)
		return fail(BATON_INVALID,
		            "both a key and a list of keys are given: only one is allowed");
	enum baton_err e = check_optional("key", b->key);
	for (size_t i = 0; i < b->key_count && e == BATON_OK; i++)
		e = check_name("key", b->keys[i]);
	return e;
}

static bool retry_is_given(const struct baton_retry *r)
{
	return r->attempts != 0 || r->backoff != 0 || r->base.ns != 0 || r->cap.ns != 0;
}

enum baton_err batch_check(const struct baton_batch *b)
{
	enum baton_err e = batch_check_queue(b->queue);
	if (e == BATON_OK)
		e = check_optional("lane's name", b->lane);
	if (e == BATON_OK)
		e = check_keys(b);
	if (e == BATON_OK)
		e = check_optional("group's name", b->group);
	if (e == BATON_OK)
		e = check_optional("source key", b->source);
	if (e == BATON_OK)
		e = check_kinds(b);
	if (e == BATON_OK)
		e = check_time(b);
	if (e == BATON_OK && retry_is_given(&b->retry))
		e = baton_retry_check(&b->retry);
	if (e == BATON_OK && (b->count == 0 || b->count > BATON_PAYLOADS_MAX))
		e = fail(BATON_INVALID, "the batch has %zu payloads: 1 to %d are allowed", b->count,
		         BATON_PAYLOADS_MAX);
	return e == BATON_OK ? batch_check_payloads(b, BATON_QUEUE_PAYLOAD_LIMIT) : e;
}

enum baton_err batch_check_payloads(const struct baton_batch *b, uint32_t payload_max)
{
	char shown[QUOTE_TEXT];
	for (size_t i = 0; i < b->count; i++) {
		if (b->payloads[i].len > payload_max)
			return fail(BATON_INVALID,
			            "the payload has %zu bytes: queue %s allows %" PRIu32,
			            b->payloads[i].len, quote(b->queue, shown), payload_max);
	}
	return BATON_OK;
}

struct baton_batch batch_filled(const struct baton_batch *batch)
{
	struct baton_batch b = *batch;
	b.cls = b.cls ? b.cls : BATON_WORK;
	b.delivery = b.delivery ? b.delivery : BATON_EARLIEST;
	b.slot = b.slot ? b.slot : BATON_EXCLUSIVE;
	return b;
}

void batch_digest(const struct baton_batch *b, uint8_t out[DIGEST_SIZE])
{
	struct digest d;
	digest_init(&d);
	digest_str(&d, b->queue);
	digest_str(&d, b->lane);
	digest_number(&d, b->cls);
	digest_number(&d, b->delivery);
	digest_number(&d, b->slot);
	digest_str(&d, b->group);
	digest_number(&d, b->priority);
	digest_number(&d, (uint64_t)b->delay.ns);
	digest_number(&d, (uint64_t)b->at.ms);
	digest_number(&d, b->retry.attempts);
	digest_number(&d, b->retry.backoff);
	digest_number(&d, (uint64_t)b->retry.base.ns);
	digest_number(&d, (uint64_t)b->retry.cap.ns);
	digest_number(&d, b->count);
	for (size_t i = 0; i < b->count; i++)
		digest_str(&d, b->payloads[i]);
	/* What was put before there were keys has the digest that it had. */
	for (struct baton_str rest = b->key, key; keys_next(&rest, &key);)
		digest_str(&d, key);
	digest_end(&d, out);
}

void batch_source_digest(const struct baton_batch *b, uint8_t out[DIGEST_SIZE])
{
	struct digest d;
	digest_init(&d);
	digest_str(&d, b->queue);
	digest_str(&d, b->lane);
	digest_str(&d, b->source);
	digest_end(&d, out);
}

struct baton_store_time batch_available(const struct baton_batch *b, struct baton_store_time now)
{
	if (b->at.ms > 0)
		return b->at.ms > now.ms ? b->at : now;
	return baton_store_time_add(now, b->delay);
}

void batch_id_print(uint64_t number, struct baton_batch_id *ret)
{
	memset(ret->text, 0, sizeof ret->text);
	number_print(number, ret->text);
}

bool batch_id_parse(const struct baton_batch_id *id, uint64_t *ret)
{
	size_t len = strnlen(id->text, sizeof id->text);
	uint64_t number;
	if (len == sizeof id->text ||
	    !number_parse((struct baton_str){id->text, len}, NUMBER_MAX, &number) || number == 0)
		return false;
	*ret = number;
	return true;
}

void claim_name_print(const struct claim_name *name, char text[CLAIM_NAME_TEXT])
{
	memset(text, 0, CLAIM_NAME_TEXT);
	char *dash = number_print(name->head, text);
	*dash = '-';
	number_print(name->fence, dash + 1);
}

bool claim_name_parse(const char text[CLAIM_NAME_TEXT], struct claim_name *ret)
{
	size_t len = strnlen(text, CLAIM_NAME_TEXT);
	const char *dash = memchr(text, '-', len);
	struct claim_name name;
	if (len == CLAIM_NAME_TEXT || !dash)
		return false;
	size_t first = (size_t)(dash - text);
	if (!number_parse((struct baton_str){text, first}, NUMBER_MAX, &name.head) ||
	    !number_parse((struct baton_str){dash + 1, len - first - 1}, NUMBER_MAX, &name.fence))
		return false;
	*ret = name;
	return true;
}
