/* A growable string of bytes with a bound. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/mem.h"

#define CAP_MIN 64

void buf_init(struct buf *b, const struct baton_alloc *alloc, size_t max)
{
	/* Room for the NUL must be countable too. */
	*b = (struct buf){.alloc = alloc, .max = max < SIZE_MAX ? max : SIZE_MAX - 1};
}

void buf_init_in(struct buf *b, const struct baton_alloc *alloc, size_t max, char *room,
                 size_t size)
{
	buf_init(b, alloc, max);
	b->data = room;
	b->cap = size;
	b->lent = room;
	room[0] = '\0';
}

void buf_done(struct buf *b)
{
	if (b->data == NULL)
		return;
	if (b->data != b->lent)
		mem_free(b->alloc, b->data, b->cap, 1);
	b->data = NULL;
	b->lent = NULL;
	b->len = 0;
	b->cap = 0;
}

void buf_reset(struct buf *b)
{
	b->len = 0;
	b->err = BATON_OK;
	if (b->data != NULL)
		b->data[0] = '\0';
}

/* Doubles, so that many small appends cost a constant each, but never beyond the bound. */
static size_t cap_for(const struct buf *b, size_t need)
{
	size_t cap = b->cap < CAP_MIN / 2 ? CAP_MIN : b->cap;
	if (cap < need)
		cap = cap <= b->max / 2 ? cap * 2 : b->max + 1;
	if (cap < need)
		cap = need;
	return cap <= b->max ? cap : b->max + 1;
}

/* As mem_resize(), also for bytes that are in memory of somebody else. */
static char *resize(const struct buf *b, size_t cap)
{
	bool lent = b->data != NULL && b->data == b->lent;
	char *data = mem_resize(b->alloc, lent ? NULL : b->data, lent ? 0 : b->cap, cap, 1);
	if (data != NULL && lent)
		memcpy(data, b->lent, b->len + 1);
	return data;
}

/* Makes room for `len` more bytes and the NUL. */
static enum baton_err reserve(struct buf *b, size_t len)
{
	if (b->err != BATON_OK)
		return b->err;
	if (len > b->max - b->len) {
		b->err = fail(BATON_FULL, "%zu bytes and %zu more do not fit into %zu bytes",
		              b->len, len, b->max);
		return b->err;
	}
	size_t need = b->len + len + 1;
	if (need <= b->cap)
		return BATON_OK;
	size_t cap = cap_for(b, need);
	char *data = resize(b, cap);
	if (data == NULL) {
		b->err = fail_memory(cap, "a buffer");
		return b->err;
	}
	b->data = data;
	b->cap = cap;
	return BATON_OK;
}

char *buf_extend(struct buf *b, size_t len)
{
	if (len == 0 || reserve(b, len) != BATON_OK)
		return NULL;
	char *place = b->data + b->len;
	b->len += len;
	b->data[b->len] = '\0';
	return place;
}

enum baton_err buf_append(struct buf *b, const void *bytes, size_t len)
{
	char *place = buf_extend(b, len);
	if (place)
		memcpy(place, bytes, len);
	return b->err;
}

enum baton_err buf_append_str(struct buf *b, struct baton_str s)
{
	return buf_append(b, s.ptr, s.len);
}

enum baton_err buf_printf(struct buf *b, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int len = vsnprintf(NULL, 0, format, args);
	va_end(args);

	/* A text beyond INT_MAX has no length here, and no buffer would want it. */
	enum baton_err e = reserve(b, len >= 0 ? (size_t)len : SIZE_MAX);
	if (e != BATON_OK || len == 0)
		return e;
	va_start(args, format);
	vsnprintf(b->data + b->len, (size_t)len + 1, format, args);
	va_end(args);
	b->len += (size_t)len;
	return BATON_OK;
}

struct baton_str buf_str(const struct buf *b)
{
	return (struct baton_str){b->data, b->len};
}
