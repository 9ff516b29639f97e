/* A keyed hash of bytes, so that nobody who chooses the bytes can choose where they collide. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#include <baton/id.h>

/* The hash of `len` bytes under the random `seed`. */
uint64_t hash_bytes(const struct baton_id *seed, const void *bytes, size_t len);

/* The same in 128 bits: under one seed no two texts have the same, for all that anybody can do. */
struct baton_id hash_id(const struct baton_id *seed, const void *bytes, size_t len);

#endif
