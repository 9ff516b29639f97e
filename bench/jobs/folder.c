/* Where the queues keep their files. */
#include <err.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/jobs.h"

void jobs_folder(char path[PATH_MAX])
{
	const char *base = getenv("TMPDIR");
	snprintf(path, PATH_MAX, "%s/baton-bench-XXXXXX", base && base[0] ? base : "/var/tmp");
	if (!mkdtemp(path))
		err(1, "cannot make %s", path);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void jobs_folder_remove(const char *path)
{
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
