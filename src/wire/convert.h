/* Messages of protobuf-c that several files of this module turn into plain structs, and back. */
#ifndef WIRE_CONVERT_H
#define WIRE_CONVERT_H

#include "wire/hello.h"
#include "wire/move.h"
#include "wire/pack.h"
#include "wire/stored.h"
#include "wire/wire.pb-c.h"

/* The result borrows what the struct borrows. */
void convert_hello_out(const struct wire_hello *hello, Baton__Wire__Hello *pb);

/* As wire_hello_decode(). */
enum baton_err convert_hello_in(const Baton__Wire__Hello *pb, struct wire_hello *ret);

/* Descriptors that are kept. `pbs` has room for all; their texts stay where they are. */
void convert_stored_out(const struct wire_stored *all, size_t count, Baton__Wire__Stored *pbs,
                        Baton__Wire__Stored **ret);
enum baton_err convert_stored_in(Baton__Wire__Stored *const *pbs, size_t count, size_t max,
                                 struct arena *arena, const struct wire_stored **ret);

/* What a broker hands on. */
enum baton_err convert_move_encode(const struct wire_move *move, struct buf *out);
enum baton_err convert_move_in(const Baton__Wire__Move *pb, struct arena *arena,
                               struct wire_move *ret);

#endif
