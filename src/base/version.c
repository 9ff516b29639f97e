/* Which Baton this is. */
#include <baton/version.h>

const char *baton_version(void)
{
	return BATON_VERSION;
}
