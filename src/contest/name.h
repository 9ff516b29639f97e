/* The name of a subject as it lies in the segment: words, compared in words, for every claim. */
#ifndef CONTEST_NAME_H
#define CONTEST_NAME_H

#include <string.h>

#include "contest/layout.h"

static inline uint64_t load_8(const char *at)
{
	uint64_t word;
	memcpy(&word, at, sizeof word);
	return word;
}

static inline uint64_t load_4(const char *at)
{
	uint32_t word;
	memcpy(&word, at, sizeof word);
	return word;
}

/* The last `len` bytes, 1 to 7, as a word padded with zeros: put together from loads that overlap,
 * because this is done for every claim. Little-endian, as the machines are that have 16-byte
 * compare-and-swap. */
static inline uint64_t load_tail(const char *at, size_t len)
{
	if (len >= 4)
		return load_4(at) | load_4(at + len - 4) << (8 * (len - 4));
	uint64_t first = (unsigned char)at[0], middle = (unsigned char)at[len / 2],
		 last = (unsigned char)at[len - 1];
	return first | middle << (8 * (len / 2)) | last << (8 * (len - 1));
}

/* Where the last word of a text begins. */
static inline size_t text_last(struct baton_str text)
{
	return (text.len - 1) / 8 * 8;
}

/* The word that begins there, padded with zeros: what the load has of the one before is shifted
 * out. */
static inline uint64_t text_end(struct baton_str text)
{
	return text.len >= 8 ? load_8(text.ptr + text.len - 8) >> (-(8 * text.len) & 63)
	                     : load_tail(text.ptr, text.len);
}

/* Whether the words are those of a text that is not empty. */
static inline bool words_are(const _Atomic uint64_t *words, struct baton_str text)
{
	size_t last = text_last(text);
	if (atomic_load_explicit(&words[last / 8], memory_order_relaxed) != text_end(text))
		return false;
	for (size_t at = 0; at < last; at += 8) {
		if (atomic_load_explicit(&words[at / 8], memory_order_relaxed) !=
		    load_8(text.ptr + at))
			return false;
	}
	return true;
}

#endif
