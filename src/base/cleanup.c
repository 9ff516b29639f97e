/* Cleanup by attribute. */
#include "base/cleanup.h"

#include <errno.h>
#include <unistd.h>

void fd_closep(int *fd)
{
	if (*fd < 0)
		return;
	int saved = errno;
	close(*fd);
	errno = saved;
}
