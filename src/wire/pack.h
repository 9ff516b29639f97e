/* The way between protobuf-c and the plain structs of this module. */
#ifndef WIRE_PACK_H
#define WIRE_PACK_H

#include <stdbool.h>
#include <stddef.h>

#include <protobuf-c/protobuf-c.h>

#include <baton/err.h>
#include <baton/str.h>

#include "base/arena.h"
#include "base/buf.h"

/* Appends the message. */
enum baton_err pack(const ProtobufCMessage *message, struct buf *out);

/* Reads a message of that type, called `what`, into the arena, with a bound on the memory that it
 * takes for its length. BATON_INVALID: it is none. BATON_NO_MEMORY. */
enum baton_err unpack(const ProtobufCMessageDescriptor *type, const char *what,
                      struct baton_str bytes, struct arena *arena, ProtobufCMessage **ret);

static inline struct baton_str pack_view(ProtobufCBinaryData data)
{
	return (struct baton_str){(const char *)data.data, data.len};
}

static inline ProtobufCBinaryData pack_data(struct baton_str s)
{
	/* What is packed is only read. */
	return (ProtobufCBinaryData){s.len, (uint8_t *)s.ptr};
}

/* A text for people of at most `max` bytes, or none. BATON_INVALID. */
enum baton_err pack_text(const char *what, ProtobufCBinaryData data, size_t max,
                         struct baton_str *ret);

/* Some bytes of at most `max`, or none. BATON_INVALID. */
enum baton_err pack_bytes(const char *what, ProtobufCBinaryData data, size_t max,
                          struct baton_str *ret);

#endif
