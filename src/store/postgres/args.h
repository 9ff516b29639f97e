/* What a statement is given, in PostgreSQL's binary form: numbers, texts, and arrays of them. */
#ifndef POSTGRES_ARGS_H
#define POSTGRES_ARGS_H

#include <stdbool.h>
#include <stdint.h>

#include <baton/alloc.h>
#include <baton/err.h>
#include <baton/id.h>
#include <baton/str.h>

#include "base/buf.h"

#define ARGS_MAX 38

/* What the elements of an array are: the numbers that PostgreSQL has for these types. */
enum arg_type {
	ARG_BOOL = 16,
	ARG_BYTES = 17,
	ARG_INT8 = 20,
	ARG_INT2 = 21,
	ARG_INT4 = 23,
	ARG_TEXT = 25,
	ARG_PLACE = 27 /* of a row: TID */
};

struct arg {
	struct buf bytes;
	enum arg_type type; /* of the elements */
	uint32_t count;
	bool array;
	bool null;
};

struct args {
	const struct baton_alloc *alloc; /* [const] */
	struct arg list[ARGS_MAX];
	int count;
};

/* `count` arguments, all of them null. */
void args_init(struct args *a, const struct baton_alloc *alloc, int count);
void args_done(struct args *a);

/* BATON_NO_MEMORY, if something could not be appended. */
enum baton_err args_check(const struct args *a);

/* The argument of that number, from 0, is this. */
void arg_int(struct args *a, int at, int64_t number);
void arg_bool(struct args *a, int at, bool is);
void arg_text(struct args *a, int at, struct baton_str s);
void arg_bytes(struct args *a, int at, const void *bytes, size_t len);

/* The argument is an array, empty so far. */
void arg_array(struct args *a, int at, enum arg_type type);

/* Appends an element to it. */
void add_int(struct args *a, int at, int64_t number);
void add_bool(struct args *a, int at, bool is);
void add_str(struct args *a, int at, struct baton_str s);
void add_null(struct args *a, int at);

/* The text, or null where there is none. */
void add_optional(struct args *a, int at, struct baton_str s);
void arg_optional(struct args *a, int at, struct baton_str s);

/* Makes the heads of the arrays fit what is in them: before it is sent. */
void args_finish(struct args *a);

#endif
