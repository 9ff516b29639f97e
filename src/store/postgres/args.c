/* What a statement is given, in PostgreSQL's binary form. */
#include "store/postgres/args.h"

#include <endian.h>
#include <string.h>

#include "base/check.h"
#include "base/fail.h"

#define BYTES_MAX ((size_t)1 << 30) /* PostgreSQL's own limit of a value */
#define HEAD_SIZE 20                /* of an array of one dimension     */

void args_init(struct args *a, const struct baton_alloc *alloc, int count)
{
	CHECK(count <= ARGS_MAX);
	a->alloc = alloc;
	a->count = count;
	for (int i = 0; i < count; i++) {
		a->list[i] = (struct arg){.null = true};
		buf_init(&a->list[i].bytes, alloc, BYTES_MAX);
	}
}

void args_done(struct args *a)
{
	for (int i = 0; i < a->count; i++)
		buf_done(&a->list[i].bytes);
	a->count = 0;
}

enum baton_err args_check(const struct args *a)
{
	for (int i = 0; i < a->count; i++) {
		enum baton_err e = a->list[i].bytes.err;
		if (e == BATON_FULL)
			return fail(BATON_INVALID, "a call has more than %zu bytes of one kind",
			            BYTES_MAX);
		if (e != BATON_OK)
			return fail_memory(a->list[i].bytes.len, "what is sent to the server");
	}
	return BATON_OK;
}

static struct buf *scalar(struct args *a, int at)
{
	CHECK(at < a->count);
	a->list[at].null = false;
	return &a->list[at].bytes;
}

static void put_32(struct buf *b, uint32_t number)
{
	uint32_t bytes = htobe32(number);
	buf_append(b, &bytes, sizeof bytes);
}

static void put_int(struct buf *b, int64_t number, size_t size)
{
	uint64_t bytes = htobe64((uint64_t)number);
	buf_append(b, (const char *)&bytes + sizeof bytes - size, size);
}

static void put_bytes(struct buf *b, const void *bytes, size_t len)
{
	buf_append(b, len > 0 ? bytes : "", len);
}

void arg_int(struct args *a, int at, int64_t number)
{
	put_int(scalar(a, at), number, sizeof number);
}

void arg_bool(struct args *a, int at, bool is)
{
	put_int(scalar(a, at), is, 1);
}

void arg_bytes(struct args *a, int at, const void *bytes, size_t len)
{
	put_bytes(scalar(a, at), bytes, len);
}

void arg_text(struct args *a, int at, struct baton_str s)
{
	arg_bytes(a, at, s.ptr, s.len);
}

void arg_optional(struct args *a, int at, struct baton_str s)
{
	if (s.len > 0)
		arg_text(a, at, s);
}

void arg_array(struct args *a, int at, enum arg_type type)
{
	static const char head[HEAD_SIZE];
	struct buf *b = scalar(a, at);
	a->list[at].array = true;
	a->list[at].type = type;
	buf_append(b, head, sizeof head);
}

static struct buf *element(struct args *a, int at)
{
	CHECK(at < a->count && a->list[at].array);
	a->list[at].count++;
	return &a->list[at].bytes;
}

void add_int(struct args *a, int at, int64_t number)
{
	struct buf *b = element(a, at);
	enum arg_type type = a->list[at].type;
	uint32_t size = type == ARG_INT8 ? 8 : type == ARG_INT4 ? 4 : 2;
	put_32(b, size);
	put_int(b, number, size);
}

void add_bool(struct args *a, int at, bool is)
{
	struct buf *b = element(a, at);
	put_32(b, 1);
	put_int(b, is, 1);
}

void add_str(struct args *a, int at, struct baton_str s)
{
	struct buf *b = element(a, at);
	put_32(b, (uint32_t)s.len);
	put_bytes(b, s.ptr, s.len);
}

void add_null(struct args *a, int at)
{
	put_32(element(a, at), UINT32_MAX);
}

void add_optional(struct args *a, int at, struct baton_str s)
{
	if (s.len > 0)
		add_str(a, at, s);
	else
		add_null(a, at);
}

static void head_write(struct arg *arg)
{
	const uint32_t head[HEAD_SIZE / 4] = {htobe32(1), htobe32(1), htobe32(arg->type),
	                                      htobe32(arg->count), htobe32(1)};
	if (arg->bytes.err == BATON_OK)
		memcpy(arg->bytes.data, head, sizeof head);
}

void args_finish(struct args *a)
{
	for (int i = 0; i < a->count; i++) {
		if (a->list[i].array)
			head_write(&a->list[i]);
	}
}
