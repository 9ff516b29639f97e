/* A keyed hash of bytes. */
#include "base/hash.h"

#include <assert.h>
#include <string.h>

#include <sodium.h>

static_assert(crypto_shorthash_KEYBYTES == sizeof(struct baton_id), "a seed is an id");
static_assert(crypto_shorthash_BYTES == sizeof(uint64_t), "the hash fills 64 bits");
static_assert(crypto_shorthash_siphashx24_KEYBYTES == sizeof(struct baton_id), "a seed is an id");
static_assert(crypto_shorthash_siphashx24_BYTES == sizeof(struct baton_id), "it fills an id");

uint64_t hash_bytes(const struct baton_id *seed, const void *bytes, size_t len)
{
	unsigned char out[crypto_shorthash_BYTES];
	crypto_shorthash(out, bytes, len, seed->bytes);

	uint64_t hash;
	memcpy(&hash, out, sizeof hash);
	return hash;
}

struct baton_id hash_id(const struct baton_id *seed, const void *bytes, size_t len)
{
	struct baton_id id;
	crypto_shorthash_siphashx24(id.bytes, bytes, len, seed->bytes);
	return id;
}
