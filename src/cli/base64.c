/* Bytes as text that JSON can hold: base64 of RFC 4648, with its padding. */
#include <stdint.h>
#include <string.h>

#include "base64.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_digits(struct baton_str *s, char digits[4])
{
	size_t n = s->len < 3 ? s->len : 3;
	uint32_t bits = 0;
	for (size_t i = 0; i < 3; i++)
		bits = bits << 8 | (i < n ? (uint8_t)s->ptr[i] : 0);
	memset(digits, '=', 4);
	for (size_t i = 0; i <= n; i++)
		digits[i] = alphabet[bits >> (18 - 6 * i) & 0x3f];
	s->ptr += n;
	s->len -= n;
}

static bool digit_value(char c, uint32_t *ret)
{
	if (c >= 'A' && c <= 'Z')
		*ret = (uint32_t)(c - 'A');
	else if (c >= 'a' && c <= 'z')
		*ret = (uint32_t)(c - 'a') + 26;
	else if (c >= '0' && c <= '9')
		*ret = (uint32_t)(c - '0') + 52;
	else if (c == '+' || c == '/')
		*ret = c == '+' ? 62 : 63;
	else
		return false;
	return true;
}

/* Four digits, of which the last `padding` are '='. */
static bool decode_four(const char *digits, size_t padding, char *bytes)
{
	uint32_t bits = 0, value;
	for (size_t i = 0; i < 4; i++) {
		if (i >= 4 - padding)
			value = 0;
		else if (!digit_value(digits[i], &value))
			return false;
		bits = bits << 6 | value;
	}
	for (size_t i = 0; i < 3; i++) {
		char byte = (char)(bits >> (16 - 8 * i) & 0xff);
		if (i < 3 - padding)
			bytes[i] = byte;
		else if (byte != 0)
			return false;
	}
	return true;
}

bool base64_decode(char *text, size_t *len)
{
	size_t fours = *len / 4, made = 0;
	if (*len % 4 != 0)
		return false;
	for (size_t i = 0; i < fours; i++) {
		const char *digits = text + 4 * i;
		size_t padding = 0;
		if (i + 1 == fours && digits[3] == '=')
			padding = digits[2] == '=' ? 2 : 1;
		if (!decode_four(digits, padding, text + made))
			return false;
		made += 3 - padding;
	}
	*len = made;
	return true;
}
