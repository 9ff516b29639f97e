/* UTF-8 is what a slow decoder, written from the definition alone, takes for it. */
#include "base/utf8.h"

#include <string.h>

#include <baton/str.h>

#include "fuzz/fuzz.h"

static size_t encode(uint32_t ch, uint8_t out[4])
{
	if (ch <= 0x7f) {
		out[0] = (uint8_t)ch;
		return 1;
	}
	if (ch <= 0x7ff) {
		out[0] = (uint8_t)(0xc0 | ch >> 6);
		out[1] = (uint8_t)(0x80 | (ch & 0x3f));
		return 2;
	}
	if (ch <= 0xffff) {
		out[0] = (uint8_t)(0xe0 | ch >> 12);
		out[1] = (uint8_t)(0x80 | (ch >> 6 & 0x3f));
		out[2] = (uint8_t)(0x80 | (ch & 0x3f));
		return 3;
	}
	out[0] = (uint8_t)(0xf0 | ch >> 18);
	out[1] = (uint8_t)(0x80 | (ch >> 12 & 0x3f));
	out[2] = (uint8_t)(0x80 | (ch >> 6 & 0x3f));
	out[3] = (uint8_t)(0x80 | (ch & 0x3f));
	return 4;
}

/* The only character that is encoded as the beginning of the bytes; 0: there is none. All bits that
 * the bytes could mean are put together, and whatever does not come back the same is no UTF-8. */
static size_t slow_next(const uint8_t *bytes, size_t len, uint32_t *ret_char)
{
	static const uint8_t lead_mask[] = {0x7f, 0x1f, 0x0f, 0x07};
	for (size_t n = 1; n <= 4 && n <= len; n++) {
		uint32_t ch = bytes[0] & lead_mask[n - 1];
		for (size_t i = 1; i < n; i++)
			ch = ch << 6 | (bytes[i] & 0x3fu);
		uint8_t again[4];
		if (ch > 0x10ffff || (ch & 0xfffff800) == 0xd800 || encode(ch, again) != n ||
		    memcmp(again, bytes, n) != 0)
			continue;
		*ret_char = ch;
		return n;
	}
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	bool valid = true;
	for (size_t at = 0; at < size;) {
		uint32_t fast = 0;
		uint32_t slow = 0;
		size_t n = utf8_next(text + at, size - at, &fast);
		CHECK(n == slow_next(data + at, size - at, &slow));
		CHECK(fast == slow);
		valid = valid && n > 0;
		at += n > 0 ? n : 1;
	}
	CHECK(baton_str_is_utf8((struct baton_str){text, size}) == valid);
	for (size_t len = 0; len <= size; len++) {
		size_t cut = utf8_cut(text, len);
		CHECK(cut <= len && len - cut <= 3);
		CHECK(!valid || baton_str_is_utf8((struct baton_str){text, cut}));
	}
	return 0;
}
