/* How much of a long test to run: a sample every day, everything when BATON_SOAK=1. */
#ifndef SUPPORT_SOAK_H
#define SUPPORT_SOAK_H

#include <stdlib.h>
#include <string.h>

static inline unsigned soak_scale(unsigned small, unsigned full)
{
	const char *soak = getenv("BATON_SOAK");
	return soak != NULL && strcmp(soak, "1") == 0 ? full : small;
}

#endif
