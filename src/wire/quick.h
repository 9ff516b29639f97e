/* Messages of protobuf-c, written and read in one pass by its descriptors. What is not as a writer
 * of these would write it is left to protobuf-c, so that nothing is understood in two ways. */
#ifndef WIRE_QUICK_H
#define WIRE_QUICK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

#include <baton/err.h>
#include <baton/str.h>

#include "base/arena.h"

/* Writes the message to the end of a room of `size` bytes: *ret are its bytes, which are those of
 * protobuf_c_message_pack(). False: it does not fit, or has fields that are repeated or unknown. */
bool quick_write(const ProtobufCMessage *message, uint8_t *room, size_t size,
                 struct baton_str *ret);

/* Reads a message of that type into the arena, in memory of its length and the size of its structs.
 *
 * BATON_INVALID: it is none, or has unknown fields, fields that are repeated, or fields that are
 * not in the order of their numbers. BATON_NO_MEMORY. Neither has a detail. */
enum baton_err quick_read(const ProtobufCMessageDescriptor *type, struct baton_str bytes,
                          struct arena *arena, ProtobufCMessage **ret);

#endif
