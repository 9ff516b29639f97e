/* Frames on a stream. */
#include "wire/frame.h"

#include "base/check.h"
#include "base/fail.h"
#include "base/mem.h"

#define ROOM_MIN 512

void wire_frame_head(uint32_t len, uint8_t head[WIRE_FRAME_HEAD])
{
	head[0] = WIRE_FRAME_VERSION;
	for (int i = 0; i < 4; i++)
		head[i + 1] = (uint8_t)(len >> (8 * i));
}

uint32_t wire_frame_len(const uint8_t head[WIRE_FRAME_HEAD])
{
	uint32_t len = 0;
	for (int i = 0; i < 4; i++)
		len |= (uint32_t)head[i + 1] << (8 * i);
	return head[0] == WIRE_FRAME_VERSION ? len : 0;
}

void wire_reader_init(struct wire_reader *r, const struct baton_alloc *alloc, uint32_t max)
{
	CHECK(max > 0 && max <= WIRE_FRAME_MAX);
	*r = (struct wire_reader){.alloc = alloc, .max = max};
}

void wire_reader_done(struct wire_reader *r)
{
	if (r->body)
		mem_free(r->alloc, r->body, r->room, 1);
	r->body = NULL;
	r->room = 0;
	r->have = 0;
	r->len = 0;
	r->head_len = 0;
}

static uint32_t min_of(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* More room once what there is has been filled. */
static enum baton_err grow(struct wire_reader *r)
{
	uint32_t room = min_of(r->len, r->room == 0 ? ROOM_MIN : r->room * 2);
	uint8_t *body = mem_resize(r->alloc, r->body, r->room, room, 1);
	if (!body)
		return fail_memory(room, "a frame");
	r->body = body;
	r->room = room;
	return BATON_OK;
}

enum baton_err wire_reader_want(struct wire_reader *r, void **ret_place, size_t *ret_len)
{
	if (r->head_len < WIRE_FRAME_HEAD) {
		*ret_place = r->head + r->head_len;
		*ret_len = (size_t)WIRE_FRAME_HEAD - r->head_len;
		return BATON_OK;
	}
	if (r->have == r->room && r->have < r->len) {
		enum baton_err e = grow(r);
		if (e != BATON_OK)
			return e;
	}
	*ret_place = r->body ? r->body + r->have : NULL;
	*ret_len = r->room - r->have;
	return BATON_OK;
}

static enum baton_err head_look(struct wire_reader *r)
{
	if (r->head[0] != WIRE_FRAME_VERSION)
		return fail(BATON_INVALID, "a frame of version %u; this is version %d", r->head[0],
		            WIRE_FRAME_VERSION);
	if (r->head_len < WIRE_FRAME_HEAD)
		return BATON_OK;
	uint32_t len = wire_frame_len(r->head);
	if (len == 0)
		return fail(BATON_INVALID, "a frame without a body");
	if (len > r->max)
		return fail(BATON_INVALID, "a frame of %u bytes; %u are allowed here",
		            (unsigned)len, (unsigned)r->max);
	r->len = len;
	return BATON_OK;
}

enum baton_err wire_reader_took(struct wire_reader *r, size_t n)
{
	if (r->head_len < WIRE_FRAME_HEAD) {
		CHECK(n <= (size_t)WIRE_FRAME_HEAD - r->head_len);
		r->head_len = (uint8_t)(r->head_len + n);
		return n > 0 ? head_look(r) : BATON_OK;
	}
	CHECK(n <= r->room - r->have);
	r->have += (uint32_t)n;
	return BATON_OK;
}

bool wire_reader_begun(const struct wire_reader *r)
{
	return r->head_len > 0;
}

bool wire_reader_whole(const struct wire_reader *r)
{
	return r->len > 0 && r->have == r->len;
}

struct baton_str wire_reader_body(const struct wire_reader *r)
{
	CHECK(wire_reader_whole(r));
	return (struct baton_str){(const char *)r->body, r->len};
}
