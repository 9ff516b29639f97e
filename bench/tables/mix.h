/* A fast hash without a secret, for the tables that leave the choice to their user: eight bytes
 * at a time through a multiplication whose halves are folded. */
#ifndef BENCH_MIX_H
#define BENCH_MIX_H

#include <stdint.h>
#include <string.h>

#include "table.h"

static inline uint64_t mix_fold(uint64_t a, uint64_t b)
{
	__extension__ unsigned __int128 product = (unsigned __int128)a * b;
	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t mix_word(const char *at)
{
	uint64_t word;
	memcpy(&word, at, sizeof word);
	return word;
}

/* For keys of at least 8 bytes; the last word overlaps the one before. */
static inline uint64_t mix_hash(const struct key *key)
{
	uint64_t h = key->len;
	for (uint32_t at = 0; at + 8 < key->len; at += 8)
		h = mix_fold(h ^ mix_word(key->text + at), UINT64_C(0x9e3779b97f4a7c15));
	return mix_fold(h ^ mix_word(key->text + key->len - 8), UINT64_C(0xd6e8feb86659fd93));
}

#endif
