/* CHECK: for our own bugs. */
#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void check_failed(const char *file, int line, const char *cond)
{
	/* Not through stdio, whose locks may be held and whose buffers may be the broken thing. */
	char text[512];
	int len = snprintf(text, sizeof text - 1, "baton: bug at %s:%d: %s", file, line, cond);
	size_t end = len < (int)sizeof text - 1 ? (size_t)len : sizeof text - 2;
	text[end] = '\n';
	if (write(STDERR_FILENO, text, end + 1) < 0) {
		/* There is nobody left to tell. */
	}
	abort();
}
