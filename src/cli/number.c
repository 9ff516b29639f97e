/* Whole numbers as people type them. */
#include <inttypes.h>

#include "number.h"
#include "out.h"

bool number_parse(const char *option, const char *text, uint32_t max, uint32_t *ret)
{
	uint64_t number = 0;
	const char *c = text;
	for (; *c >= '0' && *c <= '9' && number <= max; c++)
		number = 10 * number + (uint64_t)(*c - '0');
	if (*c == '\0' && number >= 1 && number <= max) {
		*ret = (uint32_t)number;
		return true;
	}
	char shown[SHOWN_MAX];
	complain("'--%s' takes a number from 1 to %" PRIu32 ", not '%s'", option, max,
	         show(text, shown));
	return false;
}
