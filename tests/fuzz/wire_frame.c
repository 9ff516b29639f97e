/* A frame that comes in any parts is the same as one that comes whole, and no byte behind it is
 * ever wanted. The first byte says how large the parts are. */
#include "wire/frame.h"

#include <string.h>

#include "fuzz/fuzz.h"

#define MAX 300

/* Feeds the reader until it has a frame, or refuses; returns how many bytes it took. */
static size_t feed(struct wire_reader *r, const uint8_t *data, size_t size, size_t step,
                   enum baton_err *ret)
{
	size_t fed = 0;
	*ret = BATON_OK;
	while (fed < size && *ret == BATON_OK && !wire_reader_whole(r)) {
		void *place;
		size_t want;
		CHECK(wire_reader_want(r, &place, &want) == BATON_OK && want > 0);
		size_t n = want < step ? want : step;
		n = n < size - fed ? n : size - fed;
		memcpy(place, data + fed, n);
		fed += n;
		*ret = wire_reader_took(r, n);
	}
	return fed;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wire_reader parts;
	struct wire_reader whole;
	enum baton_err e;
	enum baton_err f;
	if (size < 1)
		return 0;
	wire_reader_init(&parts, baton_alloc_libc(), MAX);
	wire_reader_init(&whole, baton_alloc_libc(), MAX);
	size_t fed = feed(&parts, data + 1, size - 1, 1 + data[0] % 16, &e);
	feed(&whole, data + 1, size - 1, SIZE_MAX, &f);
	CHECK(e == f && wire_reader_whole(&parts) == wire_reader_whole(&whole));
	if (wire_reader_whole(&parts)) {
		struct baton_str body = wire_reader_body(&parts);
		CHECK(fed == WIRE_FRAME_HEAD + body.len && body.len <= MAX);
		CHECK(baton_str_equal(body, wire_reader_body(&whole)));
		CHECK(memcmp(body.ptr, data + 1 + WIRE_FRAME_HEAD, body.len) == 0);
	}
	wire_reader_done(&parts);
	wire_reader_done(&whole);
	return 0;
}
