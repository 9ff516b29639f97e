/* Characters in bytes that may or may not be UTF-8. */
#include "base/utf8.h"

/* How many bytes a character has whose first byte is `lead`; 0: no character begins so. */
static size_t length_of(uint8_t lead)
{
	if (lead < 0x80)
		return 1;
	if (lead < 0xc2) /* a continuation, or a longer form of something below 0x80 */
		return 0;
	if (lead < 0xe0)
		return 2;
	if (lead < 0xf0)
		return 3;
	if (lead < 0xf5)
		return 4;
	return 0;
}

static bool is_continuation(uint8_t byte)
{
	return (byte & 0xc0) == 0x80;
}

size_t utf8_next(const char *bytes, size_t len, uint32_t *ret_char)
{
	static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
	static const uint8_t lead_bits[] = {0, 0, 0x1f, 0x0f, 0x07};

	if (len == 0)
		return 0;
	uint8_t lead = (uint8_t)bytes[0];
	if (lead < 0x80) { /* nearly always */
		*ret_char = lead;
		return 1;
	}
	size_t n = length_of(lead);
	if (n == 0 || n > len)
		return 0;
	uint32_t ch = lead & lead_bits[n];
	for (size_t i = 1; i < n; i++) {
		uint8_t byte = (uint8_t)bytes[i];
		if (!is_continuation(byte))
			return 0;
		ch = ch << 6 | (byte & 0x3fu);
	}
	bool surrogate = ch >= 0xd800 && ch <= 0xdfff;
	if (ch < smallest[n] || ch > 0x10ffff || surrogate)
		return 0;
	*ret_char = ch;
	return n;
}

bool utf8_is_valid(const char *bytes, size_t len)
{
	uint32_t ch;
	size_t step = 1;
	for (size_t i = 0; i < len && step > 0; i += step)
		step = utf8_next(bytes + i, len - i, &ch);
	return step > 0;
}

bool utf8_is_control(uint32_t ch)
{
	return ch < 0x20 || (ch >= 0x7f && ch <= 0x9f);
}

size_t utf8_cut(const char *bytes, size_t len)
{
	for (size_t back = 1; back <= 3 && back <= len; back++) {
		uint8_t byte = (uint8_t)bytes[len - back];
		if (is_continuation(byte))
			continue;
		return length_of(byte) > back ? len - back : len;
	}
	return len;
}
