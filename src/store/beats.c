/* Where runners beat. */
#include "store/beats.h"

#include <stdatomic.h>
#include <string.h>

#include "base/check.h"
#include "base/fail.h"

#define TAG_BITS 24
#define BEAT_BITS (64 - TAG_BITS)
#define BEAT_MASK ((UINT64_C(1) << BEAT_BITS) - 1)
#define VERSION 1

typedef _Atomic uint64_t word;

static size_t size_of(const uint32_t *params)
{
	if (params[0] == BEATS_MAX)
		return BEATS_MAX * sizeof(word);
	fail(BATON_INVALID, "the beats are those of %u runners: %d are expected", params[0],
	     BEATS_MAX);
	return 0;
}

static enum baton_err init(void *data, const uint32_t *params, void *arg)
{
	(void)data;
	(void)params;
	(void)arg;
	return BATON_OK;
}

enum baton_err beats_open(struct beats *b, const char *path)
{
	struct segment_spec spec = {
		.path = path,
		.kind = "beats",
		.kind_version = VERSION,
		.params = {BEATS_MAX},
		.param_count = 1,
		.mode = 0600,
		.size = size_of,
		.init = init,
	};
	return path ? segment_open(&spec, &b->segment) : segment_make_private(&spec, &b->segment);
}

void beats_close(struct beats *b)
{
	segment_close(&b->segment);
}

static word *word_of(const struct beats *b, uint32_t slot)
{
	CHECK(slot < BEATS_MAX);
	return (word *)b->segment.data + slot;
}

static uint64_t tag_of(const struct baton_id *incarnation)
{
	uint64_t bits;
	memcpy(&bits, incarnation->bytes, sizeof bits);
	return (bits | 1) << BEAT_BITS; /* never 0 */
}

uint64_t beats_read(const struct beats *b, uint32_t slot)
{
	return atomic_load(word_of(b, slot));
}

void beats_begin(struct beats *b, uint32_t slot, const struct baton_id *incarnation)
{
	atomic_store(word_of(b, slot), tag_of(incarnation) | 1);
}

bool beats_beat(struct beats *b, uint32_t slot, const struct baton_id *incarnation)
{
	word *w = word_of(b, slot);
	uint64_t seen = atomic_load(w), tag = tag_of(incarnation);
	do {
		if ((seen & ~BEAT_MASK) != tag)
			return false;
	} while (!atomic_compare_exchange_weak(w, &seen, tag | ((seen + 1) & BEAT_MASK)));
	return true;
}

bool beats_holds(const struct beats *b, uint32_t slot, const struct baton_id *incarnation)
{
	return (beats_read(b, slot) & ~BEAT_MASK) == tag_of(incarnation);
}

bool beats_stop(struct beats *b, uint32_t slot, uint64_t seen)
{
	return atomic_compare_exchange_strong(word_of(b, slot), &seen, 0);
}
