/* What a call hands over in one block. */
#include "store/parcel.h"

#include <endian.h>
#include <stdint.h>

#include "base/fail.h"
#include "base/mem.h"
#include "store/ticking.h"

struct claims_parcel *claims_parcel_new(const struct baton_alloc *alloc)
{
	struct claims_parcel *p = mem_new(alloc, 1, sizeof *p);
	if (!p)
		fail_memory(sizeof *p, "claims");
	else
		arena_init(&p->arena, alloc);
	return p;
}

struct page_parcel *page_parcel_new(const struct baton_alloc *alloc)
{
	struct page_parcel *p = mem_new(alloc, 1, sizeof *p);
	if (!p)
		fail_memory(sizeof *p, "a page of batches");
	else
		arena_init(&p->arena, alloc);
	return p;
}

struct schedules_parcel *schedules_parcel_new(const struct baton_alloc *alloc)
{
	struct schedules_parcel *p = mem_new(alloc, 1, sizeof *p);
	if (!p)
		fail_memory(sizeof *p, "a page of schedules");
	else
		arena_init(&p->arena, alloc);
	return p;
}

static bool schedule_copy(struct arena *a, struct baton_schedule *s)
{
	return arena_copy(a, s->name, &s->name) && arena_copy(a, s->cron, &s->cron) &&
	       arena_copy(a, s->zone, &s->zone) && arena_copy(a, s->queue, &s->queue) &&
	       arena_copy(a, s->lane, &s->lane) && arena_copy(a, s->payload, &s->payload);
}

bool schedules_parcel_add(struct schedules_parcel *page, const struct baton_schedule *schedule)
{
	struct baton_schedule s = *schedule;
	s.paused = s.next.ms == SCHEDULE_PAUSED.ms;
	if (s.paused)
		s.next = BATON_STORE_TIME_NEVER;
	size_t count = page->pub.count;
	if (count == page->cap) {
		size_t cap = page->cap ? page->cap * 2 : 16;
		struct baton_schedule *items = arena_take(&page->arena, cap, sizeof *items);
		if (!items)
			return false;
		if (count > 0)
			memcpy(items, page->items, count * sizeof *items);
		page->items = items;
		page->cap = cap;
	}
	if (!schedule_copy(&page->arena, &s))
		return false;
	page->items[count] = s;
	page->pub = (struct baton_schedules){page->items, count + 1};
	return true;
}

void baton_schedules_free(struct baton_schedules *schedules)
{
	struct schedules_parcel *p = (struct schedules_parcel *)schedules;
	if (!p)
		return;
	arena_done(&p->arena);
	mem_free(p->arena.alloc, p, 1, sizeof *p);
}

void baton_work_claims_free(struct baton_work_claims *claims)
{
	struct claims_parcel *p = (struct claims_parcel *)claims;
	if (!p)
		return;
	arena_done(&p->arena);
	mem_free(p->arena.alloc, p, 1, sizeof *p);
}

void baton_work_page_free(struct baton_work_page *page)
{
	struct page_parcel *p = (struct page_parcel *)page;
	if (!p)
		return;
	arena_done(&p->arena);
	mem_free(p->arena.alloc, p, 1, sizeof *p);
}

static void put_number(char **to, uint32_t number)
{
	uint32_t little = htole32(number);
	memcpy(*to, &little, sizeof little);
	*to += sizeof little;
}

static uint32_t get_number(const char *from)
{
	uint32_t little;
	memcpy(&little, from, sizeof little);
	return le32toh(little);
}

size_t payloads_size(const struct baton_str *payloads, size_t count)
{
	size_t size = (count + 1) * sizeof(uint32_t);
	for (size_t i = 0; i < count; i++)
		size += payloads[i].len;
	return size;
}

void payloads_pack(const struct baton_str *payloads, size_t count, char *bytes)
{
	put_number(&bytes, (uint32_t)count);
	for (size_t i = 0; i < count; i++)
		put_number(&bytes, (uint32_t)payloads[i].len);
	for (size_t i = 0; i < count; i++) {
		if (payloads[i].len > 0)
			memcpy(bytes, payloads[i].ptr, payloads[i].len);
		bytes += payloads[i].len;
	}
}

static enum baton_err unpack_many(struct arena *a, struct baton_str bytes,
                                  const struct baton_str **ret_payloads, size_t *ret_count)
{
	size_t count = bytes.len >= sizeof(uint32_t) ? get_number(bytes.ptr) : 0;
	size_t at = (count + 1) * sizeof(uint32_t);
	if (count == 0 || count > BATON_PAYLOADS_MAX || at > bytes.len)
		return fail(BATON_STORAGE, "a batch of the store is damaged: its payloads cannot "
		                           "be told apart; baton check says more");
	struct baton_str *payloads = arena_take(a, count, sizeof *payloads);
	if (!payloads)
		return fail_memory(count * sizeof *payloads, "payloads");
	for (size_t i = 0; i < count; i++) {
		size_t len = get_number(bytes.ptr + (i + 1) * sizeof(uint32_t));
		if (len > bytes.len - at)
			return fail(BATON_STORAGE, "a batch of the store is damaged: a payload "
			                           "is longer than all; baton check says more");
		payloads[i] = (struct baton_str){bytes.ptr + at, len};
		at += len;
	}
	*ret_payloads = payloads;
	*ret_count = count;
	return BATON_OK;
}

enum baton_err payloads_unpack(struct arena *a, struct baton_str bytes, bool many,
                               const struct baton_str **ret_payloads, size_t *ret_count)
{
	struct baton_str copy;
	if (!arena_copy(a, bytes, &copy))
		return fail_memory(bytes.len, "payloads");
	if (many)
		return unpack_many(a, copy, ret_payloads, ret_count);
	struct baton_str *one = arena_take(a, 1, sizeof *one);
	if (!one)
		return fail_memory(sizeof *one, "a payload");
	*one = copy;
	*ret_payloads = one;
	*ret_count = 1;
	return BATON_OK;
}
