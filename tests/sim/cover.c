/* What was seen, in all runs together. */
#include "sim/cover.h"

const char *cover_name(enum covered what)
{
	static const char *const names[COVER_END] = {
#define X(name, text) [COVER_##name] = (text),
		COVER_TABLE(X)
#undef X
	};
	return names[what];
}
