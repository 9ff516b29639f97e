/* Whatever a persistent worker writes is either refused with a reason, or names a claim and says
 * one thing about it. */
#include "runner/reply.h"

#include <string.h>

#include <baton/alloc.h>

#include "fuzz/fuzz.h"

static void look_at(const struct reply *reply)
{
	const struct baton_work_end *end = &reply->end;
	CHECK(reply->claim[0] != '\0' && memchr(reply->claim, '\0', sizeof reply->claim));
	CHECK(end->how == BATON_COMPLETE || end->how == BATON_FAIL || end->how == BATON_REJECT);
	CHECK(end->how == BATON_COMPLETE || (end->result.len == 0 && end->emit_count == 0));
	CHECK(end->how == BATON_FAIL || end->delay.ns == 0);
	CHECK(end->emit_count <= BATON_PUT_MAX);
	for (size_t i = 0; i < end->emit_count; i++) {
		const struct baton_batch *b = &end->emits[i];
		CHECK(b->queue.len > 0 && b->count == 1 && b->priority <= BATON_PRIORITY_MAX);
		CHECK(b->payloads[0].len == 0 || b->payloads[0].ptr);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena arena;
	struct reply reply;
	char error[REPLY_ERROR] = "";
	arena_init(&arena, baton_alloc_libc());
	if (reply_parse((struct baton_str){(const char *)data, size}, &arena, &reply, error))
		look_at(&reply);
	else
		CHECK(error[0] != '\0' && memchr(error, '\0', sizeof error));
	arena_done(&arena);
	return 0;
}
