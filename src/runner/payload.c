/* Payloads as a handler reads them. */
#include "runner/payload.h"

#include <inttypes.h>
#include <stdbool.h>
#include <yajl/yajl_gen.h>

#include "base/base64.h"
#include "base/fail.h"
#include "base/utf8.h"

static void print(void *arg, const char *text, size_t len)
{
	buf_append(arg, text, len);
}

static void add_text(yajl_gen gen, struct baton_str text)
{
	yajl_gen_reset(gen, NULL);
	yajl_gen_string(gen, (const unsigned char *)(text.len > 0 ? text.ptr : ""), text.len);
}

static void add_payload(struct buf *buf, yajl_gen gen, struct baton_str payload)
{
	if (utf8_is_valid(payload.ptr, payload.len)) {
		buf_append_str(buf, BATON_STR("\"payload\":"));
		add_text(gen, payload);
	} else {
		buf_append_str(buf, BATON_STR("\"payload_base64\":\""));
		base64_append(buf, payload);
		buf_append_str(buf, BATON_STR("\""));
	}
}

static void add_line(struct buf *buf, yajl_gen gen, const struct baton_work_batch *batch,
                     struct baton_str payload)
{
	buf_printf(buf, "{\"job\":\"%s\",\"seq\":%" PRIu64 ",", batch->id.text, batch->seq);
	add_payload(buf, gen, payload);
	buf_append_str(buf, BATON_STR("}\n"));
}

static enum baton_err writer(struct buf *buf, yajl_gen *ret)
{
	*ret = yajl_gen_alloc(NULL);
	if (!*ret)
		return fail_memory(sizeof(void *), "lines of JSON");
	yajl_gen_config(*ret, yajl_gen_print_callback, print, buf);
	return BATON_OK;
}

enum baton_err payload_lines(struct buf *buf, const struct baton_work_claim *claim)
{
	yajl_gen gen;
	enum baton_err e = writer(buf, &gen);
	if (e != BATON_OK)
		return e;
	for (size_t i = 0; i < claim->count; i++) {
		for (size_t k = 0; k < claim->batches[i].count; k++)
			add_line(buf, gen, &claim->batches[i], claim->batches[i].payloads[k]);
	}
	yajl_gen_free(gen);
	return buf->err;
}

static void add_job(struct buf *buf, yajl_gen gen, const struct baton_work_batch *batch)
{
	buf_printf(buf, "{\"id\":\"%s\",\"seq\":%" PRIu64 ",", batch->id.text, batch->seq);
	if (batch->count == 1) {
		add_payload(buf, gen, batch->payloads[0]);
	} else {
		buf_append_str(buf, BATON_STR("\"payloads\":["));
		for (size_t i = 0; i < batch->count; i++) {
			buf_append_str(buf, i > 0 ? BATON_STR(",{") : BATON_STR("{"));
			add_payload(buf, gen, batch->payloads[i]);
			buf_append_str(buf, BATON_STR("}"));
		}
		buf_append_str(buf, BATON_STR("]"));
	}
	buf_append_str(buf, BATON_STR("}"));
}

/* The rest of a line: a list of jobs, whose bracket is open. */
static void add_jobs(struct buf *buf, yajl_gen gen, const struct baton_work_claim *claim)
{
	for (size_t i = 0; i < claim->count; i++) {
		if (i > 0)
			buf_append_str(buf, BATON_STR(","));
		add_job(buf, gen, &claim->batches[i]);
	}
	buf_append_str(buf, BATON_STR("]}\n"));
}

static void add_optional(struct buf *buf, yajl_gen gen, struct baton_str text)
{
	if (text.len > 0)
		add_text(gen, text);
	else
		buf_append_str(buf, BATON_STR("null"));
}

/* null, the key, or a list of them. */
static void add_keys(struct buf *buf, yajl_gen gen, const struct baton_work_claim *claim)
{
	if (claim->key_count < 2) {
		add_optional(buf, gen, claim->key);
		return;
	}
	for (size_t i = 0; i < claim->key_count; i++) {
		buf_append_str(buf, i == 0 ? BATON_STR("[") : BATON_STR(","));
		add_text(gen, claim->keys[i]);
	}
	buf_append_str(buf, BATON_STR("]"));
}

enum baton_err payload_claim(struct buf *buf, const struct baton_work_claim *claim)
{
	yajl_gen gen;
	enum baton_err e = writer(buf, &gen);
	if (e != BATON_OK)
		return e;
	buf_printf(buf, "{\"claim\":\"%s\",\"fence\":%" PRIu64 ",\"queue\":", claim->proof.id,
	           claim->fence.v);
	add_text(gen, claim->queue);
	buf_append_str(buf, BATON_STR(",\"lane\":"));
	add_optional(buf, gen, claim->lane);
	buf_append_str(buf, BATON_STR(",\"concurrency_key\":"));
	add_keys(buf, gen, claim);
	buf_printf(buf, ",\"attempt\":%" PRIu32 ",\"jobs\":[", claim->batches[0].attempt);
	add_jobs(buf, gen, claim);
	yajl_gen_free(gen);
	return buf->err;
}

enum baton_err payload_more(struct buf *buf, const struct baton_work_claim *claim,
                            const struct baton_work_claim *more)
{
	yajl_gen gen;
	if (!more)
		return buf_printf(buf, "{\"claim\":\"%s\",\"more\":[]}\n", claim->proof.id);
	enum baton_err e = writer(buf, &gen);
	if (e != BATON_OK)
		return e;
	buf_printf(buf, "{\"claim\":\"%s\",\"fence\":%" PRIu64 ",\"more\":[", claim->proof.id,
	           more->fence.v);
	add_jobs(buf, gen, more);
	yajl_gen_free(gen);
	return buf->err;
}

enum baton_err payload_visit(struct buf *buf, const struct baton_connection *connection,
                             baton_fence fence, uint64_t number)
{
	yajl_gen gen;
	enum baton_err e = writer(buf, &gen);
	if (e != BATON_OK)
		return e;
	buf_printf(buf, "{\"visit\":%" PRIu64 ",\"fence\":%" PRIu64 ",\"queue\":", number, fence.v);
	add_text(gen, connection->queue);
	buf_append_str(buf, BATON_STR(",\"lane\":"));
	add_text(gen, connection->lane);
	buf_printf(buf,
	           ",\"connection\":\"%" PRIu64 "\",\"client_pid\":%" PRId32
	           ",\"client_uid\":%" PRIu32 "}\n",
	           connection->id, connection->pid, connection->uid);
	yajl_gen_free(gen);
	return buf->err;
}
