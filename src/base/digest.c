/* SHA-256 over parts whose borders count. */
#include "base/digest.h"

#include <assert.h>
#include <endian.h>

#include <sodium.h>

static_assert(crypto_hash_sha256_BYTES == DIGEST_SIZE, "a digest is that of SHA-256");

void digest_init(struct digest *d)
{
	crypto_hash_sha256_init(&d->state);
}

void digest_number(struct digest *d, uint64_t number)
{
	uint64_t big = htobe64(number);
	crypto_hash_sha256_update(&d->state, (const unsigned char *)&big, sizeof big);
}

void digest_str(struct digest *d, struct baton_str s)
{
	digest_number(d, s.len);
	if (s.len > 0)
		crypto_hash_sha256_update(&d->state, (const unsigned char *)s.ptr, s.len);
}

void digest_end(struct digest *d, uint8_t out[DIGEST_SIZE])
{
	crypto_hash_sha256_final(&d->state, out);
}

void digest_bytes(const void *bytes, size_t len, uint8_t out[DIGEST_SIZE])
{
	crypto_hash_sha256(out, bytes, len);
}

bool digest_equal(const void *a, const void *b, size_t len)
{
	return sodium_memcmp(a, b, len) == 0;
}
