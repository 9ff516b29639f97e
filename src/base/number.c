/* Whole numbers as programs write them. */
#include "base/number.h"

#include <string.h>

bool number_parse(struct baton_str text, uint64_t max, uint64_t *ret)
{
	if (text.len == 0 || (text.len > 1 && text.ptr[0] == '0'))
		return false;
	uint64_t n = 0;
	for (size_t i = 0; i < text.len; i++) {
		char c = text.ptr[i];
		if (c < '0' || c > '9')
			return false;
		uint64_t digit = (uint64_t)(c - '0');
		if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, digit, &n))
			return false;
	}
	if (n > max)
		return false;
	*ret = n;
	return true;
}

char *number_print(uint64_t number, char *at)
{
	char digits[NUMBER_DIGITS];
	size_t begin = sizeof digits;
	do
		digits[--begin] = (char)('0' + number % 10);
	while (number /= 10);
	memcpy(at, digits + begin, sizeof digits - begin);
	return at + (sizeof digits - begin);
}
