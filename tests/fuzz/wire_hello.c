/* A Hello that is read is written so that it is read as the same. */
#include <baton/alloc.h>

#include "base/buf.h"
#include "fuzz/fuzz.h"
#include "wire/hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena arena;
	struct buf once;
	struct buf twice;
	struct wire_hello got;
	struct wire_hello again;
	arena_init(&arena, baton_alloc_libc());
	buf_init(&once, baton_alloc_libc(), SIZE_MAX / 2);
	buf_init(&twice, baton_alloc_libc(), SIZE_MAX / 2);
	struct baton_str bytes = {(const char *)data, size};
	if (wire_hello_decode(bytes, &arena, &got) == BATON_OK) {
		CHECK(wire_hello_encode(&got, &once) == BATON_OK);
		CHECK(wire_hello_decode(buf_str(&once), &arena, &again) == BATON_OK);
		CHECK(wire_hello_encode(&again, &twice) == BATON_OK);
		CHECK(baton_str_equal(buf_str(&once), buf_str(&twice)));
	} else {
		CHECK(baton_err_detail()[0] != '\0');
	}
	buf_done(&once);
	buf_done(&twice);
	arena_done(&arena);
	return 0;
}
