/* The entries of a folder that have numbers for names. */
#include "guardian/numbered.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/number.h"

bool numbered_open(struct numbered *n, int at, const char *path)
{
	int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n->dir = fdopendir(fd);
	if (n->dir)
		return true;
	int errnum = errno;
	close(fd);
	errno = errnum;
	return false;
}

int numbered_fd(const struct numbered *n)
{
	return dirfd(n->dir);
}

bool numbered_next(struct numbered *n, int32_t *ret)
{
	uint64_t number;
	/* One thread at a time uses a folder that is open. */
	/* cppcheck-suppress readdirCalled */
	for (struct dirent *d; (d = readdir(n->dir));) {
		if (number_parse(baton_str_z(d->d_name), INT32_MAX, &number)) {
			*ret = (int32_t)number;
			return true;
		}
	}
	return false;
}

void numbered_close(struct numbered *n)
{
	if (n->dir)
		closedir(n->dir);
	n->dir = NULL;
}
