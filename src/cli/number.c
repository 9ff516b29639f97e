/* Whole numbers as people type them. */
#include <inttypes.h>

#include "number.h"
#include "out.h"

bool number_read(const char *text, uint64_t min, uint64_t max, uint64_t *ret)
{
	uint64_t number = 0;
	const char *c = text;
	for (; *c >= '0' && *c <= '9' && number <= max; c++) {
		if (number > (UINT64_MAX - 9) / 10)
			return false;
		number = 10 * number + (uint64_t)(*c - '0');
	}
	if (c == text || *c != '\0' || number < min || number > max)
		return false;
	*ret = number;
	return true;
}

bool number_between(const char *option, const char *text, uint32_t min, uint32_t max, uint32_t *ret)
{
	uint64_t number;
	if (number_read(text, min, max, &number)) {
		*ret = (uint32_t)number;
		return true;
	}
	char shown[SHOWN_MAX];
	complain("'--%s' takes a number from %" PRIu32 " to %" PRIu32 ", not '%s'", option, min,
	         max, show(text, shown));
	return false;
}

bool number_parse(const char *option, const char *text, uint32_t max, uint32_t *ret)
{
	return number_between(option, text, 1, max, ret);
}
