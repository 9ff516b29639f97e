/* SHA-256 over parts whose borders count: ("ab", "c") and ("a", "bc") have different digests. */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sodium/crypto_hash_sha256.h>

#include <baton/str.h>

#define DIGEST_SIZE 32

struct digest {
	crypto_hash_sha256_state state;
};

void digest_init(struct digest *d);

/* Appends the length of `s` as eight bytes, the highest first, and its bytes. */
void digest_str(struct digest *d, struct baton_str s);

/* Appends the number as eight bytes, the highest first. */
void digest_number(struct digest *d, uint64_t number);

void digest_end(struct digest *d, uint8_t out[DIGEST_SIZE]);

/* The digest of bytes as they are. */
void digest_bytes(const void *bytes, size_t len, uint8_t out[DIGEST_SIZE]);

/* Whether both are the same, in a time that does not tell where they differ. */
bool digest_equal(const void *a, const void *b, size_t len);

#endif
